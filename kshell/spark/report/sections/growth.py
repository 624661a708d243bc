"""The section on how many records were written to the metadata logs."""

from __future__ import annotations

from collections.abc import Mapping

from kshell.plots.theme import counted
from kshell.spark.report.queries import DAYS, by_day, daily, top_rows, total_of
from kshell.spark.report.section import Answers, ReportSection, Scope, SectionContent, SectionTable, TableColumn


def queries(scope: Scope) -> Mapping[str, str]:
    """Ask for records per day, by cluster or type, and in all."""
    who = scope.by("type")
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
    rows = answers["who"]
    if not rows:
        return SectionContent("The log has no records beside a snapshot's.")
    who, total = scope.by("type"), answers["all"][0]
    noun = who.removesuffix("Id")
    lead = f"{counted(total['records'], 'record')} of {counted(total['types'], 'type')}, in all."
    columns = (
        TableColumn(who, noun),
        TableColumn("records", "records", "count"),
        TableColumn("undecoded", "undecoded", "count"),
        TableColumn("last", "last on"),
    )
    table = SectionTable(f"Records by {noun}, the most first", columns, rows, total_of(rows))
    at_most = f"At most the last {DAYS} days."
    drawings = tuple(
        drawing._replace(note=f"{drawing.note}. {at_most}" if drawing.note else at_most)
        for drawing in by_day(answers["days"], who)
    )
    return SectionContent(lead, drawings, (table,))


SECTION = ReportSection(
    "growth",
    "Growth of the log",
    120,
    "Records of the metadata log by the day of their batch; those of snapshots are not counted.",
    ("metadata_growth",),
    queries,
    describe,
)
