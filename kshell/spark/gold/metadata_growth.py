"""The table ``metadata_growth``: how many records of each type were written to the metadata log, by day."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshell.spark.gold.timelines import aggregates
from kshell.spark.gold.timelines.durations import DAY_MS, LAST_MS, day, end_of_day
from kshell.spark.tables.expectations import at_least, not_null, ordered, unique
from kshell.spark.tables.gold_table import CLUSTER, DAY, GoldTable, Tables
from kshell.tables.declaration import Field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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


def metadata_growth(tables: Tables) -> DataFrame:
    """Count records of the log by type and day."""
    of_log = (
        tables["records"]
        .where("not isSnapshot")
        .selectExpr(
            "clusterId",
            f"if(timestampMs between 0 and {LAST_MS}, timestampMs div {DAY_MS}, null) as dayNumber",
            "type",
            "reason is not null as isUndecoded",
        )
    )
    counted = aggregates.grouped(
        of_log, ["clusterId", "dayNumber", "type"], records="count(*)", undecoded="count_if(isUndecoded)"
    )
    # Of this table only final rows come in, and ``records`` begins with the day after them: no day counts twice.
    before = aggregates.grouped(tables["metadata_growth"], ["clusterId", "type"], counted="max(total)")
    totals = counted.join(before, ["clusterId", "type"], "left").selectExpr(
        "*",
        f"{day('dayNumber')} as day",
        "coalesce(counted, 0L) + sum(records) over (partition by clusterId, type order by dayNumber) as total",
    )
    # Rows without a day are final at once: -1 is before every time.
    return aggregates.typed_with_until(totals.selectExpr("*", f"coalesce({end_of_day('day')}, -1L) as untilMs"), FIELDS)


GOLD = GoldTable(
    "metadata_growth",
    "records of the metadata log by type and day",
    FIELDS,
    ("records", "clusters", "metadata_growth"),
    metadata_growth,
    final_by=DAY,
    expect=(
        *not_null("clusterId", "type"),
        unique("clusterId", "day", "type"),
        *at_least(0, "records", "undecoded"),
        ordered("records", "total"),
    ),
)
