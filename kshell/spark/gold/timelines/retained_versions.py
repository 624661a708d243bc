"""What later days need of versions of partitions that were over before."""

from __future__ import annotations

from typing import Any

from kshell.spark.gold.timelines.durations import every_of
from kshell.spark.gold.timelines.partition_versions import KEYS


def _size(name: str) -> str:
    return f"coalesce(array_size({name}), 0)"


_IS_CALM = (
    f"leader >= 0 and leaderRecoveryState = 'RECOVERED' and {_size('isr')} >= {_size('replicas')}"
    f" and {_size('addingReplicas')} = 0 and {_size('removingReplicas')} = 0"
)
"""SQL: whether nothing that tables tell of goes on over such a version: no episode has begun and not ended."""


def is_late(begin: str) -> str:
    """SQL: whether a version holds, or a record of a time or later (``begin``: milliseconds) began or ended it; and
    whether what ended it had no time (none at all, 0 or less): how long it was takes what is before it to tell.
    """
    return f"(validToMs is null or validToMs <= 0 or validToMs >= {begin} or validFromMs >= {begin})"


def retained_versions(partitions: Any, until: Any) -> Any:
    """Of ``partitions``, the versions that are not late by a time (``until``, a column: milliseconds), and without
    which those that are would not tell the same: from the last calm one on, and the one among those before that has
    the latest time, if clocks ran backwards.

    What this leaves out of a partition comes before all that stays, but for that one version. A partition of which
    nothing is late is gone, and its topic's id does not come again.
    """
    every = every_of(KEYS)
    over = f"not coalesce({is_late('settledMs')}, false) as isOver"
    marked = partitions.withColumn("settledMs", until).selectExpr("*", over, f"coalesce({_IS_CALM}, false) as isCalm")
    first = marked.selectExpr("*", f"min(if(isOver, null, validFromOffset)) over {every} as firstOffset")
    is_before = "isCalm and validFromMs < settledMs and validFromOffset <= firstOffset"
    calm = f"max(if({is_before}, struct(validFromOffset as offset, validFromMs as ms), null)) over {every} as calm"
    since = first.where("firstOffset is not null").selectExpr("*", calm)
    latest = "max(if(validFromOffset < calm.offset, struct(validFromMs as ms, validFromOffset as offset), null))"
    with_latest = since.selectExpr("*", f"{latest} over {every} as latest")
    is_latest = "latest.ms > calm.ms and validFromOffset = latest.offset"
    retained = with_latest.where(f"isOver and (calm is null or validFromOffset >= calm.offset or {is_latest})")
    return retained.select(*partitions.columns)
