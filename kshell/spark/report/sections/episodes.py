"""The section on episodes in which partitions lacked in-sync replicas, and how long they lasted."""

from __future__ import annotations

from collections.abc import Mapping

from kshell.plots.theme import counted
from kshell.spark.report.queries import top_rows, top_table
from kshell.spark.report.section import Answers, ReportSection, Scope, SectionContent, SectionDrawing, TableColumn
from kshell.tree.image import format_duration

_RANGES = (
    ("under 1 s", 1_000),
    ("1 to 10 s", 10_000),
    ("10 s to 1 min", 60_000),
    ("1 to 10 min", 600_000),
    ("10 min to 1 h", 3_600_000),
    ("1 h to 1 day", 86_400_000),
    ("a day and more", None),
)
"""Classes of duration: the label, and the milliseconds below which an episode belongs to it."""


def queries(scope: Scope) -> Mapping[str, str]:
    """Ask for the number of episodes by duration, their median, and the longest."""
    range_of = " ".join(f"WHEN durationMs < {end} THEN {place}" for place, (_, end) in enumerate(_RANGES) if end)
    return {
        "ranges": f"""
            SELECT CASE {range_of} ELSE {len(_RANGES) - 1} END AS place, count(*) AS episodes,
                count_if(leaderlessMs > 0) AS leaderless, count_if(toOffset IS NULL) AS lasting
            FROM {{isr_episodes}} GROUP BY place ORDER BY place
        """,
        "half": "SELECT percentile_approx(durationMs, 0.5) AS half FROM {isr_episodes} WHERE toOffset IS NOT NULL",
        "longest": top_rows(
            "clusterId, topic, partition, fromMs, durationMs, coalesce(outcome, 'lasts') AS ended, leastInSync,"
            " replicationFactor, missing, leaderlessMs",
            "FROM {isr_episodes}",
            "toOffset IS NULL DESC, durationMs DESC, clusterId, topic, partition",
            12,
        ),
    }


def describe(scope: Scope, answers: Answers) -> SectionContent:
    """Count the episodes by duration; list those that still last, then the longest."""
    counts = {row["place"]: row for row in answers["ranges"]}
    total, still = (sum(row[name] for row in counts.values()) for name in ("episodes", "lasting"))
    if not total:
        return SectionContent("No partition lacked an in-sync replica.")
    half = answers["half"][0]["half"] if answers["half"] else None
    lead = (
        f"{counted(total, 'episode')}, {still:,} of which last."
        if still
        else f"{counted(total, 'episode')}; none lasts."
    )
    lead += f" Half of those that ended did so within {format_duration(half)}." if half is not None else ""
    ranges = [
        {
            "lasted": duration,
            "episodes": counts.get(place, {}).get("episodes", 0),
            "leaderless": counts.get(place, {}).get("leaderless", 0),
        }
        for place, (duration, _) in enumerate(_RANGES)
    ]
    table = top_table(
        scope,
        "Episodes: those that last, then the longest",
        answers["longest"],
        TableColumn("topic", "topic"),
        TableColumn("partition", "partition", "count"),
        TableColumn("fromMs", "from (UTC)", "time"),
        TableColumn("durationMs", "lasted", "lasting"),
        TableColumn("ended", "ended"),
        TableColumn("leastInSync", "least in sync", "count"),
        TableColumn("replicationFactor", "of", "count"),
        TableColumn("missing", "missing brokers"),
        TableColumn("leaderlessMs", "without a leader", "lasting"),
    )
    return SectionContent(lead, (SectionDrawing(ranges),), (table,))


SECTION = ReportSection(
    "episodes",
    "ISR shrinks and expands",
    30,
    "An episode begins with the record after which a partition has fewer in-sync replicas than its replication factor,"
    " and ends when it has as many again. One that lasts is counted up to the cluster's last record.",
    ("isr_episodes",),
    queries,
    describe,
)
