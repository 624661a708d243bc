"""The table ``unclean_elections``: each election of a leader that may lack acknowledged records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshell.spark.gold.timelines import aggregates
from kshell.spark.gold.timelines.durations import day_of, every_of, versions_of
from kshell.spark.gold.timelines.partition_versions import KEYS, SPANS, rows_before
from kshell.spark.tables.expectations import at_least, key
from kshell.spark.tables.gold_table import CLUSTER, DAY, GoldTable, Tables
from kshell.tables.declaration import Field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FIELDS = (
    CLUSTER,
    Field("topic", "string", "the topic's name"),
    Field("topicId", "string", "its id"),
    Field("partition", "int32", "the partition's number"),
    Field("offset", "int64", "the record that elected a leader"),
    Field("ms", "int64", "its time"),
    Field("day", "string", "its day, in UTC"),
    Field(
        "evidence",
        "string",
        "recovery-state (the record made another broker, or one after none, leader, and left"
        " leaderRecoveryState RECOVERING), isr (older metadata.version: it made one leader that was neither in the"
        " ISR nor in the ELR before, is now alone in the ISR, and the replicas stayed the same)",
    ),
    Field("leader", "int32", "the broker that leads from then on"),
    Field("previousLeader", "int32", "the last broker that led before; null if none did"),
    Field("previousIsr", ["int32"], "the ISR before"),
    Field("previousElr", ["int32"], "the ELR before (KIP-966)"),
    Field("leaderlessMs", "int64", "how long there had been no leader before it"),
    Field(
        "recoveredMs",
        "int64",
        "when leaderRecoveryState was RECOVERED again; null if it is not, or never was RECOVERING",
    ),
    Field("recoveringMs", "int64", "how long it was RECOVERING from then on; null if never"),
)


_IS_ELECTED = "leader >= 0 and previous is not null and previous.leader <> leader"
_BY_STATE = f"{_IS_ELECTED} and leaderRecoveryState = 'RECOVERING'"
_BY_ISR = (
    f"{_IS_ELECTED} and not array_contains(previous.isr, leader) and not array_contains(previous.elr, leader)"
    " and isr = array(leader) and replicas = previous.replicas"
)
"""SQL: the two kinds of evidence that an election was unclean, as the column ``evidence`` explains them."""
_HEALED_UNTIL = "if(healed is not null, healed.latestMsAtBegin, if(last is null, overMs, last.overMs))"
"""SQL: ``untilMs`` of an election that needs recovery: when it recovered, else when the partition was deleted."""


def unclean_elections(tables: Tables) -> DataFrame:
    """List the elections whose leader may lack acknowledged records."""
    window = versions_of(KEYS)
    # In descending order: Spark reads a window's frame once if it grows, but again for every row if it shrinks.
    later = rows_before(f"{window[:-1]} desc)")
    healed = "if(leaderRecoveryState <> 'RECOVERING', struct(validFromMs, beginMs, latestMsAtBegin), null)"
    some = tables[SPANS.name].selectExpr("*", f"({_BY_STATE}) or ({_BY_ISR}) as isFound")
    # Few partitions have unclean elections: the windows below are computed for these only.
    few = some.selectExpr("*", f"bool_or(isFound) over {every_of(KEYS)} as hasAny").where("hasAny")
    versions = few.selectExpr(
        "*",
        f"last({healed}, true) over {later} as healed",
        f"first(struct(endMs, overMs)) over {later} as last",
        f"last(if(leader >= 0, endMs, null), true) over {rows_before(window)} as lostMs",
        f"first(beginMs) over {window} as madeMs",
    )
    elections = versions.where("isFound").selectExpr(
        "*",
        "validFromOffset as offset",
        "validFromMs as ms",
        f"{day_of('validFromMs')} as day",
        f"if({_BY_STATE}, 'recovery-state', 'isr') as evidence",
        "lastLeader as previousLeader",
        "previous.isr as previousIsr",
        "previous.elr as previousElr",
        "if(previous.leader < 0, beginMs - coalesce(lostMs, madeMs), 0L) as leaderlessMs",
        "if(leaderRecoveryState = 'RECOVERING', healed.validFromMs, null) as recoveredMs",
        "if(leaderRecoveryState = 'RECOVERING', coalesce(healed.beginMs, last.endMs, endMs) - beginMs, null)"
        " as recoveringMs",
        f"if(leaderRecoveryState = 'RECOVERING', {_HEALED_UNTIL}, latestMsAtBegin) as untilMs",
    )
    return aggregates.typed_with_until(elections, FIELDS)


GOLD = GoldTable(
    "unclean_elections",
    "elections of leaders that were not in sync: acknowledged records may be lost",
    FIELDS,
    ("partitions", "clusters"),
    unclean_elections,
    final_by=DAY,
    shares=(SPANS,),
    expect=(
        *key("clusterId", "topicId", "partition", "offset"),
        *at_least(0, "leader", "leaderlessMs", "recoveringMs"),
    ),
)
