"""Draw horizontal bars: one row per thing (a broker, a rack, a topic), and one or more panels side by side.

Each panel shows one quantity, with its own axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kshell.plots import theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST = 40
"""The most rows of a picture."""
_ROW_HEIGHT = 27
_BAR_SHARE = 0.62
_GAP = 26
_HEADING_HEIGHT, _REFERENCE_HEIGHT = 26, 18
_FOOT_HEIGHT = 46
_LEAST_LABEL, _MOST_LABEL = 60.0, 300.0
_NUMBER_GAP = 7
"""The pixels between a bar and its number."""
_THINNEST = 3
"""The least length of a bar that is not 0, in pixels."""


class Bar(NamedTuple):
    """A bar; ``value`` is ``None`` if unknown. The part ``trouble`` of it is hatched; ``more`` follows its number."""

    value: float | None
    trouble: float = 0
    more: str = ""


class Panel(NamedTuple):
    """A panel: one bar per row. ``line`` is a (label, number) pair, drawn as a line to compare the bars with."""

    title: str
    unit: str
    bars: Sequence[Bar]
    color: str
    line: tuple[str, float] | None = None


class _Scale(NamedTuple):
    """An axis from 0 to the value ``reach``, ``width`` pixels long."""

    reach: float
    width: float

    def pixels(self, value: float) -> float:
        return value / self.reach * self.width


class Heading(NamedTuple):
    """The heading of a picture: title, facts, and a ``note`` that says what was left out."""

    title: str
    facts: Sequence[str]
    note: str = ""


def draw(heading: Heading, names: Sequence[str], panels: Sequence[Panel], *, same_scale: bool = False) -> Figure:
    """Draw the names of the rows (at most :data:`MOST`) at the left, and the panels side by side.

    ``same_scale``: all panels have the same scale, so that their bars can be compared.
    """
    head = _HEADING_HEIGHT + (_REFERENCE_HEIGHT if any(panel.line for panel in panels) else 0)
    figure, top = theme.page(heading.title, heading.facts, head + _ROW_HEIGHT * len(names) + _FOOT_HEIGHT, heading.note)
    labels = [theme.drawable_name(name, 48) for name in names]
    widest = max(map(theme.width_of, labels), default=0.0)
    label = min(max(widest, _LEAST_LABEL), _MOST_LABEL)
    plot_left = theme.MARGIN + label + 10
    width = (theme.WIDTH - theme.MARGIN - plot_left - _GAP * (len(panels) - 1)) / len(panels)
    for place, text in enumerate(labels):
        middle = top + head + _ROW_HEIGHT * (place + 0.5)
        theme.write(figure, plot_left - 10, middle, theme.fitting(text, label, tail=theme.TAIL), ha="right")
    reaches = [_reach(panel, width) for panel in panels]
    for place, panel in enumerate(panels):
        at = plot_left + place * (width + _GAP)
        size = theme.SMALL if theme.width_of(panel.title, weight="bold") <= width else theme.TINY
        heading_text = theme.fitting(panel.title, width + _GAP / 2, size, "bold")
        theme.write(figure, at, top + 10, heading_text, size=size, weight="bold")
        scale = _Scale(max(reaches) if same_scale else reaches[place], width)
        _panel(theme.axes_at(figure, at, top + head, width, _ROW_HEIGHT * len(names)), panel, scale)
    return figure


def _panel(axes: Axes, panel: Panel, scale: _Scale) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes.set_xlim(0, scale.reach)
    axes.set_ylim(len(panel.bars), 0)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=max(2, int(scale.width // 90)), integer=True, min_n_ticks=1))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: theme.compact(value)))
    axes.set_xlabel(panel.unit, size=theme.TINY, parse_math=False)
    texts = [_bar_text(bar) for bar in panel.bars]
    if panel.line is not None:
        _line(axes, panel, texts, scale)
    _bars(axes, panel, scale)
    for place, (bar, text) in enumerate(zip(panel.bars, texts, strict=True)):
        _number(axes, (_length(bar, scale), place + 0.5), text, scale)


def _reach(panel: Panel, width: float) -> float:
    """Return the value at the end of the axis, so that every bar fits with the text after it."""
    ends = [bar.value or 0 for bar in panel.bars]
    reach = max([*ends, (panel.line[1] if panel.line else 0) * 1.05]) * 1.02 or 1.0
    for value, bar in zip(ends, panel.bars, strict=True):
        room = width - theme.width_of(_bar_text(bar), theme.TINY) - 2 * _NUMBER_GAP
        if room > width * 0.2:
            reach = max(reach, value * width / room)
    return reach


def _bar_text(bar: Bar) -> str:
    number = "unknown" if bar.value is None else theme.compact(bar.value)
    return f"{number} {bar.more}".rstrip()


def _length(bar: Bar, scale: _Scale) -> float:
    """Return the length of a bar as drawn: a value other than 0 is never too short to be seen."""
    return max(bar.value, scale.reach * _THINNEST / scale.width) if bar.value else 0.0


def _bars(axes: Axes, panel: Panel, scale: _Scale) -> None:
    drawn = [(place + 0.5, _length(bar, scale), bar) for place, bar in enumerate(panel.bars) if bar.value]
    outline: dict[str, Any] = {"height": _BAR_SHARE, "edgecolor": theme.INK, "linewidth": 0.8}
    axes.barh([at for at, _, _ in drawn], [value for _, value, _ in drawn], color=panel.color, zorder=2, **outline)
    least = scale.reach * _THINNEST / scale.width
    bad = [(at, value, min(max(bar.trouble, least), value)) for at, value, bar in drawn if bar.trouble]
    places, parts = [at for at, _, _ in bad], [part for _, _, part in bad]
    starts = [value - part for _, value, part in bad]
    axes.barh(places, parts, left=starts, color=theme.TROUBLE, zorder=3, **outline)
    hatched = theme.hatched(theme.TROUBLE, theme.TROUBLE_HATCH)
    axes.barh(places, parts, left=starts, height=_BAR_SHARE, zorder=3.5, **hatched)


def _number(axes: Axes, at: tuple[float, float], text: str, scale: _Scale) -> None:
    room = scale.width - scale.pixels(at[0]) - _NUMBER_GAP
    axes.annotate(
        theme.fitting(text, max(room, 40), theme.TINY),
        at,
        (_NUMBER_GAP * 0.72, 0),
        size=theme.TINY,
        textcoords="offset points",
        va="center_baseline",
        color=theme.INK,
        parse_math=False,
        zorder=5,
    )


def _line(axes: Axes, panel: Panel, texts: Sequence[str], scale: _Scale) -> None:
    """Draw the panel's line through all rows except those in which it would cross the number of a bar."""
    assert panel.line is not None
    name, value = panel.line
    at = scale.pixels(value)
    for place, (bar, text) in enumerate(zip(panel.bars, texts, strict=True)):
        end = scale.pixels(_length(bar, scale))
        if not end < at < end + theme.width_of(text, theme.TINY) + 2 * _NUMBER_GAP:
            axes.plot(
                [value, value], [place, place + 1], color=theme.INK, linewidth=1.4, zorder=4, linestyle=(0, (3, 2))
            )
    text = f"{name}: {theme.compact(value)}"
    half = theme.width_of(text, theme.TINY) / 2 + 2
    axes.annotate(
        text,
        (min(max(at, half), scale.width - half) / scale.width, 1),
        (0, 3),
        xycoords="axes fraction",
        textcoords="offset points",
        size=theme.TINY,
        ha="center",
        va="bottom",
        color=theme.INK,
        parse_math=False,
    )


def worst_indexes(badness: Sequence[tuple[float, ...]], most: int = MOST) -> list[int]:
    """Return the indexes of the rows to draw, ascending: all, or the ``most`` with the highest badness."""
    indexes = range(len(badness))
    if len(indexes) <= most:
        return list(indexes)
    return sorted(sorted(indexes, key=lambda index: (tuple(-value for value in badness[index]), index))[:most])
