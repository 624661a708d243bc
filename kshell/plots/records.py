"""How many records of each type there were over time: ``log``, ``dump``, ``follow``."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from kshell.commands.base.result import Row
from kshell.plots.base import look, moments, panels
from kshell.plots.base.picture import Drawn, Picture, nothing_to_draw, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST = 14
"""Types that have a line of their own."""
_BINS = 140
_PITCH, _BAND = 32, 0.82
_HEAD, _FOOT = 18, 48
_COLUMN = 58
"""Of numbers, at the right."""
_THINNEST = 0.07
"""Of a line's height: a single record can be seen beside thousands."""


class _Counted(NamedTuple):
    """``types``: type, the most frequent first -> start of a stretch of ``step`` milliseconds -> records in it."""

    types: Mapping[str, Mapping[int, int]]
    step: int
    start: int
    end: int
    untimed: int

    @property
    def tallest(self) -> tuple[int, str, int]:
        """Records, their type, and when."""
        return max(
            ((count, name, -at) for name, bins in self.types.items() for at, count in bins.items()),
            key=lambda one: (one[0], one[2]),
        )


def draw(rows: list[Row]) -> Drawn:
    """A row a record. Records that all have one time are only counted by type. Raises UsageError without any time."""
    timed = [(time, str(row["type"])) for row in rows if (time := number(row["timestampMs"])) is not None and time >= 0]
    if not timed:
        raise nothing_to_draw(PICTURE.name, "no record has a time")
    totals = Counter(name for _, name in timed)
    begin, end = min(timed)[0], max(timed)[0]
    if begin == end:
        return _at_once(totals, begin, len(rows))
    return _over_time(_counted(timed, totals, int(begin), int(end), len(rows)), totals, len(rows))


def _counted(timed: list[tuple[float, str]], totals: Counter[str], begin: int, end: int, rows: int) -> _Counted:
    step = moments.step_of(end - begin, _BINS)
    frequent = [name for name, _ in sorted(totals.items(), key=lambda one: (-one[1], one[0]))]
    kept = {name: name for name in (frequent if len(frequent) <= MOST else frequent[: MOST - 1])}
    rest = f"{len(frequent) - len(kept)} other types"
    bins: dict[str, Counter[int]] = defaultdict(Counter)
    for time, name in timed:
        bins[kept.get(name, rest)][int(time) // step * step] += 1
    order = [*kept, *([rest] if rest in bins else [])]
    return _Counted({name: bins[name] for name in order}, step, begin // step * step, end // step * step + step,
                    rows - len(timed))  # fmt: skip


def _over_time(counted: _Counted, totals: Counter[str], rows: int) -> Drawn:
    title, stretch = "Records by type over time", moments.lasting(counted.step)
    count, name, at = counted.tallest
    facts = [
        f"{look.counted(rows, 'record')} of {look.counted(len(totals), 'type')}",
        moments.between(counted.start, counted.end),
    ]
    busiest = f"busiest: {count:,} {look.said(name, 40)} in {stretch}, at {moments.moment(-at)}"
    note = f"{look.counted(counted.untimed, 'record')} without a time left out" if counted.untimed else ""
    height = _PITCH * len(counted.types)
    figure, top = look.page(title, [*facts, busiest], _HEAD + height + _FOOT, note)
    left = _names(figure, counted, top + _HEAD)
    width = look.WIDTH - left - 2 * _COLUMN - look.MARGIN
    _numbers(figure, counted, top, left + width)
    scale = f"a bar: records in {stretch}; its height grows as their square root, alike in all lines"
    look.write(figure, left, top + 6, look.fitting(scale, width, look.TINY), size=look.TINY)
    _bars(look.axes_at(figure, left, top + _HEAD, width, height), counted, width)
    first = list(counted.types.items())[:3]
    common = ", ".join(f"{sum(bins.values()):,} {look.said(name, 40)}" for name, bins in first)
    return Drawn(figure, f"{title}. {'; '.join(facts)}. Most frequent: {common}. {busiest[0].upper()}{busiest[1:]}.")


def _names(figure: Figure, counted: _Counted, top: float) -> float:
    """Writes the types at the left, and gives where they end."""
    labels = [look.shown(name, 40) for name in counted.types]
    left = look.MARGIN + max(look.width_of(label, look.TINY) for label in labels) + 10
    for place, label in enumerate(labels):
        look.write(figure, left - 10, top + _PITCH * (place + 1) - 9, label, size=look.TINY, ha="right")
    return left


def _numbers(figure: Figure, counted: _Counted, top: float, left: float) -> None:
    """Two columns at the right: all records of a type, and the most in one stretch of time."""
    for place, words in enumerate(("records", "peak"), 1):
        look.write(figure, left + place * _COLUMN, top + 6, words, size=look.TINY, weight="bold", ha="right")
    for line, bins in enumerate(counted.types.values(), 1):
        middle = top + _HEAD + _PITCH * line - 9
        for place, count in enumerate((sum(bins.values()), max(bins.values())), 1):
            look.write(figure, left + place * _COLUMN, middle, f"{count:,}", size=look.TINY, ha="right")


def _bars(axes: Axes, counted: _Counted, width: float) -> None:
    """A collection for each type. Its line is where the count is 0."""
    from matplotlib.collections import PolyCollection

    axes.set_ylim(len(counted.types), 0)
    tallest = counted.tallest[0]
    # A stretch of its own length would be too thin to be seen where there are many.
    thick = max(counted.step, (counted.end - counted.start) / width * 2.5)
    for place, bins in enumerate(counted.types.values()):
        ground = place + 1.0
        shapes = []
        for at, count in sorted(bins.items()):
            top = ground - _BAND * max((count / tallest) ** 0.5, _THINNEST)
            shapes.append([(at, ground), (at, top), (at + thick, top), (at + thick, ground)])
        bars = PolyCollection(shapes, facecolor=look.BLUE, edgecolor=look.INK, linewidth=0.4, zorder=2)
        bars.set_gid(f"records {place}")
        axes.add_collection(bars, autolim=False)
        axes.axhline(ground, color=look.INK, linewidth=0.5, zorder=1)
    moments.time_axis(axes, counted.start, counted.end, width)


def _at_once(totals: Counter[str], at: float, rows: int) -> Drawn:
    """Of a snapshot, or of one record: there is no rate."""
    title = "Records by type"
    ordered = sorted(totals.items(), key=lambda one: (-one[1], one[0]))[: panels.MOST]
    facts = [
        f"{look.counted(rows, 'record')} of {look.counted(len(totals), 'type')}",
        f"all at {moments.moment(at)} UTC",
    ]
    note = f"the {len(ordered)} most frequent types" if len(ordered) < len(totals) else ""
    bars = [panels.Bar(count) for _, count in ordered]
    figure = panels.draw(
        panels.Heading(title, facts, note),
        [name for name, _ in ordered],
        [panels.Panel("", "records", bars, look.BLUE)],
    )
    common = ", ".join(f"{count:,} {look.said(name, 40)}" for name, count in ordered[:3])
    return Drawn(figure, f"{title}. {'; '.join(facts)}. Most frequent: {common}.")


PICTURE = Picture(
    name="records by type over time",
    commands=("log", "dump", "follow"),
    needs=("offset", "timestampMs", "type", "data"),
    draw=draw,
)
