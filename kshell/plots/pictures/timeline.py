"""Picture of ``timeline``: leadership and ISR over time, one lane per partition.

The colour and number of a bar are the leader, its height is the share of replicas in sync. Time without a leader fills
the lane in a colour that nothing else has, hatched, and with a cross.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kshell.engine.result import Row
from kshell.plots import theme, times
from kshell.plots.intervals import fill_boxes
from kshell.plots.picture import Drawn, NothingToDraw, number, picture
from kshell.plots.vega import LaneBar, timeline
from kshell.tree.image import format_duration, iso

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from kshell.json_text import JsonObject

NOBODY = -1
"""The leader of a partition without one, as in Kafka's records."""
_MOST_EXACT = 100
"""The most intervals of a lane that are drawn one by one; more are combined (:meth:`PartitionBar.binned`)."""


class Interval(NamedTuple):
    """A time without a change of leader or ISR, in epoch milliseconds; ``end`` is ``None`` if it still lasts.

    ``leader`` is a broker id or :data:`NOBODY`; ``in_sync`` is the size of the ISR, ``None`` if it is unknown.
    """

    start: float
    end: float | None
    leader: int
    in_sync: int | None
    replicas: int

    @property
    def share(self) -> float:
        """The share of replicas that are in sync, 0 to 1. An unknown ISR counts as 1."""
        return 1.0 if self.in_sync is None else min(1.0, self.in_sync / max(self.replicas, 1))

    def length(self, last: float) -> float:
        """Return the length in milliseconds; an interval that still lasts ends at ``last``, the last change."""
        return max(0.0, (last if self.end is None else self.end) - self.start)


class PartitionBar(NamedTuple):
    """A partition: its name, and its intervals, oldest first. In gaps between them the partition did not exist."""

    name: str
    spans: Sequence[Interval]

    @property
    def is_dense(self) -> bool:
        """Whether it has too many intervals to draw one by one."""
        return len(self.spans) > _MOST_EXACT

    def binned(self, start: float, last: float, columns: int) -> PartitionBar:
        """Combine very many intervals into one per column of pixels, between ``start`` and ``last``.

        A column shows no leader if there was none at some time in it, else the last leader; and the smallest ISR.
        """
        if not self.is_dense:
            return self
        length = max(last - start, 1.0)
        cells: list[Interval | None] = [None] * columns
        for span in self.spans:
            first = min(columns - 1, max(0, int((span.start - start) / length * columns)))
            end = last if span.end is None else span.end
            for at in range(first, max(first, min(columns - 1, int((end - start) / length * columns - 1e-9))) + 1):
                cells[at] = _worse_span(cells[at], span)
        edges = [start + length * at / columns for at in range(columns + 1)]
        joined: list[Interval] = []
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
        return PartitionBar(self.name, joined)


def _worse_span(old: Interval | None, new: Interval) -> Interval:
    if old is None:
        return new
    leader = NOBODY if NOBODY in (old.leader, new.leader) else new.leader
    smaller = min(old, new, key=lambda span: span.share)
    return new._replace(leader=leader, in_sync=smaller.in_sync, replicas=smaller.replicas)


def lanes_of(rows: Sequence[Row]) -> tuple[list[PartitionBar], float, float]:
    """Return a lane for each partition in the order of the rows, the first time, and the last change (epoch ms)."""
    spans_by_partition: dict[tuple[str, str], list[Interval]] = {}
    for row in rows:
        start = number(row["fromTimeMs"])
        if start is None:
            continue
        leader, in_sync = number(row["leader"]), number(row["isrSize"])
        span = Interval(
            start,
            number(row["toTimeMs"]),
            NOBODY if leader is None or leader < 0 else int(leader),
            None if in_sync is None else int(in_sync),
            len(row["replicas"] or ()),
        )
        spans_by_partition.setdefault((str(row["topic"]), str(row["partition"])), []).append(span)
    lanes = [
        PartitionBar(f"{topic}-{partition}", sorted(spans, key=_begin))
        for (topic, partition), spans in spans_by_partition.items()
    ]
    times = [time for lane in lanes for span in lane.spans for time in (span.start, span.end) if time is not None]
    return lanes, min(times, default=0.0), max(times, default=0.0)


def _begin(span: Interval) -> float:
    return span.start


def without_leader(lane: PartitionBar, last: float) -> float:
    """Return how long a partition was without a leader, in milliseconds.

    1 is added for each interval, so that those without a length count, too.
    """
    return sum(span.length(last) + 1 for span in lane.spans if span.leader == NOBODY)


