"""How long versions lasted, and how that time is divided among days and months.

A frame with ``beginMs`` and ``endMs`` (milliseconds since 1970, the end exclusive, never before the begin) is said to
have *spans*.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kshell.spark.gold.timelines.aggregates import by_keys, grouped

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
LAST_MS = 253_402_300_799_999
"""The last millisecond of the year 9999, in milliseconds since 1970: no later time has a date here."""
TOMORROW = f"unix_millis(current_timestamp()) + {DAY_MS}L"
"""SQL: a day from now, by Spark's clock."""


def day(number: str) -> str:
    """SQL: ``2026-01-31`` of a day's number since 1970."""
    return f"cast(date_add(date'1970-01-01', cast({number} as int)) as string)"


def hour(number: str) -> str:
    """SQL: ``2026-01-31T13`` of an hour's number since 1970."""
    return f"concat({day(f'({number}) div 24')}, 'T', lpad(cast(({number}) % 24 as string), 2, '0'))"


def day_of(ms: str) -> str:
    """SQL: the day of a time; times before 1970 and after 9999 count as the first and the last."""
    return day(f"{within(ms)} div {DAY_MS}")


def within(ms: str) -> str:
    """SQL: a time, limited to the years 1970 to 9999."""
    return f"greatest(0L, least({ms}, {LAST_MS}L))"


def last_of(clusters: DataFrame, *more: str) -> DataFrame:
    """Return ``clusterId`` and ``lastMs``, the time up to which current versions are known to be valid.

    That is the time of the cluster's last record, but no later than a day from now (the column ``tomorrowMs`` if
    ``clusters`` has it, else by Spark's clock). Without this limit, one record of a clock that is decades ahead would
    give each broker and topic a row for every day of these decades. ``more``: further columns of ``clusters``.
    """
    tomorrow = "tomorrowMs" if "tomorrowMs" in clusters.columns else TOMORROW
    return clusters.selectExpr("clusterId", f"least({within('lastTimestampMs')}, {tomorrow}) as lastMs", *more)


def end_of_day(text: str) -> str:
    """SQL: the last millisecond of a day (``2026-01-31``)."""
    return f"(unix_date(cast({text} as date)) + 1L) * {DAY_MS} - 1"


def end_of_month(text: str) -> str:
    """SQL: the last millisecond of a month (``2026-01``)."""
    return f"(unix_date(last_day(cast(concat({text}, '-01') as date))) + 1L) * {DAY_MS} - 1"


def every_of(keys: Sequence[str]) -> str:
    """SQL: the window over all versions of one key, without an order."""
    return f"(partition by {', '.join(by_keys(('clusterId', *keys)))})"


def versions_of(keys: Sequence[str]) -> str:
    """SQL: the window over the versions of one key, from the first one up to that of the row."""
    return f"{every_of(keys)[:-1]} order by validFromOffset)"


def timed(versions: DataFrame, keys: Sequence[str], clusters: DataFrame) -> DataFrame:
    """Add spans to versions, by the rules of :mod:`kshell.spark.gold` (times that run backwards, versions without end).

    Returns:
        The versions with ``beginMs`` and ``endMs`` (equal if neither the first record of the version nor one before it
        of its key has a time above 0), ``latestMsAtBegin`` (the latest time of the key's records up to its begin),
        ``overMs`` (the same up to its end; null while it is current), and ``sinceMs`` as in ``clusters``, else 0.
    """
    since = "sinceMs" if "sinceMs" in clusters.columns else "0L as sinceMs"
    last = last_of(clusters, since)
    with_latest = versions.join(last, ["clusterId"]).selectExpr(
        "*", f"max(validFromMs) over {versions_of(keys)} as latestMsAtBegin"
    )
    with_begin = with_latest.selectExpr(
        "*",
        "greatest(0L, least(latestMsAtBegin, lastMs)) as begunMs",
        "if(validToMs is null, null, greatest(latestMsAtBegin, validToMs)) as overMs",
    )
    ended = with_begin.selectExpr("*", "greatest(begunMs, least(coalesce(validToMs, lastMs), lastMs)) as endMs")
    return ended.selectExpr("*", "if(begunMs > 0, begunMs, endMs) as beginMs").drop("lastMs", "begunMs")


def clipped(spans: DataFrame) -> DataFrame:
    """Cut off what lies before ``sinceMs`` (rows of earlier days and months are final); drop spans without length."""
    renamed = spans.withColumnRenamed("beginMs", "ownBeginMs")
    return (
        renamed.selectExpr("*", "greatest(ownBeginMs, sinceMs) as beginMs").drop("ownBeginMs").where("beginMs < endMs")
    )


