"""Gold in a step: what of it is made again, and of what."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as fn

from kshell.spark.gold.base.carried import carried
from kshell.spark.gold.base.declared import CARRIED, DAY, MONTH, GoldTable
from kshell.spark.gold.base.times import LAST_MS
from kshell.spark.steps.settling import Horizon, begin_of, together
from kshell.spark.warehouse.catalog import IS_CURRENT, RECORDS
from kshell.spark.warehouse.commits import CLOSED, CURRENT

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from kshell.spark.warehouse import Warehouse

_PARTITIONS = "partitions"
_ALWAYS = -1 << 62
"""A time before all others."""


class GoldLayer:
    """Writes gold tables in a step that was begun. ``horizons``: of the clusters of which something is new.

    What tables are made of is looked up here, before any of them is written.
    """

    def __init__(self, warehouse: Warehouse, horizons: Mapping[str, Horizon]) -> None:
        self._warehouse = warehouse
        self._horizons = horizons
        self._anew = [name for name, one in horizons.items() if one.since is None]
        self._on = [name for name, one in horizons.items() if one.since is not None]
        self._versions = {DAY: self._by_day(), MONTH: self._late(MONTH)}

    def write(self, table: GoldTable, clusters: Collection[str]) -> int:
        """The table, as far as it may be another one. Gives how many rows that are."""
        if not table.settles:
            of = None if table.is_fleet else clusters
            made = table.make({need: self._warehouse.read(need, of) for need in table.needs})
            return self._warehouse.replace(table.name, made, clusters)
        made = table.make({need: self._input(table, need) for need in table.needs})
        until = fn.col("untilMs")
        since = {name: _ALWAYS if one.since is None else one.since for name, one in self._horizons.items()}
        mine = made.where(until.isNull() | (until >= _of_cluster(since)))
        rows = mine.withColumn(IS_CURRENT, until.isNull() | (until >= self._until()))
        return self._warehouse.extend(table.name, rows, self._horizons, self._anew)

    def carry(self) -> int:
        """What the next step is handed of versions that are over. Gives how many rows that are."""
        moved = [name for name, one in self._horizons.items() if one.since != one.until]
        mine = self._versions[DAY].where(fn.col("clusterId").isin(moved))
        return self._warehouse.replace(CARRIED, carried(mine, self._until()), moved) if moved else 0

    def _until(self) -> Column:
        return _of_cluster({name: one.until for name, one in self._horizons.items()})

    def _input(self, table: GoldTable, need: str) -> DataFrame:
        if need == table.name:
            return self._warehouse.read(need, self._on, CLOSED)
        if need == _PARTITIONS:
            assert table.settles
            return self._versions[table.settles]
        if need == RECORDS:
            return self._records()
        return self._warehouse.read(need, self._horizons)

    def _by_day(self) -> DataFrame:
        carried = [self._warehouse.read(CARRIED, self._on)] if self._on else []
        return _union([self._late(DAY), *carried])

    def _late(self, period: str) -> DataFrame:
        """Versions of partitions: all of clusters that are made anew; of others those that hold, and those that a
        record of the day or month since when rows are not final, or of a later one, began or ended."""

        def closed(since: int, names: list[str]) -> DataFrame:
            begin = begin_of(period, since)
            rows = self._warehouse.read(_PARTITIONS, names, CLOSED)
            return rows.where((fn.col("validToMs") >= begin) | (fn.col("validFromMs") >= begin))

        current = [self._warehouse.read(_PARTITIONS, self._on, CURRENT)] if self._on else []
        return _union([*self._each(_PARTITIONS, closed), *current])

    def _records(self) -> DataFrame:
        def late(since: int, names: list[str]) -> DataFrame:
            return self._warehouse.read(RECORDS, names).where(fn.col("timestampMs").between(since, LAST_MS))

        return _union(self._each(RECORDS, late))

    def _each(self, name: str, late: Callable[[int, list[str]], DataFrame]) -> list[DataFrame]:
        """A table: all rows of the clusters that are made anew, and what is asked of those that go on since a day."""
        # Few frames: an empty one has tasks as well.
        anew = [self._warehouse.read(name, self._anew)] if self._anew or not self._on else []
        return [*anew, *(late(since, names) for since, names in together(self._horizons).items())]


def _union(frames: Iterable[DataFrame]) -> DataFrame:
    return reduce(lambda one, other: one.unionByName(other), frames)


def _of_cluster(values: Mapping[str, int]) -> Column:
    """The value of a row's cluster."""
    if len(set(values.values())) == 1:
        return fn.lit(next(iter(values.values()))).cast("bigint")
    pairs = [
        fn.lit(one).cast("bigint") if isinstance(one, int) else fn.lit(one) for pair in values.items() for one in pair
    ]
    return fn.create_map(*pairs)[fn.col("clusterId")]
