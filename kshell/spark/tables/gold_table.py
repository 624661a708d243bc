"""How a gold table is declared: its columns, and the query that computes it."""

from __future__ import annotations

from collections.abc import Mapping
from string import Formatter
from typing import TYPE_CHECKING, NamedTuple

from kshell.spark.schemas import spark_columns
from kshell.spark.tables.expectations import Expectations
from kshell.tables.declaration import Field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CLUSTER = Field("clusterId", "string", "the cluster")

Tables = Mapping[str, "DataFrame"]
"""DataFrames by the names of their tables."""

DAY, MONTH = "day", "month"
PARTITIONS_RETAINED = "partitions_carried"
"""The table of versions that later steps need: :mod:`~kshell.spark.gold.timelines.retained_versions`."""
IS_FINAL = Field(
    "isFinal", "boolean", "whether steps leave the row as it is, unless one makes all rows of its cluster anew"
)
"""The last column of a table whose rows become final."""
_UNTIL = Field("untilMs", "int64", "the time from which on the row is final")
TOMORROW = "unix_millis(current_timestamp()) + 86400000L"
"""SQL: a day from now, by Spark's clock. (Written out: what gold tables have in common imports this module.)"""
_OF_CLUSTERS = {"tomorrowMs": TOMORROW, "sinceMs": "0L"}
"""Column that queries find in ``clusters`` -> its value where the step does not set it."""


def tables_of(query: str) -> frozenset[str]:
    """Return the tables that a query reads, as ``{name}``."""
    return frozenset(name for _, name, _, _ in Formatter().parse(query) if name)


def queried(query: str, tables: Tables) -> DataFrame:
    """Run a query; ``tables`` holds at least the tables that it reads."""
    read = {name: tables[name] for name in tables_of(query)}
    if "clusters" in read:
        clusters = read["clusters"]
        added = (f"{value} AS {name}" for name, value in _OF_CLUSTERS.items() if name not in clusters.columns)
        read["clusters"] = clusters.selectExpr("*", *added)
    return next(iter(read.values())).sparkSession.sql(query, None, **read)


class Shared(NamedTuple):
    """An intermediate result that several gold tables use. A step computes it once.

    ``final_by`` is that of the tables that use it.
    """

    name: str
    query: str
    final_by: str

    @property
    def needs(self) -> frozenset[str]:
        """The tables that the query reads."""
        return tables_of(self.query)

    def make(self, tables: Tables) -> DataFrame:
        """Compute the rows from the tables in ``needs``."""
        return queried(self.query, tables)


class GoldTable(NamedTuple):
    """A gold table. ``query`` is SQL that returns at least the columns ``fields``. It reads tables of bronze, silver or
    gold, and what it ``shares``, as ``{name}``; any other brace is doubled.

    The rows of a cluster depend on that cluster's rows only, so the query may be given the rows of some clusters; with
    ``is_fleet`` it must be given the rows of all. The table ``clusters`` has a column ``tomorrowMs`` besides its own:
    nothing lasts longer than until then.

    ``final_by`` is ``None``, ``DAY`` or ``MONTH``. If it is set, rows become final, and a step need not compute them
    again. The query then returns an additional column ``untilMs``: the row is final once no record with a time up to
    that millisecond can come any more; null: not known yet. For a day from which rows are not final, the query may be
    given only a part of its inputs, and must return the same rows from that day on:

    * ``partitions``: the versions that are late by that day or, with ``MONTH``, by the start of its month
      (:func:`~kshell.spark.gold.timelines.retained_versions.is_late`); with ``DAY`` also the retained versions.
    * ``records``: those with a time on that day or later, up to the year 9999.
    * ``clusters``: with the column ``sinceMs``, the start of that day or month: no earlier rows need be computed.
    * the table itself, if it reads itself: its final rows.
    """

    name: str
    summary: str
    fields: tuple[Field, ...]
    query: str
    is_fleet: bool = False
    final_by: str | None = None
    shares: tuple[Shared, ...] = ()
    expect: Expectations = ()

    @property
    def needs(self) -> frozenset[str]:
        """The tables that it is computed from: when one of them changes, so may this one.

        Rows become final as a cluster's records go on, whatever the records are: then ``clusters`` is one of them.
        """
        read = tables_of(self.query) - {shared.name for shared in self.shares}
        return read.union(*(shared.needs for shared in self.shares), ["clusters"] if self.final_by else [])

    def make(self, tables: Tables) -> DataFrame:
        """Compute the rows from what the query reads, with the declared columns in their order and types."""
        fields = (*self.fields, _UNTIL) if self.final_by else self.fields
        columns = (f"cast(`{name}` AS {kind}) AS `{name}`" for name, kind in spark_columns(fields))
        return queried(f"SELECT {', '.join(columns)} FROM ({self.query})", tables)

    def made_of(self, tables: Tables) -> DataFrame:
        """Compute the rows from ``needs`` alone; what the table shares is computed from ``tables``, too."""
        return self.make({**tables, **{shared.name: shared.make(tables) for shared in self.shares}})
