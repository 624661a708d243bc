"""Of which clusters a state is known at a point, and at which offset a time is: logs begin late, and have gaps.

Free of Spark: how far tables are says it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

Span = Sequence[int]
"""(first offset, offset after the last one, their times in ms since 1970): of ``state_ranges`` of a checkpoint."""


class StateAtPoint(NamedTuple):
    """The state that a point means is that after the record at ``offset``; whether it ``is_known``."""

    offset: int
    is_known: bool = True


def known_at(checkpoint: Mapping[str, Any], offset: int) -> StateAtPoint:
    """Whether the state after an offset is known. Before its first record a cluster has no topics and no brokers, and
    that is known.
    """
    ranges: Sequence[Span] = checkpoint["state_ranges"]
    if not ranges:
        return StateAtPoint(offset, is_known=False)
    spans = [(since - 1, to - 1) for since, to, *_ in ranges]
    if offset < spans[0][0]:
        return StateAtPoint(offset, ranges[0][0] <= 0)
    gaps = [(earlier[1], later[0]) for earlier, later in pairwise(spans)]
    if checkpoint["state_end"] < checkpoint["offset"]:
        gaps.append((spans[-1][1], checkpoint["offset"] - 1))
    return StateAtPoint(offset, not any(before < offset < after for before, after in gaps))


def known_by(checkpoint: Mapping[str, Any], time_ms: int, after: int | None) -> StateAtPoint:
    """What was the state at a time; ``after``: the first offset of a record that was written after it, if one was.

    The rule is the shell's (:func:`kshell.sources.points.offset_at`): the log counts up to that record, and a snapshot
    that holds more than the log before it counts if that was written by then. Where something is missing between what
    counts and what comes next, the state is known at the very time of the former only.
    """
    ranges: Sequence[Span] = checkpoint["state_ranges"]
    at = (checkpoint["offset"] if after is None else after) - 1
    counted = [span for span in ranges if _has_begun(span, time_ms, at, is_open=after is None)]
    if not counted:
        return StateAtPoint(at, is_known=False)
    since, to, _, last_ms = counted[-1]
    if after is not None and since - 1 <= at < to:
        return StateAtPoint(at)
    if after is None and not any(span[0] > max(at + 1, to) and span[2] > time_ms for span in ranges):
        return StateAtPoint(max(at, to - 1))  # nothing comes next
    is_last = at < to or any(first <= to and at < end for first, end in checkpoint["gaps"])
    return StateAtPoint(to - 1, is_last and time_ms == last_ms)


def _has_begun(span: Span, time_ms: int, at: int, *, is_open: bool) -> bool:
    """Whether a stretch counts, of a log that counts up to ``at``: either that goes on in it, or the snapshot that it
    begins with was written by then. ``is_open``: whether snapshots that end later count, too.
    """
    since, to, first_ms, _ = span
    if since == 0 or (since <= at and since < to):
        return True
    return 0 <= first_ms <= time_ms and (is_open or since - 1 <= at)
