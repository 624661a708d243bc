"""The log as an observer has it: committed batches in memory, in the form of a directory's segments.

So everything that reads a directory's log (verification, replay, ``dump``, points in time) reads this one, too.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from kshell.protocol.batches import Batch, read_header
from kshell.sources.directory.files import Segment

_SEGMENT_BYTES = 4 << 20
"""Chunks are joined to segments of about this size when segments are asked for."""
_SMALL = 1 << 16
"""A chunk of fewer bytes is joined with the next one as soon as that is appended."""
MOST_BYTES = 1 << 30
"""The most bytes that are kept; beyond them the oldest are dropped. Kafka itself keeps 100 MiB of log by default."""


class _Chunk(NamedTuple):
    """The bytes of batches that follow each other, from offset ``base`` to ``end`` (exclusive)."""

    base: int
    end: int
    data: bytes


class Mirror:
    """A log in memory, from offset ``start`` to ``end`` (exclusive). All batches in it are committed and verified."""

    def __init__(self, name: str, start: int, *, most_bytes: int = MOST_BYTES) -> None:
        self.name = name
        self.start = start
        self._chunks: list[_Chunk] = []
        self._bytes = 0
        self._most = most_bytes

    @property
    def end(self) -> int:
        """The offset after the last batch."""
        return self._chunks[-1].end if self._chunks else self.start

    def append(self, batches: list[Batch]) -> None:
        """Add batches that follow each other and the end; the oldest bytes are dropped if there are too many."""
        if not batches:
            return
        data = b"".join(batch.raw() for batch in batches)
        self._bytes += len(data)
        chunk = _Chunk(batches[0].base_offset, batches[-1].last_offset + 1, data)
        if self._chunks and len(self._chunks[-1].data) < min(_SMALL, self._most // 16):
            chunk = _joined([self._chunks.pop(), chunk])  # a quiet cluster commits two records a second, for weeks
        self._chunks.append(chunk)
        while self._bytes > self._most and len(self._chunks) > 1:
            self._bytes -= len(self._chunks.pop(0).data)
            self.start = self._chunks[0].base

    def prepend(self, older: Mirror) -> None:
        """Put an older part before this log. It must end where this log starts."""
        self._chunks[:0] = older._chunks
        self._bytes += older._bytes
        self.start = older.start

    def forget(self, before: int) -> None:
        """Drop the chunks that are completely below offset ``before``."""
        count = 0
        for chunk in self._chunks:
            if chunk.end > before:
                break
            count += 1
            self._bytes -= len(chunk.data)
            self.start = chunk.end
        del self._chunks[:count]

    def segments(self) -> tuple[Segment, ...]:
        """The log as segments in memory."""
        self._join()
        return tuple(
            Segment(f"{self.name}/{chunk.base:020d}.log", chunk.base, len(chunk.data), 0, chunk.data)
            for chunk in self._chunks
        )

    def _join(self) -> None:
        joined: list[_Chunk] = []
        run: list[_Chunk] = []
        size = 0
        for chunk in self._chunks:
            if run and size + len(chunk.data) > _SEGMENT_BYTES:
                joined.append(_joined(run))
                run, size = [], 0
            run.append(chunk)
            size += len(chunk.data)
        if run:
            joined.append(_joined(run))
        self._chunks = joined

    def batches(self, start: int) -> Iterator[Batch]:
        """Yield the batches with offsets from ``start`` on that are there now."""
        chunks = self._chunks
        first = max(bisect_right(chunks, start, key=lambda chunk: chunk.base) - 1, 0)
        for chunk in chunks[first:]:
            position = 0
            while position < len(chunk.data):
                batch = read_header(chunk.data, position)
                if batch.last_offset >= start:
                    yield batch
                position = batch.end


def _joined(run: list[_Chunk]) -> _Chunk:
    if len(run) == 1:
        return run[0]
    return _Chunk(run[0].base, run[-1].end, b"".join(chunk.data for chunk in run))
