"""The table ``availability``: what ``partition_availability`` has, summed up by topic, broker, cluster and month."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshell.spark.gold.partition_availability import HOLDS, MEASURES, MONTHS, SUMS, with_shares
from kshell.spark.gold.timelines import aggregates
from kshell.spark.gold.timelines.partition_versions import KEYS
from kshell.spark.tables.expectations import key, ordered
from kshell.spark.tables.gold_table import CLUSTER, MONTH, GoldTable, Tables
from kshell.tables.declaration import Field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FIELDS = (
    CLUSTER,
    Field("month", "string", "the month, in UTC"),
    Field(
        "scope",
        "string",
        "topic (all partitions of topics of that name), broker (all partitions while it was among"
        " their replicas), cluster (all partitions)",
    ),
    Field("name", "string", "the topic's name, the broker's id; of a cluster its id"),
    Field("partitions", "int32", "how many partitions were there at any time of that month"),
    Field("partitionMs", "int64", "milliseconds of that month, summed over these partitions"),
    *MEASURES,
)


_SCOPES = (
    "inline(concat(array(named_struct('scope', 'topic', 'name', topic), named_struct('scope', 'cluster', 'name',"
    " clusterId)), transform(array_distinct(replicas), one -> named_struct('scope', 'broker', 'name', cast(one as"
    " string)))))"
)


def availability(tables: Tables) -> DataFrame:
    """Sum up the availability of partitions by topic, broker and cluster."""
    measures = ("partitionMs", *SUMS)
    scopes = tables[MONTHS.name].selectExpr("clusterId", "month", *KEYS, *measures, _SCOPES)
    sums = {name: f"sum({name})" for name in measures}
    # Group by partition first: partitions are then counted without a set of distinct ones in memory.
    second = aggregates.grouped(scopes, ["clusterId", "month", "scope", "name", *KEYS], **sums)
    third = aggregates.grouped(second, ["clusterId", "month", "scope", "name"], partitions="count(*)", **sums)
    return aggregates.typed_with_until(with_shares(third, "partitionMs"), FIELDS)


GOLD = GoldTable(
    "availability",
    "availability of topics, brokers and clusters by month",
    FIELDS,
    ("partitions", "configs", "clusters"),
    availability,
    final_by=MONTH,
    shares=(MONTHS,),
    expect=(*key("clusterId", "month", "scope", "name"), *HOLDS, ordered("offlineMs", "partitionMs")),
)
