"""The table ``anomalies``: hours with unusually many or few changes, compared with the same hour of other weeks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshell.spark.gold.hourly_churn import EVENTS
from kshell.spark.gold.timelines import aggregates
from kshell.spark.gold.timelines.durations import HOUR_MS, covered, hour
from kshell.spark.tables.expectations import at_least, key
from kshell.spark.tables.gold_table import CLUSTER, GoldTable, Tables
from kshell.tables.declaration import Field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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


def anomalies(tables: Tables) -> DataFrame:
    """Find the hours whose number of changes is an outlier among the same hour of other weeks."""
    names = ", ".join(f"'{name}', {name}" for name in EVENTS)
    hours = tables["hourly_churn"].selectExpr(
        "clusterId", f"hourMs div {HOUR_MS} as hourNumber", f"stack({len(EVENTS)}, {names}) as (measure, value)"
    )
    slots = aggregates.grouped(
        hours.where("value > 0").selectExpr("*", f"hourNumber % {_WEEK_HOURS} as slot"),
        ["clusterId", "measure", "slot"],
        counted="map_from_entries(collect_list(struct(hourNumber, value)))",
    )
    # Leave out the first and the last hour of a log if only a part of them is known.
    first, last = f"(coveredFromMs + {HOUR_MS - 1}) div {HOUR_MS}", f"coveredToMs div {HOUR_MS} - 1"
    span = covered(tables["clusters"], tables["topics"], tables["brokers"]).selectExpr(
        "clusterId", f"{first} as firstHour", f"{last} as lastHour"
    )
    begin = f"firstHour + pmod(slot - firstHour, {_WEEK_HOURS})"
    weeks = slots.join(span, ["clusterId"]).where(f"{begin} + {_FEWEST * _WEEK_HOURS} <= lastHour")
    series = weeks.selectExpr(
        "clusterId",
        "measure",
        f"transform(sequence({begin}, lastHour, {_WEEK_HOURS}L), one -> struct(one as hourNumber,"
        " coalesce(try_element_at(counted, one), 0L) as value)) as series",
    )
    # Without a large difference no score can reach the limit: this saves the medians of most hours of quiet clusters.
    uneven = series.where(f"array_max(series.value) - array_min(series.value) >= {_LEAST_SCORE}").selectExpr(
        "clusterId", "measure", "series", "posexplode(series) as (place, one)"
    )
    return aggregates.typed(_scored(uneven), FIELDS)


def _scored(uneven: DataFrame) -> DataFrame:
    """Score each hour (``one``, at index ``place`` of ``series``) against the rest of its series; keep outliers."""
    compared = uneven.selectExpr(
        "clusterId",
        "measure",
        "one.hourNumber as hourNumber",
        "one.value as value",
        "sort_array(transform(filter(series, (other, at) -> at <> place), other -> other.value)) as others",
    )
    with_median = compared.selectExpr("*", f"{_median('others')} as median")
    distances = with_median.selectExpr(
        "*", "sort_array(transform(others, other -> abs(other - median))) as distances"
    ).selectExpr("*", f"{_median('distances')} as mad")
    scored = distances.selectExpr("*", f"(value - median) / greatest({_TO_DEVIATION}D * mad, 1D) as score")
    return scored.where(f"abs(score) >= {_LEAST_SCORE}").selectExpr(
        "*",
        "array_size(others) as weeks",
        f"hourNumber * {HOUR_MS} as hourMs",
        f"{hour('hourNumber')} as hour",
    )


def _median(values: str) -> str:
    """SQL: the median of a sorted array of numbers."""
    size = f"array_size({values})"
    return f"(get({values}, ({size} - 1) div 2) + get({values}, {size} div 2)) / 2D"


GOLD = GoldTable(
    "anomalies",
    "hours in which churn was unlike the same hour of other weeks (median and MAD)",
    FIELDS,
    ("hourly_churn", "topics", "brokers", "clusters"),
    anomalies,
    expect=(*key("clusterId", "measure", "hour"), *at_least(0, "value", "weeks", "mad")),
)
