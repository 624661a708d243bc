"""The section on how long partitions had a leader, and enough in-sync replicas, by month."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kshell.engine.result import Row
from kshell.plots.pictures.availability import percent
from kshell.spark.report.queries import top_rows, top_table
from kshell.spark.report.section import (
    Answers,
    Attention,
    ReportSection,
    Scope,
    SectionContent,
    SectionDrawing,
    SectionTable,
    TableColumn,
)

_MAX_LINES = 30
_GOOD = 0.999
_NAMED = 3
"""How many of the clusters that were least available in the last month are named."""


def queries(scope: Scope) -> Mapping[str, str]:
    """Ask for the months of clusters, or of one with its worst topics and brokers; and for the worst partitions."""
    kinds = "scope = 'cluster'" if scope.is_fleet else "scope IN ('cluster', 'topic', 'broker')"
    return {
        "months": f"""
            WITH known AS (SELECT *, max(month) OVER () AS lastMonth FROM {{availability}} WHERE {kinds}),
            recent AS (
                SELECT * FROM known
                WHERE month > date_format(add_months(to_date(lastMonth || '-01'), -12), 'yyyy-MM')
            ),
            worst AS (
                SELECT scope, name, min(availability) AS least, min(writeAvailability) AS leastWrite
                FROM recent GROUP BY scope, name
            ),
            shown AS (
                SELECT * FROM worst WHERE scope = 'cluster' OR least < 1
                ORDER BY scope = 'cluster' DESC, least NULLS LAST, leastWrite, scope, name LIMIT {_MAX_LINES}
            )
            SELECT month, scope, name, availability, writeAvailability, offlineMs, underMinIsrMs, assumedMs, partitions
            FROM recent JOIN shown USING (scope, name) ORDER BY scope = 'cluster' DESC, scope, name, month
        """,
        "last_month": f"""
            WITH known AS (SELECT * FROM {{availability}} WHERE scope = 'cluster' AND availability IS NOT NULL)
            SELECT month, scope, name, availability, writeAvailability, count_if(availability < {_GOOD}) OVER () AS bad
            FROM known WHERE month = (SELECT max(month) FROM known)
            ORDER BY availability, writeAvailability, name LIMIT {_NAMED}
        """,
        "partitions": top_rows(
            "clusterId, topic, partition, sum(offlineMs) AS offlineMs, sum(underMinIsrMs) AS underMinIsrMs,"
            " 1 - sum(offlineMs) / sum(existedMs) AS availability",
            "FROM {partition_availability} WHERE underMinIsrMs > 0 GROUP BY clusterId, topic, partition",
            "offlineMs DESC, underMinIsrMs DESC, clusterId, topic, partition",
            10,
        ),
    }


def describe(scope: Scope, answers: Answers) -> SectionContent:
    """Say which share of the time partitions could be read and written in the last month, and list the worst."""
    months = [row for row in answers["months"] if row["availability"] is not None]
    if not months or not answers["last_month"]:
        return SectionContent("No time is covered: the log has no partitions, or ends with the one that created them.")
    least_available = answers["last_month"]
    worst = least_available[0]
    last = str(worst["month"])
    assumed = any(row["assumedMs"] for row in months)
    lead = f"In {last}, " + (
        f"the least available cluster had leaders for {percent(worst['availability'])} of partition time."
        if scope.is_fleet
        else f"partitions had a leader for {percent(worst['availability'])} of their time, and enough in-sync replicas"
        f" for {percent(worst['writeAvailability'])}."
    )
    lead += " Where the log does not tell min.insync.replicas, 1 is assumed." if assumed else ""
    return SectionContent(
        lead, (SectionDrawing(months),), tuple(_tables(scope, answers)), tuple(_attention(scope, last, least_available))
    )


def _tables(scope: Scope, answers: Answers) -> list[SectionTable]:
    rows = answers["partitions"]
    if not rows:
        return []
    table = top_table(
        scope,
        "Partitions that were offline the longest, over the months in which they were under min ISR",
        rows,
        TableColumn("topic", "topic"),
        TableColumn("partition", "partition", "count"),
        TableColumn("offlineMs", "without a leader", "lasting"),
        TableColumn("underMinIsrMs", "under min ISR", "lasting"),
        TableColumn("availability", "available", "share"),
    )
    return [table]


def _attention(scope: Scope, last: str, least_available: Sequence[Row]) -> list[Attention]:
    bad = [row for row in least_available if row["availability"] < _GOOD]
    if not bad:
        return []
    worst, count = percent(bad[0]["availability"]), bad[0]["bad"]
    where = f"in {last}" + (f": {', '.join(str(row['name']) for row in bad)}" if scope.is_fleet else "")
    message = "of partition time had a leader" + (f" in the worst of {count:,} clusters" if count > 1 else "")
    return [Attention("warning", worst, message, where)]


SECTION = ReportSection(
    "availability",
    "Availability by month",
    20,
    "The share of the time that partitions existed in which they had a leader, summed over partitions; the last twelve"
    " months. Topics and brokers are left out that always had all leaders.",
    ("availability", "partition_availability"),
    queries,
    describe,
)
