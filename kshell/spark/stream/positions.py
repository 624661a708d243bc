"""How far a stream has read a metadata directory: what its offsets are made of. Free of Spark.

An offset of the stream is a JSON object: the real path of each directory -> its :class:`StreamPosition`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from kshell.sources.directory.files import Listing, Segment, SnapshotFile


class StreamPosition(NamedTuple):
    """The end of the last good batch that was delivered, and what that batch is recognized by."""

    segment: int = -1
    """The base offset of its segment, by the name; -1 for none, and for a file whose name says none."""
    at: int = -1
    """The batch's first byte; -1: it is not in this segment."""
    position: int = 0
    """The byte after it."""
    size: int = 0
    """Bytes of the segment that were judged: more than ``position`` where damage follows that has no batch after it."""
    seen: int = 0
    """Findings before that byte were reported."""
    offset: int = 0
    """The offset that is to come."""
    epoch: int = -1
    crc: int = 0
    snapshot: str = ""
    """The file name of the newest snapshot that was delivered."""

    @property
    def is_new(self) -> bool:
        """Whether nothing of a log was read yet."""
        return self.at < 0 and self.size == 0 and self.offset == 0


Places = dict[str, StreamPosition]


def places_of(offset: Mapping[str, Any]) -> Places:
    """What an offset says. Raises TypeError for one of another release with other fields."""
    return {path: StreamPosition(**values) for path, values in offset.items()}


def offset_of(places: Mapping[str, StreamPosition]) -> dict[str, Any]:
    """Return positions as an offset of the stream: the same text for the same positions."""
    return {path: places[path]._asdict() for path in sorted(places)}


class Bound(NamedTuple):
    """Where a directory ends for a query that reads only what is there when it begins."""

    segment: int
    size: int
    snapshot: str

    def clip(self, listing: Listing) -> Listing:
        """Without what came later."""
        segments = upto(listing.segments, self.segment, self.size)
        snapshots = tuple(file for file in listing.snapshots if name_of(file) <= self.snapshot)
        return listing._replace(segments=segments, snapshots=snapshots)


def bound_of(listing: Listing) -> Bound:
    """The end of a directory as it is listed."""
    last = listing.segments[-1] if listing.segments else None
    names = [name_of(file) for file in listing.snapshots]
    return Bound(base_of(last), last.size if last else 0, max(names, default=""))


def base_of(segment: Segment | None) -> int:
    """By its name, or -1."""
    return -1 if segment is None or segment.base_offset is None else segment.base_offset


def name_of(file: SnapshotFile) -> str:
    """Names of snapshots are in the order of their offsets and epochs."""
    return file.path.rpartition("/")[2]


def upto(segments: Iterable[Segment], last: int, size: int) -> tuple[Segment, ...]:
    """The segments up to ``last``, and of that one at most ``size`` bytes."""
    clipped = [segment for segment in segments if base_of(segment) <= last]
    if clipped and base_of(clipped[-1]) == last:
        clipped[-1] = clipped[-1]._replace(size=min(clipped[-1].size, size))
    return tuple(clipped)


def behind(listing: Listing, place: StreamPosition) -> int:
    """Bytes of the log that come after a place, as listed."""
    total = 0
    for segment in listing.segments:
        base = base_of(segment)
        if base > place.segment or place.is_new:
            total += segment.size
        elif base == place.segment:
            total += max(segment.size - max(place.position, place.size), 0)
    return total
