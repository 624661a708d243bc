"""One walk along the headers of a segment: which of its batches fit to each other, as far as headers tell."""

from __future__ import annotations

import copy
import struct

from kshell.protocol.batches import CONTROL_BIT, HEADER_SIZE, LENGTH_END, MAX_BATCH, MIN_LENGTH, Batch, read_header
from kshell.protocol.verify import LAST_OFFSET, MAGIC, LeaderEpochs
from kshell.sources.directory.files import Segment
from kshell.sources.directory.ranges import OpenFile
from kshell.spark.files.plan import Runs

_HEADER = struct.Struct(">qiib4xhi8xq14xi")
"""Of a header: base offset, length, epoch, magic, attributes, last offset delta, latest time, number of records."""
_WINDOW = 1 << 14
"""Bytes read at once: of batches that are larger only that much, of small ones all."""
_NEVER = 1 << 63


def plausible_header(window: bytes, at: int) -> Batch | None:
    """The batch whose header is there; ``None`` for what is no header. The rest is unchecked, and may be missing."""
    if len(window) - at < HEADER_SIZE:
        return None
    batch = read_header(window, at)
    return batch if batch.magic == MAGIC and HEADER_SIZE <= batch.size <= MAX_BATCH else None


def header_at(file: OpenFile, position: int) -> Batch | None:
    """The same of an open file; the header is at position 0 of its bytes."""
    return plausible_header(file.pread(HEADER_SIZE, position), 0)


class Headers:
    """Reads headers from an open file; bytes that another process cut off meanwhile are missing."""

    def __init__(self, file: OpenFile, segment: Segment) -> None:
        self.size = segment.size
        self._pread = file.pread

    def window(self, position: int) -> bytes:
        """The bytes from there on, some of them."""
        return self._pread(_WINDOW, position)

    def batch(self, start: int, end: int) -> Batch | None:
        """The whole batch, at position 0 of bytes of its own; ``None`` if its CRC does not match."""
        raw = self._pread(end - start, start)
        if len(raw) < end - start:
            return None
        batch = read_header(raw, 0)
        return batch if batch.crc_is_good() else None

    def header(self, start: int) -> Batch:
        """The header alone, of a batch that was seen before; at position 0 of its bytes."""
        return read_header(self._pread(HEADER_SIZE, start).ljust(HEADER_SIZE, b"\0"), 0)


_Pending = tuple[int, int, int, int, int, int | None, LeaderEpochs | None]
"""The batch before the one that is looked at, which counts once that one fits to it: its start and end, its offset and
the one after it, its latest time; the offset that was to come; and the epochs that were known before it, or ``None``
where it only goes on with the epoch, so that nobody asked. There is one a batch, and making a named one takes longer
than all else.
"""


class HeaderWalk:
    """Walks to the end, or to what is odd; ``epochs`` and ``expected`` (the offset to come) hold where it ended.

    ``lines`` are the offsets at which epochs start by ``leader-epoch-checkpoint``, sorted.
    """

    def __init__(self, headers: Headers, epochs: LeaderEpochs, lines: list[int], expected: int | None) -> None:
        self.epochs = epochs
        self.expected = expected
        self._headers = headers
        self._lines = lines

    def run(self, runs: Runs, begin: int = 0) -> int | None:
        """Adds the batches that fit, from byte ``begin`` on. Where something is odd: the byte of the batch before,
        which is not added, so that it is looked at more closely; ``None`` at the end of the file.
        """
        headers, unpack, size, add = self._headers, _HEADER.unpack_from, self._headers.size, runs.add
        position, expected = begin, self.expected
        pending: _Pending | None = None
        window, base, epoch, line = b"", 0, None, _NEVER
        while position < size:
            at = position - base
            if at + HEADER_SIZE > len(window):
                window, base, at = headers.window(position), position, 0
                if len(window) < HEADER_SIZE:
                    return self._rewind(position, pending)
            offset, length, its_epoch, magic, attributes, delta, last_ms, count = unpack(window, at)
            end, after = position + length + LENGTH_END, offset + count
            if (
                magic != MAGIC or length < MIN_LENGTH or end > size or count != delta + 1 or count < 1
                or end - position > MAX_BATCH or offset < 0 or after - 1 > LAST_OFFSET
                or (offset != expected and expected is not None)
            ):  # fmt: skip
                return self._rewind(position, pending)
            before = None
            if its_epoch != epoch or attributes & CONTROL_BIT or offset >= line:
                before = self._look(position, end, bool(attributes & CONTROL_BIT), pending)
                if before is None:
                    return self._rewind(position, pending)
                epoch, line = its_epoch, next((one for one in self._lines if one > offset), _NEVER)
            if pending is not None:
                add(pending[0], pending[1], pending[2], pending[3], pending[4])
            pending = position, end, offset, after, last_ms, expected, before
            position, expected = end, after
        return self._end(pending, runs)

    def _look(self, start: int, end: int, control: bool, pending: _Pending | None) -> LeaderEpochs | None:
        """Holds a batch that is not like the one before it against the epochs: what was known before it, or ``None``
        if it does not fit.
        """
        if not self._told(pending):
            return None
        before = copy.copy(self.epochs)
        batch = self._headers.batch(start, end) if control else self._headers.header(start)
        if batch is None or self.epochs.fault(batch) is not None:
            self.epochs = before
            return None
        return before

    def _told(self, pending: _Pending | None) -> bool:
        """Shows the epochs a batch that they have not seen. They do not change by it but for which is the last."""
        if pending is None or pending[-1] is not None:
            return True
        before = copy.copy(self.epochs)
        if self.epochs.fault(self._headers.header(pending[0])) is None:
            return True
        self.epochs = before
        return False

    def _rewind(self, position: int, pending: _Pending | None) -> int:
        """Back to before the pending batch."""
        if pending is None:
            return position
        start, *_, self.expected, epochs = pending
        if epochs is not None:
            self.epochs = epochs
        return start

    def _end(self, pending: _Pending | None, runs: Runs) -> int | None:
        """The last batch has none after it that would bear witness: its CRC is checked here."""
        if pending is None:
            return None
        start, end, first, after, last_ms, _, _ = pending
        if self._headers.batch(start, end) is None or not self._told(pending):
            return self._rewind(start, pending)
        runs.add(start, end, first, after, last_ms)
        self.expected = after
        return None
