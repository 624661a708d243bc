"""Draw states over time: one lane per broker, feature or partition, in which each interval has a colour and a label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kshell.plots import theme, times
from kshell.plots.panels import Heading

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST = 30
"""The most lanes of a picture."""
_PITCH, _BAND = 28, 0.72
_HEAD, _FOOT, _LABEL = 28, 48, 300
_REST = 0.08
"""The share of the drawn time that is added after the last record, for states that still last."""
_NARROW = 2.5
"""The least width of an interval, in pixels."""
_HATCHED = 6
"""The least width of a box that gets a hatch, in pixels."""
Box = tuple[float, float, float, float]
"""Left, top, right, bottom, in the units of the axes."""


class Style(NamedTuple):
    """The style of a state, and its label in the legend. Where boxes overlap, the higher ``level`` is in front."""

    label: str
    color: str
    hatch: str = ""
    level: int = 2


class LaneInterval(NamedTuple):
    """A state from ``start`` to ``end`` (epoch ms; ``None``: it lasts); its label is written in it if there is room."""

    start: float
    end: float | None
    style: Style
    label: str = ""


class Lane(NamedTuple):
    """A lane of the picture: its name at the left, and its intervals."""

    name: str
    intervals: Sequence[LaneInterval]


def draw(heading: Heading, lanes: Sequence[Lane], last: float, legend: str = "") -> Figure:
    """Draw the figure. ``last``: the time of the last record (epoch milliseconds); ``legend``: the text before the
    legend.
    """
    head = _HEAD if legend else 8
    figure, top = theme.page(heading.title, heading.facts, head + _PITCH * len(lanes) + _FOOT, heading.note)
    if legend:
        styles = dict.fromkeys(interval.style for lane in lanes for interval in lane.intervals)
        theme.legend(figure, theme.MARGIN, top + 10, legend, [theme.LegendKey(*style[:3]) for style in styles], "")
    labels = [theme.fitting(theme.drawable_name(lane.name, 48), _LABEL, tail=theme.TAIL) for lane in lanes]
    plot_left = theme.MARGIN + max(map(theme.width_of, labels)) + 10
    for place, label in enumerate(labels):
        theme.write(figure, plot_left - 10, top + head + _PITCH * (place + 0.5), label, ha="right")
    start = min((interval.start for lane in lanes for interval in lane.intervals), default=last)
    lasts = any(interval.end is None for lane in lanes for interval in lane.intervals)
    end = last + (max((last - start) * _REST, 1.0) if lasts else 0.0)
    width = theme.WIDTH - theme.MARGIN - plot_left
    axes = theme.axes_at(figure, plot_left, top + head, width, _PITCH * len(lanes))
    axes.set_ylim(len(lanes), 0)
    times.time_axis(axes, start, max(end, start + 1.0), width)
    _fill(axes, lanes, end, width)
    if lasts:
        axes.axvline(last, color=theme.INK, linewidth=1, linestyle=(0, (1, 2)), zorder=8)
    return figure


def _fill(axes: Axes, lanes: Sequence[Lane], end: float, width: float) -> None:
    start = axes.get_xlim()[0]
    pixel = max(end - start, 1.0) / width
    shapes: dict[Style, list[Box]] = {}
    for place, lane in enumerate(lanes):
        top, bottom = place + (1 - _BAND) / 2, place + (1 + _BAND) / 2
        axes.axhline(bottom, color=theme.INK, linewidth=0.4, alpha=0.5, zorder=1)
        for interval in lane.intervals:
            until = end if interval.end is None else interval.end
            until = max(until, interval.start + _NARROW * pixel)
            shapes.setdefault(interval.style, []).append((interval.start, top, until, bottom))
            _label(axes, interval, (interval.start, until), (place + 0.5, pixel))
    for style, boxes in shapes.items():
        look_of = {"facecolor": style.color, "edgecolor": theme.INK, "linewidth": 0.6}
        fill_boxes(axes, boxes, style.label, **look_of, zorder=style.level)
        wide = [box for box in boxes if (box[2] - box[0]) / pixel >= _HATCHED]
        if style.hatch and wide:
            over = theme.hatched(style.color, style.hatch)
            fill_boxes(axes, wide, f"hatch of {style.label}", **over, zorder=style.level + 0.5)


def _label(axes: Axes, interval: LaneInterval, extent: tuple[float, float], at: tuple[float, float]) -> None:
    start, end = extent
    middle, pixel = at
    text = theme.drawable_name(interval.label, 40)
    if not text or theme.width_of(text, theme.TINY) + 6 > (end - start) / pixel:
        return
    back = {"facecolor": interval.style.color, "edgecolor": "none", "pad": 1.0} if interval.style.hatch else None
    axes.text(
        (start + end) / 2,
        middle,
        text,
        size=theme.TINY,
        color=theme.on(interval.style.color),
        bbox=back,
        ha="center",
        va="center",
        parse_math=False,
        zorder=7,
    )


def fill_boxes(axes: Axes, boxes: Sequence[Box], name: str, **style: Any) -> None:
    """Draw boxes of one style as one collection; ``name`` becomes its id (gid)."""
    from matplotlib.collections import PolyCollection

    shapes = [[(start, top), (end, top), (end, bottom), (start, bottom)] for start, top, end, bottom in boxes]
    collection = PolyCollection(shapes, **style)
    collection.set_gid(name)
    axes.add_collection(collection, autolim=False)
