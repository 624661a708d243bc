"""Make the rows of ``files``, ``copies``, ``clusters`` and ``quarantine``: how the copies compare, and what is wrong.

A finding is reported once: the checkpoint keeps those that were reported, each with a signature that shows whether it
is still there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from kshell.errors import CorruptDataError
from kshell.sources.copies.agreement import (
    DIVERGED,
    NOT_COMPARED,
    OTHER_CLUSTER,
    REFERENCE,
    CopyComparison,
    CopyVerdict,
    reason,
    with_damage,
)
from kshell.sources.copies.logs import checked_id
from kshell.sources.directory.files import Listing
from kshell.sources.directory.sidecar_files import meta_properties, quorum_state
from kshell.sources.points import missing
from kshell.spark.files.plan import FileFinding, FilePlan, damaged
from kshell.spark.files.read import finding_columns
from kshell.spark.files.scan import LogCopy
from kshell.spark.reconcile.comparison import Comparison
from kshell.spark.reconcile.inventory import (
    Checkpoint,
    Evidence,
    Position,
    PreviousComparison,
    ReportedFinding,
    SegmentHead,
    finding_error,
    log_size,
    signature,
    start_offset,
    still_there,
)
from kshell.spark.reconcile.logs import good_batch_at, parts_of
from kshell.spark.reconcile.plan import ReadPlan, SnapshotCandidates
from kshell.spark.schemas import COPY_FIELDS, FILE_FIELDS, QUARANTINE_FIELDS, Row

_REMEMBERED = 10_000
"""Findings of one copy that the checkpoint keeps at most: after a lost election every later batch may be a finding."""
_MAX_FINDINGS = 100
"""Findings that the row of a copy shows at most."""
_OF_DIVERGED = ("state", "sameFrom", "sameTo", "divergesAt", "uncommittedFrom", "reason", "comparedWith")
"""What the row of a copy says of how it differs."""


class CopyReport(NamedTuple):
    """The rows of ``copies`` and ``files``, the findings, and parts of the next checkpoint.

    ``excluded`` and ``committed`` are described at :class:`Checkpoint`. ``looks_damaged``: whether there is any
    finding but a torn tail; the caller then checks that no file changed while it was read.
    """

    copies: tuple[Row, ...]
    files: tuple[Row, ...]
    findings: Findings
    excluded: dict[str, Evidence]
    committed: int | None
    looks_damaged: bool


def make_report(
    cluster_id: str,
    comparison: Comparison,
    snapshots: SnapshotCandidates,
    plan: ReadPlan,
    checkpoint: Checkpoint | None,
) -> CopyReport:
    """Report on the copies of a cluster. ``checkpoint``: how far its tables were before, if it has any."""
    before = checkpoint or Checkpoint()
    findings = Findings(cluster_id, comparison, before.findings)
    for index, plans in comparison.plans.items():
        for file in plans:
            findings.add(index, file)
    for index, compared in comparison.compared.items():
        sizes = {file.path: file.size for file in compared.listing.snapshots}
        for error in compared.damage:
            if isinstance(error, CorruptDataError) and error.file in sizes:
                findings.add(index, FilePlan(error.file, sizes[error.file], True, (), (damaged(error),)))
    for index, file in snapshots.findings:
        findings.add(index, file)
    _add_gaps(findings, comparison, plan)
    copies, excluded, committed = _copy_rows(cluster_id, comparison, findings, before)
    files: list[Row] = []
    for index, plans in comparison.plans.items():
        copy = comparison.inventory.copies[index]
        planned = list(plans)
        for snapshot in copy.listing.snapshots:
            file = snapshots.plan_of(snapshot) or FilePlan(snapshot.path, snapshot.size, True, ())
            planned.append(file._replace(findings=findings.in_file(index, snapshot.path)))
        position = before.positions.get(copy.path)
        files += (_file_row(cluster_id, copy, file, segment_head(file, position)) for file in planned)
    every = (finding for plans in comparison.plans.values() for file in plans for finding in file.findings)
    looks_damaged = bool(snapshots.findings) or any(finding.kind != "torn" for finding in every)
    return CopyReport(tuple(copies), tuple(files), findings, excluded, committed, looks_damaged)


# --- findings ---------------------------------------------------------------------------------------------------------


class Findings:
    """Collects new ``rows`` of ``quarantine`` and, for the checkpoint, all findings (``reported``) and new ``gaps``."""

    def __init__(
        self, cluster_id: str, comparison: Comparison, reported: Mapping[str, Sequence[ReportedFinding]]
    ) -> None:
        self.rows: list[Row] = []
        self.reported: dict[str, list[ReportedFinding]] = {}
        self.gaps: list[tuple[int, int]] = []
        copies, plans = comparison.inventory.copies, comparison.plans.values()
        is_whole = comparison.inventory.start is None  # then what the plans do not find again is repaired
        planned = {file.path: frozenset(file.findings) for files in plans for file in files if is_whole}
        for copy in copies:
            still = still_there(copy, reported.get(copy.path, ()))
            current = [finding for finding in still if finding[1:4] in planned.get(finding.path, {finding[1:4]})]
            if current:
                self.reported[copy.path] = current
        self._known = {finding[:4] for findings in self.reported.values() for finding in findings}
        self._cluster_id = cluster_id
        self._copies = copies

    def add(self, index: int, file: FilePlan) -> None:
        """Add the new findings of a file of the copy at ``index``. A torn tail is no finding."""
        copy = self._copies[index]
        for finding in file.findings:
            key = (file.path, *finding)
            if finding.kind != "torn" and key not in self._known:
                self._known.add(key)
                reported = self.reported.setdefault(copy.path, [])
                if len(reported) < _REMEMBERED:
                    reported.append(ReportedFinding(*key, signature(copy, file.path, finding.position)))
                self._add_row(finding, nodeId=copy.origin.node_id, file=file.path, isSnapshot=file.is_snapshot)

    def add_gap(self, first: int, after: int, consequence: str = "") -> None:
        """Add offsets, ``first`` to before ``after``, that no copy has. ``consequence`` ends the sentence."""
        self.gaps.append((first, after))
        text = f"{missing(first, after)} in every copy{consequence}"
        self._add_row(FileFinding(-1, "gap", text), isSnapshot=False, offset=first)

    def damage(self, index: int) -> list[str]:
        """Return the messages of a copy's findings, for its row of ``copies``."""
        path = self._copies[index].path
        return [
            finding_error(finding.path, FileFinding(*finding[1:4])).message
            for finding in islice(self.reported.get(path, ()), _MAX_FINDINGS)
        ]

    def in_file(self, index: int, path: str) -> tuple[FileFinding, ...]:
        """Return the findings of one file of a copy, earlier ones included."""
        reported = self.reported.get(self._copies[index].path, ())
        return tuple(FileFinding(*finding[1:4]) for finding in reported if finding.path == path)

    def _add_row(self, finding: FileFinding, **values: object) -> None:
        values |= {"clusterId": self._cluster_id, **finding.columns()}
        self.rows.append({field.name: values.get(field.name) for field in QUARANTINE_FIELDS})


