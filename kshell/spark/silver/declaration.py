"""What a silver table declares: columns, key, the record types that change it, and the query that computes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kshell.tables.declaration import Field
from kshell.tables.versions import VERSION, recorded_fields

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CLUSTER = Field("clusterId", "string", "the cluster")
BASE = "SNAPSHOT_HEADER"
"""Type of the first record of a base snapshot. Earlier state that is not in the snapshot ends with it."""


class SilverTable(NamedTuple):
    """A table with one row per version of each key.

    Attributes:
        fields: all columns, those of the key among them.
        keys: names of columns, without ``clusterId``.
        types: record types that can change the table; without one of those among the events it stays unchanged.
        query: builds SQL that returns the rows: those that were current before the events, closed where they ended, and
            the new ones. The SQL reads ``{events}`` (:data:`~kshell.spark.silver.events.EVENT_FIELDS`, of any types)
            and, as ``{name of the table}``, the rows current before the events: its own and those of all ``needs``.
        needs: other silver tables whose current rows the query reads.
    """

    name: str
    summary: str
    fields: tuple[Field, ...]
    keys: tuple[str, ...]
    types: tuple[str, ...]
    query: Callable[[SilverTable], str]
    needs: tuple[str, ...] = ()

    @property
    def values(self) -> tuple[Field, ...]:
        """The columns that are neither the cluster, nor in the key, nor those of :data:`VERSION`."""
        rest = {CLUSTER.name, *self.keys, *(field.name for field in VERSION)}
        return tuple(field for field in self.fields if field.name not in rest)

    @property
    def record_types(self) -> tuple[str, ...]:
        """The types of records that set, change or remove a key: ``types`` without the snapshot's header."""
        return tuple(name for name in self.types if name != BASE)

    def versions(self, events: DataFrame, before: Mapping[str, DataFrame]) -> DataFrame:
        """Run the query and return the table's rows.

        Args:
            events: the records that take effect, of the clusters to compute.
            before: table name -> current rows of these clusters before the events; an empty DataFrame if none.
        """
        return events.sparkSession.sql(self.query(self), None, events=events, **before)


def silver(
    name: str,
    summary: str,
    keys: tuple[str, ...],
    types: tuple[str, ...],
    query: Callable[[SilverTable], str],
    needs: tuple[str, ...] = (),
) -> SilverTable:
    """Declare the versions of the shell's table ``name``: its recorded columns, after ``clusterId``."""
    return SilverTable(name, summary, (CLUSTER, *recorded_fields(name), *VERSION), keys, (*types, BASE), query, needs)
