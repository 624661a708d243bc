"""The table ``hourly_churn``: how often leaders changed, ISRs shrank and brokers were fenced in each hour."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshell.spark.gold.timelines import aggregates
from kshell.spark.gold.timelines.broker_versions import IS_FENCING, with_states_and_sessions
from kshell.spark.gold.timelines.durations import HOUR_MS, hour, within
from kshell.spark.gold.timelines.partition_versions import IS_NEW_LEADER, SHRUNK, SPANS
from kshell.spark.tables.expectations import at_least, key
from kshell.spark.tables.gold_table import CLUSTER, DAY, GoldTable, Tables
from kshell.tables.declaration import Field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FIELDS = (
    CLUSTER,
    Field("hour", "string", "the hour, in UTC: 2026-01-31T13. Only hours in which there was any"),
    Field("hourMs", "int64", "its begin"),
    Field("leaderChanges", "int64", "as gained in leadership, over the whole cluster"),
    Field("isrShrinks", "int64", "records after which a broker was no longer in a partition's ISR"),
    Field("fencings", "int64", "as in broker_sessions"),
)
EVENTS = {"leaderChanges": f"count_if({IS_NEW_LEADER})", "isrShrinks": f"count_if({SHRUNK})", "fencings": "0L"}
"""Column -> SQL aggregate over versions of partitions. Fencings are counted in versions of brokers."""


def hourly_churn(tables: Tables) -> DataFrame:
    """Count changes of leaders and of in-sync replicas, and fencings, by hour."""
    keys, number = ["clusterId", "hourNumber"], f"{within('validFromMs')} div {HOUR_MS} as hourNumber"
    versions = tables[SPANS.name].selectExpr("*", number)
    of_partitions = aggregates.grouped(versions, keys, **EVENTS)
    fenced = with_states_and_sessions(tables["brokers"], tables["clusters"]).where(IS_FENCING).selectExpr("*", number)
    of_brokers = aggregates.grouped(fenced, keys, leaderChanges="0L", isrShrinks="0L", fencings="count(*)")
    sums = aggregates.grouped(of_partitions.unionByName(of_brokers), keys, **{name: f"sum({name})" for name in EVENTS})
    hours = sums.where(f"{' + '.join(EVENTS)} > 0").selectExpr(
        "*",
        f"{hour('hourNumber')} as hour",
        f"hourNumber * {HOUR_MS} as hourMs",
        f"(hourNumber + 1) * {HOUR_MS} - 1 as untilMs",
    )
    return aggregates.typed_with_until(hours, FIELDS)


GOLD = GoldTable(
    "hourly_churn",
    "changes of leaders and of in-sync replicas, and fencings of brokers, by hour",
    FIELDS,
    ("partitions", "brokers", "clusters"),
    hourly_churn,
    final_by=DAY,
    shares=(SPANS,),
    expect=(*key("clusterId", "hour"), *at_least(0, "leaderChanges", "isrShrinks", "fencings")),
)
