"""What there is, and what is wrong with it now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kshell.commands.base.result import Row
from kshell.plots.base.look import counted
from kshell.spark.report.base.asking import in_cluster, of, some
from kshell.spark.report.base.told import Answers, Attention, Column, Drawing, Scope, Section, Table, Told

_MOST = 40
_TROUBLES = ("offline", "underMinIsr", "underReplicated", "fenced")


def asks(scope: Scope) -> Mapping[str, str]:
    """A row a cluster, of each table; and the worst topics."""
    bad = "offline > 0 OR underMinIsr > 0 OR underReplicated > 0"
    return {
        "clusters": "SELECT clusterId, copies, endOffset, lastTimestampMs FROM {clusters} ORDER BY clusterId",
        "topics": """
            SELECT clusterId, count(*) AS topics, sum(partitions) AS partitions, sum(offline) AS offline,
                sum(underMinIsr) AS underMinIsr, sum(underReplicated) AS underReplicated
            FROM {current_topics} GROUP BY clusterId
        """,
        "brokers": """
            SELECT clusterId, count(*) AS brokers, count_if(fenced) AS fenced,
                slice(array_sort(collect_list(CASE WHEN fenced THEN id END)), 1, 10) AS ids
            FROM {current_brokers} GROUP BY clusterId
        """,
        "versions": """
            SELECT clusterId, max_by(coalesce(newName, cast(newLevel AS string)), offset) AS version
            FROM {upgrades} WHERE feature = 'metadata.version' GROUP BY clusterId
        """,
        "worst": some(
            "clusterId, name, partitions, offline, underMinIsr, underReplicated, replicationFactor, minIsr",
            f"FROM {{current_topics}} WHERE {bad}",
            "offline DESC, underMinIsr DESC, underReplicated DESC, clusterId, name", 15,
        ),
    }  # fmt: skip


def tell(scope: Scope, answers: Answers) -> Told:
    """A row a cluster, the worst first; the worst topics."""
    rows = _joined(answers)
    totals = {name: sum(row[name] for row in rows) for name in ("topics", "partitions", "brokers", *_TROUBLES)}
    things = ("broker", "topic", "partition")
    sizes = ", ".join(counted(totals[f"{thing}s"], thing) for thing in things)
    lead = f"{counted(len(rows), 'cluster')}, {sizes}." if scope.is_fleet else f"{sizes}."
    columns = in_cluster(
        scope,
        Column("version", "metadata.version"), Column("brokers", "brokers", "count"),
        Column("fenced", "fenced", "count"), Column("topics", "topics", "count"),
        Column("partitions", "partitions", "count"), Column("offline", "offline", "count"),
        Column("underMinIsr", "under min ISR", "count"), Column("underReplicated", "under-replicated", "count"),
        Column("endOffset", "log end offset", "count"), Column("lastTimestampMs", "last record (UTC)", "time"),
    )  # fmt: skip
    worst = sorted(rows, key=lambda row: (*(-row[name] for name in (*_TROUBLES, "partitions")), row["clusterId"]))
    tables = [
        Table(
            "Clusters, those with trouble first" if scope.is_fleet else "The cluster", columns, worst[:_MOST], len(rows)
        )
    ]
    if answers["worst"]:
        tables.append(_topics(scope, answers["worst"]))
    drawings = (Drawing(worst),) if scope.is_fleet and any(row["partitions"] for row in rows) else ()
    return Told(lead, drawings, tuple(tables), tuple(_attention(totals, rows, answers)))


def _joined(answers: Answers) -> list[dict[str, Any]]:
    """A row a cluster out of all answers; what has none is none of it."""
    parts = [{row["clusterId"]: row for row in answers[name]} for name in ("topics", "brokers", "versions")]
    counts = ("topics", "partitions", "brokers", *_TROUBLES)
    made = []
    for row in answers["clusters"]:
        joined: dict[str, Any] = dict.fromkeys(counts, 0) | {"version": None} | dict(row)
        for part in parts:
            joined |= {name: value for name, value in part.get(row["clusterId"], {}).items() if value is not None}
        made.append(joined)
    return made


def _topics(scope: Scope, rows: Sequence[Row]) -> Table:
    columns = in_cluster(
        scope,
        Column("name", "topic"), Column("partitions", "partitions", "count"), Column("offline", "offline", "count"),
        Column("underMinIsr", "under min ISR", "count"), Column("underReplicated", "under-replicated", "count"),
        Column("replicationFactor", "replication factor", "count"), Column("minIsr", "min.insync.replicas", "count"),
    )  # fmt: skip
    return Table("Topics that lack leaders or in-sync replicas now, the worst first", columns, rows, of(rows))


_NOW = {
    "offline": ("critical", "partition has no leader now", "partitions have no leader now"),
    "underMinIsr": ("error", "partition is under min ISR now", "partitions are under min ISR now"),
    "underReplicated": ("warning", "partition lacks in-sync replicas now", "partitions lack in-sync replicas now"),
}


def _attention(totals: Mapping[str, int], rows: Sequence[Row], answers: Answers) -> list[Attention]:
    found = []
    for name, (level, one, many) in _NOW.items():
        if totals[name]:
            bad = sorted((row for row in answers["worst"] if row[name]), key=lambda row: -row[name])
            worst = ", ".join(f"{row['name']} ({row[name]:,})" for row in bad[:3])
            words = one if totals[name] == 1 else many
            found.append(Attention(level, f"{totals[name]:,}", words, f"most in {worst}"))
    if totals["fenced"]:
        where = [_fenced(row, len(rows) > 1) for row in rows if row["fenced"]]
        words = "broker is fenced now" if totals["fenced"] == 1 else "brokers are fenced now"
        more = f" and {len(where) - 3:,} more clusters" if len(where) > 3 else ""
        found.append(Attention("warning", f"{totals['fenced']:,}", words, f"{'; '.join(where[:3])}{more}"))
    return found


def _fenced(row: Row, is_one_of_many: bool) -> str:
    ids = ", ".join(map(str, row["ids"])) + (", …" if row["fenced"] > len(row["ids"]) else "")
    where = f" of {row['clusterId']}" if is_one_of_many else ""
    return f"{'broker' if row['fenced'] == 1 else 'brokers'} {ids}{where}"


SECTION = Section(
    "overview", "Overview", 10,
    "What there was when each log ended. A partition that has no leader is under min ISR as well.",
    ("clusters", "current_topics", "current_brokers", "upgrades"),
    asks, tell,
)  # fmt: skip
