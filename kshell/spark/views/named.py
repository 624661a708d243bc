"""The tables of a warehouse and its views ``current_…``, by name: for SQL, the report and Python."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from kshell.sources.points import Point
from kshell.spark import views
from kshell.spark.tables import catalog
from kshell.spark.tables.catalog import CURRENT
from kshell.spark.views.moment import NOW, Moment, moment_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kshell.spark.tables.warehouse import Warehouse


def names() -> list[str]:
    """Return the names of all tables and views, sorted by layer."""
    return [*catalog.tables(), *catalog.current_views()]


def named(warehouse: Warehouse, name: str, moment: Moment = NOW, clusters: Collection[str] | None = None) -> DataFrame:
    """Return a table, or a view ``current_…`` as of a moment, of some clusters (``None``: all).

    A view leaves out the clusters whose state at the moment is not known. A table has all its rows, whatever the
    moment. Raises UsageError for a name that neither a table nor a view has.
    """
    table = catalog.current_views().get(name)
    if table is None:
        return warehouse.read(name, clusters)
    if moment.unknown:
        candidates = warehouse.state.clusters if clusters is None else clusters
        clusters = [cluster for cluster in candidates if cluster not in moment.unknown]
    versions = {}
    for need in {table, *views.NEEDS.get(table, ())}:
        rows = warehouse.read(need, clusters, CURRENT if moment.offsets is None else None)
        versions[need] = views.valid_at(rows, moment.offsets)
    if table == views.CONTROLLERS and moment.offsets is None:
        versions[catalog.CLUSTERS] = warehouse.read(catalog.CLUSTERS, clusters)
    return views.shell_table(table, versions)


def register(warehouse: Warehouse, wanted: Iterable[str], point: Point) -> Moment:
    """Make tables and views known to the session's SQL by their names (as temporary views).

    Returns:
        What the point means in each cluster; :data:`NOW` if no ``current_…`` is wanted.
    """
    table_names = list(wanted)
    asks = not catalog.current_views().keys().isdisjoint(table_names)
    moment = moment_of(warehouse, point) if asks else NOW
    for name in table_names:
        named(warehouse, name, moment).createOrReplaceTempView(name)
    return moment
