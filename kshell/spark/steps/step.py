"""One step: write what is new in the logs of all clusters into the tables of a warehouse, and commit it.

:func:`run_step` takes listed copies, and starts again if files change meanwhile; :func:`advance` takes reconciled logs.
Both return a :class:`Summary`. If nothing is new there is no step, and no Spark session is started. The tables
themselves are written by :class:`~kshell.spark.steps.layers.StepWriter`; what their rows mean is defined in
:mod:`~kshell.spark.silver` and :mod:`~kshell.spark.gold`.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kshell.engine.result import Row
from kshell.errors import EXIT_OK, SourceError, UnreadError
from kshell.sources.copies.agreement import OTHER_CLUSTER
from kshell.sources.points import Point
from kshell.spark.files.scan import LogCopy, list_again
from kshell.spark.schemas import COPY_FIELDS
from kshell.spark.steps import unread
from kshell.spark.steps.cluster_changes import ClusterChange, change_of
from kshell.spark.steps.planning import NOW, reconcile_all, replanner
from kshell.spark.steps.unread import UnreadErrors
from kshell.spark.tables.catalog import COPIES, RECORDS

if TYPE_CHECKING:
    from kshell.sources.directory.log import Progress
    from kshell.spark.reconcile import BadBatches, ReconciledLog
    from kshell.spark.tables.steps import WarehouseState
    from kshell.spark.tables.warehouse import Warehouse

Replan = Callable[[str, "BadBatches", bool], "ReconciledLog"]
"""(cluster, damaged batches, from scratch) -> the cluster, reconciled without those batches."""


class Summary(NamedTuple):
    """What a step did. ``step`` is its number; 0: nothing was new, and no table was touched."""

    step: int
    clusters: tuple[str, ...]
    """The clusters that had something new."""
    rows: Mapping[str, int]
    """Table -> rows that the step has written."""
    bytes_read: int
    quarantine: Mapping[tuple[str, str], int]
    """(kind, reason) of the new rows of ``quarantine`` -> how many there are."""
    copies: tuple[Row, ...]
    """Rows of ``copies`` for copies that differ from their cluster's reference, or are damaged or unreadable."""
    restarted: tuple[str, ...]
    """Clusters whose tables were started from scratch."""
    seconds: float
    unread_code: int = EXIT_OK
    """The highest exit code of the errors for files that could not be read and were left out."""
    foreign: tuple[str, ...] = ()
    """Copies that belong to another cluster despite their cluster id, and that no earlier step has reported."""
    breaches: tuple[Row, ...] = ()
    """Rows that the step has written to the table ``breaches``."""

    @property
    def is_damaged(self) -> bool:
        """Whether anything was damaged, malformed or of another cluster, not only unknown records or torn tails."""
        return bool(self.foreign) or any(is_damage(kind, reason) for kind, reason in self.quarantine)


_ATTEMPTS = 4
"""How often a cluster is tried before the step goes on without it."""
_NOBODY = ""
"""Counts attempts that failed for files of an unknown cluster."""
_PAUSE = 1.0
"""Seconds between attempts: a server has finished deleting or truncating by then, and a store may be back."""

NOTHING = Summary(0, (), {}, 0, {}, (), (), 0.0)
_HARMLESS = ("torn",)
_UNKNOWN = "unknown"


def is_damage(kind: str, reason: str) -> bool:
    """Whether a row of ``quarantine`` with this kind and reason means damaged or malformed data."""
    return kind not in _HARMLESS and not reason.startswith(_UNKNOWN)


