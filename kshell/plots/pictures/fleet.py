"""Picture of the overview in the pipeline's report: the size of each cluster, and how much of it is offline."""

from __future__ import annotations

from kshell.engine.result import Row
from kshell.plots import panels, theme
from kshell.plots.picture import Drawn, number, picture

_PANELS = (
    ("brokers", "brokers", theme.SKY),
    ("partitions", "partitions", theme.BLUE),
    ("underReplicated", "under-replicated", theme.ORANGE),
    ("offline", "offline", theme.TROUBLE),
)


@picture("clusters", needs=("clusterId", *(name for name, _, _ in _PANELS)))
def draw(rows: list[Row]) -> Drawn:
    """Draw rows that are clusters."""
    bad = [tuple(_count(row, name) for name, _, _ in reversed(_PANELS)) for row in rows]
    selected = [rows[place] for place in panels.worst_indexes(bad)]
    title = "Clusters"
    facts = [theme.counted(len(rows), "cluster")]
    facts += [f"{int(sum(_count(row, name) for row in rows)):,} {unit}" for name, unit, _ in _PANELS[1:]]
    note = f"{len(selected)} of {len(rows):,} clusters: those with the most trouble, then the largest"
    drawn = []
    for name, unit, color in _PANELS:
        values = [number(row[name]) for row in selected]
        bars = [panels.Bar(value, (value or 0) if name == "offline" else 0) for value in values]
        drawn.append(panels.Panel(unit, "brokers" if name == "brokers" else "partitions", bars, color))
    heading = panels.Heading(title, facts, note if len(selected) < len(rows) else "")
    figure = panels.draw(heading, [str(row["clusterId"]) for row in selected], drawn)
    return Drawn(figure, f"{title}. {'; '.join(facts)}.")


def _count(row: Row, name: str) -> float:
    return number(row[name]) or 0
