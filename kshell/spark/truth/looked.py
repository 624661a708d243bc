"""What the copies of a cluster hold, from where its tables are or from the beginning, and the one log of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from kshell.sources.directory import without_collector
from kshell.spark.files.plan import FilePlan
from kshell.spark.files.scan import Found
from kshell.spark.truth.copy_log import Bad, Log, clipped, log_of, plan
from kshell.spark.truth.members import Judged, Member, judge
from kshell.spark.truth.merge import merged
from kshell.spark.truth.run_parts import whole_at
from kshell.spark.truth.values import ENDLESS, Reached


class Looked(NamedTuple):
    """``plans``, ``logs``: place of a copy -> what was found; those that are known to be of another history have none.

    ``believed``: (place, offset before which its log counts), the reference first. ``judged``: with more than one copy,
    in the order of ``read``. ``went_on``: whether only what comes after the tables was looked at.
    """

    copies: tuple[Found, ...]
    read: tuple[int, ...]
    plans: Mapping[int, list[FilePlan]]
    logs: Mapping[int, Log]
    believed: tuple[tuple[int, int], ...]
    log: Log
    judged: Judged | None
    members: tuple[Member, ...]
    excluded: Mapping[str, Mapping[str, Any]]
    went_on: bool


def look(copies: Sequence[Found], reached: Reached | None, cut: int, bad: Bad) -> Looked:
    """Reads several copies, plans one by its headers. Raises FileNotFoundError (list again), SourceError."""
    excluded = (
        {} if reached is None else {one.path: reached.excluded[one.path] for one in copies if _is_out(one, reached)}
    )
    read = tuple(place for place, one in enumerate(copies) if one.path not in excluded)
    goes_on = reached is not None and all(copies[place].path in reached.places for place in read)
    plans = {place: _planned(copies[place], reached if goes_on else None, cut) for place in read}
    judged, members = None, []
    believed: tuple[tuple[int, int], ...] = tuple((place, ENDLESS) for place in read)
    if len(read) > 1:
        known = reached.offset if reached is not None and goes_on else -1
        with without_collector():
            members = [Member(copies[place], plans[place], cut, known) for place in read]
            judged = judge(members)
        plans = {place: member.plans for place, member in zip(read, members, strict=True)}
        believed = tuple((read[index], limit) for index, limit in judged.believed)
    logs = {place: log_of(place, plans[place], bad) for place in read}
    counted = [clipped(logs[place], 0, limit) for place, limit in believed]
    log = merged(counted) if counted else Log((), frozenset())
    return Looked(tuple(copies), read, plans, logs, believed, log, judged, tuple(members), excluded, goes_on)


def _planned(found: Found, reached: Reached | None, cut: int) -> list[FilePlan]:
    if reached is None:
        return plan(found, None, None, cut)
    return plan(found, reached.places.get(found.path), reached.offset, cut)


def _is_out(found: Found, reached: Reached) -> bool:
    """Whether a copy was of another history, and what shows it is still there."""
    told = reached.excluded.get(found.path)
    if told is None:
        return False
    sizes = {segment.path: segment.size for segment in found.listing.segments}
    path, position = told["file"], told["position"]
    if path not in sizes:
        return False
    batch = whole_at(path, sizes[path], position)
    return batch is not None and batch.crc == told["crc"]
