"""The table ``partition_availability``: how long each partition was offline, under and at min ISR, by month."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshell.spark.gold.timelines import aggregates
from kshell.spark.gold.timelines.durations import clipped, end_of_month, split_by_month, timed
from kshell.spark.gold.timelines.min_isr import with_min_isr
from kshell.spark.gold.timelines.partition_versions import KEYS
from kshell.spark.tables.expectations import at_least, key, ordered
from kshell.spark.tables.gold_table import CLUSTER, MONTH, GoldTable, Shared, Tables
from kshell.tables.declaration import Field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MEASURES = (
    Field("offlineMs", "int64", "those without a leader"),
    Field("underMinIsrMs", "int64", "those without a leader, or with fewer in-sync replicas than min.insync.replicas"),
    Field("atMinIsrMs", "int64", "those with exactly as many in-sync replicas as min.insync.replicas"),
    Field(
        "underReplicatedMs",
        "int64",
        "those with fewer in-sync replicas than the replication factor (replicas without addingReplicas)",
    ),
    Field(
        "assumedMs",
        "int64",
        "those in which the log had no min.insync.replicas for it (neither its topic's, nor its"
        " leader's, nor that of all brokers), and 1, Kafka's default, was taken",
    ),
    Field("availability", "float64", "1 - offlineMs / its milliseconds; null where there were none"),
    Field(
        "writeAvailability",
        "float64",
        "1 - underMinIsrMs / its milliseconds: where acks=all was possible, if 1 is right where it was assumed",
    ),
)
"""Columns with what is measured of a partition here, and of several together in the table ``availability``."""
HOLDS = (
    *at_least(0, "offlineMs", "underMinIsrMs", "atMinIsrMs", "underReplicatedMs", "assumedMs", "availability"),
    ordered("offlineMs", "underMinIsrMs"),
)
"""What both tables expect of the values of :data:`MEASURES`."""

FIELDS = (
    CLUSTER,
    Field("month", "string", "the month, in UTC"),
    Field("topic", "string", "the topic's name"),
    Field("topicId", "string", "its id"),
    Field("partition", "int32", "the partition's number"),
    Field("existedMs", "int64", "milliseconds of that month in which the partition was there"),
    *MEASURES,
)


SUMS = {
    "offlineMs": "sum(if(isOffline, ms, 0))",
    "underMinIsrMs": "sum(if(isOffline or inSync < minIsr, ms, 0))",
    "atMinIsrMs": "sum(if(inSync = minIsr, ms, 0))",
    "underReplicatedMs": "sum(if(inSync < factor, ms, 0))",
    "assumedMs": "sum(if(isAssumed, ms, 0))",
}
"""Column -> SQL aggregate over rows of :func:`_classified`."""


def _months(tables: Tables) -> DataFrame:
    """Sum up each month of a partition, one row per replica list it had: ``partitionMs`` (all of it) and SUMS."""
    keys = ["clusterId", "month", "topic", *KEYS, "replicas"]
    return aggregates.grouped(_classified(tables), keys, partitionMs="sum(ms)", **SUMS)


MONTHS = Shared("partition_months", ("partitions", "configs", "clusters"), _months, MONTH)


def _classified(tables: Tables) -> DataFrame:
    """Cut versions of partitions where a month or ``min.insync.replicas`` changes, and classify each piece: ``ms`` (its
    length), ``month``, ``isOffline``, ``inSync`` (size of the ISR), ``factor`` (replication factor), ``minIsr``,
    ``isAssumed`` (the log sets no ``minIsr``, and 1 is taken), ``replicas``.
    """
    versions = tables["partitions"].selectExpr(
        "clusterId",
        "topic",
        *KEYS,
        "leader",
        "coalesce(replicas, array()) as replicas",
        "array_size(coalesce(isr, array())) as inSync",
        "array_size(coalesce(addingReplicas, array())) as adding",
        "validFromOffset",
        "validFromMs",
        "validToMs",
    )
    spans = timed(versions, KEYS, tables["clusters"])
    pieces = split_by_month(with_min_isr(clipped(spans), tables["configs"], tables["clusters"]))
    return pieces.selectExpr(
        "clusterId",
        "month",
        "topic",
        *KEYS,
        "replicas",
        "endMs - beginMs as ms",
        "leader < 0 as isOffline",
        "inSync",
        "array_size(replicas) - adding as factor",
        "coalesce(minIsr, 1) as minIsr",
        "minIsr is null as isAssumed",
    )


def with_shares(sums: DataFrame, total: str) -> DataFrame:
    """Add availabilities and ``untilMs`` to sums of months; ``total``: the column with all milliseconds of a row."""
    shares = {"availability": "offlineMs", "writeAvailability": "underMinIsrMs"}
    columns = (f"if({total} > 0, 1 - {lost} / {total}, null) as {name}" for name, lost in shares.items())
    return sums.selectExpr("*", *columns, f"{end_of_month('month')} as untilMs")


def partition_availability(tables: Tables) -> DataFrame:
    """Compute each partition's time offline, under and at ``min.insync.replicas``, by month."""
    added = {name: f"sum({name})" for name in SUMS}
    keys = ["clusterId", "month", "topic", *KEYS]
    sums = aggregates.grouped(tables[MONTHS.name], keys, existedMs="sum(partitionMs)", **added)
    return aggregates.typed_with_until(with_shares(sums, "existedMs"), FIELDS)


GOLD = GoldTable(
    "partition_availability",
    "each partition's time offline, under min ISR, at min ISR, by month",
    FIELDS,
    ("partitions", "configs", "clusters"),
    partition_availability,
    final_by=MONTH,
    shares=(MONTHS,),
    expect=(*key("clusterId", "month", "topicId", "partition"), *HOLDS, ordered("offlineMs", "existedMs")),
)
