"""How long versions lasted, and how that time is divided among days and months.

Rows with ``beginMs`` and ``endMs`` (milliseconds since 1970, the end exclusive, never before the begin) are said to
have *spans*.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
LAST_MS = 253_402_300_799_999
"""The last millisecond of the year 9999, in milliseconds since 1970: no later time has a date here."""


def day(number: str) -> str:
    """SQL: ``2026-01-31`` of a day's number since 1970."""
    return f"cast(date_add(date'1970-01-01', cast({number} AS int)) AS string)"


def hour(number: str) -> str:
    """SQL: ``2026-01-31T13`` of an hour's number since 1970."""
    return f"concat({day(f'({number}) div 24')}, 'T', lpad(cast(({number}) % 24 AS string), 2, '0'))"


def day_of(ms: str) -> str:
    """SQL: the day of a time; times before 1970 and after 9999 count as the first and the last."""
    return day(f"{within(ms)} div {DAY_MS}")


def within(ms: str) -> str:
    """SQL: a time, limited to the years 1970 to 9999."""
    return f"greatest(0L, least({ms}, {LAST_MS}L))"


LAST = f"""SELECT clusterId, least({within("lastTimestampMs")}, tomorrowMs) AS lastMs, sinceMs FROM {{clusters}}"""
"""SQL: ``lastMs``, the time up to which a cluster's current versions are known to be valid, and its ``sinceMs``.

That is the time of the cluster's last record, but no later than ``tomorrowMs``. Without this limit, one record of a
clock that is decades ahead would give each broker and topic a row for every day of these decades.
"""


def end_of_day(text: str) -> str:
    """SQL: the last millisecond of a day (``2026-01-31``)."""
    return f"(unix_date(cast({text} AS date)) + 1L) * {DAY_MS} - 1"


def end_of_month(text: str) -> str:
    """SQL: the last millisecond of a month (``2026-01``)."""
    return f"(unix_date(last_day(cast(concat({text}, '-01') AS date))) + 1L) * {DAY_MS} - 1"


def by_keys(keys: Sequence[str]) -> str:
    """SQL: a key's columns in the order to sort by: ``clusterId``, which all rows may share, comes last.

    Spark's sort compares the first eight bytes of the first column without loading rows. If all rows have the same
    bytes there, it must load two rows for every comparison.
    """
    return ", ".join(sorted(keys, key=lambda key: key == "clusterId"))


def every_of(keys: Sequence[str]) -> str:
    """SQL: the window over all versions of one key, without an order."""
    return f"(PARTITION BY {by_keys(('clusterId', *keys))})"


def versions_of(keys: Sequence[str]) -> str:
    """SQL: the window over the versions of one key, from the first one up to that of the row."""
    return f"{every_of(keys)[:-1]} ORDER BY validFromOffset)"


def timed(versions: str, keys: Sequence[str]) -> str:
    """SQL: versions with spans, by the rules of :mod:`kshell.spark.gold` (times that run backwards, versions without
    end). Reads ``{clusters}``, too.

    Adds ``beginMs`` and ``endMs`` (equal if neither the first record of the version nor one before it of its key has a
    time above 0), ``latestMsAtBegin`` (the latest time of the key's records up to its begin), ``overMs`` (the same up
    to its end; null while it is current), and ``sinceMs`` as in ``clusters``.
    """
    return f"""
  SELECT * EXCEPT (lastMs, begunMs), if(begunMs > 0, begunMs, endMs) AS beginMs
  FROM (
    SELECT *, greatest(begunMs, least(coalesce(validToMs, lastMs), lastMs)) AS endMs
    FROM (
      SELECT *, greatest(0L, least(latestMsAtBegin, lastMs)) AS begunMs,
        if(validToMs IS NULL, NULL, greatest(latestMsAtBegin, validToMs)) AS overMs
      FROM (
        SELECT *, max(validFromMs) OVER {versions_of(keys)} AS latestMsAtBegin
        FROM {versions} JOIN ({LAST}) USING (clusterId)
      )
    )
  )"""


def clipped(spans: str) -> str:
    """SQL: spans without what lies before ``sinceMs`` (rows of earlier days and months are final), and without those
    that have no length.
    """
    return f"""
  SELECT * EXCEPT (beginMs), greatest(beginMs, sinceMs) AS beginMs
  FROM {spans} WHERE greatest(beginMs, sinceMs) < endMs"""


