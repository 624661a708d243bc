"""Pictures of the pipeline's tables that have a column ``day``: a count per day, one line per broker, topic or type.

The last lines of the module declare one picture per table.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from kshell.engine.result import Row
from kshell.plots import panels, strips, theme, times
from kshell.plots.picture import Drawn, NothingToDraw, number, picture
from kshell.tree.image import format_duration

MOST = 20
"""The most lines of a picture."""
_BINS = 140
DAY_MS = 86_400_000


class Daily(NamedTuple):
    """What a picture counts: the column ``value``, named by ``singular`` and ``plural``; ``name`` names a row's line.

    ``line_noun`` says what the lines are (``brokers``). ``is_level``: a bar of several days shows the highest value,
    not the sum.
    """

    title: str
    value: str
    singular: str
    plural: str
    line_noun: str
    name: Callable[[Row], str]
    color: str = theme.BLUE
    hatch: str = ""
    is_level: bool = False


def _daily_picture(
    title: str,
    value: str,
    nouns: tuple[str, str],
    column: str,
    *,
    name: str = "{}",
    color: str = theme.BLUE,
    hatch: str = "",
    is_level: bool = False,
) -> None:
    """Declare the picture of rows with the columns ``day``, ``value``, and ``column`` or ``clusterId``.

    Args:
        column: the column whose values are the lines; if rows do not have it, each cluster is a line.
        nouns: singular and plural of what is counted.
        name: the format of a line's name, except for clusters.
    """

    @picture(title[0].lower() + title[1:], needs=("day", value), any_of=(column, "clusterId"))
    def draw_days(rows: list[Row]) -> Drawn:
        is_own = column in rows[0]
        key, form, lines = (column, name, f"{column}s") if is_own else ("clusterId", "{}", "clusters")
        return draw(Daily(title, value, *nouns, lines, lambda row: form.format(row[key]), color, hatch, is_level), rows)


class _Counted(NamedTuple):
    """Name of a line -> start of an interval (epoch milliseconds) -> count; ``undated``: rows without a day."""

    lines: Mapping[str, Mapping[int, float]]
    clock: strips.Clock
    undated: int

    def total(self, name: str, kind: Daily) -> float:
        values = self.lines[name].values()
        return max(values) if kind.is_level else sum(values)


def draw(kind: Daily, rows: Sequence[Row]) -> Drawn:
    """Draw rows with a count per day and line. Raises NothingToDraw if no row has a day, or all counts are 0."""
    counted = _counted(kind, rows)
    totals = {name: counted.total(name, kind) for name in counted.lines}
    if not any(totals.values()):
        raise NothingToDraw(f"no {kind.plural}")
    selected = _selected(totals)
    facts = _facts(kind, counted, totals)
    notes = (
        [f"{len(selected)} of {len(totals):,} {kind.line_noun}: those with the most"]
        if len(selected) < len(totals)
        else []
    )
    notes += [f"{theme.counted(counted.undated, 'row')} without a day left out"] if counted.undated else []
    drawn = [
        strips.Strip(name, bins, _numbers(kind, bins, totals[name]), kind.color, kind.hatch)
        for name, bins in counted.lines.items()
        if name in selected
    ]
    period = format_duration(counted.clock.step)
    quantity = f"{kind.plural}, the most in {period}" if kind.is_level else f"{kind.plural} in {period}"
    scale = f"a bar: {quantity}; its height grows as the square root, alike in all lines"
    if len({start for bins in counted.lines.values() for start in bins}) == 1:
        return _totals_only(kind, totals, selected, panels.Heading(kind.title, facts, " · ".join(notes)))
    columns = ("most",) if kind.is_level else ("in all", "peak")
    figure = strips.draw(panels.Heading(kind.title, facts, " · ".join(notes)), drawn, counted.clock, columns, scale)
    return Drawn(figure, f"{kind.title}. {'; '.join(facts)}.")


def _totals_only(kind: Daily, totals: Mapping[str, float], selected: Collection[str], heading: panels.Heading) -> Drawn:
    """Draw the totals without time, for counts that are all in one interval."""
    names = [name for name in totals if name in selected]
    bars = [panels.Bar(totals[name], totals[name] if kind.hatch else 0) for name in names]
    figure = panels.draw(heading, names, [panels.Panel("", kind.plural, bars, kind.color)])
    return Drawn(figure, f"{heading.title}. {'; '.join(heading.facts)}.")


def _counted(kind: Daily, rows: Sequence[Row]) -> _Counted:
    days = [(day_ms(row["day"]), row) for row in rows]
    dated = [(at, row) for at, row in days if at is not None]
    if not dated:
        raise NothingToDraw("no row has a day")
    first, last = min(at for at, _ in dated), max(at for at, _ in dated)
    step = max(times.step_of(last + DAY_MS - first, _BINS), DAY_MS)
    lines: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for at, row in dated:
        value, start = number(row[kind.value]) or 0, first + (at - first) // step * step
        bins = lines[kind.name(row)]
        bins[start] = max(bins[start], value) if kind.is_level else bins[start] + value
    end = first + (last - first) // step * step + step
    return _Counted(lines, strips.Clock(first, end, step), len(days) - len(dated))


def day_ms(day: object) -> int | None:
    """When a day (``2026-01-31``, of UTC) begins, in epoch milliseconds; ``None`` for what is no day."""
    try:
        return int(datetime.strptime(str(day), "%Y-%m-%d").replace(tzinfo=UTC).timestamp()) * 1000
    except ValueError:
        return None


def _selected(totals: Mapping[str, float]) -> frozenset[str]:
    """Return the names of the lines to draw: those with the highest totals if there are too many."""
    return frozenset(sorted(totals, key=lambda name: (-totals[name], name))[:MOST])


def _numbers(kind: Daily, bars: Mapping[int, float], total: float) -> list[str]:
    peak = theme.compact(max(bars.values()))
    return [f"{total:.2f}"] if kind.is_level else [theme.compact(total), peak]


def _facts(kind: Daily, counted: _Counted, totals: Mapping[str, float]) -> list[str]:
    clock = counted.clock
    name, top, start = max(
        ((name, value, start) for name, bins in counted.lines.items() for start, value in bins.items()),
        key=lambda bar: (bar[1], -bar[2]),
    )
    # An interval of several days is named by its first day.
    when = f"{'on' if clock.step == DAY_MS else f'in the {format_duration(clock.step)} from'} {_day(start)}"
    if kind.is_level:
        return [_days(clock), f"most: {theme.short_name(name, 40)}, {top:.2f} {when}"]
    busiest = (
        f"most at once: {theme.short_name(name, 40)}, {theme.counted(int(top), kind.singular, kind.plural)} {when}"
    )
    return [theme.counted(int(sum(totals.values())), kind.singular, kind.plural), _days(clock), busiest]


def _day(milliseconds: int) -> str:
    return times.moment(milliseconds)[:10]


def _days(clock: strips.Clock) -> str:
    first, last = _day(clock.start), _day(clock.end - DAY_MS)
    return f"{first} UTC" if first == last else f"{first} to {last} UTC"


_daily_picture("Changes a day", "changes", ("change", "changes"), "kind")  # access_audit, config_changes
_daily_picture(
    "Changes of leader a day", "gained", ("change of leader", "changes of leader"), "broker", name="to broker {}"
)  # leadership
_daily_picture(
    "Unclean elections a day",
    "elections",
    ("unclean election", "unclean elections"),
    "topic",
    color=theme.TROUBLE,
    hatch=theme.TROUBLE_HATCH,
)  # unclean_elections
_daily_picture(
    "Busiest broker, to the mean", "mostToMean", ("of the mean", "times the mean"), "measure", is_level=True
)  # skew
_daily_picture(
    "Fencings a day", "fencings", ("fencing", "fencings"), "broker", name="broker {}", color=theme.ORANGE
)  # broker_states
_daily_picture("Records a day", "records", ("record", "records"), "type")  # metadata_growth
