"""The section on reassignments of replicas: how they ended, and how long they took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kshell.engine.result import Row
from kshell.plots.theme import counted
from kshell.spark.report.queries import top_rows, top_table, total_of
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
from kshell.tree.image import format_duration

_LONG = 86_400_000
"""Milliseconds after which a reassignment that has not ended needs attention."""


def queries(scope: Scope) -> Mapping[str, str]:
    """Ask for reassignments that have not ended, then the longest; and for counts by outcome."""
    return {
        "rows": top_rows(
            "clusterId, topic, partition, fromMs, toMs, durationMs, outcome, replicasBefore, replicasAfter, adding,"
            " removing",
            "FROM {reassignments}",
            "toOffset IS NULL DESC, durationMs DESC, clusterId, fromOffset, topic, partition",
            100,
        ),
        "ends": """
            SELECT coalesce(outcome, 'under way') AS outcome, count(*) AS count,
                percentile_approx(durationMs, 0.5) AS half, max(durationMs) AS longest
            FROM {reassignments} GROUP BY ALL ORDER BY count DESC, outcome
        """,
    }


def describe(scope: Scope, answers: Answers) -> SectionContent:
    """Count reassignments by outcome; list those that have not ended, then the longest."""
    rows = answers["rows"]
    if not rows:
        return SectionContent("There was none.")
    longest = format_duration(max(row["durationMs"] or 0 for row in rows))
    lead = f"{counted(total_of(rows), 'reassignment')}, the longest {longest}."
    timed = [row for row in rows if row["outcome"] != "at-once"]
    timed.sort(key=lambda row: (row["topic"], row["partition"], row["fromMs"]))
    note = f"The longest {len(rows)} of {total_of(rows):,}." if len(rows) < total_of(rows) else ""
    drawings = (SectionDrawing(timed, note),) if timed and not scope.is_fleet else ()
    return SectionContent(lead, drawings, _tables(scope, answers), _attention(rows))


def _tables(scope: Scope, answers: Answers) -> tuple[SectionTable, ...]:
    longest = top_table(
        scope,
        "Reassignments: those that last, then the longest",
        answers["rows"][:10],
        TableColumn("topic", "topic"),
        TableColumn("partition", "partition", "count"),
        TableColumn("fromMs", "from (UTC)", "time"),
        TableColumn("durationMs", "took", "lasting"),
        TableColumn("outcome", "ended"),
        TableColumn("replicasBefore", "replicas before"),
        TableColumn("replicasAfter", "after"),
        TableColumn("adding", "added"),
        TableColumn("removing", "removed"),
    )
    ends = (
        TableColumn("outcome", "ended"),
        TableColumn("count", "reassignments", "count"),
        TableColumn("half", "half took up to", "lasting"),
        TableColumn("longest", "longest", "lasting"),
    )
    return SectionTable("How they ended", ends, answers["ends"]), longest


def _attention(rows: Sequence[Row]) -> tuple[Attention, ...]:
    stuck = [row for row in rows if row["toMs"] is None and (row["durationMs"] or 0) >= _LONG]
    if not stuck:
        return ()
    where = ", ".join(f"{row['topic']}-{row['partition']} ({format_duration(row['durationMs'])})" for row in stuck[:3])
    message = "reassignment has" if len(stuck) == 1 else "reassignments have"
    return (Attention.of("stuckReassignment", f"{len(stuck):,}", f"{message} lasted for more than a day", where),)


SECTION = ReportSection(
    "reassignments",
    "Reassignments",
    80,
    "From the record that adds or removes replicas to the one after which none are being added or removed.",
    ("reassignments",),
    queries,
    describe,
)
