"""Reconcile the logs of all clusters: on the driver if that is quick, else in tasks with one cluster each."""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from kshell.errors import DataError, KshellError, SourceError, UnreadError
from kshell.sources.points import Point
from kshell.spark.files.scan import LogCopy, Unread, files_of, find, spelled
from kshell.spark.reconcile import Checkpoint, ReconciledLog, Request, by_cluster, reconcile
from kshell.spark.steps.unread import UnreadErrors, add_unplanned, add_unread, first, is_blamed, readable
from kshell.spark.tables.steps import WarehouseState

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kshell.sources.directory.log import Progress
    from kshell.spark.reconcile import BadBatches

NOW = Point()
_WALK = 4
"""How much faster reading headers is than comparing copies. Measured with batches of 100 bytes, about the smallest:
125 MB against 27 MB per second. With larger batches headers are read even faster."""
_FEW = 64 << 20
"""Bytes of all clusters up to which the driver plans: comparing them takes about as long as starting a session."""
_LITTLE = 1 << 20
"""Bytes of one cluster up to which the driver always plans it: it takes about as long as starting a task."""
LEAST_CUT, MOST_CUT = 1 << 20, 64 << 20
"""Limits of the size of a slice, in bytes."""
_SLICES = 1 << 12
"""About the number of slices that a large log is cut into."""


def clusters(
    sources: Iterable[str], cluster: str | None = None, failed: UnreadErrors | None = None
) -> dict[str, list[LogCopy]]:
    """List the sources and group the copies by cluster id; ``cluster``: that of copies without ``meta.properties``.

    ``failed`` gets the copies that cannot be listed; if it is ``None``, the first such copy is an error.
    Raises SourceError, also if no copy at all can be listed; UsageError.
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
    failed: UnreadErrors | None = None,
) -> list[ReconciledLog]:
    """Reconcile the log of each cluster, from its checkpoint on.

    Args:
        copies: cluster id -> its copies.
        state: the state of the warehouse, with the checkpoints.
        since: where a cluster begins that has no checkpoint.
        until: cluster id -> the offset before which its log ends for this step; ``None``: read everything.
        spark: returns a session; without it the driver plans everything.
        failed: gets the copies that cannot be planned. The rest of their clusters is planned without them; if nothing
            is left, the cluster is left out. If it is ``None``, the error is raised.
    """
    tasks = {
        name: (tuple(cluster_copies), _request(name, cluster_copies, state, since, until))
        for name, cluster_copies in copies.items()
    }
    much = _much(tasks.values()) if spark is not None else set()
    logs = _spread(spark, [tasks[name] for name in tasks if name in much], progress) if spark and much else {}
    for number, (name, task) in enumerate(tasks.items()):
        if name not in logs:
            if progress is not None:
                progress(0, 0, f"planning: {name}, {number + 1} of {len(tasks)}")
            logs[name] = _tried(task)
    reconciled = []
    for name, (cluster_copies, request) in tasks.items():
        log, rest = logs[name], cluster_copies
        while isinstance(log, KshellError):
            if failed is None or not isinstance(log, _OF_ONE):
                raise log
            if not rest or is_blamed(failed.get(name, ()), log.message):
                break
            add_unplanned(failed, name, rest, log)
            rest = tuple(readable({name: rest}, failed)[name])
            log = _tried((rest, request)) if rest else log
        else:
            reconciled.append(log)
    return reconciled


def _much(tasks: Iterable[_Task]) -> set[str]:
    """Return the clusters that executors plan because much of them is new; none if all clusters together are small."""
    weights = {request.cluster_id: bytes_to_plan(copies, request.checkpoint) for copies, request in tasks}
    return {name for name, size in weights.items() if size > _LITTLE} if sum(weights.values()) > _FEW else set()


def bytes_to_plan(copies: Sequence[LogCopy], checkpoint: Checkpoint | None) -> int:
    """Estimate the cost of planning, in bytes that are read and compared; bytes of a lone copy count less.

    Several copies are read and compared, of a lone copy only headers are read. With a new copy all of them are read
    from their beginning (:func:`kshell.spark.reconcile.reconcile`). ``checkpoint``: how far the tables are, if at all.
    """
    if checkpoint is None or any(
        copy.path not in checkpoint.positions and copy.path not in checkpoint.excluded for copy in copies
    ):
        sizes = [sum(segment.size for segment in copy.listing.segments) for copy in copies]
    else:
        sizes = [_after(copy, checkpoint) for copy in copies if copy.path in checkpoint.positions]
    return sum(sizes) if len(sizes) > 1 else sum(sizes) // _WALK


def _after(copy: LogCopy, checkpoint: Checkpoint) -> int:
    """Return the bytes of a copy after its last batch in the tables; if that is gone, from the checkpoint's segment."""
    segments, place = copy.listing.segments, checkpoint.positions.get(copy.path)
    paths = [segment.path for segment in segments]
    if place and place[0] in paths:
        return sum(segment.size for segment in segments[paths.index(place[0]) :]) - int(place[1])
    bases: list[int | None] = [segment.base_offset for segment in segments]
    before = [index for index, base in enumerate(bases) if base is not None and base < checkpoint.offset]
    return sum(segment.size for segment in segments[before[-1] if before else 0 :])


