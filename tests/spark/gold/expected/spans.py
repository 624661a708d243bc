"""Versions of a cluster with the times at which they held: what the computations of gold tables share."""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.spark.gold.replay import Record, Version, Versions

Row = dict[str, Any]
HOUR = 3_600_000
DAY = 24 * HOUR


class Cluster(NamedTuple):
    """What is known of a cluster: its versions, the lines of its log, and the time of the last one."""

    name: str
    versions: Versions
    records: list[Record]
    last_ms: int


class Span(NamedTuple):
    """A version, when it was so, and what was before and after it of the same key."""

    of: Version
    begin: int
    end: int
    before: Version | None
    after: Version | None

    @property
    def ms(self) -> int:
        """How long."""
        return self.end - self.begin


def spans(cluster: Cluster, table: str, *keys: str) -> Iterator[list[Span]]:
    """The spans of each key, in order."""
    by_key: dict[tuple[Any, ...], list[Version]] = defaultdict(list)
    for version in cluster.versions.get(table, []):
        by_key[tuple(version[key] for key in keys)].append(version)
    for versions in by_key.values():
        versions.sort(key=lambda one: one["validFromOffset"])
        made, latest = [], 0
        for at, version in enumerate(versions):
            latest = min(max(latest, version["validFromMs"]), cluster.last_ms)
            until = version["validToMs"] if version["validToMs"] is not None else cluster.last_ms
            end = max(latest, min(until, cluster.last_ms))
            before = versions[at - 1] if at else None
            after = versions[at + 1] if at + 1 < len(versions) else None
            made.append(
                Span(
                    version, latest, end,
                    before if before and before["validToOffset"] == version["validFromOffset"] else None,
                    after if after and after["validFromOffset"] == version["validToOffset"] else None,
                )
            )  # fmt: skip
        yield made


def partitions(cluster: Cluster) -> Iterator[list[Span]]:
    """Those of partitions."""
    return spans(cluster, "partitions", "topicId", "partition")


def utc(ms: int, form: str) -> str:
    """A time as text."""
    return datetime.datetime.fromtimestamp(ms // 1000, datetime.UTC).strftime(form)


def day(ms: int) -> str:
    """Its day."""
    return utc(ms, "%Y-%m-%d")


def pieces(begin: int, end: int, form: str) -> Iterator[tuple[str, int, int]]:
    """(day or month, begin, end) of what lies between, one by one."""
    while begin < end:
        name, cut = utc(begin, form), begin
        while cut < end and utc(cut, form) == name:
            cut = (cut // DAY + 1) * DAY
        yield name, begin, min(cut, end)
        begin = min(cut, end)


def factor(version: Version) -> int:
    """The replication factor."""
    return len(version["replicas"]) - len(version["addingReplicas"])


def place(version: Version) -> Row:
    """The columns that name a partition."""
    return {name: version[name] for name in ("clusterId", "topic", "topicId", "partition")}


def leader_changes(of_partition: list[Span]) -> Iterator[tuple[Span, int]]:
    """(span, the broker that led before) of each change from one broker to another."""
    last = -1
    for span in of_partition:
        leader = span.of["leader"]
        if leader >= 0:
            if last not in (-1, leader):
                yield span, last
            last = leader
