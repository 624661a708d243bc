"""Several copies of one log, read together: which of them are of one history, and how far each is to be believed.

Copies that part without an election that explains it are not of one history. Of such groups the one with the most
copies counts, of equal ones the one that Raft's rules put first; in it the reference is the copy that wins an election.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from kshell.errors import CorruptDataError, DataError, IncompleteLogError
from kshell.protocol.batches import Batch
from kshell.protocol.verify import Torn
from kshell.sources.agreement import Agreement, agreement, cluster_of, contradiction, rank
from kshell.sources.copies import Copy, Pair, read_together
from kshell.sources.files import SnapshotFile, leader_epochs
from kshell.sources.log import Progress
from kshell.spark.files.plan import FilePlan, Finding, Runs
from kshell.spark.files.read import read
from kshell.spark.files.scan import Found
from kshell.spark.truth.values import ENDLESS

Pairs = Mapping[tuple[int, int], Pair]


class Member(Copy):
    """A copy of which plans tell what to read; ``plans`` are afterwards those of batches whose CRC is right.

    Snapshots that end at or before ``known``, but for the newest, are taken for whole.
    """

    def __init__(self, found: Found, plans: Sequence[FilePlan], cut: int, known: int) -> None:
        self.plans = list(plans)
        self.lines = leader_epochs(found.listing)
        self._cut = cut
        self._known = known
        self._last = found.listing.snapshots[-1:]
        super().__init__(found.path, found.listing)

    def verify(self, file: SnapshotFile) -> None:
        if file in self._last or file.end_offset is None or file.end_offset > self._known:
            super().verify(file)
        else:
            self.snapshots.append(file)

    def batches(self, progress: Progress | None) -> Iterator[Batch]:
        yield from self.noted(self._read())
        for plan in self.plans:
            for finding in plan.findings:
                if finding.kind == "torn":
                    self.torn = plan.path, Torn(finding.position, plan.size - finding.position, finding.reason)
                else:
                    self.damage.append(as_error(plan.path, finding))

    def _read(self) -> Iterator[Batch]:
        given = -1
        for index, plan in enumerate(self.plans):
            runs, findings = Runs(self._cut), list(plan.findings)
            for placed in read(plan):
                if isinstance(placed, Finding):
                    findings.append(placed)
                elif not placed.repeats and placed.batch.base_offset >= given:
                    batch, position = placed.batch, placed.position
                    given = batch.last_offset + 1
                    runs.add(position, position + batch.size, batch.base_offset, given)
                    yield batch
            self.plans[index] = plan._replace(runs=runs.done(), findings=tuple(sorted(findings)))

    def ends_epoch(self, epoch: int) -> int:
        """The offset before which its records of an epoch, and of earlier ones, end for certain."""
        told = [start for line, start in self.lines if line > epoch]
        if told:
            return told[0]
        for place, (later, first) in enumerate(self.epochs):
            if later > epoch:
                return self._before(first) if place else first
        return ENDLESS

    def _before(self, offset: int) -> int:
        """The offset after the last record that is there before an offset."""
        ends = [run.after for plan in self.plans for run in plan.runs if run.first < offset]
        return offset if any(end >= offset for end in ends) else max(ends, default=offset)


def as_error(path: str, finding: Finding) -> DataError:
    """A finding as an error, which has words for people."""
    if finding.position >= 0:
        return CorruptDataError(path, finding.position, finding.reason)
    return IncompleteLogError(finding.reason if path in finding.reason else f"{path}: {finding.reason}")


class Judged(NamedTuple):
    """``believed``: (place of a copy, offset before which its log counts), the reference first."""

    agreement: Agreement
    believed: tuple[tuple[int, int], ...]


def judge(members: Sequence[Member]) -> Judged:
    """Reads all of at least one copy. Raises SourceError."""
    pairs = read_together(members)
    group = _group(members, pairs)
    found = agreement(members, pairs, group)
    reference = members.index(found.reference)
    believed = [(reference, ENDLESS)]
    for place in sorted(group, key=lambda place: rank(members[place]), reverse=True):
        if place != reference:
            pair = pairs[min(place, reference), max(place, reference)]
            believed.append((place, _limit(members[place], members[reference], pair)))
    return Judged(found, tuple(believed))


def _group(members: Sequence[Member], pairs: Pairs) -> list[int]:
    """The places of the copies of one history."""
    cluster = cluster_of(members)
    ours = [place for place, one in enumerate(members) if one.cluster_id in (None, cluster)]
    ours.sort(key=lambda place: rank(members[place]), reverse=True)
    best: list[int] = []
    for seed in ours:
        group = [seed]
        for place in ours:
            if place != seed and all(_are_of_one_history(members, pairs, place, other) for other in group):
                group.append(place)
        best = max(best, group, key=len)  # of equal ones the first
    return best


def _are_of_one_history(members: Sequence[Member], pairs: Pairs, one: int, other: int) -> bool:
    pair = pairs[min(one, other), max(one, other)]
    if pair.parting is None:
        return True
    behind, before = sorted((one, other), key=lambda place: rank(members[place]))
    return contradiction(members[behind], members[before], pair.parting.offset) is None


def _limit(copy: Member, reference: Member, pair: Pair) -> int:
    """Before which offset the records of a copy are those of the reference, also where that has none."""
    limit = reference.ends_epoch(copy.last_epoch) if reference.log_end is not None else ENDLESS
    if pair.parting is not None:
        limit = min(limit, pair.parting.offset if pair.to is None else pair.to)
    return limit
