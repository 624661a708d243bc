"""Leaders and replicas per rack, and what only one rack holds: ``skew --rack``."""

from __future__ import annotations

from kshell.engine.result import Row
from kshell.plots.base import look, panels
from kshell.plots.base.load import load_panels, most_and_least, sums
from kshell.plots.base.picture import Drawn, Picture, number


def draw(rows: list[Row]) -> Drawn:
    """A row a rack."""
    chosen = panels.worst(len(rows), [(number(row["soleRack"]) or 0, number(row["replicas"]) or 0) for row in rows])
    kept = [rows[place] for place in chosen]
    title = "Leaders and replicas by rack"
    alone = sum(number(row["soleRack"]) or 0 for row in rows)
    facts = [*most_and_least(rows, "leads", _name), _alone(alone)]
    note = (
        f"{len(kept)} of {len(rows):,} racks: those with the most that is nowhere else, then the fullest"
        if len(kept) < len(rows)
        else ""
    )
    drawn = load_panels(kept, rows)
    if alone:
        bars = [panels.Bar(value, value or 0) for value in (number(row["soleRack"]) for row in kept)]
        drawn.append(panels.Panel("in no other rack", "partitions", bars, look.TROUBLE))
    figure = panels.draw(panels.Heading(title, facts, note), [_label(row) for row in kept], drawn)
    return Drawn(figure, f"{title}. {look.counted(len(rows), 'rack')}. {sums(rows)} {'; '.join(facts)}.")


def _alone(count: float) -> str:
    if not count:
        return "no partition with several replicas has all of them in one rack"
    has, its = ("has", "its") if count == 1 else ("have", "their")
    return f"{look.counted(int(count), 'partition')} {has} all {its} replicas in one rack"


def _name(row: Row) -> str:
    return "(no rack)" if row["rack"] is None else look.said(row["rack"], 24)


def _label(row: Row) -> str:
    brokers = number(row.get("brokers"))
    name = "(no rack)" if row["rack"] is None else look.said(row["rack"], 24)
    return name if brokers is None else f"{name} · {look.counted(int(brokers), 'broker')}"


PICTURE = Picture(
    name="leaders and replicas by rack",
    commands=("skew --rack",),
    needs=("rack", "leaders", "replicas", "soleRack"),
    draw=draw,
)
