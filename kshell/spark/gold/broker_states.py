"""The table ``broker_states``: in which state each broker was, from when to when; plots draw a lane per broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshell.spark.gold.timelines import aggregates
from kshell.spark.gold.timelines.broker_versions import OF_A_BROKER, with_states_and_sessions
from kshell.spark.gold.timelines.durations import last_of
from kshell.spark.tables.expectations import at_least, key, ordered
from kshell.spark.tables.gold_table import CLUSTER, GoldTable, Tables
from kshell.tables.declaration import Field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FIELDS = (
    CLUSTER,
    Field("broker", "int32", "the broker's id"),
    Field("epoch", "int64", "the epoch of its registration; null while it was unregistered"),
    Field(
        "state",
        "string",
        "registered (fenced, and not unfenced yet in this registration), unfenced (it serves), controlled-shutdown (it"
        " hands over what it leads, and is not fenced yet), fenced (after it was unfenced), unregistered (after it was"
        " removed)",
    ),
    Field("fromOffset", "int64", "the record that made it so"),
    Field("fromMs", "int64", "its time"),
    Field("toOffset", "int64", "the record that ended it; null while it lasts"),
    Field("toMs", "int64", "its time; null while it lasts"),
    Field("durationMs", "int64", "how long; up to the cluster's last record while it lasts"),
    Field("next", "string", "the state after it; null while it lasts"),
)


def broker_states(tables: Tables) -> DataFrame:
    """List the states of brokers over time; consecutive versions in one state of one registration are one row."""
    versions = with_states_and_sessions(tables["brokers"], tables["clusters"])
    keys = ["clusterId", "broker"]
    marked = versions.selectExpr(
        "*", f"lag(struct(session, state)) over {OF_A_BROKER} <=> struct(session, state) as isSame"
    ).selectExpr("*", f"sum(if(isSame, 0, 1)) over {OF_A_BROKER} as run")
    stretches = aggregates.grouped(
        marked,
        [*keys, "run"],
        epoch="max(epoch)",
        state="max(state)",
        fromOffset="min(validFromOffset)",
        fromMs="min_by(validFromMs, validFromOffset)",
        last="max_by(struct(validToOffset as toOffset, validToMs as toMs), validFromOffset)",
        durationMs="max(endMs) - min(beginMs)",
    ).selectExpr(*keys, "epoch", "state", "fromOffset", "fromMs", "last.toOffset", "last.toMs", "durationMs")
    unregistered = (
        versions.where("validToOffset is not null and not (following.validFromOffset <=> validToOffset)")
        .join(last_of(tables["clusters"]), ["clusterId"], "left")
        .selectExpr(
            *keys,
            "cast(null as bigint) as epoch",
            "'unregistered' as state",
            "validToOffset as fromOffset",
            "validToMs as fromMs",
            "following.validFromOffset as toOffset",
            "following.validFromMs as toMs",
            "greatest(0L, least(coalesce(following.validFromMs, lastMs), lastMs) - endMs) as durationMs",
        )
    )
    after = "lead(state) over (partition by broker, clusterId order by fromOffset) as next"
    return aggregates.typed(stretches.unionByName(unregistered).selectExpr("*", after), FIELDS)


GOLD = GoldTable(
    "broker_states",
    "each broker's states over time: registered, unfenced, controlled-shutdown, fenced, unregistered",
    FIELDS,
    ("brokers", "clusters"),
    broker_states,
    expect=(*key("clusterId", "broker", "fromOffset"), *at_least(0, "durationMs"), ordered("fromOffset", "toOffset")),
)
