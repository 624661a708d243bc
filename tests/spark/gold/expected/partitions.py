"""Leaders, in-sync replicas, availability, reassignments and unclean elections, in plain Python."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from tests.spark.gold.expected.spans import (
    Cluster,
    Row,
    Span,
    day,
    factor,
    leader_changes,
    partitions,
    pieces,
    place,
    spans,
)
from tests.spark.gold.replay import Version


def leadership(cluster: Cluster) -> list[Row]:
    """The table of that name, as all below."""
    sums: dict[tuple[Any, ...], Counter[str]] = defaultdict(Counter)

    def at(version: Version, broker: int, day_of: str) -> Counter[str]:
        return sums[(version["clusterId"], day_of, version["topic"], version["topicId"], broker)]

    for of_partition in partitions(cluster):
        for span in of_partition:
            leader = span.of["leader"]
            for name, begin, end in pieces(span.begin, span.end, "%Y-%m-%d") if leader >= 0 else ():
                counts = at(span.of, leader, name)
                counts["leaderMs"] += end - begin
                counts["preferredMs"] += (end - begin) * (span.of["replicas"][0] == leader)
        for span, last in leader_changes(of_partition):
            when = day(span.of["validFromMs"])
            gained = at(span.of, span.of["leader"], when)
            gained["gained"] += 1
            gained["preferredGained"] += span.of["replicas"][0] == span.of["leader"]
            at(span.of, last, when)["lost"] += 1
    names = ("leaderMs", "preferredMs", "gained", "lost", "preferredGained")
    return [
        dict(zip(("clusterId", "day", "topic", "topicId", "broker"), key, strict=True))
        | {name: counts[name] for name in names}
        | {"preferredShare": counts["preferredMs"] / counts["leaderMs"] if counts["leaderMs"] else None}
        for key, counts in sums.items()
    ]


def isr_episodes(cluster: Cluster) -> list[Row]:
    """Runs of versions with a small ISR."""
    rows = []
    for of_partition in partitions(cluster):
        run: list[Span] = []
        for span in [*of_partition, None]:
            if span is not None and len(span.of["isr"]) < factor(span.of):
                run.append(span)
            elif run:
                rows.append(_isr_episode(run))
                run = []
    return rows


def _isr_episode(run: list[Span]) -> Row:
    first, last = run[0], run[-1]
    steps = [(span.before, span.of) for span in run if span.before]
    grown = [*steps, (last.of, last.after)] if last.after else steps
    end = None if last.of["validToOffset"] is None else "full" if last.after else "deleted"
    return place(first.of) | {
        "fromOffset": first.of["validFromOffset"],
        "fromMs": first.of["validFromMs"],
        "toOffset": last.of["validToOffset"],
        "toMs": last.of["validToMs"],
        "durationMs": last.end - first.begin,
        "outcome": end,
        "replicationFactor": max(factor(span.of) for span in run),
        "leastInSync": min(len(span.of["isr"]) for span in run),
        "shrinks": sum(not set(old["isr"]) <= set(new["isr"]) for old, new in steps),
        "expands": sum(new is not None and not set(new["isr"]) <= set(old["isr"]) for old, new in grown),
        "missing": sorted({one for span in run for one in span.of["replicas"] if one not in span.of["isr"]}),
        "leaderlessMs": sum(span.ms for span in run if span.of["leader"] == -1),
    }


class _MinIsr:
    """min.insync.replicas at any moment."""

    def __init__(self, cluster: Cluster) -> None:
        self.spans: dict[tuple[str, str], list[tuple[int, int, int]]] = defaultdict(list)
        for of_config in spans(cluster, "configs", "resourceType", "resourceName", "name"):
            for span in of_config:
                if span.of["name"] == "min.insync.replicas" and span.of["value"].strip().isdigit():
                    key = span.of["resourceType"], span.of["resourceName"]
                    self.spans[key].append((span.begin, span.end, int(span.of["value"])))

    def pieces(self, topic: str, leader: int, begin: int, end: int) -> Iterator[tuple[int, int, int | None]]:
        """(begin, end, value)."""
        layers = [self.spans[("TOPIC", topic)], self.spans[("BROKER", str(leader))], self.spans[("BROKER", "")]]
        edges = {edge for layer in layers for span in layer for edge in span[:2] if begin < edge < end}
        cuts = [begin, *sorted(edges), end]
        for start, stop in pairwise(cuts):
            held = [value for layer in layers for since, until, value in layer if since <= start < until]
            yield start, stop, held[0] if held else None


def _judged(cluster: Cluster) -> Iterator[tuple[str, Version, Counter[str]]]:
    least = _MinIsr(cluster)
    for of_partition in partitions(cluster):
        for span in of_partition:
            version, in_sync = span.of, len(span.of["isr"])
            for month, begin, end in pieces(span.begin, span.end, "%Y-%m"):
                for start, stop, known in least.pieces(version["topic"], version["leader"], begin, end):
                    ms, value = stop - start, 1 if known is None else known
                    offline = version["leader"] == -1
                    yield (
                        month,
                        version,
                        Counter(
                            wholeMs=ms,
                            offlineMs=ms * offline,
                            underMinIsrMs=ms * (offline or in_sync < value),
                            unwritableMs=ms * (offline or in_sync < min(value, max(len(version["replicas"]), 1))),
                            atMinIsrMs=ms * (in_sync == value),
                            underReplicatedMs=ms * (in_sync < factor(version)),
                            assumedMs=ms * (known is None),
                        ),
                    )


_MEASURED = ("offlineMs", "underMinIsrMs", "unwritableMs", "atMinIsrMs", "underReplicatedMs", "assumedMs")


def _shares(sums: Counter[str], whole: str) -> Row:
    return {name: sums[name] for name in _MEASURED} | {
        whole: sums["wholeMs"],
        "availability": 1 - sums["offlineMs"] / sums["wholeMs"],
        "writeAvailability": 1 - sums["unwritableMs"] / sums["wholeMs"],
    }


def partition_availability(cluster: Cluster) -> list[Row]:
    """By partition."""
    sums: dict[tuple[Any, ...], Counter[str]] = defaultdict(Counter)
    for month, version, measured in _judged(cluster):
        sums[(version["clusterId"], month, version["topic"], version["topicId"], version["partition"])] += measured
    names = ("clusterId", "month", "topic", "topicId", "partition")
    return [dict(zip(names, key, strict=True)) | _shares(counts, "existedMs") for key, counts in sums.items()]


def availability(cluster: Cluster) -> list[Row]:
    """By topic, broker, cluster."""
    sums: dict[tuple[Any, ...], Counter[str]] = defaultdict(Counter)
    seen: dict[tuple[Any, ...], set[Any]] = defaultdict(set)
    for month, version, measured in _judged(cluster):
        scopes = [("topic", version["topic"]), ("cluster", cluster.name)]
        for scope in [*scopes, *(("broker", str(broker)) for broker in set(version["replicas"]))]:
            key = (cluster.name, month, *scope)
            sums[key] += measured
            seen[key].add((version["topicId"], version["partition"]))
    names = ("clusterId", "month", "scope", "name")
    return [
        dict(zip(names, key, strict=True)) | _shares(counts, "partitionMs") | {"partitions": len(seen[key])}
        for key, counts in sums.items()
    ]


def _moves(version: Version) -> bool:
    return bool(version["addingReplicas"] or version["removingReplicas"])


def reassignments(cluster: Cluster) -> list[Row]:
    """Runs of versions with replicas on their way, and those of one record."""
    rows = []
    for of_partition in partitions(cluster):
        run: list[Span] = []
        for span in [*of_partition, None]:
            if span is not None and _moves(span.of):
                run.append(span)
                continue
            if run:
                rows.append(_reassignment(run))
            before = span.before if span is not None else None
            if not run and span is not None and before and before["replicas"] != span.of["replicas"]:
                old, new = before["replicas"], span.of["replicas"]
                offset, ms = span.of["validFromOffset"], span.of["validFromMs"]
                rows.append(
                    place(span.of)
                    | {"fromOffset": offset, "fromMs": ms, "toOffset": offset, "toMs": ms, "durationMs": 0,
                       "outcome": "at-once", "replicasBefore": old, "replicasAfter": new,
                       "adding": sorted({*new} - {*old}), "removing": sorted({*old} - {*new}), "changes": 0}
                )  # fmt: skip
            run = []
    return rows


def _reassignment(run: list[Span]) -> Row:
    first, last = run[0], run[-1]
    after = last.after["replicas"] if last.after else None
    if last.of["validToOffset"] is None:
        end = None
    elif after is None:
        end = "deleted"
    else:
        done = {*last.of["addingReplicas"]} <= {*after} and not {*last.of["removingReplicas"]} & {*after}
        end = "completed" if done else "cancelled"
    moves = [(sorted(span.of["addingReplicas"]), sorted(span.of["removingReplicas"])) for span in run]
    return place(first.of) | {
        "fromOffset": first.of["validFromOffset"],
        "fromMs": first.of["validFromMs"],
        "toOffset": last.of["validToOffset"],
        "toMs": last.of["validToMs"],
        "durationMs": last.end - first.begin,
        "outcome": end,
        "replicasBefore": first.before["replicas"] if first.before else None,
        "replicasAfter": after,
        "adding": sorted({broker for span in run for broker in span.of["addingReplicas"]}),
        "removing": sorted({broker for span in run for broker in span.of["removingReplicas"]}),
        "changes": sum(old != new for old, new in pairwise(moves)),
    }


def unclean_elections(cluster: Cluster) -> list[Row]:
    """Leaders that were not in sync."""
    rows = []
    for of_partition in partitions(cluster):
        last: int | None = None
        for at, span in enumerate(of_partition):
            old, new = span.before, span.of
            leader = new["leader"]
            if old and leader >= 0 and leader != old["leader"]:
                recovers = new["leaderRecoveryState"] == "RECOVERING"
                stranger = leader not in old["isr"] and leader not in old["elr"]
                if recovers or (stranger and new["isr"] == [leader] and new["replicas"] == old["replicas"]):
                    rows.append(place(new) | _election(of_partition, at, recovers) | {"previousLeader": last})
            last = leader if leader >= 0 else last
    return rows


def _election(of_partition: list[Span], at: int, recovers: bool) -> Row:
    span = of_partition[at]
    assert span.before is not None
    leaderless = 0
    for earlier in reversed(of_partition[:at]):
        if earlier.of["leader"] >= 0:
            break
        leaderless += earlier.ms
    healed = next((one for one in of_partition[at:] if one.of["leaderRecoveryState"] == "RECOVERED"), None)
    until = healed.begin if healed else of_partition[-1].end
    return {
        "offset": span.of["validFromOffset"],
        "ms": span.of["validFromMs"],
        "day": day(span.of["validFromMs"]),
        "evidence": "recovery-state" if recovers else "isr",
        "leader": span.of["leader"],
        "previousIsr": span.before["isr"],
        "previousElr": span.before["elr"],
        "leaderlessMs": leaderless,
        "recoveredMs": healed.of["validFromMs"] if recovers and healed else None,
        "recoveringMs": until - span.begin if recovers else None,
    }
