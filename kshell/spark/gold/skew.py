"""The table ``skew``: how unevenly leaders and replicas are spread over brokers and racks, by day."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshell.spark.gold.timelines import aggregates
from kshell.spark.tables.expectations import at_least, key, ordered
from kshell.spark.tables.gold_table import CLUSTER, GoldTable, Tables
from kshell.tables.declaration import Field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FIELDS = (
    CLUSTER,
    Field("day", "string", "the day, in UTC"),
    Field(
        "level",
        "string",
        "broker (each broker of broker_load that day), rack (the sums over the brokers of a rack;"
        " brokers without one left out)",
    ),
    Field("measure", "string", "leaders or replicas: that column of broker_load"),
    Field("members", "int32", "how many brokers or racks"),
    Field("mean", "float64", "the mean over them"),
    Field("least", "float64", "the smallest"),
    Field("most", "float64", "the largest"),
    Field("busiest", "string", "the broker or rack that has it; the first by id or name if several do"),
    Field("deviation", "float64", "the standard deviation (population)"),
    Field("variation", "float64", "deviation / mean: 0 is even; null where the mean is 0"),
    Field("mostToMean", "float64", "most / mean: 1 is even, 2 is twice its part; null where the mean is 0"),
)


_SORTED = "sort_array(collect_list({0}))"
_SUM = "aggregate({0}, 0D, (sum, one) -> sum + one)"
"""SQL: the sum of a sorted array: sums of doubles depend on the order, and the order of rows varies between runs."""
_SUM_OF = f"if(count({{0}}) > 0, {_SUM.format(_SORTED)}, null)"


def skew(tables: Tables) -> DataFrame:
    """Compute how unevenly leaders and replicas are spread over brokers and racks on each day."""
    by_broker = tables["broker_load"]
    brokers = by_broker.selectExpr(
        "clusterId",
        "day",
        "'broker' as level",
        "cast(broker as string) as member",
        "broker as number",
        "leaders",
        "replicas",
    )
    racks = aggregates.grouped(
        by_broker.where("rack is not null").withColumnRenamed("rack", "member"),
        ["clusterId", "day", "member"],
        leaders=_SUM_OF.format("leaders"),
        replicas=_SUM_OF.format("replicas"),
    ).selectExpr("clusterId", "day", "'rack' as level", "member", "0 as number", "leaders", "replicas")
    measures = "stack(2, 'leaders', leaders, 'replicas', replicas) as (measure, value)"
    each = brokers.unionByName(racks).selectExpr("clusterId", "day", "level", "member", "number", measures)
    measured = aggregates.grouped(
        each.where("value is not null"),
        ["clusterId", "day", "level", "measure"],
        members="count(*)",
        sorted=_SORTED.format("value"),
        least="min(value)",
        most="max(value)",
        busiest="min_by(member, struct(-value as order, number, member))",
    ).selectExpr("*", f"{_SUM.format('sorted')} / members as mean")
    squares = _SUM.format("transform(sorted, one -> (one - mean) * (one - mean))")
    with_deviation = measured.selectExpr("*", f"sqrt({squares} / members) as deviation").selectExpr(
        "*",
        "if(mean > 0, deviation / mean, null) as variation",
        "if(mean > 0, most / mean, null) as mostToMean",
    )
    return aggregates.typed(with_deviation, FIELDS)


GOLD = GoldTable(
    "skew",
    "how unevenly leaders and replicas lie on brokers and racks, by day",
    FIELDS,
    ("broker_load",),
    skew,
    expect=(
        *key("clusterId", "day", "level", "measure"),
        *at_least(1, "members"),
        ordered("least", "mean"),
        ordered("mean", "most"),
    ),
)
