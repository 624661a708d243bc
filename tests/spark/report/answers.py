"""What Spark would answer to the sections of a report: made up, every column of every table in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kshell.spark.report.section import Answers, Scope
from kshell.spark.report.sections import sections

NOW = 1_772_323_200_000
"""2026-03-01, in epoch milliseconds."""
HOUR, DAY = 3_600_000, 86_400_000
CLUSTER = "4L6g3nShT-eMCtK--X86sw"
DAYS = [f"2026-02-{day:02}" for day in range(1, 29)]
Row = dict[str, Any]


def nothing(scope: Scope) -> dict[str, Answers]:
    """Of a warehouse whose tables are all empty: sums over no row are one row of nulls."""
    found: dict[str, Answers] = {section.name: {name: [] for name in section.queries(scope)} for section in sections()}
    null: Row = {"gained": None, "lost": None, "leaderMs": None, "preferredShare": None}
    return found | {
        "leadership": {**found["leadership"], "all": [null]},
        "brokers": {**found["brokers"], "all": [{"sessions": 0, "fencings": None}]},
        "episodes": {**found["episodes"], "half": [{"half": None}]},
        "growth": {**found["growth"], "all": [{"records": None, "types": 0}]},
    }


def made(scope: Scope, topic: str = "orders", clusters: Sequence[str] = (CLUSTER,), of: int = 3) -> dict[str, Answers]:
    """Of clusters in which everything went wrong; ``of``: how many there are of what is listed."""
    asked = scope, topic, clusters, of
    return _of_brokers(*asked) | _of_partitions(*asked) | _of_the_rest(*asked)


def _who(scope: Scope, clusters: Sequence[str]) -> Row:
    return {"clusterId": clusters[0]} if scope.is_fleet else {"broker": 1}


def _of_brokers(scope: Scope, topic: str, clusters: Sequence[str], of: int) -> dict[str, Answers]:
    """What is now, and what brokers do."""
    who = _who(scope, clusters)
    here: Row = {"clusterId": clusters[0], "topic": topic, "partition": 0, "of": of}
    by_day = [who | {"day": day, "of": of} for day in DAYS]
    sums = {"gained": 1234, "lost": 1200, "leaderMs": 40 * DAY, "preferredShare": 0.875}
    return {
        "overview": _overview(topic, clusters, of),
        "load": _load(scope, by_day, of, clusters[0]),
        "leadership": {
            "days": [row | {"gained": place % 5} for place, row in enumerate(by_day)],
            "who": [who | sums | {"of": of}], "topics": [here | sums], "all": [sums],
        },
        "brokers": {
            "over": [row | {"fencings": 1} for row in by_day] if scope.is_fleet else _states(),
            "brokers": [here | {"broker": 1, "rack": topic, "sessions": 3, "fencings": 2, "unclean": 1,
                                "fencedMs": 3 * HOUR, "shutdownMs": 12_000, "unfencedMs": 27 * DAY}],
            "all": [{"sessions": 9, "fencings": 4}],
        },
    }  # fmt: skip


def _of_partitions(scope: Scope, topic: str, clusters: Sequence[str], of: int) -> dict[str, Answers]:
    """What happened to partitions."""
    who = _who(scope, clusters)
    here: Row = {"clusterId": clusters[0], "topic": topic, "partition": 0, "of": of}
    by_day = [who | {"day": day, "of": of} for day in DAYS]
    return {
        "availability": {
            "months": [
                {"month": month, "scope": "cluster", "name": name, "availability": 0.98765, "writeAvailability": 0.9,
                 "offlineMs": HOUR, "underMinIsrMs": 2 * HOUR, "assumedMs": 1, "partitions": 6}
                for name in clusters for month in ("2026-01", "2026-02")
            ],
            "last_month": [
                {"month": "2026-02", "scope": "cluster", "name": name, "availability": 0.98765,
                 "writeAvailability": 0.9, "bad": len(clusters)}
                for name in clusters[:3]
            ],
            "partitions": [here | {"offlineMs": HOUR, "underMinIsrMs": 2 * HOUR, "availability": 0.99}],
        },
        "episodes": {
            "ranges": [{"place": 2, "episodes": 40, "leaderless": 3, "lasting": 0},
                       {"place": 6, "episodes": 2, "leaderless": 0, "lasting": 1}],
            "half": [{"half": 45_000}],
            "longest": [here | {"fromMs": NOW, "durationMs": 2 * DAY, "ended": "lasts", "leastInSync": 1,
                                "replicationFactor": 3, "missing": [2, 3], "leaderlessMs": 0}],
        },
        "elections": {
            "days": [row | {"topic": topic, "elections": 1} for row in by_day[:3]],
            "last": [here | {"ms": NOW, "leader": 3, "previousLeader": -1, "previousIsr": [2], "leaderlessMs": 1900,
                             "evidence": "recovery-state"}],
        },
        "reassignments": {
            "rows": [here | {"fromMs": NOW, "toMs": None, "durationMs": 3 * DAY, "outcome": None,
                             "replicasBefore": [1, 2], "replicasAfter": None, "adding": [3], "removing": [1]}],
            "ends": [{"outcome": "under way", "count": 1, "half": 3 * DAY, "longest": 3 * DAY}],
        },
        "anomalies": {
            "rows": [here | {"measure": "leaderChanges", "hour": "2026-02-03T04", "value": 900, "median": 2.0,
                             "mad": 1.0, "weeks": 4, "score": 605.7}],
        },
    }  # fmt: skip


def _of_the_rest(scope: Scope, topic: str, clusters: Sequence[str], of: int) -> dict[str, Answers]:
    """Configs, access, versions, the log and its copies."""
    who = _who(scope, clusters)
    here: Row = {"clusterId": clusters[0], "topic": topic, "partition": 0, "of": of}
    by_day = [who | {"day": day, "of": of} for day in DAYS]
    return {
        "drift": {
            "unusual": [here | {"scope": "brokers", "resourceType": "BROKER", "resource": "1", "name": topic,
                                "value": "2", "usual": "1", "agreeing": 1, "members": 3, "sinceMs": NOW}],
            "names": [{"scope": "brokers", "names": 1}],
        },
        "access": {
            "days": [row | {"kind": "acl", "changes": 2} for row in by_day],
            "open": [here | {"said": f"ALLOW User:* ALL on TOPIC:{topic}", "ms": NOW, "change": "added"}],
            "last": [here | {"ms": NOW, "kind": "acl", "change": "added", "said": topic, "oldValue": None,
                             "newValue": topic}],
        },
        "upgrades": {
            "lanes": [{"clusterId": name, "feature": "metadata.version", "offset": 9, "ms": NOW - 30 * DAY,
                       "change": "first", "newLevel": 25, "newName": "4.0-IV3", "lastMs": NOW, "of": of}
                      for name in clusters],
            "versions": [{"version": "4.0-IV3", "clusters": len(clusters)}],
            "last": [here | {"ms": NOW, "feature": "metadata.version", "change": "downgrade", "before": "4.1-IV1",
                             "after": "4.0-IV3", "heldMs": DAY}],
        },
        "growth": {
            "days": [row | {"type": "TOPIC_RECORD", "records": 7} for row in by_day],
            "who": [who | {"type": "TOPIC_RECORD", "records": 196, "undecoded": 0, "last": "2026-02-28", "of": of}],
            "all": [{"records": 196, "types": 1}],
        },
        "copies": {
            "states": [{"state": "reference", "copies": 1, "one": "/a"},
                       {"state": "diverged", "copies": 2, "one": "/b"}],
            "damaged": [{"copy": "/a", "of": 1}],
            "odd": [here | {"copy": f"/copies/{topic}", "state": "diverged", "reason": "it parts at 7", "damage": [],
                            "endOffset": 9}],
            "quarantine": [here | {"kind": "batch", "reason": topic, "count": 4, "file": f"/copies/{topic}/0.log"}],
            "kinds": [{"kind": "batch", "count": 4, "clusterId": clusters[0], "reason": topic},
                      {"kind": "gap", "count": 1, "clusterId": clusters[0],
                       "reason": "offsets 65 to 66 are missing in every copy"}],
        },
    }  # fmt: skip


def _overview(topic: str, clusters: Sequence[str], of: int) -> Answers:
    bad = {"offline": 1, "underMinIsr": 2, "underReplicated": 3}
    return {
        "clusters": [{"clusterId": name, "copies": 3, "endOffset": 4711, "stateOffset": 4711,
                      "lastTimestampMs": NOW} for name in clusters],
        "topics": [{"clusterId": name, "topics": 2, "partitions": 6, **bad} for name in clusters],
        "brokers": [{"clusterId": name, "brokers": 3, "fenced": 1, "ids": [2], "idle": 0, "idleIds": []}
                    for name in clusters],
        "versions": [{"clusterId": name, "version": "4.0-IV3"} for name in clusters],
        "worst": [{"clusterId": clusters[0], "name": topic, "partitions": 3, "replicationFactor": 3, "minIsr": 2,
                   "of": of, **bad}],
    }  # fmt: skip


def _states() -> list[Row]:
    held = [("registered", NOW - DAY, NOW - DAY + 9000), ("unfenced", NOW - DAY + 9000, NOW), ("fenced", NOW, None)]
    return [
        {"broker": 1, "state": state, "fromMs": start, "toMs": end, "durationMs": (end or NOW) - start, "of": 3}
        for state, start, end in held
    ]


def _load(scope: Scope, by_day: Sequence[Row], of: int, cluster: str) -> Answers:
    skew = {"clusterId": cluster, "level": "broker", "measure": "leaders", "members": 3, "mean": 2.0, "most": 6.0,
            "busiest": "1", "mostToMean": 3.0, "variation": 1.4, "of": of}  # fmt: skip
    brokers = [{"day": "2026-02-28", "broker": at, "rack": None, "leaders": 6.0 - at, "replicas": 6.0, "preferred": 2.0,
                "of": 3} for at in range(3)]  # fmt: skip
    found: dict[str, Sequence[Row]] = {
        "days": [{"measure": "leaders by broker"} | row | {"mostToMean": 3.0} for row in by_day],
        "skews": [skew],
        "racks": [{"clusterId": cluster, "day": "2026-02-28", "racks": 2, "spread": 0.5, "oneRack": 0.25, "of": of}],
    }
    return found if scope.is_fleet else found | {"brokers": brokers}
