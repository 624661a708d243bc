"""The section on brokers over time: registered, unfenced, fenced, in controlled shutdown."""

from __future__ import annotations

from collections.abc import Mapping

from kshell.plots.theme import counted
from kshell.spark.gold.timelines.durations import day_of
from kshell.spark.report.queries import by_day, daily, top_rows, top_table, total_of
from kshell.spark.report.section import Answers, ReportSection, Scope, SectionContent, SectionDrawing, TableColumn

_STATES = 2000
"""How many rows of ``broker_states`` are drawn at most: the last ones."""


def queries(scope: Scope) -> Mapping[str, str]:
    """Ask for the states of one cluster's brokers, or fencings per day of all clusters; and for sums by broker."""
    fenced = f"(SELECT clusterId, {day_of('fromMs')} AS day FROM {{broker_states}} WHERE state = 'fenced')"
    states = top_rows("broker, state, fromMs, toMs, durationMs", "FROM {broker_states}", "fromMs DESC, broker", _STATES)
    return {
        "over": daily(fenced, "clusterId", "1", "fencings") if scope.is_fleet else states,
        "brokers": top_rows(
            "clusterId, broker, max_by(rack, fromOffset) AS rack, count(*) AS sessions, sum(fencings) AS fencings,"
            " count_if(outcome IS NOT NULL AND NOT isClean) AS unclean, sum(fencedMs) AS fencedMs,"
            " sum(shutdownMs) AS shutdownMs, sum(unfencedMs) AS unfencedMs",
            "FROM {broker_sessions} GROUP BY clusterId, broker",
            "fencedMs DESC, clusterId, broker",
            15,
        ),
        "all": "SELECT count(*) AS sessions, sum(fencings) AS fencings FROM {broker_sessions}",
    }


def describe(scope: Scope, answers: Answers) -> SectionContent:
    """Count registrations and fencings, and list the brokers that were fenced the longest."""
    rows, over = answers["brokers"], answers["over"]
    if not rows:
        return SectionContent("No broker was registered.")
    total = answers["all"][0]
    lead = (
        f"{counted(total_of(rows), 'broker')}, {counted(total['sessions'], 'registration')}, fenced"
        f" {counted(total['fencings'], 'time')} while {'they' if total_of(rows) > 1 else 'it'} served."
    )
    table = top_table(
        scope,
        "Brokers, those longest fenced first",
        rows,
        TableColumn("broker", "broker", "broker"),
        TableColumn("rack", "rack"),
        TableColumn("sessions", "registrations", "count"),
        TableColumn("fencings", "fenced, times", "count"),
        TableColumn("unclean", "ended unclean", "count"),
        TableColumn("fencedMs", "fenced", "lasting"),
        TableColumn("shutdownMs", "in controlled shutdown", "lasting"),
        TableColumn("unfencedMs", "unfenced", "lasting"),
    )
    if scope.is_fleet:
        drawings = by_day(over, "clusterId")
    else:
        note = f"the last {len(over):,} of {total_of(over):,} changes" if len(over) < total_of(over) else ""
        drawings = (SectionDrawing(sorted(over, key=lambda row: (row["broker"], row["fromMs"])), note),) if over else ()
    return SectionContent(lead, drawings, (table,))


SECTION = ReportSection(
    "brokers",
    "Broker sessions",
    60,
    "A session lasts from a registration to the next one, or to the removal. It ended unclean if the broker was not in"
    " controlled shutdown before. Time fenced includes the time before a broker was first unfenced.",
    ("broker_states", "broker_sessions"),
    queries,
    describe,
)
