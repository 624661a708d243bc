"""The section on finalized features of clusters, above all metadata.version, over time."""

from __future__ import annotations

from collections.abc import Mapping

from kshell.plots.theme import counted
from kshell.spark.report.queries import top_rows, top_table
from kshell.spark.report.section import (
    Answers,
    Attention,
    ReportSection,
    Scope,
    SectionContent,
    SectionDrawing,
    TableColumn,
)
from kshell.spark.tables.gold_table import TOMORROW

_ROWS = 1500


def queries(scope: Scope) -> Mapping[str, str]:
    """Ask for changes to draw (of a fleet only metadata.version), clusters per version, and the last changes."""
    where = "WHERE feature = 'metadata.version'" if scope.is_fleet else ""
    return {
        "lanes": top_rows(
            f"clusterId, feature, offset, ms, change, newLevel, newName, least(lastTimestampMs, {TOMORROW}) AS lastMs",
            f"FROM {{upgrades}} JOIN {{clusters}} USING (clusterId) {where}",
            "ms DESC, clusterId, feature",
            _ROWS,
        ),
        "versions": """
            SELECT version, count(*) AS clusters FROM (
                SELECT max_by(coalesce(newName, cast(newLevel AS string)), offset) AS version
                FROM {upgrades} WHERE feature = 'metadata.version' GROUP BY clusterId
            ) GROUP BY version ORDER BY version
        """,
        "last": top_rows(
            "clusterId, ms, feature, change, coalesce(oldName, cast(oldLevel AS string)) AS before,"
            " coalesce(newName, cast(newLevel AS string)) AS after, heldMs",
            "FROM {upgrades} WHERE change <> 'found'",
            "ms DESC, clusterId, offset DESC, feature",
            12,
        ),
    }


def describe(scope: Scope, answers: Answers) -> SectionContent:
    """Say which metadata.version clusters have now, and list the last changes; downgrades need attention."""
    versions, lanes, last = answers["versions"], answers["lanes"], answers["last"]
    if not lanes:
        return SectionContent("No feature was ever finalized.")
    if scope.is_fleet:
        counts = ", ".join(f"{row['version']} ({row['clusters']:,})" for row in versions)
        lead = f"{counted(len(versions), 'metadata.version')}: {counts}."
    else:
        lead = f"metadata.version is {versions[0]['version']}." if versions else "metadata.version is not in the log."
    table = top_table(
        scope,
        "The last changes of features",
        last,
        TableColumn("ms", "at (UTC)", "time"),
        TableColumn("feature", "feature"),
        TableColumn("change", "change"),
        TableColumn("before", "level before"),
        TableColumn("after", "after"),
        TableColumn("heldMs", "held before", "lasting"),
    )
    down = [row for row in last if row["change"] == "downgrade"]
    message = f"downgrade{'' if len(down) == 1 else 's'} of a feature among the last {len(last)} changes"
    attention = [
        Attention("info", f"{len(down):,}", message, f"{change['feature']} to {change['after']}") for change in down[:1]
    ]
    return SectionContent(
        lead,
        (SectionDrawing(sorted(lanes, key=lambda row: (row["ms"], row["offset"]))),),
        (table,) if last else (),
        tuple(attention),
    )


SECTION = ReportSection(
    "upgrades",
    "Upgrades",
    110,
    "Finalized features as the log tells them: metadata.version by name, the others by level.",
    ("upgrades",),
    queries,
    describe,
)
