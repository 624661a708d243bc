"""The table ``leadership``: how long each broker led partitions of each topic, as preferred leader or not, by day."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshell.spark.gold.timelines import aggregates
from kshell.spark.gold.timelines.durations import by_day, day, day_of, end_of_day
from kshell.spark.gold.timelines.partition_versions import IS_NEW_LEADER, SPANS
from kshell.spark.tables.expectations import at_least, key, ordered
from kshell.spark.tables.gold_table import CLUSTER, DAY, GoldTable, Tables
from kshell.tables.declaration import Field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FIELDS = (
    CLUSTER,
    Field("day", "string", "the day, in UTC"),
    Field("topic", "string", "the topic's name"),
    Field("topicId", "string", "its id: a topic that was deleted and made again has two"),
    Field("broker", "int32", "the broker that led; time without a leader is in partition_availability"),
    Field("leaderMs", "int64", "milliseconds of that day that it led, summed over the topic's partitions"),
    Field("preferredMs", "int64", "those of them in which it was the preferred leader: the first of the replicas"),
    Field("preferredShare", "float64", "preferredMs / leaderMs; null where it led no millisecond"),
    Field(
        "gained",
        "int32",
        "changes of leader to it: a record that day gave a partition this leader, and the last broker that led the"
        " partition before (any time without a leader passed over) was another. A partition's first leader is none."
        " The sum over brokers is the topic's churn",
    ),
    Field("lost", "int32", "the same changes, from it: it was the last that led before another did"),
    Field("preferredGained", "int32", "those of gained in which it was the preferred leader"),
)


def leadership(tables: Tables) -> DataFrame:
    """Compute how long each broker led partitions of each topic, and how often the leader changed, by day."""
    versions = tables[SPANS.name]
    keys = ["clusterId", "topic", "topicId", "broker"]
    led = by_day(
        versions.where("leader >= 0").withColumnRenamed("leader", "broker"),
        keys,
        {"leader": "1", "preferred": "if(get(replicas, 0) = broker, 1, 0)"},
    ).selectExpr(*keys, f"{day('dayNumber')} as day", "leader as leaderMs", "preferred as preferredMs", *_NO_CHANGES)
    change = (
        "inline(array("
        "named_struct('broker', leader, 'gained', 1, 'lost', 0,"
        " 'preferredGained', if(get(replicas, 0) = leader, 1, 0)),"
        " named_struct('broker', lastLeader, 'gained', 0, 'lost', 1, 'preferredGained', 0)))"
    )
    changed = versions.where(IS_NEW_LEADER).selectExpr(
        "clusterId",
        "topic",
        "topicId",
        f"{day_of('validFromMs')} as day",
        "0L as leaderMs",
        "0L as preferredMs",
        change,
    )
    sums = {name: f"sum({name})" for name in ("leaderMs", "preferredMs", "gained", "lost", "preferredGained")}
    both = aggregates.grouped(led.unionByName(changed), [*keys, "day"], **sums)
    share = "if(leaderMs > 0, preferredMs / leaderMs, null) as preferredShare"
    return aggregates.typed_with_until(both.selectExpr("*", share, f"{end_of_day('day')} as untilMs"), FIELDS)


_NO_CHANGES = ("0 as gained", "0 as lost", "0 as preferredGained")


GOLD = GoldTable(
    "leadership",
    "leaders by topic, broker and day: time led, share of the preferred leader, changes",
    FIELDS,
    ("partitions", "clusters"),
    leadership,
    final_by=DAY,
    shares=(SPANS,),
    expect=(
        *key("clusterId", "day", "topicId", "broker"),
        *at_least(0, "leaderMs", "preferredMs", "gained", "lost"),
        ordered("preferredMs", "leaderMs"),
    ),
)
