"""Join copies into one log: the batches of the reference copy, and where it lacks some those of other copies.

Nodes store the leader's batches unchanged, so a batch that is damaged in one copy has the same bytes in every other.
Another copy's batches are those of the reference, too, up to the last record of an epoch that both have (Raft's log
matching: an epoch has one leader, whose log holds everything before that record). Where nothing fills a gap for
certain, records of another copy are the best that is left: they continue the log, and the reference's later ones are
lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from kshell.errors import DataError
from kshell.metadata.replay import Replayer
from kshell.sources.copies.agreement import CONSISTENT, NOT_COMPARED, OTHER_CLUSTER, CopyComparison, CopyVerdict
from kshell.sources.copies.logs import Copy, Pairs
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


class _Peer(NamedTuple):
    """A copy that is not the reference. Offsets are exclusive.

    ``until``: it may be of the reference's history below that. ``same_to``: the logs have the same batch there.
    """

    copy: Copy
    until: int
    same_to: int


class JoinedLog:
    """The records that a new quorum can start from, with none missing: snapshots, and the log that continues them.

    Attributes:
        snapshots: the complete ones of the reference, and of other copies those that are needed, oldest first.
        ranges: the parts of the log, in order; empty if only a snapshot is left.
        end: the offset after the last record.
        certain: the offset below which the records are certainly those of the reference.
        lacking: undamaged parts of the copies that are not in the log: after a gap that no copy fills, or of a copy
            that diverges.
    """

    def __init__(self, copies: Sequence[Copy], pairs: Pairs, comparison: CopyComparison) -> None:
        reference = comparison.reference
        own = next(index for index, copy in enumerate(copies) if copy is reference)
        self._reference = reference
        self._peers = [
            _Peer(verdict.copy, _agrees_until(verdict, reference), pairs.of(index, own).to or 0)
            for index, verdict in enumerate(comparison.verdicts)
            if index != own
        ]
        self._limits = _certain(reference, self._peers)
        runs = _runs(self._filled())
        self._join(runs, reference.snapshots)
        if self.end < (reference.end or 0):
            self._join(runs, self._with_others_snapshots())
        self.lacking = [*self._lacking(comparison.verdicts)]

    def _join(self, runs: list[list[LogRange]], snapshots: list[SnapshotFile]) -> None:
        """Set the attributes for the run of the log that continues the newest of these snapshots."""
        newest = next((file for file in reversed(snapshots) if file.end_offset is not None), None)
        base = (newest.end_offset if newest else None) or 0
        self.ranges = next((run for run in runs if run[0].start <= base <= run[-1].end), [])
        self.certain = self.end = max(base, self.ranges[-1].end if self.ranges else 0)
        start = self.ranges[0].start if self.ranges else base
        self.snapshots = [file for file in snapshots if file.end_offset is None or file.end_offset >= start]
        while (more := self._uncertain(self.end)) is not None:
            self.ranges = [*self.ranges, more]
            self.end = more.end

    @property
    def helpers(self) -> list[LogRange]:
        """The parts of the log that come from other copies than the reference."""
        return [part for part in self.ranges if part.copy is not self._reference]

    @property
    def foreign_snapshots(self) -> list[tuple[Copy, SnapshotFile]]:
        """The snapshots that come from other copies than the reference, each with its copy."""
        mine = {file.path for file in self._reference.snapshots}
        donors = {file.path: peer.copy for peer in self._peers for file in peer.copy.snapshots}
        return [(donors[file.path], file) for file in self.snapshots if file.path not in mine]

    def batches(self, progress: Progress | None = None) -> Iterator[FileBatch]:
        """Yield the batches of the log, in offset order. Raises SourceError."""
        for copy, start, end in self.ranges:
            for file_batch in BatchWalk(copy.source, start, until=end - 1, progress=progress):
                batch = file_batch.batch
                if start <= batch.base_offset and batch.last_offset < end:
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

    def _with_others_snapshots(self) -> list[SnapshotFile]:
        """The reference's snapshots, then those of other copies that end after its newest one and are of its log."""
        reference = self._reference
        mine, newest = reference.snapshots, reference.newest
        newest_end, limit = (newest.end_offset if newest else None) or 0, reference.end or 0
        file_by_end = {
            file.end_offset: file
            for peer in self._peers
            for file in peer.copy.snapshots
            if file.end_offset is not None and newest_end < file.end_offset <= min(limit, peer.until)
            if reference.epoch_at(file.end_offset - 1) in (None, file.epoch)
        }
        return [*mine, *(file_by_end[end] for end in sorted(file_by_end))]

    def _filled(self) -> Iterator[LogRange]:
        """The undamaged ranges of the reference, and in its gaps those of other copies, as far as they are certain."""
        position = 0
        for start, end in self._reference.runs:
            if position < start:
                yield from self._fill(position, start)
            yield LogRange(self._reference, start, end)
            position = end
        yield from self._fill(position, self._reference.end or 0)

    def _fill(self, start: int, end: int) -> Iterator[LogRange]:
        """The ranges with which other copies fill the gap from ``start`` to ``end``, as far as they can."""
        parts = [
            LogRange(copy, max(first, start), min(last, end, limit))
            for copy, limit in self._limits
            for first, last in copy.runs
            if max(first, start) < min(last, end, limit)
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

    def _uncertain(self, end: int) -> LogRange | None:
        """Records of another copy that continue the log where the reference lacks some, if there are any.

        Of several copies the one that would win an election among them counts.
        """
        if not end or end >= (self._reference.end or 0):
            return None
        before = self.ranges[-1].copy if self.ranges else self._reference
        least = before.epoch_at(end - 1) or 0
        parts = [
            LogRange(peer.copy, end, min(last, self._reference.end or 0, peer.until))
            for peer in self._peers
            for first, last in peer.copy.runs
            if first <= end < min(last, peer.until) and (peer.copy.epoch_at(end) or 0) >= least
        ]
        return max(parts, key=lambda part: (part.copy.epoch_at(part.end - 1) or -1, part.end), default=None)

    def _lacking(self, verdicts: Sequence[CopyVerdict]) -> Iterator[LogRange]:
        """The parts in :attr:`lacking`, the reference's first."""
        covered: list[tuple[int, int]] = []
        for verdict in sorted(verdicts, key=lambda verdict: verdict.copy is not self._reference):
            if verdict.state == OTHER_CLUSTER:
                continue
            parted = verdict.divergence
            for first, last in verdict.copy.runs:
                if parted is not None:
                    start = max(first, min(parted.offset, self.end))
                    yield from [LogRange(verdict.copy, start, last)] if start < last else []
                    continue
                for start, end in _without(max(first, self.end), last, covered):
                    yield LogRange(verdict.copy, start, end)
                    covered.append((start, end))


def _agrees_until(verdict: CopyVerdict, reference: Copy) -> int:
    """The offset (exclusive) up to which a copy may be of the reference's history."""
    parted = verdict.divergence
    if parted is not None and parted.contradiction is None:
        return parted.offset
    # Without a batch in common, only the cluster's id is.
    has_one_id = reference.cluster_id is not None and verdict.copy.cluster_id == reference.cluster_id
    agrees = verdict.state in CONSISTENT or (verdict.state == NOT_COMPARED and has_one_id)
    return (verdict.copy.end or 0) if agrees else 0


def _certain(reference: Copy, peers: Sequence[_Peer]) -> list[tuple[Copy, int]]:
    """Each copy with the offset (exclusive) up to which its batches are certainly those of the reference."""
    ends = reference.epoch_ends()
    for file in reference.snapshots:
        if file.epoch is not None:
            ends[file.epoch] = max(ends.get(file.epoch, 0), file.end_offset or 0)
    limits = [peer.same_to for peer in peers]
    own_ends = [peer.copy.epoch_ends() for peer in peers]
    grows = True
    while grows:  # what is certain of one copy may witness for the next
        before = list(limits)
        for index, (peer, own) in enumerate(zip(peers, own_ends, strict=True)):
            common = (min(end, ends[epoch]) for epoch, end in own.items() if epoch in ends)
            limit = limits[index] = max(limits[index], min(max(common, default=0), peer.until))
            for epoch, first in peer.copy.epochs:
                if first < limit:
                    ends[epoch] = max(ends.get(epoch, 0), min(own[epoch], limit))
        grows = limits != before
    return [(peer.copy, limit) for peer, limit in zip(peers, limits, strict=True)]


def _without(start: int, end: int, ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The parts of ``start`` to ``end`` (exclusive) that are in none of the ranges."""
    for first, last in sorted(ranges):
        if start < first < end:
            yield start, first
        if first < end:
            start = max(start, last)
    if start < end:
        yield start, end


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
