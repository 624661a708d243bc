"""Bars over time, a line a thing (a record type, a broker, a cluster), all on one scale, with numbers at the right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kshell.plots.base import look, moments
from kshell.plots.base.panels import Heading

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PITCH, _BAND = 32, 0.82
_HEAD, _FOOT = 18, 48
_COLUMN = 58
"""Of numbers, at the right."""
_LABEL = 300
_THINNEST = 0.07
"""Of a line's height: one can be seen beside thousands."""


class Strip(NamedTuple):
    """``bars``: epoch milliseconds at which a stretch of time starts -> how much there was in it; none negative."""

    name: str
    bars: Mapping[int, float]
    numbers: Sequence[str] = ()
    color: str = look.BLUE
    hatch: str = ""


class Clock(NamedTuple):
    """From and to (epoch milliseconds), and how long the stretches are that are counted."""

    start: int
    end: int
    step: int


def draw(
    heading: Heading, strips: Sequence[Strip], clock: Clock, columns: Sequence[str] = (), scale: str = ""
) -> Figure:
    """``columns`` are the headings of the strips' numbers; ``scale`` says what a bar is."""
    height = _PITCH * len(strips)
    figure, top = look.page(heading.title, heading.facts, _HEAD + height + _FOOT, heading.note)
    left = _names(figure, strips, top + _HEAD)
    width = look.WIDTH - left - len(columns) * _COLUMN - look.MARGIN
    _numbers(figure, strips, columns, (left + width, top))
    look.write(figure, left, top + 6, look.fitting(scale, width, look.TINY), size=look.TINY)
    _bars(look.axes_at(figure, left, top + _HEAD, width, height), strips, clock, width)
    return figure


def _names(figure: Figure, strips: Sequence[Strip], top: float) -> float:
    """Writes them at the left, and gives where they end."""
    labels = [look.fitting(look.shown(strip.name, 48), _LABEL, look.TINY, tail=look.TAIL) for strip in strips]
    left = look.MARGIN + max(look.width_of(label, look.TINY) for label in labels) + 10
    for place, label in enumerate(labels):
        look.write(figure, left - 10, top + _PITCH * (place + 1) - 9, label, size=look.TINY, ha="right")
    return left


def _numbers(figure: Figure, strips: Sequence[Strip], columns: Sequence[str], at: tuple[float, float]) -> None:
    left, top = at
    for place, words in enumerate(columns, 1):
        look.write(figure, left + place * _COLUMN, top + 6, words, size=look.TINY, weight="bold", ha="right")
    for line, strip in enumerate(strips, 1):
        middle = top + _HEAD + _PITCH * line - 9
        for place, words in enumerate(strip.numbers, 1):
            look.write(figure, left + place * _COLUMN, middle, words, size=look.TINY, ha="right")


def _bars(axes: Axes, strips: Sequence[Strip], clock: Clock, width: float) -> None:
    """A collection for each strip. Its line is where there is nothing."""
    from matplotlib.collections import PolyCollection

    axes.set_ylim(len(strips), 0)
    tallest = max((value for strip in strips for value in strip.bars.values()), default=0) or 1
    # A stretch of its own length would be too thin to be seen where there are many.
    thick = max(clock.step, (clock.end - clock.start) / width * 2.5)
    for place, strip in enumerate(strips):
        ground = place + 1.0
        shapes = []
        for at, value in sorted(strip.bars.items()):
            if value:
                top = ground - _BAND * max((value / tallest) ** 0.5, _THINNEST)
                shapes.append([(at, ground), (at, top), (at + thick, top), (at + thick, ground)])
        bars = PolyCollection(shapes, facecolor=strip.color, edgecolor=look.INK, linewidth=0.4, zorder=2)
        bars.set_gid(f"records {place}")
        axes.add_collection(bars, autolim=False)
        if strip.hatch:
            axes.add_collection(
                PolyCollection(shapes, zorder=2.5, **look.hatched(strip.color, strip.hatch)), autolim=False
            )
        axes.axhline(ground, color=look.INK, linewidth=0.5, zorder=1)
    moments.time_axis(axes, clock.start, clock.end, width)