def by_day(spans: str, keys: Sequence[str], measures: Mapping[str, str]) -> str:
    """SQL: the milliseconds of spans, summed up for each measure, per key and ``dayNumber`` (days since 1970).

    A span becomes at most three rows: its part of the first day, its part of the last, and a step with which the whole
    days between begin. A running sum of steps counts those, so that the cost does not grow with the span's length.
    ``measures``: result column -> SQL expression of 0 or 1, whether a span counts for it.
    """
    first, last = f"beginMs div {DAY_MS}", f"(endMs - 1) div {DAY_MS}"
    window = f"(PARTITION BY {by_keys(keys)} ORDER BY dayNumber)"

    def each(text: str, between: str = ", ") -> str:
        return between.join(text.format(name) for name in measures)

    return f"""
  SELECT {", ".join(keys)}, dayNumber, {each(f"if(dayNumber = ownDay, {{0}}Own, 0) + {{0}}Full * {DAY_MS} AS {{0}}")}
  FROM (
    SELECT *, explode(sequence(
      ownDay, if({each("{0}Full", " + ")} > 0, coalesce(nextDay - 1, ownDay), ownDay))) AS dayNumber
    FROM (
      SELECT {", ".join(keys)}, dayNumber AS ownDay, lead(dayNumber) OVER {window} AS nextDay,
        {each(f"{{0}}Own, sum({{0}}Step) OVER {window} AS {{0}}Full")}
      FROM (
        SELECT {", ".join(keys)}, dayNumber, {each("sum(ms * {0}) AS {0}Own, sum(step * {0}) AS {0}Step")}
        FROM (
          SELECT {", ".join(keys)},
            {", ".join(f"cast({weight} AS bigint) AS {name}" for name, weight in measures.items())},
            inline({_pieces(first, last)})
          FROM ({clipped(spans)})
        )
        GROUP BY {by_keys((*keys, "dayNumber"))}
      )
    )
  )"""


def _pieces(first: str, last: str) -> str:
    """SQL: a span as an array of (dayNumber, ms, step): step 1 where whole days begin, -1 on the day after the last."""

    def piece(number: str, ms: str, step: str) -> str:
        return f"named_struct('dayNumber', {number}, 'ms', {ms}, 'step', {step})"

    opening = piece(first, f"least(endMs, ({first} + 1) * {DAY_MS}) - beginMs", "0")
    closing = piece(last, f"endMs - ({last}) * {DAY_MS}", f"if({last} > {first} + 1, -1, 0)")
    whole_days = piece(f"{first} + 1", "0L", "1")
    return (
        f"CASE WHEN {last} = {first} THEN array({opening}) WHEN {last} = {first} + 1 THEN array({opening}, {closing})"
        f" ELSE array({opening}, {closing}, {whole_days}) END"
    )


def split_by_month(spans: str) -> str:
    """SQL: spans, cut where months begin, with ``month`` (``2026-01``). Spans without length are left out."""
    number = "cast(year({0}) * 12 + month({0}) - 1 AS int)"
    first = number.format(f"date_add(date'1970-01-01', cast(beginMs div {DAY_MS} AS int))")
    last = number.format(f"date_add(date'1970-01-01', cast((endMs - 1) div {DAY_MS} AS int))")
    first_day = "make_date(cast(monthNumber div 12 AS int), cast(monthNumber % 12 + 1 AS int), 1)"
    # Not the begin of the next month: there is none after December 9999.
    next_begin = f"(unix_date(last_day({first_day})) + 1) * {DAY_MS}L"
    return f"""
  SELECT * EXCEPT (beginMs, endMs, monthNumber), greatest(beginMs, unix_date({first_day}) * {DAY_MS}L) AS beginMs,
    least(endMs, {next_begin}) AS endMs, date_format({first_day}, 'yyyy-MM') AS month
  FROM (SELECT *, explode(sequence({first}, {last})) AS monthNumber FROM {spans} WHERE beginMs < endMs)"""


def _begins(table: str) -> str:
    return f"SELECT clusterId, validFromMs FROM {{{table}}} WHERE validFromMs > 0"


COVERED = f"""
  SELECT clusterId, coveredFromMs, greatest(coveredFromMs, lastMs) AS coveredToMs
  FROM (
    SELECT clusterId, {within("min(validFromMs)")} AS coveredFromMs
    FROM ({_begins("topics")} UNION ALL {_begins("brokers")})
    GROUP BY clusterId
  ) JOIN ({LAST}) USING (clusterId)"""
"""SQL: one row per cluster with the time that is known of it: from the earliest begin of a version of a topic or broker
(``coveredFromMs``) to its last record (``coveredToMs``). Clusters without such versions are left out."""
