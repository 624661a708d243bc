"""Plan files: find where the batches of a log begin and end by their headers alone, so that tasks can read pieces.

:class:`Boundaries` makes one :class:`FilePlan` per segment, :func:`snapshot_plan` one of a snapshot. The rules of
:mod:`kshell.protocol.verify` are checked here over the whole log, in order; for most batches they need only the header.
The CRC of the other bytes is left to the task that reads a piece. Where a header does not fit, the rest of that file is
read and verified as in the shell, beginning with the batch before. So the result is that of
:class:`~kshell.sources.directory.log.LogReader`; a test compares the two over every kind of damage.
"""

from __future__ import annotations

import copy
import struct
from collections.abc import Iterator
from contextlib import closing
from typing import NamedTuple

from kshell.errors import CorruptDataError, SourceError
from kshell.protocol.batches import CONTROL_BIT, HEADER_SIZE, LENGTH_END, MAX_BATCH, MIN_LENGTH, Batch, read_header
from kshell.protocol.control import SNAPSHOT_FOOTER, SNAPSHOT_HEADER, holds
from kshell.protocol.verify import LAST_OFFSET, MAGIC, FixedEpoch, LeaderEpochs, window_with_next_batches
from kshell.protocol.windows import Windowed
from kshell.sources.directory.files import Listing, Segment, SnapshotFile
from kshell.sources.directory.log import LogReader, opened
from kshell.sources.directory.ranges import FileWindows, OpenFile, open_file
from kshell.sources.directory.sidecar_files import leader_epochs
from kshell.sources.directory.snapshot import SnapshotReader
from kshell.spark.schemas import Row

UNREAD = "unread"
"""The kind of a finding about a file that could not be read; see :class:`FileFinding`."""
ANY_TIME = (1 << 63) - 1
"""The latest possible time in milliseconds since 1970, if the real one was not looked up."""


class Run(NamedTuple):
    """Adjacent batches in one file: bytes ``start`` to ``end``, offsets ``first`` to ``after`` (ends exclusive)."""

    start: int
    end: int
    first: int
    after: int
    repeats: bool = False
    """Whether an earlier file had these offsets already: the batches are checked, but not delivered again."""
    last_ms: int = ANY_TIME
    """The latest time of its records by the headers, in ms since 1970. (Headers do not show the earliest time.)"""
    last: int = -1
    """The first byte of its last batch; -1 if unknown. Only a hint: code that shortens a run need not update it."""


class FileFinding(NamedTuple):
    """What is wrong in a file, at byte ``position`` (-1: at no particular byte).

    ``kind`` is ``batch`` (damaged), ``torn`` (the tail is being written), ``gap`` (offsets missing), ``file``,
    ``unread``, or ``truncated`` in a stream. ``unread`` says nothing about the contents: the file is gone, was changed
    since it was listed, or the system refuses to read it; another attempt may find it good.
    """

    position: int
    kind: str
    reason: str

    def columns(self) -> Row:
        """Return the finding as columns of ``quarantine`` and ``files``, in which no particular byte is null."""
        return {"position": None if self.position < 0 else self.position, "kind": self.kind, "reason": self.reason}


def damaged(error: CorruptDataError) -> FileFinding:
    """Return damage as a finding."""
    return FileFinding(error.position, "batch", error.reason)


class FilePlan(NamedTuple):
    """What to read of a file of ``size`` bytes, and the findings that planning made in it."""

    path: str
    size: int
    is_snapshot: bool
    runs: tuple[Run, ...]
    findings: tuple[FileFinding, ...] = ()
    is_proven: bool = True
    """Whether the CRCs of a snapshot's batches were checked; it has no meaning for a segment."""


