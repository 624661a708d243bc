"""The gold tables of a step: made anew of all versions of the clusters in which something has changed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions as fn

from kshell.spark import gold
from kshell.spark.gold.base.declared import GoldTable, Shared

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kshell.sources.log import Progress
    from kshell.spark.warehouse import Warehouse

Write = Callable[[], int]


def writes(warehouse: Warehouse, changed: Mapping[str, set[str]], told: Progress) -> list[tuple[str, Write]]:
    """By name, what writes a table, and gives how many rows it has written. ``changed``: table of bronze or silver ->
    clusters whose rows in it are not what they were.
    """
    touched = {
        name: set().union(*(changed.get(need, set()) for need in table.needs)) for name, table in gold.tables().items()
    }
    made = {name: clusters for name, clusters in touched.items() if clusters}
    shared = _shared(warehouse, made, told)
    return [(name, _write(warehouse, gold.tables()[name], clusters, shared)) for name, clusters in made.items()]


def _shared(warehouse: Warehouse, made: Mapping[str, set[str]], told: Progress) -> dict[str, DataFrame]:
    """What several of those tables begin with, of all their clusters."""
    users: dict[Shared, list[str]] = {}
    for name in made:
        for one in gold.tables()[name].shares:
            users.setdefault(one, []).append(name)
    found = {}
    for one, names in users.items():
        told(0, 0, f"{one.name}, for {', '.join(names)}")
        tables = _read(warehouse, gold.tables()[names[0]].needs, set().union(*(made[name] for name in names)))
        # Not cached: a cached frame brings its whole plan into all that stand on it.
        found[one.name] = one.make(tables).localCheckpoint()
    return found


def _write(warehouse: Warehouse, table: GoldTable, clusters: Collection[str], shared: Mapping[str, DataFrame]) -> Write:
    def write() -> int:
        mine = fn.col("clusterId").isin(list(clusters))
        tables = _read(warehouse, table.needs, None if table.is_fleet else clusters)
        tables |= {one.name: shared[one.name].where(mine) for one in table.shares}
        return warehouse.replace(table.name, table.make(tables), clusters)

    return write


def _read(warehouse: Warehouse, names: Iterable[str], clusters: Collection[str] | None) -> dict[str, DataFrame]:
    return {name: warehouse.read(name, clusters) for name in names}
