"""A copy of a log of which plans tell what to read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kshell.errors import CorruptDataError, DataError, IncompleteLogError
from kshell.protocol.batches import Batch
from kshell.protocol.verify import Torn
from kshell.sources.copies.logs import Copy
from kshell.sources.directory.files import SnapshotFile
from kshell.sources.directory.log import Progress
from kshell.sources.directory.sidecar_files import leader_epochs
from kshell.spark.files.plan import FilePlan, Finding, Runs
from kshell.spark.files.read import read
from kshell.spark.files.scan import Found
from kshell.spark.truth.known import Known
from kshell.spark.truth.values import ENDLESS, Reached


class Member(Copy):
    """A copy of which plans tell what to read; ``plans`` are afterwards those of batches whose CRC is right.

    ``known``: what of it was compared before; ``start``: how far the tables are, where reading goes on from there.
    Snapshots that end there or before, but for the newest, are then taken for whole.
    """

    def __init__(
        self, found: Found, plans: Sequence[FilePlan], cut: int, known: Known | None, start: Reached | None
    ) -> None:
        self.plans = list(plans)
        self.lines = leader_epochs(found.listing)
        self.listing = found.listing
        self.known = known
        self.is_trusted = False
        """Whether the tables were made of this copy, too, and it still holds what they have of it."""
        self._cut = cut
        self._known = -1 if start is None else start.offset
        self._last = found.listing.snapshots[-1:]
        super().__init__(found.path, found.listing)
        newest = self.newest
        if start is not None and not (self.voters and newest is not None and (newest.end_offset or 0) > start.offset):
            self.voters = {one[0]: one[1] for one in start.voters}

    @property
    def oldest(self) -> int | None:
        return self.start if self.known is None else self.known.row.get("startOffset")

    @property
    def faults(self) -> int:
        return max(len(self.damage), 0 if self.known is None else len(self.known.row.get("damage", ())))

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
