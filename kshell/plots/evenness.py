"""How unevenly leaders and replicas lay each day, by measure or by cluster: the pipeline's ``skew``."""

from __future__ import annotations

from kshell.commands.base.result import Row
from kshell.plots.base import daily
from kshell.plots.base.picture import Drawn, Picture


def draw(rows: list[Row]) -> Drawn:
    """A row a day and measure, or a day and cluster."""
    by_cluster = "measure" not in rows[0]
    things = "clusters" if by_cluster else "measures"
    words = "of the mean", "times the mean"
    kind = daily.Daily("Busiest broker, to the mean", "mostToMean", *words, things, _name, is_level=True)
    return daily.draw(kind, rows)


def _name(row: Row) -> str:
    return str(row["measure"] if "measure" in row else row["clusterId"])


PICTURE = Picture(
    name="busiest broker, to the mean",
    commands=(),
    needs=("day", "mostToMean"),
    any_of=("measure", "clusterId"),
    draw=draw,
)