def _out_of_sync_ms(lane: PartitionBar, last: float) -> float:
    """Return how long replicas were out of sync, in milliseconds weighted by their share."""
    return sum((span.length(last) + 1) * (1 - span.share) for span in lane.spans)


def worst_lanes(lanes: Sequence[PartitionBar], most: int, last: float) -> list[PartitionBar]:
    """Return the lanes to draw, in their order: the ``most`` that were longest without a leader, then out of sync."""
    if len(lanes) <= most:
        return list(lanes)
    order = sorted(
        range(len(lanes)), key=lambda at: (-without_leader(lanes[at], last), -_out_of_sync_ms(lanes[at], last), at)
    )
    return [lanes[at] for at in sorted(order[:most])]


def facts_about(lanes: Sequence[PartitionBar], last: float) -> list[str]:
    """Return short statements about what the picture shows, the worst first."""
    facts = _leaderless(lanes, last)
    open_ends = [lane.spans[-1] for lane in lanes if lane.spans[-1].end is None]
    short = sum(span.share < 1 for span in open_ends)
    if short:
        facts.append(f"{short:,} of {len(open_ends):,} not fully in sync at the end")
    elif open_ends:
        facts.append("all in sync at the end")
    changes = sum(
        earlier.leader != later.leader and later.leader != NOBODY
        for lane in lanes
        for earlier, later in zip(lane.spans, lane.spans[1:], strict=False)
    )
    return [*facts, theme.counted(changes, "change of leader", "changes of leader")] if changes else facts


def _leaderless(lanes: Sequence[PartitionBar], last: float) -> list[str]:
    lost = [lane for lane in lanes if lane.spans[-1].end is None and lane.spans[-1].leader == NOBODY]
    ever = [lane for lane in lanes if any(span.leader == NOBODY for span in lane.spans)]
    if not ever:
        return ["none was ever without a leader"]
    facts = []
    if lost:
        facts.append(f"{_name_of(lost)} {'has' if len(lost) == 1 else 'have'} no leader at the end")
    if len(ever) > len(lost):
        longest = max(ever, key=lambda lane: without_leader(lane, last))
        spell = max((span.length(last) for span in longest.spans if span.leader == NOBODY), default=0.0)
        recovered = [lane for lane in ever if lane not in lost]
        facts.append(f"{_name_of(recovered)} had none for a while")
        facts.append(f"the longest without: {theme.short_name(longest.name, 40)}, {format_duration(spell)}")
    return facts


def _name_of(lanes: Sequence[PartitionBar]) -> str:
    return theme.short_name(lanes[0].name, 40) if len(lanes) == 1 else f"{len(lanes):,} partitions"


# --- drawing ---

MOST = 30
"""The most partitions that are drawn."""
_PITCH, _BAND = 28, 0.84
_HEAD, _FOOT, _LABEL = 46, 48, 290
_PRESENT_SHARE = 0.14
"""The share of the drawn time that is added after the last change, for the present state; it is not to scale."""
_NAMED = 10
"""The most brokers in the legend."""
_NARROW = 3.0
"""The least width of a time without a leader, in pixels."""
_MIN_HATCH_WIDTH, _MIN_CROSS_DISTANCE, _MIN_TEXT_HEIGHT = 6, 14, 11
"""Pixels: the least width of a box with a hatch, distance of two crosses, and height of a bar with text in it."""


