"""What all servers of a cluster have in common, and whether that is enough for a feature (KIP-35)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Generic, NamedTuple, TypeVar

from kshell.client.features import Feature
from kshell.protocol.names import api_name

Range = tuple[int, int]
N = TypeVar("N", bound=Hashable)

PRODUCE = 0
VOTE, BROKER_REGISTRATION = 52, 62


class Requirement(NamedTuple):
    """One API that a feature needs: ``needed`` versions (highest ``None``: open), and the range that servers share."""

    api_key: int
    api_name: str
    needed: tuple[int, int | None]
    shared: Range | None
    met: bool


class Blocker(NamedTuple, Generic[N]):
    """Who is in the way, and why; ``node`` is ``None`` for a level, which is finalized for the cluster as a whole."""

    node: N | None
    reason: str


class Verdict(NamedTuple, Generic[N]):
    """Whether a cluster can do something.

    ``usable`` is ``None`` when nobody knows: no server of the right kind was asked (``nodes`` is empty), or a level is
    needed and not told (``unknown`` says what). ``nodes`` are those that were asked, as far as they matter here.
    """

    feature: Feature
    usable: bool | None
    nodes: list[N]
    requirements: list[Requirement]
    blockers: list[Blocker[N]]
    unknown: list[str]


def shared(nodes: Mapping[N, Mapping[int, Range]]) -> dict[int, Range | None]:
    """Return API key -> the versions that all nodes offer: highest minimum to lowest maximum; ``None``: no version.

    Every API that some node offers is there, by key.
    """
    keys = sorted({key for ranges in nodes.values() for key in ranges})
    return {key: _shared(key, nodes.values()) for key in keys}


def _shared(key: int, nodes: Iterable[Mapping[int, Range]]) -> Range | None:
    spans = [ranges.get(key) for ranges in nodes]
    known = [span for span in spans if span is not None]
    if not known or len(known) < len(spans):
        return None
    low, high = max(low for low, _ in known), min(high for _, high in known)
    return (low, high) if low <= high else None


def kind_of(ranges: Mapping[int, Range]) -> str | None:
    """``"broker"`` or ``"controller"``, by an API that only one of them has; ``None``: it offers neither."""
    if PRODUCE in ranges:
        return "broker"
    return "controller" if VOTE in ranges or BROKER_REGISTRATION in ranges else None


def check(
    feature: Feature, nodes: Mapping[N, Mapping[int, Range]], finalized: Mapping[str, int] | None = None
) -> Verdict[N]:
    """Say whether the cluster of these nodes can do something: each needed range overlaps with the one they share.

    ``nodes`` is node -> API key -> (lowest, highest); those of a kind that the feature does not concern are left out.
    ``finalized`` is feature -> finalized level; ``None``: not told. A level that is not named there is 0.
    """
    asked = {node: ranges for node, ranges in nodes.items() if kind_of(ranges) in (None, *feature.kinds)}
    requirements: list[Requirement] = []
    blockers: list[Blocker[N]] = []
    for key, needed in feature.requires.items():
        common = _shared(key, asked.values())
        met = _overlap(needed, common)
        requirements.append(Requirement(key, api_name(key), needed, common, met))
        if not met:
            blockers += _in_the_way(key, needed, asked)
    unknown: list[str] = []
    for name, level in feature.levels.items():
        if finalized is None:
            unknown.append(f"the level of {name}, at least {level}")
        elif finalized.get(name, 0) < level:
            blockers.append(Blocker(None, f"{name} is {finalized.get(name, 0)}, {level} is needed"))
    usable = None if not asked else False if blockers else None if unknown else True
    return Verdict(feature, usable, list(asked), requirements, blockers, unknown)


def _overlap(needed: tuple[int, int | None], span: Range | None) -> bool:
    low, high = needed
    return span is not None and span[1] >= low and (high is None or span[0] <= high)


def _in_the_way(key: int, needed: tuple[int, int | None], nodes: Mapping[N, Mapping[int, Range]]) -> list[Blocker[N]]:
    """Name the nodes that cannot do it alone; if each of them can, the two that share no version of what is needed."""
    name = api_name(key)
    found = []
    for node, ranges in nodes.items():
        span = ranges.get(key)
        if span is None:
            found.append(Blocker(node, f"{name} is not offered, {_words(needed)} is needed"))
        elif not _overlap(needed, span):
            found.append(Blocker(node, f"{name} is offered {_words(span)}, {_words(needed)} is needed"))
    if found or not nodes:
        return found
    ends_first = min(nodes, key=lambda node: nodes[node][key][1])
    starts_last = max(nodes, key=lambda node: nodes[node][key][0])
    reason = f"no version of {name} {_words(needed)} is shared"
    return [Blocker(node, f"{reason}: {_words(nodes[node][key])} here") for node in (ends_first, starts_last)]


def _words(versions: tuple[int, int | None]) -> str:
    low, high = versions
    if high is None:
        return f"{low} or later"
    return str(low) if low == high else f"{low}-{high}"
