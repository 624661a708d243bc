"""Draw counts over time: one line of bars per thing (a record type, a broker), with numbers at its right end.

All lines share the axis of time and the scale. The height of a bar is the square root of its count, so that small
counts remain visible next to large ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kshell.plots import theme, times
from kshell.plots.panels import Heading

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PITCH, _BAND = 32, 0.82
_HEAD, _FOOT = 18, 48
_COLUMN = 58
"""The width of a column of numbers at the right, in pixels."""
_LABEL = 300
_THINNEST = 0.07
"""The least height of a bar, as a share of the highest one, so that a count of 1 is visible next to thousands."""


class Strip(NamedTuple):
    """A line of bars: start of an interval (epoch milliseconds) -> count, never negative; with numbers at its right."""

    name: str
    bars: Mapping[int, float]
    numbers: Sequence[str] = ()
    color: str = theme.BLUE
    hatch: str = ""


class Clock(NamedTuple):
    """The axis of time: start and end (epoch milliseconds), and the length of an interval (``step``, milliseconds)."""

    start: int
    end: int
    step: int


def draw(
    heading: Heading, strips: Sequence[Strip], clock: Clock, columns: Sequence[str] = (), scale: str = ""
) -> Figure:
    """Draw the figure. ``columns`` are the headings of the numbers; ``scale`` is a text that says what a bar means."""
    height = _PITCH * len(strips)
    figure, top = theme.page(heading.title, heading.facts, _HEAD + height + _FOOT, heading.note)
    plot_left = _names(figure, strips, top + _HEAD)
    width = theme.WIDTH - plot_left - len(columns) * _COLUMN - theme.MARGIN
    _numbers(figure, strips, columns, (plot_left + width, top))
    theme.write(figure, plot_left, top + 6, theme.fitting(scale, width, theme.TINY), size=theme.TINY)
    _bars(theme.axes_at(figure, plot_left, top + _HEAD, width, height), strips, clock, width)
    return figure


def _names(figure: Figure, strips: Sequence[Strip], top: float) -> float:
    """Write the names at the left, and return where they end."""
    labels = [
        theme.fitting(theme.drawable_name(strip.name, 48), _LABEL, theme.TINY, tail=theme.TAIL) for strip in strips
    ]
    end = theme.MARGIN + max(theme.width_of(label, theme.TINY) for label in labels) + 10
    for place, label in enumerate(labels):
        theme.write(figure, end - 10, top + _PITCH * (place + 1) - 9, label, size=theme.TINY, ha="right")
    return end


def _numbers(figure: Figure, strips: Sequence[Strip], columns: Sequence[str], at: tuple[float, float]) -> None:
    x, top = at
    for place, heading in enumerate(columns, 1):
        theme.write(figure, x + place * _COLUMN, top + 6, heading, size=theme.TINY, weight="bold", ha="right")
    for line, strip in enumerate(strips, 1):
        middle = top + _HEAD + _PITCH * line - 9
        for place, number in enumerate(strip.numbers, 1):
            theme.write(figure, x + place * _COLUMN, middle, number, size=theme.TINY, ha="right")


def _bars(axes: Axes, strips: Sequence[Strip], clock: Clock, width: float) -> None:
    """Draw the bars of each strip as one collection, on a base line that also shows where there is nothing."""
    from matplotlib.collections import PolyCollection

    axes.set_ylim(len(strips), 0)
    tallest = max((value for strip in strips for value in strip.bars.values()), default=0) or 1
    # With very many intervals, a bar of the interval's real width would be too thin to be seen.
    thick = max(clock.step, (clock.end - clock.start) / width * 2.5)
    for place, strip in enumerate(strips):
        ground = place + 1.0
        shapes = []
        for at, value in sorted(strip.bars.items()):
            if value:
                top = ground - _BAND * max((value / tallest) ** 0.5, _THINNEST)
                shapes.append([(at, ground), (at, top), (at + thick, top), (at + thick, ground)])
        bars = PolyCollection(shapes, facecolor=strip.color, edgecolor=theme.INK, linewidth=0.4, zorder=2)
        bars.set_gid(f"records {place}")
        axes.add_collection(bars, autolim=False)
        if strip.hatch:
            axes.add_collection(
                PolyCollection(shapes, zorder=2.5, **theme.hatched(strip.color, strip.hatch)), autolim=False
            )
        axes.axhline(ground, color=theme.INK, linewidth=0.5, zorder=1)
    times.time_axis(axes, clock.start, clock.end, width)
