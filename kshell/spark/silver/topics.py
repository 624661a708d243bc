"""The tables ``topics`` and ``partitions``: partitions are set as a whole, changed by field, and end with their topic.

Changes are applied as in :mod:`kshell.metadata.partitions` (``PartitionRegistration.merge``): a field that a change
does not name stays, every change raises the partition epoch, and one that names a leader also the leader epoch. The
query first joins each record to its topic, and so to the topic's end; all further parts are windows over the records
of one partition.
"""

from __future__ import annotations

from kshell.metadata.partitions import RECOVERY_STATES
from kshell.protocol.primitives import ZERO_UUID
from kshell.spark.silver.declaration import SilverTable, silver
from kshell.spark.silver.expressions import enum_name_sql, record_fields_sql
from kshell.spark.silver.versions import (
    BASES,
    ENDLESS,
    MOMENT,
    current,
    last_of,
    replay_window,
    set_and_removed,
    until_base,
    versions,
)

_TOPIC, _REMOVED = "TOPIC_RECORD", "REMOVE_TOPIC_RECORD"
_SET, _CHANGED, _CLEARED = "PARTITION_RECORD", "PARTITION_CHANGE_RECORD", "CLEAR_ELR_RECORD"
_RECORD_FIELDS = {"elr": "eligibleLeaderReplicas"}
"""Column -> the field of the record, where their names differ."""
_INTS, _TEXTS = "cast(array() AS array<int>)", "cast(array() AS array<string>)"
_PAST = "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"

TOPIC_LIFETIMES = f"""named AS (
  SELECT clusterId, said.topicId, said.name AS topic, atOffset, atMs, sequence, type
  FROM (SELECT *, {record_fields_sql(_TOPIC)} AS said FROM {{events}} WHERE type IN ('{_TOPIC}', '{_REMOVED}'))
  UNION ALL
  SELECT clusterId, topicId, name, validFromOffset, validFromMs, -1L, '{_TOPIC}' FROM {{topics}}
),
bounded_topics AS ({until_base("named")}
),
lives AS (
  -- from when to when each topic was there; `ended` is null for one that is there at the end
  SELECT clusterId, topicId, topic, begun, ended,
    coalesce(following.type = '{_REMOVED}' AND following.moment = ended, false) AS isRemoved
  FROM (
    SELECT clusterId, topicId, topic, type, {MOMENT} AS begun, following, least(following.moment,
      CASE WHEN endsMs IS NOT NULL
        THEN struct(endsOffset AS atOffset, endsSequence AS sequence, endsMs AS atMs) END) AS ended
    FROM (
      SELECT *, lead(struct(type, {MOMENT} AS moment)) OVER (
        PARTITION BY topicId, clusterId ORDER BY endsOffset, atOffset, sequence) AS following
      FROM bounded_topics
    )
  ) WHERE type = '{_TOPIC}'
)"""
"""SQL: common table expressions up to ``lives``; :data:`~kshell.spark.silver.versions.BASES` must come before."""


def _topics(table: SilverTable) -> str:
    """Build the query: one row per topic, from its TopicRecord to its removal."""
    return set_and_removed(table, _TOPIC, {"name": "said.name", "topicId": "said.topicId"}, _REMOVED)


