"""Logs as runs of batches, known by their headers alone: the log of one copy, cut at offsets, and several as one.

Planning by headers gives runs of batches that lie back to back. Where a run must be cut (damage inside it, an offset at
which another copy goes on), its batches are found by walking the headers of that run; nothing else is read twice.
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
"""(file, first byte, what is wrong) of batches that a reader found to be damaged."""
_WINDOW = 1 << 14


# --- batches of a run -------------------------------------------------------------------------------------------------


class BatchHeader(NamedTuple):
    """A batch in a file: its bytes, its offsets (``after`` exclusive), and what its header says."""

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
    """Batches back to back in one file of ``size`` bytes; ``copy`` is the index of the copy among all.

    Methods that read headers raise FileNotFoundError where the file is not what it was when it was listed, and
    SourceError where it cannot be read.
    """

    copy: int
    path: str
    size: int
    run: Run

    def batches(self) -> Iterator[BatchHeader]:
        """Walk the headers of the batches."""
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
        """The first batch."""
        return next(self.batches())

    def last_batch(self) -> BatchHeader:
        """The last batch."""
        return self._hinted_last() or self._find(lambda header: header.end >= self.run.end)

    def batch_with_offset(self, offset: int) -> BatchHeader:
        """The batch that holds an offset."""
        return self._find(lambda header: header.after > offset)

    def batch_at_byte(self, position: int) -> BatchHeader:
        """The batch that holds a byte of the file."""
        last = self._hinted_last() if self.run.start <= self.run.last <= position else None
        return last or self._find(lambda header: header.end > position)

    def since(self, offset: int, *, inside: bool = False) -> LogPart | None:
        """The batches that begin at or after an offset; with ``inside`` also the one around it."""
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
        """The batches that end at or before an offset (exclusive)."""
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
        """The last batch, where the hint of the run is right."""
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
    """The runs of a file, except those whose offsets were in an earlier file."""
    return [LogPart(copy, file.path, file.size, run) for run in file.runs if not run.repeats]


def good_batch_at(path: str, size: int, position: int) -> BatchHeader | None:
    """The batch that begins at a byte of a file of ``size`` bytes, if a whole one with a good CRC does."""
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
    """Offsets (``end`` exclusive) that are there without a break."""

    first: int
    end: int


class Log(NamedTuple):
    """Parts in the order of their offsets, each offset at most once.

    ``breaks``: offsets before which damage lies, though no offset is missing: what follows is not known to go on there.
    """

    parts: tuple[LogPart, ...]
    breaks: frozenset[int] = frozenset()

    @property
    def end(self) -> int | None:
        """The offset after the last batch."""
        return self.parts[-1].run.after if self.parts else None

    def part_with(self, offset: int) -> LogPart | None:
        """The part that holds an offset."""
        return next((part for part in self.parts if part.run.first <= offset < part.run.after), None)

    def between(self, first: int, end: int | None, *, inside: bool = False) -> Log:
        """The batches that lie between two offsets; with ``inside`` also the one around ``first``."""
        parts = [later for part in self.parts if (later := part.since(first, inside=inside)) is not None]
        if end is not None:
            parts = [earlier for part in parts if (earlier := part.until(end)) is not None]
        return self._replace(parts=tuple(parts))

    def ranges(self) -> list[OffsetRange]:
        """The offset ranges without a gap or break."""
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
    """The log in the segments of a copy."""
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
                elif position < rest.run.end:  # a batch is blamed that was good by itself: the break is behind it
                    breaks.add(rest.batch_at_byte(position).after)
            parts.append(rest)
            end = rest.run.after
            damage = [position for position in damage if position >= rest.run.end]
        if damage:
            breaks.add(end)
    return Log(tuple(parts), frozenset(breaks))


def merge(logs: Sequence[Log]) -> Log:
    """The first log, with what it lacks from the others; earlier ones go before later ones."""
    parts = list(logs[0].parts)
    for log in logs[1:]:
        for first, end in list(_holes(parts)):
            if any(part.run.after > first and part.run.first < end for part in log.parts):
                parts += log.between(first, end).parts
        parts.sort(key=lambda part: part.run.first)
    merged = Log(tuple(parts))
    return merged._replace(breaks=frozenset(_open_breaks(merged, logs)))


def _holes(parts: Sequence[LogPart]) -> Iterator[tuple[int, int]]:
    before = 0
    for part in parts:
        if part.run.first > before:
            yield before, part.run.first
        before = part.run.after
    yield before, NO_LIMIT


def _open_breaks(merged: Log, logs: Sequence[Log]) -> Iterator[int]:
    """The breaks that no other copy disproves: both sides come from the copy that has the break."""
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
    """The plan without batches that a reader found to be damaged: each is a finding instead."""
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
    """Damaged batches, and the same ones in the other copies.

    A batch whose CRC is right and that nobody can decode is like that in all of them.
    """
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
