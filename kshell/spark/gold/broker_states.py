"""The table ``broker_states``: in which state each broker was, from when to when; plots draw a lane per broker."""

from kshell.spark.gold.timelines.broker_versions import BROKER_VERSIONS, OF_A_BROKER
from kshell.spark.gold.timelines.durations import LAST
from kshell.spark.tables.expectations import at_least, key, ordered
from kshell.spark.tables.gold_table import CLUSTER, GoldTable
from kshell.tables.declaration import Field

FIELDS = (
    CLUSTER,
    Field("broker", "int32", "the broker's id"),
    Field("epoch", "int64", "the epoch of its registration; null while it was unregistered"),
    Field(
        "state",
        "string",
        "registered (fenced, and not unfenced yet in this registration), unfenced (it serves), controlled-shutdown (it"
        " hands over what it leads, and is not fenced yet), fenced (after it was unfenced), unregistered (after it was"
        " removed)",
    ),
    Field("fromOffset", "int64", "the record that made it so"),
    Field("fromMs", "int64", "its time"),
    Field("toOffset", "int64", "the record that ended it; null while it lasts"),
    Field("toMs", "int64", "its time; null while it lasts"),
    Field("durationMs", "int64", "how long; up to the cluster's last record while it lasts"),
    Field("next", "string", "the state after it; null while it lasts"),
)

_QUERY = f"""
WITH versions AS ({BROKER_VERSIONS}
),
stretches AS (
  -- consecutive versions in one state of one registration are one row
  SELECT clusterId, broker, max(epoch) AS epoch, max(state) AS state, min(validFromOffset) AS fromOffset,
    min_by(validFromMs, validFromOffset) AS fromMs,
    max_by(struct(validToOffset AS toOffset, validToMs AS toMs), validFromOffset) AS last,
    max(endMs) - min(beginMs) AS durationMs
  FROM (
    SELECT *, sum(if(isSame, 0, 1)) OVER {OF_A_BROKER} AS run
    FROM (
      SELECT *, lag(struct(session, state)) OVER {OF_A_BROKER} <=> struct(session, state) AS isSame FROM versions
    )
  )
  GROUP BY broker, run, clusterId
)
SELECT *, lead(state) OVER (PARTITION BY broker, clusterId ORDER BY fromOffset) AS next
FROM (
  SELECT clusterId, broker, epoch, state, fromOffset, fromMs, last.toOffset, last.toMs, durationMs FROM stretches
  UNION ALL
  SELECT clusterId, broker, NULL, 'unregistered', validToOffset, validToMs, following.validFromOffset,
    following.validFromMs, greatest(0L, least(coalesce(following.validFromMs, lastMs), lastMs) - endMs)
  FROM versions LEFT JOIN ({LAST}) USING (clusterId)
  WHERE validToOffset IS NOT NULL AND NOT (following.validFromOffset <=> validToOffset)
)"""


GOLD = GoldTable(
    "broker_states",
    "each broker's states over time: registered, unfenced, controlled-shutdown, fenced, unregistered",
    FIELDS,
    _QUERY,
    expect=(*key("clusterId", "broker", "fromOffset"), *at_least(0, "durationMs"), ordered("fromOffset", "toOffset")),
)
