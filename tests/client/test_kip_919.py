"""KIP-919: lists of controllers and lists of brokers, the cluster's id, the active controller, and the draft."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from kshell.client.address import addresses
from kshell.client.nodes import BROKER, CONTROLLER, KIP_919_DRAFT, Nodes, drafted_metadata
from kshell.errors import (
    AuthorizationError,
    ClusterIdError,
    ConnectError,
    NodeError,
    ServerError,
    SourceTimeoutError,
    UnsupportedVersionError,
    WrongEndpointError,
)
from kshell.protocol.messages.cluster import DESCRIBE_CLUSTER
from kshell.sources.quorum.facts import describe_quorum
from kshell.sources.quorum.source import QuorumSource
from tests.server import Node, Quorum, faults, settings


@pytest.fixture
def quorum() -> Iterator[Quorum]:
    with Quorum(3, brokers=2) as made:
        yield made


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address where nobody listens, and nobody else will."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


def nodes_of(quorum: Quorum, kind: str, *listed: Node | str, **properties: str) -> Nodes:
    text = ",".join(one if isinstance(one, str) else one.address for one in listed)
    return quorum.keep(Nodes(kind, addresses(text), settings(**properties)))


# --- the list -----------------------------------------------------------------------------------------------------


def test_one_reachable_controller_of_the_list_is_enough(quorum: Quorum, nobody: str) -> None:
    nodes = nodes_of(quorum, CONTROLLER, nobody, quorum.controllers[2])
    assert nodes.any().node == quorum.controllers[2].address
    assert sorted(nodes.by_id) == [1, 2, 3]


def test_a_list_of_one_controller_finds_the_leader_elsewhere(quorum: Quorum) -> None:
    source = quorum.keep(QuorumSource(quorum.controllers[2].address, settings()))
    source.load()
    assert source.observer.leader is not None
    assert source.observer.leader.address == ("127.0.0.1", quorum.controllers[0].port)


def test_a_list_that_nobody_answers_names_every_entry(quorum: Quorum, nobody: str) -> None:
    quorum.controllers[0].stop()
    with pytest.raises(ConnectError) as caught:
        nodes_of(quorum, CONTROLLER, nobody, quorum.controllers[0]).any()
    assert nobody in caught.value.message
    assert quorum.controllers[0].address in caught.value.message
    assert caught.value.exit_code == 3


def test_a_broker_among_controllers_is_fatal_when_it_is_contacted(quorum: Quorum, nobody: str) -> None:
    nodes = nodes_of(quorum, CONTROLLER, nobody, quorum.brokers[0], quorum.controllers[0])
    with pytest.raises(WrongEndpointError) as caught:
        nodes.any()
    assert caught.value.node == quorum.brokers[0].address
    assert "this is a broker, and --bootstrap-controllers takes controllers" in caught.value.message
    assert "--bootstrap-servers" in str(caught.value.hint)
    assert caught.value.exit_code == 3


def test_a_controller_among_brokers_is_fatal_when_it_is_contacted(quorum: Quorum) -> None:
    nodes = nodes_of(quorum, BROKER, quorum.controllers[0], quorum.brokers[0])
    with pytest.raises(WrongEndpointError, match="this is a controller, and --bootstrap-servers takes brokers"):
        nodes.any()


def test_the_first_contact_decides(quorum: Quorum) -> None:
    nodes = nodes_of(quorum, CONTROLLER, quorum.controllers[1], quorum.brokers[0])
    assert nodes.any().node == quorum.controllers[1].address  # the broker was not contacted
    with pytest.raises(WrongEndpointError):
        list(nodes.reachable())


@pytest.mark.parametrize("release", ["3.3", "3.6"])
def test_below_3_7_a_broker_is_recognised_by_produce(release: str) -> None:
    with Quorum(1, brokers=1, release=release) as quorum:
        with pytest.raises(WrongEndpointError):
            nodes_of(quorum, CONTROLLER, quorum.brokers[0]).any()
        assert [asked.api for asked in quorum.asked if asked.node_id == 101] == ["ApiVersions"] * 2
        with pytest.raises(WrongEndpointError):
            nodes_of(quorum, BROKER, quorum.controllers[0]).any()


def test_a_node_that_says_it_is_the_other_kind_is_believed(quorum: Quorum) -> None:
    del quorum.brokers[0].ranges[0]  # no Produce: DescribeCluster says it
    with pytest.raises(WrongEndpointError):
        nodes_of(quorum, CONTROLLER, quorum.brokers[0]).any()


# --- the cluster's id ---------------------------------------------------------------------------------------------


def test_the_cluster_id_comes_first(quorum: Quorum) -> None:
    nodes = nodes_of(quorum, CONTROLLER, quorum.controllers[0])
    nodes.any()
    assert nodes.cluster_id == quorum.cluster_id
    asked = [one for one in quorum.asked if one.node_id == 1]
    assert [one.api for one in asked] == ["ApiVersions", "DescribeCluster"]
    assert asked[1].body["endpointType"] == 2


def test_another_cluster_is_fatal(quorum: Quorum) -> None:
    quorum.controllers[1].cluster_id = "B" * 22
    nodes = nodes_of(quorum, CONTROLLER, *quorum.controllers)
    with pytest.raises(ClusterIdError) as caught:
        list(nodes.reachable())
    assert caught.value.node == quorum.controllers[1].address
    assert quorum.cluster_id in caught.value.message
    assert "B" * 22 in caught.value.message


def test_another_cluster_than_the_one_that_is_meant_is_fatal(quorum: Quorum) -> None:
    with pytest.raises(ClusterIdError):
        nodes_of(quorum, CONTROLLER, quorum.controllers[0], cluster_id="C" * 22).any()


def test_another_cluster_after_a_reconnect_is_fatal(quorum: Quorum) -> None:
    source = quorum.keep(QuorumSource(quorum.bootstrap, settings()))
    source.load()
    quorum.cluster_id = "D" * 22
    for node in quorum.controllers:
        node.disconnect()
    with pytest.raises(ClusterIdError):
        source.load()


def test_below_3_7_the_id_is_unknown() -> None:
    with Quorum(release="3.6") as quorum:
        source = quorum.keep(QuorumSource(quorum.bootstrap, settings()))
        assert source.load().log_end_offset == 1
        assert source.nodes.cluster_id is None
        assert quorum.asked_for("DescribeCluster") == []
        assert all(asked.body.get("clusterId") is None for asked in quorum.asked_for("Fetch"))


def test_below_3_7_the_id_that_the_operator_gives_is_confirmed_by_fetch() -> None:
    with Quorum(release="3.6") as quorum:
        source = quorum.keep(QuorumSource(quorum.bootstrap, settings(cluster_id=quorum.cluster_id)))
        source.load()
        assert {asked.body["clusterId"] for asked in quorum.asked_for("Fetch")} == {quorum.cluster_id}
        wrong = quorum.keep(QuorumSource(quorum.bootstrap, settings(cluster_id="E" * 22)))
        with pytest.raises(ClusterIdError) as caught:
            wrong.load()
        assert caught.value.exit_code == 3


def test_controllers_that_cannot_describe_themselves_yet_are_observed_all_the_same(quorum: Quorum) -> None:
    quorum.on("DescribeCluster", faults.error(35))  # metadata.version is below 3.7
    source = quorum.keep(QuorumSource(quorum.bootstrap, settings()))
    assert source.load().log_end_offset == 1
    assert source.nodes.cluster_id is None


def test_a_principal_that_may_not_describe_the_cluster_observes_with_a_note(quorum: Quorum) -> None:
    quorum.on("DescribeCluster", faults.error(31))
    source = quorum.keep(QuorumSource(quorum.bootstrap, settings()))
    source.load()
    assert any("ALTER on CLUSTER:kafka-cluster" in note for note in source.nodes.notes)


# --- the active controller ----------------------------------------------------------------------------------------


def test_calls_that_need_the_active_controller_go_to_it_and_follow_it(quorum: Quorum) -> None:
    nodes = nodes_of(quorum, CONTROLLER, *quorum.controllers[:2])
    assert describe_quorum(nodes)["leaderId"] == 1
    quorum.elect(3)
    quorum.commit()
    told = describe_quorum(nodes)
    assert (told["leaderId"], told["leaderEpoch"]) == (3, quorum.epoch)
    asked = [asked.node_id for asked in quorum.asked_for("DescribeQuorum")]
    assert (asked[0], asked[-1]) == (1, 3)


def test_below_3_7_the_active_controller_is_found_by_asking() -> None:
    with Quorum(3, release="3.6") as quorum:
        quorum.elect(2)
        quorum.commit()
        assert describe_quorum(nodes_of(quorum, CONTROLLER, *quorum.controllers))["leaderId"] == 2


def test_an_election_that_does_not_end_is_a_typed_error(quorum: Quorum) -> None:
    quorum.elect(None)
    with pytest.raises((SourceTimeoutError, ConnectError, ServerError)) as caught:
        describe_quorum(nodes_of(quorum, CONTROLLER, *quorum.controllers, default_api_timeout_ms="300"))
    assert caught.value.exit_code == 3


def test_a_broker_says_a_random_broker_is_the_controller_and_is_not_believed(quorum: Quorum) -> None:
    nodes = nodes_of(quorum, BROKER, quorum.brokers[0])
    nodes.describe(nodes.any())
    assert nodes.controller_id == -1
    assert sorted(nodes.by_id) == [101, 102]


def test_nodes_are_asked_by_their_id(quorum: Quorum) -> None:
    nodes = nodes_of(quorum, CONTROLLER, quorum.controllers[0])
    assert nodes.node(3).node == quorum.controllers[2].address
    with pytest.raises(ConnectError, match="no controller with this id is known") as caught:
        nodes.node(101)
    assert caught.value.hint == "known controllers: 1, 2, 3"


@pytest.mark.parametrize("api", [1, 55, 59])
def test_a_missing_api_is_unsupported_version(quorum: Quorum, api: int) -> None:
    for node in quorum.controllers:
        del node.ranges[api]
    if api == 59:
        quorum.snapshot([])
    source = quorum.keep(QuorumSource(quorum.bootstrap, settings()))
    with pytest.raises(UnsupportedVersionError) as caught:
        source.quorum(source.load())
    assert caught.value.exit_code == 3


# --- the draft: Metadata v13 --------------------------------------------------------------------------------------


@pytest.fixture
def drafted() -> Iterator[Quorum]:
    with Quorum(3, brokers=1, dialects=[KIP_919_DRAFT]) as made:
        made.elect(2)
        made.commit()
        yield made


def asked_for_metadata(quorum: Quorum) -> list[dict[str, object]]:
    return [asked.body for asked in quorum.asked_for("Metadata")]


def test_the_draft_tells_controllers_and_cluster(drafted: Quorum) -> None:
    nodes = nodes_of(drafted, CONTROLLER, drafted.controllers[0], dialect=KIP_919_DRAFT)
    nodes.any()
    assert (nodes.cluster_id, nodes.controller_id, sorted(nodes.by_id)) == (drafted.cluster_id, 2, [1, 2, 3])
    assert drafted.asked_for("DescribeCluster") == []
    source = drafted.keep(QuorumSource(drafted.bootstrap, settings(dialect=KIP_919_DRAFT)))
    assert source.load().log_end_offset == drafted.log.end


def test_the_draft_asks_for_no_topics_and_never_makes_one(drafted: Quorum) -> None:
    connection = nodes_of(drafted, CONTROLLER, drafted.controllers[0], dialect=KIP_919_DRAFT).any()
    drafted_metadata(connection, direct=True, topics=None)
    drafted_metadata(connection, direct=True, topics=["orders"])
    none, every, one = asked_for_metadata(drafted)
    assert (none["topics"], every["topics"]) == ([], None)
    assert [topic["name"] for topic in one["topics"]] == ["orders"]  # type: ignore[attr-defined]
    for body in (none, every, one):
        assert body["directToKRaftControllerQuorum"] is True
        for flag in ("allowAutoTopicCreation", "includeTopicAuthorizedOperations"):
            assert body[flag] is False


MATRIX = [
    ("controller", "controller", 13, None),
    ("controller", "broker", 13, WrongEndpointError),
    ("controller", "controller", 12, UnsupportedVersionError),
    ("controller", "broker", 12, UnsupportedVersionError),
    ("broker", "broker", 13, None),
    ("broker", "controller", 13, WrongEndpointError),
    ("broker", "broker", 12, None),
]
"""What is asked for, what answers, the peer's highest version of Metadata, and the outcome."""


