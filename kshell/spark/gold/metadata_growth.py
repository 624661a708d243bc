"""The table ``metadata_growth``: how many records of each type were written to the metadata log, by day."""

from kshell.spark.gold.timelines.durations import DAY_MS, LAST_MS, day, end_of_day
from kshell.spark.tables.expectations import at_least, not_null, ordered, unique
from kshell.spark.tables.gold_table import CLUSTER, DAY, GoldTable
from kshell.tables.declaration import Field

FIELDS = (
    CLUSTER,
    Field(
        "day",
        "string",
        "the day, in UTC, by the time of the record's batch; null where that is no day of the years 1970 to 9999",
    ),
    Field("type", "string", "the record's type, control records included"),
    Field("records", "int64", "how many of the log; those of snapshots are not counted"),
    Field("undecoded", "int64", "those of them that stayed bytes"),
    Field("total", "int64", "how many there were of that type up to the end of the day"),
)

_QUERY = f"""
WITH of_days AS (
  SELECT clusterId, dayNumber, type, count(*) AS records, count(reason) AS undecoded
  FROM (
    SELECT *, if(timestampMs BETWEEN 0 AND {LAST_MS}, timestampMs div {DAY_MS}, NULL) AS dayNumber
    FROM {{records}} WHERE NOT isSnapshot
  )
  GROUP BY dayNumber, type, clusterId
),
before AS (
  -- of this table only final rows come in, and `records` begins with the day after them: no day counts twice
  SELECT clusterId, type, max(total) AS counted FROM {{metadata_growth}} GROUP BY type, clusterId
)
SELECT *, {day("dayNumber")} AS day,
  coalesce(counted, 0L) + sum(records) OVER (PARTITION BY type, clusterId ORDER BY dayNumber) AS total,
  -- rows without a day are final at once: -1 is before every time
  coalesce({end_of_day(day("dayNumber"))}, -1L) AS untilMs
FROM of_days LEFT JOIN before USING (clusterId, type)"""


GOLD = GoldTable(
    "metadata_growth",
    "records of the metadata log by type and day",
    FIELDS,
    _QUERY,
    final_by=DAY,
    expect=(
        *not_null("clusterId", "type"),
        unique("clusterId", "day", "type"),
        *at_least(0, "records", "undecoded"),
        ordered("records", "total"),
    ),
)
