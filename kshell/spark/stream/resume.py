"""Where to go on in a directory that was read before: at the batch after the last one, wherever that is now.

Segments may have been deleted meanwhile, and the end of a log may have been taken back: what a leader had not
committed is replaced on the copies that have it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kshell.protocol.batches import Batch
from kshell.sources.directory.files import Listing, Segment
from kshell.sources.directory.ranges import open_file
from kshell.spark.files.plan import FileFinding, header_at
from kshell.spark.stream.positions import StreamPosition, base_of

TRUNCATED = "truncated"


class Start(NamedTuple):
    """The segments from the one on in which to begin, and the byte of it."""

    segments: tuple[Segment, ...]
    begin: int = 0
    at: int = -1
    """The first byte of the batch before it, if there is one in this segment."""
    offset: int | None = None
    """The offset to come; ``None`` where any may."""
    delivered_end: int = 0
    """Offsets below it were delivered already, and are not delivered again."""
    finding: FileFinding | None = None
    is_damaged: bool = False
    """What comes there at once was found to be damaged: more than its headers is to be looked at again."""
    is_proven: bool = False
    """The batch that begins there was found to be good after the one before it."""

    @property
    def gap(self) -> tuple[int, int] | None:
        """The offsets (first, after) that were deleted before they were read."""
        first = self.segments[0].base_offset if self.segments and not self.begin else None
        if first is None or self.offset is None or first <= self.offset:
            return None
        return self.offset, first


def resume(listing: Listing, place: StreamPosition) -> Start:
    """Where to go on. Raises FileNotFoundError (list again), SourceError."""
    segments = listing.segments
    if place.is_new or not segments:
        return Start(segments)
    for index, segment in enumerate(segments):
        if base_of(segment) == place.segment and _is_there(segment, place):
            expected = place.offset if place.position else None  # that it does not join the one before was said
            return Start(
                segments[index:], place.position, place.at, expected, place.offset, None, place.seen > place.position
            )
    if base_of(segments[0]) >= place.offset:
        return Start(segments, 0, -1, place.offset, place.offset)
    return _relocate(segments, place)


def _is_there(segment: Segment, place: StreamPosition) -> bool:
    """Whether the last batch is where it was."""
    if segment.size < place.position:
        return False
    if place.at < 0:
        return True
    file = open_file(segment.path)
    try:
        batch = header_at(file, place.at)
    finally:
        file.close()
    return batch is not None and batch.size == place.position - place.at and _is_last(batch, place)


def _is_last(batch: Batch, place: StreamPosition) -> bool:
    return batch.last_offset + 1 == place.offset and batch.epoch == place.epoch and batch.crc == place.crc


def _relocate(segments: Sequence[Segment], place: StreamPosition) -> Start:
    """Find the last batch in other files, or the first batch after those that are as they were.

    A leader's epoch is higher than that of what it replaces.
    """
    for index in range(len(segments) - 1, -1, -1):
        if base_of(segments[index]) >= place.offset:
            continue
        end, at, offset = 0, -1, base_of(segments[index])
        for position, batch in _headers(segments[index]):
            if batch.epoch > place.epoch:
                break
            end, at, offset = position + batch.size, position, batch.last_offset + 1
            if _is_last(batch, place):
                return Start(tuple(segments[index:]), end, position, place.offset, place.offset)
            if offset >= place.offset:
                reason = f"the batch before offset {place.offset} is another one: the whole log is read again"
                return Start(tuple(segments), 0, -1, None, 0, FileFinding(0, TRUNCATED, reason))
        if at < 0 and index:
            continue  # all of it is of a later epoch, or empty: they part before
        last = place.offset - 1
        taken = f"offset {last} was" if offset >= last else f"offsets {offset} to {last} were"
        finding = FileFinding(end, TRUNCATED, f"{taken} taken back after being read")
        return Start(tuple(segments[index:]), end, at, offset, offset, finding)
    raise AssertionError("the first segment begins before the place")


def _headers(segment: Segment) -> Iterator[tuple[int, Batch]]:
    """(first byte, header) of the batches as far as they join."""
    file = open_file(segment.path)
    try:
        position, expected = 0, segment.base_offset
        while position < segment.size:
            batch = header_at(file, position)
            if batch is None or position + batch.size > segment.size:
                return
            if expected is not None and batch.base_offset != expected:
                return
            yield position, batch
            position, expected = position + batch.size, batch.last_offset + 1
    finally:
        file.close()
