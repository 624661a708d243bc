"""Partitions out of records that set them and records that change them (``PartitionRegistration.merge``), as
:mod:`kshell.metadata.partitions` does it: a field that a change does not name stays, every change raises the partition
epoch, and one that names a leader the leader epoch.

Each record is brought to its topic first, and with that to the topic's end; from there on all is windows over the
records of one partition.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions as fn

from kshell.metadata.partitions import RECOVERY_STATES
from kshell.protocol.primitives import ZERO_UUID
from kshell.spark.silver.base.declare import SilverTable
from kshell.spark.silver.base.payload import named, opened
from kshell.spark.silver.base.states import ENDLESS, in_era, moments, versions_of, was
from kshell.spark.silver.base.topic_lives import moment, topic_lives

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_SET, _CHANGED, _CLEARED = "PARTITION_RECORD", "PARTITION_CHANGE_RECORD", "CLEAR_ELR_RECORD"
_FIELDS = {
    "leader": "leader",
    "leaderEpoch": "leaderEpoch",
    "partitionEpoch": "partitionEpoch",
    "replicas": "replicas",
    "isr": "isr",
    "elr": "eligibleLeaderReplicas",
    "lastKnownElr": "lastKnownElr",
    "addingReplicas": "addingReplicas",
    "removingReplicas": "removingReplicas",
    "leaderRecoveryState": "leaderRecoveryState",
    "directories": "directories",
}
"""Column -> the record's field."""
_NAMED = tuple(name for name in _FIELDS if not name.endswith("Epoch"))
"""Columns that a change may name."""
_MOMENT = ("clusterId", "topicId", "partition", "atOffset", "atMs", "sequence")


def partition_versions(events: DataFrame, before: Mapping[str, DataFrame], table: SilverTable) -> DataFrame:
    """The rows of the table ``partitions``."""
    rows = _said(events).unionByName(_was(before["partitions"], table))
    rows = _of_topics(rows, topic_lives(events, before["topics"]))
    rows = _with_clears(rows, events)
    rows = _fitting(rows, table)
    return versions_of(_merged(rows, table), table)


def _said(events: DataFrame) -> DataFrame:
    """Records about partitions, with what each names; a set names everything. ``isSet`` tells which it is."""
    names = ("partitionId", "topicId", *_FIELDS.values())
    rows = events.where(fn.col("type").isin(_SET, _CHANGED)).withColumn("said", opened(_SET, *names))
    is_set, code = fn.col("type") == _SET, fn.col("said.leaderRecoveryState")
    values = {name: fn.col(f"said.{field}") for name, field in _FIELDS.items()}
    for name in ("elr", "lastKnownElr", "directories"):
        none = fn.array().cast("array<string>" if name == "directories" else "array<int>")
        values[name] = fn.when(is_set, fn.coalesce(values[name], none)).otherwise(values[name])
    stated = named(RECOVERY_STATES, fn.when(is_set, fn.coalesce(code, fn.lit(0))).otherwise(code))
    values["leaderRecoveryState"] = fn.when(is_set | code.isNotNull(), stated)
    known = code.isNull() | code.isin(*RECOVERY_STATES)
    return rows.where(known).select(
        "clusterId",
        "said.topicId",
        fn.col("said.partitionId").alias("partition"),
        "atOffset",
        "atMs",
        "sequence",
        is_set.alias("isSet"),
        *(value.alias(name) for name, value in values.items()),
    )


def _was(before: DataFrame, table: SilverTable) -> DataFrame:
    return was(before, table, fn.lit(True).alias("isSet")).drop("topic", "isGone", "isNew")


def _of_topics(rows: DataFrame, lives: DataFrame) -> DataFrame:
    """The rows whose topic is there, with its name and its end: ``topic``, ``ended``, ``endsOffset``, ``endsMs``."""
    joined = rows.join(lives.drop("isRemoved"), ["topicId", "clusterId"])
    within = (moment() >= fn.col("begun")) & (fn.col("ended").isNull() | (moment() < fn.col("ended")))
    return joined.where(within).select(
        *rows.columns,
        "topic",
        "ended",
        fn.coalesce("ended.atOffset", fn.lit(ENDLESS)).alias("endsOffset"),
        fn.col("ended.atMs").alias("endsMs"),
    )


