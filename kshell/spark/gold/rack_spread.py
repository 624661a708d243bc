"""The table ``rack_spread``: how much of the time replicas of partitions were in as many racks as possible, by day."""

from kshell.spark.gold.timelines.broker_versions import RACKS_BY_DAY
from kshell.spark.gold.timelines.durations import by_day, day, end_of_day
from kshell.spark.gold.timelines.partition_versions import SPANS
from kshell.spark.tables.expectations import at_least, key, ordered
from kshell.spark.tables.gold_table import CLUSTER, DAY, GoldTable
from kshell.tables.declaration import Field

FIELDS = (
    CLUSTER,
    Field("day", "string", "the day, in UTC; only days on which a broker with a rack was registered"),
    Field(
        "racks",
        "int32",
        "different racks of the brokers that were registered at any time of the day, each in the"
        " rack that broker_load has for it",
    ),
    Field(
        "partitionMs",
        "int64",
        "milliseconds of the day, summed over partitions all of whose replicas are on brokers with a rack",
    ),
    Field("oneRackMs", "int64", "those of partitions with two replicas or more, all in one rack"),
    Field(
        "narrowMs",
        "int64",
        "those of partitions in fewer racks than they could be: the smaller one of racks and replicas",
    ),
    Field("spread", "float64", "1 - narrowMs / partitionMs: 1 is as wide as can be; null where partitionMs is 0"),
    Field("unknownMs", "int64", "milliseconds of partitions with a replica on a broker whose rack is not known"),
)

_QUERY = f"""
WITH racks AS (
  SELECT clusterId, dayNumber, map_from_entries(collect_list(struct(broker, rack))) AS byBroker,
    count(DISTINCT rack) AS racks
  FROM ({RACKS_BY_DAY}) WHERE rack IS NOT NULL
  GROUP BY dayNumber, clusterId
),
spent AS ({by_day(f"{{{SPANS.name}}}", ("clusterId", "replicas"), {"spent": "1"})}
),
wide AS (
  SELECT clusterId, dayNumber, racks, coalesce(spent, 0L) AS spent, array_size(replicas) AS count,
    exists(places, one -> one IS NULL) AS isUnknown, array_size(array_distinct(places)) AS width
  FROM (
    SELECT *, transform(replicas, one -> try_element_at(byBroker, one)) AS places
    FROM racks LEFT JOIN spent USING (clusterId, dayNumber)
  )
)
SELECT *, {day("dayNumber")} AS day, {end_of_day(day("dayNumber"))} AS untilMs,
  if(partitionMs > 0, 1 - narrowMs / partitionMs, NULL) AS spread
FROM (
  SELECT clusterId, dayNumber, racks, sum(if(isUnknown, 0L, spent)) AS partitionMs,
    sum(if(NOT isUnknown AND width = 1 AND count > 1, spent, 0L)) AS oneRackMs,
    sum(if(NOT isUnknown AND width < least(racks, count), spent, 0L)) AS narrowMs,
    sum(if(isUnknown, spent, 0L)) AS unknownMs
  FROM wide
  GROUP BY dayNumber, racks, clusterId
)"""


GOLD = GoldTable(
    "rack_spread",
    "time that partitions were spread over as many racks as they could be, by day",
    FIELDS,
    _QUERY,
    final_by=DAY,
    shares=(SPANS,),
    expect=(
        *key("clusterId", "day"),
        *at_least(0, "racks", "partitionMs", "oneRackMs", "narrowMs", "unknownMs"),
        ordered("narrowMs", "partitionMs"),
    ),
)
