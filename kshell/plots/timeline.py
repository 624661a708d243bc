"""Leadership and ISR over time, a lane a partition: ``timeline``.

A bar's colour and number say who leads, its height how many of the replicas are in sync. Time without a leader fills
its lane in the colour that nothing else has, hatched, and with a cross.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kshell.engine.result import Row
from kshell.plots.base import lanes, look, moments
from kshell.plots.base.lanes import NOBODY, Lane, Span
from kshell.plots.base.picture import Drawn, Picture, nothing_to_draw
from kshell.plots.base.stretches import fill_boxes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST = 30
"""Partitions that are drawn."""
_PITCH, _BAND = 28, 0.84
_HEAD, _FOOT, _LABEL = 46, 48, 290
_REST = 0.14
"""Of the time that is drawn: what holds since the last change, without a scale."""
_NAMED = 10
"""Brokers in the legend."""
_NARROW = 3.0
"""Pixels that a time without a leader has at least."""
_HATCHED, _APART, _LETTERS = 6, 14, 11
"""Pixels: of a box whose hatch can be seen; from cross to cross at least; the height of a bar that letters fit in."""


class _Shown(NamedTuple):
    """``end`` is beyond the last change: what holds there is how it ended. Times are epoch milliseconds."""

    lanes: Sequence[Lane]
    start: float
    end: float
    brokers: Sequence[int]
    width: float

    def style(self, leader: int) -> tuple[str, str]:
        """Colour and hatch of a broker; of the two, some are given twice where there are very many."""
        place = self.brokers.index(leader)
        colors = len(look.SERIES)
        return look.SERIES[place % colors], look.HATCHES[place // colors % len(look.HATCHES)]

    def pixels(self, length: float) -> float:
        return length / (self.end - self.start) * self.width


def draw(rows: list[Row]) -> Drawn:
    """A row a stretch of time. Raises UsageError when no row has a time."""
    told, start, last = lanes.of(rows)
    if not told:
        raise nothing_to_draw(PICTURE.name, "no row says when it begins")
    chosen = lanes.worst(told, MOST, last)
    title, facts = "Leadership and ISR over time", lanes.facts(told, last)
    height = _HEAD + _PITCH * len(chosen) + _FOOT
    figure, top = look.page(title, facts, height, _note(told, chosen))
    left = _names(figure, chosen, top + _HEAD, last)
    width = look.WIDTH - look.MARGIN - left
    brokers = sorted({span.leader for lane in chosen for span in lane.spans if span.leader != NOBODY})
    end = last + max((last - start) * _REST, 1.0)
    shown = _Shown([lane.binned(start, last, int(width / 3)) for lane in chosen], start, end, brokers, width)
    axes = look.axes_at(figure, left, top + _HEAD, width, _PITCH * len(chosen))
    axes.set_ylim(len(chosen), 0)
    moments.time_axis(axes, start, end, width)
    _fill(axes, shown, last)
    _legend(figure, shown, top)
    when = moments.between(start, last)
    return Drawn(figure, f"{title}: {look.counted(len(told), 'partition')}, {when}. {'; '.join(facts)}.")


def _note(told: Sequence[Lane], chosen: Sequence[Lane]) -> str:
    notes = []
    if len(chosen) < len(told):
        notes.append(f"{len(chosen)} of {len(told):,} partitions: those longest without a leader or short of replicas")
    if any(lane.is_dense for lane in chosen):
        notes.append("where there are too many changes to draw, the worst of a moment is shown")
    return " · ".join(notes)


def _names(figure: Figure, chosen: Sequence[Lane], top: float, last: float) -> float:
    """Writes them; those of partitions that were without a leader are bold. Gives where they end."""
    labels = []
    for lane in chosen:
        weight = "bold" if lanes.without_leader(lane, last) else "normal"
        labels.append((look.fitting(look.shown(lane.name, 40), _LABEL, weight=weight, tail=look.TAIL), weight))
    left = look.MARGIN + max(look.width_of(words, weight=weight) for words, weight in labels) + 10
    for place, (words, weight) in enumerate(labels):
        look.write(figure, left - 10, top + _PITCH * (place + 0.5), words, ha="right", weight=weight)
    return left


def _fill(axes: Axes, shown: _Shown, last: float) -> None:
    """Bars, one collection a broker; behind them how high they would be with all replicas in sync."""
    shapes: dict[int, list[tuple[float, float, float, float]]] = defaultdict(list)
    ground: list[tuple[float, float, float, float]] = []
    least = _NARROW / shown.width * (shown.end - shown.start)
    for place, lane in enumerate(shown.lanes):
        for span in lane.spans:
            end = shown.end if span.end is None else span.end
            bottom = place + (1 + _BAND) / 2
            ground.append((span.start, bottom - _BAND, end, bottom))
            if span.leader == NOBODY:
                shapes[NOBODY].append((span.start, bottom - _BAND, max(end, span.start + least), bottom))
            elif span.share:
                shapes[span.leader].append((span.start, bottom - _BAND * span.share, end, bottom))
            if span.leader != NOBODY:
                _leader(axes, shown, span, place + 0.5, end)
        _crosses(axes, shown, lane, place + 0.5)
    fill_boxes(axes, ground, "all replicas", facecolor=look.INK, alpha=look.FAINT, linewidth=0, zorder=1)
    for leader, boxes in sorted(shapes.items()):
        color, hatch = (look.TROUBLE, look.TROUBLE_HATCH) if leader == NOBODY else shown.style(leader)
        name, level = ("no leader", 4) if leader == NOBODY else (f"leader {leader}", 2)
        fill_boxes(axes, boxes, name, facecolor=color, edgecolor=look.INK, linewidth=0.6, zorder=level)
        wide = [box for box in boxes if shown.pixels(box[2] - box[0]) >= _HATCHED]
        if hatch and wide:
            fill_boxes(axes, wide, f"hatch of {name}", **look.hatched(color, hatch), zorder=level + 0.5)
    axes.axvline(last, color=look.INK, linewidth=1, linestyle=(0, (1, 2)), zorder=3)


def _legend(figure: Figure, shown: _Shown, top: float) -> None:
    keys = [look.Key(look.said(broker, 11), *shown.style(broker)) for broker in shown.brokers[:_NAMED]]
    if any(span.leader == NOBODY for lane in shown.lanes for span in lane.spans):
        keys.insert(0, look.Key("nobody", look.TROUBLE, look.TROUBLE_HATCH))
    left_out = len(shown.brokers) - _NAMED
    look.legend(figure, look.MARGIN, top + 10, "who leads:", keys, f"and {left_out:,} more" if left_out > 0 else "")
    words = "height of a bar: replicas that are in sync · right of the dotted line: what holds since the last change"
    look.write(figure, look.MARGIN, top + 28, words, size=look.TINY)


def _crosses(axes: Axes, shown: _Shown, lane: Lane, middle: float) -> None:
    """Words on each time without a leader, a cross where there is no room for them."""
    words, inside, beyond = "no leader", [], []
    room = look.width_of(words, look.TINY, "bold") + 8
    taken = shown.start - shown.end
    for span in lane.spans:
        end = shown.end if span.end is None else span.end
        at, wide = (span.start + end) / 2, shown.pixels(end - span.start)
        if span.leader != NOBODY or shown.pixels(at - taken) < _APART:
            continue
        taken = at
        if wide >= room:
            _put(axes, at, middle, words, look.TROUBLE, True, weight="bold")
        elif wide >= _APART:
            inside.append(at)
        else:
            beyond.append(at)
    ink = look.on(look.TROUBLE)
    axes.scatter(inside, [middle] * len(inside), s=36, marker="X", color=ink, linewidth=0, zorder=6)
    axes.scatter(
        beyond,
        [middle] * len(beyond),
        s=50,
        marker="X",
        color=look.TROUBLE,
        edgecolor=look.INK,
        linewidth=0.6,
        zorder=6,
    )


def _leader(axes: Axes, shown: _Shown, span: Span, middle: float, end: float) -> None:
    """Who leads, where there is room in the bar."""
    room, at = shown.pixels(end - span.start) - 6, (span.start + end) / 2
    if room < _APART / 2:
        return
    short = f" · {span.in_sync} of {span.replicas} in sync" if span.share < 1 else ""
    words = next((words for words in (f"{span.leader}{short}", str(span.leader))
                  if look.width_of(words, look.TINY) <= room), "")  # fmt: skip
    if not words:
        return
    color, hatch = shown.style(span.leader)
    if span.share * _BAND * _PITCH >= _LETTERS:
        _put(axes, at, middle + _BAND / 2 * (1 - span.share), words, color, bool(hatch))
    else:
        # In a low bar there is no room for letters: they stand above it, on the page.
        _put(axes, at, middle - _BAND / 2 * span.share, words)


def _put(axes: Axes, at: float, middle: float, words: str, on: str = "", plain: bool = False, **more: Any) -> None:
    """Words on a colour, which is ``plain`` behind them where it is hatched; or on the page."""
    back = {"facecolor": on, "edgecolor": "none", "pad": 1.0} if plain else None
    axes.text(
        at, middle, words, size=look.TINY, color=look.on(on) if on else look.INK, bbox=back, ha="center", va="center",
        parse_math=False, zorder=6, **more,
    )  # fmt: skip


PICTURE = Picture(
    name="leadership and ISR over time",
    commands=("timeline",),
    needs=("topic", "partition", "fromTimeMs", "toTimeMs", "leader", "isrSize", "replicas"),
    draw=draw,
)
