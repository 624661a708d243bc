"""The table ``isr_episodes``: each period in which a partition's ISR was smaller than its replication factor."""

from kshell.spark.gold.timelines.durations import by_keys
from kshell.spark.gold.timelines.partition_versions import FACTOR, KEYS, SHRUNK, SPANS, episode
from kshell.spark.tables.expectations import at_least, key, ordered
from kshell.spark.tables.gold_table import CLUSTER, DAY, GoldTable
from kshell.tables.declaration import Field

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
_QUERY = f"""
SELECT *, last.toOffset AS toOffset, last.toMs AS toMs,
  CASE WHEN last.toOffset IS NULL THEN NULL WHEN last.goesOn THEN 'full' ELSE 'deleted' END AS outcome,
  expanded + if(last.goesOn, last.expands, 0) AS expands
FROM (
  SELECT clusterId, {", ".join(KEYS)}, max(topic) AS topic, min(validFromOffset) AS fromOffset,
    min_by(validFromMs, validFromOffset) AS fromMs,
    max_by(
      struct(validToOffset AS toOffset, validToMs AS toMs, following IS NOT NULL AS goesOn,
        if(array_size(array_except(following.isr, isr)) > 0, 1, 0) AS expands),
      validFromOffset
    ) AS last,
    max(endMs) - min(beginMs) AS durationMs, max({FACTOR}) AS replicationFactor, min(array_size(isr)) AS leastInSync,
    count_if({SHRUNK}) AS shrinks, sum(if(array_size(array_except(isr, previous.isr)) > 0, 1, 0)) AS expanded,
    sort_array(array_distinct(flatten(collect_list(array_except(replicas, isr))))) AS missing,
    sum(if(leader < 0, endMs - beginMs, 0)) AS leaderlessMs, max_by(overMs, validFromOffset) AS untilMs
  FROM (SELECT *, {episode(_LACKS)} AS episode FROM {{{SPANS.name}}})
  WHERE {_LACKS}
  GROUP BY {by_keys((*KEYS, "episode", "clusterId"))}
)"""


GOLD = GoldTable(
    "isr_episodes",
    "times in which a partition lacked in-sync replicas: shrink, expand, how long",
    FIELDS,
    _QUERY,
    final_by=DAY,
    shares=(SPANS,),
    expect=(
        *key("clusterId", "topicId", "partition", "fromOffset"),
        *at_least(0, "durationMs", "leaderlessMs", "leastInSync"),
        ordered("fromOffset", "toOffset"),
        ordered("leaderlessMs", "durationMs"),
    ),
)
