"""The section on how many records were written to the metadata logs."""

from __future__ import annotations

from collections.abc import Mapping

from kshell.plots.theme import counted
from kshell.spark.report.queries import DAYS, daily, daily_note, top_rows, total_of
from kshell.spark.report.section import (
    Answers,
    ReportSection,
    Scope,
    SectionContent,
    SectionDrawing,
    SectionTable,
    TableColumn,
)


def queries(scope: Scope) -> Mapping[str, str]:
    """Ask for records per day, by cluster or type, and in all."""
    who = "clusterId" if scope.is_fleet else "type"
    return {
        "days": daily("{metadata_growth}", who, "records", "records"),
        "who": top_rows(
            f"{who}, sum(records) AS records, sum(undecoded) AS undecoded, max(day) AS last",
            f"FROM {{metadata_growth}} GROUP BY {who}",
            f"records DESC, {who}",
            12,
        ),
        "all": "SELECT sum(records) AS records, count(DISTINCT type) AS types FROM {metadata_growth}",
    }


def describe(scope: Scope, answers: Answers) -> SectionContent:
    """Count the records, and list the clusters or types with the most."""
    rows, days = answers["who"], answers["days"]
    if not rows:
        return SectionContent("The log has no records beside a snapshot's.")
    who, noun = ("clusterId", "clusters") if scope.is_fleet else ("type", "types")
    total = answers["all"][0]
    lead = f"{counted(total['records'], 'record')} of {counted(total['types'], 'type')}, in all."
    columns = (
        TableColumn(who, noun[:-1]),
        TableColumn("records", "records", "count"),
        TableColumn("undecoded", "undecoded", "count"),
        TableColumn("last", "last on"),
    )
    notes = ". ".join(filter(None, (daily_note(days, who, noun), f"At most the last {DAYS} days")))
    table = SectionTable(f"Records by {noun[:-1]}, the most first", columns, rows, total_of(rows))
    return SectionContent(lead, (SectionDrawing(days, f"{notes}."),) if days else (), (table,))


SECTION = ReportSection(
    "growth",
    "Growth of the log",
    120,
    "Records of the metadata log by the day of their batch; those of snapshots are not counted.",
    ("metadata_growth",),
    queries,
    describe,
)
