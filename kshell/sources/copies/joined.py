"""Join copies into one log: the batches of the reference copy, and where it is damaged those of other copies.

Nodes store the leader's batches unchanged, so a batch that is damaged in one copy has the same bytes in every other.
Another copy's batch may fill a gap if both logs have a batch in common after the gap (Raft's log matching), or if the
reference has the batch's epoch before and after the gap, because an epoch has one leader and so one batch at an offset.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from kshell.errors import DataError
from kshell.metadata.replay import Replayer
from kshell.sources.copies.agreement import CONSISTENT, CopyComparison
from kshell.sources.copies.logs import Copy, Pair
from kshell.sources.directory.files import SnapshotFile
from kshell.sources.directory.log import FileBatch, Progress
from kshell.sources.directory.records import BatchWalk
from kshell.sources.directory.snapshot import load_snapshot
from kshell.sources.directory.source import replay_log, without_collector
from kshell.sources.source import Loaded


class LogRange(NamedTuple):
    """Offsets ``start`` to ``end`` (exclusive): ``copy`` has all their batches, undamaged and without a gap."""

    copy: Copy
    start: int
    end: int


class JoinedLog:
    """The records that a new quorum can start from, with none missing: snapshots, and the log that continues them.

    Attributes:
        snapshots: the complete ones of the reference, then those of other copies that end later, oldest first.
        ranges: the parts of the log, in order; empty if only a snapshot is left.
        end: the offset after the last record.
        behind: undamaged parts after ``end``, which cannot be used because no copy has the records before them.
    """

    def __init__(
        self, copies: Sequence[Copy], pairs: Mapping[tuple[int, int], Pair], comparison: CopyComparison
    ) -> None:
        reference = comparison.reference
        place = next(index for index, copy in enumerate(copies) if copy is reference)
        self._donors = [
            (verdict.copy, pairs[min(index, place), max(index, place)])
            for index, verdict in enumerate(comparison.verdicts)
            if verdict.state in CONSISTENT and index != place
        ]
        self._reference = reference
        self.snapshots = self._usable_snapshots()
        newest = self.snapshots[-1] if self.snapshots else None
        base = (newest.end_offset if newest else None) or 0
        runs = _runs(self._filled())
        self.ranges = next((run for run in runs if run[0].start <= base <= run[-1].end), [])
        self.end = max(base, self.ranges[-1].end if self.ranges else 0)
        self._start = 0 if runs and self.ranges is runs[0] else base
        if self._start:  # no log continues the older snapshots
            self.snapshots = self.snapshots[-1:]
        self.behind = [part for run in runs for part in run if part.start >= self.end]

    @property
    def helpers(self) -> list[LogRange]:
        """The parts of the log that come from other copies than the reference."""
        return [part for part in self.ranges if part.copy is not self._reference]

    @property
    def foreign_snapshots(self) -> list[tuple[Copy, SnapshotFile]]:
        """The snapshots that come from other copies than the reference, each with its copy."""
        mine = {file.path for file in self._reference.snapshots}
        donors = {file.path: copy for copy, _ in self._donors for file in copy.snapshots}
        return [(donors[file.path], file) for file in self.snapshots if file.path not in mine]

    def batches(self, progress: Progress | None = None) -> Iterator[FileBatch]:
        """Yield the batches of the log, in offset order. Raises SourceError."""
        for copy, start, end in self.ranges:
            for file_batch in BatchWalk(copy.source, start, until=end - 1, progress=progress):
                batch = file_batch.batch
                if start <= batch.base_offset and self._start <= batch.last_offset < end:
                    yield file_batch

    def load(self, progress: Progress | None) -> Loaded:
        """Load the image at :attr:`end`. Raises DataError if there is no record that a quorum can start from."""
        if not self.end:
            self._reference.source.load(progress=progress)  # raises an error that says why, where it can
            raise DataError(f"{self._reference.path}: has no record that a quorum can start from")
        with without_collector():
            replayer, damage, notes = Replayer(), list[DataError](), list[str]()
            facts = load_snapshot(self.snapshots[-1], replayer, progress) if self.snapshots else None
            start = facts.end_offset if facts else 0
            end, timestamp = replay_log(self.batches(progress), replayer, start, None, damage, notes, skips=False)
            image = replayer.image()
        return Loaded(
            image=image,
            listing=self._reference.source.listing(),
            snapshot=facts,
            log_end_offset=end,
            last_timestamp=max(timestamp, image.provenance.timestamp),
            problems=replayer.problems,
            torn=None,
            open_transaction=replayer.open_transaction,
            damage=damage,
            notes=notes,
        )

    def _usable_snapshots(self) -> list[SnapshotFile]:
        """The reference's snapshots, then those of other copies that end after its newest one and within its log."""
        mine = self._reference.snapshots
        newest, limit = self._reference.newest, self._reference.end or 0
        reached = (newest.end_offset if newest else None) or 0
        others = {
            file.end_offset: file
            for copy, _ in self._donors
            for file in copy.snapshots
            if file.end_offset is not None and reached < file.end_offset <= limit
        }
        return [*mine, *(others[end] for end in sorted(others))]

    def _filled(self) -> Iterator[LogRange]:
        """The undamaged ranges of the reference, and in its gaps the ranges of other copies."""
        reference = self._reference
        segments = reference.source.listing(full_log=True).segments
        position = segments[0].base_offset if segments else None
        for start, end in reference.runs:
            if position is not None and position < start:
                yield from self._fill(position, start)
            yield LogRange(reference, start, end)
            position = end

    def _fill(self, start: int, end: int) -> Iterator[LogRange]:
        """The ranges with which other copies fill the gap from ``start`` to ``end``, as far as they can."""
        parts = [
            LogRange(copy, max(first, start), min(last, end))
            for copy, pair in self._donors
            for first, last in copy.runs
            if max(first, start) < min(last, end) and self._is_certain(copy, pair, start, end)
        ]
        position = start
        while position < end:
            covering = [part for part in parts if part.start <= position < part.end]
            if covering:
                longest = max(covering, key=lambda part: part.end)
                yield longest._replace(start=position)
                position = longest.end
            else:
                position = min((part.start for part in parts if part.start > position), default=end)

    def _is_certain(self, copy: Copy, pair: Pair, start: int, end: int) -> bool:
        """Whether a copy's batches in the gap are certainly those of the reference (rules: the module's docstring)."""
        if pair.to is not None and pair.to > end:
            return True
        epoch = self._reference.epoch_at(end)
        epochs = {copy.epoch_at(offset) for offset in (start, min(end, copy.log_end or 0) - 1)}
        return epochs == {epoch} and (not start or self._reference.epoch_at(start - 1) == epoch)


def _runs(parts: Iterator[LogRange]) -> list[list[LogRange]]:
    """Group the parts: those of one list follow each other without a gap."""
    every = list(parts)
    runs = [[part] for part in every[:1]]
    for before, part in pairwise(every):
        if part.start == before.end:
            runs[-1].append(part)
        else:
            runs.append([part])
    return runs
