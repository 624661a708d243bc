"""Which feature levels are finalized in a cluster, and which levels each of its nodes supports.

Both come from the image. Controllers register from 3.7 on, so those of a live source can be asked directly instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kshell.errors import NodeError
from kshell.metadata.families.cluster import CONTROLLERS, Broker, Controller
from kshell.metadata.families.features import ZK_MIGRATION
from kshell.metadata.feature_levels import CONTROLLERS_REGISTER, KRAFT_VERSION, METADATA_VERSION
from kshell.metadata.feature_update import BROKER, CONTROLLER, ClusterFeatures, NodeFeatures, Range
from kshell.metadata.image import Image
from kshell.metadata.partial import MISSING
from kshell.sources.directory import describe

if TYPE_CHECKING:
    from kshell.client.nodes import Nodes
    from kshell.engine.session import Session
    from kshell.sources.source import SourceFacts

_MIGRATING = (1, 2)
"""``ZkMigrationState``: MIGRATION and PRE_MIGRATION."""


def cluster_features(session: Session, *, ask: bool = False) -> ClusterFeatures:
    """The finalized levels, and the levels that every known node supports. Raises KshellError if there is no image.

    With ``ask``, nodes of a live source are asked (ApiVersions) if the levels of some node are not registered.
    """
    quorum = _of_log(session) if session.source.has_log else session.source.quorum(session.loaded)
    image = session.image
    finalized = {name: entry.value for name, entry in image["features"].items()}
    kraft = quorum["kraftVersion"][1]
    if isinstance(kraft, int):
        finalized[KRAFT_VERSION] = kraft
    leader = quorum["leaderId"][1]
    voters = [int(voter) for voter in quorum["voters"]] if isinstance(quorum["voters"], dict) else []
    nodes = tuple(registered(image, voters))
    reporting_kinds = {node.kind for node in nodes if node.supported is not None}
    is_unknown = CONTROLLER not in reporting_kinds or any(node.supported is None for node in nodes)
    live = session.source.nodes
    if ask and is_unknown and live is not None:
        nodes = _ask_controllers(session, live, nodes, finalized)
    state = image[ZK_MIGRATION].get(ZK_MIGRATION)
    migrating = state is not None and state.value in _MIGRATING
    return ClusterFeatures(finalized, nodes, leader if isinstance(leader, int) else None, migrating)


def registered(image: Image, voters: list[int]) -> list[NodeFeatures]:
    """Registered brokers and controllers by id, and voters without a registration (``supported`` is ``None``)."""
    nodes = [NodeFeatures(BROKER, number, _ranges(entry.value)) for number, entry in sorted(image["brokers"].items())]
    table = image["controllers"]
    is_reported = CONTROLLERS.path not in image[MISSING]
    for number in sorted({*table, *voters}):
        supported = _ranges(table[number].value) if number in table else None
        nodes.append(NodeFeatures(CONTROLLER, number, supported, number in table if is_reported else None))
    return nodes


def _ranges(registration: Broker | Controller) -> Mapping[str, Range] | None:
    supported = registration.supported_features
    return (
        {name: (span["min"], span["max"]) for name, span in supported.items()} if isinstance(supported, dict) else None
    )


def _of_log(session: Session) -> SourceFacts:
    return describe.quorum(session.loaded)


def _ask_controllers(
    session: Session, live: Nodes, nodes: tuple[NodeFeatures, ...], finalized: Mapping[str, int]
) -> tuple[NodeFeatures, ...]:
    """Ask controllers, and complete the nodes that have no registration; one without an answer stays unknown."""
    from kshell.cluster.nodes import survey

    if live.kind == CONTROLLER and finalized.get(METADATA_VERSION, 0) >= CONTROLLERS_REGISTER:
        return nodes  # at this level every controller must register: one that does not blocks upgrades in any case
    try:
        node_survey = survey(session, live, everyone=live.kind == BROKER)
    except NodeError as error:
        session.remarks.append(f"controllers were not asked: {error.message}")
        return nodes
    answers = [
        NodeFeatures(CONTROLLER, node_survey.members[name].name, versions.supported)
        for name, versions in node_survey.versions.items()
        if node_survey.members[name].kind == CONTROLLER
    ]
    members = [
        member
        for name, member in node_survey.members.items()
        if name in node_survey.silent and member.address is not None
    ]
    silent = {(member.kind, member.name) for member in members}
    nodes = tuple(
        node._replace(is_silent=node.supported is None and (node.kind, str(node.id)) in silent) for node in nodes
    )
    unmatched = {str(answer.id): answer for answer in answers}
    merged = [
        node._replace(supported=unmatched.pop(str(node.id)).supported) if _is_in(node, unmatched) else node
        for node in nodes
    ]
    # Controllers before 3.7 do not report their id, so their answers are named by address. Such an answer comes from
    # one of the voters, though it is not known from which: each replaces a voter about which nothing is known.
    for answer in unmatched.values():
        unknown = next((node for node in merged if node.kind == CONTROLLER and node.supported is None), None)
        if unknown is not None and not str(answer.id).isdigit():
            merged.remove(unknown)
    return (*merged, *unmatched.values())


def _is_in(node: NodeFeatures, answers: Mapping[str, NodeFeatures]) -> bool:
    return node.kind == CONTROLLER and node.supported is None and str(node.id) in answers
