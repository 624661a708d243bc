"""Reassignments over time, a lane a partition: the pipeline's ``reassignments``."""

from __future__ import annotations

from collections import Counter

from kshell.engine.result import Row
from kshell.plots.base import look, moments, panels, stretches
from kshell.plots.base.picture import Drawn, Picture, nothing_to_draw, number
from kshell.plots.base.stretches import Lane, Stretch, Style

_STYLES = {
    "completed": Style("completed", look.BLUE, "", 2),
    "cancelled": Style("cancelled", look.ORANGE, "xxxx", 4),
    "deleted": Style("deleted", look.INK, "", 3),
    "at-once": Style("at once", look.GREEN, "", 3),
}
_LASTS = Style("under way", look.PURPLE, "....", 5)


def draw(rows: list[Row]) -> Drawn:
    """A row a reassignment. Raises UsageError where none has a time."""
    known = [(row, start) for row in rows if (start := number(row["fromMs"])) is not None]
    if not known:
        raise nothing_to_draw(PICTURE.name, "no row says when it begins")
    last = max(_end(row, start) for row, start in known)
    lanes: dict[str, list[tuple[Row, float]]] = {}
    for row, start in known:
        lanes.setdefault(f"{row['topic']}-{row['partition']}", []).append((row, start))
    longest = sorted(lanes, key=lambda name: -max(_end(row, start) - start for row, start in lanes[name]))
    kept = [name for name in lanes if name in set(longest[: stretches.MOST])]
    drawn = [Lane(name, [Stretch(start, number(row["toMs"]), _style(row), _words(row)) for row, start in lanes[name]])
             for name in kept]  # fmt: skip
    ends = Counter(_style(row).words for row, _ in known)
    facts = [look.counted(len(known), "reassignment"), *(f"{count:,} {words}" for words, count in ends.most_common())]
    row, start = max(known, key=lambda one: _end(*one) - one[1])
    where = look.said(f"{row['topic']}-{row['partition']}", 48)
    facts.append(f"longest: {where}, {moments.lasting(_end(row, start) - start)}")
    note = f"{len(kept)} of {len(lanes):,} partitions: those with the longest" if len(kept) < len(lanes) else ""
    title = "Reassignments over time"
    figure = stretches.draw(panels.Heading(title, facts, note), drawn, last, "ended:")
    return Drawn(figure, f"{title}. {'; '.join(facts)}.")


def _end(row: Row, start: float) -> float:
    end = number(row["toMs"])
    return start + (number(row.get("durationMs")) or 0) if end is None else end


def _style(row: Row) -> Style:
    return _STYLES.get(str(row["outcome"]), _LASTS)


def _words(row: Row) -> str:
    added, removed = (", ".join(str(one) for one in row[name] or ()) for name in ("adding", "removing"))
    return " ".join(part for part in (added and f"+ {added}", removed and f"\N{MINUS SIGN} {removed}") if part)


PICTURE = Picture(
    name="reassignments over time",
    commands=(),
    needs=("topic", "partition", "fromMs", "toMs", "outcome", "adding", "removing"),
    draw=draw,
)
