"""Leaders and replicas per broker, against an even share: ``skew`` and ``brokers --load``."""

from __future__ import annotations

from typing import Any

from kshell.engine.result import Row
from kshell.plots.base import look, panels
from kshell.plots.base.load import load_panels, most_and_least, sums
from kshell.plots.base.picture import Drawn, Picture, number


def draw(rows: list[Row]) -> Drawn:
    """A row a broker."""
    chosen = panels.worst(len(rows), _badness(rows))
    kept = [rows[place] for place in chosen]
    title = "Leaders and replicas by broker"
    facts = [*most_and_least(rows, "leads", _name), *_trouble(rows)]
    note = (
        f"{len(kept)} of {len(rows):,} brokers: those that are furthest from an even share of leaders"
        if len(kept) < len(rows)
        else ""
    )
    figure = panels.draw(panels.Heading(title, facts, note), [_label(row) for row in kept], load_panels(kept, rows))
    return Drawn(figure, f"{title}. {look.counted(len(rows), 'broker')}. {sums(rows)} {'; '.join(facts)}.")


def _badness(rows: list[Row]) -> list[tuple[float, ...]]:
    """How far each is from the mean."""
    counts = [number(row["leaders"]) or 0 for row in rows]
    mean = sum(counts) / len(counts)
    return [(abs(count - mean), number(row.get("outOfSync")) or 0) for count, row in zip(counts, rows, strict=True)]


def _id(row: Row) -> Any:
    return row["broker"] if "broker" in row else row["id"]


def _name(row: Row) -> str:
    return f"broker {look.said(_id(row), 24)}"


def _label(row: Row) -> str:
    rack, fenced = row.get("rack"), row.get("fenced", False)
    state = "fenced" if fenced else "not registered" if fenced is None else ""
    return " · ".join(filter(None, (str(_id(row)), None if rack is None else look.said(rack, 20), state)))


def _trouble(rows: list[Row]) -> list[str]:
    fenced = [_name(row) for row in rows if row.get("fenced")]
    if not fenced:
        return []
    return [f"{fenced[0]} is fenced" if len(fenced) == 1 else f"{len(fenced)} brokers are fenced"]


PICTURE = Picture(
    name="leaders and replicas by broker",
    commands=("skew", "brokers --load"),
    needs=("leaders", "replicas"),
    any_of=("broker", "id"),
    draw=draw,
)
