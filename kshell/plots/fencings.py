"""How often brokers were fenced a day, by broker or by cluster: the pipeline's ``broker_states``."""

from __future__ import annotations

from kshell.commands.base.result import Row
from kshell.plots.base import daily, look
from kshell.plots.base.picture import Drawn, Picture


def draw(rows: list[Row]) -> Drawn:
    """A row a day and broker, or a day and cluster."""
    by_cluster = "broker" not in rows[0]
    things = "clusters" if by_cluster else "brokers"
    return daily.draw(
        daily.Daily("Fencings a day", "fencings", "fencing", "fencings", things, _name, look.ORANGE), rows
    )


def _name(row: Row) -> str:
    return f"broker {row['broker']}" if "broker" in row else str(row["clusterId"])


PICTURE = Picture(
    name="fencings a day",
    commands=(),
    needs=("day", "fencings"),
    any_of=("broker", "clusterId"),
    draw=draw,
)