def _add_gaps(findings: Findings, comparison: Comparison, plan: ReadPlan) -> None:
    """Add the offsets that no copy has although records follow, except those at the start that a snapshot covers."""
    has_directory = any(copy.listing.directory is not None for copy in comparison.inventory.copies)
    expected = plan.expected
    for first, end in plan.log.ranges():
        if expected is not None and first > expected:
            findings.add_gap(expected, first)
        has_state = any(first <= replayed.since <= end for replayed in plan.ranges)
        if expected is None and first > 0 and has_directory and not has_state:
            earlier = max((replayed.to for replayed in plan.ranges if replayed.to <= first), default=0)
            findings.add_gap(earlier, first, ", and no whole snapshot reaches the log")
        expected = end


# --- files ------------------------------------------------------------------------------------------------------------


def segment_head(file: FilePlan, position: Position | None) -> SegmentHead:
    """Return the sums over the part of a segment before its plan begins; empty if the plan has all of the segment."""
    if position is None or not file.runs or (file.path, file.runs[0].start) != position[:2]:
        return SegmentHead()
    return position.head


def segment_sums(file: FilePlan, head: SegmentHead) -> SegmentHead:
    """Return the sums over a whole segment: those of its ``head``, plus the runs and findings of its plan."""
    parts, first, epoch = parts_of(file), head.first_offset, head.first_epoch
    return SegmentHead(
        parts[0].run.first if first is None and parts else first,
        parts[0].first_batch().epoch if epoch is None and parts else epoch,
        head.records + sum(part.run.after - part.run.first for part in parts),
        head.good_bytes + sum(part.run.end - part.run.start for part in parts),
        (*head.findings, *file.findings),
    )


