"""The logs of several copies into one: what one of them lacks, another one has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kshell.spark.truth.copy_log import Log, Part, clipped
from kshell.spark.truth.values import ENDLESS


class Stretch(NamedTuple):
    """Offsets (``end`` exclusive) that are there without a break."""

    first: int
    end: int


def merged(logs: Sequence[Log]) -> Log:
    """The first log, and what the others have of the offsets that are missing in it; the earlier ones before."""
    parts = list(logs[0].parts)
    for other in logs[1:]:
        for first, after in list(_holes(parts)):
            if any(part.run.after > first and part.run.first < after for part in other.parts):
                parts += clipped(other, first, after).parts
        parts.sort(key=lambda part: part.run.first)
    made = Log(tuple(parts), frozenset())
    return made._replace(breaks=frozenset(_unhealed(made, logs)))


def _holes(parts: Sequence[Part]) -> Iterator[tuple[int, int]]:
    before = 0
    for part in parts:
        if part.run.first > before:
            yield before, part.run.first
        before = part.run.after
    yield before, ENDLESS


def _unhealed(made: Log, logs: Sequence[Log]) -> Iterator[int]:
    """Breaks that no other copy shows to be none: both sides come from the copy in which it is."""
    for log in logs:
        for at in log.breaks:
            sides = made.part_with(at - 1), made.part_with(at)
            its_own = [side is not None and log.part_with(side.run.first) is not None for side in sides]
            copies = {side.copy for side in sides if side is not None}
            others = (other for other in logs if other is not log)
            healed = any(one.first < at < one.end for other in others for one in stretches(other))
            if all(its_own) and len(copies) == 1 and log.parts[0].copy in copies and not healed:
                yield at


def stretches(log: Log) -> list[Stretch]:
    """The log where it is whole."""
    found: list[Stretch] = []
    for part in log.parts:
        first = part.run.first
        ends = sorted(at for at in log.breaks if first < at < part.run.after)
        for end in (*ends, part.run.after):
            if found and found[-1].end == first and first not in log.breaks:
                found[-1] = found[-1]._replace(end=end)
            else:
                found.append(Stretch(first, end))
            first = end
    return found
