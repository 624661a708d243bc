"""The table ``anomalies``: hours with unusually many or few changes, compared with the same hour of other weeks."""

from __future__ import annotations

from kshell.spark.gold.hourly_churn import EVENTS
from kshell.spark.gold.timelines.durations import COVERED, HOUR_MS, hour
from kshell.spark.tables.expectations import at_least, key
from kshell.spark.tables.gold_table import CLUSTER, GoldTable
from kshell.tables.declaration import Field

FIELDS = (
    CLUSTER,
    Field("measure", "string", "leaderChanges, isrShrinks, fencings: that column of hourly_churn"),
    Field("hour", "string", "the hour, in UTC: 2026-01-31T13"),
    Field("hourMs", "int64", "its begin"),
    Field("value", "int64", "how many there were in that hour, in the whole cluster"),
    Field(
        "weeks",
        "int32",
        "hours that it is compared with: the same hour of the same weekday in all other weeks that"
        " are covered as a whole, from the cluster's first version of a topic or broker to its last record. Only"
        " where there are three or more",
    ),
    Field("median", "float64", "the median of their values"),
    Field("mad", "float64", "the median of their distances from that median"),
    Field(
        "score",
        "float64",
        "(value - median) / the larger one of 1.4826 mad and 1. Only scores of 3.5 and more, or"
        " -3.5 and less, have a row",
    ),
)

_WEEK_HOURS = 168
_FEWEST = 3
"""The fewest other weeks to compare an hour with: fewer do not show what is usual."""
_LEAST_SCORE = 3.5
_TO_DEVIATION = 1.4826
"""The MAD of a normal distribution times this is its standard deviation."""


def _median(values: str) -> str:
    """SQL: the median of a sorted array of numbers."""
    size = f"array_size({values})"
    return f"(get({values}, ({size} - 1) div 2) + get({values}, {size} div 2)) / 2D"


_BEGIN = f"firstHour + pmod(slot - firstHour, {_WEEK_HOURS})"
_QUERY = f"""
WITH slots AS (
  SELECT clusterId, measure, slot, map_from_entries(collect_list(struct(hourNumber, value))) AS counted
  FROM (
    SELECT *, hourNumber % {_WEEK_HOURS} AS slot
    FROM (
      SELECT clusterId, hourMs div {HOUR_MS} AS hourNumber,
        stack({len(EVENTS)}, {", ".join(f"'{name}', {name}" for name in EVENTS)}) AS (measure, value)
      FROM {{hourly_churn}}
    )
    WHERE value > 0
  )
  GROUP BY measure, slot, clusterId
),
spans AS (
  -- without the first and the last hour of a log if only a part of them is known
  SELECT clusterId, (coveredFromMs + {HOUR_MS - 1}) div {HOUR_MS} AS firstHour,
    coveredToMs div {HOUR_MS} - 1 AS lastHour
  FROM ({COVERED})
),
weeks AS (
  SELECT clusterId, measure, transform(
      sequence({_BEGIN}, lastHour, {_WEEK_HOURS}L),
      one -> struct(one AS hourNumber, coalesce(try_element_at(counted, one), 0L) AS value)) AS series
  FROM slots JOIN spans USING (clusterId) WHERE {_BEGIN} + {_FEWEST * _WEEK_HOURS} <= lastHour
),
uneven AS (
  -- without a large difference no score can reach the limit: this saves the medians of most hours of quiet clusters
  SELECT *, posexplode(series) AS (place, one)
  FROM weeks WHERE array_max(series.value) - array_min(series.value) >= {_LEAST_SCORE}
),
compared AS (
  SELECT clusterId, measure, one.hourNumber AS hourNumber, one.value AS value,
    sort_array(transform(filter(series, (other, at) -> at <> place), other -> other.value)) AS others
  FROM uneven
),
distances AS (
  SELECT *, sort_array(transform(others, other -> abs(other - median))) AS distances
  FROM (SELECT *, {_median("others")} AS median FROM compared)
),
scored AS (
  SELECT *, (value - median) / greatest({_TO_DEVIATION}D * mad, 1D) AS score
  FROM (SELECT *, {_median("distances")} AS mad FROM distances)
)
SELECT *, array_size(others) AS weeks, hourNumber * {HOUR_MS} AS hourMs, {hour("hourNumber")} AS hour
FROM scored WHERE abs(score) >= {_LEAST_SCORE}"""


GOLD = GoldTable(
    "anomalies",
    "hours in which churn was unlike the same hour of other weeks (median and MAD)",
    FIELDS,
    _QUERY,
    expect=(*key("clusterId", "measure", "hour"), *at_least(0, "value", "weeks", "mad")),
)
