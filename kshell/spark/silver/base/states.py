"""States into versions. A state is a row that says how something is from one moment on: ``clusterId``, the table's key
and values, ``atOffset``, ``atMs``, ``sequence``, ``isGone`` (it is not there: the values do not matter), ``isNew`` (it
begins a version even where nothing that is seen differs), and until when it lasts at the latest: ``endsOffset``,
``endsMs``.

All windows of a table are over the same rows in the same order: one shuffle, and one sort.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as fn

from kshell.spark.silver.base.declare import BASE, SilverTable
from kshell.tables.declaration import OTHERS, Type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.window import WindowSpec

ENDLESS = (1 << 63) - 1
"""The end of what lasts, while rows are sorted by it."""
ORDER = ("endsOffset", "atOffset", "sequence")
BEFORE = -1
"""The ``sequence`` of what was before."""


def by_key(table: SilverTable) -> WindowSpec:
    """All states of one key, in order."""
    return Window.partitionBy(*table.keys, "clusterId").orderBy(*ORDER)


def in_era(table: SilverTable) -> WindowSpec:
    """Those that can build on each other, up to the present one: nothing goes on behind its end."""
    of_one = Window.partitionBy(*table.keys, "clusterId", "endsOffset").orderBy("atOffset", "sequence")
    return of_one.rowsBetween(Window.unboundedPreceding, Window.currentRow)


def carried(changes: Column, over: WindowSpec) -> Column:
    """The last that was said."""
    return fn.last(changes, ignorenulls=True).over(over)


def was(before: DataFrame, table: SilverTable, *more: Column) -> DataFrame:
    """The current rows of a table as states that it goes on from."""
    return before.select(
        "clusterId",
        *table.keys,
        *(field.name for field in table.values),
        fn.col("validFromOffset").alias("atOffset"),
        fn.col("validFromMs").alias("atMs"),
        fn.lit(BEFORE).cast("long").alias("sequence"),
        fn.lit(False).alias("isGone"),
        fn.lit(False).alias("isNew"),
        *more,
    )


def until_base(rows: DataFrame, events: DataFrame) -> DataFrame:
    """The rows with ``endsOffset``, ``endsMs`` and ``endsSequence``: nothing outlasts the next base of its cluster."""
    joined = rows.join(fn.broadcast(bases(events)), "clusterId", "left")
    following = fn.get(fn.filter("_bases", after), fn.lit(0))
    return (
        joined.withColumn("_next", following)
        .withColumn("endsOffset", fn.coalesce("_next.atOffset", fn.lit(ENDLESS)))
        .withColumn("endsMs", fn.col("_next.atMs"))
        .withColumn("endsSequence", fn.col("_next.sequence"))
        .drop("_bases", "_next")
    )


def bases(events: DataFrame) -> DataFrame:
    """(clusterId, _bases): where each base of a cluster begins, in order."""
    headers = events.where(fn.col("type") == BASE)
    return headers.groupBy("clusterId").agg(moments("_bases"))


def moments(name: str, *more: str) -> Column:
    """All rows of a group as a list of (atOffset, sequence, atMs, …), in order."""
    return fn.sort_array(fn.collect_list(fn.struct("atOffset", "sequence", "atMs", *more))).alias(name)


def after(moment: Column) -> Column:
    """Whether a moment is after that of the row."""
    same = moment["atOffset"] == fn.col("atOffset")
    return (moment["atOffset"] > fn.col("atOffset")) | (same & (moment["sequence"] > fn.col("sequence")))


def versions_of(states: DataFrame, table: SilverTable) -> DataFrame:
    """The rows of a table. Of states at one offset the last counts; one that says the same as before begins nothing."""
    order = by_key(table)
    following = fn.lead("atOffset").over(order)
    last = states.withColumn("_following", following).where(
        fn.col("_following").isNull() | (fn.col("_following") != fn.col("atOffset"))
    )
    return _joined(_lasting(last, table, order), table, order)


def _lasting(states: DataFrame, table: SilverTable, order: WindowSpec) -> DataFrame:
    """States with ``_before`` (when the one before ends), ``_same`` (it goes on) and ``_last`` (when all ends)."""
    whole = order.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    held = fn.struct(
        fn.struct(*(fn.col(field.name) for field in table.values)).alias("values"),
        fn.col("isGone"),
        fn.col("endsOffset"),
        fn.col("endsMs"),
    )
    found = states.withColumn("_previous", fn.lag(held).over(order)).withColumn(
        "_last", fn.max(fn.struct("endsOffset", "endsMs")).over(whole)
    )
    cut_off = fn.col("_previous.endsOffset") < fn.col("atOffset")
    alike = fn.lit(True)
    for field in table.values:
        alike = alike & comparable(fn.col(field.name), field.type).eqNullSafe(
            comparable(fn.col(f"_previous.values.{field.name}"), field.type)
        )
    goes_on = fn.col("_previous").isNotNull() & ~fn.col("_previous.isGone") & ~fn.col("isGone") & ~cut_off
    own = fn.struct(fn.col("atOffset").alias("endsOffset"), fn.col("atMs").alias("endsMs"))
    ended = fn.when(cut_off, fn.struct("_previous.endsOffset", "_previous.endsMs")).otherwise(own)
    return found.withColumn("_before", ended).withColumn("_same", goes_on & alike & ~fn.col("isNew")).drop("_previous")


def _joined(states: DataFrame, table: SilverTable, order: WindowSpec) -> DataFrame:
    begun = states.where(~fn.col("_same"))
    ended = begun.withColumn("_end", fn.coalesce(fn.lead("_before").over(order), fn.col("_last")))
    lasts = fn.col("_end.endsOffset") == ENDLESS
    kept = ended.where(~fn.col("isGone") & (fn.col("_end.endsOffset") > fn.col("atOffset")))
    made = {
        "validFromOffset": fn.col("atOffset"),
        "validFromMs": fn.col("atMs"),
        "validToOffset": fn.when(~lasts, fn.col("_end.endsOffset")),
        "validToMs": fn.when(~lasts, fn.col("_end.endsMs")),
        "isCurrent": lasts,
    }
    return kept.select(*(made.get(field.name, fn.col(field.name)).alias(field.name) for field in table.fields))


def comparable(value: Column, declared: Type) -> Column:
    """What Spark can compare: it takes no maps."""
    return fn.array_sort(fn.map_entries(value)) if isinstance(declared, dict) and OTHERS in declared else value
