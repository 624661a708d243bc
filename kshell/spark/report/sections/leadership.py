"""The section on how often leaders changed, and for which share of the time the preferred one led."""

from __future__ import annotations

from collections.abc import Mapping

from kshell.plots.pictures.availability import percent
from kshell.plots.theme import counted
from kshell.spark.report.queries import by_day, daily, top_rows, top_table, total_of
from kshell.spark.report.section import Answers, ReportSection, Scope, SectionContent, SectionTable, TableColumn

_SUMS = """sum(gained) AS gained, sum(lost) AS lost, sum(leaderMs) AS leaderMs,
    sum(preferredMs) / nullif(sum(leaderMs), 0) AS preferredShare"""


def queries(scope: Scope) -> Mapping[str, str]:
    """Ask for changes of leader per day, and for sums by cluster or broker, and by topic."""
    who = scope.by("broker")
    return {
        "days": daily("{leadership}", who, "gained", "gained"),
        "who": top_rows(f"{who}, {_SUMS}", f"FROM {{leadership}} GROUP BY {who}", f"gained DESC, {who}", 15),
        "topics": top_rows(
            "*",
            f"FROM (SELECT clusterId, topic, {_SUMS} FROM {{leadership}} GROUP BY clusterId, topic) WHERE gained > 0",
            "gained DESC, clusterId, topic",
            10,
        ),
        "all": f"SELECT {_SUMS} FROM {{leadership}}",
    }


def describe(scope: Scope, answers: Answers) -> SectionContent:
    """Count changes of leader; list the clusters or brokers, and the topics, with the most."""
    total = answers["all"][0] if answers["all"] else {}
    if total.get("leaderMs") is None:
        return SectionContent("No partition had a leader.")
    share = total["preferredShare"]
    lead = f"{counted(total['gained'], 'change of leader', 'changes of leader')}."
    lead += "" if share is None else f" The preferred leader led {percent(share)} of the time."
    sums = (
        TableColumn("gained", "changes to it" if not scope.is_fleet else "changes", "count"),
        *(() if scope.is_fleet else (TableColumn("lost", "from it", "count"),)),
        TableColumn("leaderMs", "partition time led", "lasting"),
        TableColumn("preferredShare", "as the preferred leader", "share"),
    )
    rows, topics, who = answers["who"], answers["topics"], scope.by("broker")
    whose = TableColumn(who, who.removesuffix("Id"), "text" if scope.is_fleet else "broker")
    tables = [SectionTable(f"Leadership by {whose.title}, most changes first", (whose, *sums), rows, total_of(rows))]
    if topics:
        columns = TableColumn("topic", "topic"), TableColumn("gained", "changes", "count"), *sums[-2:]
        tables.append(top_table(scope, "Topics whose leaders changed most", topics, *columns))
    days = answers["days"] if any(row["gained"] for row in answers["days"]) else []
    return SectionContent(lead, by_day(days, who), tuple(tables))


SECTION = ReportSection(
    "leadership",
    "Leadership churn",
    50,
    "A change is a partition that got a leader which was not the broker that led before; the first leader is none. The"
    " preferred leader is the first of the replicas.",
    ("leadership",),
    queries,
    describe,
)
