"""Decide which rows of gold tables are final after a step: no later record can change them. Free of Spark."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from kshell.spark.gold.timelines.durations import DAY_MS, HOUR_MS, LAST_MS
from kshell.spark.steps.cluster_changes import ClusterChange, TimeRange
from kshell.spark.tables.gold_table import MONTH

_SLACK_MS = HOUR_MS
"""How much earlier than the latest record a new record's time may be: the clocks of controllers differ."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Horizon(NamedTuple):
    """Up to when a cluster's rows are final, before and after a step: starts of UTC days, in ms since 1970."""

    since: int | None
    """Rows with an earlier ``untilMs`` were final before the step; ``None``: all rows are computed from scratch."""
    until: int
    """Rows with an earlier ``untilMs`` are final after the step."""


def tomorrow_ms() -> int:
    """Return the time a day from now, in milliseconds: no row is final beyond it, whatever controllers' clocks say."""
    return time.time_ns() // 1_000_000 + DAY_MS


def horizon(change: ClusterChange, new: TimeRange | None, tomorrow: int) -> Horizon:
    """Decide which rows of a cluster are final. ``new``: the times of its new records; ``None``: it has none.

    All rows are computed from scratch if a snapshot replaces a part of the log, or if a new record has a time within
    the days that were final, or one after the year 9999.
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
    """Return when a day begins or, if ``period`` is ``MONTH``, when its month begins; in milliseconds since 1970."""
    if period != MONTH:
        return day
    at = _EPOCH + timedelta(milliseconds=day)
    return (at.replace(day=1) - _EPOCH) // timedelta(milliseconds=1)


def together(horizons: Mapping[str, Horizon], period: str) -> dict[int, list[str]]:
    """Group the clusters that are not computed from scratch by the start of the day or month of ``Horizon.since``."""
    by_begin: dict[int, list[str]] = {}
    for name, span in horizons.items():
        if span.since is not None:
            by_begin.setdefault(begin_of(period, span.since), []).append(name)
    return by_begin
