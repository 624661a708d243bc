"""Episodes of config drift a second time, in plain Python: everybody's value whenever something changes."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

from tests.spark.gold.expected.spans import Cluster, Row
from tests.spark.gold.replay import Version

Member = tuple[str, str]
"""(cluster, resource)"""
Resource = tuple[str, str, str, str]
"""(scope, cluster within which it is compared, type, name of the resource)"""
State = tuple[str | None] | None
"""The value, null for not set; ``None``: it takes no part."""


def config_drift_episodes(clusters: Iterable[Cluster]) -> list[Row]:
    """All of them, of a fleet."""
    lives: dict[Resource, dict[Member, list[Version]]] = defaultdict(lambda: defaultdict(list))
    said: dict[tuple[Resource, str], dict[Member, list[Version]]] = defaultdict(lambda: defaultdict(list))
    for one in clusters:
        _sort(one, lives, said)
    rows: list[Row] = []
    for (resource, name), values in said.items():
        states = {member: _states(of, values.get(member, [])) for member, of in lives[resource].items()}
        for member, episode in _episodes(states):
            rows.append(
                {
                    "clusterId": member[0], "scope": resource[0], "resourceType": resource[2],
                    "resourceName": member[1], "name": name, **episode,
                }
            )  # fmt: skip
    return rows


def _sort(one: Cluster, lives: Any, said: Any) -> None:
    """Puts versions to the comparisons that they belong to."""
    for version in one.versions.get("topics", []):
        lives["clusters", "", "TOPIC", version["name"]][one.name, version["name"]].append(version)
    for version in one.versions.get("brokers", []):
        lives["clusters", "", "BROKER", ""][one.name, ""].append(version)
        lives["brokers", one.name, "BROKER", ""][one.name, str(version["id"])].append(version)
    for version in one.versions.get("configs", []):
        kind, name = version["resourceType"], version["resourceName"]
        if kind == "BROKER_LOGGER":
            continue
        resource: Resource = ("clusters", "", kind, name)
        if kind == "BROKER" and name:
            resource = ("brokers", one.name, kind, "")
        elif kind not in ("TOPIC", "BROKER"):
            lives[resource][one.name, name].append(version)
        said[resource, version["name"]][one.name, name].append(version)


def _states(lives: list[Version], values: list[Version]) -> list[tuple[int, State]]:
    """(time, what is so since then), in order; of one time the last."""
    moments: dict[int, int] = {}
    for version in (*lives, *values):
        for end in ("validFrom", "validTo"):
            at, time = version[f"{end}Offset"], version[f"{end}Ms"]
            if at is not None:
                moments[at] = max(time, moments.get(at, time))
    found: dict[int, State] = {}
    now = min(moments.values())
    for offset, ms in sorted(moments.items()):
        now = max(now, ms)
        value = next((one["value"] for one in values if _holds(one, offset)), None)
        found[now] = (value,) if any(_holds(one, offset) for one in lives) else None
    return list(found.items())


def _holds(version: Version, offset: int) -> bool:
    to = version["validToOffset"]
    return version["validFromOffset"] <= offset and (to is None or to > offset)


def _episodes(states: dict[Member, list[tuple[int, State]]]) -> Iterable[tuple[Member, Row]]:
    begun: dict[Member, tuple[State, State, int]] = {}
    for now in sorted({ms for of in states.values() for ms, _ in of}):
        here = {member: _at(of, now) for member, of in states.items()}
        counts = Counter(state for state in here.values() if state is not None)
        usual = min(counts, key=lambda state: (-counts[state], state[0] is None, state[0] or ""), default=None)
        for member, state in here.items():
            odd = state is not None and state != usual
            if member in begun and (not odd or begun[member][:2] != (state, usual)):
                was, meant, since = begun.pop(member)
                outcome = "gone" if state is None else "followed" if state == was else "changed"
                yield member, _row(was, meant, since, now, outcome)
            if odd and member not in begun:
                begun[member] = (state, usual, now)
    for member, (was, meant, since) in begun.items():
        yield member, _row(was, meant, since, None, None)


def _at(states: list[tuple[int, State]], now: int) -> State:
    at = bisect_right([ms for ms, _ in states], now) - 1
    return states[at][1] if at >= 0 else None


def _row(was: State, meant: State, since: int, to: int | None, outcome: str | None) -> Row:
    assert was is not None
    assert meant is not None
    return {
        "value": was[0], "usualValue": meant[0], "fromMs": since, "toMs": to,
        "durationMs": None if to is None else to - since, "outcome": outcome,
    }  # fmt: skip
