"""Write the gold tables in a step: which rows are computed again, and from which input rows.

A cluster whose earlier days are final contributes only the input rows that later days need; other clusters are
"recomputed": all of their rows are made again. :mod:`~kshell.spark.steps.finalization` decides which is which.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, cast

from pyspark.sql import functions as fn

from kshell.spark.gold.timelines.durations import LAST_MS
from kshell.spark.gold.timelines.retained_versions import RETAINED, is_late
from kshell.spark.steps.finalization import Horizon, begin_of, together
from kshell.spark.steps.local_frames import union
from kshell.spark.tables.catalog import CLOSED, CLUSTERS, CURRENT, RECORDS
from kshell.spark.tables.gold_table import DAY, IS_FINAL, MONTH, PARTITIONS_RETAINED, GoldTable, Shared, queried

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from kshell.spark.tables.warehouse import Warehouse

_PARTITIONS = "partitions"
_BEGINNING = -1 << 62
"""A time in milliseconds before any record's time."""


class GoldLayer:
    """Writes gold tables in a step. ``horizons``: the clusters with changes, and which of their rows are final.

    The versions of partitions that the tables are made from are looked up at construction, before :meth:`retain`
    replaces the retained ones. ``tomorrow`` is ``tomorrow_ms()`` for the whole step.
    """

    def __init__(self, warehouse: Warehouse, horizons: Mapping[str, Horizon], tomorrow: int) -> None:
        self._warehouse = warehouse
        self._tomorrow = tomorrow
        self._horizons = horizons
        self._recomputed = [name for name, span in horizons.items() if span.since is None]
        self._continued = [name for name, span in horizons.items() if span.since is not None]
        self._shared: dict[str, DataFrame] = {}
        self._sharing: dict[str, threading.Lock] = {}
        self._versions = {DAY: self._by_day(), MONTH: self._late(MONTH)}

    def write(self, table: GoldTable, clusters: Collection[str]) -> int:
        """Write the rows of a table that may have changed for ``clusters``; return how many rows were written.

        For a table whose rows become final, ``clusters`` must be all clusters that have a horizon.
        """
        if not table.final_by:
            of = None if table.is_fleet else clusters
            frame = table.make({need: self._dated(need, self._warehouse.read(need, of)) for need in table.needs})
            return self._warehouse.replace(table.name, frame, clusters)
        frame = table.make(
            {need: self._input(table.final_by, need, table.name) for need in table.needs}
            | {shared.name: self._share(shared) for shared in table.shares}
        )
        assert set(clusters) == set(self._horizons), table.name
        until = fn.col("untilMs")
        mine = frame.where(until.isNull() | (until >= self._since(DAY, _BEGINNING)))
        rows = mine.withColumn(IS_FINAL.name, until.isNotNull() & (until < self._until()))
        return self._warehouse.extend(table.name, rows, clusters, self._recomputed)

    def retain(self) -> int:
        """Write the ended versions of partitions that later steps need; return how many rows were written."""
        moved = [name for name, span in self._horizons.items() if span.since != span.until]
        if not moved:
            return 0
        mine = self._versions[DAY].where(fn.col("clusterId").isin(moved)).withColumn("settledMs", self._until())
        return self._warehouse.replace(PARTITIONS_RETAINED, queried(RETAINED, {_PARTITIONS: mine}), moved)

    def _since(self, period: str, always: int) -> Column:
        """Return a column: the time from which a cluster's rows are not final; ``always`` if all are recomputed."""
        return _of_cluster(
            {
                name: always if span.since is None else begin_of(period, span.since)
                for name, span in self._horizons.items()
            }
        )

    def _until(self) -> Column:
        return _of_cluster({name: span.until for name, span in self._horizons.items()})

    def _share(self, shared: Shared) -> DataFrame:
        """Return an intermediate result that several tables share; the first table computes it, the others wait."""
        with self._sharing.setdefault(shared.name, threading.Lock()):
            if shared.name not in self._shared:
                frame = shared.make({need: self._input(shared.final_by, need) for need in shared.needs})
                self._shared[shared.name] = self._warehouse.materialized(frame)
        return self._shared[shared.name]

    def _input(self, period: str, need: str, itself: str | None = None) -> DataFrame:
        """Return the rows of the input table ``need`` that may affect rows which are not final; see GoldTable."""
        if need == itself:
            return self._warehouse.read(need, self._continued, CLOSED)
        if need == _PARTITIONS:
            return self._versions[period]
        if need == RECORDS:
            return self._records()
        if need == CLUSTERS:
            clusters = self._warehouse.read(need, self._horizons).withColumn("sinceMs", self._since(period, 0))
            return self._dated(need, clusters)
        return self._warehouse.read(need, self._horizons)

    def _dated(self, need: str, frame: DataFrame) -> DataFrame:
        """Add the column ``tomorrowMs`` to ``clusters``, so that all tables of a step use the same time."""
        return frame.withColumn("tomorrowMs", fn.lit(self._tomorrow).cast("bigint")) if need == CLUSTERS else frame

    def _by_day(self) -> DataFrame:
        """Return the versions of partitions for tables that settle by day: the late ones and the retained ones."""
        frames = [self._warehouse.read(PARTITIONS_RETAINED, self._continued)] if self._continued else []
        return union([self._late(DAY), *frames])

    def _late(self, period: str) -> DataFrame:
        """Return the partitions' versions: all of recomputed clusters; of others those that rows not final yet need."""

        def closed(begin: int, names: list[str]) -> DataFrame:
            return self._warehouse.read(_PARTITIONS, names, CLOSED).where(is_late(str(begin)))

        current = [self._warehouse.read(_PARTITIONS, self._continued, CURRENT)] if self._continued else []
        return union([*self._each(_PARTITIONS, period, closed), *current])

    def _records(self) -> DataFrame:
        def late(begin: int, names: list[str]) -> DataFrame:
            return self._warehouse.read(RECORDS, names).where(fn.col("timestampMs").between(begin, LAST_MS))

        return union(self._each(RECORDS, DAY, late))

    def _each(self, name: str, period: str, late: Callable[[int, list[str]], DataFrame]) -> list[DataFrame]:
        """Read a table: all rows of recomputed clusters, and the rows that ``late`` selects of the other clusters."""
        # As few frames as possible: Spark starts tasks for an empty frame, too.
        anew = [self._warehouse.read(name, self._recomputed)] if self._recomputed or not self._continued else []
        return [*anew, *(late(begin, names) for begin, names in together(self._horizons, period).items())]


def _of_cluster(values: Mapping[str, int]) -> Column:
    """Return a column with the value of the row's cluster. Most clusters share one value, which is the default."""
    alike: dict[int, list[str]] = {}
    for name, value in values.items():
        alike.setdefault(value, []).append(name)
    (most, _), *rest = sorted(alike.items(), key=lambda group: -len(group[1])) or [(0, [])]
    if not rest:
        return fn.lit(most).cast("bigint")
    expression: Any = fn
    for value, names in rest:  # one flat CASE: Spark cannot plan hundreds of nested ones
        expression = expression.when(fn.col("clusterId").isin(names), fn.lit(value))
    return cast("Column", expression.otherwise(fn.lit(most)).cast("bigint"))