class _View(NamedTuple):
    """What is drawn, from ``start`` to ``end`` (epoch milliseconds); after the last change it is the present state."""

    lanes: Sequence[PartitionBar]
    start: float
    end: float
    brokers: Sequence[int]
    width: float

    def style(self, leader: int) -> tuple[str, str]:
        """Return colour and hatch of a broker; with very many brokers, some pairs are used more than once."""
        place = self.brokers.index(leader)
        colors = len(theme.SERIES)
        return theme.SERIES[place % colors], theme.HATCHES[place // colors % len(theme.HATCHES)]

    def pixels(self, length: float) -> float:
        return length / (self.end - self.start) * self.width


def _spec(rows: list[Row]) -> JsonObject:
    """Make the interactive chart, with every interval of the rows, as the user can zoom in."""
    _, first, last = lanes_of(rows)
    beyond = last + max((last - first) * _PRESENT_SHARE, 1.0)
    bars, brokers = [], set[int]()
    for row in rows:
        start, end, leader = number(row["fromTimeMs"]), number(row["toTimeMs"]), number(row["leader"])
        if start is None:
            continue
        broker = NOBODY if leader is None or leader < 0 else int(leader)
        brokers.add(broker)
        times = {"from": iso(int(start)), "to": "now" if end is None else iso(int(end))}
        facts = {**times, "leader": _broker(broker), **{name: _listed(row.get(name)) for name in ("isr", "replicas")}}
        lane = f"{row['topic']}-{row['partition']}"
        bars.append(LaneBar(lane, start, beyond if end is None else max(end, start + 1), _broker(broker), facts))
    broker_ids = sorted(brokers - {NOBODY})
    colors = {_broker(broker): theme.SERIES[place % len(theme.SERIES)] for place, broker in enumerate(broker_ids)}
    if NOBODY in brokers:
        colors[_broker(NOBODY)] = theme.TROUBLE
    return timeline("Leadership and ISR over time", bars, colors, "who leads")


def _broker(broker: int) -> str:
    return "nobody" if broker == NOBODY else str(broker)


def _listed(nodes: Iterable[object] | None) -> str | None:
    return None if nodes is None else ", ".join(map(str, nodes)) or "none"


@picture(
    "leadership and ISR over time",
    needs=("topic", "partition", "fromTimeMs", "toTimeMs", "leader", "isrSize", "replicas"),
    commands=("timeline",),
    spec=_spec,
)
def draw(rows: list[Row]) -> Drawn:
    """Draw rows that are intervals of time of partitions. Raises NothingToDraw if no row has a time."""
    lanes, start, last = lanes_of(rows)
    if not lanes:
        raise NothingToDraw("no row says when it begins")
    chosen = worst_lanes(lanes, MOST, last)
    title, facts = "Leadership and ISR over time", facts_about(lanes, last)
    height = _HEAD + _PITCH * len(chosen) + _FOOT
    figure, top = theme.page(title, facts, height, _note(lanes, chosen))
    plot_left = _names(figure, chosen, top + _HEAD, last)
    width = theme.WIDTH - theme.MARGIN - plot_left
    brokers = sorted({span.leader for lane in chosen for span in lane.spans if span.leader != NOBODY})
    end = last + max((last - start) * _PRESENT_SHARE, 1.0)
    view = _View([lane.binned(start, last, int(width / 3)) for lane in chosen], start, end, brokers, width)
    axes = theme.axes_at(figure, plot_left, top + _HEAD, width, _PITCH * len(chosen))
    axes.set_ylim(len(chosen), 0)
    times.time_axis(axes, start, end, width)
    _fill(axes, view, last)
    _legend(figure, view, top)
    when = times.between(start, last)
    return Drawn(figure, f"{title}: {theme.counted(len(lanes), 'partition')}, {when}. {'; '.join(facts)}.")


def _note(lanes: Sequence[PartitionBar], chosen: Sequence[PartitionBar]) -> str:
    notes = []
    if len(chosen) < len(lanes):
        notes.append(f"{len(chosen)} of {len(lanes):,} partitions: those longest without a leader or short of replicas")
    if any(lane.is_dense for lane in chosen):
        notes.append("where there are too many changes to draw, the worst of a moment is shown")
    return " · ".join(notes)


def _names(figure: Figure, chosen: Sequence[PartitionBar], top: float, last: float) -> float:
    """Write the names, in bold for partitions that were without a leader; return where they end."""
    labels = []
    for lane in chosen:
        weight = "bold" if without_leader(lane, last) else "normal"
        labels.append(
            (theme.fitting(theme.drawable_name(lane.name, 40), _LABEL, weight=weight, tail=theme.TAIL), weight)
        )
    end = theme.MARGIN + max(theme.width_of(text, weight=weight) for text, weight in labels) + 10
    for place, (text, weight) in enumerate(labels):
        theme.write(figure, end - 10, top + _PITCH * (place + 0.5), text, ha="right", weight=weight)
    return end


def _fill(axes: Axes, view: _View, last: float) -> None:
    """Draw the bars, one collection per broker, and behind them faint ones of full height (all replicas in sync)."""
    shapes: dict[int, list[tuple[float, float, float, float]]] = defaultdict(list)
    ground: list[tuple[float, float, float, float]] = []
    least = _NARROW / view.width * (view.end - view.start)
    for place, lane in enumerate(view.lanes):
        for span in lane.spans:
            end = view.end if span.end is None else span.end
            bottom = place + (1 + _BAND) / 2
            ground.append((span.start, bottom - _BAND, end, bottom))
            if span.leader == NOBODY:
                shapes[NOBODY].append((span.start, bottom - _BAND, max(end, span.start + least), bottom))
            elif span.share:
                shapes[span.leader].append((span.start, bottom - _BAND * span.share, end, bottom))
            if span.leader != NOBODY:
                _leader(axes, view, span, place + 0.5, end)
        _crosses(axes, view, lane, place + 0.5)
    fill_boxes(axes, ground, "all replicas", facecolor=theme.INK, alpha=theme.FAINT, linewidth=0, zorder=1)
    for leader, boxes in sorted(shapes.items()):
        color, hatch = (theme.TROUBLE, theme.TROUBLE_HATCH) if leader == NOBODY else view.style(leader)
        name, level = ("no leader", 4) if leader == NOBODY else (f"leader {leader}", 2)
        fill_boxes(axes, boxes, name, facecolor=color, edgecolor=theme.INK, linewidth=0.6, zorder=level)
        wide = [box for box in boxes if view.pixels(box[2] - box[0]) >= _MIN_HATCH_WIDTH]
        if hatch and wide:
            fill_boxes(axes, wide, f"hatch of {name}", **theme.hatched(color, hatch), zorder=level + 0.5)
    axes.axvline(last, color=theme.INK, linewidth=1, linestyle=(0, (1, 2)), zorder=3)


def _legend(figure: Figure, view: _View, top: float) -> None:
    keys = [theme.LegendKey(theme.short_name(broker, 11), *view.style(broker)) for broker in view.brokers[:_NAMED]]
    if any(span.leader == NOBODY for lane in view.lanes for span in lane.spans):
        keys.insert(0, theme.LegendKey("nobody", theme.TROUBLE, theme.TROUBLE_HATCH))
    left_out = len(view.brokers) - _NAMED
    theme.legend(figure, theme.MARGIN, top + 10, "who leads:", keys, f"and {left_out:,} more" if left_out > 0 else "")
    explanation = (
        "height of a bar: replicas that are in sync · right of the dotted line: what holds since the last change"
    )
    theme.write(figure, theme.MARGIN, top + 28, explanation, size=theme.TINY)


def _crosses(axes: Axes, view: _View, lane: PartitionBar, middle: float) -> None:
    """Label each time without a leader, or mark it with a cross if there is no room for text."""
    label, inside, beyond = "no leader", [], []
    room = theme.width_of(label, theme.TINY, "bold") + 8
    taken = view.start - view.end
    for span in lane.spans:
        end = view.end if span.end is None else span.end
        at, wide = (span.start + end) / 2, view.pixels(end - span.start)
        if span.leader != NOBODY or view.pixels(at - taken) < _MIN_CROSS_DISTANCE:
            continue
        taken = at
        if wide >= room:
            _put(axes, at, middle, label, theme.TROUBLE, True, weight="bold")
        elif wide >= _MIN_CROSS_DISTANCE:
            inside.append(at)
        else:
            beyond.append(at)
    ink = theme.on(theme.TROUBLE)
    axes.scatter(inside, [middle] * len(inside), s=36, marker="X", color=ink, linewidth=0, zorder=6)
    axes.scatter(
        beyond,
        [middle] * len(beyond),
        s=50,
        marker="X",
        color=theme.TROUBLE,
        edgecolor=theme.INK,
        linewidth=0.6,
        zorder=6,
    )


def _leader(axes: Axes, view: _View, span: Interval, middle: float, end: float) -> None:
    """Write the leader on a bar if there is room, with the size of the ISR if it is not complete."""
    room, at = view.pixels(end - span.start) - 6, (span.start + end) / 2
    if room < _MIN_CROSS_DISTANCE / 2:
        return
    short = f" · {span.in_sync} of {span.replicas} in sync" if span.share < 1 else ""
    text = next(
        (label for label in (f"{span.leader}{short}", str(span.leader)) if theme.width_of(label, theme.TINY) <= room),
        "",
    )
    if not text:
        return
    color, hatch = view.style(span.leader)
    if span.share * _BAND * _PITCH >= _MIN_TEXT_HEIGHT:
        _put(axes, at, middle + _BAND / 2 * (1 - span.share), text, color, bool(hatch))
    else:
        # A low bar has no room for letters: they are written above it.
        _put(axes, at, middle - _BAND / 2 * span.share, text)


def _put(axes: Axes, at: float, middle: float, text: str, on: str = "", plain: bool = False, **more: Any) -> None:
    """Write a text on the colour ``on``, or on the page if that is empty. ``plain``: hide a hatch behind the text."""
    back = {"facecolor": on, "edgecolor": "none", "pad": 1.0} if plain else None
    axes.text(
        at,
        middle,
        text,
        size=theme.TINY,
        color=theme.on(on) if on else theme.INK,
        bbox=back,
        ha="center",
        va="center",
        parse_math=False,
        zorder=6,
        **more,
    )