class Runs:
    """Collects batches into runs of about ``piece_bytes``: :meth:`add` each batch, then :meth:`finish`.

    ``delivered_end`` is the offset after the last batch; a batch that ends at or before it repeats an earlier file.
    """

    def __init__(self, piece_bytes: int, delivered_end: int = 0) -> None:
        self._made: list[Run] = []
        self.delivered_end = delivered_end
        self._piece_bytes = piece_bytes
        self._start = self._end = self._first = self._after = self._last_ms = self._last = -1
        self._repeats = False

    def add(self, start: int, end: int, first: int, after: int, last_ms: int = ANY_TIME) -> None:
        """Add one batch: its bytes, its offsets (ends exclusive), and the latest time in its header."""
        repeats = after <= self.delivered_end
        if (
            self._end != start
            or self._after != first
            or end - self._start > self._piece_bytes
            or repeats != self._repeats
        ):
            self._flush()
            self._start, self._first, self._repeats, self._last_ms = start, first, repeats, last_ms
        elif last_ms > self._last_ms:
            self._last_ms = last_ms
        if not repeats:
            self.delivered_end = after
        self._end, self._after, self._last = end, after, start

    def finish(self) -> tuple[Run, ...]:
        """Return all runs, in the order in which their batches were added."""
        self._flush()
        return tuple(self._made)

    def _flush(self) -> None:
        if self._end >= 0:
            self._made.append(
                Run(self._start, self._end, self._first, self._after, self._repeats, self._last_ms, self._last)
            )
        self._end = -1


# --- headers of a segment ---------------------------------------------------------------------------------------------

_HEADER = struct.Struct(">qiib4xhi8xq14xi")
"""Base offset, length, epoch, magic, attributes, last offset delta, latest time, number of records of a header."""
_WINDOW = 1 << 14
"""Bytes per read: several small batches, or the beginning of a large one."""
_NEVER = 1 << 63


def plausible_header(window: bytes, at: int) -> Batch | None:
    """Read the batch header at ``window[at]``; ``None`` if there is none. The CRC is not checked."""
    if len(window) - at < HEADER_SIZE:
        return None
    batch = read_header(window, at)
    return batch if batch.magic == MAGIC and HEADER_SIZE <= batch.size <= MAX_BATCH else None


def header_at(file: OpenFile, position: int) -> Batch | None:
    """Read the batch header at a byte of an open file, in a buffer of its own; ``None`` if there is none."""
    return plausible_header(file.pread(HEADER_SIZE, position), 0)


class Headers:
    """Reads headers of a segment from its open file, which another process may have truncated meanwhile."""

    def __init__(self, file: OpenFile, segment: Segment) -> None:
        self.size = segment.size
        self._pread = file.pread

    def window(self, position: int) -> bytes:
        """Read up to ``_WINDOW`` bytes from a position."""
        return self._pread(_WINDOW, position)

    def batch(self, start: int, end: int) -> Batch | None:
        """Read a whole batch, in a buffer of its own; ``None`` if it is incomplete or its CRC does not match."""
        raw = self._pread(end - start, start)
        if len(raw) < end - start:
            return None
        batch = read_header(raw, 0)
        return batch if batch.crc_is_good() else None

    def header(self, start: int) -> Batch:
        """Read the header alone of a batch that was seen before, in a buffer of its own."""
        return read_header(self._pread(HEADER_SIZE, start).ljust(HEADER_SIZE, b"\0"), 0)


_Pending = tuple[int, int, int, int, int, int | None, LeaderEpochs | None]
"""The batch before the current one; it is accepted once the current one fits to it.

Its first byte and end, its first offset and the one after it, its latest time; the offset that was expected of it; and
the epochs known before it, or ``None`` if it continues the epoch, which needs no check. A plain tuple, because making a
named one for every batch takes longer than the rest of the walk.
"""


