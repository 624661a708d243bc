"""The table ``isr_episodes``: each period in which a partition's ISR was smaller than its replication factor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshell.spark.gold.timelines import aggregates
from kshell.spark.gold.timelines.partition_versions import FACTOR, KEYS, SHRUNK, SPANS, episode
from kshell.spark.tables.expectations import at_least, key, ordered
from kshell.spark.tables.gold_table import CLUSTER, DAY, GoldTable, Tables
from kshell.tables.declaration import Field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FIELDS = (
    CLUSTER,
    Field("topic", "string", "the topic's name"),
    Field("topicId", "string", "its id"),
    Field("partition", "int32", "the partition's number"),
    Field(
        "fromOffset",
        "int64",
        "the record after which the ISR was smaller than the replication factor (replicas"
        " without addingReplicas), which it was not before",
    ),
    Field("fromMs", "int64", "its time"),
    Field("toOffset", "int64", "the record after which it no longer was; null while it lasts"),
    Field("toMs", "int64", "its time; null while it lasts"),
    Field("durationMs", "int64", "how long; up to the cluster's last record while it lasts"),
    Field("outcome", "string", "full (as many in sync as replicas again), deleted (with its topic); null as yet"),
    Field("replicationFactor", "int32", "the largest in that time"),
    Field("leastInSync", "int32", "the smallest size of the ISR in that time"),
    Field("shrinks", "int32", "records of it after which a broker was no longer in the ISR; the first one included"),
    Field(
        "expands",
        "int32",
        "records of it after which a broker was in the ISR that had not been; the one that ended it included",
    ),
    Field("missing", ["int32"], "brokers among the replicas, and not in the ISR, at any time of it; sorted"),
    Field("leaderlessMs", "int64", "how long of it the partition had no leader"),
)


_LACKS = f"array_size(isr) < {FACTOR}"
_EXPANDED = "if(array_size(array_except(isr, previous.isr)) > 0, 1, 0)"
_EXPANDS_NEXT = "if(array_size(array_except(following.isr, isr)) > 0, 1, 0)"


def isr_episodes(tables: Tables) -> DataFrame:
    """List the episodes in which partitions lacked in-sync replicas, one row per partition and episode."""
    versions = tables[SPANS.name]
    lacking = versions.selectExpr("*", f"{episode(_LACKS)} as episode").where(_LACKS)
    episodes = aggregates.grouped(
        lacking,
        ["clusterId", *KEYS, "episode"],
        topic="max(topic)",
        fromOffset="min(validFromOffset)",
        fromMs="min_by(validFromMs, validFromOffset)",
        last="max_by(struct(validToOffset as toOffset, validToMs as toMs, following is not null as goesOn,"
        f" {_EXPANDS_NEXT} as expands), validFromOffset)",
        durationMs="max(endMs) - min(beginMs)",
        replicationFactor=f"max({FACTOR})",
        leastInSync="min(array_size(isr))",
        shrinks=f"count_if({SHRUNK})",
        expanded=f"sum({_EXPANDED})",
        missing="sort_array(array_distinct(flatten(collect_list(array_except(replicas, isr)))))",
        leaderlessMs="sum(if(leader < 0, endMs - beginMs, 0))",
        untilMs="max_by(overMs, validFromOffset)",
    )
    ended = "case when last.toOffset is null then null when last.goesOn then 'full' else 'deleted' end"
    with_outcome = episodes.selectExpr(
        "*",
        "last.toOffset as toOffset",
        "last.toMs as toMs",
        f"{ended} as outcome",
        "expanded + if(last.goesOn, last.expands, 0) as expands",
    )
    return aggregates.typed_with_until(with_outcome, FIELDS)


GOLD = GoldTable(
    "isr_episodes",
    "times in which a partition lacked in-sync replicas: shrink, expand, how long",
    FIELDS,
    ("partitions", "clusters"),
    isr_episodes,
    final_by=DAY,
    shares=(SPANS,),
    expect=(
        *key("clusterId", "topicId", "partition", "fromOffset"),
        *at_least(0, "durationMs", "leaderlessMs", "leastInSync"),
        ordered("fromOffset", "toOffset"),
        ordered("leaderlessMs", "durationMs"),
    ),
)
