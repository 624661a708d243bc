"""The table ``reassignments``: each change of the brokers that have a partition's replicas, with start and outcome."""

from kshell.spark.gold.timelines.durations import by_keys
from kshell.spark.gold.timelines.partition_versions import KEYS, SPANS, episode
from kshell.spark.tables.expectations import at_least, key, ordered
from kshell.spark.tables.gold_table import CLUSTER, DAY, GoldTable
from kshell.tables.declaration import Field

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
_IS_COMPLETE = (
    "array_size(array_except(last.addingReplicas, last.after)) = 0"
    " AND array_size(array_intersect(last.removingReplicas, last.after)) = 0"
)
_QUERY = f"""
WITH episodes AS (
  -- those that took more than one record
  SELECT clusterId, max(topic) AS topic, {", ".join(KEYS)}, min(validFromOffset) AS fromOffset,
    min_by(validFromMs, validFromOffset) AS fromMs, max(endMs) - min(beginMs) AS durationMs,
    min_by(previous.replicas, validFromOffset) AS replicasBefore,
    sort_array(array_distinct(flatten(collect_list(addingReplicas)))) AS adding,
    sort_array(array_distinct(flatten(collect_list(removingReplicas)))) AS removing,
    count_if({_WAS_MOVING}
      AND (sort_array(previous.addingReplicas) <> sort_array(addingReplicas)
        OR sort_array(previous.removingReplicas) <> sort_array(removingReplicas))) AS changes,
    max_by(
      struct(validToOffset, validToMs, addingReplicas, removingReplicas, following.replicas AS after), validFromOffset
    ) AS last,
    max_by(overMs, validFromOffset) AS untilMs
  FROM (SELECT *, {episode(_IS_MOVING)} AS episode FROM {{{SPANS.name}}})
  WHERE {_IS_MOVING}
  GROUP BY {by_keys((*KEYS, "episode", "clusterId"))}
)
SELECT clusterId, topic, {", ".join(KEYS)}, fromOffset, fromMs, last.validToOffset AS toOffset, last.validToMs AS toMs,
  durationMs,
  CASE WHEN last.validToOffset IS NULL THEN NULL WHEN last.after IS NULL THEN 'deleted'
    WHEN {_IS_COMPLETE} THEN 'completed' ELSE 'cancelled' END AS outcome,
  replicasBefore, last.after AS replicasAfter, adding, removing, changes, untilMs
FROM episodes
UNION ALL
SELECT clusterId, topic, {", ".join(KEYS)}, validFromOffset, validFromMs, validFromOffset, validFromMs, 0L, 'at-once',
  previous.replicas, replicas, sort_array(array_except(replicas, previous.replicas)),
  sort_array(array_except(previous.replicas, replicas)), 0L, latestMsAtBegin
FROM {{{SPANS.name}}}
WHERE previous IS NOT NULL AND NOT ({_IS_MOVING}) AND NOT ({_WAS_MOVING}) AND previous.replicas <> replicas"""


GOLD = GoldTable(
    "reassignments",
    "reassignments of partitions: from where to where, how long, how they ended",
    FIELDS,
    _QUERY,
    final_by=DAY,
    shares=(SPANS,),
    expect=(
        *key("clusterId", "topicId", "partition", "fromOffset"),
        *at_least(0, "durationMs"),
        ordered("fromOffset", "toOffset"),
    ),
)
