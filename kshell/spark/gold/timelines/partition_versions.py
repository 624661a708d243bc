"""Partitions over time (:data:`SPANS`): each version with its span, the version before it and the one after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshell.spark.gold.timelines.durations import timed, versions_of
from kshell.spark.tables.gold_table import DAY, Shared, Tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KEYS = ("topicId", "partition")
FACTOR = "array_size(replicas) - array_size(addingReplicas)"
"""SQL: the replication factor: replicas that are being added do not count yet."""
SHRUNK = "array_size(array_except(previous.isr, isr)) > 0"
"""SQL: whether a broker that was in the ISR no longer is; null for a first version."""
IS_NEW_LEADER = "leader >= 0 and lastLeader is not null and leader <> lastLeader"
"""SQL: whether the version began with a change of leader to another broker; time without a leader is ignored."""

_STATE = (
    "leader",
    "replicas",
    "isr",
    "elr",
    "addingReplicas",
    "removingReplicas",
    "leaderRecoveryState",
    "validFromOffset",
    "validToOffset",
)


def _linked(tables: Tables) -> DataFrame:
    """Return the versions of partitions with spans (:mod:`.durations`); ``previous`` and ``following``, the version
    that each replaced and the one that replaced it (structs of :data:`_STATE`; null if there is none, or a gap between
    them); and ``lastLeader``, the last broker that led the partition before.
    """
    window = versions_of(KEYS)
    lists = ("replicas", "isr", "elr", "addingReplicas", "removingReplicas")
    plain = tables["partitions"].selectExpr(
        "clusterId",
        "topic",
        *KEYS,
        "leader",
        *(f"coalesce({name}, array()) as {name}" for name in lists),
        "leaderRecoveryState",
        "validFromOffset",
        "validFromMs",
        "validToOffset",
        "validToMs",
    )
    state = f"struct({', '.join(_STATE)})"
    beside = timed(plain, KEYS, tables["clusters"]).selectExpr(
        "*",
        f"lag({state}) over {window} as before",
        f"lead({state}) over {window} as after",
        f"last(if(leader >= 0, leader, null), true) over {rows_before(window)} as lastLeader",
    )
    return beside.selectExpr(
        "*",
        "if(before.validToOffset = validFromOffset, before, null) as previous",
        "if(after.validFromOffset = validToOffset, after, null) as following",
    ).drop("before", "after")


SPANS = Shared("partition_spans", ("partitions", "clusters"), _linked, DAY)
"""The rows of :func:`_linked`, computed once per step for all gold tables that share them."""


def rows_before(window: str) -> str:
    """SQL: an ordered window, but only up to the row before the current one."""
    return f"{window[:-1]} rows between unbounded preceding and 1 preceding)"


def episode(condition: str) -> str:
    """SQL: a number that consecutive versions of a partition share, among those for which a condition is true."""
    return f"sum(if({condition}, 0, 1)) over {versions_of(KEYS)}"
