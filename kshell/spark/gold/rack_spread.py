"""The table ``rack_spread``: how much of the time replicas of partitions were in as many racks as possible, by day."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshell.spark.gold.timelines import aggregates
from kshell.spark.gold.timelines.broker_versions import racks_by_day
from kshell.spark.gold.timelines.durations import by_day, day, end_of_day
from kshell.spark.gold.timelines.partition_versions import SPANS
from kshell.spark.tables.expectations import at_least, key, ordered
from kshell.spark.tables.gold_table import CLUSTER, DAY, GoldTable, Tables
from kshell.tables.declaration import Field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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


def rack_spread(tables: Tables) -> DataFrame:
    """Compute how much partition time had its replicas in as many racks as possible, by day."""
    replica_time = by_day(tables[SPANS.name], ["clusterId", "replicas"], {"spent": "1"})
    racks = aggregates.grouped(
        racks_by_day(tables["brokers"], tables["clusters"]).where("rack is not null"),
        ["clusterId", "dayNumber"],
        byBroker="map_from_entries(collect_list(struct(broker, rack)))",
        racks="count(distinct rack)",
    )
    places = racks.join(replica_time, ["clusterId", "dayNumber"], "left").selectExpr(
        "*", "transform(replicas, one -> try_element_at(byBroker, one)) as places"
    )
    wide = places.selectExpr(
        "clusterId",
        "dayNumber",
        "racks",
        "coalesce(spent, 0L) as spent",
        "array_size(replicas) as count",
        "exists(places, one -> one is null) as isUnknown",
        "array_size(array_distinct(places)) as width",
    )
    sums = aggregates.grouped(
        wide,
        ["clusterId", "dayNumber", "racks"],
        partitionMs="sum(if(isUnknown, 0L, spent))",
        oneRackMs="sum(if(not isUnknown and width = 1 and count > 1, spent, 0L))",
        narrowMs="sum(if(not isUnknown and width < least(racks, count), spent, 0L))",
        unknownMs="sum(if(isUnknown, spent, 0L))",
    )
    spread = "if(partitionMs > 0, 1 - narrowMs / partitionMs, null) as spread"
    spreads = sums.selectExpr("*", f"{day('dayNumber')} as day", spread)
    return aggregates.typed_with_until(spreads.selectExpr("*", f"{end_of_day('day')} as untilMs"), FIELDS)


GOLD = GoldTable(
    "rack_spread",
    "time that partitions were spread over as many racks as they could be, by day",
    FIELDS,
    ("partitions", "brokers", "clusters"),
    rack_spread,
    final_by=DAY,
    shares=(SPANS,),
    expect=(
        *key("clusterId", "day"),
        *at_least(0, "racks", "partitionMs", "oneRackMs", "narrowMs", "unknownMs"),
        ordered("narrowMs", "partitionMs"),
    ),
)
