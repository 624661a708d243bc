"""The section on copies of logs that differ or are damaged, and on what could not be read or decoded."""

from __future__ import annotations

from collections.abc import Mapping

from kshell.plots.theme import counted
from kshell.spark.report.queries import top_rows, top_table, total_of
from kshell.spark.report.section import (
    Answers,
    Attention,
    ReportSection,
    Scope,
    SectionContent,
    SectionTable,
    TableColumn,
)

STATES = {
    "diverged": ("error", "copy diverges from the others", "copies diverge from the others"),
    "damaged": ("error", "copy is damaged", "copies are damaged"),
    "other-cluster": ("error", "copy is of another cluster", "copies are of another cluster"),
    "unreadable": ("error", "copy could not be read", "copies could not be read"),
    "not-compared": ("info", "copy could not be compared", "copies could not be compared"),
}
"""State of a copy that needs attention -> its level, and the message for one copy and for several."""


def queries(scope: Scope) -> Mapping[str, str]:
    """Ask for copies by state, copies that differ or are damaged, and the quarantine by reason and by kind."""
    states = ", ".join(f"'{state}'" for state in STATES)
    return {
        "states": "SELECT state, count(*) AS copies, min(copy) AS one FROM {copies} GROUP BY state ORDER BY state",
        # The state of a damaged copy may be another one: that of a cluster's only copy is `reference`.
        "damaged": top_rows("copy", "FROM {copies} WHERE size(damage) > 0", "copy", 1),
        "odd": top_rows(
            "clusterId, copy, state, reason, damage, endOffset",
            f"FROM {{copies}} WHERE state IN ({states}) OR size(damage) > 0",
            "clusterId, copy",
            20,
        ),
        "quarantine": top_rows(
            "clusterId, kind, reason, count(*) AS count, min(file) AS file",
            "FROM {quarantine} GROUP BY clusterId, kind, reason",
            "count DESC, clusterId, kind, reason",
            15,
        ),
        "kinds": """
            SELECT kind, count(*) AS count, min(clusterId) AS clusterId,
                min_by(reason, struct(clusterId, offset, reason)) AS reason
            FROM {quarantine} GROUP BY kind ORDER BY kind
        """,
    }


def describe(scope: Scope, answers: Answers) -> SectionContent:
    """Count copies by state, list those that differ or are damaged, and what is in quarantine."""
    states = {row["state"]: row for row in answers["states"]}
    if not states:
        return SectionContent("No copy was read.")
    kinds = {row["kind"]: row for row in answers["kinds"]}
    lead = f"{counted(sum(row['copies'] for row in states.values()), 'copy', 'copies')}: " + ", ".join(
        f"{row['copies']:,} {state}" for state, row in states.items()
    )
    lead += (
        ". In quarantine: " + ", ".join(f"{row['count']:,} {kind}" for kind, row in kinds.items()) + "."
        if kinds
        else ". Nothing is in quarantine."
    )
    counts = {state: (row["copies"], row["one"]) for state, row in states.items()}
    if damaged := answers["damaged"]:
        counts["damaged"] = total_of(damaged), damaged[0]["copy"]
    attention = [
        Attention(level, f"{counts[state][0]:,}", singular if counts[state][0] == 1 else many, counts[state][1])
        for state, (level, singular, many) in STATES.items()
        if state in counts
    ]
    if gap := kinds.pop("gap", None):
        where = (f"{gap['clusterId']}: " if scope.is_fleet else "") + gap["reason"]
        message = "gap in a log" if gap["count"] == 1 else "gaps in logs"
        attention.append(Attention("error", f"{gap['count']:,}", message, where))
    if lost := [row for kind, row in kinds.items() if kind != "torn"]:
        count, most = sum(row["count"] for row in lost), max(lost, key=lambda row: row["count"])
        message = "thing could not be read or decoded" if count == 1 else "things could not be read or decoded"
        attention.append(Attention("warning", f"{count:,}", message, f"{most['kind']}: {most['reason']}"))
    return SectionContent(lead, (), tuple(_tables(scope, answers)), tuple(attention))


def _tables(scope: Scope, answers: Answers) -> list[SectionTable]:
    tables, differing, quarantined = [], answers["odd"], answers["quarantine"]
    if differing:
        table = top_table(
            scope,
            "Copies that are not as the others",
            differing,
            TableColumn("copy", "copy"),
            TableColumn("state", "state"),
            TableColumn("endOffset", "end offset", "count"),
            TableColumn("reason", "reason"),
            TableColumn("damage", "damage"),
        )
        tables.append(table)
    if quarantined:
        table = top_table(
            scope,
            "Quarantine by reason",
            quarantined,
            TableColumn("kind", "kind"),
            TableColumn("count", "times", "count"),
            TableColumn("reason", "reason"),
            TableColumn("file", "for instance in"),
        )
        tables.append(table)
    return tables


SECTION = ReportSection(
    "copies",
    "Copies and quarantine",
    140,
    "Several copies of one cluster's log are reconciled into one; what differs, and what could not be read or decoded,"
    " is kept as data.",
    ("copies", "quarantine"),
    queries,
    describe,
)
