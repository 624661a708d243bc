"""The table ``skew``: how unevenly leaders and replicas are spread over brokers and racks, by day."""

from __future__ import annotations

from kshell.spark.tables.expectations import at_least, key, ordered
from kshell.spark.tables.gold_table import CLUSTER, GoldTable
from kshell.tables.declaration import Field

FIELDS = (
    CLUSTER,
    Field("day", "string", "the day, in UTC"),
    Field(
        "level",
        "string",
        "broker (each broker of broker_load that day), rack (the sums over the brokers of a rack;"
        " brokers without one left out)",
    ),
    Field("measure", "string", "leaders or replicas: that column of broker_load"),
    Field("members", "int32", "how many brokers or racks"),
    Field("mean", "float64", "the mean over them"),
    Field("least", "float64", "the smallest"),
    Field("most", "float64", "the largest"),
    Field("busiest", "string", "the broker or rack that has it; the first by id or name if several do"),
    Field("deviation", "float64", "the standard deviation (population)"),
    Field("variation", "float64", "deviation / mean: 0 is even; null where the mean is 0"),
    Field("mostToMean", "float64", "most / mean: 1 is even, 2 is twice its part; null where the mean is 0"),
)

_SUM = "aggregate({0}, 0D, (sum, one) -> sum + one)"
"""SQL: the sum of a sorted array: sums of doubles depend on the order, and the order of rows varies between runs."""


def _sum_of(name: str) -> str:
    return f"if(count({name}) > 0, {_SUM.format(f'sort_array(collect_list({name}))')}, NULL)"


_QUERY = f"""
SELECT *, if(mean > 0, deviation / mean, NULL) AS variation, if(mean > 0, most / mean, NULL) AS mostToMean
FROM (
  SELECT *, sqrt({_SUM.format("transform(sorted, one -> (one - mean) * (one - mean))")} / members) AS deviation
  FROM (
    SELECT *, greatest(least, least(most, {_SUM.format("sorted")} / members)) AS mean  -- a sum is rounded
    FROM (
      SELECT clusterId, day, level, measure, count(*) AS members, sort_array(collect_list(value)) AS sorted,
        min(value) AS least, max(value) AS most,
        min_by(member, struct(-value AS order, number, member)) AS busiest
      FROM (
        SELECT clusterId, day, level, member, number,
          stack(2, 'leaders', leaders, 'replicas', replicas) AS (measure, value)
        FROM (
          SELECT clusterId, day, 'broker' AS level, cast(broker AS string) AS member, broker AS number, leaders,
            replicas
          FROM {{broker_load}}
          UNION ALL
          SELECT clusterId, day, 'rack', rack, 0, {_sum_of("leaders")}, {_sum_of("replicas")}
          FROM {{broker_load}} WHERE rack IS NOT NULL
          GROUP BY day, rack, clusterId
        )
      )
      WHERE value IS NOT NULL
      GROUP BY day, level, measure, clusterId
    )
  )
)"""


GOLD = GoldTable(
    "skew",
    "how unevenly leaders and replicas lie on brokers and racks, by day",
    FIELDS,
    _QUERY,
    expect=(
        *key("clusterId", "day", "level", "measure"),
        *at_least(1, "members"),
        ordered("least", "mean"),
        ordered("mean", "most"),
    ),
)
