"""The table ``reassignments``: each change of the brokers that have a partition's replicas, with start and outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshell.spark.gold.timelines import aggregates
from kshell.spark.gold.timelines.partition_versions import KEYS, SPANS, episode
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
    Field("fromOffset", "int64", "the record that began it: replicas are being added or removed that were not"),
    Field("fromMs", "int64", "its time"),
    Field(
        "toOffset",
        "int64",
        "the record that ended it: nothing is added or removed any more; for an at-once reassignment the same as"
        " fromOffset; null while it lasts",
    ),
    Field("toMs", "int64", "its time; null while it lasts"),
    Field("durationMs", "int64", "how long; up to the cluster's last record while it lasts"),
    Field(
        "outcome",
        "string",
        "completed (all that were last being added are replicas, and none that were being"
        " removed), cancelled (anything else), at-once (replicas changed without being added or removed first: a"
        " smaller or reordered assignment), deleted (with its topic); null while it lasts",
    ),
    Field("replicasBefore", ["int32"], "the replicas before it, in their order; null where that is not known"),
    Field("replicasAfter", ["int32"], "the replicas after it; null while it lasts, and if deleted"),
    Field(
        "adding",
        ["int32"],
        "brokers that were being added at any time, sorted; for an at-once reassignment those that it added",
    ),
    Field("removing", ["int32"], "brokers that were being removed at any time of it, likewise"),
    Field(
        "changes",
        "int32",
        "records that changed what is being added or removed in it, without the one that began and the one that ended"
        " it",
    ),
)


_IS_MOVING = "array_size(addingReplicas) + array_size(removingReplicas) > 0"
_WAS_MOVING = "array_size(previous.addingReplicas) + array_size(previous.removingReplicas) > 0"
"""SQL: whether replicas are being added or removed in a version; with ``_WAS_MOVING``, in the version before it."""


def reassignments(tables: Tables) -> DataFrame:
    """List the reassignments of replicas."""
    versions = tables[SPANS.name]
    return aggregates.typed_with_until(_with_several_records(versions).unionByName(_at_once(versions)), FIELDS)


def _with_several_records(versions: DataFrame) -> DataFrame:
    """List the reassignments that took more than one record."""
    moving = versions.selectExpr("*", f"{episode(_IS_MOVING)} as episode").where(_IS_MOVING)
    state = "struct(sort_array({0}addingReplicas), sort_array({0}removingReplicas))"
    episodes = aggregates.grouped(
        moving,
        ["clusterId", *KEYS, "episode"],
        topic="max(topic)",
        fromOffset="min(validFromOffset)",
        fromMs="min_by(validFromMs, validFromOffset)",
        durationMs="max(endMs) - min(beginMs)",
        replicasBefore="min_by(previous.replicas, validFromOffset)",
        adding="sort_array(array_distinct(flatten(collect_list(addingReplicas))))",
        removing="sort_array(array_distinct(flatten(collect_list(removingReplicas))))",
        changes=f"count_if({_WAS_MOVING} and {state.format('previous.')} <> {state.format('')})",
        last="max_by(struct(validToOffset, validToMs, addingReplicas, removingReplicas, following.replicas as after),"
        " validFromOffset)",
        untilMs="max_by(overMs, validFromOffset)",
    )
    completed = (
        "array_size(array_except(last.addingReplicas, last.after)) = 0"
        " and array_size(array_intersect(last.removingReplicas, last.after)) = 0"
    )
    return episodes.selectExpr(
        "clusterId",
        "topic",
        *KEYS,
        "fromOffset",
        "fromMs",
        "last.validToOffset as toOffset",
        "last.validToMs as toMs",
        "durationMs",
        "case when last.validToOffset is null then null when last.after is null then 'deleted'"
        f" when {completed} then 'completed' else 'cancelled' end as outcome",
        "replicasBefore",
        "last.after as replicasAfter",
        "adding",
        "removing",
        "changes",
        "untilMs",
    )


def _at_once(versions: DataFrame) -> DataFrame:
    """List the reassignments that took effect with a single record."""
    moved = versions.where(
        f"previous is not null and not ({_IS_MOVING}) and not ({_WAS_MOVING}) and previous.replicas <> replicas"
    )
    return moved.selectExpr(
        "clusterId",
        "topic",
        *KEYS,
        "validFromOffset as fromOffset",
        "validFromMs as fromMs",
        "validFromOffset as toOffset",
        "validFromMs as toMs",
        "0L as durationMs",
        "'at-once' as outcome",
        "previous.replicas as replicasBefore",
        "replicas as replicasAfter",
        "sort_array(array_except(replicas, previous.replicas)) as adding",
        "sort_array(array_except(previous.replicas, replicas)) as removing",
        "0L as changes",
        "latestMsAtBegin as untilMs",
    )


GOLD = GoldTable(
    "reassignments",
    "reassignments of partitions: from where to where, how long, how they ended",
    FIELDS,
    ("partitions", "clusters"),
    reassignments,
    final_by=DAY,
    shares=(SPANS,),
    expect=(
        *key("clusterId", "topicId", "partition", "fromOffset"),
        *at_least(0, "durationMs"),
        ordered("fromOffset", "toOffset"),
    ),
)
