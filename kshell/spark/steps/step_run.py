"""What is new of clusters into a warehouse: planned, and taken in; again where files change meanwhile."""

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
from kshell.spark.steps.unread import Failures, add_unplanned, is_blamed

if TYPE_CHECKING:
    from kshell.sources.directory.log import Progress
    from kshell.spark.tables.warehouse import Warehouse

_ATTEMPTS = 4
_NOBODY = ""
"""In place of a cluster, where nobody knows of which one files could not be read."""
_PAUSE = 1.0
"""Seconds: a server that deletes or truncates is done by then, and a store that refuses may have come back."""


def run_step(
    warehouse: Warehouse,
    copies: Mapping[str, Sequence[LogCopy]],
    *,
    since: Point = NOW,
    until: Mapping[str, int | None] | None = None,
    progress: Progress | None = None,
    failed: Failures | None = None,
    planned: Callable[[Sequence[ReconciledLog], Failures], None] | None = None,
) -> Summary:
    """One step with what is new of the clusters; the caller is the warehouse's only writer. ``failed``: what
    could not be listed; it gets what cannot be planned, too. ``planned``: told of what is to be read, and of what
    cannot be, before anything is.

    Files that are not there any more when they are read, or are not what they were, are listed and planned again: what
    was read of them does not count. Clusters with which that happens again and again are left out, as those that cannot
    be planned: ``planned`` says whether what is left is worth a step. Raises UnreadError where nobody knows which they
    are, and KshellError.
    """
    unlisted = {name: dict(errors) for name, errors in (failed or {}).items()}
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
        replan = replanner(copies, state, since=since, until=until)
        try:
            return advance(warehouse, logs, progress=progress, replan=replan, failed=failed)
        except UnreadError as error:
            attempts.update(list(error.clusters) or [_NOBODY])
            if attempts[_NOBODY] >= _ATTEMPTS:
                raise
            # What could not be read the last time is not tried again and again, at the cost of the others.
            refused = {name for name, why in error.clusters.items() if is_blamed(state.failed.get(name, ()), why)}
            given_up = [name for name in error.clusters if attempts[name] >= _ATTEMPTS or name in refused]
            for name in given_up:
                add_unplanned(unlisted, name, copies[name], UnreadError(error.clusters[name], hint=error.hint))
        time.sleep(_PAUSE)
        copies = {
            name: _listed_again(cluster_copies) for name, cluster_copies in copies.items() if name not in given_up
        }


def _listed_again(copies: Sequence[LogCopy]) -> Sequence[LogCopy]:
    """List copies again; planning reports what is wrong with those that cannot be listed any more."""
    try:
        return list_again(copies)
    except SourceError:
        return copies
