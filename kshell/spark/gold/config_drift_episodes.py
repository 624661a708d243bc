"""The table ``config_drift_episodes``: from when to when a config had another value than most clusters or brokers.

Times of several clusters are compared unchanged, whatever their clocks say. Within a cluster the order of offsets
counts: a record with a time before that of an earlier record is taken to have the earlier record's time.
"""

from __future__ import annotations

from kshell.spark.gold.timelines import config_comparison
from kshell.spark.gold.timelines.config_comparison import CONFIG_SQL, MEMBER_SQL, RESOURCE_SQL
from kshell.spark.tables.expectations import at_least, not_null
from kshell.spark.tables.gold_table import GoldTable
from kshell.tables.declaration import Field

FIELDS = (
    *config_comparison.FIELDS,
    Field("value", "string", "its value here; null: not set; [redacted] if it is secret (two of those are the same)"),
    Field("usualValue", "string", "the value that most had meanwhile, as in config_drift"),
    Field("fromMs", "int64", "since when both were so"),
    Field("toMs", "int64", "until when; null: they still are"),
    Field("durationMs", "int64", "how long; null: it still lasts"),
    Field(
        "outcome",
        "string",
        "changed (the value here), followed (another value is usual since), gone (the topic was"
        " deleted, the broker unregistered, of others nothing is set any more); null: it still lasts",
    ),
)

_VALID = ("validFromOffset", "validFromMs", "validToOffset", "validToMs")
_NEVER = (1 << 63) - 1
_OF_CONFIG = f"(PARTITION BY {MEMBER_SQL}, name ORDER BY offset)"
_OF_MEMBER = f"(PARTITION BY {MEMBER_SQL} ORDER BY offset)"
_OF_VALUE = f"(PARTITION BY {CONFIG_SQL}, value ORDER BY ms)"
_OVER_TIME = f"(PARTITION BY {CONFIG_SQL} ORDER BY time)"


def _ends(versions: str, key: str, started: str, ended: str) -> str:
    """SQL: a row (``offset``, ``ms``, columns ``started``) per begin of a version, and one (``ended``) per end."""
    begins = f"struct(validFromOffset AS offset, validFromMs AS ms, {started})"
    ends = f"struct(validToOffset AS offset, validToMs AS ms, {ended})"
    # Not a union: Spark would compute the versions twice.
    return f"SELECT * FROM (SELECT {key}, inline(array({begins}, {ends})) FROM {versions}) WHERE offset IS NOT NULL"


