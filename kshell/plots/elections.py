"""Unclean elections a day, by topic or by cluster: the pipeline's ``unclean_elections``."""

from __future__ import annotations

from kshell.commands.base.result import Row
from kshell.plots.base import daily, look
from kshell.plots.base.picture import Drawn, Picture


def draw(rows: list[Row]) -> Drawn:
    """A row a day and topic, or a day and cluster."""
    by_cluster = "topic" not in rows[0]
    things = "clusters" if by_cluster else "topics"
    words = "unclean election", "unclean elections"
    kind = daily.Daily("Unclean elections a day", "elections", *words, things, _name, look.TROUBLE, look.TROUBLE_HATCH)
    return daily.draw(kind, rows)


def _name(row: Row) -> str:
    return str(row["topic"] if "topic" in row else row["clusterId"])


PICTURE = Picture(
    name="unclean elections a day",
    commands=(),
    needs=("day", "elections"),
    any_of=("topic", "clusterId"),
    draw=draw,
)
