"""The table ``broker_sessions``: one row per registration of a broker, until the next one or its removal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshell.spark.gold.timelines import aggregates
from kshell.spark.gold.timelines.broker_versions import IS_FENCING, with_states_and_sessions
from kshell.spark.tables.expectations import at_least, key, ordered
from kshell.spark.tables.gold_table import CLUSTER, GoldTable, Tables
from kshell.tables.declaration import Field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FIELDS = (
    CLUSTER,
    Field("broker", "int32", "the broker's id"),
    Field("epoch", "int64", "the epoch of its registration"),
    Field("incarnationId", "string", "that of the process, another with every start"),
    Field("rack", "string", "its rack at the end"),
    Field("fromOffset", "int64", "the record that registered it, or the end of the snapshot that has it first"),
    Field("fromMs", "int64", "its time"),
    Field("firstUnfencedMs", "int64", "when it was first unfenced; null if it never was"),
    Field("startMs", "int64", "from its registration to then"),
    Field("toOffset", "int64", "the record that ended it; null while it lasts"),
    Field("toMs", "int64", "its time; null while it lasts"),
    Field("outcome", "string", "reregistered (it started again), unregistered; null while it lasts"),
    Field(
        "isClean",
        "boolean",
        "whether it was in controlled shutdown before it ended, or was fenced for the last"
        " time; null while it is unfenced",
    ),
    Field("durationMs", "int64", "how long; up to the cluster's last record while it lasts"),
    Field("unfencedMs", "int64", "how long of it unfenced, controlled shutdown left out"),
    Field("shutdownMs", "int64", "how long of it in controlled shutdown and unfenced"),
    Field("fencedMs", "int64", "how long of it fenced, the time before it was first unfenced included"),
    Field("fencings", "int32", "how often it was fenced after it had been unfenced"),
)


_SUMS = {
    "unfencedMs": "sum(if(state = 'unfenced', endMs - beginMs, 0))",
    "shutdownMs": "sum(if(state = 'controlled-shutdown', endMs - beginMs, 0))",
    "fencedMs": "sum(if(fenced, endMs - beginMs, 0))",
    "fencings": f"count_if({IS_FENCING})",
}


def broker_sessions(tables: Tables) -> DataFrame:
    """Aggregate versions of brokers into sessions, each from one registration to the next one or to the removal."""
    sessions = aggregates.grouped(
        with_states_and_sessions(tables["brokers"], tables["clusters"]),
        ["clusterId", "broker", "session"],
        epoch="max(epoch)",
        fromOffset="min(validFromOffset)",
        fromMs="min_by(validFromMs, validFromOffset)",
        beganMs="min(beginMs)",
        servedMs="min(if(fenced, null, beginMs))",
        firstUnfencedMs="min_by(validFromMs, if(fenced, null, validFromOffset))",
        last="max_by(struct(validToOffset, validToMs, incarnationId, rack, state, inControlledShutdown,"
        " following.validFromOffset <=> validToOffset as goesOn), validFromOffset)",
        durationMs="max(endMs) - min(beginMs)",
        **_SUMS,
    )
    ended = (
        "case when last.validToOffset is null then null when last.goesOn then 'reregistered' else 'unregistered' end"
    )
    columns = sessions.selectExpr(
        "*",
        "last.incarnationId as incarnationId",
        "last.rack as rack",
        "last.validToOffset as toOffset",
        "last.validToMs as toMs",
        "servedMs - beganMs as startMs",
        f"{ended} as outcome",
        "if(last.validToOffset is null and last.state <> 'fenced', null, last.inControlledShutdown) as isClean",
    )
    return aggregates.typed(columns, FIELDS)


GOLD = GoldTable(
    "broker_sessions",
    "registrations of brokers: from when to when, time fenced and unfenced, how they ended",
    FIELDS,
    ("brokers", "clusters"),
    broker_sessions,
    expect=(
        *key("clusterId", "broker", "fromOffset"),
        *at_least(0, "durationMs", "unfencedMs", "shutdownMs", "fencedMs"),
        ordered("fromOffset", "toOffset"),
    ),
)