def _file_row(cluster_id: str, copy: LogCopy, file: FilePlan, head: SegmentHead) -> Row:
    """Return the row of ``files`` as far as planning knows it; columns that need every batch header are null."""
    parts, sums = parts_of(file), segment_sums(file, head)
    values = finding_columns(file, sums.findings) | {
        "clusterId": cluster_id,
        "nodeId": copy.origin.node_id,
        "file": file.path,
        "isSnapshot": file.is_snapshot,
        "firstOffset": sums.first_offset,
        "lastOffset": parts[-1].run.after - 1 if parts else None,
        "firstEpoch": sums.first_epoch,
        "lastEpoch": parts[-1].last_batch().epoch if parts else None,
        "records": sums.records,
        "goodBytes": sums.good_bytes,
    }
    if not parts and not sums.findings:
        values["crcFailures"] = None
    return {field.name: values.get(field.name) for field in FILE_FIELDS}


# --- copies -----------------------------------------------------------------------------------------------------------


def copy_row(cluster_id: str, path: str, **values: object) -> Row:
    """Return a row of the table ``copies``; columns that are not given are null."""
    values |= {"clusterId": cluster_id, "copy": path}
    return {field.name: values.get(field.name) for field in COPY_FIELDS}


def _copy_rows(
    cluster_id: str, comparison: Comparison, findings: Findings, before: Checkpoint
) -> tuple[list[Row], dict[str, Evidence], int | None]:
    """Return the rows of ``copies``, the evidence for excluded copies by path, and the proven committed offset."""
    copies = comparison.inventory.copies
    excluded = dict(comparison.inventory.excluded)
    rows = {path: dict(evidence["row"]) for path, evidence in excluded.items()}
    committed = before.committed
    if (agreement := comparison.agreement) is not None:
        committed = agreement.committed or None
        for index, verdict in zip(comparison.plans, agreement.verdicts, strict=True):
            row = _compared_row(cluster_id, comparison, agreement, index, verdict, findings)
            rows[row["copy"]] = row
            if index not in comparison.limits and (evidence := _evidence(comparison, index, verdict)) is not None:
                excluded[row["copy"]] = {**evidence, "row": row, "size": log_size(copies[index])}
    elif comparison.plans:
        (index,) = comparison.plans
        row = _lone_row(cluster_id, comparison, index, findings, before)
        rows[row["copy"]] = row
        proven = row["endOffset"] if row["uncommittedFrom"] is None else row["uncommittedFrom"]
        committed = max(committed or 0, proven or 0) or None
    return [rows[copy.path] for copy in copies if copy.path in rows], excluded, committed


def _compared_row(
    cluster_id: str,
    comparison: Comparison,
    agreement: CopyComparison,
    index: int,
    verdict: CopyVerdict,
    findings: Findings,
) -> Row:
    """Return the row of a copy that was compared; ``verdict`` is the verdict on it."""
    copy, newest, reference = verdict.copy, verdict.copy.newest, agreement.reference
    start, damage = _start_offset(comparison, index), findings.damage(index)
    row = copy_row(
        cluster_id,
        copy.path,
        state=with_damage(verdict.state, is_damaged=bool(damage)),
        nodeId=comparison.inventory.copies[index].origin.node_id,
        startOffset=start,
        endOffset=copy.end,
        lastEpoch=copy.last_epoch if copy.end is not None else None,
        snapshot=f"{newest.end_offset}-{newest.epoch}" if newest else None,
        sameFrom=start if verdict.state == REFERENCE else verdict.since,
        sameTo=verdict.to,
        divergesAt=verdict.divergence.offset if verdict.divergence else None,
        uncommittedFrom=verdict.uncommitted,
        reason=reason(verdict, reference),
        damage=damage,
        directoryId=copy.directory_id,
        comparedWith=verdict.peer.path if verdict.peer else None,
    )
    if index in comparison.limits:
        return _unchanged_values(row, comparison.inventory.previous.get(index))
    if (evidence := comparison.foreign.get(index)) is not None:
        why = (
            f"of another cluster than {reference.path}, whatever its meta.properties says: {evidence}. None of its"
            " records is read. Find out which of both has the right cluster.id, and correct meta.properties of the"
            " other, or leave that out of --source"
        )
        return row | {"state": OTHER_CLUSTER, "reason": why}
    return row | {"reason": _exclusion_reason(row, verdict)}


def _unchanged_values(row: Row, previous: PreviousComparison | None) -> Row:
    """Keep in an unchanged copy's row what only a full comparison shows: ``diverged``, and the end of what is equal."""
    if previous is None or any(previous.row.get(name) != row[name] for name in ("endOffset", "lastEpoch")):
        return row
    if previous.row["state"] == DIVERGED:
        return row | {name: previous.row[name] for name in _OF_DIVERGED}
    if any(previous.row[name] != row[name] for name in ("state", "damage", "comparedWith")):
        return row
    return row | {"sameTo": previous.row["sameTo"]}


