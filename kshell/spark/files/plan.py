"""Plans of files: where the batches of a log begin and end, by their headers alone, so that it is read in pieces.

The rules that make a log trustworthy (:mod:`kshell.protocol.verify`) need all of it in order, but of most batches only
the header. What is left for whoever reads a piece is the CRC. Where anything is odd, the rest of that file is read and
verified as everywhere else, beginning with the batch before: the outcome is that of
:class:`~kshell.sources.directory.log.LogReader`, and a test compares the two over every kind of damage.
"""

from __future__ import annotations

import copy
import struct
from collections.abc import Iterator
from typing import NamedTuple

from kshell.errors import CorruptDataError, SourceError
from kshell.protocol.batches import CONTROL_BIT, HEADER_SIZE, LENGTH_END, MAX_BATCH, MIN_LENGTH, Batch, read_header
from kshell.protocol.control import SNAPSHOT_FOOTER, SNAPSHOT_HEADER, holds
from kshell.protocol.verify import LAST_OFFSET, MAGIC, FixedEpoch, LeaderEpochs, looking_ahead
from kshell.protocol.windows import Windowed
from kshell.sources.directory.files import Listing, Segment, SnapshotFile
from kshell.sources.directory.log import LogReader, opened
from kshell.sources.directory.ranges import FileWindows, OpenFile, open_file
from kshell.sources.directory.sidecar_files import leader_epochs
from kshell.sources.directory.snapshot import SnapshotReader

UNREAD = "unread"
ANY_TIME = (1 << 63) - 1
"""As late as a time can be, in milliseconds since 1970: where nobody has looked how late."""


class Run(NamedTuple):
    """Batches back to back in one file: bytes ``start`` to ``end``, offsets ``first`` to before ``after``."""

    start: int
    end: int
    first: int
    after: int
    repeats: bool = False
    """Its offsets were there before, in another file: checked, but not delivered again."""
    last_ms: int = ANY_TIME
    """No record of it was written later, by the headers. When the earliest one was they do not say: clocks step back.
    """
    last: int = -1
    """The first byte of its last batch, if that was seen: a hint, which whoever shortens a run need not keep right."""


class FileFinding(NamedTuple):
    """What is wrong in a file: the byte, or -1 for no certain one; ``batch``, ``torn``, ``gap``, ``file``, ``unread``.

    ``unread``: not what the file holds is wrong, but nobody could read it: it is gone, or was changed or replaced since
    it was listed, or the system refuses. Read again it may be whole.
    """

    position: int
    kind: str
    reason: str


def damaged(error: CorruptDataError) -> FileFinding:
    """Damage as a finding."""
    return FileFinding(error.position, "batch", error.reason)


class FilePlan(NamedTuple):
    """What to read of a file, and what was found to be wrong with it already."""

    path: str
    size: int
    is_snapshot: bool
    runs: tuple[Run, ...]
    findings: tuple[FileFinding, ...] = ()
    is_proven: bool = True
    """Of a snapshot: whether the CRCs of its batches were checked."""


class Runs:
    """Collect batches into runs of about ``cut`` bytes; ``delivered_end``: the offset after the last batch so far."""

    def __init__(self, cut: int, delivered_end: int = 0) -> None:
        self._made: list[Run] = []
        self.delivered_end = delivered_end
        self._cut = cut
        self._start = self._end = self._first = self._after = self._last_ms = self._last = -1
        self._repeats = False

    def add(self, start: int, end: int, first: int, after: int, last_ms: int = ANY_TIME) -> None:
        """Add one batch."""
        repeats = after <= self.delivered_end
        if self._end != start or self._after != first or end - self._start > self._cut or repeats != self._repeats:
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
    """Read the header at a byte of an open file; it is at position 0 of the batch's bytes."""
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
        """Holds a batch that is not like the one before it against the epochs: what was known before it, or ``None``
        if it does not fit.
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
        """Pass a batch to the epochs that they have not checked yet; only which of them is the last may change."""
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
        if self._headers.batch(start, end) is None or not self._feed_epochs(pending):
            return self._rewind(start, pending)
        runs.add(start, end, first, after, last_ms)
        self.expected = after
        return None


# --- files ------------------------------------------------------------------------------------------------------------


class Boundaries(LogReader):
    """The files of a log with their runs. Raises FileNotFoundError (list again), SourceError."""

    def __init__(self, listing: Listing, cut: int) -> None:
        super().__init__(listing, resume=True)
        self._cut = cut
        self._delivered_end = 0
        self._begin = 0
        """The byte of the first segment at which the batch ``self._next`` begins, for who goes on in its middle."""
        self._lines = sorted(start for _, start in leader_epochs(listing))

    def files(self) -> Iterator[FilePlan]:
        """One plan a segment, in order."""
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
        """Where the batches of the next segment are put."""
        return Runs(self._cut, self._delivered_end)

    def _add(self, segment: Segment, runs: Runs, *, is_last: bool) -> None:
        start = self._by_headers(segment, runs)
        if start is not None:
            with opened(segment, segment.size) as source:
                for batch in self._walk(source, segment, start, is_last=is_last):
                    runs.add(batch.position, batch.end, batch.base_offset, batch.last_offset + 1, batch.max_timestamp)

    def _by_headers(self, segment: Segment, runs: Runs) -> int | None:
        """Adds the batches whose headers fit; the byte from which the file must be verified, ``None`` for nowhere."""
        expected = segment.base_offset if self._next is None else self._next
        begin, self._begin = self._begin, 0
        file = open_file(segment.path)
        try:
            walk = HeaderWalk(Headers(file, segment), self._epochs, self._lines, expected)
            stop = walk.run(runs, begin)
        except OSError as error:
            raise SourceError(f"{segment.path}: {error.strerror or error}") from None
        finally:
            file.close()
        self._epochs = walk.epochs
        if walk.expected != expected:  # nothing is known of the end of a file without a good batch
            self._next = walk.expected
        return stop


_PIECES = 8
"""A snapshot counts only up to its first damage, so whoever reads a piece of it checks the CRCs before that piece, too:
more pieces would be more to check than to decode."""


def snapshot_plan(file: SnapshotFile, cut: int, *, control_only: bool = False) -> FilePlan:
    """The plan of a snapshot, or of its control batches alone. Raises FileNotFoundError (list again), SourceError."""
    runs = Runs(max(cut, file.size // _PIECES))
    if not control_only and _fits(file, runs):
        return FilePlan(file.path, file.size, True, runs.finish(), is_proven=False)
    runs, reader = Runs(cut), SnapshotReader(file)
    try:
        for batch in reader:
            if control_only and not batch.is_control:
                continue
            runs.add(batch.position, batch.end, batch.base_offset, batch.last_offset + 1)
    except CorruptDataError as error:
        return FilePlan(file.path, file.size, True, runs.finish(), (damaged(error),))
    return FilePlan(file.path, file.size, True, runs.finish())


def _fits(file: SnapshotFile, runs: Runs) -> bool:
    """Whether all of it is as it must be, as far as headers and control batches tell; then its batches are added."""
    with FileWindows(file.path, mapped=True, is_sparsely_read=True) as source:
        return _fit(source, file, runs)


def _fit(source: Windowed, file: SnapshotFile, runs: Runs) -> bool:
    epoch, last, position = FixedEpoch(file.epoch), None, 0
    window = source.window(0, 0)
    while (size := source.size) - position >= HEADER_SIZE:
        window = looking_ahead(source, window, position)
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
