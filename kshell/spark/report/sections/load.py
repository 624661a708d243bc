"""The section on how evenly leaders and replicas are spread over brokers, and over racks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kshell.engine.result import Row
from kshell.plots.pictures.availability import percent
from kshell.spark.report.queries import by_day, daily, top_rows, top_table, total_of
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

_SKEWED, _BEYOND = 1.5, 2.0
"""A broker needs attention if it leads this many times the mean, and this many partitions more than the mean."""
_NARROW = 0.01
"""A cluster needs attention from this share of partition time with all replicas in one rack."""


def queries(scope: Scope) -> Mapping[str, str]:
    """Ask for skew per day, skew and racks on the last day, and for one cluster its brokers' load on that day."""
    line = "concat(measure, ' by ', level) AS measure, mostToMean FROM {skew} WHERE mostToMean IS NOT NULL"
    cluster = "clusterId, mostToMean FROM {skew} WHERE level = 'broker' AND measure = 'leaders'"
    named = cluster if scope.is_fleet else line
    questions = {
        "days": daily(f"(SELECT day, {named})", scope.by("measure"), "mostToMean", "mostToMean"),
        "skews": top_rows(
            "clusterId, level, measure, members, mean, most, busiest, mostToMean, variation",
            _last_day("skew", "mostToMean") + (" AND level = 'broker'" if scope.is_fleet else ""),
            "mostToMean DESC, clusterId, level, measure",
            12,
        ),
        "racks": top_rows(
            "clusterId, day, racks, spread, oneRackMs / nullif(partitionMs, 0) AS oneRack",
            _last_day("rack_spread", "spread"),
            "spread, clusterId",
            12,
        ),
    }
    if not scope.is_fleet:
        questions["brokers"] = top_rows(
            "day, broker, rack, leaders, replicas, preferred", _last_day("broker_load", "leaders"), "broker", 1000
        )
    return questions


def _last_day(table: str, column: str) -> str:
    """SQL (``FROM … WHERE``): a table's rows of each cluster's last day on which the column is not null."""
    days = f"SELECT *, max(day) OVER (PARTITION BY clusterId) AS lastDay FROM {{{table}}} WHERE {column} IS NOT NULL"
    return f"FROM ({days}) WHERE day = lastDay"


def describe(scope: Scope, answers: Answers) -> SectionContent:
    """Say how uneven the load is; list skew and racks. Large skew and replicas in one rack need attention."""
    skews, racks, days = answers["skews"], answers["racks"], answers["days"]
    if not skews:
        return SectionContent("No time is covered in which brokers led anything.")
    skewed = _skewed(scope, skews)
    lead = (
        f"The busiest broker leads {skewed[0]['mostToMean']:.1f} times the mean."
        if skewed
        else "On the last day, leaders lay evenly enough on the brokers."
    )
    if racks:
        lead += _racks(scope, racks)
    drawings = [] if scope.is_fleet else _brokers(answers["brokers"])
    drawings += by_day(days, scope.by("measure")) if len({row["day"] for row in days}) > 1 else ()
    return SectionContent(
        lead, tuple(drawings), tuple(_tables(scope, skews, racks)), tuple(_attention(scope, skewed, racks))
    )


def _brokers(rows: Sequence[Row]) -> list[SectionDrawing]:
    averages = [{name: row[name] for name in ("broker", "rack", "leaders", "replicas")} for row in rows]
    return [SectionDrawing(averages, f"Averages over {rows[0]['day']}.")] if averages else []


def _skewed(scope: Scope, rows: Sequence[Row]) -> list[Row]:
    """Return the rows of leaders by broker whose busiest broker is above both limits."""
    return [
        row
        for row in rows
        if row["level"] == "broker"
        and row["measure"] == "leaders"
        and row["mostToMean"] is not None
        and row["mostToMean"] >= _SKEWED
        and row["most"] - row["mean"] >= _BEYOND
    ]


def _racks(scope: Scope, racks: Sequence[Row]) -> str:
    spread = racks[0]["spread"]
    if spread is None:
        return ""
    where = " in the worst cluster" if scope.is_fleet and total_of(racks) > 1 else ""
    return f" Replicas were in as many racks as they could be for {percent(spread)} of partition time{where}."


def _tables(scope: Scope, skews: Sequence[Row], racks: Sequence[Row]) -> list[SectionTable]:
    skew = top_table(
        scope,
        "Skew on the last day",
        skews,
        TableColumn("measure", "measure"),
        TableColumn("level", "by"),
        TableColumn("members", "members", "count"),
        TableColumn("mean", "mean", "ratio"),
        TableColumn("most", "most", "ratio"),
        TableColumn("busiest", "busiest"),
        TableColumn("mostToMean", "most / mean", "ratio"),
        TableColumn("variation", "deviation / mean", "ratio"),
    )
    spread = top_table(
        scope,
        "Spread over racks on the last day, of partition time",
        racks,
        TableColumn("day", "day"),
        TableColumn("racks", "racks", "count"),
        TableColumn("spread", "as wide as can be", "share"),
        TableColumn("oneRack", "all in one rack", "share"),
    )
    return [skew, spread] if racks else [skew]


def _attention(scope: Scope, skewed: Sequence[Row], racks: Sequence[Row]) -> list[Attention]:
    attention = []
    if skewed:
        where = ", ".join(
            f"broker {row['busiest']}" + (f" of {row['clusterId']}" if scope.is_fleet else "") for row in skewed[:3]
        )
        message = "times the mean is led by the busiest broker"
        attention.append(Attention("warning", f"{skewed[0]['mostToMean']:.1f}", message, where))
    narrow = [row for row in racks if (row["oneRack"] or 0) >= _NARROW]
    if narrow:
        where = ", ".join(row["clusterId"] for row in narrow[:3]) if scope.is_fleet else f"on {narrow[0]['day']}"
        message = "of partition time had all replicas in one rack"
        attention.append(Attention.of("rackViolation", percent(max(row["oneRack"] for row in narrow)), message, where))
    return attention


SECTION = ReportSection(
    "load",
    "Load and racks",
    70,
    "Partitions led and replicas held are averages over a day's time. Most / mean is 1 where all brokers (or racks)"
    " carry the same.",
    ("broker_load", "skew", "rack_spread"),
    queries,
    describe,
)
