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
Told = Mapping[str, Mapping[str, str]]
"""The same in words."""


def add_unread(failed: Failures, unread: Iterable[Unread], given: str | None) -> None:
    """What was found and could not be listed. ``given``: the cluster of what does not say it."""
    for one in unread:
        failed.setdefault(cluster_of(one.path, one.origin, given), {})[one.path] = one.error


def add_unplanned(failed: Failures, cluster: str, copies: Sequence[LogCopy], error: KshellError) -> None:
    """A cluster of which there is no truth: by the copy that the error is about, else by all of them."""
    blamed = [one.path for one in copies if is_blamed((one.path,), error.message)] or [one.path for one in copies]
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


def words(failed: Failures) -> Told:
    """As a commit has them, sorted."""
    return {name: {path: error.message for path, error in sorted(failed[name].items())} for name in sorted(failed)}


def with_unread(truth: ReconciledLog, told: Told) -> ReconciledLog:
    """With the copies that its cluster has besides."""
    return truth._replace(copies=truth.copies + tuple(rows(truth.cluster_id, told)))


def after(state: State, looked: Collection[str], told: Told) -> Told:
    """What the next commit has: of clusters that nobody looked at, what the last one had."""
    made = {name: copies for name, copies in state.failed.items() if name not in looked} | {**told}
    return {name: made[name] for name in sorted(made)}


def rows(cluster: str, told: Told) -> list[Row]:
    """Rows of the table ``copies``."""
    copies = told.get(cluster, {})
    return [copy_row(cluster, path, state=UNREADABLE, reason=reason, damage=[]) for path, reason in copies.items()]


def is_unread(copy: Mapping[str, Any]) -> bool:
    """Whether a row of ``copies`` is such a one."""
    return bool(copy.get("state") == UNREADABLE)


def rows_again(state: State, cluster: str, told: Told) -> list[Row]:
    """All rows that the table has of a cluster of which nothing else is new: the other copies are as they were."""
    reached = state.clusters[cluster].reached if cluster in state.clusters else {}
    known = {**reached.get("copy_rows", {}), **{path: one["row"] for path, one in reached.get("excluded", {}).items()}}
    others = [row for path, row in sorted(known.items()) if path not in told.get(cluster, {})]
    return [*others, *rows(cluster, told)]
