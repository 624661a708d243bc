"""What each partition held over time, out of the rows of ``timeline``; nothing is drawn here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kshell.engine.result import Row
from kshell.plots.base import look, moments
from kshell.plots.base.picture import number

NOBODY = -1
_EXACT = 100
"""Spans of a lane up to which each is drawn as it is."""


class Span(NamedTuple):
    """From ``start`` (epoch milliseconds) to ``end``; ``None``: it lasts. ``in_sync`` is ``None`` if nobody tells."""

    start: float
    end: float | None
    leader: int
    in_sync: int | None
    replicas: int

    @property
    def share(self) -> float:
        """Of the replicas, how many are in sync: 0 to 1. Unknown counts as all."""
        return 1.0 if self.in_sync is None else min(1.0, self.in_sync / max(self.replicas, 1))

    def length(self, last: float) -> float:
        """In milliseconds; what lasts, up to ``last``."""
        return max(0.0, (last if self.end is None else self.end) - self.start)


class Lane(NamedTuple):
    """A partition: its name as rows have it, and its spans, oldest first. Between them it was not there."""

    name: str
    spans: Sequence[Span]

    @property
    def is_dense(self) -> bool:
        """Whether it has more spans than are drawn one by one."""
        return len(self.spans) > _EXACT

    def binned(self, start: float, last: float, columns: int) -> Lane:
        """Of very many spans, a stretch a column: no leader before any, then the last one; the smallest ISR."""
        if not self.is_dense:
            return self
        length = max(last - start, 1.0)
        cells: list[Span | None] = [None] * columns
        for span in self.spans:
            first = min(columns - 1, max(0, int((span.start - start) / length * columns)))
            end = last if span.end is None else span.end
            for at in range(first, max(first, min(columns - 1, int((end - start) / length * columns - 1e-9))) + 1):
                cells[at] = _worst(cells[at], span)
        edges = [start + length * at / columns for at in range(columns + 1)]
        joined: list[Span] = []
        for at, cell in enumerate(cells):
            if cell is None:
                continue
            before = joined[-1] if joined else None
            if before is not None and before.end == edges[at] and before[2:] == cell[2:]:
                joined[-1] = before._replace(end=edges[at + 1])
            else:
                joined.append(cell._replace(start=edges[at], end=edges[at + 1]))
        if joined and self.spans[-1].end is None:
            joined[-1] = joined[-1]._replace(end=None) if joined[-1][2:] == self.spans[-1][2:] else joined[-1]
            if joined[-1].end is not None:
                joined.append(self.spans[-1]._replace(start=last))
        return Lane(self.name, joined)


def _worst(old: Span | None, new: Span) -> Span:
    if old is None:
        return new
    leader = NOBODY if NOBODY in (old.leader, new.leader) else new.leader
    smaller = min(old, new, key=lambda span: span.share)
    return new._replace(leader=leader, in_sync=smaller.in_sync, replicas=smaller.replicas)


def of(rows: Sequence[Row]) -> tuple[list[Lane], float, float]:
    """Lanes in the order of the rows; when the first begins; the last change (epoch milliseconds)."""
    found: dict[tuple[str, str], list[Span]] = {}
    for row in rows:
        start = number(row["fromTimeMs"])
        if start is None:
            continue
        leader, in_sync = number(row["leader"]), number(row["isrSize"])
        span = Span(
            start,
            number(row["toTimeMs"]),
            NOBODY if leader is None or leader < 0 else int(leader),
            None if in_sync is None else int(in_sync),
            len(row["replicas"] or ()),
        )
        found.setdefault((str(row["topic"]), str(row["partition"])), []).append(span)
    lanes = [Lane(f"{topic}-{partition}", sorted(spans, key=_begin)) for (topic, partition), spans in found.items()]
    times = [time for lane in lanes for span in lane.spans for time in (span.start, span.end) if time is not None]
    return lanes, min(times, default=0.0), max(times, default=0.0)


def _begin(span: Span) -> float:
    return span.start


def without_leader(lane: Lane, last: float) -> float:
    """For how long (milliseconds); a little for what lasts since the last change."""
    return sum(span.length(last) + 1 for span in lane.spans if span.leader == NOBODY)


def _short(lane: Lane, last: float) -> float:
    return sum((span.length(last) + 1) * (1 - span.share) for span in lane.spans)


def worst(lanes: Sequence[Lane], most: int, last: float) -> list[Lane]:
    """Those to draw, in their order: longest without a leader, then longest short of replicas, then the first."""
    if len(lanes) <= most:
        return list(lanes)
    order = sorted(range(len(lanes)), key=lambda at: (-without_leader(lanes[at], last), -_short(lanes[at], last), at))
    return [lanes[at] for at in sorted(order[:most])]


def facts(lanes: Sequence[Lane], last: float) -> list[str]:
    """What there is to see, the worst first."""
    found = _leaderless(lanes, last)
    open_ends = [lane.spans[-1] for lane in lanes if lane.spans[-1].end is None]
    short = sum(span.share < 1 for span in open_ends)
    if short:
        found.append(f"{short:,} of {len(open_ends):,} not fully in sync at the end")
    elif open_ends:
        found.append("all in sync at the end")
    changes = sum(
        one.leader != two.leader and two.leader != NOBODY
        for lane in lanes
        for one, two in zip(lane.spans, lane.spans[1:], strict=False)
    )
    return [*found, look.counted(changes, "change of leader", "changes of leader")] if changes else found


def _leaderless(lanes: Sequence[Lane], last: float) -> list[str]:
    lost = [lane for lane in lanes if lane.spans[-1].end is None and lane.spans[-1].leader == NOBODY]
    ever = [lane for lane in lanes if any(span.leader == NOBODY for span in lane.spans)]
    if not ever:
        return ["none was ever without a leader"]
    found = []
    if lost:
        found.append(f"{_name(lost)} {'has' if len(lost) == 1 else 'have'} no leader at the end")
    if len(ever) > len(lost):
        longest = max(ever, key=lambda lane: without_leader(lane, last))
        spell = max((span.length(last) for span in longest.spans if span.leader == NOBODY), default=0.0)
        again = [lane for lane in ever if lane not in lost]
        found.append(f"{_name(again)} had none for a while")
        found.append(f"the longest without: {look.said(longest.name, 40)}, {moments.lasting(spell)}")
    return found


def _name(lanes: Sequence[Lane]) -> str:
    return look.said(lanes[0].name, 40) if len(lanes) == 1 else f"{len(lanes):,} partitions"
