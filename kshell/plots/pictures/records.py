"""Picture of ``log``, ``dump`` and ``follow``: how many records of each type there were over time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from kshell.engine.result import Row
from kshell.plots import panels, strips, theme, times
from kshell.plots.picture import Drawn, NothingToDraw, number, picture
from kshell.tree.image import format_duration

MOST = 14
"""The most lines of the picture. If there are more types, the last line sums up the rare ones."""
_BINS = 140


class _Counted(NamedTuple):
    """Records by type: type, the most frequent first -> start of an interval of ``step`` milliseconds -> count."""

    types: Mapping[str, Mapping[int, int]]
    step: int
    start: int
    end: int
    untimed: int

    @property
    def tallest(self) -> tuple[int, str, int]:
        """The most records in one interval, their type, and the interval's start, negated: the first such one wins."""
        return max(
            ((count, name, -at) for name, bins in self.types.items() for at, count in bins.items()),
            key=lambda bar: (bar[0], bar[2]),
        )


@picture(
    "records by type over time", needs=("offset", "timestampMs", "type", "data"), commands=("log", "dump", "follow")
)
def draw(rows: list[Row]) -> Drawn:
    """Draw rows that are records. If all have the same time, they are only counted by type."""
    timed = [(time, str(row["type"])) for row in rows if (time := number(row["timestampMs"])) is not None and time >= 0]
    if not timed:
        raise NothingToDraw("no record has a time")
    totals = Counter(name for _, name in timed)
    begin, end = min(timed)[0], max(timed)[0]
    if begin == end:
        return _totals_only(totals, begin, len(rows))
    return _over_time(_counted(timed, totals, int(begin), int(end), len(rows)), totals, len(rows))


def _counted(timed: list[tuple[float, str]], totals: Counter[str], begin: int, end: int, rows: int) -> _Counted:
    step = times.step_of(end - begin, _BINS)
    frequent = [name for name, _ in sorted(totals.items(), key=lambda item: (-item[1], item[0]))]
    selected = {name: name for name in (frequent if len(frequent) <= MOST else frequent[: MOST - 1])}
    rest = f"{len(frequent) - len(selected)} other types"
    bins: dict[str, Counter[int]] = defaultdict(Counter)
    for time, name in timed:
        bins[selected.get(name, rest)][int(time) // step * step] += 1
    order = [*selected, *([rest] if rest in bins else [])]
    return _Counted(
        {name: bins[name] for name in order}, step, begin // step * step, end // step * step + step, rows - len(timed)
    )


def _over_time(counted: _Counted, totals: Counter[str], rows: int) -> Drawn:
    title, period = "Records by type over time", format_duration(counted.step)
    count, name, at = counted.tallest
    facts = [
        f"{theme.counted(rows, 'record')} of {theme.counted(len(totals), 'type')}",
        times.between(counted.start, counted.end),
    ]
    busiest = f"busiest: {count:,} {theme.short_name(name, 40)} in {period}, at {times.moment(-at)}"
    note = f"{theme.counted(counted.untimed, 'record')} without a time left out" if counted.untimed else ""
    scale = f"a bar: records in {period}; its height grows as their square root, alike in all lines"
    lines = [
        strips.Strip(name, bins, (f"{sum(bins.values()):,}", f"{max(bins.values()):,}"))
        for name, bins in counted.types.items()
    ]
    heading, clock = (
        panels.Heading(title, [*facts, busiest], note),
        strips.Clock(counted.start, counted.end, counted.step),
    )
    figure = strips.draw(heading, lines, clock, ("records", "peak"), scale)
    first = list(counted.types.items())[:3]
    common = ", ".join(f"{sum(bins.values()):,} {theme.short_name(name, 40)}" for name, bins in first)
    return Drawn(figure, f"{title}. {'; '.join(facts)}. Most frequent: {common}. {busiest[0].upper()}{busiest[1:]}.")


def _totals_only(totals: Counter[str], at: float, rows: int) -> Drawn:
    """Draw the numbers by type without time, for records that all have the same time, such as those of a snapshot."""
    title = "Records by type"
    ordered = sorted(totals.items(), key=lambda item: (-item[1], item[0]))[: panels.MOST]
    facts = [
        f"{theme.counted(rows, 'record')} of {theme.counted(len(totals), 'type')}",
        f"all at {times.moment(at)} UTC",
    ]
    note = f"the {len(ordered)} most frequent types" if len(ordered) < len(totals) else ""
    bars = [panels.Bar(count) for _, count in ordered]
    figure = panels.draw(
        panels.Heading(title, facts, note),
        [name for name, _ in ordered],
        [panels.Panel("", "records", bars, theme.BLUE)],
    )
    common = ", ".join(f"{count:,} {theme.short_name(name, 40)}" for name, count in ordered[:3])
    return Drawn(figure, f"{title}. {'; '.join(facts)}. Most frequent: {common}.")