def by_day(spans: DataFrame, keys: Sequence[str], measures: Mapping[str, str]) -> DataFrame:
    """Sum up the milliseconds of spans for each measure, per key and ``dayNumber`` (days since 1970).

    A span becomes at most three rows: its part of the first day, its part of the last, and a step with which the whole
    days between begin. A running sum of steps counts those, so that the cost does not grow with the span's length.
    ``measures``: result column -> SQL expression of 0 or 1, whether a span counts for it.
    """
    first, last = f"beginMs div {DAY_MS}", f"(endMs - 1) div {DAY_MS}"
    measured = clipped(spans).selectExpr(
        *keys,
        *(f"cast({weight} as bigint) as {name}" for name, weight in measures.items()),
        f"inline({_pieces(first, last)})",
    )
    sums = {f"{name}Ms": f"sum(ms * {name})" for name in measures}
    steps = {f"{name}Step": f"sum(step * {name})" for name in measures}
    days = grouped(measured, [*keys, "dayNumber"], **sums, **steps)
    window = f"(partition by {', '.join(by_keys(keys))} order by dayNumber)"
    running = days.selectExpr(
        *keys,
        "dayNumber as ownDay",
        f"lead(dayNumber) over {window} as nextDay",
        *(f"{name}Ms" for name in measures),
        *(f"sum({name}Step) over {window} as {name}Full" for name in measures),
    )
    covered = " + ".join(f"{name}Full" for name in measures)
    each = running.selectExpr(
        "*", f"explode(sequence(ownDay, if({covered} > 0, coalesce(nextDay - 1, ownDay), ownDay))) as dayNumber"
    )
    return each.selectExpr(
        *keys,
        "dayNumber",
        *(f"if(dayNumber = ownDay, {name}Ms, 0) + {name}Full * {DAY_MS} as {name}" for name in measures),
    )


def _pieces(first: str, last: str) -> str:
    """SQL: a span as an array of (dayNumber, ms, step): step 1 where whole days begin, -1 on the day after the last."""

    def piece(number: str, ms: str, step: str) -> str:
        return f"named_struct('dayNumber', {number}, 'ms', {ms}, 'step', {step})"

    opening = piece(first, f"least(endMs, ({first} + 1) * {DAY_MS}) - beginMs", "0")
    closing = piece(last, f"endMs - ({last}) * {DAY_MS}", f"if({last} > {first} + 1, -1, 0)")
    whole_days = piece(f"{first} + 1", "0L", "1")
    return (
        f"case when {last} = {first} then array({opening}) when {last} = {first} + 1 then array({opening}, {closing})"
        f" else array({opening}, {closing}, {whole_days}) end"
    )


def split_by_month(spans: DataFrame) -> DataFrame:
    """Cut spans where months begin, and add ``month`` (``2026-01``). Spans without length are dropped."""
    number = "cast(year({0}) * 12 + month({0}) - 1 as int)"
    first = number.format(f"date_add(date'1970-01-01', cast(beginMs div {DAY_MS} as int))")
    last = number.format(f"date_add(date'1970-01-01', cast((endMs - 1) div {DAY_MS} as int))")
    months = spans.where("beginMs < endMs").selectExpr("*", f"explode(sequence({first}, {last})) as monthNumber")
    begin = "unix_date(make_date(cast({0} div 12 as int), cast({0} % 12 + 1 as int), 1)) * {1}L"
    cut = months.withColumnsRenamed({"beginMs": "wholeBeginMs", "endMs": "wholeEndMs"}).selectExpr(
        "*",
        f"greatest(wholeBeginMs, {begin.format('monthNumber', DAY_MS)}) as beginMs",
        # Not the begin of the next month: there is none after December 9999.
        f"least(wholeEndMs, (unix_date(last_day(make_date(cast(monthNumber div 12 as int), cast(monthNumber % 12 + 1 as"
        f" int), 1))) + 1) * {DAY_MS}L) as endMs",
        "date_format(make_date(cast(monthNumber div 12 as int), cast(monthNumber % 12 + 1 as int), 1), 'yyyy-MM')"
        " as month",
    )
    return cut.drop("wholeBeginMs", "wholeEndMs", "monthNumber")


def covered(clusters: DataFrame, *versions: DataFrame) -> DataFrame:
    """Return one row per cluster with the time that is known of it: from the earliest begin of a version of those
    tables (``coveredFromMs``) to its last record (``coveredToMs``). Clusters without such versions are left out.
    """
    starts: Any = None
    for table in versions:
        times = table.where("validFromMs > 0").select("clusterId", "validFromMs")
        starts = times if starts is None else starts.unionByName(times)
    first = grouped(starts, ["clusterId"], coveredFromMs=within("min(validFromMs)"))
    return first.join(last_of(clusters), ["clusterId"]).selectExpr(
        "clusterId", "coveredFromMs", "greatest(coveredFromMs, lastMs) as coveredToMs"
    )
