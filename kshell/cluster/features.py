"""What a cluster's nodes support and what is finalized, from registrations, or asked of the nodes themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kshell.metadata.families.cluster import CONTROLLERS
from kshell.metadata.families.features import ZK_MIGRATION
from kshell.metadata.feature_levels import CONTROLLERS_REGISTER, KRAFT_VERSION, METADATA_VERSION
from kshell.metadata.feature_update import BROKER, CONTROLLER, ClusterFeatures, NodeFeatures, Range
from kshell.metadata.image import Image
from kshell.metadata.partial import MISSING

if TYPE_CHECKING:
    from kshell.client.nodes import Nodes
    from kshell.engine.session import Session

_MIGRATING = (1, 2)
"""``ZkMigrationState``: MIGRATION and PRE_MIGRATION."""


def standing(session: Session, *, ask: bool = False) -> ClusterFeatures:
    """Finalized levels, and every registered node. Raises KshellError where there is no image.

    With ``ask``, controllers that did not register are asked themselves, where the source is live.
    """
    quorum = _of_log(session) if session.source.has_log else session.source.quorum(session.loaded)
    image = session.image
    finalized = {name: entry.value for name, entry in image["features"].items()}
    kraft = quorum["kraftVersion"][1]
    if isinstance(kraft, int):
        finalized[KRAFT_VERSION] = kraft
    leader = quorum["leaderId"][1]
    voters = [int(one) for one in quorum["voters"]] if isinstance(quorum["voters"], dict) else []
    nodes = tuple(registered(image, voters))
    told = {one.kind for one in nodes if one.supported is not None}
    is_unknown = CONTROLLER not in told or any(one.supported is None for one in nodes)
    live = session.source.nodes
    if ask and is_unknown and live is not None:
        nodes = _asked(session, live, nodes, finalized)
    state = image[ZK_MIGRATION].get(ZK_MIGRATION)
    migrating = state is not None and state.value in _MIGRATING
    return ClusterFeatures(finalized, nodes, leader if isinstance(leader, int) else None, migrating)


def registered(image: Image, voters: list[int]) -> list[NodeFeatures]:
    """The image's brokers and controllers by id, and voters of which it has no registration."""
    found = [NodeFeatures(BROKER, number, _ranges(entry.value)) for number, entry in sorted(image["brokers"].items())]
    table = image["controllers"]
    is_reported = CONTROLLERS.path not in image[MISSING]
    for number in sorted({*table, *voters}):
        supported = _ranges(table[number].value) if number in table else None
        found.append(NodeFeatures(CONTROLLER, number, supported, number in table if is_reported else None))
    return found


def _ranges(registration: Any) -> Mapping[str, Range] | None:
    told = registration.supported_features
    return {name: (span["min"], span["max"]) for name, span in told.items()} if isinstance(told, dict) else None


def _of_log(session: Session) -> dict[str, Any]:
    from kshell.sources.directory import describe

    return describe.quorum(session.loaded)


def _asked(
    session: Session, live: Nodes, nodes: tuple[NodeFeatures, ...], finalized: Mapping[str, int]
) -> tuple[NodeFeatures, ...]:
    """The same nodes, with what those say of which no registration is known. Who does not answer stays unknown."""
    from kshell.cluster.nodes import survey
    from kshell.errors import NodeError

    if live.kind == CONTROLLER and finalized.get(METADATA_VERSION, 0) >= CONTROLLERS_REGISTER:
        return nodes  # a controller that does not register is in the way, whatever it supports
    try:
        found = survey(session, live, everyone=live.kind == BROKER)
    except NodeError as error:
        session.remarks.append(f"controllers were not asked: {error.message}")
        return nodes
    told = [
        NodeFeatures(CONTROLLER, found.members[name].name, versions.supported)
        for name, versions in found.told.items()
        if found.members[name].kind == CONTROLLER
    ]
    members = [member for name, member in found.members.items() if name in found.silent and member.address is not None]
    silent = {(member.kind, member.name) for member in members}
    nodes = tuple(
        node._replace(is_silent=node.supported is None and (node.kind, str(node.id)) in silent) for node in nodes
    )
    by_id = {str(one.id): one for one in told}
    kept = [one._replace(supported=by_id.pop(str(one.id)).supported) if _is_in(one, by_id) else one for one in nodes]
    # Below 3.7 nobody tells controllers' ids: those that answered stand for as many voters.
    for one in by_id.values():
        unknown = next((one for one in kept if one.kind == CONTROLLER and one.supported is None), None)
        if unknown is not None and not str(one.id).isdigit():
            kept.remove(unknown)
    return (*kept, *by_id.values())


def _is_in(node: NodeFeatures, told: Mapping[str, NodeFeatures]) -> bool:
    return node.kind == CONTROLLER and node.supported is None and str(node.id) in told
