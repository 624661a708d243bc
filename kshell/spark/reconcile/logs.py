"""A log as runs of batches: cut it at offsets, merge the logs of several copies, leave out damaged batches.

Planning notes only the bytes and offsets of a run, a series of adjacent batches in one file. Where a run must be cut,
because of damage inside it or because another copy continues there, the batch boundaries are found by reading the
headers of that run again; nothing else is read twice.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from kshell.errors import SourceError
from kshell.protocol.batches import HEADER_SIZE, Batch, read_header
from kshell.sources.directory.ranges import OpenFile, open_file
from kshell.spark.files.plan import FileFinding, FilePlan, Run, header_at, plausible_header

NO_LIMIT = 1 << 63
"""More than any offset."""
BadBatches = Collection[tuple[str, int, str]]
"""(file, first byte, reason) of batches that a reader found to be damaged."""
_WINDOW = 1 << 14
"""Bytes that one read of headers takes from a file."""


# --- batches of a run -------------------------------------------------------------------------------------------------


class BatchHeader(NamedTuple):
    """A batch in a file: bytes ``position`` to ``end``, offsets ``first`` to ``after`` (both ends exclusive)."""

    position: int
    end: int
    first: int
    after: int
    epoch: int
    crc: int
    first_ms: int
    last_ms: int
    is_control: bool


class LogPart(NamedTuple):
    """Adjacent batches (``run``) in one file of ``size`` bytes.

    ``copy`` is the index of the copy that the file belongs to; -1 where that does not matter. Methods that read headers
    raise FileNotFoundError if the file changed since it was listed, and SourceError if it cannot be read.
    """

    copy: int
    path: str
    size: int
    run: Run

    def batches(self) -> Iterator[BatchHeader]:
        """Read the headers of the batches, in order."""
        with _opened(self.path) as file:
            window, base, position = b"", 0, self.run.start
            while position < self.run.end:
                at = position - base
                if at + HEADER_SIZE > len(window):
                    window, base, at = file.pread(min(_WINDOW, self.run.end - position), position), position, 0
                batch = plausible_header(window, at)
                if batch is None:
                    raise self._changed()
                header = _header(batch, position)
                yield header
                position = header.end

    def first_batch(self) -> BatchHeader:
        """Read the header of the first batch."""
        return next(self.batches())

    def last_batch(self) -> BatchHeader:
        """Read the header of the last batch."""
        return self._hinted_last() or self._find(lambda header: header.end >= self.run.end)

    def batch_with_offset(self, offset: int) -> BatchHeader:
        """Read the header of the batch with an offset."""
        return self._find(lambda header: header.after > offset)

    def batch_at_byte(self, position: int) -> BatchHeader:
        """Read the header of the batch at a byte of the file."""
        last = self._hinted_last() if self.run.start <= self.run.last <= position else None
        return last or self._find(lambda header: header.end > position)

    def since(self, offset: int, *, inside: bool = False) -> LogPart | None:
        """Return the batches that begin at or after an offset, with ``inside`` also the one around it, if any."""
        run = self.run
        if run.first >= offset:
            return self
        if run.after <= offset:
            return None
        header = self.batch_with_offset(offset)
        if header.first == offset or inside:
            return self._replace(run=run._replace(start=header.position, first=header.first))
        return self._replace(run=run._replace(start=header.end, first=header.after)) if header.end < run.end else None

    def until(self, offset: int) -> LogPart | None:
        """Return the batches whose records are all before an offset; ``None`` if there are none."""
        if self.run.after <= offset:
            return self
        header = self.batch_with_offset(offset) if self.run.first < offset else None
        if header is None or header.position <= self.run.start:
            return None
        return self._replace(run=self.run._replace(end=header.position, after=header.first))

    def _find(self, fits: Callable[[BatchHeader], bool]) -> BatchHeader:
        header = next(filter(fits, self.batches()), None)
        if header is None:
            raise self._changed()
        return header

    def _hinted_last(self) -> BatchHeader | None:
        """Read the last batch where the run says that it begins; ``None`` if the run does not say or is wrong."""
        run = self.run
        if not run.start <= run.last < run.end:
            return None
        with _opened(self.path) as file:
            batch = header_at(file, run.last)
        if batch is None or (run.last + batch.size, batch.last_offset + 1) != (run.end, run.after):
            return None
        return _header(batch, run.last)

    def _changed(self) -> FileNotFoundError:
        return FileNotFoundError(2, "the file is not what it was when it was listed", self.path)


def parts_of(file: FilePlan, copy: int = -1) -> list[LogPart]:
    """Return the runs of a file as log parts, except runs that repeat offsets of an earlier file."""
    return [LogPart(copy, file.path, file.size, run) for run in file.runs if not run.repeats]


def good_batch_at(path: str, size: int, position: int) -> BatchHeader | None:
    """Read the batch at a byte of a file of ``size`` bytes; ``None`` if no complete, good batch begins there."""
    with _opened(path) as file:
        batch = header_at(file, position)
        if batch is None or position + batch.size > size:
            return None
        raw = file.pread(batch.size, position)
        is_good = len(raw) == batch.size and read_header(raw, 0).crc_is_good()
        return _header(batch, position) if is_good else None


def _header(batch: Batch, position: int) -> BatchHeader:
    bounds = position, position + batch.size, batch.base_offset, batch.last_offset + 1
    times = batch.base_timestamp, batch.max_timestamp
    return BatchHeader(*bounds, batch.epoch, batch.crc, *times, batch.is_control)


@contextlib.contextmanager
def _opened(path: str) -> Iterator[OpenFile]:
    with contextlib.closing(open_file(path)) as file:
        try:
            yield file
        except FileNotFoundError:
            raise
        except OSError as error:
            raise SourceError(f"{path}: {error.strerror or error}") from None


# --- a log ------------------------------------------------------------------------------------------------------------


class OffsetRange(NamedTuple):
    """Offsets (``end`` exclusive) that a log has without a gap or break."""

    first: int
    end: int


class Log(NamedTuple):
    """A log: parts in the order of their offsets, each offset at most once.

    ``breaks``: offsets directly before which a file is damaged although no offset is missing. It is not known that the
    records from there on follow the ones before, so a state is not replayed across a break.
    """

    parts: tuple[LogPart, ...]
    breaks: frozenset[int] = frozenset()

    @property
    def end(self) -> int | None:
        """The offset after the last batch; ``None`` for an empty log."""
        return self.parts[-1].run.after if self.parts else None

    def part_with(self, offset: int) -> LogPart | None:
        """Return the part that contains an offset."""
        return next((part for part in self.parts if part.run.first <= offset < part.run.after), None)

    def between(self, first: int, end: int | None, *, inside: bool = False) -> Log:
        """Return the batches between two offsets (``None``: to the end), with ``inside`` also that around ``first``."""
        parts = [later for part in self.parts if (later := part.since(first, inside=inside)) is not None]
        if end is not None:
            parts = [earlier for part in parts if (earlier := part.until(end)) is not None]
        return self._replace(parts=tuple(parts))

    def ranges(self) -> list[OffsetRange]:
        """Return the offset ranges without a gap or break, in order."""
        ranges: list[OffsetRange] = []
        for part in self.parts:
            first = part.run.first
            ends = sorted(offset for offset in self.breaks if first < offset < part.run.after)
            for end in (*ends, part.run.after):
                if ranges and ranges[-1].end == first and first not in self.breaks:
                    ranges[-1] = ranges[-1]._replace(end=end)
                else:
                    ranges.append(OffsetRange(first, end))
                first = end
        return ranges


def log_of(copy: int, plans: Iterable[FilePlan]) -> Log:
    """Return the log that the segments of a copy make, with a break wherever a batch between two runs is damaged."""
    parts: list[LogPart] = []
    breaks: set[int] = set()
    end = -1
    for file in plans:
        damage = [finding.position for finding in file.findings if finding.kind == "batch"]
        for part in parts_of(file, copy):
            if (rest := part.since(end)) is None:
                continue
            for position in damage:
                if position < rest.run.start:
                    breaks.add(end)
                elif position < rest.run.end:  # the batch at fault is good by itself, and in the run: break after it
                    breaks.add(rest.batch_at_byte(position).after)
            parts.append(rest)
            end = rest.run.after
            damage = [position for position in damage if position >= rest.run.end]
        if damage:
            breaks.add(end)
    return Log(tuple(parts), frozenset(breaks))


def merge(logs: Sequence[Log]) -> Log:
    """Return the first log, with its gaps filled from the second log, then from the third, and so on."""
    parts = list(logs[0].parts)
    for log in logs[1:]:
        for first, end in list(_holes(parts)):
            if any(part.run.after > first and part.run.first < end for part in log.parts):
                parts += log.between(first, end).parts
        parts.sort(key=lambda part: part.run.first)
    merged = Log(tuple(parts))
    return merged._replace(breaks=frozenset(_open_breaks(merged, logs)))


def _holes(parts: Sequence[LogPart]) -> Iterator[tuple[int, int]]:
    """Return the offset ranges (end exclusive) that the parts do not have, including what follows the last part."""
    before = 0
    for part in parts:
        if part.run.first > before:
            yield before, part.run.first
        before = part.run.after
    yield before, NO_LIMIT


def _open_breaks(merged: Log, logs: Sequence[Log]) -> Iterator[int]:
    """Return the breaks that no other copy bridges: those with batches of the damaged copy on both sides."""
    for log in logs:
        rest = [peer for peer in logs if peer is not log]
        for offset in log.breaks:
            sides = merged.part_with(offset - 1), merged.part_with(offset)
            is_own = all(side is not None and log.part_with(side.run.first) is not None for side in sides)
            copies = {side.copy for side in sides if side is not None}
            if not is_own or copies != {log.parts[0].copy}:
                continue
            if not any(first < offset < end for peer in rest for first, end in peer.ranges()):
                yield offset


# --- damaged batches --------------------------------------------------------------------------------------------------


def without_batches(file: FilePlan, bad: BadBatches) -> FilePlan:
    """Return the plan without the batches that a reader found to be damaged; each becomes a finding instead."""
    positions = {finding.position for finding in file.findings}
    more = [FileFinding(at, "batch", why) for path, at, why in bad if path == file.path and at not in positions]
    if not more:
        return file
    runs: list[Run] = []
    for run in file.runs:
        rest: Run | None = run
        for position in sorted(finding.position for finding in more):
            if rest is not None and rest.start <= position < rest.end:
                header = LogPart(-1, file.path, file.size, rest).batch_at_byte(position)
                if header.position > rest.start:
                    runs.append(rest._replace(end=header.position, after=header.first))
                rest = rest._replace(start=header.end, first=header.after) if header.end < rest.end else None
        runs += [] if rest is None else [rest]
    return file._replace(runs=tuple(runs), findings=tuple(sorted((*file.findings, *more))))


def in_every_copy(plans: Iterable[FilePlan], bad: BadBatches) -> BadBatches:
    """Add the same batches of other copies: one with a good CRC that cannot be decoded has that fault in every copy."""
    files = {file.path: file for file in plans if not file.is_snapshot}
    batches = {(path, position): (path, position, why) for path, position, why in bad}
    for path, position, why in bad:
        batch = good_batch_at(path, files[path].size, position) if path in files else None
        if batch is None:
            continue
        for file in files.values():
            for run in file.runs:
                if run.first <= batch.first < run.after:
                    match = LogPart(-1, file.path, file.size, run).batch_with_offset(batch.first)
                    if (match.first, match.crc) == (batch.first, batch.crc):
                        batches[file.path, match.position] = (file.path, match.position, why)
    return list(batches.values())
