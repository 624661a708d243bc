"""The table ``unclean_elections``: each election of a leader that may lack acknowledged records."""

from kshell.spark.gold.timelines.durations import day_of, every_of, versions_of
from kshell.spark.gold.timelines.partition_versions import KEYS, SPANS, rows_before
from kshell.spark.tables.expectations import at_least, key
from kshell.spark.tables.gold_table import CLUSTER, DAY, GoldTable
from kshell.tables.declaration import Field

FIELDS = (
    CLUSTER,
    Field("topic", "string", "the topic's name"),
    Field("topicId", "string", "its id"),
    Field("partition", "int32", "the partition's number"),
    Field("offset", "int64", "the record that elected a leader"),
    Field("ms", "int64", "its time"),
    Field("day", "string", "its day, in UTC"),
    Field(
        "evidence",
        "string",
        "recovery-state (the record made another broker, or one after none, leader, and left"
        " leaderRecoveryState RECOVERING), isr (older metadata.version: it made one leader that was neither in the"
        " ISR nor in the ELR before, is now alone in the ISR, and the replicas stayed the same)",
    ),
    Field("leader", "int32", "the broker that leads from then on"),
    Field("previousLeader", "int32", "the last broker that led before; null if none did"),
    Field("previousIsr", ["int32"], "the ISR before"),
    Field("previousElr", ["int32"], "the ELR before (KIP-966)"),
    Field("leaderlessMs", "int64", "how long there had been no leader before it"),
    Field(
        "recoveredMs",
        "int64",
        "when leaderRecoveryState was RECOVERED again; null if it is not, or never was RECOVERING",
    ),
    Field("recoveringMs", "int64", "how long it was RECOVERING from then on; null if never"),
)

_IS_ELECTED = "leader >= 0 AND previous IS NOT NULL AND previous.leader <> leader"
_BY_STATE = f"{_IS_ELECTED} AND leaderRecoveryState = 'RECOVERING'"
_BY_ISR = (
    f"{_IS_ELECTED} AND NOT array_contains(previous.isr, leader) AND NOT array_contains(previous.elr, leader)"
    " AND isr = array(leader) AND replicas = previous.replicas"
)
"""SQL: the two kinds of evidence that an election was unclean, as the column ``evidence`` explains them."""
_HEALED_UNTIL = "if(healed IS NOT NULL, healed.latestMsAtBegin, if(last IS NULL, overMs, last.overMs))"
"""SQL: ``untilMs`` of an election that needs recovery: when it recovered, else when the partition was deleted."""
_WINDOW = versions_of(KEYS)
_LATER = rows_before(f"{_WINDOW[:-1]} DESC)")
"""In descending order: Spark reads a window's frame once if it grows, but again for every row if it shrinks."""
_QUERY = f"""
WITH few AS (
  -- few partitions have unclean elections: the windows below are computed for these only
  SELECT *, bool_or(isFound) OVER {every_of(KEYS)} AS hasAny
  FROM (SELECT *, ({_BY_STATE}) OR ({_BY_ISR}) AS isFound FROM {{{SPANS.name}}})
),
versions AS (
  SELECT *,
    last(if(leaderRecoveryState <> 'RECOVERING', struct(validFromMs, beginMs, latestMsAtBegin), NULL), true)
      OVER {_LATER} AS healed,
    first(struct(endMs, overMs)) OVER {_LATER} AS last,
    last(if(leader >= 0, endMs, NULL), true) OVER {rows_before(_WINDOW)} AS lostMs,
    first(beginMs) OVER {_WINDOW} AS madeMs
  FROM few WHERE hasAny
)
SELECT *, validFromOffset AS offset, validFromMs AS ms, {day_of("validFromMs")} AS day,
  if({_BY_STATE}, 'recovery-state', 'isr') AS evidence, lastLeader AS previousLeader, previous.isr AS previousIsr,
  previous.elr AS previousElr, if(previous.leader < 0, beginMs - coalesce(lostMs, madeMs), 0L) AS leaderlessMs,
  if(leaderRecoveryState = 'RECOVERING', healed.validFromMs, NULL) AS recoveredMs,
  if(leaderRecoveryState = 'RECOVERING', coalesce(healed.beginMs, last.endMs, endMs) - beginMs, NULL) AS recoveringMs,
  if(leaderRecoveryState = 'RECOVERING', {_HEALED_UNTIL}, latestMsAtBegin) AS untilMs
FROM versions WHERE isFound"""


GOLD = GoldTable(
    "unclean_elections",
    "elections of leaders that were not in sync: acknowledged records may be lost",
    FIELDS,
    _QUERY,
    final_by=DAY,
    shares=(SPANS,),
    expect=(
        *key("clusterId", "topicId", "partition", "offset"),
        *at_least(0, "leader", "leaderlessMs", "recoveringMs"),
    ),
)
