"""What a silver table declares: columns, key, the record types that it is made of, and the query that makes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kshell.tables.declaration import Field
from kshell.tables.versions import VERSION, recorded_fields

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CLUSTER = Field("clusterId", "string", "the cluster")
BASE = "SNAPSHOT_HEADER"
"""The record that a base snapshot begins with: what was before, and is not in the snapshot, ends there."""


class SilverTable(NamedTuple):
    """A table with one row per version of what its key names.

    Attributes:
        fields: all columns, those of the key among them.
        keys: names of columns, without ``clusterId``.
        types: record types that can change the table; without one of those among the events it stays unchanged.
        query: SQL that gives the rows: those of before, closed where they ended, and the new ones. It reads
            ``{events}`` (:data:`~kshell.spark.silver.events.EVENT_FIELDS`, of any types) and, by the name of the
            table, the current rows as they were before the events: its own and those of all ``needs``.
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
        """The columns that are neither cluster nor key nor about the version."""
        rest = {CLUSTER.name, *self.keys, *(field.name for field in VERSION)}
        return tuple(field for field in self.fields if field.name not in rest)

    @property
    def record_types(self) -> tuple[str, ...]:
        """The types whose records say something of a key."""
        return tuple(name for name in self.types if name != BASE)

    def versions(self, events: DataFrame, before: Mapping[str, DataFrame]) -> DataFrame:
        """The table's rows.

        Args:
            events: records that take effect, of the clusters that are concerned.
            before: by name of a table, its current rows of those clusters; without rows where there are none.
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
    """A table of versions of the shell's table of that name, with its cluster before the columns."""
    return SilverTable(name, summary, (CLUSTER, *recorded_fields(name), *VERSION), keys, (*types, BASE), query, needs)
