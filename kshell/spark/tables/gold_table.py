"""How a gold table is declared: its columns, the tables that it is computed from, and the function that computes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

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


class Shared(NamedTuple):
    """An intermediate result that several gold tables use. A step computes it once, from the tables in ``needs``.

    ``final_by`` is that of the tables that use it.
    """

    name: str
    needs: tuple[str, ...]
    make: Callable[[Tables], DataFrame]
    final_by: str


class GoldTable(NamedTuple):
    """A gold table. ``make`` computes its rows, a DataFrame, from the tables in ``needs`` and what it ``shares``.

    The tables in ``needs`` may be of bronze, silver or gold. The rows of a cluster depend on that cluster's rows only,
    so ``make`` may be given the rows of some clusters; with ``is_fleet`` it must be given the rows of all.

    ``final_by`` is ``None``, ``DAY`` or ``MONTH``. If it is set, rows become final, and a step need not compute them
    again. ``make`` then returns an additional column ``untilMs``: the row is final once no record with a time up to
    that millisecond can come any more; null: not known yet. For a day from which rows are not final, ``make`` may be
    given only a part of its inputs, and must compute the same rows from that day on:

    * ``partitions``: the versions that are late by that day or, with ``MONTH``, by the start of its month
      (:func:`~kshell.spark.gold.timelines.retained_versions.is_late`); with ``DAY`` also the retained versions.
    * ``records``: those with a time on that day or later, up to the year 9999.
    * ``clusters``: with the column ``sinceMs``, the start of that day or month: no earlier rows need be computed.
    * the table itself, if it ``needs`` itself: its final rows.
    """

    name: str
    summary: str
    fields: tuple[Field, ...]
    needs: tuple[str, ...]
    make: Callable[[Tables], DataFrame]
    is_fleet: bool = False
    final_by: str | None = None
    shares: tuple[Shared, ...] = ()
    expect: Expectations = ()

    def made_of(self, tables: Tables) -> DataFrame:
        """Compute the rows from ``needs`` alone; what the table shares is computed from ``tables``, too."""
        return self.make({**tables, **{shared.name: shared.make(tables) for shared in self.shares}})
