"""Records by type and day, and unusual hours, in plain Python."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable

from tests.spark.gold.expected.brokers import fencings, known_time, sessions
from tests.spark.gold.expected.spans import (
    HOUR,
    Cluster,
    Row,
    Span,
    day,
    leader_changes,
    partitions,
    utc,
)


def metadata_growth(cluster: Cluster) -> list[Row]:
    """By type and day."""
    counts = Counter((record.type, day(record.ms)) for record in cluster.records)
    return [
        {
            "clusterId": cluster.name, "day": name, "type": kind, "records": count, "undecoded": 0,
            "total": sum(n for (other, at), n in counts.items() if other == kind and at <= name),
        }
        for (kind, name), count in counts.items()
    ]  # fmt: skip


def _events(cluster: Cluster) -> dict[str, Counter[int]]:
    """How often, by what and by the number of the hour."""
    events: dict[str, Counter[int]] = {
        "leaderChanges": Counter(), "isrShrinks": Counter(), "fencings": Counter()
    }  # fmt: skip
    for of_partition in partitions(cluster):
        _count(events["leaderChanges"], (span for span, _ in leader_changes(of_partition)))
        shrunk = (s for s in of_partition if s.before and not set(s.before["isr"]) <= set(s.of["isr"]))
        _count(events["isrShrinks"], shrunk)
    for session in (session for of_broker in sessions(cluster) for session in of_broker):
        _count(events["fencings"], fencings(session))
    return events


def hourly_churn(cluster: Cluster) -> list[Row]:
    """By hour."""
    events = _events(cluster)
    return [
        {
            "clusterId": cluster.name, "hour": utc(hour * HOUR, "%Y-%m-%dT%H"), "hourMs": hour * HOUR,
            **{name: counted[hour] for name, counted in events.items()},
        }
        for hour in set().union(*events.values())
    ]  # fmt: skip


def anomalies(cluster: Cluster) -> list[Row]:
    """Unusual hours."""
    begin, end = known_time(cluster)
    hours = range(-(-begin // HOUR), end // HOUR)
    rows = []
    for measure, counted in _events(cluster).items():
        for hour in hours:
            others = [counted[other] for other in hours if other != hour and (other - hour) % 168 == 0]
            if len(others) < 3:
                continue
            median = statistics.median(others)
            mad = statistics.median(abs(value - median) for value in others)
            score = (counted[hour] - median) / max(1.4826 * mad, 1)
            if abs(score) >= 3.5:
                rows.append(
                    {
                        "clusterId": cluster.name, "measure": measure, "hour": utc(hour * HOUR, "%Y-%m-%dT%H"),
                        "hourMs": hour * HOUR, "value": counted[hour], "weeks": len(others), "median": float(median),
                        "mad": float(mad), "score": score,
                    }
                )  # fmt: skip
    return rows


def _count(into: Counter[int], found: Iterable[Span]) -> None:
    into.update(span.of["validFromMs"] // HOUR for span in found)
