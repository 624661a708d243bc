"""Run reconciliation (inventory, comparison, plan, report) for one cluster, and compute the checkpoint that follows.

The result, a :class:`ReconciledLog`, has what a step of the pipeline reads, and the checkpoint to commit with it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from kshell.errors import SourceError
from kshell.sources.directory.files import VANISHES
from kshell.spark.files.pack import Slice
from kshell.spark.files.plan import FilePlan
from kshell.spark.files.scan import LogCopy, read_stable
from kshell.spark.reconcile.comparison import Comparison, compare, is_conclusive
from kshell.spark.reconcile.copy_report import (
    CopyReport,
    cluster_row,
    make_report,
    newest_quorum_state,
    segment_head,
    segment_sums,
)
from kshell.spark.reconcile.inventory import Checkpoint, Position, StateRange, segment_sizes, take_inventory
from kshell.spark.reconcile.plan import (
    ReadPlan,
    ReplayRange,
    Request,
    Snapshot,
    SnapshotCandidates,
    make_plan,
    must_restart,
)
from kshell.spark.reconcile.plan import slices as slices_of
from kshell.spark.schemas import Row


class ReconciledLog(NamedTuple):
    """What a step reads of one cluster, and the rows that are known from planning alone."""

    cluster_id: str
    slices: tuple[Slice, ...]
    """The byte ranges to read, in the order of offsets: each offset once, a snapshot before the log that follows it."""
    ranges: tuple[ReplayRange, ...]
    """The offset ranges over which the cluster's state is replayed."""
    checkpoint: Checkpoint
    """How far the tables are once the records of ``slices`` are in them."""
    restart: bool
    """Whether the cluster's rows must first be deleted from the tables, because ``slices`` has its whole log again."""
    copies: tuple[Row, ...]
    """Rows of the table ``copies``, for every copy of the cluster."""
    files: tuple[Row, ...]
    """Rows of the table ``files``, for the files that this call planned."""
    findings: tuple[Row, ...]
    """Rows of the table ``quarantine``, for findings that no earlier step reported."""
    size: int
    """Bytes of ``slices``."""
    cluster: Row
    """The cluster's row of the table ``clusters``."""


def reconcile(copies: Sequence[LogCopy], request: Request, *, from_scratch: bool = False) -> ReconciledLog:
    """Reconcile the copies of one cluster's log. The same files give the same result.

    Of a lone copy only the batch headers are read. Several copies are read completely and compared: from the checkpoint
    on or, without a checkpoint or where that does not show how they compare, from the beginning. Apparent damage is
    believed only if the files did not change while they were read.

    Args:
        copies: at least one.
        request: the cluster, how far its tables are, and how much to read.
        from_scratch: plan everything again, without the checkpoint, at least up to where the tables are (even beyond
            ``until`` of the request).

    Raises:
        SourceError: files cannot be read, or vanish again and again.
    """
    restarts = from_scratch and request.checkpoint is not None
    if restarts:
        request = request.from_scratch()
    try:
        log = read_stable(sorted(copies, key=lambda copy: copy.path), lambda copies: _reconcile(copies, request))
    except FileNotFoundError as error:
        raise SourceError(f"{error.filename}: {VANISHES}") from None
    return log._replace(restart=log.restart or restarts)


def _reconcile(copies: Sequence[LogCopy], request: Request) -> tuple[ReconciledLog, bool]:
    """Return the log of copies as listed, and whether anything looks damaged. FileNotFoundError: list again."""
    comparison, snapshots = _compare(copies, request)
    checkpoint = request.checkpoint
    restart = checkpoint is not None and must_restart(comparison, snapshots, checkpoint, request.until)
    if restart:
        request = request.from_scratch()
        comparison, snapshots = _compare(copies, request)
    checkpoint = request.checkpoint
    plan = make_plan(comparison, snapshots, request)
    slices = tuple(slices_of(comparison, plan, request.cluster_id, request.piece_bytes))
    report = make_report(request.cluster_id, comparison, snapshots, plan, checkpoint)
    following = _next_checkpoint(comparison, plan, report, checkpoint)
    log = ReconciledLog(
        request.cluster_id,
        slices,
        plan.ranges,
        following,
        restart,
        report.copies,
        report.files,
        tuple(report.findings.rows),
        sum(run.end - run.start for piece in slices for run in piece.file.runs),
        cluster_row(request.cluster_id, report.copies, following),
    )
    return log, report.looks_damaged


def _compare(copies: Sequence[LogCopy], request: Request) -> tuple[Comparison, SnapshotCandidates]:
    inventory = take_inventory(copies, request.checkpoint, request.piece_bytes, request.bad)
    comparison = compare(inventory, request.checkpoint, request.piece_bytes)
    if not is_conclusive(comparison):
        inventory = take_inventory(copies, request.checkpoint, request.piece_bytes, request.bad, whole=True)
        comparison = compare(inventory, request.checkpoint, request.piece_bytes)
    return comparison, SnapshotCandidates(comparison, request)


# --- the next checkpoint ----------------------------------------------------------------------------------------------


