"""Changes of leader a day, by broker or by cluster: the pipeline's ``leadership``."""

from __future__ import annotations

from kshell.commands.base.result import Row
from kshell.plots.base import daily
from kshell.plots.base.picture import Drawn, Picture


def draw(rows: list[Row]) -> Drawn:
    """A row a day and broker, or a day and cluster."""
    by_cluster = "broker" not in rows[0]
    things = "clusters" if by_cluster else "brokers"
    return daily.draw(
        daily.Daily("Changes of leader a day", "gained", "change of leader", "changes of leader", things, _name), rows
    )


def _name(row: Row) -> str:
    return f"to broker {row['broker']}" if "broker" in row else str(row["clusterId"])


PICTURE = Picture(
    name="changes of leader a day",
    commands=(),
    needs=("day", "gained"),
    any_of=("broker", "clusterId"),
    draw=draw,
)