@pytest.mark.parametrize(("wanted", "peer", "version", "outcome"), MATRIX)
def test_the_handling_matrix(
    drafted: Quorum, wanted: str, peer: str, version: int, outcome: type[NodeError] | None
) -> None:
    node = drafted.brokers[0] if peer == "broker" else drafted.controllers[0]
    node.ranges[3] = (1, version)
    nodes = nodes_of(drafted, wanted, node, dialect=KIP_919_DRAFT)
    if outcome is None:
        assert nodes.any().node == node.address
        assert nodes.cluster_id == drafted.cluster_id
        return
    with pytest.raises(outcome) as caught:
        nodes.any()
    assert caught.value.exit_code == 3
    if version < 13:
        assert drafted.asked_for("Metadata") == []  # nobody is asked without the flag


@pytest.mark.parametrize(("code", "kind"), [(31, AuthorizationError), (-1, ServerError), (4711, ServerError)])
def test_the_entry_of_the_metadata_topic_carries_the_error(drafted: Quorum, code: int, kind: type[NodeError]) -> None:
    entry = {"errorCode": code, "name": "__cluster_metadata", "partitions": []}
    drafted.bodies["Metadata"] = {"topics": [entry], "fromKRaftController": True}
    with pytest.raises(kind) as caught:
        nodes_of(drafted, CONTROLLER, drafted.controllers[0], dialect=KIP_919_DRAFT).any()
    assert caught.value.api == "Metadata"


def test_the_drafts_cluster_id_is_pinned_as_well(drafted: Quorum) -> None:
    drafted.controllers[1].cluster_id = "B" * 22
    with pytest.raises(ClusterIdError):
        list(nodes_of(drafted, CONTROLLER, *drafted.controllers, dialect=KIP_919_DRAFT).reachable())


def test_a_release_knows_nothing_of_the_draft(quorum: Quorum) -> None:
    with pytest.raises(UnsupportedVersionError):
        nodes_of(quorum, CONTROLLER, quorum.controllers[0], dialect=KIP_919_DRAFT).any()
    assert DESCRIBE_CLUSTER.key in quorum.controllers[0].ranges