def run_step(
    warehouse: Warehouse,
    copies: Mapping[str, Sequence[LogCopy]],
    *,
    since: Point = NOW,
    until: Mapping[str, int | None] | None = None,
    progress: Progress | None = None,
    failed: UnreadErrors | None = None,
    planned: Callable[[Sequence[ReconciledLog], UnreadErrors], None] | None = None,
) -> Summary:
    """Plan and write one step with the new records of the clusters.

    If files vanish or change before they are read, nothing of the attempt is committed, and all copies are listed and
    planned again. A cluster with which this happens repeatedly is left out, like one that cannot be planned.

    Args:
        warehouse: the tables, whose only writer is the caller.
        copies: cluster id -> its listed copies.
        since, until: as for :func:`~kshell.spark.steps.planning.reconcile_all`.
        failed: the copies that could not be listed; the step adds those that cannot be planned.
        planned: is called in each attempt before anything is read, with the reconciled logs and ``failed``. It may
            raise an error if the rest is not worth a step.

    Raises UnreadError if files change repeatedly and their cluster is unknown; KshellError.
    """
    unlisted = unread.attributed(failed or {}, copies, warehouse.state)
    failed = {} if failed is None else failed
    attempts = Counter[str]()
    while True:
        state = warehouse.state
        failed.clear()
        failed.update({name: dict(errors) for name, errors in unlisted.items()})
        logs = reconcile_all(
            copies, state, since=since, until=until, spark=lambda: warehouse.spark, progress=progress, failed=failed
        )
        if planned is not None:
            planned(logs, failed)
        replan = replanner(unread.readable(copies, failed), state, since=since, until=until)
        try:
            return advance(warehouse, logs, progress=progress, replan=replan, failed=failed)
        except UnreadError as error:
            attempts.update(list(error.clusters) or [_NOBODY])
            if attempts[_NOBODY] >= _ATTEMPTS:
                raise
            # A copy that the last step could not read gets one attempt only, so that other clusters do not wait for it.
            refused = {
                name for name, why in error.clusters.items() if unread.is_blamed(state.failed.get(name, ()), why)
            }
            given_up = [name for name in error.clusters if attempts[name] >= _ATTEMPTS or name in refused]
            for name in given_up:
                unread.add_unplanned(unlisted, name, copies[name], UnreadError(error.clusters[name], hint=error.hint))
        time.sleep(_PAUSE)
        copies = {
            name: _listed_again(cluster_copies) for name, cluster_copies in copies.items() if name not in given_up
        }


def _listed_again(copies: Sequence[LogCopy]) -> Sequence[LogCopy]:
    """List copies again; if that fails, return them unchanged, and planning reports what is wrong."""
    try:
        return list_again(copies)
    except SourceError:
        return copies


def advance(
    warehouse: Warehouse,
    logs: Iterable[ReconciledLog],
    *,
    progress: Progress | None = None,
    replan: Replan | None = None,
    failed: UnreadErrors | None = None,
) -> Summary:
    """Write what is new in reconciled logs into a warehouse, and commit it as one step.

    If nothing is new, no session is needed. A step that fails or is killed is not committed, and the next step begins
    at the same checkpoint.

    Args:
        warehouse: opened with :meth:`Warehouse.writing`, so that the caller is its only writer.
        logs: one reconciled log per cluster.
        progress: is called with a line per stage.
        replan: reconciles a cluster again if batches turn out to be damaged that planning by headers accepted.
        failed: copies that could not be read, of these clusters and of others; they become rows of ``copies``.

    Raises:
        UnreadError: files changed since the logs were reconciled.
        CommandError: another writer has committed meanwhile.
    """
    started, reasons, logs = time.monotonic(), unread.reasons_of(failed or {}), tuple(logs)
    read = [row["copy"] for log in logs for row in log.copies]
    every = {log.cluster_id: unread.with_unread(log, reasons) for log in logs}
    fresh = [change for change in (change_of(log, warehouse.state) for log in every.values()) if change is not None]
    foreign = tuple(path for log in every.values() for path in _foreign(log, warehouse.state))
    unread_after = unread.after(warehouse.state, {*every, *reasons}, reasons, read)
    clusters_before = warehouse.state.clusters
    is_new = bool(fresh) or unread_after != warehouse.state.failed
    outcome = (
        _step(warehouse, fresh, unread_after, progress or quiet, _with_unread_copies(replan, reasons))
        if is_new
        else _Outcome()
    )
    every |= outcome.logs
    lost = [row for name in reasons if name not in every for row in unread.rows(name, reasons)]
    return Summary(
        step=warehouse.state.step if is_new else 0,
        clusters=tuple(outcome.logs),
        rows=outcome.rows,
        bytes_read=sum(log.size for log in outcome.logs.values()),
        quarantine=outcome.quarantined,
        copies=(*(row for log in every.values() for row in log.copies if needs_attention(row)), *lost),
        restarted=tuple(name for name, log in outcome.logs.items() if log.restart and name in clusters_before),
        seconds=time.monotonic() - started,
        unread_code=unread.exit_code(failed or {}),
        foreign=foreign,
        breaches=tuple(warehouse.breaches) if is_new else (),
    )


