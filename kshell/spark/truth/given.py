"""The slices of a truth: each offset once, a base snapshot before the log that goes on from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kshell.spark.files.pack import Slice
from kshell.spark.files.pack import parts as runs_of_about
from kshell.spark.files.plan import FilePlan
from kshell.spark.files.scan import Found, Origin
from kshell.spark.truth.bases import Base
from kshell.spark.truth.copy_log import Part


def slices(
    cluster_id: str, copies: Sequence[Found], parts: Iterable[Part], bases: Sequence[Base], cut: int
) -> Iterator[Slice]:
    """Slices of about ``cut`` bytes, findings left out."""
    waiting = list(bases)
    group: list[Part] = []
    for part in parts:
        due = [base for base in waiting if base.end < part.run.after]
        if group and (due or group[0].path != part.path or part.run.end - group[0].run.start > cut + cut // 4):
            yield _slice(cluster_id, copies, group)
            group = []
        for base in due:
            waiting.remove(base)
            yield from _snapshot(cluster_id, copies, base, cut)
        group.append(part)
    if group:
        yield _slice(cluster_id, copies, group)
    for base in waiting:
        yield from _snapshot(cluster_id, copies, base, cut)


def _origin(cluster_id: str, copies: Sequence[Found], copy: int) -> Origin:
    return copies[copy].origin._replace(cluster_id=cluster_id)


def _slice(cluster_id: str, copies: Sequence[Found], group: list[Part]) -> Slice:
    first, runs = group[0], tuple(part.run for part in group)
    return Slice(_origin(cluster_id, copies, first.copy), FilePlan(first.path, first.size, False, runs))


def _snapshot(cluster_id: str, copies: Sequence[Found], base: Base, cut: int) -> Iterator[Slice]:
    origin = _origin(cluster_id, copies, base.copy)
    for some in runs_of_about(base.plan.runs, cut):
        yield Slice(origin, base.plan._replace(runs=some))