def _exclusion_reason(row: Row, verdict: CopyVerdict) -> str | None:
    """Return the reason, for its row, why no record of an excluded copy is read."""
    usual: str | None = row["reason"]
    if verdict.state == NOT_COMPARED:
        return f"{usual}: nothing shows that it is of this cluster, so none of its records is read"
    if verdict.divergence is None or verdict.peer is None or verdict.divergence.contradiction is not None:
        return usual
    offset, batch, other_batch, _ = verdict.divergence
    return (
        f"diverges from {verdict.peer.path} at offset {offset} (epoch {batch.epoch} here, {other_batch.epoch} there),"
        " and no election explains it: the records there are committed, or no record before them is the same"
    )


def _start_offset(comparison: Comparison, index: int) -> int | None:
    """Return the offset of a copy's first record; ``None`` if it has no log."""
    log, inventory = comparison.logs[index], comparison.inventory
    return start_offset(inventory.copies[index], log.parts[0].run.first if log.parts else None, inventory.start)


def _evidence(comparison: Comparison, index: int, verdict: CopyVerdict) -> dict[str, Any] | None:
    """Return the batch that proves another history: where the copy diverges, else the first of its log or snapshot."""
    log, parted = comparison.logs[index], verdict.divergence
    part = log.part_with(parted.offset) if parted is not None else next(iter(log.parts), None)
    if part is not None:
        path, batch = part.path, part.batch_with_offset(parted.offset if parted else part.run.first)
        can_meet_later = parted is None and batch.first >= (comparison.log.end or 0)
        until = batch.first if can_meet_later else None
        return {"file": path, "position": batch.position, "crc": batch.crc, "until": until}
    for file in verdict.copy.snapshots[:1]:
        if (first := good_batch_at(file.path, file.size, 0)) is not None:
            return {"file": file.path, "position": first.position, "crc": first.crc, "until": None}
    return None


def _lone_row(cluster_id: str, comparison: Comparison, index: int, findings: Findings, before: Checkpoint) -> Row:
    """Return the row of the only copy of a cluster."""
    copy, log = comparison.inventory.copies[index], comparison.logs[index]
    newest = next((file for file in reversed(copy.listing.snapshots) if file.end_offset is not None), None)
    newest_end = newest.end_offset or 0 if newest is not None else 0
    end, epoch = log.end, log.parts[-1].last_batch().epoch if log.parts else None
    if newest is not None and (end is None or newest_end > end):
        end, epoch = newest_end, newest.epoch
    committed = max(newest_end, before.committed or 0)
    start = _start_offset(comparison, index)
    return copy_row(
        cluster_id,
        copy.path,
        state=REFERENCE,
        nodeId=copy.origin.node_id,
        startOffset=start,
        endOffset=end,
        lastEpoch=epoch,
        snapshot=f"{newest.end_offset}-{newest.epoch}" if newest else None,
        sameFrom=start,
        sameTo=log.end,
        uncommittedFrom=committed if end is not None and committed < end else None,
        damage=findings.damage(index),
        directoryId=checked_id(meta_properties(copy.listing), copy.path, []),
    )


# --- clusters ---------------------------------------------------------------------------------------------------------


def cluster_row(cluster_id: str, copies: Sequence[Row], checkpoint: Checkpoint) -> Row:
    """Return the cluster's row of ``clusters``; ``checkpoint``: how far the tables are after this step."""
    leader, leader_epoch, voters = checkpoint.quorum_state
    return {
        "clusterId": cluster_id,
        "copies": len(copies),
        "startOffset": checkpoint.log_start,
        "endOffset": max(checkpoint.offset, checkpoint.state_end or 0),
        "stateOffset": checkpoint.state_end,
        "committedOffset": checkpoint.committed,
        "lastEpoch": next((row["lastEpoch"] for row in copies if row["state"] == REFERENCE), None),
        "firstTimestampMs": checkpoint.first_ms,
        "lastTimestampMs": checkpoint.last_ms,
        "leaderId": leader,
        "leaderEpoch": leader_epoch,
        "voters": [*voters],
    }


def newest_quorum_state(listings: Iterable[Listing]) -> tuple[int | None, int | None, tuple[int, ...]]:
    """Return (leader id, leader epoch, voter ids) of the ``quorum-state`` file with the newest epoch.

    The leader is -1 if none was elected yet; of files of one epoch, the first that names a leader counts.
    """
    states = [state for state in map(quorum_state, listings) if state.get("leaderId") is not None]
    state = max(states, key=lambda state: (state.get("leaderEpoch", -1), state["leaderId"] != -1), default={})
    voters = tuple(dict.fromkeys(voter["voterId"] for voter in state.get("currentVoters", ())))
    return state.get("leaderId"), state.get("leaderEpoch"), voters
