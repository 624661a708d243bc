"""Copies and clusters that could not be read: rows of the table ``copies``, and no reason to leave out the others.

Free of Spark. A commit has them (``State.failed``), so that a step is made where they become others, and the rows of
the copies are what they were once they can be read again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kshell.errors import EXIT_OK, KshellError
from kshell.spark.files.scan import LogCopy, Unread
from kshell.spark.reconcile import cluster_of, copy_row
from kshell.spark.reconcile.inventory import Row
from kshell.spark.tables.steps import State

if TYPE_CHECKING:
    from kshell.spark.reconcile import ReconciledLog

UNREADABLE = "unreadable"
Failures = dict[str, dict[str, KshellError]]
"""Cluster -> path of a copy -> why it could not be read."""
UnreadReasons = Mapping[str, Mapping[str, str]]
"""The same in words."""


def add_unread(failed: Failures, unread: Iterable[Unread], default: str | None) -> None:
    """Add copies that could not be listed. ``default``: the cluster of copies without ``meta.properties``."""
    for copy in unread:
        failed.setdefault(cluster_of(copy.path, copy.origin, default), {})[copy.path] = copy.error


def add_unplanned(failed: Failures, cluster: str, copies: Sequence[LogCopy], error: KshellError) -> None:
    """A cluster of which there is no truth: by the copy that the error is about, else by all of them."""
    blamed = [copy.path for copy in copies if is_blamed((copy.path,), error.message)] or [copy.path for copy in copies]
    failed.setdefault(cluster, {}).update(dict.fromkeys(blamed, error))


def is_blamed(paths: Iterable[str], why: str) -> bool:
    """Whether what an error says is about one of those copies, or a file of it."""
    return any(why.startswith((f"{path}:", f"{path}/")) for path in paths)


def first(failed: Failures) -> KshellError:
    """The error to raise where nothing at all could be read."""
    return next(error for copies in failed.values() for error in copies.values())


def exit_code(failed: Failures) -> int:
    """The highest of theirs."""
    return max((error.exit_code for copies in failed.values() for error in copies.values()), default=EXIT_OK)


def reasons_of(failed: Failures) -> UnreadReasons:
    """As a commit has them, sorted."""
    return {name: {path: error.message for path, error in sorted(failed[name].items())} for name in sorted(failed)}


def with_unread(truth: ReconciledLog, reasons: UnreadReasons) -> ReconciledLog:
    """With the copies that its cluster has besides."""
    return truth._replace(copies=truth.copies + tuple(rows(truth.cluster_id, reasons)))


def after(state: State, inspected: Collection[str], reasons: UnreadReasons) -> UnreadReasons:
    """What the next commit has: of clusters that nobody looked at, what the last one had."""
    merged = {name: copies for name, copies in state.failed.items() if name not in inspected} | {**reasons}
    return {name: merged[name] for name in sorted(merged)}


def rows(cluster: str, reasons: UnreadReasons) -> list[Row]:
    """Rows of the table ``copies``."""
    copies = reasons.get(cluster, {})
    return [copy_row(cluster, path, state=UNREADABLE, reason=reason, damage=[]) for path, reason in copies.items()]


def is_unread(copy: Mapping[str, Any]) -> bool:
    """Whether a row of ``copies`` is such a one."""
    return bool(copy.get("state") == UNREADABLE)


def rows_again(state: State, cluster: str, reasons: UnreadReasons) -> list[Row]:
    """All rows that the table has of a cluster of which nothing else is new: the other copies are as they were."""
    checkpoint = state.clusters[cluster].reached if cluster in state.clusters else {}
    rows_before = {
        **checkpoint.get("copy_rows", {}),
        **{path: excluded["row"] for path, excluded in checkpoint.get("excluded", {}).items()},
    }
    rest = [row for path, row in sorted(rows_before.items()) if path not in reasons.get(cluster, {})]
    return [*rest, *rows(cluster, reasons)]