def _next_checkpoint(
    comparison: Comparison, plan: ReadPlan, report: CopyReport, before: Checkpoint | None
) -> Checkpoint:
    """Return how far the tables are once they have the records of the plan; ``before``: how far they are now."""
    copies, parts, last = comparison.inventory.copies, plan.log.parts, before or Checkpoint()
    following = last._replace(
        offset=max(plan.log.end or 0, last.offset),
        state_end=max([replayed.to for replayed in plan.ranges], default=last.state_end),
        state_ranges=_state_ranges(plan, last.state_ranges),
        copy_rows={row["copy"]: row for row in report.copies if row["copy"] not in report.excluded},
        excluded=report.excluded,
        findings=report.findings.reported,
        gaps=(*last.gaps, *report.findings.gaps),
        committed=report.committed,
        quorum_state=newest_quorum_state(copies[index].listing for index in comparison.limits),
    )
    if comparison.agreement is not None:
        following = following._replace(voters=tuple(sorted(comparison.agreement.reference.voters.items())))
    if parts and last.log_start is None:
        first = parts[0].first_batch()
        following = following._replace(log_start=first.first, first_ms=first.first_ms)
    if parts:
        end = parts[-1].last_batch()
        following = following._replace(epoch=end.epoch, crc=end.crc, last_ms=end.last_ms)
    base = max(plan.bases, key=lambda snapshot: snapshot.end, default=None)
    if base is not None and base.end > following.offset and base.last_ms >= 0:
        first_ms = base.last_ms if following.first_ms is None else following.first_ms
        following = following._replace(first_ms=first_ms, last_ms=base.last_ms)
    positions = _positions(comparison, following.offset, report.excluded, last)
    known = (copy for copy in copies if copy.path in positions)
    sizes = {copy.path: [pair for pair in segment_sizes(copy) if pair[0] < following.offset] for copy in known}
    return following._replace(positions=positions, segment_sizes=sizes)


def _state_ranges(plan: ReadPlan, before: Sequence[StateRange]) -> tuple[StateRange, ...]:
    """Return the offset ranges with a known state: the earlier ones, continued or followed by the new ones."""
    ranges = list(before)
    for replayed in plan.ranges:
        base = next((snapshot for snapshot in plan.bases if snapshot.plan.path == replayed.base), None)
        first_ms, last_ms = _times(plan, replayed, base)
        if replayed.base is None and ranges and ranges[-1].end == replayed.since:
            ranges[-1] = ranges[-1]._replace(end=replayed.to, last_ms=last_ms)
        else:
            ranges.append(StateRange(replayed.since, replayed.to, first_ms, last_ms))
    return tuple(ranges)


def _times(plan: ReadPlan, replayed: ReplayRange, base: Snapshot | None) -> tuple[int, int]:
    """Return the times of a replay range's first record (or its snapshot's last) and last record in ms; -1: unknown."""
    parts = [part for part in plan.log.parts if part.run.after > replayed.since and part.run.first < replayed.to]
    base_ms = base.last_ms if base is not None else -1
    if not parts:
        return base_ms, base_ms
    last, is_last = parts[-1], parts[-1].run.after == replayed.to
    end = last.last_batch() if is_last else last.batch_with_offset(replayed.to - 1)
    return base_ms if base_ms >= 0 else parts[0].first_batch().first_ms, end.last_ms


def _positions(
    comparison: Comparison, offset: int, excluded: Collection[str], before: Checkpoint
) -> dict[str, Position | None]:
    """Return, by path of a copy, its last batch before ``offset`` that counts; if there is none, the earlier one.

    An earlier one that is gone is forgotten: if the same bytes are there again, they were not compared.
    """
    limits = dict(comparison.limits)
    if comparison.inventory.start is not None:  # a lagging copy's records up to there may not be compared yet
        limits |= {index: min(limits[index], end) for index, end in comparison.same_until.items()}
    positions: dict[str, Position | None] = {}
    for index, plans in comparison.plans.items():
        path = comparison.inventory.copies[index].path
        if path not in excluded:
            copy, position = comparison.compared.get(index), before.positions.get(path)
            if copy is not None and not copy.is_trusted:
                position = None
            limit = min(limits.get(index, 0), offset)
            positions[path] = _position_before(comparison, index, plans, limit, position) or position
    return positions


def _position_before(
    comparison: Comparison, index: int, plans: Sequence[FilePlan], limit: int, previous: Position | None
) -> Position | None:
    """Return the position of a copy's last batch that ends at or before the offset ``limit``."""
    for part in reversed(comparison.logs[index].parts):
        earlier = part.until(limit)
        if earlier is not None:
            batch = earlier.last_batch()
            file = next(plan for plan in plans if plan.path == part.path)
            runs = [run for run in file.runs if not run.repeats and run.start < batch.position]
            if runs and runs[-1].end > batch.position:
                end = part._replace(run=runs[-1]).batch_at_byte(batch.position).first
                runs[-1] = runs[-1]._replace(end=batch.position, after=end)
            findings = (finding for finding in file.findings if finding.position < batch.position)
            earlier_file = file._replace(runs=tuple(runs), findings=tuple(findings))
            head = segment_sums(earlier_file, segment_head(file, previous))
            return Position(part.path, batch.position, batch.first, head, batch.crc)
    return None
