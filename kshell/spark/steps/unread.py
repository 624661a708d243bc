"""Copies that could not be read: they become rows of the table ``copies``, and other copies go on without them.

Each commit lists them (``WarehouseState.failed``). So a step is made when the list changes, and a copy that can be read
again gets its former row back. Free of Spark.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kshell.errors import EXIT_OK, KshellError
from kshell.spark.files.scan import CopyOrigin, LogCopy, Unread
from kshell.spark.reconcile import cluster_of, copy_row
from kshell.spark.schemas import Row
from kshell.spark.tables.steps import WarehouseState

if TYPE_CHECKING:
    from kshell.spark.reconcile import ReconciledLog

UNREADABLE = "unreadable"
UnreadErrors = dict[str, dict[str, KshellError]]
"""Cluster -> path of a copy -> why it could not be read."""
UnreadReasons = Mapping[str, Mapping[str, str]]
"""Cluster -> path of a copy -> the message of the error, as a commit stores it."""


def add_unread(failed: UnreadErrors, unread: Iterable[Unread], default: str | None) -> None:
    """Add copies that could not be listed. ``default``: the cluster id of copies without ``meta.properties``."""
    for copy in unread:
        failed.setdefault(cluster_of(copy.path, copy.origin, default), {})[copy.path] = copy.error


def add_unplanned(failed: UnreadErrors, cluster: str, copies: Sequence[LogCopy], error: KshellError) -> None:
    """Add the copies of a cluster that could not be reconciled: those that the error names, else all of them."""
    blamed = [copy.path for copy in copies if is_blamed((copy.path,), error.message)] or [copy.path for copy in copies]
    failed.setdefault(cluster, {}).update(dict.fromkeys(blamed, error))


def is_blamed(paths: Iterable[str], why: str) -> bool:
    """Whether an error message begins with one of some copies' paths, or a file below it."""
    return any(why.startswith((f"{path}:", f"{path}/")) for path in paths)


def first(failed: UnreadErrors) -> KshellError:
    """Return the first error, to be raised if nothing at all could be read."""
    return next(error for copies in failed.values() for error in copies.values())


def exit_code(failed: UnreadErrors) -> int:
    """Return the highest exit code of the errors."""
    return max((error.exit_code for copies in failed.values() for error in copies.values()), default=EXIT_OK)


def reasons_of(failed: UnreadErrors) -> UnreadReasons:
    """Return the messages of the errors as a commit stores them, by cluster and path, sorted."""
    return {name: {path: error.message for path, error in sorted(failed[name].items())} for name in sorted(failed)}


def attributed(failed: UnreadErrors, copies: Mapping[str, Sequence[LogCopy]], state: WarehouseState) -> UnreadErrors:
    """Return the errors by the clusters of the tables, where these have a copy that is there, or below, and not listed.

    Whose copy it is cannot be read where nobody may read ``meta.properties``, or search a directory around it.
    """
    if not failed:
        return {}
    listed = {copy.path for cluster_copies in copies.values() for copy in cluster_copies}
    known = [
        (path, name)
        for name, cluster in state.clusters.items()
        for path in (*cluster.reached["positions"], *cluster.reached["excluded"], *state.failed.get(name, ()))
        if path not in listed
    ]
    attributed: UnreadErrors = {}
    for name, errors in failed.items():
        for place, error in errors.items():
            for path, cluster in [pair for pair in known if is_blamed((place,), f"{pair[0]}:")] or [(place, name)]:
                attributed.setdefault(cluster, {})[path] = error
    return attributed


def known_clusters(copies: Mapping[str, Sequence[LogCopy]], failed: UnreadErrors) -> set[str]:
    """Return the clusters of listed copies and of unreadable ones, but for those whose cluster nobody can tell."""
    return {
        *copies,
        *(name for name in failed for path in failed[name] if name != cluster_of(path, CopyOrigin(None, None))),
    }


def readable(copies: Mapping[str, Sequence[LogCopy]], failed: UnreadErrors) -> dict[str, list[LogCopy]]:
    """Return the copies that could be read, by cluster."""
    return {
        name: [copy for copy in cluster_copies if copy.path not in failed.get(name, ())]
        for name, cluster_copies in copies.items()
    }


def with_unread(log: ReconciledLog, reasons: UnreadReasons) -> ReconciledLog:
    """Add the unreadable copies of its cluster to a reconciled log."""
    return log._replace(copies=log.copies + tuple(rows(log.cluster_id, reasons)))


def after(
    state: WarehouseState, inspected: Collection[str], reasons: UnreadReasons, read: Iterable[str] = ()
) -> UnreadReasons:
    """Return the next commit's unreadable copies: ``reasons`` and, of clusters not inspected, the last commit's.

    ``read``: the paths of copies that were read. One that is there, or below, is not repeated, nor is one of
    ``reasons``: it was of an unknown cluster as long as nobody could read whose it was.
    """
    places = [f"{path}:" for path in (*read, *(path for copies in reasons.values() for path in copies))]
    merged = dict(reasons)
    for name, copies in state.failed.items():
        rest = {path: why for path, why in copies.items() if not any(is_blamed((path,), place) for place in places)}
        if rest and name not in inspected:
            merged[name] = rest
    return {name: merged[name] for name in sorted(merged)}


def rows(cluster: str, reasons: UnreadReasons) -> list[Row]:
    """Return the unreadable copies of a cluster as rows of the table ``copies``."""
    copies = reasons.get(cluster, {})
    return [copy_row(cluster, path, state=UNREADABLE, reason=reason, damage=[]) for path, reason in copies.items()]


def is_unread(copy: Mapping[str, Any]) -> bool:
    """Whether a row of ``copies`` is that of an unreadable copy."""
    return bool(copy.get("state") == UNREADABLE)


def rows_again(state: WarehouseState, cluster: str, reasons: UnreadReasons) -> list[Row]:
    """Return all rows of ``copies`` for a cluster without new records: unreadable copies, and the rest unchanged."""
    checkpoint = state.clusters[cluster].reached if cluster in state.clusters else {}
    rows_before = {
        **checkpoint.get("copy_rows", {}),
        **{path: excluded["row"] for path, excluded in checkpoint.get("excluded", {}).items()},
    }
    rest = [row for path, row in sorted(rows_before.items()) if path not in reasons.get(cluster, {})]
    return [*rest, *rows(cluster, reasons)]
