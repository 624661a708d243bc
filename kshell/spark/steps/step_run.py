"""Run one step from listed copies to a commit: plan, read and write; start again if files change meanwhile."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from kshell.errors import SourceError, UnreadError
from kshell.sources.points import Point
from kshell.spark.files.scan import LogCopy, list_again
from kshell.spark.reconcile import ReconciledLog
from kshell.spark.steps.planning import NOW, reconcile_all, replanner
from kshell.spark.steps.step import Summary, advance
from kshell.spark.steps.unread import UnreadErrors, add_unplanned, attributed, is_blamed, readable

if TYPE_CHECKING:
    from kshell.sources.directory.log import Progress
    from kshell.spark.tables.warehouse import Warehouse

_ATTEMPTS = 4
"""How often a cluster is tried before the step goes on without it."""
_NOBODY = ""
"""Counts attempts that failed for files of an unknown cluster."""
_PAUSE = 1.0
"""Seconds between attempts: a server has finished deleting or truncating by then, and a store may be back."""


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
    unlisted = attributed(failed or {}, copies, warehouse.state)
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
        replan = replanner(readable(copies, failed), state, since=since, until=until)
        try:
            return advance(warehouse, logs, progress=progress, replan=replan, failed=failed)
        except UnreadError as error:
            attempts.update(list(error.clusters) or [_NOBODY])
            if attempts[_NOBODY] >= _ATTEMPTS:
                raise
            # A copy that the last step could not read gets one attempt only, so that other clusters do not wait for it.
            refused = {name for name, why in error.clusters.items() if is_blamed(state.failed.get(name, ()), why)}
            given_up = [name for name in error.clusters if attempts[name] >= _ATTEMPTS or name in refused]
            for name in given_up:
                add_unplanned(unlisted, name, copies[name], UnreadError(error.clusters[name], hint=error.hint))
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
