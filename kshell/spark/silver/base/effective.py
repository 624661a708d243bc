"""Which records take effect, and when: metadata transactions held back until they end (KIP-868), aborted and open ones
left out, snapshots in the place of the log before them. The rules are those of :mod:`kshell.metadata.replay`.

An era is a row of (``clusterId``, ``base``, ``sinceOffset``, ``toOffset``): the path of the snapshot that a state
begins with (null: it goes on from what is before, or from nothing), and the offsets of the log that are applied on it,
the end exclusive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as fn

from kshell.protocol.control import CONTROL_TYPES
from kshell.spark.silver.base.declare import BASE
from kshell.tables.declaration import Field

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

EVENT_FIELDS = (
    Field("clusterId", "string", "the cluster"),
    Field("atOffset", "int64", "when it takes effect: its offset; in a transaction its end; in a base the end - 1"),
    Field("atMs", "int64", "the time of that record; of a base, of the last record in it"),
    Field("sequence", "int64", "the order of what takes effect at one offset; what a base holds comes last"),
    Field("isBase", "boolean", "whether a base snapshot holds it"),
    Field("type", "string", "the record's"),
    Field("version", "int16", "of the record's type"),
    Field("data", "json", "the record's fields"),
)
ERA_FIELDS = (
    Field("clusterId", "string", "the cluster"),
    Field("base", "string", "the snapshot that the state begins with; null: it goes on"),
    Field("sinceOffset", "int64", "the first offset of the log that is applied on it"),
    Field("toOffset", "int64", "the offset after the last one"),
)
IN_BASE = 1 << 62
"""Added to the offset within a snapshot: more than any offset of a log."""

_BEGIN, _END, _ABORT = "BEGIN_TRANSACTION_RECORD", "END_TRANSACTION_RECORD", "ABORT_TRANSACTION_RECORD"
_MARKERS = (_BEGIN, _END, _ABORT)
_CONTROL = tuple(kind.name for kind in CONTROL_TYPES.values())
_BUCKET = 10
"""Offsets are joined to transactions by stretches of 1,024: few transactions touch one, and few stretches have any."""


def effective(records: DataFrame, eras: DataFrame) -> DataFrame:
    """The records that take effect, each once: columns :data:`EVENT_FIELDS`, in no certain order.

    ``records``: rows of the view ``records``, each (cluster, offset) of the log once; those of a transaction that was
    open before from :func:`held_from` on. A record that did not decode takes no effect.
    """
    placed = _placed(records, eras)
    transactions = _transactions(placed)
    log = _in_log(placed, transactions)
    return log.unionByName(_in_bases(placed)).select(*(field.name for field in EVENT_FIELDS))


def held_from(records: DataFrame, eras: DataFrame) -> DataFrame:
    """(``clusterId``, ``offset``) of clusters with a transaction that is open at the end: its BeginTransaction.

    Its records take no effect yet; from there on they are to be given again.
    """
    last = Window.partitionBy("clusterId").orderBy(fn.desc("sinceOffset"))
    newest = eras.withColumn("_n", fn.row_number().over(last)).where("_n = 1").drop("_n")
    found = _transactions(_placed(records, newest, is_first=eras))
    return found.where("ender IS NULL").select("clusterId", fn.col("begun").alias("offset"))


def _placed(records: DataFrame, eras: DataFrame, is_first: DataFrame | None = None) -> DataFrame:
    """Records with the era that they belong to, others left out.

    What is given again of a transaction is before the first era of a cluster that goes on.
    """
    first = (eras if is_first is None else is_first).groupBy("clusterId").agg(fn.min("sinceOffset").alias("_least"))
    goes_on = fn.col("base").isNull() & (fn.col("sinceOffset") == fn.col("_least"))
    bounded = eras.join(first, "clusterId").select(
        fn.col("clusterId").alias("_cluster"),
        "base",
        "sinceOffset",
        "toOffset",
        fn.when(goes_on, fn.lit(0)).otherwise(fn.col("sinceOffset")).alias("_from"),
    )
    within = (fn.col("offset") >= fn.col("_from")) & (fn.col("offset") < fn.col("toOffset"))
    belongs = (fn.col("isSnapshot") & (fn.col("file") == fn.col("base"))) | (~fn.col("isSnapshot") & within)
    kept = records.select(
        "clusterId", "file", "isSnapshot", "offset", "timestampMs", "type", "version", "data", "reason"
    )
    return kept.join(fn.broadcast(bounded), (fn.col("clusterId") == fn.col("_cluster")) & belongs).drop(
        "_cluster", "_from"
    )


def _transactions(placed: DataFrame) -> DataFrame:
    """(clusterId, sinceOffset, begun, ender, endMs, isDropped) of each: ``ender`` is null for one that is open.

    A marker that does not fit (a begin in a transaction, an end outside of one) is passed over; one that did not decode
    still marks.
    """
    order = Window.partitionBy("clusterId", "sinceOffset").orderBy("offset")
    begins = fn.col("type") == _BEGIN
    markers = placed.where(~fn.col("isSnapshot") & fn.col("type").isin(*_MARKERS)).select(
        "clusterId", "sinceOffset", "offset", "timestampMs", "type"
    )
    fitting = markers.withColumn("_open", fn.lag(begins, 1, False).over(order)).where(begins != fn.col("_open"))
    ended = fitting.select(
        "clusterId",
        "sinceOffset",
        "type",
        fn.col("offset").alias("begun"),
        fn.lead("offset").over(order).alias("ender"),
        fn.lead("timestampMs").over(order).alias("endMs"),
        (fn.lead("type").over(order) == _ABORT).alias("isDropped"),
    )
    return ended.where(begins).drop("type")


def _in_log(placed: DataFrame, transactions: DataFrame) -> DataFrame:
    closed = transactions.where("ender IS NOT NULL").select(
        fn.col("clusterId").alias("_cluster"),
        "begun",
        "ender",
        "endMs",
        "isDropped",
        fn.explode(fn.sequence(_bucket("begun"), _bucket("ender"))).alias("_bucket"),
    )
    opened = transactions.where("ender IS NULL").select(
        fn.col("clusterId").alias("_cluster"), fn.col("sinceOffset").alias("_since"), fn.col("begun").alias("_open")
    )
    waits = ~fn.col("type").isin(*_CONTROL)
    rows = placed.where(~fn.col("isSnapshot") & fn.col("reason").isNull() & ~fn.col("type").isin(*_MARKERS))
    same_era = (fn.col("clusterId") == fn.col("_cluster")) & (fn.col("sinceOffset") == fn.col("_since"))
    is_open = same_era & waits & (fn.col("offset") > fn.col("_open"))
    rows = rows.join(fn.broadcast(opened), is_open, "left_anti")
    same_place = (fn.col("clusterId") == fn.col("_cluster")) & (_bucket("offset") == fn.col("_bucket"))
    held = same_place & waits & (fn.col("offset") > fn.col("begun")) & (fn.col("offset") < fn.col("ender"))
    joined = rows.join(fn.broadcast(closed), held, "left").drop("_cluster", "_bucket")
    at = fn.coalesce("ender", "offset")
    kept = joined.where(~fn.coalesce("isDropped", fn.lit(False)) & (at >= fn.col("sinceOffset")))
    return kept.select(
        "clusterId",
        at.alias("atOffset"),
        fn.coalesce("endMs", "timestampMs").alias("atMs"),
        fn.col("offset").alias("sequence"),
        fn.lit(False).alias("isBase"),
        "type",
        "version",
        "data",
    )


def _bucket(name: str) -> Column:
    return fn.shiftright(fn.col(name), _BUCKET)


def _in_bases(placed: DataFrame) -> DataFrame:
    """What base snapshots hold."""
    rows = placed.where(fn.col("isSnapshot") & fn.col("reason").isNull())
    headers = rows.where(fn.col("type") == BASE).select(
        fn.col("clusterId").alias("_cluster"),
        fn.col("file").alias("_file"),
        fn.get_json_object("data", "$.lastContainedLogTimestamp").cast("long").alias("atMs"),
    )
    same = (fn.col("clusterId") == fn.col("_cluster")) & (fn.col("file") == fn.col("_file"))
    return rows.join(fn.broadcast(headers), same).select(
        "clusterId",
        (fn.col("sinceOffset") - 1).alias("atOffset"),
        "atMs",
        (fn.col("offset") + fn.lit(IN_BASE)).alias("sequence"),
        fn.lit(True).alias("isBase"),
        "type",
        "version",
        "data",
    )
