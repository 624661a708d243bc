"""What was changed a day, by kind or by cluster: the pipeline's ``access_audit`` and ``config_changes``."""

from __future__ import annotations

from kshell.commands.base.result import Row
from kshell.plots.base import daily
from kshell.plots.base.picture import Drawn, Picture


def draw(rows: list[Row]) -> Drawn:
    """A row a day and kind, or a day and cluster."""
    by_cluster = "kind" not in rows[0]
    things = "clusters" if by_cluster else "kinds"
    return daily.draw(daily.Daily("Changes a day", "changes", "change", "changes", things, _name), rows)


def _name(row: Row) -> str:
    return str(row["kind"] if "kind" in row else row["clusterId"])


PICTURE = Picture(
    name="changes a day",
    commands=(),
    needs=("day", "changes"),
    any_of=("kind", "clusterId"),
    draw=draw,
)
