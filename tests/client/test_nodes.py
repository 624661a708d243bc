"""Connections to the nodes of a cluster, made on demand and kept."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from kshell.client.address import addresses, name_of
from kshell.client.nodes import BROKER, CONTROLLER, Nodes, VersionsReply, none_answers, unreachable
from kshell.engine.execution import deadline
from kshell.errors import (
    ClusterIdError,
    ConnectError,
    DeadlineError,
    NodeError,
    ProtocolError,
    SourceTimeoutError,
    TlsError,
    WrongEndpointError,
)
from kshell.protocol.messages.cluster import DESCRIBE_CLUSTER
from tests.server import Quorum, faults, settings


@pytest.fixture
def quorum() -> Iterator[Quorum]:
    with Quorum(2, brokers=2) as made:
        yield made


@pytest.fixture
def nodes(quorum: Quorum) -> Nodes:
    return quorum.keep(Nodes(CONTROLLER, addresses(quorum.bootstrap), settings(request_timeout_ms="300")))


def test_a_connection_is_kept(quorum: Quorum, nodes: Nodes) -> None:
    assert nodes.any() is nodes.any()
    assert nodes.at(nodes.bootstrap[0]) is nodes.any()
    assert quorum.controllers[0].connections == 1


def test_a_connection_that_ended_is_made_again(quorum: Quorum, nodes: Nodes) -> None:
    quorum.on("DescribeCluster", faults.hang_up, times=1, skip=1)
    before = nodes.any()
    with pytest.raises(ConnectError):
        before.request(DESCRIBE_CLUSTER, {"endpointType": 2})
    assert nodes.any() is not before
    assert nodes.any().is_open


def test_a_connection_that_the_server_ended_while_it_was_idle_is_made_again(quorum: Quorum, nodes: Nodes) -> None:
    before = nodes.any()
    assert before.is_usable()
    quorum.controllers[0].disconnect()
    until = time.monotonic() + 5
    while before.is_usable():
        assert time.monotonic() < until
        time.sleep(0.001)
    assert nodes.any().request(DESCRIBE_CLUSTER, {"endpointType": 2}).body["clusterId"] == quorum.cluster_id


def test_a_connection_that_is_in_use_is_usable(quorum: Quorum, nodes: Nodes) -> None:
    connection = nodes.any()
    quorum.on("DescribeCluster", faults.slow(0.2))
    thread = threading.Thread(target=lambda: connection.request(DESCRIBE_CLUSTER, {"endpointType": 2}))
    thread.start()
    while thread.is_alive():
        assert nodes.any() is connection
        time.sleep(0.005)
    thread.join()


def test_a_dialled_connection_is_the_callers_own(nodes: Nodes) -> None:
    own = nodes.dial(nodes.bootstrap[0])
    assert own is not nodes.any()
    nodes.close()
    assert own.is_open
    own.close()


def test_close_closes_what_was_kept(nodes: Nodes) -> None:
    found = list(nodes.reachable())
    assert len(found) == 2
    nodes.close()
    assert not any(connection.is_open for connection in found)


def test_a_node_that_hangs_up_during_the_handshake_is_skipped(quorum: Quorum, nodes: Nodes) -> None:
    quorum.controllers[0].on("ApiVersions", faults.hang_up)
    assert nodes.any().node == quorum.controllers[1].address


def test_a_node_that_is_slow_is_skipped(quorum: Quorum, nodes: Nodes) -> None:
    quorum.controllers[0].on("ApiVersions", faults.slow(5))
    assert nodes.any().node == quorum.controllers[1].address


NOT_KAFKA = [
    faults.raw(b"HTTP/1.1 503 Service Unavailable\r\n\r\n"),
    faults.raw(b"\x15\x03\x03\x00\x02\x02\x50"),
    faults.raw(b"220 mail.example ESMTP\r\n"),
    faults.raw(bytes(4000)),
    faults.wrong_correlation,
    faults.frame(b"\xff" * 40),
]
"""What a web server, a TLS listener, a mail server, … answer to ApiVersions."""


@pytest.mark.parametrize("fault", NOT_KAFKA)
def test_what_is_no_kafka_listener_is_skipped(quorum: Quorum, nodes: Nodes, fault: faults.Fault) -> None:
    """It has the address of a node that is away, or is a proxy in front of one: the other nodes answer."""
    quorum.controllers[0].on("ApiVersions", fault)
    assert nodes.any().node == quorum.controllers[1].address
    assert [connection.node for connection in nodes.reachable()] == [quorum.controllers[1].address]
    quorum.controllers[1].stop()
    with pytest.raises(ProtocolError) as caught:
        nodes.at(nodes.bootstrap[0])
    assert "security.protocol" in str(caught.value.hint)
    tried = [asked.connection for asked in quorum.asked_for("ApiVersions") if asked.node_id == 1]
    assert tried == [1, 2, 3]  # no lower version of ApiVersions is tried


@pytest.mark.parametrize("code", [42, 8, -1, 4711])
def test_a_node_that_does_not_describe_the_cluster_can_be_asked_all_else(
    quorum: Quorum, nodes: Nodes, code: int
) -> None:
    quorum.controllers[0].on("DescribeCluster", faults.error(code))
    assert nodes.any().node == quorum.controllers[0].address
    assert "the cluster's id and its controllers stay unknown" in nodes.notes[0]
    assert nodes.at(nodes.bootstrap[1]).is_usable()
    assert nodes.cluster_id is not None


def test_when_all_are_slow_the_error_is_of_time(quorum: Quorum, nodes: Nodes) -> None:
    quorum.on("ApiVersions", faults.slow(5))
    with pytest.raises(SourceTimeoutError, match="none can be reached"):
        nodes.any()


@pytest.mark.parametrize("kind", [CONTROLLER, BROKER])
def test_nodes_that_the_cluster_tells_of_are_tried_after_those_given(quorum: Quorum, kind: str) -> None:
    there = quorum.controllers if kind == CONTROLLER else quorum.brokers
    nodes = quorum.keep(Nodes(kind, addresses(there[1].address), settings()))
    nodes.describe(nodes.any())
    kept = nodes.any()
    there[1].stop()
    while kept.is_usable():
        time.sleep(0.001)
    assert nodes.any().node == there[0].address


def test_the_other_kind_is_not_misread(quorum: Quorum) -> None:
    nodes = quorum.keep(Nodes(BROKER, addresses(quorum.bootstrap_servers), settings()))
    body = nodes.describe(nodes.any(), fenced=True)
    assert body is not None
    assert [broker["brokerId"] for broker in body["brokers"]] == [101, 102]
    assert quorum.asked_for("DescribeCluster")[-1].body["includeFencedBrokers"] is True


@pytest.mark.parametrize("kind", [CONTROLLER, BROKER])
def test_nodes_of_two_clusters_are_not_mixed(quorum: Quorum, kind: str) -> None:
    there = quorum.controllers if kind == CONTROLLER else quorum.brokers
    there[1].cluster_id = "B" * 22
    nodes = quorum.keep(Nodes(kind, addresses(f"{there[0].address},{there[1].address}"), settings()))
    assert nodes.any().is_open
    with pytest.raises(ClusterIdError):
        nodes.at(nodes.bootstrap[1])


def test_close_does_not_wait_for_a_node_that_is_slow(quorum: Quorum) -> None:
    nodes = Nodes(CONTROLLER, addresses(quorum.bootstrap), settings())
    quorum.on("ApiVersions", faults.slow(1))
    caught: list[BaseException] = []

    def ask() -> None:
        try:
            nodes.any()
        except NodeError as error:
            caught.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    while not quorum.asked:
        time.sleep(0.001)
    begin = time.monotonic()
    nodes.close()
    assert time.monotonic() - begin < 0.5
    quorum.well()
    thread.join(5)
    assert "closed meanwhile" in str(caught[0])


def test_threads_that_ask_at_once_share_a_connection(quorum: Quorum, nodes: Nodes) -> None:
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(nodes.any())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5)
    assert len(set(map(id, found))) == 1


def test_nothing_stays_open_when_a_node_is_not_admitted(quorum: Quorum, nodes: Nodes) -> None:
    quorum.on("DescribeCluster", faults.error(114))
    with pytest.raises(WrongEndpointError):
        nodes.dial(nodes.bootstrap[0])  # an open socket would be a ResourceWarning


def test_who_has_not_answered_when_a_deadline_comes(quorum: Quorum, nodes: Nodes) -> None:
    """One node that is asked, and one to which a connection is being made; none after answers and errors."""
    asked = nodes.any()
    assert nodes.take_unanswered(with_fetch=True) == []
    quorum.on("DescribeCluster", faults.slow(5))
    with pytest.raises(DeadlineError), deadline(0.1):
        asked.request(DESCRIBE_CLUSTER, {"endpointType": 2}, timeout=3)
    quorum.on("ApiVersions", faults.slow(5))
    other = next(address for address in nodes.bootstrap if name_of(*address) != asked.node)
    with pytest.raises(DeadlineError), deadline(0.1):
        nodes.dial(other)
    assert nodes.take_unanswered(with_fetch=True) == [f"{asked.node} (DescribeCluster)", name_of(*other)]
    assert nodes.take_unanswered(with_fetch=True) == [], "named once"
    with pytest.raises(SourceTimeoutError):
        nodes.dial(other, timeout=0.1)
    assert nodes.take_unanswered(with_fetch=True) == []


def test_nodes_that_fail_for_different_reasons_have_advice_of_their_own() -> None:
    expired = TlsError("a:1", "TLS: the server's certificate has expired", hint="renew the certificate of that server")
    misnamed = [
        TlsError(
            node, "TLS: the server's certificate is for another name", hint=f"see `show {node}`, or get one; or not"
        )
        for node in ("b:2", "c:3")
    ]
    silent = SourceTimeoutError("d:4", "no answer in time")
    for summary in (unreachable, lambda failures: none_answers([VersionsReply(None, error) for error in failures])):
        failures: list[NodeError] = [silent, expired, *misnamed]
        assert summary(failures).hint == (
            "a:1: renew the certificate of that server; b:2, c:3: see `show b:2`, or get one"
        )
        assert summary([silent, *misnamed]).hint == "see `show b:2`, or get one; or not"
        assert summary([silent, silent]).hint is None