def _foreign(log: ReconciledLog, state: WarehouseState) -> list[str]:
    """Return the copies that this step found to be of another cluster; each is reported by one step only."""
    before = state.clusters.get(log.cluster_id)
    excluded = before.reached["excluded"] if before is not None else {}
    reported = {path for path, copy in excluded.items() if copy["row"]["state"] == OTHER_CLUSTER}
    return [row["copy"] for row in log.copies if row["state"] == OTHER_CLUSTER and row["copy"] not in reported]


class _Outcome(NamedTuple):
    """What a step wrote: logs by cluster, numbers of rows by table, rows of ``quarantine`` by (kind, reason)."""

    logs: Mapping[str, ReconciledLog] = {}
    rows: Mapping[str, int] = {}
    quarantined: Mapping[tuple[str, str], int] = {}


def _step(
    warehouse: Warehouse,
    fresh: Sequence[ClusterChange],
    unread_after: unread.UnreadReasons,
    progress: Progress,
    replan: Replan | None,
) -> _Outcome:
    """Write one step and commit it. ``unread_after``: the unreadable copies of all clusters, for the commit."""
    from kshell.spark.steps.layers import StepWriter  # late: it imports pyspark

    step = StepWriter(warehouse, fresh, progress, replan) if fresh else None
    clusters = {*warehouse.state.clusters, *(change.cluster_id for change in fresh), *unread_after}
    new_records = sum(piece.records() for change in fresh for piece in change.log.slices)
    # Without new records only `copies` is written: no other table need be opened.
    warehouse.begin(clusters, few=not fresh or warehouse.row_count({RECORDS}) + new_records < _FEW_ROWS)
    with warehouse.settings_for_step():
        states = step.run() if step is not None else {}
    outcome = _Outcome(step.logs, dict(step.rows), step.quarantined) if step is not None else _Outcome()
    was = warehouse.state.failed
    changed = [
        name for name in {**was, **unread_after} if name not in states and unread_after.get(name) != was.get(name)
    ]
    if changed:
        written = _copies(warehouse, unread_after, changed)
        outcome = outcome._replace(rows={**outcome.rows, COPIES: outcome.rows.get(COPIES, 0) + written})
    warehouse.commit(states, unread_after)
    return outcome


def _copies(warehouse: Warehouse, unread_reasons: unread.UnreadReasons, clusters: Sequence[str]) -> int:
    """Replace the rows of ``copies`` for clusters where only readability changed; return the number of rows."""
    from kshell.spark.steps.local_frames import frame_of  # late: few steps need it

    rows = [row for name in clusters for row in unread.rows_again(warehouse.state, name, unread_reasons)]
    return warehouse.replace(COPIES, frame_of(warehouse.spark, COPY_FIELDS, rows), clusters)


def _with_unread_copies(replan: Replan | None, reasons: unread.UnreadReasons) -> Replan | None:
    if replan is None:
        return None
    return lambda name, bad, from_scratch: unread.with_unread(replan(name, bad, from_scratch), reasons)


def needs_attention(copy: Row) -> bool:
    """Whether a row of ``copies`` says that the copy differs from the reference of its cluster, or is damaged."""
    return copy["state"] not in _SOUND or bool(copy["damage"])


_SOUND = ("reference", "same")
_FEW_ROWS = 200_000
"""New records and rows of all tables but ``records`` together, below which the driver writes the tables itself."""


def quiet(count: int, total: int, message: str) -> None:
    """Ignore progress; the default where the caller gives no function."""
