"""Which ended versions of partitions a step retains (``partitions_carried``), so that the next need not read them all.

For rows that are not final, gold tables need the late versions (:func:`is_late`) and some that ended before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshell.spark.gold.timelines.durations import every_of
from kshell.spark.gold.timelines.partition_versions import KEYS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def _size(name: str) -> str:
    return f"coalesce(array_size({name}), 0)"


_IS_STABLE = (
    f"leader >= 0 and leaderRecoveryState = 'RECOVERED' and {_size('isr')} >= {_size('replicas')}"
    f" and {_size('addingReplicas')} = 0 and {_size('removingReplicas')} = 0"
)
"""SQL: whether a version has a leader, all replicas in sync, and no reassignment or recovery: no episode goes on."""


def is_late(begin: str) -> str:
    """SQL: whether a version is current, or began or ended with a record at a time ``begin`` (milliseconds) or later.

    A version that a record without a time (0 or less) ended is late, too: how long it lasted depends on earlier ones.
    """
    return f"(validToMs is null or validToMs <= 0 or validToMs >= {begin} or validFromMs >= {begin})"


def retained_versions(partitions: DataFrame, until: Column) -> DataFrame:
    """Return the ended versions that gold tables need besides those that are late by ``until`` (Column, milliseconds).

    These are the versions of a partition from its last calm one on (:data:`_IS_STABLE`; all if there is none) and, if
    clocks ran backwards, the one before that has the latest time. All that is left out is earlier than what is
    returned, except for that one version. A partition without late versions was deleted; nothing of it is returned,
    as its topic id is never used again.
    """
    every = every_of(KEYS)
    over = f"not coalesce({is_late('settledMs')}, false) as isOver"
    marked = partitions.withColumn("settledMs", until).selectExpr("*", over, f"coalesce({_IS_STABLE}, false) as isCalm")
    first = marked.selectExpr("*", f"min(if(isOver, null, validFromOffset)) over {every} as firstOffset")
    is_before = "isCalm and validFromMs < settledMs and validFromOffset <= firstOffset"
    calm = f"max(if({is_before}, struct(validFromOffset as offset, validFromMs as ms), null)) over {every} as calm"
    since = first.where("firstOffset is not null").selectExpr("*", calm)
    latest = "max(if(validFromOffset < calm.offset, struct(validFromMs as ms, validFromOffset as offset), null))"
    with_latest = since.selectExpr("*", f"{latest} over {every} as latest")
    is_latest = "latest.ms > calm.ms and validFromOffset = latest.offset"
    retained = with_latest.where(f"isOver and (calm is null or validFromOffset >= calm.offset or {is_latest})")
    return retained.select(*partitions.columns)
