"""What is known of a cluster's copies from the last time, so that only what is new of them is read and compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from kshell.spark.files.plan import FilePlan
from kshell.spark.files.scan import Found
from kshell.spark.truth.copy_log import log_of, plan
from kshell.spark.truth.run_parts import last_of, whole_at
from kshell.spark.truth.values import Reached


class Known(NamedTuple):
    """A copy is the same as the tables from offset ``since`` to before ``to``: ``to`` is the end of the batch with
    which reading goes on, ``since`` ``None`` where nothing was compared. ``row``: what was told of it.
    """

    since: int | None
    to: int
    row: Mapping[str, Any]


def before(copies: Sequence[Found], plans: Mapping[int, list[FilePlan]], reached: Reached) -> dict[int, Known]:
    """Place of a copy -> what is known of it, where its plan goes on with the batch that the tables end with."""
    made = {}
    for place, files in plans.items():
        path = copies[place].path
        row, told = reached.rows.get(path, {}), reached.places.get(path)
        if told and files and files[0].path == told[0] and files[0].runs and files[0].runs[0].start == told[1]:
            batch = whole_at(files[0].path, files[0].size, told[1])
            if batch is not None:
                made[place] = Known(row.get("sameFrom"), batch.after, row)
    return made


def widened(
    copies: Sequence[Found], plans: Mapping[int, list[FilePlan]], known: Mapping[int, Known], cut: int
) -> dict[int, list[FilePlan]]:
    """The plan of the copy that is ahead, from where another one ended that has news and would not come near to it.

    Empty where that is not needed: copies that did not grow are as they were, others mostly meet.
    """
    logs = {place: log_of(place, files) for place, files in plans.items()}
    ends = {place: _last(log.parts[-1]) for place, log in logs.items() if log.parts}
    if not ends:
        return {}
    ahead = max(ends, key=lambda place: ends[place])
    first = logs[ahead].parts[0].run.first
    news = [
        known[place].to
        for place, (_, end) in ends.items()
        if place in known and known[place].to < end <= first and known[place].row.get("endOffset") != end
    ]
    return {ahead: plan(copies[ahead], None, min(news), cut)} if news else {}


def _last(part: Any) -> tuple[int, int]:
    """The epoch of the last batch, and the offset after it."""
    batch = last_of(part.path, part.run)
    return batch.epoch, batch.after


# --- what was told of damage ------------------------------------------------------------------------------------------


def sign(found: Found, path: str, position: int) -> int | None:
    """How a finding is known again: the CRC of the batch at its byte, ``None`` where no good one begins; without a byte
    of a snapshot its size, of a segment where the one before it begins.
    """
    size = sizes(found).get(path)
    if size is None:
        return None
    if position < 0:
        segments = [segment.path for segment in found.listing.segments]
        return size if path not in segments else _base_before(found, segments.index(path))
    batch = whole_at(path, size, position)
    return None if batch is None else batch.crc


def still_told(found: Found, told: Sequence[Sequence[Any]]) -> Iterator[Sequence[Any]]:
    """The findings of a copy that are as they were: their file is there, and what is at that byte is the same."""
    there = sizes(found)
    return (one for one in told if one[0] in there and sign(found, one[0], one[1]) == one[4])


def is_mended(found: Found, told: Sequence[Sequence[Any]]) -> bool:
    """Whether something else is where the log of a copy was damaged. (A snapshot is looked at when it is asked for.)"""
    segments = {segment.path for segment in found.listing.segments}
    listed = [one for one in told if one[0] in segments]
    return len(listed) > sum(1 for _ in still_told(found, listed))


def _base_before(found: Found, index: int) -> int | None:
    return found.listing.segments[index - 1].base_offset if index else None


def sizes(found: Found) -> dict[str, int]:
    """The bytes of a copy's files, by path."""
    segments, snapshots = found.listing.segments, found.listing.snapshots
    return {one.path: one.size for one in segments} | {one.path: one.size for one in snapshots}
