"""Picture of the pipeline's ``reassignments``: partition reassignments over time, one lane per partition."""

from __future__ import annotations

from collections import Counter

from kshell.engine.result import Row
from kshell.plots import intervals, panels, theme
from kshell.plots.intervals import Lane, LaneInterval, Style
from kshell.plots.picture import Drawn, NothingToDraw, number, picture
from kshell.tree.image import format_duration

_STYLES = {
    "completed": Style("completed", theme.BLUE, "", 2),
    "cancelled": Style("cancelled", theme.ORANGE, "xxxx", 4),
    "deleted": Style("deleted", theme.INK, "", 3),
    "at-once": Style("at once", theme.GREEN, "", 3),
}
_LASTS = Style("under way", theme.PURPLE, "....", 5)


@picture("reassignments over time", needs=("topic", "partition", "fromMs", "toMs", "outcome", "adding", "removing"))
def draw(rows: list[Row]) -> Drawn:
    """Draw rows that are reassignments. Raises NothingToDraw if no row has a time."""
    timed = [(row, start) for row in rows if (start := number(row["fromMs"])) is not None]
    if not timed:
        raise NothingToDraw("no row says when it begins")
    last = max(_end(row, start) for row, start in timed)
    lanes: dict[str, list[tuple[Row, float]]] = {}
    for row, start in timed:
        lanes.setdefault(f"{row['topic']}-{row['partition']}", []).append((row, start))
    longest = sorted(lanes, key=lambda name: -max(_end(row, start) - start for row, start in lanes[name]))
    selected = [name for name in lanes if name in set(longest[: intervals.MOST])]
    drawn = [
        Lane(name, [LaneInterval(start, number(row["toMs"]), _style(row), _changes(row)) for row, start in lanes[name]])
        for name in selected
    ]
    ends = Counter(_style(row).label for row, _ in timed)
    facts = [
        theme.counted(len(timed), "reassignment"),
        *(f"{count:,} {outcome}" for outcome, count in ends.most_common()),
    ]
    row, start = max(timed, key=lambda reassignment: _end(*reassignment) - reassignment[1])
    where = theme.short_name(f"{row['topic']}-{row['partition']}", 48)
    facts.append(f"longest: {where}, {format_duration(_end(row, start) - start)}")
    note = f"{len(selected)} of {len(lanes):,} partitions: those with the longest" if len(selected) < len(lanes) else ""
    title = "Reassignments over time"
    figure = intervals.draw(panels.Heading(title, facts, note), drawn, last, "ended:")
    return Drawn(figure, f"{title}. {'; '.join(facts)}.")


def _end(row: Row, start: float) -> float:
    end = number(row["toMs"])
    return start + (number(row.get("durationMs")) or 0) if end is None else end


def _style(row: Row) -> Style:
    return _STYLES.get(str(row["outcome"]), _LASTS)


def _changes(row: Row) -> str:
    added, removed = (", ".join(str(broker) for broker in row[name] or ()) for name in ("adding", "removing"))
    return " ".join(part for part in (added and f"+ {added}", removed and f"\N{MINUS SIGN} {removed}") if part)
