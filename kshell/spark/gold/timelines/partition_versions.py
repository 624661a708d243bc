"""Partitions over time (:data:`SPANS`): each version with its span, the version before it and the one after it."""

from __future__ import annotations

from kshell.spark.gold.timelines.durations import timed, versions_of
from kshell.spark.tables.gold_table import DAY, Shared

KEYS = ("topicId", "partition")
FACTOR = "array_size(replicas) - array_size(addingReplicas)"
"""SQL: the replication factor: replicas that are being added do not count yet."""
SHRUNK = "array_size(array_except(previous.isr, isr)) > 0"
"""SQL: whether a broker that was in the ISR no longer is; null for a first version."""
IS_NEW_LEADER = "leader >= 0 AND lastLeader IS NOT NULL AND leader <> lastLeader"
"""SQL: whether the version began with a change of leader to another broker; time without a leader is ignored."""

_WINDOW = versions_of(KEYS)
_STATE = (
    "struct(leader, replicas, isr, elr, addingReplicas, removingReplicas, leaderRecoveryState, validFromOffset,"
    " validToOffset)"
)
_LISTS = ("replicas", "isr", "elr", "addingReplicas", "removingReplicas")
_VERSIONS = f"""(
    SELECT clusterId, topic, {", ".join(KEYS)}, leader, leaderRecoveryState, validFromOffset, validFromMs,
      validToOffset, validToMs, {", ".join(f"coalesce({name}, array()) AS {name}" for name in _LISTS)}
    FROM {{partitions}}
  )"""


def rows_before(window: str) -> str:
    """SQL: an ordered window, but only up to the row before the current one."""
    return f"{window[:-1]} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"


def episode(condition: str) -> str:
    """SQL: a number that consecutive versions of a partition share, among those for which a condition is true."""
    return f"sum(if({condition}, 0, 1)) OVER {_WINDOW}"


SPANS = Shared(
    "partition_spans",
    f"""
  SELECT * EXCEPT (before, after), if(before.validToOffset = validFromOffset, before, NULL) AS previous,
    if(after.validFromOffset = validToOffset, after, NULL) AS following
  FROM (
    SELECT *, lag({_STATE}) OVER {_WINDOW} AS before, lead({_STATE}) OVER {_WINDOW} AS after,
      last(if(leader >= 0, leader, NULL), true) OVER {rows_before(_WINDOW)} AS lastLeader
    FROM ({timed(_VERSIONS, KEYS)})
  )""",
    DAY,
)
"""The versions of partitions with spans (:mod:`.durations`); ``previous`` and ``following``, the version that each
replaced and the one that replaced it (structs; null if there is none, or a gap between them); and ``lastLeader``, the
last broker that led the partition before. Computed once per step for all gold tables that share them."""
