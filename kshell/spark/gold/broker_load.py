"""The table ``broker_load``: how many partitions each broker led and had a replica of, averaged over each day."""

from __future__ import annotations

from kshell.spark.gold.timelines.broker_versions import RACKS_BY_DAY
from kshell.spark.gold.timelines.durations import COVERED, DAY_MS, by_day, day, end_of_day
from kshell.spark.gold.timelines.partition_versions import SPANS
from kshell.spark.tables.expectations import at_least, key
from kshell.spark.tables.gold_table import CLUSTER, DAY, GoldTable
from kshell.tables.declaration import Field

FIELDS = (
    CLUSTER,
    Field("day", "string", "the day, in UTC"),
    Field("broker", "int32", "a broker that was registered at any time of the day, or among a partition's replicas"),
    Field(
        "rack",
        "string",
        "its rack, by the last of its registrations that held at any time of the day; null if it"
        " has none or was not registered",
    ),
    Field(
        "coveredMs",
        "int64",
        "milliseconds of the day that are known: from the first version of any topic or"
        " broker of the cluster to its last record",
    ),
    Field("leaderMs", "int64", "milliseconds that it led, summed over partitions"),
    Field("replicaMs", "int64", "milliseconds that it was among the replicas, likewise"),
    Field("inSyncMs", "int64", "milliseconds that it was in the ISR, likewise"),
    Field("preferredMs", "int64", "milliseconds that it was the first of the replicas, likewise"),
    Field(
        "leaders",
        "float64",
        "leaderMs / coveredMs: partitions that it led, averaged over time; null where nothing is covered",
    ),
    Field("replicas", "float64", "replicaMs / coveredMs, likewise"),
    Field("preferred", "float64", "preferredMs / coveredMs: what it would lead if all preferred leaders did"),
    Field("leaderShare", "float64", "its part of the cluster's leaderMs of the day; null where there was none"),
    Field("replicaShare", "float64", "its part of the cluster's replicaMs of the day"),
)

_ROLES = f"""(
    -- one row per broker that is the leader, a replica or in the ISR
    SELECT *, explode(array_distinct(concat(replicas, isr, if(leader >= 0, array(leader), array())))) AS broker
    FROM {{{SPANS.name}}} WHERE beginMs < endMs
  )"""
_MEASURES = {
    "leaderMs": "if(leader = broker, 1, 0)",
    "replicaMs": "if(array_contains(replicas, broker), 1, 0)",
    "inSyncMs": "if(array_contains(isr, broker), 1, 0)",
    "preferredMs": "if(get(replicas, 0) = broker, 1, 0)",
}


def _of_all(name: str) -> str:
    return f"sum({name}) OVER (PARTITION BY dayNumber, clusterId)"


def _share(name: str) -> str:
    return f"if({_of_all(name)} > 0, {name} / {_of_all(name)}, NULL)"


_QUERY = f"""
SELECT *, {day("dayNumber")} AS day, {end_of_day(day("dayNumber"))} AS untilMs,
  if(coveredMs > 0, leaderMs / coveredMs, NULL) AS leaders,
  if(coveredMs > 0, replicaMs / coveredMs, NULL) AS replicas,
  if(coveredMs > 0, preferredMs / coveredMs, NULL) AS preferred,
  {_share("leaderMs")} AS leaderShare, {_share("replicaMs")} AS replicaShare
FROM (
  SELECT clusterId, dayNumber, broker, rack,
    if(coveredFromMs IS NULL, 0L, greatest(0L, least((dayNumber + 1) * {DAY_MS}, coveredToMs)
      - greatest(dayNumber * {DAY_MS}, coveredFromMs))) AS coveredMs,
    {", ".join(f"coalesce({name}, 0L) AS {name}" for name in _MEASURES)}
  FROM ({RACKS_BY_DAY})
  FULL JOIN ({by_day(_ROLES, ("clusterId", "broker"), _MEASURES)}) USING (clusterId, dayNumber, broker)
  LEFT JOIN ({COVERED}) USING (clusterId)
)"""


GOLD = GoldTable(
    "broker_load",
    "partitions that each broker led and held, averaged over each day, with its rack",
    FIELDS,
    _QUERY,
    final_by=DAY,
    shares=(SPANS,),
    expect=(
        *key("clusterId", "day", "broker"),
        *at_least(0, "coveredMs", "leaderMs", "replicaMs", "inSyncMs", "preferredMs"),
    ),
)