def _spread(
    spark: Callable[[], SparkSession], tasks: Sequence[_Task], progress: Progress | None
) -> dict[str, _Planned]:
    """Reconcile clusters on the executors, each in a task of its own."""
    if progress is not None:
        progress(0, 0, f"planning: {len(tasks)} clusters")
    from kshell.spark.steps.executor_work import gathered  # late: only many need it

    logs = gathered(spark(), [pickle.dumps(task) for task in tasks], planned)
    return {request.cluster_id: log for (_, request), log in zip(tasks, logs, strict=True)}


def replanner(
    copies: Mapping[str, Sequence[LogCopy]],
    state: WarehouseState,
    *,
    since: Point = NOW,
    until: Mapping[str, int | None] | None = None,
) -> Callable[[str, BadBatches, bool], ReconciledLog]:
    """Return a function that reconciles one cluster again, without batches that turned out to be damaged.

    Its arguments are the cluster, the damaged batches, and whether the cluster's tables must start from scratch. It
    raises UnreadError if the cluster cannot be planned again.
    """

    def make(name: str, bad: BadBatches, from_scratch: bool) -> ReconciledLog:
        try:
            request = _request(name, copies[name], state, since, until)._replace(bad=_listed(copies[name], bad))
            return reconcile(copies[name], request, from_scratch=from_scratch)
        except _OF_ONE as error:
            raise UnreadError(error.message, hint=error.hint, clusters={name: error.message}) from error

    return make


def _listed(copies: Sequence[LogCopy], bad: BadBatches) -> BadBatches:
    """Replace file names as tables spell them (:func:`~kshell.spark.files.scan.spelled`) by the real paths."""
    paths: dict[str, list[str]] = defaultdict(list)
    for path in (segment.path for copy in copies for segment in copy.listing.segments):
        paths[spelled(path)].append(path)
    return tuple((path, at, reason) for file, at, reason in bad for path in paths.get(file, [file]))


_Task = tuple[tuple[LogCopy, ...], Request]
"""The arguments for reconciling one cluster, pickled for a task."""
_Planned = ReconciledLog | KshellError
"""The result of such a task."""
_OF_ONE = (SourceError, DataError)
"""Errors that concern the files of one cluster, so that other clusters can go on."""


def _request(
    name: str, copies: Sequence[LogCopy], state: WarehouseState, since: Point, until: Mapping[str, int | None] | None
) -> Request:
    cluster_state = state.clusters.get(name)
    checkpoint = None if cluster_state is None else Checkpoint.from_json(cluster_state.reached)
    end = None if until is None else until.get(name, 0)
    return Request(name, piece_bytes_of(copies), checkpoint, since, end)


def _tried(task: _Task) -> _Planned:
    try:
        return reconcile(*task)
    except _OF_ONE as error:  # the end of --timeout is none of them
        return error


def piece_bytes_of(copies: Sequence[LogCopy]) -> int:
    """Return the size of a cluster's slices in bytes, so that a large log has some thousand slices for its tasks."""
    most = max((sum(size for _, size in files_of([copy], "auto")) for copy in copies), default=0)
    return min(max(most // _SLICES, LEAST_CUT), MOST_CUT)


def planned(task: bytes) -> _Planned:
    """Reconcile one cluster on an executor; return its log, or the error instead of raising it."""
    try:
        return reconcile(*pickle.loads(task))
    except KshellError as error:
        return error
