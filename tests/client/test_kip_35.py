"""KIP-35: what a connection does before anything else, and what becomes of its answer (KIP-511 for error 35)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kshell.client.connection import Connection
from kshell.client.negotiation import connect
from kshell.errors import (
    ConnectError,
    ProtocolError,
    ServerError,
    SourceTimeoutError,
    UnsupportedVersionError,
    UsageError,
)
from kshell.protocol.messages.cluster import METADATA
from kshell.protocol.messages.connection import API_VERSIONS
from kshell.protocol.messages.quorum import DESCRIBE_QUORUM, FETCH
from kshell.protocol.schema import Versions
from tests.server import Node, Quorum, faults, settings

NEWEST = API_VERSIONS.versions.high or 0
ASK_QUORUM = {"topics": [{"topicName": "__cluster_metadata", "partitions": [{"partitionIndex": 0}]}]}


@pytest.fixture
def quorum() -> Iterator[Quorum]:
    with Quorum(brokers=1) as made:
        yield made


@pytest.fixture
def node(quorum: Quorum) -> Node:
    return quorum.leader


def dial(node: Node, **properties: str) -> Connection:
    return node.quorum.keep(connect("127.0.0.1", node.port, settings(**properties)))


def versions_asked(node: Node) -> list[int]:
    return [asked.version for asked in node.quorum.asked_for("ApiVersions")]


def test_api_versions_comes_first_on_each_connection(quorum: Quorum, node: Node) -> None:
    for _ in range(2):
        dial(node).request(DESCRIBE_QUORUM, ASK_QUORUM)
    assert [(asked.connection, asked.api) for asked in quorum.asked] == [
        (1, "ApiVersions"), (1, "DescribeQuorum"), (2, "ApiVersions"), (2, "DescribeQuorum"),
    ]  # fmt: skip


def test_the_client_names_itself(quorum: Quorum, node: Node) -> None:
    dial(node, client_id="me")
    asked = quorum.asked[0]
    assert asked.client_id == "me"
    assert asked.body["clientSoftwareName"] == "kraft-shell"


def test_the_client_means_whichever_node_answers(quorum: Quorum, node: Node) -> None:
    """KIP-1242: an address may be that of any node, behind a load balancer too, so kshell names no cluster or node."""
    dial(node)
    assert quorum.asked[0].version == NEWEST
    assert (quorum.asked[0].body["clusterId"], quorum.asked[0].body["nodeId"]) == (None, -1)


def test_the_highest_common_version_is_used(node: Node) -> None:
    node.ranges[DESCRIBE_QUORUM.key] = (0, 1)
    assert dial(node).request(DESCRIBE_QUORUM, ASK_QUORUM).version == 1
    node.ranges[DESCRIBE_QUORUM.key] = (1, 99)
    assert dial(node).request(DESCRIBE_QUORUM, ASK_QUORUM).version == DESCRIBE_QUORUM.versions.high


@pytest.mark.parametrize("offered", [None, (3, 9), (5, 4)])
def test_nothing_in_common_says_what_both_sides_have(node: Node, offered: tuple[int, int] | None) -> None:
    node.ranges.pop(DESCRIBE_QUORUM.key)
    if offered:
        node.ranges[DESCRIBE_QUORUM.key] = offered
    connection = dial(node)
    with pytest.raises(UnsupportedVersionError) as caught:
        connection.request(DESCRIBE_QUORUM, ASK_QUORUM)
    assert "kshell knows 0-2" in caught.value.message
    assert ("3-9" if offered == (3, 9) else "does not offer it") in caught.value.message
    assert caught.value.exit_code == 3
    assert connection.is_open  # nothing was asked


def test_what_is_known_of_versions_is_valid_for_that_connection_only(node: Node) -> None:
    node.ranges[DESCRIBE_QUORUM.key] = (0, 2)
    before = dial(node)
    node.ranges[DESCRIBE_QUORUM.key] = (0, 0)
    assert dial(node).request(DESCRIBE_QUORUM, ASK_QUORUM).version == 0
    assert before.versions.ranges[DESCRIBE_QUORUM.key] == (0, 2)


def test_versions_that_a_caller_needs_bound_the_choice(node: Node) -> None:
    connection = dial(node)
    assert connection.request(DESCRIBE_QUORUM, ASK_QUORUM, accepted=Versions(0, 1)).version == 1
    with pytest.raises(UnsupportedVersionError, match="needs 3"):
        connection.request(DESCRIBE_QUORUM, ASK_QUORUM, accepted=Versions(3, None))


def test_excluded_versions_are_left_out(node: Node) -> None:
    connection = dial(node, api_versions_exclude="DescribeQuorum:1-2,ApiVersions:4-5")
    assert connection.request(DESCRIBE_QUORUM, ASK_QUORUM).version == 0
    assert versions_asked(node) == [3]
    with pytest.raises(UnsupportedVersionError, match=r"without 0, 1, 2 \(api\.versions\.exclude\)"):
        dial(node, api_versions_exclude="DescribeQuorum:0-2").request(DESCRIBE_QUORUM, ASK_QUORUM)


# --- error 35 -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("high", [0, 1, 2, 3, 4])
def test_error_35_leads_to_the_highest_version_listed(node: Node, high: int) -> None:
    node.ranges[API_VERSIONS.key] = (0, high)
    connection = dial(node)
    assert versions_asked(node) == [NEWEST, high]
    assert node.connections == 1
    assert connection.versions.ranges[FETCH.key] == node.ranges[FETCH.key]


def test_error_35_does_not_lead_to_an_excluded_version(node: Node) -> None:
    node.ranges[API_VERSIONS.key] = (0, 3)
    dial(node, api_versions_exclude="ApiVersions:3")
    assert versions_asked(node) == [NEWEST, 2]
    with pytest.raises(UnsupportedVersionError, match=r"api\.versions\.exclude leaves out the rest"):
        dial(node, api_versions_exclude="ApiVersions:0-3")


def test_error_35_without_a_list_leads_to_version_0(quorum: Quorum, node: Node) -> None:
    quorum.lists_versions = False
    node.ranges[API_VERSIONS.key] = (0, 2)
    dial(node)
    assert versions_asked(node) == [NEWEST, 0]


@pytest.mark.parametrize("listed", [-3, NEWEST, 32767])
def test_a_list_that_makes_no_sense_still_ends(node: Node, listed: int) -> None:
    node.on("ApiVersions", faults.refuse_version(high=listed), times=1)
    dial(node)
    assert versions_asked(node) == [NEWEST, NEWEST - 1 if listed > 0 else 0]


def test_error_35_again_is_an_error(node: Node) -> None:
    node.on("ApiVersions", faults.refuse_version(high=3))
    with pytest.raises((ServerError, ProtocolError, UnsupportedVersionError)):
        dial(node)
    assert len(versions_asked(node)) == 2


# --- a peer that hangs up -----------------------------------------------------------------------------------------


def test_a_disconnect_is_retried_first(node: Node) -> None:
    node.on("ApiVersions", faults.hang_up, times=1)
    connection = dial(node)
    assert versions_asked(node) == [NEWEST, NEWEST]
    assert connection.request(DESCRIBE_QUORUM, ASK_QUORUM).version == 2


@pytest.mark.parametrize("known", [4, 3, 2, 1, 0])
def test_a_peer_that_hangs_up_on_newer_versions_is_asked_with_older_ones(node: Node, known: int) -> None:
    node.on("ApiVersions", faults.hang_up, versions=range(known + 1, NEWEST + 1))
    dial(node)
    assert versions_asked(node) == [NEWEST, *range(NEWEST, known - 1, -1)]


def test_a_peer_that_always_hangs_up_may_want_tls_or_authentication(node: Node) -> None:
    node.on("ApiVersions", faults.hang_up)
    with pytest.raises(ConnectError) as caught:
        dial(node)
    assert versions_asked(node) == [NEWEST, *range(NEWEST, -1, -1)]
    assert caught.value.hint is not None
    for word in ("TLS", "SASL", "security.protocol", "broker.version.fallback"):
        assert word in caught.value.hint


def test_a_peer_that_always_hangs_up_is_taken_for_the_fallback(node: Node) -> None:
    node.on("ApiVersions", faults.hang_up)
    connection = dial(node, broker_version_fallback="0.10.0.1")
    assert connection.versions.assumed == "0.10.0.1"
    assert connection.versions.ranges[METADATA.key] == (0, 1)
    assert DESCRIBE_QUORUM.key not in connection.versions.ranges
    with pytest.raises(UnsupportedVersionError):
        connection.request(DESCRIBE_QUORUM, ASK_QUORUM)


def test_the_fallback_is_used_for_requests() -> None:
    with Quorum(brokers=1, release="3.3") as quorum:
        node = quorum.brokers[0]
        node.on("ApiVersions", faults.hang_up)
        connection = dial(node, broker_version_fallback="1.0")
        answer = connection.request(METADATA, {"topics": []})
        assert answer.version == 5
        assert [broker["nodeId"] for broker in answer.body["brokers"]] == [101]


def test_a_fallback_that_nobody_knows_is_a_usage_error(node: Node) -> None:
    node.on("ApiVersions", faults.hang_up)
    with pytest.raises(UsageError, match=r"broker\.version\.fallback: 7\.0"):
        dial(node, broker_version_fallback="7.0")


def test_a_peer_that_answers_slowly_is_not_taken_for_an_older_one(node: Node) -> None:
    node.on("ApiVersions", faults.slow(5))
    with pytest.raises(SourceTimeoutError):
        dial(node, request_timeout_ms="100")
    assert versions_asked(node) == [NEWEST]


def test_a_refusal_of_another_kind_ends_the_handshake(node: Node) -> None:
    node.on("ApiVersions", faults.error(42))
    with pytest.raises(ServerError, match="INVALID_REQUEST"):
        dial(node)
    assert versions_asked(node) == [NEWEST]


# --- the draft ----------------------------------------------------------------------------------------------------


def test_the_draft_asks_for_all_apis_with_version_0() -> None:
    with Quorum(dialects=["kip-35-draft"]) as quorum:
        connection = dial(quorum.leader, dialect="kip-35-draft")
        assert versions_asked(quorum.leader) == [0]
        assert quorum.asked[0].body == {"apiKeys": None}
        assert connection.versions.ranges == quorum.leader.ranges


def test_the_draft_can_ask_for_some_apis() -> None:
    with Quorum(dialects=["kip-35-draft"]) as quorum:
        connection = dial(quorum.leader, dialect="kip-35-draft")
        body = connection.exchange(connection.api(API_VERSIONS), 0, {"apiKeys": [1, 55]})
        assert [item["apiKey"] for item in body["apiKeys"]] == [1, 55]


def test_the_draft_on_a_peer_that_does_not_speak_it_is_a_typed_error(node: Node) -> None:
    with pytest.raises(ProtocolError) as caught:
        dial(node, dialect="kip-35-draft")
    assert caught.value.hint == "a dialect was asked for: does the node speak it?"
