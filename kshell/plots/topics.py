"""What is wrong with the partitions of each topic: ``topics``."""

from __future__ import annotations

from kshell.engine.result import Row
from kshell.plots.base import look, panels
from kshell.plots.base.picture import Drawn, Picture, number

_TROUBLES = (
    ("underReplicated", "under-replicated", look.ORANGE),
    ("underMinIsr", "under min ISR", look.PURPLE),
    ("offline", "offline", look.TROUBLE),
)


def draw(rows: list[Row]) -> Drawn:
    """A row a topic. A partition may have several of these troubles, so that they stand beside each other."""
    troubles = [trouble for trouble in _TROUBLES if trouble[0] in rows[0]]
    bad = [(*(_count(row, name) for name, _, _ in reversed(troubles)), _count(row, "partitions")) for row in rows]
    kept = [rows[place] for place in panels.worst(len(rows), bad)]
    title = "Partitions by topic, and what is wrong with them"
    facts = _facts(rows, troubles)
    note = (
        f"{len(kept)} of {len(rows):,} topics: those with the most trouble, then the largest"
        if len(kept) < len(rows)
        else ""
    )
    drawn = [panels.Panel("all partitions", "partitions", _bars(kept, "partitions"), look.BLUE)]
    drawn += [
        panels.Panel(words, "partitions", _bars(kept, name, name == "offline"), color)
        for name, words, color in troubles
    ]
    figure = panels.draw(panels.Heading(title, facts, note), [str(row["name"]) for row in kept], drawn, alike=True)
    return Drawn(figure, f"{title}. {'; '.join(facts)}.{_worst(rows)}")


def _count(row: Row, name: str) -> float:
    return number(row.get(name)) or 0


def _bars(rows: list[Row], name: str, trouble: bool = False) -> list[panels.Bar]:
    values = [number(row.get(name)) for row in rows]
    return [panels.Bar(value, (value or 0) if trouble else 0) for value in values]


def _facts(rows: list[Row], troubles: list[tuple[str, str, str]]) -> list[str]:
    found = [f"{look.counted(len(rows), 'topic')}, {int(sum(_count(row, 'partitions') for row in rows)):,} partitions"]
    for name, words, _ in reversed(troubles):
        count = int(sum(_count(row, name) for row in rows))
        found.append(f"{count:,} {words}" if count else f"none {words}")
    return found


def _worst(rows: list[Row]) -> str:
    lost = [look.said(row["name"], 40) for row in rows if _count(row, "offline")]
    if not lost:
        return ""
    more = f" and {len(lost) - 3:,} more" if len(lost) > 3 else ""
    return f" Partitions are offline in {', '.join(lost[:3])}{more}."


PICTURE = Picture(
    name="partition states by topic",
    commands=("topics",),
    needs=("name", "partitions", "underReplicated", "offline"),
    draw=draw,
)
