"""Stream positions: how far a stream has read each metadata directory. Free of Spark.

In Structured Streaming an "offset" says how far a source was read, and goes into the checkpoint as JSON. Here it is an
object: the real path of each directory -> the fields of its :class:`StreamPosition`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from kshell.sources.directory.files import Listing, Segment, SnapshotFile


class StreamPosition(NamedTuple):
    """How far one directory was read: the end of the last good batch that was delivered, and how to recognize it."""

    segment: int = -1
    """The base offset in the name of the batch's segment; -1 if nothing was read, or if the name has no offset."""
    at: int = -1
    """The batch's first byte in the segment; -1 if no batch of this segment was delivered yet."""
    position: int = 0
    """The byte after the batch."""
    size: int = 0
    """Bytes of the segment that were examined: more than ``position`` if damage follows without a batch after it."""
    seen: int = 0
    """Findings before this byte of the segment were reported."""
    offset: int = 0
    """The next offset of the log to read."""
    epoch: int = -1
    """The batch's leader epoch; with ``crc`` it identifies the batch."""
    crc: int = 0
    snapshot: str = ""
    """The file name of the newest snapshot that was delivered."""

    @property
    def is_new(self) -> bool:
        """Whether nothing of the log was read yet."""
        return self.at < 0 and self.size == 0 and self.offset == 0


StreamPositions = dict[str, StreamPosition]
"""Real path of a directory -> how far it was read."""
Offset = dict[str, Any]
"""An offset of the stream, as :func:`offset_of` makes it."""


def places_of(offset: Offset) -> StreamPositions:
    """Return the positions in an offset of the stream. Raises TypeError if another release wrote other fields."""
    return {path: StreamPosition(**values) for path, values in offset.items()}


def offset_of(places: Mapping[str, StreamPosition]) -> Offset:
    """Return positions as an offset of the stream: the same text for the same positions."""
    return {path: places[path]._asdict() for path in sorted(places)}


class Bound(NamedTuple):
    """The end of a directory (last segment, its bytes, newest snapshot) beyond which ``availableNow`` does not read."""

    segment: int
    size: int
    snapshot: str

    def clip(self, listing: Listing) -> Listing:
        """Return a listing without segments, bytes and snapshots that came later."""
        segments = upto(listing.segments, self.segment, self.size)
        snapshots = tuple(file for file in listing.snapshots if name_of(file) <= self.snapshot)
        return listing._replace(segments=segments, snapshots=snapshots)


def bound_of(listing: Listing) -> Bound:
    """Return the end of a directory by its listing."""
    last = listing.segments[-1] if listing.segments else None
    names = [name_of(file) for file in listing.snapshots]
    return Bound(base_of(last), last.size if last else 0, max(names, default=""))


def base_of(segment: Segment | None) -> int:
    """Return the base offset in the name of a segment; -1 for none."""
    return -1 if segment is None or segment.base_offset is None else segment.base_offset


def name_of(file: SnapshotFile) -> str:
    """Return the file name of a snapshot. Names sort in the order of end offsets and epochs."""
    return file.path.rpartition("/")[2]


def upto(segments: Iterable[Segment], last: int, size: int) -> tuple[Segment, ...]:
    """Return the segments up to the one with base offset ``last``, and of that one at most ``size`` bytes."""
    clipped = [segment for segment in segments if base_of(segment) <= last]
    if clipped and base_of(clipped[-1]) == last:
        clipped[-1] = clipped[-1]._replace(size=min(clipped[-1].size, size))
    return tuple(clipped)


def bytes_after(listing: Listing, place: StreamPosition) -> int:
    """Return how many bytes of the listed log come after a position."""
    total = 0
    for segment in listing.segments:
        base = base_of(segment)
        if base > place.segment or place.is_new:
            total += segment.size
        elif base == place.segment:
            total += max(segment.size - max(place.position, place.size), 0)
    return total
