"""The table ``broker_load``: how many partitions each broker led and had a replica of, averaged over each day."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshell.spark.gold.timelines import aggregates
from kshell.spark.gold.timelines.broker_versions import racks_by_day
from kshell.spark.gold.timelines.durations import DAY_MS, by_day, covered, day, end_of_day
from kshell.spark.gold.timelines.partition_versions import SPANS
from kshell.spark.tables.expectations import at_least, key
from kshell.spark.tables.gold_table import CLUSTER, DAY, GoldTable, Tables
from kshell.tables.declaration import Field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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


_ROLES = "explode(array_distinct(concat(replicas, isr, if(leader >= 0, array(leader), array())))) as broker"
"""SQL: one row per broker that is the leader, a replica or in the ISR."""
_MEASURES = {
    "leader": "if(leader = broker, 1, 0)",
    "replica": "if(array_contains(replicas, broker), 1, 0)",
    "inSync": "if(array_contains(isr, broker), 1, 0)",
    "preferred": "if(get(replicas, 0) = broker, 1, 0)",
}


def broker_load(tables: Tables) -> DataFrame:
    """Compute the partitions that each broker led and had a replica of, averaged over each day."""
    roles = tables[SPANS.name].where("beginMs < endMs").selectExpr("*", _ROLES)
    sums = by_day(roles, ["clusterId", "broker"], _MEASURES)
    keys = ["clusterId", "dayNumber", "broker"]
    both = racks_by_day(tables["brokers"], tables["clusters"]).join(sums, keys, "full")
    begin, end = f"dayNumber * {DAY_MS}", f"(dayNumber + 1) * {DAY_MS}"
    with_coverage = both.join(
        covered(tables["clusters"], tables["topics"], tables["brokers"]), ["clusterId"], "left"
    ).selectExpr(
        *keys,
        f"{day('dayNumber')} as day",
        "rack",
        "if(coveredFromMs is null, 0L, greatest(0L,"
        f" least({end}, coveredToMs) - greatest({begin}, coveredFromMs))) as coveredMs",
        *(f"coalesce({name}, 0L) as {name}Ms" for name in _MEASURES),
    )
    averages = {"leaders": "leaderMs", "replicas": "replicaMs", "preferred": "preferredMs"}
    shares = {"leaderShare": "leaderMs", "replicaShare": "replicaMs"}
    every = "sum({0}) over (partition by clusterId, dayNumber)"
    with_shares = with_coverage.selectExpr(
        "*",
        *(f"if(coveredMs > 0, {of} / coveredMs, null) as {name}" for name, of in averages.items()),
        *(f"if({every.format(of)} > 0, {of} / {every.format(of)}, null) as {name}" for name, of in shares.items()),
    )
    return aggregates.typed_with_until(with_shares.selectExpr("*", f"{end_of_day('day')} as untilMs"), FIELDS)


GOLD = GoldTable(
    "broker_load",
    "partitions that each broker led and held, averaged over each day, with its rack",
    FIELDS,
    ("partitions", "topics", "brokers", "clusters"),
    broker_load,
    final_by=DAY,
    shares=(SPANS,),
    expect=(
        *key("clusterId", "day", "broker"),
        *at_least(0, "coveredMs", "leaderMs", "replicaMs", "inSyncMs", "preferredMs"),
    ),
)
