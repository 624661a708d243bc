"""One step: what is new of the clusters into all tables of a warehouse, and then it counts.

The order is bronze, silver, gold; tables whose inputs did not change are not touched. What is executed at once, and
what is read twice, is decided here; what rows mean, in :mod:`~kshell.spark.silver` and :mod:`~kshell.spark.gold`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kshell.engine.result import Row
from kshell.errors import EXIT_OK
from kshell.sources.copies.agreement import OTHER_CLUSTER
from kshell.spark.schemas import COPY_FIELDS
from kshell.spark.steps import unread
from kshell.spark.steps.novelty import Fresh, fresh_of
from kshell.spark.steps.unread import Failures
from kshell.spark.tables.catalog import COPIES

if TYPE_CHECKING:
    from kshell.sources.directory.log import Progress
    from kshell.spark.reconcile import BadBatches, ReconciledLog
    from kshell.spark.tables.steps import State
    from kshell.spark.tables.warehouse import Warehouse

Again = Callable[[str, "BadBatches", bool], "ReconciledLog"]
"""The truth of a cluster once more, as if damaged batches were not there; if so said, of tables that are begun anew."""


class Summary(NamedTuple):
    """What a step did. ``step`` 0: nothing was new, and no table was touched."""

    step: int
    clusters: tuple[str, ...]
    """Those of which something was new."""
    rows: Mapping[str, int]
    """Table -> rows that the step has written."""
    bytes_read: int
    quarantine: Mapping[tuple[str, str], int]
    """(kind, reason) of what went there -> how often."""
    copies: tuple[Row, ...]
    """Rows of ``copies`` of all clusters that were looked at whose copy is not as the others."""
    restarted: tuple[str, ...]
    """Clusters whose tables were begun anew."""
    seconds: float
    unread_code: int = EXIT_OK
    """The exit code of what could not be read, and was passed over."""
    foreign: tuple[str, ...] = ()
    """Copies of other clusters, under the id of this one, that no step before has met."""
    breaches: tuple[Row, ...] = ()
    """Rows that the step has written to the table ``breaches``."""

    @property
    def is_damaged(self) -> bool:
        """Whether anything was damaged, malformed or of another cluster; unknown records and torn tails are none."""
        return bool(self.foreign) or any(is_damage(kind, reason) for kind, reason in self.quarantine)


NOTHING = Summary(0, (), {}, 0, {}, (), (), 0.0)
_HARMLESS = ("torn",)
_UNKNOWN = "unknown"


def is_damage(kind: str, reason: str) -> bool:
    """Whether what went to the quarantine for that reason was damaged or malformed."""
    return kind not in _HARMLESS and not reason.startswith(_UNKNOWN)


def advance(
    warehouse: Warehouse,
    truths: Iterable[ReconciledLog],
    *,
    told: Progress | None = None,
    again: Again | None = None,
    failed: Failures | None = None,
) -> Summary:
    """Takes the truths into the warehouse, whose only writer the caller is (:meth:`Warehouse.writing`).

    ``again`` makes a cluster's truth once more, when reading shows batches to be damaged that planning by headers took
    for good. ``failed``: copies, and clusters without a truth, that could not be read: they become rows of ``copies``.

    Where nothing is new, no session is needed. A step that fails or is killed does not count, and the next one begins
    where this one did. Raises UnreadError for files that are not what they were when the truths were made, CommandError
    when somebody else has written meanwhile.
    """
    begun, words = time.monotonic(), unread.words(failed or {})
    every = {one.cluster_id: unread.with_unread(one, words) for one in truths}
    fresh = [one for one in (fresh_of(truth, warehouse.state) for truth in every.values()) if one is not None]
    foreign = tuple(path for truth in every.values() for path in _foreign(truth, warehouse.state))
    left = unread.after(warehouse.state, {*every, *words}, words)
    known = warehouse.state.clusters
    is_new = bool(fresh) or left != warehouse.state.failed
    done = _step(warehouse, fresh, left, told or quiet, _once_more(again, words)) if is_new else _Done()
    every |= done.truths
    lost = [row for name in words if name not in every for row in unread.rows(name, words)]
    return Summary(
        warehouse.state.step if is_new else 0,
        tuple(done.truths),
        done.rows,
        sum(one.size for one in done.truths.values()),
        done.quarantined,
        (*(row for truth in every.values() for row in truth.copies if is_odd(row)), *lost),
        tuple(name for name, one in done.truths.items() if one.restart and name in known),
        time.monotonic() - begun,
        unread.exit_code(failed or {}),
        foreign,
        tuple(warehouse.breaches) if is_new else (),
    )


def _foreign(truth: ReconciledLog, state: State) -> list[str]:
    """The copies of a cluster that turn out to be of another one; as damage, each is reported by one step."""
    before = state.clusters.get(truth.cluster_id)
    excluded = before.reached["excluded"] if before is not None else {}
    known = {path for path, one in excluded.items() if one["row"]["state"] == OTHER_CLUSTER}
    return [row["copy"] for row in truth.copies if row["state"] == OTHER_CLUSTER and row["copy"] not in known]


class _Done(NamedTuple):
    """``truths``: what was taken in, by cluster."""

    truths: Mapping[str, ReconciledLog] = {}
    rows: Mapping[str, int] = {}
    quarantined: Mapping[tuple[str, str], int] = {}


def _step(
    warehouse: Warehouse, fresh: Sequence[Fresh], left: unread.Told, told: Progress, again: Again | None
) -> _Done:
    """A step, committed. ``left``: what could not be read, of all clusters."""
    from kshell.spark.steps.layers import Step  # late: it imports pyspark

    step = Step(warehouse, fresh, told, again) if fresh else None
    ends = {name: cluster.reached["offset"] for name, cluster in warehouse.state.clusters.items()}
    ends |= {one.cluster_id: one.truth.checkpoint.offset for one in fresh}
    warehouse.begin({*ends, *left}, few=sum(ends.values()) < _FEW_OFFSETS)
    states = step.run() if step is not None else {}
    done = _Done(step.truths, dict(step.rows), step.quarantined) if step is not None else _Done()
    was = warehouse.state.failed
    others = [name for name in {**was, **left} if name not in states and left.get(name) != was.get(name)]
    if others:
        written = _copies(warehouse, left, others)
        done = done._replace(rows={**done.rows, COPIES: done.rows.get(COPIES, 0) + written})
    warehouse.commit(states, left)
    return done


def _copies(warehouse: Warehouse, left: unread.Told, clusters: Sequence[str]) -> int:
    """The rows of clusters of which nothing is new but which copies can be read. Gives how many there are."""
    from kshell.spark.steps.few_rows import frame_of  # late: few steps need it

    rows = [row for name in clusters for row in unread.rows_again(warehouse.state, name, left)]
    return warehouse.replace(COPIES, frame_of(warehouse.spark, COPY_FIELDS, rows), clusters)


def _once_more(again: Again | None, words: unread.Told) -> Again | None:
    if again is None:
        return None
    return lambda name, bad, anew: unread.with_unread(again(name, bad, anew), words)


def is_odd(copy: Row) -> bool:
    """Whether a copy is not as the reference of its cluster is, or is damaged."""
    return copy["state"] not in _SOUND or bool(copy["damage"])


_SOUND = ("reference", "same")
_FEW_OFFSETS = 200_000
"""Records of all clusters together up to which the driver writes the tables itself: rows follow the records."""


def quiet(done: int, total: int, what: str) -> None:
    """Progress that nobody is told."""