_SETTING = "struct(value) AS setting, false AS ends"
_NOTHING = "cast(NULL AS struct<value: string>)"
_SPANS = f"""configured AS ({config_comparison.values(*_VALID)}
),
steps AS (
  SELECT {MEMBER_SQL}, offset, max(ms) AS ms, sum(step) AS step
  FROM ({_ends(f"({config_comparison.lives(*_VALID)})", MEMBER_SQL, "1 AS step", "-1 AS step")})
  GROUP BY {MEMBER_SQL}, offset
),
comings AS (
  -- when members appear and disappear; versions without a gap between them count as one
  SELECT * FROM (
    SELECT *, lag(isThere) OVER {_OF_MEMBER} AS was
    FROM (SELECT *, sum(step) OVER {_OF_MEMBER} > 0 AS isThere FROM steps WHERE step <> 0)
  ) WHERE NOT (was <=> isThere)
),
points AS (
  SELECT {MEMBER_SQL}, name, offset, ms, isThere, {_NOTHING} AS setting, false AS ends
  FROM comings JOIN (SELECT DISTINCT {CONFIG_SQL} FROM configured) USING ({RESOURCE_SQL})
  UNION ALL
  SELECT {MEMBER_SQL}, name, offset, ms, cast(NULL AS boolean), setting, ends
  FROM ({_ends("configured", f"{MEMBER_SQL}, name", _SETTING, f"{_NOTHING} AS setting, true AS ends")})
),
states AS (
  SELECT {MEMBER_SQL}, name, offset, max(ms) OVER {_OF_CONFIG} AS ms,
    coalesce(last(isThere, true) OVER {_OF_CONFIG}, false) AS isThere,
    last(coalesce(setting, if(ends, named_struct('value', cast(NULL AS string)), NULL)), true) OVER {_OF_CONFIG}.value
      AS value
  FROM (
    SELECT {MEMBER_SQL}, name, offset, max(ms) AS ms, max(isThere) AS isThere, max(setting) AS setting,
      max(ends) AS ends
    FROM points
    GROUP BY {MEMBER_SQL}, name, offset
  )
),
changed AS (
  SELECT * FROM (
    SELECT *, lag(struct(isThere, value)) OVER {_OF_CONFIG} AS was
    FROM (SELECT *, lead(ms) OVER {_OF_CONFIG} AS nextMs FROM states)
    WHERE nextMs IS NULL OR nextMs > ms
  ) WHERE was IS NULL OR NOT (was <=> struct(isThere, value))
),
spans AS (
  -- the value of each config at each member from ms to before toMs (null: until now), and whether the member still
  -- exists after that; without what began and ended at the same time
  SELECT {MEMBER_SQL}, name, value, ms, toMs, isThereThen
  FROM (
    SELECT *, lead(ms) OVER {_OF_CONFIG} AS toMs, lead(isThere) OVER {_OF_CONFIG} AS isThereThen FROM changed
  )
  WHERE isThere
)"""
_USUAL = f"""value_steps AS (
  SELECT {CONFIG_SQL}, value, ms, sum(step) AS step
  FROM (
    SELECT {CONFIG_SQL}, value, inline(array(struct(ms, 1 AS step), struct(toMs AS ms, -1 AS step)))
    FROM spans
  )
  WHERE ms IS NOT NULL
  GROUP BY {CONFIG_SQL}, value, ms
),
counted AS (
  -- the times at which a value of a config changes are numbered
  SELECT *, sum(step) OVER {_OF_VALUE} AS count, dense_rank() OVER (PARTITION BY {CONFIG_SQL} ORDER BY ms) AS number
  FROM value_steps WHERE step <> 0
),
over_time AS (
  -- a value has a row for each number while any member has it, and one more, with count 0, when the last member loses
  -- it: so each number has a row that knows its time
  SELECT *, explode(sequence(number, untilNumber)) AS time
  FROM (
    SELECT *, if(
        count > 0, coalesce(lead(number) OVER {_OF_VALUE} - 1, max(number) OVER (PARTITION BY {CONFIG_SQL})), number
      ) AS untilNumber
    FROM counted
  )
),
most AS (
  SELECT {CONFIG_SQL}, time, max(if(time = number, ms, NULL)) AS ms,
    min_by(struct(value), struct(-count, value IS NULL, value)) FILTER (WHERE count > 0) AS usual
  FROM over_time
  GROUP BY {CONFIG_SQL}, time
),
usual_spans AS (
  -- the value that most members have, from usualMs to before untilMs (null: until now)
  SELECT {CONFIG_SQL}, usual, ms AS usualMs, lead(ms) OVER {_OVER_TIME} AS untilMs
  FROM (SELECT *, lag(usual) OVER {_OVER_TIME} AS was FROM most) WHERE NOT (was <=> usual)
)"""
_QUERY = f"""
WITH {_SPANS},
{_USUAL},
episodes AS (
  SELECT {MEMBER_SQL}, name, value, usual.value AS usualValue, greatest(ms, usualMs) AS fromMs,
    least(toMs, untilMs) AS toMs, toMs AS changesMs, isThereThen
  FROM spans JOIN usual_spans USING ({CONFIG_SQL})
  WHERE usual IS NOT NULL AND NOT (value <=> usual.value)
    AND ms < coalesce(untilMs, {_NEVER}) AND usualMs < coalesce(toMs, {_NEVER})
)
SELECT *, try_subtract(toMs, fromMs) AS durationMs,
  CASE WHEN toMs IS NULL THEN NULL WHEN toMs <=> changesMs THEN if(isThereThen, 'changed', 'gone')
    ELSE 'followed' END AS outcome
FROM episodes"""


GOLD = GoldTable(
    "config_drift_episodes",
    "from when to when a config was unlike in other clusters, or at other brokers, and how it ended",
    FIELDS,
    _QUERY,
    is_fleet=True,
    expect=(*not_null("fromMs"), *at_least(0, "durationMs")),
)
