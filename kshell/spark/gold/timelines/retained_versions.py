"""Which ended versions of partitions a step retains (``partitions_carried``), so that the next need not read them all.

For rows that are not final, gold tables need the late versions (:func:`is_late`) and some that ended before.
"""

from __future__ import annotations

from kshell.spark.gold.timelines.durations import every_of
from kshell.spark.gold.timelines.partition_versions import KEYS


def _size(name: str) -> str:
    return f"coalesce(array_size({name}), 0)"


_IS_CALM = (
    f"leader >= 0 AND leaderRecoveryState = 'RECOVERED' AND {_size('isr')} >= {_size('replicas')}"
    f" AND {_size('addingReplicas')} = 0 AND {_size('removingReplicas')} = 0"
)
"""SQL: whether a version has a leader, all replicas in sync, and no reassignment or recovery: no episode goes on."""


def is_late(begin: str) -> str:
    """SQL: whether a version is current, or began or ended with a record at a time ``begin`` (milliseconds) or later.

    A version that a record without a time (0 or less) ended is late, too: how long it lasted depends on earlier ones.
    """
    return f"(validToMs IS NULL OR validToMs <= 0 OR validToMs >= {begin} OR validFromMs >= {begin})"


_EVERY = every_of(KEYS)
_BEFORE = "isCalm AND validFromMs < settledMs AND validFromOffset <= firstOffset"
RETAINED = f"""
  SELECT * EXCEPT (settledMs, isOver, isCalm, firstOffset, calm, latest)
  FROM (
    SELECT *, max(if(validFromOffset < calm.offset, struct(validFromMs AS ms, validFromOffset AS offset), NULL))
      OVER {_EVERY} AS latest
    FROM (
      SELECT *, max(if({_BEFORE}, struct(validFromOffset AS offset, validFromMs AS ms), NULL)) OVER {_EVERY} AS calm
      FROM (
        SELECT *, min(if(isOver, NULL, validFromOffset)) OVER {_EVERY} AS firstOffset
        FROM (
          SELECT *, NOT coalesce({is_late("settledMs")}, false) AS isOver, coalesce({_IS_CALM}, false) AS isCalm
          FROM {{partitions}}
        )
      )
      WHERE firstOffset IS NOT NULL
    )
  )
  WHERE isOver AND (calm IS NULL OR validFromOffset >= calm.offset
    OR (latest.ms > calm.ms AND validFromOffset = latest.offset))"""
"""SQL: the ended versions that gold tables need besides those that are late by the column ``settledMs`` (milliseconds)
of ``{partitions}``.

These are the versions of a partition from its last calm one on (all if there is none) and, if clocks ran backwards, the
one before that has the latest time. All that is left out is earlier than what is returned, except for that one version.
A partition without late versions was deleted; nothing of it is returned, as its topic id is never used again.
"""
