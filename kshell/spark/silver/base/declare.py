"""What a silver table declares: columns, key, the record types that it is made of, and how."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kshell.tables.declaration import Field, tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CLUSTER = Field("clusterId", "string", "the cluster")
VERSION = (
    Field("validFromOffset", "int64", "the offset of the record that made it so; of a transaction, of its end"),
    Field("validFromMs", "int64", "that record's time, in milliseconds since 1970"),
    Field("validToOffset", "int64", "the offset of the record that ended it; null if it lasts"),
    Field("validToMs", "int64", "that record's time"),
    Field("isCurrent", "boolean", "whether it lasts"),
)
"""The columns of a version: it is so at every offset from ``validFromOffset`` to before ``validToOffset``. What a base
snapshot holds is so from the offset before the snapshot's end."""

BASE = "SNAPSHOT_HEADER"
"""The record that a base snapshot begins with: what was before, and is not in the snapshot, ends there."""

Versions = Callable[["DataFrame", Mapping[str, "DataFrame"]], "DataFrame"]
"""(events, current rows of silver tables by name) -> the table's rows."""


class SilverTable(NamedTuple):
    """A table with one row a version of what its key names.

    ``fields``: all columns, the key's among them. ``keys``: names without ``clusterId``. ``types``: record types that
    can change it; without one of those among the events it stays as it is. ``needs``: other silver tables whose
    current rows ``versions`` asks for, beside its own.

    ``versions(events, before)``: ``events`` is what :func:`~kshell.spark.silver.base.effective.effective` gives (of
    any types); ``before`` has, by table's name, the rows with ``isCurrent`` of the clusters that are in ``events``:
    of the table itself and of all ``needs``, as they were before the events; a DataFrame without rows where there are
    none. Gives the rows of ``before``, closed where they ended, and the new ones.
    """

    name: str
    summary: str
    fields: tuple[Field, ...]
    keys: tuple[str, ...]
    types: tuple[str, ...]
    versions: Versions
    needs: tuple[str, ...] = ()

    @property
    def values(self) -> tuple[Field, ...]:
        """The columns that are neither cluster nor key nor about the version."""
        told = {CLUSTER.name, *self.keys, *(field.name for field in VERSION)}
        return tuple(field for field in self.fields if field.name not in told)


def silver(
    name: str,
    summary: str,
    fields: tuple[Field, ...],
    keys: tuple[str, ...],
    types: tuple[str, ...],
    versions: Versions,
    needs: tuple[str, ...] = (),
) -> SilverTable:
    """A table with those columns, its cluster before them and its version's columns after."""
    return SilverTable(name, summary, (CLUSTER, *fields, *VERSION), keys, (*types, BASE), versions, needs)


def of_the_shell(table: str, *names: str) -> tuple[Field, ...]:
    """Columns of one of the shell's tables, in the shell's order; without names all of them."""
    return tuple(field for field in tables()[table].fields if not names or field.name in names)


def without(table: str, *names: str) -> tuple[Field, ...]:
    """All columns of one of the shell's tables but those."""
    return tuple(field for field in tables()[table].fields if field.name not in names)