class HeaderWalk:
    """Walks the headers of a segment to its end, or to the first batch that does not fit.

    Afterwards ``epochs`` and ``expected`` (the next offset) are those where the walk ended. ``lines`` are the offsets
    at which epochs begin by ``leader-epoch-checkpoint``, sorted.
    """

    def __init__(self, headers: Headers, epochs: LeaderEpochs, lines: list[int], expected: int | None) -> None:
        self.epochs = epochs
        self.expected = expected
        self._headers = headers
        self._lines = lines

    def run(self, runs: Runs, begin: int = 0) -> int | None:
        """Add the batches from byte ``begin`` on to ``runs``, as long as they fit.

        Returns ``None`` at the end of the file. Else the first byte of the batch before the one that does not fit, if
        any: it is not added either, because either of the two may be damaged.
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
                magic != MAGIC
                or length < MIN_LENGTH
                or end > size
                or count != delta + 1
                or count < 1
                or end - position > MAX_BATCH
                or offset < 0
                or after - 1 > LAST_OFFSET
                or (offset != expected and expected is not None)
            ):
                return self._rewind(position, pending)
            before = None
            if its_epoch != epoch or attributes & CONTROL_BIT or offset >= line:
                before = self._look(position, end, bool(attributes & CONTROL_BIT), pending)
                if before is None:
                    return self._rewind(position, pending)
                epoch, line = its_epoch, next((start for start in self._lines if start > offset), _NEVER)
            if pending is not None:
                add(pending[0], pending[1], pending[2], pending[3], pending[4])
            pending = position, end, offset, after, last_ms, expected, before
            position, expected = end, after
        return self._end(pending, runs)

    def _look(self, start: int, end: int, control: bool, pending: _Pending | None) -> LeaderEpochs | None:
        """Check a batch that has another epoch, is a control batch, or begins where an epoch should.

        Returns the epochs that were known before it, or ``None`` if the batch does not fit to them.
        """
        if not self._feed_epochs(pending):
            return None
        before = copy.copy(self.epochs)
        batch = self._headers.batch(start, end) if control else self._headers.header(start)
        if batch is None or self.epochs.fault(batch) is not None:
            self.epochs = before
            return None
        return before

    def _feed_epochs(self, pending: _Pending | None) -> bool:
        """Let ``epochs`` check the pending batch, if not done yet, so that they know it as the last one."""
        if pending is None or pending[-1] is not None:
            return True
        before = copy.copy(self.epochs)
        if self.epochs.fault(self._headers.header(pending[0])) is None:
            return True
        self.epochs = before
        return False

    def _rewind(self, position: int, pending: _Pending | None) -> int:
        """Set ``epochs`` and ``expected`` to before the pending batch; return its first byte, else ``position``."""
        if pending is None:
            return position
        start, *_, self.expected, epochs = pending
        if epochs is not None:
            self.epochs = epochs
        return start

    def _end(self, pending: _Pending | None, runs: Runs) -> int | None:
        """Accept the last batch if its CRC is good, as no batch after it can confirm its header."""
        if pending is None:
            return None
        start, end, first, after, last_ms, _, _ = pending
        if self._headers.batch(start, end) is None or not self._feed_epochs(pending):
            return self._rewind(start, pending)
        runs.add(start, end, first, after, last_ms)
        self.expected = after
        return None


# --- files ------------------------------------------------------------------------------------------------------------


class Boundaries(LogReader):
    """Plans the segments of a log: :meth:`files`. Raises SourceError, FileNotFoundError (the caller lists again)."""

    def __init__(self, listing: Listing, piece_bytes: int) -> None:
        super().__init__(listing, resume=True)
        self._piece_bytes = piece_bytes
        self._delivered_end = 0
        self._begin = 0
        """The byte of the first segment at which to begin; the batch with offset ``self._next`` is there."""
        self._lines = sorted(start for _, start in leader_epochs(listing))

    def files(self) -> Iterator[FilePlan]:
        """Return one plan per segment, in order."""
        for index, segment in enumerate(self._segments):
            before = len(self.damage)
            if not self._begin:
                self._joins(segment)
            gaps = len(self.damage)
            runs, findings = self._runs(), []
            try:
                self._add(segment, runs, is_last=index == len(self._segments) - 1)
            except SourceError as error:
                findings.append(FileFinding(-1, UNREAD, error.message))
            self._delivered_end = runs.delivered_end
            findings += [
                FileFinding(-1, "gap", error.message.removeprefix(f"{segment.path}: "))
                for error in self.damage[before:gaps]
            ]
            findings += [damaged(error) for error in self.damage[gaps:] if isinstance(error, CorruptDataError)]
            if self.torn is not None and self.torn[0] == segment.path:
                findings.append(FileFinding(self.torn[1].position, "torn", self.torn[1].reason))
            yield FilePlan(segment.path, segment.size, False, runs.finish(), tuple(findings))

    def _runs(self) -> Runs:
        """Return the collector for the batches of the next segment."""
        return Runs(self._piece_bytes, self._delivered_end)

    def _add(self, segment: Segment, runs: Runs, *, is_last: bool) -> None:
        """Add the batches of a segment: by headers as far as these fit, the rest read and verified."""
        start = self._by_headers(segment, runs)
        if start is not None:
            with opened(segment, segment.size) as source:
                for batch in self._walk(source, segment, start, is_last=is_last):
                    runs.add(batch.position, batch.end, batch.base_offset, batch.last_offset + 1, batch.max_timestamp)

    def _by_headers(self, segment: Segment, runs: Runs) -> int | None:
        """Add the batches whose headers fit; return the byte from which the file must be verified, or ``None``."""
        expected = segment.base_offset if self._next is None else self._next
        begin, self._begin = self._begin, 0
        with closing(open_file(segment.path)) as file:
            walk = HeaderWalk(Headers(file, segment), self._epochs, self._lines, expected)
            try:
                stop = walk.run(runs, begin)
            except OSError as error:
                raise SourceError(f"{segment.path}: {error.strerror or error}") from None
        self._epochs = walk.epochs
        if walk.expected != expected:  # else the segment had no good batch, and the next offset stays unknown
            self._next = walk.expected
        return stop


_PIECES = 8
"""Pieces of a snapshot at most. It counts only up to its first damage, so the reader of a piece also checks the CRCs of
all batches before it: with more pieces there would be more to check than to decode."""


def snapshot_plan(file: SnapshotFile, piece_bytes: int, *, control_only: bool = False) -> FilePlan:
    """Plan a snapshot, or its control batches alone. Raises SourceError, FileNotFoundError (the caller lists again)."""
    runs = Runs(max(piece_bytes, file.size // _PIECES))
    if not control_only and _fits(file, runs):
        return FilePlan(file.path, file.size, True, runs.finish(), is_proven=False)
    runs, reader = Runs(piece_bytes), SnapshotReader(file)
    try:
        for batch in reader:
            if control_only and not batch.is_control:
                continue
            runs.add(batch.position, batch.end, batch.base_offset, batch.last_offset + 1)
    except CorruptDataError as error:
        return FilePlan(file.path, file.size, True, runs.finish(), (damaged(error),))
    return FilePlan(file.path, file.size, True, runs.finish())


def _fits(file: SnapshotFile, runs: Runs) -> bool:
    """Add a snapshot's batches to ``runs``; return whether it is complete and good, by headers and control batches."""
    with FileWindows(file.path, mapped=True, is_sparsely_read=True) as source:
        return _fit(source, file, runs)


def _fit(source: Windowed, file: SnapshotFile, runs: Runs) -> bool:
    epoch, last, position = FixedEpoch(file.epoch), None, 0
    window = source.window(0, 0)
    while (size := source.size) - position >= HEADER_SIZE:
        window = window_with_next_batches(source, window, position)
        if window.end - position < HEADER_SIZE:
            return False
        batch = read_header(window.buf, position - window.start, window.start)
        expected = 0 if last is None else last.last_offset + 1
        if batch.magic != MAGIC or not HEADER_SIZE <= batch.size <= min(size - position, MAX_BATCH):
            return False
        if batch.base_offset != expected or batch.records != batch.last_offset_delta + 1 or batch.records < 1:
            return False
        if (batch.is_control and not batch.crc_is_good()) or epoch.fault(batch) is not None:
            return False
        if not holds(batch, SNAPSHOT_HEADER) if last is None else holds(last, SNAPSHOT_FOOTER):
            return False
        runs.add(position, batch.end, batch.base_offset, batch.last_offset + 1)
        last, position = batch, batch.end
    return position == source.size and last is not None and holds(last, SNAPSHOT_FOOTER)
