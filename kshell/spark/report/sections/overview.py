"""The first section: how large clusters are, and which problems they have now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kshell.engine.result import Row
from kshell.plots.theme import counted
from kshell.spark.report.queries import in_cluster, top_rows, top_table
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
from kshell.wording import first_of

_MOST = 40
_NAMED = 3
_TROUBLES = ("offline", "underMinIsr", "underReplicated", "fenced")


def queries(scope: Scope) -> Mapping[str, str]:
    """Ask for one row per cluster from each of several tables, and for the worst topics."""
    bad = "offline > 0 OR underMinIsr > 0 OR underReplicated > 0"
    return {
        "clusters": """
            SELECT clusterId, copies, endOffset, stateOffset, lastTimestampMs FROM {clusters} ORDER BY clusterId
        """,
        "topics": """
            SELECT clusterId, count(*) AS topics, sum(partitions) AS partitions, sum(offline) AS offline,
                sum(underMinIsr) AS underMinIsr, sum(underReplicated) AS underReplicated
            FROM {current_topics} GROUP BY clusterId
        """,
        "brokers": """
            WITH needed AS (
                SELECT DISTINCT clusterId, explode(replicas) AS id, true AS isNeeded FROM {current_partitions}
            ),
            known AS (SELECT *, fenced AND isNeeded IS NULL AS isIdle
                FROM {current_brokers} LEFT JOIN needed USING (clusterId, id))
            SELECT clusterId, count(*) AS brokers, count_if(fenced) AS fenced, count_if(isIdle) AS idle,
                slice(array_sort(collect_list(CASE WHEN fenced AND NOT isIdle THEN id END)), 1, 10) AS ids,
                slice(array_sort(collect_list(CASE WHEN isIdle THEN id END)), 1, 10) AS idleIds
            FROM known GROUP BY clusterId
        """,
        "versions": """
            SELECT clusterId, max_by(coalesce(newName, cast(newLevel AS string)), offset) AS version
            FROM {upgrades} WHERE feature = 'metadata.version' GROUP BY clusterId
        """,
        "worst": top_rows(
            "clusterId, name, partitions, offline, underMinIsr, underReplicated, replicationFactor, minIsr",
            f"FROM {{current_topics}} WHERE {bad}",
            "offline DESC, underMinIsr DESC, underReplicated DESC, clusterId, name",
            15,
        ),
    }


def describe(scope: Scope, answers: Answers) -> SectionContent:
    """List the clusters, those with problems first, and the worst topics; name the problems that need attention."""
    rows = _joined(answers)
    totals = {name: sum(row[name] for row in rows) for name in ("topics", "partitions", "brokers", *_TROUBLES)}
    nouns = ("broker", "topic", "partition")
    sizes = ", ".join(counted(totals[f"{noun}s"], noun) for noun in nouns)
    lead = f"{counted(len(rows), 'cluster')}, {sizes}." if scope.is_fleet else f"{sizes}."
    cut = [row["clusterId"] for row in rows if row["stateOffset"] is not None and row["stateOffset"] < row["endOffset"]]
    if cut:
        whose = first_of(cut, _NAMED)
        lead += f" What is counted of {whose} is the state before damage in the log, which goes on after it."
    columns = in_cluster(
        scope,
        TableColumn("version", "metadata.version"),
        TableColumn("brokers", "brokers", "count"),
        TableColumn("fenced", "fenced", "count"),
        TableColumn("topics", "topics", "count"),
        TableColumn("partitions", "partitions", "count"),
        TableColumn("offline", "offline", "count"),
        TableColumn("underMinIsr", "under min ISR", "count"),
        TableColumn("underReplicated", "under-replicated", "count"),
        TableColumn("endOffset", "log end offset", "count"),
        TableColumn("lastTimestampMs", "last record (UTC)", "time"),
    )
    worst = sorted(rows, key=lambda row: (*(-row[name] for name in (*_TROUBLES, "partitions")), row["clusterId"]))
    caption = "Clusters, those with trouble first" if scope.is_fleet else "The cluster"
    tables = [SectionTable(caption, columns, worst[:_MOST], len(rows))]
    if answers["worst"]:
        tables.append(_topics(scope, answers["worst"]))
    drawings = (SectionDrawing(worst),) if scope.is_fleet and any(row["partitions"] for row in rows) else ()
    return SectionContent(lead, drawings, tuple(tables), tuple(_attention(totals, rows, answers)))


def _joined(answers: Answers) -> Sequence[Row]:
    """Join the answers into one row per cluster. Counts are 0 where an answer has no row of the cluster."""
    parts = [{row["clusterId"]: row for row in answers[name]} for name in ("topics", "brokers", "versions")]
    counts = ("topics", "partitions", "brokers", *_TROUBLES)
    joined_rows = []
    for row in answers["clusters"]:
        joined: dict[str, Any] = dict.fromkeys(counts, 0) | {"version": None, "idle": 0, "idleIds": []} | dict(row)
        for part in parts:
            joined |= {name: value for name, value in part.get(row["clusterId"], {}).items() if value is not None}
        joined_rows.append(joined)
    return joined_rows


def _topics(scope: Scope, rows: Sequence[Row]) -> SectionTable:
    return top_table(
        scope,
        "Topics that lack leaders or in-sync replicas now, the worst first",
        rows,
        TableColumn("name", "topic"),
        TableColumn("partitions", "partitions", "count"),
        TableColumn("offline", "offline", "count"),
        TableColumn("underMinIsr", "under min ISR", "count"),
        TableColumn("underReplicated", "under-replicated", "count"),
        TableColumn("replicationFactor", "replication factor", "count"),
        TableColumn("minIsr", "min.insync.replicas", "count"),
    )


_NOW = {
    "offline": ("offlinePartition", "partition has no leader now", "partitions have no leader now"),
    "underMinIsr": ("underMinIsr", "partition is under min ISR now", "partitions are under min ISR now"),
    "underReplicated": (
        "underReplicated",
        "partition lacks in-sync replicas now",
        "partitions lack in-sync replicas now",
    ),
}


def _attention(totals: Mapping[str, int], rows: Sequence[Row], answers: Answers) -> list[Attention]:
    attention = []
    is_fleet = len(rows) > 1
    for name, (fact, singular, many) in _NOW.items():
        if totals[name]:
            bad = sorted((row for row in answers["worst"] if row[name]), key=lambda row: -row[name])
            worst = ", ".join(f"{row['name']}{_of_cluster(row, is_fleet=is_fleet)} ({row[name]:,})" for row in bad[:3])
            message = singular if totals[name] == 1 else many
            attention.append(Attention.of(fact, f"{totals[name]:,}", message, f"most in {worst}"))
    with_replicas = [(row, row["fenced"] - row["idle"], row["ids"]) for row in rows if row["fenced"] > row["idle"]]
    if with_replicas:
        attention.append(_fenced("brokerFenced", "fenced now", with_replicas, is_fleet=is_fleet))
    idle = [(row, row["idle"], row["idleIds"]) for row in rows if row["idle"]]
    if idle:
        attention.append(_fenced("staleRegistration", "fenced now, without replicas", idle, is_fleet=is_fleet))
    return attention


def _fenced(fact: str, state: str, clusters: Sequence[tuple[Row, int, Sequence[int]]], *, is_fleet: bool) -> Attention:
    """Name fenced brokers. ``clusters``: (row of the cluster, number of its fenced brokers, the first of their ids)."""
    count = sum(number for _, number, _ in clusters)
    where = [_named(row, number, ids, is_fleet=is_fleet) for row, number, ids in clusters]
    message = f"broker is {state}" if count == 1 else f"brokers are {state}"
    return Attention.of(fact, f"{count:,}", message, first_of(where, _NAMED, "; ", "clusters"))


def _named(row: Row, count: int, ids: Sequence[int], *, is_fleet: bool) -> str:
    listed = ", ".join(map(str, ids)) + (", …" if count > len(ids) else "")
    return f"{'broker' if count == 1 else 'brokers'} {listed}{_of_cluster(row, is_fleet=is_fleet)}"


def _of_cluster(row: Row, *, is_fleet: bool) -> str:
    return f" of {row['clusterId']}" if is_fleet else ""


SECTION = ReportSection(
    "overview",
    "Overview",
    10,
    "What there was when each log ended. A partition that has no leader is under min ISR as well.",
    ("clusters", "current_topics", "current_brokers", "current_partitions", "upgrades"),
    queries,
    describe,
)