def _with_clears(rows: DataFrame, events: DataFrame) -> DataFrame:
    """And for each partition a row ``isClear`` a ClearElr that is about it. There is hardly ever one."""
    cleared = events.where(fn.col("type") == _CLEARED).withColumn("cleared", opened(_CLEARED)["topicName"])
    clears = cleared.groupBy("clusterId").agg(moments("_clears", "cleared"))
    joined = rows.join(fn.broadcast(clears), "clusterId", "left")

    def is_about(one: Column) -> Column:
        at = fn.struct(one["atOffset"], one["sequence"], one["atMs"])
        in_life = (at > moment()) & (fn.col("ended").isNull() | (at < fn.col("ended")))
        return in_life & ((one["cleared"] == "") | (one["cleared"] == fn.col("topic")))

    itself = fn.array(fn.lit(None).cast("struct<atOffset:bigint,sequence:bigint,atMs:bigint,cleared:string>"))
    about = fn.when(fn.col("isSet") & fn.col("_clears").isNotNull(), fn.concat(itself, fn.filter("_clears", is_about)))
    both = joined.withColumn("_clear", fn.explode(fn.coalesce(about, itself)))
    clears_it = fn.col("_clear").isNotNull()
    emptied = {name: fn.array().cast("array<int>") for name in ("elr", "lastKnownElr")}
    values = {name: fn.when(clears_it, emptied.get(name, fn.lit(None))).otherwise(fn.col(name)) for name in _FIELDS}
    moved = {name: fn.coalesce(f"_clear.{name}", name) for name in ("atOffset", "sequence", "atMs")}
    told = {"isClear": clears_it, "isSet": fn.col("isSet") & ~clears_it}
    return both.withColumns(values | moved | told).drop("_clears", "_clear", "ended")


def _fitting(rows: DataFrame, table: SilverTable) -> DataFrame:
    """Without changes of what was never set, clears of nothing, and directories that are not one a replica.

    A change that names just one of replicas and directories is held against what the other was.
    """
    over = in_era(table)
    past = over.rowsBetween(-(1 << 63), -1)
    size, listed = fn.size("replicas"), fn.col("directories")
    unassigned = _is_unassigned()
    has_replicas, has_directories = fn.col("replicas").isNotNull(), listed.isNotNull()
    matching = ~has_directories | unassigned | ~has_replicas | (fn.size(listed) == size)
    was_unassigned = fn.last(fn.when(has_directories, unassigned), ignorenulls=True).over(past)
    was_size = fn.last(fn.when(has_replicas, size), ignorenulls=True).over(past)
    was_elr = fn.last(fn.when(fn.col("elr").isNotNull(), fn.size("elr")), ignorenulls=True).over(past)
    was_known = fn.last(fn.when(fn.col("lastKnownElr").isNotNull(), fn.size("lastKnownElr")), ignorenulls=True).over(
        past
    )
    is_there = fn.max(fn.col("isSet")).over(over)
    told = rows.where(matching).withColumns(
        {"_free": was_unassigned, "_size": was_size, "_elr": was_elr + was_known, "_there": is_there}
    )
    only_replicas = has_replicas & ~has_directories & ~fn.col("_free") & (size != fn.col("_size"))
    only_directories = has_directories & ~has_replicas & ~unassigned & (fn.size(listed) != fn.col("_size"))
    fits = fn.col("isSet") | ~(only_replicas | only_directories)
    clears = ~fn.col("isClear") | (fn.col("_elr") > 0)
    return told.where(fn.col("_there") & fits & clears).drop("_free", "_size", "_elr", "_there")


def _merged(rows: DataFrame, table: SilverTable) -> DataFrame:
    """Each row with all values, as a state."""
    over = in_era(table)
    number = fn.row_number().over(over.rowsBetween(-(1 << 63), 0))
    elected = fn.count(fn.when(~fn.col("isSet"), fn.col("leader"))).over(over)
    carried = {name: fn.last(name, ignorenulls=True).over(over) for name in _NAMED}
    told = rows.withColumns({**carried, "_number": number, "_elected": elected})
    begun = fn.struct(
        (fn.col("partitionEpoch").cast("bigint") - fn.col("_number")).alias("partition"),
        (fn.col("leaderEpoch").cast("bigint") - fn.col("_elected")).alias("leader"),
    )
    told = told.withColumn("_base", fn.last(fn.when(fn.col("isSet"), begun), ignorenulls=True).over(over))
    none = fn.array_repeat(fn.lit(str(ZERO_UUID)), fn.size("replicas"))
    return told.withColumns(
        {
            "partitionEpoch": _as_int(fn.col("_base.partition") + fn.col("_number")),
            "leaderEpoch": _as_int(fn.col("_base.leader") + fn.col("_elected")),
            "directories": fn.when(_is_unassigned(), none).otherwise(fn.col("directories")),
            "isGone": fn.lit(False),
            "isNew": fn.lit(False),
        }
    )


def _as_int(number: Column) -> Column:
    """The lower half, as Java adds: after the largest ``int`` comes the smallest."""
    return fn.shiftright(fn.shiftleft(number, 32), 32).cast("int")


def _is_unassigned() -> Column:
    """Whether ``directories`` names none that is one."""
    return fn.size(fn.array_except("directories", fn.array(fn.lit(str(ZERO_UUID))))) == 0
