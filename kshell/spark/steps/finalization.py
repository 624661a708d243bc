"""Rows of gold that nothing changes any more, and which those are after a step. Free of Spark."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from kshell.spark.gold.timelines.durations import DAY_MS, HOUR_MS, LAST_MS
from kshell.spark.steps.cluster_changes import ClusterChange, TimeRange
from kshell.spark.tables.gold_table import MONTH

_SLACK_MS = HOUR_MS
"""Clocks of controllers differ: records may come with times that are earlier by so much, and rows stay final."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Horizon(NamedTuple):
    """Of a cluster, in milliseconds, each the begin of a day."""

    since: int | None
    """Rows that were final before that are there, and are right; ``None``: all rows are to be recomputed."""
    until: int
    """Rows that are final before that become so with this step."""


def tomorrow_ms() -> int:
    """A day from now: nothing is known to hold longer than that, whatever clocks of controllers say."""
    return time.time_ns() // 1_000_000 + DAY_MS


def horizon(change: ClusterChange, new: TimeRange | None, tomorrow: int) -> Horizon:
    """What of a cluster is final. ``new``: of the records that come in; ``None``: there are none.

    Nothing that was stays so, where a snapshot takes the place of a part of the log, or where a record has an earlier
    time, or one that calendars do not have: all rows are to be recomputed then.
    """
    last = min(max(change.log.cluster["lastTimestampMs"] or 0, 0), tomorrow)
    until = max(0, last - _SLACK_MS) // DAY_MS * DAY_MS
    since = None if change.before is None else change.before.settled_ms
    if since is None or last < since or any(replay_range.base is not None for replay_range in change.log.ranges):
        return Horizon(None, until)
    if new is not None and (new.earliest < since or new.latest > LAST_MS):
        return Horizon(None, until)
    return Horizon(since, max(since, until))


def begin_of(period: str, day: int) -> int:
    """When the day, or its month, begins; in milliseconds."""
    if period != MONTH:
        return day
    at = _EPOCH + timedelta(milliseconds=day)
    return (at.replace(day=1) - _EPOCH) // timedelta(milliseconds=1)


def together(horizons: Mapping[str, Horizon], period: str) -> dict[int, list[str]]:
    """The clusters that go on, by the begin of the day or month since when."""
    by_begin: dict[int, list[str]] = {}
    for name, span in horizons.items():
        if span.since is not None:
            by_begin.setdefault(begin_of(period, span.since), []).append(name)
    return by_begin
