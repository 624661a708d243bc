"""Gold in a step: what of it is made again, and of what."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any, cast

from pyspark.sql import functions as fn

from kshell.spark.gold.timelines.durations import LAST_MS
from kshell.spark.gold.timelines.retained_versions import is_late, retained_versions
from kshell.spark.steps.finalization import Horizon, begin_of, together
from kshell.spark.tables.catalog import CLOSED, CLUSTERS, CURRENT, IS_FINAL, RECORDS
from kshell.spark.tables.gold_table import DAY, MONTH, PARTITIONS_RETAINED, GoldTable, Shared

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from kshell.spark.tables.warehouse import Warehouse

_PARTITIONS = "partitions"
_ALWAYS = -1 << 62
"""A time before all others."""


class GoldLayer:
    """Writes gold tables in a step that was begun. ``horizons``: of the clusters of which something is new.

    Which versions of partitions tables are made of is looked up here, before what is carried on is another.
    """

    def __init__(self, warehouse: Warehouse, horizons: Mapping[str, Horizon], tomorrow: int) -> None:
        self._warehouse = warehouse
        self._tomorrow = tomorrow
        self._horizons = horizons
        self._recomputed = [name for name, span in horizons.items() if span.since is None]
        self._on = [name for name, span in horizons.items() if span.since is not None]
        self._shared: dict[str, DataFrame] = {}
        self._sharing: dict[str, threading.Lock] = {}
        self._versions = {DAY: self._by_day(), MONTH: self._late(MONTH)}

    def write(self, table: GoldTable, clusters: Collection[str]) -> int:
        """The table, of all those clusters, as far as it may be another one. Gives how many rows that are.

        A table that settles is for all clusters that have a horizon.
        """
        if not table.settles:
            of = None if table.is_fleet else clusters
            frame = table.make({need: self._dated(need, self._warehouse.read(need, of)) for need in table.needs})
            return self._warehouse.replace(table.name, frame, clusters)
        frame = table.make(
            {need: self._input(table.settles, need, table.name) for need in table.needs}
            | {shared.name: self._share(shared) for shared in table.shares}
        )
        assert set(clusters) == set(self._horizons), table.name
        until = fn.col("untilMs")
        mine = frame.where(until.isNull() | (until >= self._since(DAY, _ALWAYS)))
        rows = mine.withColumn(IS_FINAL, until.isNotNull() & (until < self._until()))
        return self._warehouse.extend(table.name, rows, clusters, self._recomputed)

    def retain(self) -> int:
        """What the next step is handed of versions that are over. Gives how many rows that are."""
        moved = [name for name, span in self._horizons.items() if span.since != span.until]
        mine = self._versions[DAY].where(fn.col("clusterId").isin(moved))
        return (
            self._warehouse.replace(PARTITIONS_RETAINED, retained_versions(mine, self._until()), moved) if moved else 0
        )

    def _since(self, period: str, always: int) -> Column:
        """The begin of the day or month since when rows of a cluster are not final; of one recomputed, always."""
        return _of_cluster(
            {
                name: always if span.since is None else begin_of(period, span.since)
                for name, span in self._horizons.items()
            }
        )

    def _until(self) -> Column:
        return _of_cluster({name: span.until for name, span in self._horizons.items()})

    def _share(self, shared: Shared) -> DataFrame:
        """Made once, by the first table that is made of it; the others wait for it."""
        with self._sharing.setdefault(shared.name, threading.Lock()):
            if shared.name not in self._shared:
                frame = shared.make({need: self._input(shared.settles, need) for need in shared.needs})
                self._shared[shared.name] = self._warehouse.materialized(frame)
        return self._shared[shared.name]

    def _input(self, period: str, need: str, itself: str | None = None) -> DataFrame:
        if need == itself:
            return self._warehouse.read(need, self._on, CLOSED)
        if need == _PARTITIONS:
            return self._versions[period]
        if need == RECORDS:
            return self._records()
        if need == CLUSTERS:
            clusters = self._warehouse.read(need, self._horizons).withColumn("sinceMs", self._since(period, 0))
            return self._dated(need, clusters)
        return self._warehouse.read(need, self._horizons)

    def _dated(self, need: str, frame: DataFrame) -> DataFrame:
        """One moment for all tables of a step, and for what of them is final."""
        return frame.withColumn("tomorrowMs", fn.lit(self._tomorrow).cast("bigint")) if need == CLUSTERS else frame

    def _by_day(self) -> DataFrame:
        frames = [self._warehouse.read(PARTITIONS_RETAINED, self._on)] if self._on else []
        return _union([self._late(DAY), *frames])

    def _late(self, period: str) -> DataFrame:
        """Versions of partitions: all of clusters that are recomputed; of others those that are late, by the day or
        month since when rows are not final."""

        def closed(begin: int, names: list[str]) -> DataFrame:
            return self._warehouse.read(_PARTITIONS, names, CLOSED).where(is_late(str(begin)))

        current = [self._warehouse.read(_PARTITIONS, self._on, CURRENT)] if self._on else []
        return _union([*self._each(_PARTITIONS, period, closed), *current])

    def _records(self) -> DataFrame:
        def late(begin: int, names: list[str]) -> DataFrame:
            return self._warehouse.read(RECORDS, names).where(fn.col("timestampMs").between(begin, LAST_MS))

        return _union(self._each(RECORDS, DAY, late))

    def _each(self, name: str, period: str, late: Callable[[int, list[str]], DataFrame]) -> list[DataFrame]:
        """A table: all rows of the clusters that are recomputed, and what is asked of those that go on."""
        # Few frames: an empty one has tasks as well.
        anew = [self._warehouse.read(name, self._recomputed)] if self._recomputed or not self._on else []
        return [*anew, *(late(begin, names) for begin, names in together(self._horizons, period).items())]


def _union(frames: Iterable[DataFrame]) -> DataFrame:
    return reduce(lambda merged, frame: merged.unionByName(frame), frames)


def _of_cluster(values: Mapping[str, int]) -> Column:
    """The value of a row's cluster. Few clusters have one of their own: most are as new as each other."""
    alike: dict[int, list[str]] = {}
    for name, value in values.items():
        alike.setdefault(value, []).append(name)
    (most, _), *rest = sorted(alike.items(), key=lambda group: -len(group[1])) or [(0, [])]
    if not rest:
        return fn.lit(most).cast("bigint")
    expression: Any = fn
    for value, names in rest:  # one CASE, not one in the other: of hundreds no plan can be made
        expression = expression.when(fn.col("clusterId").isin(names), fn.lit(value))
    return cast("Column", expression.otherwise(fn.lit(most)).cast("bigint"))
