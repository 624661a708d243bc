"""The section on unclean elections: leaders that were not in sync."""

from __future__ import annotations

from collections.abc import Mapping

from kshell.plots.theme import counted
from kshell.plots.times import moment
from kshell.spark.report.queries import by_day, daily, top_rows, top_table, total_of
from kshell.spark.report.section import Answers, Attention, ReportSection, Scope, SectionContent, TableColumn


def queries(scope: Scope) -> Mapping[str, str]:
    """Ask for elections per day, and the last ones."""
    return {
        "days": daily("{unclean_elections}", scope.by("topic"), "1", "elections"),
        "last": top_rows(
            "clusterId, topic, partition, ms, leader, previousLeader, previousIsr, leaderlessMs, evidence",
            "FROM {unclean_elections}",
            "ms DESC, clusterId, offset DESC, topic, partition",
            12,
        ),
    }


def describe(scope: Scope, answers: Answers) -> SectionContent:
    """Count unclean elections, which need attention, and list the last ones."""
    last = answers["last"]
    if not last:
        return SectionContent("There was none.")
    table = top_table(
        scope,
        "The last unclean elections",
        last,
        TableColumn("ms", "at (UTC)", "time"),
        TableColumn("topic", "topic"),
        TableColumn("partition", "partition", "count"),
        TableColumn("leader", "leader since", "broker"),
        TableColumn("previousLeader", "before", "broker"),
        TableColumn("previousIsr", "ISR before"),
        TableColumn("leaderlessMs", "without a leader before", "lasting"),
        TableColumn("evidence", "told by"),
    )
    count, when = total_of(last), f"the last one at {moment(last[0]['ms']).partition('.')[0]} UTC"
    where = f"{last[0]['topic']}-{last[0]['partition']}"
    message = f"unclean election{'' if count == 1 else 's'}: acknowledged records may be lost"
    attention = Attention.of("uncleanRecovery", f"{count:,}", message, f"{when}, of {where}")
    drawings = by_day(answers["days"], scope.by("topic"))
    return SectionContent(f"{counted(count, 'unclean election')}, {when}.", drawings, (table,), (attention,))


SECTION = ReportSection(
    "elections",
    "Unclean elections",
    40,
    "A broker that was not in sync became leader: what the others had acknowledged and it lacks is gone.",
    ("unclean_elections",),
    queries,
    describe,
)
