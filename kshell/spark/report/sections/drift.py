"""The section on configs whose values differ between clusters, or between the brokers of one."""

from __future__ import annotations

from collections.abc import Mapping

from kshell.plots.theme import counted
from kshell.spark.report.queries import top_rows, top_table, total_of
from kshell.spark.report.section import Answers, Attention, ReportSection, Scope, SectionContent, TableColumn


def queries(scope: Scope) -> Mapping[str, str]:
    """Ask for values that differ from the usual one of their comparison."""
    return {
        "unusual": top_rows(
            "clusterId, scope, resourceType, if(resourceName = '', '(all brokers)', resourceName) AS resource, name,"
            " coalesce(value, '(not set)') AS value, coalesce(usualValue, '(not set)') AS usual, agreeing, members,"
            " sinceMs",
            "FROM {config_drift} WHERE isUnusual",
            "scope, agreeing / members, name, resourceType, resource, clusterId",
            20,
        ),
        "names": "SELECT scope, count(DISTINCT name) AS names FROM {config_drift} WHERE isUnusual GROUP BY scope",
    }


def describe(scope: Scope, answers: Answers) -> SectionContent:
    """List the unusual values. Only differences between brokers of one cluster need attention."""
    rows = answers["unusual"]
    if not rows:
        return SectionContent("Nothing is set differently.")
    table = top_table(
        scope,
        "Values that most others do not have",
        rows,
        TableColumn("scope", "among"),
        TableColumn("resourceType", "type"),
        TableColumn("resource", "resource"),
        TableColumn("name", "config"),
        TableColumn("value", "value here"),
        TableColumn("usual", "usual value"),
        TableColumn("agreeing", "have it", "count"),
        TableColumn("members", "of", "count"),
        TableColumn("sinceMs", "since (UTC)", "time"),
    )
    attention = []
    if brokers := sum(row["names"] for row in answers["names"] if row["scope"] == "brokers"):
        message = f"{'config is' if brokers == 1 else 'configs are'} set differently on brokers of one cluster"
        where = ", ".join(sorted({row["name"] for row in rows if row["scope"] == "brokers"})[:3])
        attention = [Attention("info", f"{brokers:,}", message, where)]
    return SectionContent(f"{counted(total_of(rows), 'unusual value')}.", (), (table,), tuple(attention))


SECTION = ReportSection(
    "drift",
    "Config drift",
    90,
    "What is set in the log, compared between resources of one name in several clusters, and between the brokers of"
    " one. Usual is the value that most have.",
    ("config_drift",),
    queries,
    describe,
)
