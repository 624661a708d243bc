"""The table ``hourly_churn``: how often leaders changed, ISRs shrank and brokers were fenced in each hour."""

from kshell.spark.gold.timelines.broker_versions import BROKER_VERSIONS, IS_FENCING
from kshell.spark.gold.timelines.durations import HOUR_MS, hour, within
from kshell.spark.gold.timelines.partition_versions import IS_NEW_LEADER, SHRUNK, SPANS
from kshell.spark.tables.expectations import at_least, key
from kshell.spark.tables.gold_table import CLUSTER, DAY, GoldTable
from kshell.tables.declaration import Field

FIELDS = (
    CLUSTER,
    Field("hour", "string", "the hour, in UTC: 2026-01-31T13. Only hours in which there was any"),
    Field("hourMs", "int64", "its begin"),
    Field("leaderChanges", "int64", "as gained in leadership, over the whole cluster"),
    Field("isrShrinks", "int64", "records after which a broker was no longer in a partition's ISR"),
    Field("fencings", "int64", "as in broker_sessions"),
)

EVENTS = ("leaderChanges", "isrShrinks", "fencings")
"""The columns that count something."""
_NUMBER = f"{within('validFromMs')} div {HOUR_MS} AS hourNumber"
_QUERY = f"""
SELECT *, {hour("hourNumber")} AS hour, hourNumber * {HOUR_MS} AS hourMs, (hourNumber + 1) * {HOUR_MS} - 1 AS untilMs
FROM (
  SELECT clusterId, hourNumber, {", ".join(f"sum({name}) AS {name}" for name in EVENTS)}
  FROM (
    SELECT clusterId, hourNumber, count_if({IS_NEW_LEADER}) AS leaderChanges, count_if({SHRUNK}) AS isrShrinks,
      0L AS fencings
    FROM (SELECT *, {_NUMBER} FROM {{{SPANS.name}}})
    GROUP BY hourNumber, clusterId
    UNION ALL
    SELECT clusterId, hourNumber, 0L, 0L, count(*)
    FROM (SELECT *, {_NUMBER} FROM ({BROKER_VERSIONS}))
    WHERE {IS_FENCING}
    GROUP BY hourNumber, clusterId
  )
  GROUP BY hourNumber, clusterId
)
WHERE {" + ".join(EVENTS)} > 0"""


GOLD = GoldTable(
    "hourly_churn",
    "changes of leaders and of in-sync replicas, and fencings of brokers, by hour",
    FIELDS,
    _QUERY,
    final_by=DAY,
    shares=(SPANS,),
    expect=(*key("clusterId", "hour"), *at_least(0, "leaderChanges", "isrShrinks", "fencings")),
)
