"""Records of the metadata log a day, by type or by cluster: the pipeline's ``metadata_growth``."""

from __future__ import annotations

from kshell.commands.base.result import Row
from kshell.plots.base import daily
from kshell.plots.base.picture import Drawn, Picture


def draw(rows: list[Row]) -> Drawn:
    """A row a day and type, or a day and cluster."""
    by_cluster = "type" not in rows[0]
    things = "clusters" if by_cluster else "types"
    return daily.draw(daily.Daily("Records a day", "records", "record", "records", things, _name), rows)


def _name(row: Row) -> str:
    return str(row["type"] if "type" in row else row["clusterId"])


PICTURE = Picture(
    name="records a day",
    commands=(),
    needs=("day", "records"),
    any_of=("type", "clusterId"),
    draw=draw,
)
