"""Whether the active controller would raise or lower a feature's level (``FeatureControlManager.updateFeatures``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from kshell.metadata.feature_levels import (
    CONTROLLERS_REGISTER,
    KRAFT_VERSION,
    METADATA_VERSION,
    is_known,
    level_title,
    levels,
    metadata_changed,
    needs_of,
)
from kshell.metadata.metadata_version import NEWEST_NAMED

Range = tuple[int, int]
BROKER, CONTROLLER = "broker", "controller"
DISABLED: Range = (0, 0)
"""The range of supported levels of a feature that a node does not know."""
_KNOWS_KRAFT = 21
"""The metadata.version (3.9-IV0) that kraft.version 1 needs if the active controller is of 4.0."""
_RAISES_KRAFT = 26
"""Controllers that know this metadata.version (4.1-IV0) change kraft.version by a feature update (KAFKA-16907)."""


class NodeFeatures(NamedTuple):
    """A node and the levels that it supports.

    ``kind`` is ``broker`` or ``controller``. ``id`` is its address where its id is not reported. ``supported``: feature
    -> lowest and highest level; ``None`` where it is not known.
    """

    kind: str
    id: int | str
    supported: Mapping[str, Range] | None
    is_registered: bool | None = True
    """Whether the node is registered; ``None`` where the source does not report registrations."""
    is_silent: bool = False
    """Whether the node did not answer a request."""

    @property
    def title(self) -> str:
        """The node as messages name it: ``broker 1``."""
        return f"{self.kind} {self.id}"


class ClusterFeatures(NamedTuple):
    """The finalized levels of a cluster (kraft.version included), its nodes, and what else an update depends on."""

    finalized: Mapping[str, int]
    nodes: tuple[NodeFeatures, ...]
    leader_id: int | None = None
    migrating: bool = False
    """Whether a migration from ZooKeeper is in progress."""

    @property
    def leader_supports(self) -> Mapping[str, Range] | None:
        """What the active controller supports, which decides on updates; ``None``: not known."""
        return next((node.supported for node in self.nodes if node[:2] == (CONTROLLER, self.leader_id)), None)


class LevelVerdict(NamedTuple):
    """Whether a feature can change from ``level`` to ``target``; ``possible`` is ``None`` where that is not known.

    ``nodes`` are those that prevent it, or about which too little is known; ``reason`` says why.
    ``waits_for_software``: only the software of these nodes prevents the upgrade.
    """

    feature: str
    level: int
    target: int
    possible: bool | None
    nodes: tuple[NodeFeatures, ...] = ()
    reason: str | None = None
    waits_for_software: bool = False


def check(cluster: ClusterFeatures, targets: Mapping[str, int], *, upgrade: bool) -> list[LevelVerdict]:
    """Return a verdict for each feature in ``targets``, which change in one update, as by ``kafka-features.sh``.

    Args:
        cluster: The state before the update.
        targets: Feature -> the level that it is to have.
        upgrade: Whether the update is an upgrade; else it is a downgrade.
    """
    proposed = {**cluster.finalized, **targets}
    return [_check(cluster, name, target, proposed, upgrade=upgrade) for name, target in targets.items()]


def _check(
    cluster: ClusterFeatures, name: str, target: int, proposed: Mapping[str, int], *, upgrade: bool
) -> LevelVerdict:
    current = cluster.finalized.get(name, 0)
    refused = [node for node in cluster.nodes if node.supported is not None and not _supports(node, name, target)]
    unknown = [node for node in cluster.nodes if node.supported is None]
    reasons = [f"{reason}: {', '.join(nodes)}" for reason, nodes in _grouped(refused, name).items()]
    not_allowed = _not_allowed(cluster, name, target, proposed, upgrade=upgrade)
    reasons += not_allowed
    registers = cluster.finalized.get(METADATA_VERSION, 0) >= CONTROLLERS_REGISTER
    unregistered = [node for node in unknown if registers and node.is_registered is False]
    if unregistered:
        # Kafka refuses as well: nothing is known of what a voter that has not registered supports.
        reasons.append(f"{_titles(unregistered)} has not registered, and may not support this level")
    if reasons:
        waits = upgrade and target > current and not not_allowed and not unregistered
        return LevelVerdict(name, current, target, False, (*refused, *unregistered), "; ".join(reasons), waits)
    if unknown and target != current:
        return LevelVerdict(name, current, target, None, tuple(unknown), _unknown(unknown, registers=registers))
    if target != current and all(node.kind != CONTROLLER for node in cluster.nodes):
        return LevelVerdict(
            name, current, target, None, (), "no controller is known, and controllers must support it, too"
        )
    if doubt := _beyond_the_tables(cluster, name, current, target):
        return LevelVerdict(name, current, target, None, (), doubt)
    note = None
    if name == KRAFT_VERSION and target != current and not handles_kraft_version(cluster):
        note = "accepted, but controllers before 4.1 do not act on it: the quorum stays as it is"
    return LevelVerdict(name, current, target, True, (), note)


def _supports(node: NodeFeatures, name: str, level: int) -> bool:
    low, high = (node.supported or {}).get(name, DISABLED)
    return low <= level <= high


def _grouped(nodes: Iterable[NodeFeatures], name: str) -> dict[str, list[str]]:
    """Return, for nodes that do not support a level, the reason -> the titles of the nodes."""
    titles_by_reason: dict[str, list[str]] = {}
    for node in nodes:
        low, high = (node.supported or {}).get(name, DISABLED)
        reason = (
            f"only {level_title(name, low)} to {level_title(name, high)} is supported"
            if high
            else "the feature is not supported"
        )
        titles_by_reason.setdefault(reason, []).append(node.title)
    return titles_by_reason


def _titles(nodes: Iterable[NodeFeatures]) -> str:
    return ", ".join(node.title for node in nodes)


def _unknown(nodes: Sequence[NodeFeatures], *, registers: bool) -> str:
    """Return why it is not known what nodes support, and where it could be learned: from registrations."""
    silent = [node for node in nodes if node.is_silent]
    unlisted = [node for node in nodes if not node.is_silent]
    reasons = []
    if silent:
        pronoun = "it supports" if len(silent) == 1 else "they support"
        reasons.append(f"{_titles(silent)} did not answer, so what {pronoun} is not known")
    if unlisted:
        reasons.append(f"what {_titles(unlisted)} supports is not known")
    if registers and any(node.kind == CONTROLLER and node.is_registered is None for node in nodes):
        reasons.append("its registration says it (-q)" if len(nodes) == 1 else "their registrations say it (-q)")
    return "; ".join(reasons)


def handles_kraft_version(cluster: ClusterFeatures) -> bool:
    """Whether the active controller acts on changes of kraft.version; assumed where it is not known."""
    supported = cluster.leader_supports
    return supported is None or supported.get(METADATA_VERSION, DISABLED)[1] >= _RAISES_KRAFT


def _is_unheard_of(cluster: ClusterFeatures, name: str) -> bool:
    """Whether the active controller refuses a feature, even at level 0, because it does not know it (4.0 and later).

    ``False`` if the controller is newer than kshell: it may know features without supporting a level.
    """
    supported = cluster.leader_supports or {}
    knows_features = supported.get(METADATA_VERSION, DISABLED)[1] > _KNOWS_KRAFT
    return knows_features and not _leader_is_newer(cluster) and name not in {*levels(), *supported}


def _leader_is_newer(cluster: ClusterFeatures) -> bool:
    """Whether the active controller supports a metadata.version that kshell has no name for."""
    return (cluster.leader_supports or {}).get(METADATA_VERSION, DISABLED)[1] > NEWEST_NAMED


def _beyond_the_tables(cluster: ClusterFeatures, name: str, current: int, target: int) -> str | None:
    """Return why kshell cannot decide on a change that nothing known prevents: a level is newer than its tables."""
    if name == METADATA_VERSION:
        if target == current or max(current, target) <= NEWEST_NAMED:
            return None
        newest = f"this kshell knows metadata.version up to {level_title(name, NEWEST_NAMED)}"
        if target > current:
            return f"{newest}, and not what {target} needs"
        return f"{newest}, and not whether levels above it brought new records or fields"
    if name in levels():
        unknown = [level for level in (target, current) if not is_known(name, level)]
        if target == current or not unknown:
            return None
        return f"this kshell does not know {name} {unknown[0]}, nor what the change needs"
    is_settled = target in (0, current) and not _leader_is_newer(cluster)
    is_supported = target == current and name in (cluster.leader_supports or {})
    return None if is_settled or is_supported else f"this kshell does not know {name}, nor what the change needs"


def _is_conditional(cluster: ClusterFeatures) -> bool:
    """Whether the active controller is of 4.0, the only release with a condition for kraft.version."""
    supported = cluster.leader_supports or {}
    return _KNOWS_KRAFT < supported.get(METADATA_VERSION, DISABLED)[1] < _RAISES_KRAFT


def _not_allowed(
    cluster: ClusterFeatures, name: str, target: int, proposed: Mapping[str, int], *, upgrade: bool
) -> list[str]:
    """Return the reasons that prevent the change no matter what the nodes support."""
    current = cluster.finalized.get(name, 0)
    is_finalized = f"{level_title(name, current)} is finalized"
    if name == KRAFT_VERSION and current and not handles_kraft_version(cluster):
        current = 0
        is_finalized = "controllers before 4.1 treat kraft.version as level 0, whatever is finalized"
    if upgrade and target < 1:
        return ["an upgrade goes to level 1 or above: level 0, which turns a feature off, is a downgrade"]
    if upgrade and target < current:
        return [f"{is_finalized}: this would be a downgrade"]
    if _is_unheard_of(cluster, name):
        return ["the active controller knows no feature of that name"]
    if not upgrade and target > current:
        return [f"{is_finalized}: this would be an upgrade"]
    if name == METADATA_VERSION:
        return _metadata_version(cluster, current, target)
    if name == KRAFT_VERSION and target < current:
        return ["kraft.version cannot be lowered"]
    needs = needs_of(name, target)
    if name == KRAFT_VERSION and target and _is_conditional(cluster):
        needs = {METADATA_VERSION: _KNOWS_KRAFT}
    return [
        f"needs {feature} {level_title(feature, least)}"
        for feature, least in needs.items()
        if proposed.get(feature, 0) < least
    ]


def _metadata_version(cluster: ClusterFeatures, current: int, target: int) -> list[str]:
    """As :func:`_not_allowed`, for metadata.version: a migration, or metadata that a downgrade might lose."""
    if cluster.migrating:
        return ["a migration from ZooKeeper is in progress"]
    lost = metadata_changed(current, target)
    if lost:
        names = ", ".join(level_title(METADATA_VERSION, level) for level in lost)
        return [f"metadata might be lost: {names} brought new records or fields"]
    return []
