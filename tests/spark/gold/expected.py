"""Gold tables computed a second time, in plain Python, out of replayed versions and the lines of ``dump``.

Written after the docs of the columns, not after the pipeline's expressions: loops over versions, day by day.
"""

from __future__ import annotations

import datetime
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
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
                            atMinIsrMs=ms * (in_sync == value),
                            underReplicatedMs=ms * (in_sync < factor(version)),
                            assumedMs=ms * (known is None),
                        ),
                    )


_MEASURED = ("offlineMs", "underMinIsrMs", "atMinIsrMs", "underReplicatedMs", "assumedMs")


def _shares(sums: Counter[str], whole: str) -> Row:
    return {name: sums[name] for name in _MEASURED} | {
        whole: sums["wholeMs"],
        "availability": 1 - sums["offlineMs"] / sums["wholeMs"],
        "writeAvailability": 1 - sums["underMinIsrMs"] / sums["wholeMs"],
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


# --- brokers ---------------------------------------------------------------------------------------------------------


def sessions(cluster: Cluster) -> Iterator[list[list[Span]]]:
    """The registrations of each broker, each a list of its versions."""
    for of_broker in spans(cluster, "brokers", "id"):
        made: list[list[Span]] = []
        for span in of_broker:
            if span.before is not None and span.before["epoch"] == span.of["epoch"]:
                made[-1].append(span)
            else:
                made.append([span])
        yield made


def state_of(span: Span, session: list[Span]) -> str:
    """What a broker is."""
    if not span.of["fenced"]:
        return "controlled-shutdown" if span.of["inControlledShutdown"] else "unfenced"
    served = any(not one.of["fenced"] and one.begin <= span.begin for one in session[: session.index(span)])
    return "fenced" if served else "registered"


def broker_states(cluster: Cluster) -> list[Row]:
    """Lanes."""
    rows = []
    for of_broker in sessions(cluster):
        lanes: list[Row] = []
        ends: list[int] = []
        for number, session in enumerate(of_broker):
            for span in session:
                state = state_of(span, session)
                if not (lanes and span is not session[0] and lanes[-1]["state"] == state):
                    lanes.append(
                        {"epoch": span.of["epoch"], "state": state, "fromOffset": span.of["validFromOffset"],
                         "fromMs": span.of["validFromMs"], "durationMs": 0}
                    )  # fmt: skip
                lanes[-1]["durationMs"] += span.ms
                lanes[-1] |= {"toOffset": span.of["validToOffset"], "toMs": span.of["validToMs"]}
            last = session[-1]
            if last.of["validToOffset"] is not None and last.after is None:
                later = of_broker[number + 1][0] if number + 1 < len(of_broker) else None
                until = min(later.of["validFromMs"], cluster.last_ms) if later else cluster.last_ms
                lanes.append(
                    {"epoch": None, "state": "unregistered", "fromOffset": last.of["validToOffset"],
                     "fromMs": last.of["validToMs"], "toOffset": later.of["validFromOffset"] if later else None,
                     "toMs": later.of["validFromMs"] if later else None, "durationMs": max(0, until - last.end)}
                )  # fmt: skip
            ends.append(last.end)
        for at, lane in enumerate(lanes):
            following = lanes[at + 1]["state"] if at + 1 < len(lanes) else None
            rows.append({"clusterId": cluster.name, "broker": of_broker[0][0].of["id"], **lane, "next": following})
    return rows


def broker_sessions(cluster: Cluster) -> list[Row]:
    """Registrations."""
    rows = []
    for session in (session for of_broker in sessions(cluster) for session in of_broker):
        first, last = session[0], session[-1]
        served = next((span for span in session if not span.of["fenced"]), None)
        lasts = last.of["validToOffset"] is None
        spent: Counter[str] = Counter()
        for span in session:
            spent["fenced" if span.of["fenced"] else state_of(span, session)] += span.ms
        down = state_of(last, session) == "fenced"
        rows.append(
            {
                "clusterId": cluster.name, "broker": first.of["id"], "epoch": first.of["epoch"],
                "incarnationId": last.of["incarnationId"], "rack": last.of["rack"],
                "fromOffset": first.of["validFromOffset"], "fromMs": first.of["validFromMs"],
                "firstUnfencedMs": served.of["validFromMs"] if served else None,
                "startMs": served.begin - first.begin if served else None,
                "toOffset": last.of["validToOffset"], "toMs": last.of["validToMs"],
                "outcome": None if lasts else "reregistered" if last.after else "unregistered",
                "isClean": None if lasts and not down else last.of["inControlledShutdown"],
                "durationMs": last.end - first.begin,
                "unfencedMs": spent["unfenced"], "shutdownMs": spent["controlled-shutdown"],
                "fencedMs": spent["fenced"], "fencings": len(list(fencings(session))),
            }
        )  # fmt: skip
    return rows


def fencings(session: list[Span]) -> Iterator[Span]:
    """The versions with which an unfenced broker was fenced."""
    for old, new in pairwise(session):
        if new.of["fenced"] and not old.of["fenced"]:
            yield new


def _racks(cluster: Cluster) -> dict[tuple[str, int], str | None]:
    found: dict[tuple[str, int], tuple[int, str | None]] = {}
    for of_broker in spans(cluster, "brokers", "id"):
        for span in of_broker:
            names = [name for name, _, _ in pieces(span.begin, max(span.end, span.begin + 1), "%Y-%m-%d")]
            for name in names:
                key = name, span.of["id"]
                found[key] = max(found.get(key, (-2, None)), (span.of["validFromOffset"], span.of["rack"]), key=_first)
    return {key: rack for key, (_, rack) in found.items()}


def _first(pair: tuple[int, Any]) -> int:
    return pair[0]


def _covered(cluster: Cluster) -> tuple[int, int]:
    begun = [row["validFromMs"] for name in ("partitions", "brokers") for row in cluster.versions.get(name, [])]
    return min(ms for ms in begun if ms > 0), cluster.last_ms


def broker_load(cluster: Cluster) -> list[Row]:
    """Averages by day."""
    sums: dict[tuple[str, int], Counter[str]] = defaultdict(Counter)
    racks = _racks(cluster)
    for key in racks:
        sums[key] += Counter()
    for span in (span for of_partition in partitions(cluster) for span in of_partition):
        version = span.of
        for name, begin, end in pieces(span.begin, span.end, "%Y-%m-%d"):
            for broker in {*version["replicas"], *version["isr"], version["leader"]} - {-1}:
                counts = sums[(name, broker)]
                counts["leaderMs"] += (end - begin) * (broker == version["leader"])
                counts["replicaMs"] += (end - begin) * (broker in version["replicas"])
                counts["inSyncMs"] += (end - begin) * (broker in version["isr"])
                counts["preferredMs"] += (end - begin) * (broker == version["replicas"][0])
    covered: Counter[str] = Counter()
    for name, begin, end in pieces(*_covered(cluster), "%Y-%m-%d"):
        covered[name] += end - begin
    rows = []
    for (name, broker), counts in sums.items():
        whole = {kind: sum(sums[key][kind] for key in sums if key[0] == name) for kind in ("leaderMs", "replicaMs")}
        row: Row = {"clusterId": cluster.name, "day": name, "broker": broker, "rack": racks.get((name, broker))}
        row |= {kind: counts[kind] for kind in ("leaderMs", "replicaMs", "inSyncMs", "preferredMs")}
        row["coveredMs"] = covered[name]
        for kind, of in (("leaders", "leaderMs"), ("replicas", "replicaMs"), ("preferred", "preferredMs")):
            row[kind] = counts[of] / covered[name] if covered[name] else None
        for kind, of in (("leaderShare", "leaderMs"), ("replicaShare", "replicaMs")):
            row[kind] = counts[of] / whole[of] if whole[of] else None
        rows.append(row)
    return rows


def skew(cluster: Cluster) -> list[Row]:
    """Measures over brokers and racks."""
    values: dict[tuple[str, str, str], dict[tuple[int, str], float]] = defaultdict(lambda: defaultdict(float))
    for row in broker_load(cluster):
        for measure in ("leaders", "replicas"):
            if row[measure] is not None:
                values[(row["day"], "broker", measure)][(row["broker"], str(row["broker"]))] += row[measure]
                if row["rack"] is not None:
                    values[(row["day"], "rack", measure)][(0, row["rack"])] += row[measure]
    rows = []
    for (name, level, measure), of in values.items():
        mean, most, spread = statistics.fmean(of.values()), max(of.values()), statistics.pstdev(of.values())
        rows.append(
            {
                "clusterId": cluster.name, "day": name, "level": level, "measure": measure, "members": len(of),
                "mean": mean, "least": min(of.values()), "most": most, "deviation": spread,
                "busiest": min(key for key, value in of.items() if value == most)[1],
                "variation": spread / mean if mean else None, "mostToMean": most / mean if mean else None,
            }
        )  # fmt: skip
    return rows


def rack_spread(cluster: Cluster) -> list[Row]:
    """Racks that replicas are in."""
    racks = {key: rack for key, rack in _racks(cluster).items() if rack is not None}
    sums: dict[str, Counter[str]] = {name: Counter() for name, _ in racks}
    count = {name: len({rack for (one, _), rack in racks.items() if one == name}) for name in sums}
    for span in (span for of_partition in partitions(cluster) for span in of_partition):
        for name, begin, end in pieces(span.begin, span.end, "%Y-%m-%d"):
            if name not in sums:
                continue
            ms, replicas = end - begin, span.of["replicas"]
            places = {racks.get((name, broker)) for broker in replicas}
            if None in places:
                sums[name]["unknownMs"] += ms
                continue
            sums[name]["partitionMs"] += ms
            sums[name]["oneRackMs"] += ms * (len(replicas) > 1 and len(places) == 1)
            sums[name]["narrowMs"] += ms * (len(places) < min(len(replicas), count[name]))
    return [
        {
            "clusterId": cluster.name, "day": name, "racks": count[name],
            **{kind: of[kind] for kind in ("partitionMs", "oneRackMs", "narrowMs", "unknownMs")},
            "spread": 1 - of["narrowMs"] / of["partitionMs"] if of["partitionMs"] else None,
        }
        for name, of in sums.items()
    ]  # fmt: skip


# --- partitions, again -----------------------------------------------------------------------------------------------


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


# --- changes ---------------------------------------------------------------------------------------------------------


def changes(cluster: Cluster, table: str, *keys: str) -> Iterator[tuple[Row, Version | None, Version | None]]:
    """(columns of any change, what was before, what is after)."""
    for of_key in spans(cluster, table, *keys):
        for at, span in enumerate(of_key):
            before = of_key[at - 1] if span.before else None
            row = {"clusterId": cluster.name, "offset": span.of["validFromOffset"], "ms": span.of["validFromMs"]}
            row |= {"change": "changed" if before else "added", "heldMs": before.ms if before else None}
            row |= {"day": day(row["ms"]), "isCurrent": span.of["isCurrent"]}
            yield row, span.before, span.of
            if span.of["validToOffset"] is not None and span.after is None:
                row = {"clusterId": cluster.name, "offset": span.of["validToOffset"], "ms": span.of["validToMs"]}
                row |= {"change": "removed", "heldMs": span.ms, "day": day(row["ms"]), "isCurrent": False}
                yield row, span.of, None


def config_changes(cluster: Cluster) -> list[Row]:
    """Of configs."""
    rows = []
    for row, old, new in changes(cluster, "configs", "resourceType", "resourceName", "name"):
        version = new or old or {}
        row |= {name: version[name] for name in ("resourceType", "resourceName", "name")}
        row |= {"change": row["change"].replace("added", "set"), "oldValue": old and old["value"]}
        row |= {"newValue": new and new["value"]}
        del row["isCurrent"]
        rows.append(row)
    return rows


def upgrades(cluster: Cluster) -> list[Row]:
    """Of features, and of kraft.version by control records."""
    told: list[Version] = []
    for record in cluster.records:
        if record.type == "KRAFT_VERSION" and (not told or told[-1]["level"] != record.data["kRaftVersion"]):
            level = record.data["kRaftVersion"]
            begun: Version = {"validFromOffset": record.offset, "validFromMs": record.ms}
            if told:
                told[-1] |= {"validToOffset": record.offset, "validToMs": record.ms, "isCurrent": False}
            open_one = {"validToOffset": None, "validToMs": None, "isCurrent": True}
            told.append({"name": "kraft.version", "level": level, **begun, **open_one})
    both = cluster._replace(versions={"features": [*cluster.versions.get("features", []), *told]})
    rows = []
    for row, old, new in changes(both, "features", "name"):
        feature = (new or old or {})["name"]
        levels: list[Any] = [version and version["level"] for version in (old, new)]
        if row["change"] != "removed":
            row["change"] = "first" if old is None else "upgrade" if levels[1] > levels[0] else "downgrade"
        names = [_NAMES.get(level) if feature == "metadata.version" else None for level in levels]
        del row["isCurrent"]
        row |= {"feature": feature, "oldLevel": levels[0], "newLevel": levels[1]}
        rows.append(row | {"oldName": names[0], "newName": names[1]})
    return rows


_NAMES = {21: "3.9-IV0", 25: "4.0-IV3", 26: "4.1-IV0", 30: "4.3-IV0"}
"""Of the levels in the logs of the tests (``MetadataVersion.java``)."""


def access_audit(cluster: Cluster) -> list[Row]:
    """Of ACLs, quotas, users and tokens."""
    rows = []
    kinds = {"acls": ("id",), "quotas": ("name", "key"), "users": ("name", "mechanism"), "tokens": ("tokenId",)}
    for table, keys in kinds.items():
        for plain, old, new in changes(cluster, table, *keys):
            version = new or old or {}
            row = plain | {"kind": table[:-1], "id": " ".join(version[key] for key in keys), "isWideOpen": False}
            row |= _said(table, version, is_gone=new is None)
            valued = {"quotas": "value", "users": "iterations", "tokens": "expiryTimestamp"}.get(table)
            row["oldValue"] = str(old[valued]) if valued and old else None
            row["newValue"] = str(new[valued]) if valued and new else None
            rows.append(row)
    return rows


def _said(table: str, of: Version, *, is_gone: bool) -> Row:
    if table == "acls":
        words = f"{of['permissionType']} {of['principal']} {of['operation']} on {of['resourceType']}:"
        words += f"{of['resourceName']} ({of['patternType']}) from {of['host']}"
        everything = of["resourceName"] in ("*", "") or of["resourceType"] == "CLUSTER"
        looks = of["operation"] in ("DESCRIBE", "DESCRIBE_CONFIGS")
        is_open = of["permissionType"] == "ALLOW" and of["principal"] == "User:*"
        is_open = is_open and (of["operation"] == "ALL" or (everything and not looks))
        return {"principal": of["principal"], "said": words, "isWideOpen": is_open}
    if table == "quotas":
        limit = "" if is_gone else f" = {of['value']}"
        principal = f"User:{of['user']}" if of["user"] is not None else None
        return {"principal": principal, "said": f"{of['key']}{limit} for {of['name']}"}
    if table == "users":
        return {"principal": f"User:{of['name']}", "said": f"{of['mechanism']} credentials of {of['name']}"}
    return {"principal": of["owner"], "said": f"delegation token of {of['owner']}"}


# --- counts ----------------------------------------------------------------------------------------------------------


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


def anomalies(cluster: Cluster) -> list[Row]:
    """Unusual hours."""
    events: dict[str, Counter[int]] = {
        "leaderChanges": Counter(), "isrShrinks": Counter(), "fencings": Counter()
    }  # fmt: skip
    for of_partition in partitions(cluster):
        _count(events["leaderChanges"], (span for span, _ in leader_changes(of_partition)))
        shrunk = (s for s in of_partition if s.before and not set(s.before["isr"]) <= set(s.of["isr"]))
        _count(events["isrShrinks"], shrunk)
    for session in (session for of_broker in sessions(cluster) for session in of_broker):
        _count(events["fencings"], fencings(session))
    begin, end = _covered(cluster)
    hours = range(-(-begin // HOUR), end // HOUR)
    rows = []
    for measure, counted in events.items():
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


TABLES = {
    make.__name__: make
    for make in (
        access_audit, anomalies, availability, broker_load, broker_sessions, broker_states, config_changes,
        isr_episodes, leadership, metadata_growth, partition_availability, rack_spread, reassignments, skew,
        unclean_elections, upgrades,
    )
}  # fmt: skip
"""Every gold table of a cluster."""
