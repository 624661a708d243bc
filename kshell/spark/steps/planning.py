"""Reconciled logs of all clusters: on the driver where that is quick, else one cluster per task."""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from kshell.errors import DataError, KshellError, SourceError, UnreadError
from kshell.sources.points import Point
from kshell.spark.files.scan import LogCopy, Unread, files_of, find, spelled
from kshell.spark.reconcile import Checkpoint, ReconciledLog, by_cluster, reconcile
from kshell.spark.steps.sizing import bytes_to_plan
from kshell.spark.steps.unread import Failures, add_unplanned, add_unread, first
from kshell.spark.tables.steps import WarehouseState

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kshell.sources.directory.log import Progress
    from kshell.spark.reconcile import BadBatches

NOW = Point()
_FEW = 64 << 20
"""Bytes that are compared on the driver: about as long as a session takes to start."""
_LITTLE = 1 << 20
"""Bytes of a cluster that are always compared there: about as long as a task takes to start."""
LEAST_CUT, MOST_CUT = 1 << 20, 64 << 20
_SLICES = 1 << 12


def clusters(
    sources: Iterable[str], cluster: str | None = None, failed: Failures | None = None
) -> dict[str, list[LogCopy]]:
    """Cluster id -> its copies. ``cluster``: of those that do not say. ``failed``: gets what cannot be listed.

    Raises SourceError, also where all that there is cannot be listed; UsageError.
    """
    if failed is None:
        return by_cluster(find(sources), cluster)
    unread: list[Unread] = []
    copies = find(sources, unread)
    add_unread(failed, unread, cluster)
    if not copies:
        raise first(failed)
    return by_cluster(copies, cluster)


def reconcile_all(
    copies: Mapping[str, Sequence[LogCopy]],
    state: WarehouseState,
    *,
    since: Point = NOW,
    until: Mapping[str, int | None] | None = None,
    spark: Callable[[], SparkSession] | None = None,
    progress: Progress | None = None,
    failed: Failures | None = None,
) -> list[ReconciledLog]:
    """Reconcile the log of each cluster, from where its tables are; ``until``: offsets by cluster.

    ``failed``: gets the clusters that cannot be planned, and the others are given; without it their error is raised.
    """
    tasks = [_task(name, cluster_copies, state, since, until) for name, cluster_copies in copies.items()]
    much = _much(tasks) if spark is not None else set()
    logs = _spread(spark, [task for task in tasks if task[0] in much], progress) if spark is not None and much else {}
    for number, task in enumerate(tasks):
        if task[0] not in logs:
            if progress is not None:
                progress(0, 0, f"planning: {task[0]}, {number + 1} of {len(tasks)}")
            logs[task[0]] = _tried(task)
    reconciled = []
    for name, log in ((name, logs[name]) for name in copies):
        if not isinstance(log, KshellError):
            reconciled.append(log)
        elif failed is None or not isinstance(log, _OF_ONE):
            raise log
        else:
            add_unplanned(failed, name, copies[name], log)
    return reconciled


def _much(tasks: Iterable[_Task]) -> set[str]:
    """The clusters of which so much is new that executors plan them; where together it is little, none."""
    weights = {name: bytes_to_plan(copies, checkpoint) for name, copies, checkpoint, *_ in tasks}
    return {name for name, size in weights.items() if size > _LITTLE} if sum(weights.values()) > _FEW else set()


def _spread(
    spark: Callable[[], SparkSession], tasks: Sequence[_Task], progress: Progress | None
) -> dict[str, _Planned]:
    """Reconcile those clusters, each in a task of its own."""
    if progress is not None:
        progress(0, 0, f"planning: {len(tasks)} clusters")
    from kshell.spark.steps.executor_work import gathered  # late: only many need it

    logs = gathered(spark(), [pickle.dumps(task) for task in tasks], planned)
    return {task[0]: log for task, log in zip(tasks, logs, strict=True)}


def replanner(
    copies: Mapping[str, Sequence[LogCopy]],
    state: WarehouseState,
    *,
    since: Point = NOW,
    until: Mapping[str, int | None] | None = None,
) -> Callable[[str, BadBatches, bool], ReconciledLog]:
    """Return what reconciles one of those clusters again, without batches that reading has shown to be damaged.

    Tables that were begun from scratch still are. It raises UnreadError where that cannot be done.
    """

    def make(name: str, bad: BadBatches, from_scratch: bool) -> ReconciledLog:
        try:
            return _reconcile(*_task(name, copies[name], state, since, until), _listed(copies[name], bad), from_scratch)
        except _OF_ONE as error:
            raise UnreadError(error.message, hint=error.hint, clusters={name: error.message}) from error

    return make


def _listed(copies: Sequence[LogCopy], bad: BadBatches) -> BadBatches:
    """Replace the file names that tables have by the paths of the files."""
    paths: dict[str, list[str]] = defaultdict(list)
    for path in (segment.path for copy in copies for segment in copy.listing.segments):
        paths[spelled(path)].append(path)
    return [(path, at, reason) for file, at, reason in bad for path in paths.get(file, [file])]


_Task = tuple[str, tuple[LogCopy, ...], Checkpoint | None, Point, int | None]
"""The arguments of reconciling one cluster: they travel to executors."""
_Planned = ReconciledLog | KshellError
"""What comes back."""
_OF_ONE = (SourceError, DataError)
"""Errors that are about the files of a cluster, and not about the others."""


def _task(
    name: str, copies: Sequence[LogCopy], state: WarehouseState, since: Point, until: Mapping[str, int | None] | None
) -> _Task:
    cluster_state = state.clusters.get(name)
    checkpoint = None if cluster_state is None else Checkpoint.from_json(cluster_state.reached)
    return name, tuple(copies), checkpoint, since, None if until is None else until.get(name, 0)


def _tried(task: _Task) -> _Planned:
    try:
        return _reconcile(*task)
    except _OF_ONE as error:  # the end of --timeout is none of them
        return error


def _reconcile(
    name: str,
    copies: Sequence[LogCopy],
    checkpoint: Checkpoint | None,
    since: Point,
    until: int | None,
    bad: BadBatches = (),
    from_scratch: bool = False,
) -> ReconciledLog:
    return reconcile(
        name,
        copies,
        checkpoint,
        since=since,
        until=until,
        cut=cut_of(copies),
        bad=tuple(bad),
        from_scratch=from_scratch,
    )


def cut_of(copies: Sequence[LogCopy]) -> int:
    """Bytes of a slice of a cluster: a log spreads evenly over tasks, in some thousand slices."""
    most = max((sum(size for _, size in files_of([copy], "auto")) for copy in copies), default=0)
    return min(max(most // _SLICES, LEAST_CUT), MOST_CUT)


def planned(task: bytes) -> _Planned:
    """Runs on the executors: a reconciled log, or the error in place of it."""
    try:
        return _reconcile(*pickle.loads(task))
    except KshellError as error:
        return error
