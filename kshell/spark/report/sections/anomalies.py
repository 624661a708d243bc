"""The section on hours with unusually many or few changes, compared with the same hour of other weeks."""

from __future__ import annotations

from collections.abc import Mapping

from kshell.plots.theme import counted
from kshell.spark.report.queries import top_rows, top_table, total_of
from kshell.spark.report.section import Answers, Attention, ReportSection, Scope, SectionContent, TableColumn


def queries(scope: Scope) -> Mapping[str, str]:
    """Ask for the hours with the highest scores."""
    columns = "clusterId, measure, hour, value, median, mad, weeks, score"
    return {"rows": top_rows(columns, "FROM {anomalies}", "abs(score) DESC, hour DESC, clusterId, measure", 15)}


def describe(scope: Scope, answers: Answers) -> SectionContent:
    """List these hours; one note of level ``info`` names the most unusual one."""
    rows = answers["rows"]
    if not rows:
        return SectionContent("No hour stands out, or fewer than four weeks are covered.")
    table = top_table(
        scope,
        "Hours furthest from the same hour of other weeks",
        rows,
        TableColumn("hour", "hour (UTC)"),
        TableColumn("measure", "measure"),
        TableColumn("value", "there were", "count"),
        TableColumn("median", "median of other weeks", "ratio"),
        TableColumn("mad", "MAD", "ratio"),
        TableColumn("weeks", "weeks", "count"),
        TableColumn("score", "score", "ratio"),
    )
    worst, count = rows[0], total_of(rows)
    where = f"{worst['measure']} {worst['value']:,} at {worst['hour']}, {worst['median']:g} in other weeks"
    message = f"{'hour was' if count == 1 else 'hours were'} unlike the same hour of other weeks"
    attention = Attention("info", f"{count:,}", message, where)
    return SectionContent(f"{counted(count, 'hour')} stood out.", (), (table,), (attention,))


SECTION = ReportSection(
    "anomalies",
    "Quiet anomalies",
    130,
    "Changes of leader, ISR shrinks and fencings in an hour, against the same hour of the weekday in other weeks. The"
    " score counts 1.4826 MAD (median absolute deviation), or at least 1; from 3.5 on it is told.",
    ("anomalies",),
    queries,
    describe,
)
