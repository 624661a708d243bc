"""Find where to continue in a directory that a stream has read before: after the last batch that was delivered.

:func:`resume` takes a listing and the earlier position, and returns a :class:`Start`. Meanwhile segments may have been
deleted, and the end of the log may have been truncated: a new leader replaces records that were not committed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import NamedTuple

from kshell.protocol.batches import Batch
from kshell.sources.directory.files import Listing, Segment
from kshell.sources.directory.ranges import open_file
from kshell.spark.files.plan import FileFinding, header_at
from kshell.spark.stream.positions import StreamPosition, base_of

TRUNCATED = "truncated"
"""The kind of a finding about delivered records that are no longer in the log."""


class Start(NamedTuple):
    """Where to begin: at byte ``begin`` of the first of ``segments``."""

    segments: tuple[Segment, ...]
    begin: int = 0
    at: int = -1
    """The first byte of the batch before ``begin``; -1 if there is none in this segment."""
    offset: int | None = None
    """The base offset that the next batch must have; ``None`` if any will do."""
    delivered_end: int = 0
    """Records with offsets below this one were delivered already, and are not delivered again."""
    finding: FileFinding | None = None
    """The finding to report about truncated records, if any."""
    is_damaged: bool = False
    """Whether damage at ``begin`` was reported before: the bytes from there on are verified, not only the headers."""
    is_proven: bool = False
    """Whether an earlier walk found the batch at ``begin`` to fit to the one before it."""

    @property
    def gap(self) -> tuple[int, int] | None:
        """The offsets (first, after) that were deleted before they were read."""
        first = self.segments[0].base_offset if self.segments and not self.begin else None
        if first is None or self.offset is None or first <= self.offset:
            return None
        return self.offset, first


def resume(listing: Listing, place: StreamPosition) -> Start:
    """Find where to continue after a position. Raises SourceError, FileNotFoundError (the caller lists again)."""
    segments = listing.segments
    if place.is_new or not segments:
        return Start(segments)
    for index, segment in enumerate(segments):
        if base_of(segment) == place.segment and _is_there(segment, place):
            expected = place.offset if place.position else None  # a gap before this segment was reported already
            return Start(
                segments[index:], place.position, place.at, expected, place.offset, None, place.seen > place.position
            )
    if base_of(segments[0]) >= place.offset:
        return Start(segments, 0, -1, place.offset, place.offset)
    return _relocate(segments, place)


def _is_there(segment: Segment, place: StreamPosition) -> bool:
    """Whether the last batch that was delivered is still at the same bytes of the segment."""
    if segment.size < place.position:
        return False
    if place.at < 0:
        return True
    with closing(open_file(segment.path)) as file:
        batch = header_at(file, place.at)
    return batch is not None and batch.size == place.position - place.at and _is_last(batch, place)


def _is_last(batch: Batch, place: StreamPosition) -> bool:
    return batch.last_offset + 1 == place.offset and batch.epoch == place.epoch and batch.crc == place.crc


def _relocate(segments: Sequence[Segment], place: StreamPosition) -> Start:
    """Find the last delivered batch at another place or, if it was truncated, the end of the part that is unchanged.

    Batches that replaced others are recognized by a later leader epoch.
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
            continue  # the whole segment is of a later epoch, or empty: the logs diverge before it
        last = place.offset - 1
        taken = f"offset {last} was" if offset >= last else f"offsets {offset} to {last} were"
        finding = FileFinding(end, TRUNCATED, f"{taken} taken back after being read")
        return Start(tuple(segments[index:]), end, at, offset, offset, finding)
    raise AssertionError("the first segment begins before the place")


def _headers(segment: Segment) -> Iterator[tuple[int, Batch]]:
    """Read (first byte, header) of a segment's batches, as far as their offsets follow each other."""
    with closing(open_file(segment.path)) as file:
        position, expected = 0, segment.base_offset
        while position < segment.size:
            batch = header_at(file, position)
            if batch is None or position + batch.size > segment.size:
                return
            if expected is not None and batch.base_offset != expected:
                return
            yield position, batch
            position, expected = position + batch.size, batch.last_offset + 1
