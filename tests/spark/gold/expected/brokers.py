"""Sessions, states, load and racks of brokers, in plain Python."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from tests.spark.gold.expected.spans import (
    Cluster,
    Row,
    Span,
    partitions,
    pieces,
    spans,
)


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


def known_time(cluster: Cluster) -> tuple[int, int]:
    """(begin, end) of the time that is known."""
    begun = [row["validFromMs"] for name in ("topics", "brokers") for row in cluster.versions.get(name, [])]
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
    for name, begin, end in pieces(*known_time(cluster), "%Y-%m-%d"):
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