def _partitions(table: SilverTable) -> str:
    """Build the query: one row per version of a partition."""
    columns = [field.name for field in table.values if field.name != "topic"]
    fields = {name: f"said.{_RECORD_FIELDS.get(name, name)}" for name in columns}
    code = "said.leaderRecoveryState"
    recovery_state = enum_name_sql(RECOVERY_STATES, f"CASE WHEN isSet THEN coalesce({code}, 0) ELSE {code} END")
    expressions = fields | {"leaderRecoveryState": f"CASE WHEN isSet OR {code} IS NOT NULL THEN {recovery_state} END"}
    for name, nothing in {"elr": _INTS, "lastKnownElr": _INTS, "directories": _TEXTS}.items():
        expressions[name] = f"CASE WHEN isSet AND {fields[name]} IS NULL THEN {nothing} ELSE {fields[name]} END"
    payload = record_fields_sql(
        _SET, "partitionId", "topicId", *(field.removeprefix("said.") for field in fields.values())
    )
    emptied = {"elr": _INTS, "lastKnownElr": _INTS}
    cleared = ", ".join(
        f"CASE WHEN clear IS NULL THEN {name} ELSE {emptied.get(name, 'NULL')} END AS {name}" for name in columns
    )
    epochs = ("partitionEpoch", "leaderEpoch")
    merged = ", ".join(f"{last_of(name, table)} AS {name}" for name in columns if name not in epochs)
    unassigned = f"size(array_except(directories, array('{ZERO_UUID}'))) = 0"
    past = f"OVER ({replay_window(table)} {_PAST})"
    running = f"OVER ({replay_window(table)} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
    return f"""
WITH {BASES},
{TOPIC_LIFETIMES},
said AS (
  -- what each record names; a set names everything
  SELECT clusterId, said.topicId, said.partitionId AS partition, atOffset, atMs, sequence, isSet,
    {", ".join(f"{value} AS {name}" for name, value in expressions.items())}
  FROM (
    SELECT *, type = '{_SET}' AS isSet, {payload} AS said FROM {{events}} WHERE type IN ('{_SET}', '{_CHANGED}')
  ) WHERE {code} IS NULL OR {code} IN ({", ".join(map(str, RECOVERY_STATES))})
  UNION ALL
  SELECT * EXCEPT (isGone, isNew) FROM ({current(table, f"true AS isSet, {', '.join(columns)}")})
),
within AS (
  SELECT said.*, lives.topic, lives.ended, coalesce(ended.atOffset, {ENDLESS}) AS endsOffset, ended.atMs AS endsMs
  FROM said JOIN lives ON said.topicId = lives.topicId AND said.clusterId = lives.clusterId
  WHERE {MOMENT} >= begun AND (ended IS NULL OR {MOMENT} < ended)
),
clears AS (
  SELECT clusterId, sort_array(collect_list(struct(atOffset, sequence, atMs, cleared))) AS clears
  FROM (SELECT *, {record_fields_sql(_CLEARED)}.topicName AS cleared FROM {{events}} WHERE type = '{_CLEARED}')
  GROUP BY clusterId
),
cleared AS (
  -- and for each partition a row isClear per ClearElr that is about it; there is hardly ever one
  SELECT clusterId, topicId, partition, coalesce(clear.atOffset, atOffset) AS atOffset,
    coalesce(clear.sequence, sequence) AS sequence, coalesce(clear.atMs, atMs) AS atMs, endsOffset, endsMs, topic,
    isSet AND clear IS NULL AS isSet, clear IS NOT NULL AS isClear, {cleared}
  FROM (
    SELECT /*+ BROADCAST(clears) */ within.*, explode(
      CASE WHEN isSet AND clears IS NOT NULL THEN concat(array(NULL), filter(clears, c ->
        struct(c.atOffset, c.sequence, c.atMs) > {MOMENT}
        AND (ended IS NULL OR struct(c.atOffset, c.sequence, c.atMs) < ended)
        AND (c.cleared = '' OR c.cleared = topic)))
      ELSE array(NULL) END) AS clear
    FROM within LEFT JOIN clears ON within.clusterId = clears.clusterId
  )
),
measured AS (
  SELECT *, {unassigned} AS isUnassigned, size(replicas) AS replicaCount, size(directories) AS directoryCount
  FROM cleared
),
known AS (
  -- a change that names just one of replicas and directories is held against what the other was
  SELECT *,
    last(if(directories IS NOT NULL, isUnassigned, NULL), true) {past} AS wasUnassigned,
    last(if(replicas IS NOT NULL, replicaCount, NULL), true) {past} AS wasCount,
    last(if(elr IS NOT NULL, size(elr), NULL), true) {past}
      + last(if(lastKnownElr IS NOT NULL, size(lastKnownElr), NULL), true) {past} AS wasEligible,
    max(isSet) {running} AS isThere
  FROM measured
  WHERE directories IS NULL OR isUnassigned OR replicas IS NULL OR directoryCount = replicaCount
),
fitting AS (
  -- without changes of what was never set, clears of nothing, and directories that are not one per replica
  SELECT * FROM known WHERE isThere AND (NOT isClear OR wasEligible > 0) AND (isSet OR NOT (
    (replicas IS NOT NULL AND directories IS NULL AND NOT wasUnassigned AND replicaCount <> wasCount)
    OR (directories IS NOT NULL AND replicas IS NULL AND NOT isUnassigned AND directoryCount <> wasCount)))
),
merged AS (
  SELECT clusterId, topicId, partition, topic, atOffset, sequence, atMs, endsOffset, endsMs, isSet,
    partitionEpoch, leaderEpoch, {merged},
    row_number() {running} AS number, count(if(isSet, NULL, leader)) {running} AS elected
  FROM fitting
),
started AS (
  SELECT * EXCEPT (partitionEpoch, leaderEpoch), last(
      if(isSet, struct(bigint(partitionEpoch) - number AS partition, bigint(leaderEpoch) - elected AS leader), NULL),
      true
    ) {running} AS epochs
  FROM merged
),
states AS (
  SELECT * EXCEPT (directories),
    if({unassigned}, array_repeat('{ZERO_UUID}', size(replicas)), directories) AS directories,
    {_as_int("epochs.partition + number")} AS partitionEpoch, {_as_int("epochs.leader + elected")} AS leaderEpoch,
    false AS isGone, false AS isNew
  FROM started
) {versions("states", table)}"""


def _as_int(number: str) -> str:
    """SQL: the lower 32 bits, as an ``int`` overflows in Java: after the largest comes the smallest."""
    return f"cast(shiftright(shiftleft({number}, 32), 32) AS int)"


TABLES = (
    silver(
        "topics",
        "the topics: their names and ids",
        ("topicId",),
        (_TOPIC, _REMOVED),
        _topics,
    ),
    silver(
        "partitions",
        "the partitions of all topics",
        ("topicId", "partition"),
        (_TOPIC, _REMOVED, _SET, _CHANGED, _CLEARED),
        _partitions,
        ("topics",),
    ),
)
