"""The gold tables of a step: made anew of all versions of the clusters in which something has changed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from kshell.spark import gold
from kshell.spark.gold.base.declared import GoldTable

if TYPE_CHECKING:
    from kshell.spark.warehouse import Warehouse

Write = Callable[[], int]


def writes(warehouse: Warehouse, changed: Mapping[str, set[str]]) -> list[tuple[str, Write]]:
    """By name, what writes a table, and gives how many rows it has written. ``changed``: table of bronze or silver ->
    clusters whose rows in it are not what they were.
    """
    touched = {
        name: set().union(*(changed.get(need, set()) for need in table.needs)) for name, table in gold.tables().items()
    }
    return [(name, _write(warehouse, gold.tables()[name], clusters)) for name, clusters in touched.items() if clusters]


def _write(warehouse: Warehouse, table: GoldTable, clusters: Collection[str]) -> Write:
    def write() -> int:
        of = None if table.is_fleet else clusters
        tables = {name: warehouse.read(name, of) for name in table.needs}
        return warehouse.replace(table.name, table.make(tables), clusters)

    return write
