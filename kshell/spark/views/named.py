"""The tables of a warehouse and its views ``current_…``, by name: for SQL, the report and Python."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from kshell.sources.points import Point
from kshell.spark import views
from kshell.spark.views.known_at import unknown
from kshell.spark.warehouse import catalog
from kshell.spark.warehouse.commits import CURRENT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kshell.spark.warehouse import Warehouse

_NOW = Point()


def names() -> list[str]:
    """All of them."""
    return [*catalog.tables(), *catalog.current_names()]


def named(warehouse: Warehouse, name: str, point: Point = _NOW, clusters: Collection[str] | None = None) -> DataFrame:
    """A table, or a view. Views show tables of some clusters (``None``: all) as the shell does, now or as of a point;
    without clusters of which nothing is known then (:func:`~kshell.spark.views.known_at.unknown`).

    Raises UsageError for a name that there is none of.
    """
    table = catalog.current_names().get(name)
    if table is None:
        return warehouse.read(name, clusters)
    if gone := unknown(warehouse.state.clusters, point):
        kept = warehouse.state.clusters if clusters is None else clusters
        clusters = [cluster for cluster in kept if cluster not in gone]
    versions = {}
    for need in {table, *views.NEEDS.get(table, ())}:
        rows = warehouse.read(need, clusters, CURRENT if point == _NOW else None)
        versions[need] = views.valid_at(rows, offset=point.offset, time_ms=point.time_ms)
    if table == views.CONTROLLERS and point == _NOW:
        versions[catalog.CLUSTERS] = warehouse.read(catalog.CLUSTERS, clusters)
    return views.shell_table(table, versions)


def register(warehouse: Warehouse, wanted: Iterable[str], point: Point = _NOW) -> list[str]:
    """Makes them temporary views of the session, which SQL finds by their names; gives the names."""
    made = list(wanted)
    for name in made:
        named(warehouse, name, point).createOrReplaceTempView(name)
    return made
