"""What the copies of a cluster hold, from where its tables are or from the beginning, and the one log of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from kshell.sources.directory.source import without_collector
from kshell.spark.files.plan import FilePlan
from kshell.spark.files.scan import Found
from kshell.spark.truth.copy_log import Bad, Log, clipped, everywhere, is_there, log_of, plan, without
from kshell.spark.truth.judged import Judged, judge
from kshell.spark.truth.known import Known, before, is_mended, sizes, widened
from kshell.spark.truth.members import Member
from kshell.spark.truth.merge import merged
from kshell.spark.truth.run_parts import whole_at
from kshell.spark.truth.values import ENDLESS, Reached


class Looked(NamedTuple):
    """``plans``, ``logs``: place of a copy -> what was found; those that are known to be of another history have none.

    ``believed``: (place, offset before which its log counts), the reference first. ``judged``: with more than one copy,
    in the order of ``read``. ``known``: place of a copy -> what of it was compared before. ``went_on``: whether only
    what comes after the tables was looked at.
    """

    copies: tuple[Found, ...]
    read: tuple[int, ...]
    plans: Mapping[int, list[FilePlan]]
    logs: Mapping[int, Log]
    believed: tuple[tuple[int, int], ...]
    log: Log
    judged: Judged | None
    members: tuple[Member, ...]
    known: Mapping[int, Known]
    excluded: Mapping[str, Mapping[str, Any]]
    went_on: bool


def look(copies: Sequence[Found], reached: Reached | None, cut: int, bad: Bad) -> Looked:
    """Reads several copies, plans one by its headers. Raises FileNotFoundError (list again), SourceError."""
    excluded = _excluded(copies, reached) if reached is not None else {}
    read = tuple(place for place, one in enumerate(copies) if one.path not in excluded)
    start = reached if reached is not None and _goes_on([copies[place] for place in read], reached) else None
    plans = _without({place: _planned(copies[place], start, cut) for place in read}, bad)
    judged, members, known = None, [], dict[int, Known]()
    believed: tuple[tuple[int, int], ...] = tuple((place, ENDLESS) for place in read)
    if len(read) > 1:
        if start is not None:
            known = before(copies, plans, start)
            if wider := widened(copies, plans, known, cut):
                plans = _without(plans | wider, bad)
        with without_collector():
            members = [Member(copies[place], plans[place], cut, known.get(place), start) for place in read]
            for member, place in zip(members, read, strict=True):
                member.is_trusted = reached is not None and is_there(copies[place], reached.places.get(member.path))
            judged = judge(members, (start.committed if start is not None else None) or 0)
        plans = {place: member.plans for place, member in zip(read, members, strict=True)}
        believed = tuple((read[index], limit) for index, limit in judged.believed)
    logs = {place: log_of(place, plans[place]) for place in read}
    counted = [clipped(logs[place], 0, limit) for place, limit in believed]
    log = merged(counted) if counted else Log((), frozenset())
    return Looked(
        tuple(copies), read, plans, logs, believed, log, judged, tuple(members), known, excluded, start is not None
    )


def _goes_on(copies: Iterable[Found], reached: Reached) -> bool:
    """Whether what comes after the tables is all that is new: every copy was there, and none was mended."""
    return all(one.path in reached.places and not is_mended(one, reached.told.get(one.path, ())) for one in copies)


def _without(plans: Mapping[int, list[FilePlan]], bad: Bad) -> dict[int, list[FilePlan]]:
    """The plans, in none of which the damaged batches are."""
    bad = everywhere([file for files in plans.values() for file in files], bad) if bad and len(plans) > 1 else bad
    return {place: [without(one, bad) for one in files] for place, files in plans.items()}


def _planned(found: Found, start: Reached | None, cut: int) -> list[FilePlan]:
    if start is None:
        return plan(found, None, None, cut)
    return plan(found, start.places.get(found.path), start.offset, cut)


def _excluded(copies: Sequence[Found], reached: Reached) -> dict[str, Mapping[str, Any]]:
    """The copies that are known to be of another history: one that is new may be of that one, too."""
    if any(one.path not in reached.places and one.path not in reached.excluded for one in copies):
        return {}
    return {one.path: reached.excluded[one.path] for one in copies if _is_out(one, reached)}


def _is_out(found: Found, reached: Reached) -> bool:
    """Whether a copy was of another history, and what shows it is still there.

    One that had no offset in common is looked at again once it may have.
    """
    told = reached.excluded.get(found.path)
    if told is None:
        return False
    if told["until"] is not None and reached.offset > told["until"]:
        return False
    there, path = sizes(found), told["file"]
    if path not in there:
        return False
    batch = whole_at(path, there[path], told["position"])
    return batch is not None and batch.crc == told["crc"]
