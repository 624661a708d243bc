"""Requests in order, each answered within its deadline, and never an answer taken for another one's."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from kshell.client.address import addresses
from kshell.client.connection import Connection
from kshell.client.negotiation import connect
from kshell.client.nodes import CONTROLLER, Nodes
from kshell.errors import ConnectError, NodeError, ProtocolError, SourceTimeoutError
from kshell.protocol.messages.cluster import DESCRIBE_CLUSTER
from tests.server import PLAIN_LOGIN, Quorum, faults, settings
from tests.server.faults import Fault

ASK = {"endpointType": 2}


@pytest.fixture
def quorum() -> Iterator[Quorum]:
    with Quorum() as made:
        yield made


def dial(quorum: Quorum, **properties: str) -> Connection:
    return quorum.keep(connect("127.0.0.1", quorum.leader.port, settings(**properties)))


def test_answers_come_in_the_order_of_the_questions(quorum: Quorum) -> None:
    connection = dial(quorum)
    answers = [connection.request(DESCRIBE_CLUSTER, ASK) for _ in range(5)]
    assert {answer.body["clusterId"] for answer in answers} == {quorum.cluster_id}
    assert quorum.leader.connections == 1


def test_threads_take_turns(quorum: Quorum) -> None:
    connection = dial(quorum)
    wrong: list[BaseException] = []

    def ask() -> None:
        try:
            for _ in range(20):
                assert connection.request(DESCRIBE_CLUSTER, ASK).body["controllerId"] == 1
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert not wrong
    assert len(quorum.asked_for("DescribeCluster")) == 160


SPOILT: list[tuple[str, Fault, type[NodeError], str]] = [
    ("hang up", faults.hang_up, ConnectError, "closed the connection"),
    ("cut in the length", faults.cut(2), ConnectError, "after 2 of 4 bytes"),
    ("cut in the frame", faults.cut(20), ConnectError, "after 16 of"),
    ("reset", faults.cut(20, reset=True), ConnectError, "ended|closed"),
    ("oversize", faults.length(0x7FFFFFFF), ProtocolError, "2147483647 bytes is claimed"),
    ("negative", faults.length(-5), ProtocolError, "-5 bytes is claimed"),
    ("no header", faults.raw(b"\0\0\0\2ab"), ProtocolError, "2 bytes has no header"),
    ("empty frame", faults.raw(b"\0\0\0\0"), ProtocolError, "0 bytes has no header"),
    ("wrong correlation id", faults.wrong_correlation, ProtocolError, "the answer is to request 3, but request 2"),
    ("garbage", faults.frame(b"\xff" * 40), ProtocolError, "not a DescribeClusterResponse v2"),
    ("nothing after the header", faults.frame(b""), ProtocolError, "not a DescribeClusterResponse v2"),
    ("another version", faults.other_version(0), ProtocolError, "not a DescribeClusterResponse v2"),
    ("slow", faults.slow(3), SourceTimeoutError, "no answer in time"),
    ("slow inside", faults.slow(3, after=9), SourceTimeoutError, "no answer in time"),
]


@pytest.mark.parametrize(("fault", "kind", "words"), [case[1:] for case in SPOILT], ids=[case[0] for case in SPOILT])
def test_a_spoilt_answer_is_a_typed_error_and_ends_the_connection(
    quorum: Quorum, fault: Fault, kind: type[NodeError], words: str
) -> None:
    connection = dial(quorum, request_timeout_ms="200")
    quorum.on("DescribeCluster", fault)
    begin = time.monotonic()
    with pytest.raises(kind, match=words) as caught:
        connection.request(DESCRIBE_CLUSTER, ASK)
    assert time.monotonic() - begin < 1
    assert (caught.value.node, caught.value.api) == (quorum.leader.address, "DescribeCluster")
    assert not connection.is_open
    with pytest.raises(ConnectError):
        connection.request(DESCRIBE_CLUSTER, ASK)  # never used again: a late answer would be taken for this one's


def test_a_late_answer_names_the_setting(quorum: Quorum) -> None:
    connection = dial(quorum, request_timeout_ms="50")
    quorum.on("DescribeCluster", faults.slow(3))
    with pytest.raises(SourceTimeoutError) as caught:
        connection.request(DESCRIBE_CLUSTER, ASK)
    assert caught.value.hint == "request.timeout.ms sets how long to wait"


def test_unknown_tagged_fields_of_a_later_release_are_read_over(quorum: Quorum) -> None:
    later = [{"tag": 77, "data": b"later"}]
    quorum.on("DescribeCluster", faults.change(lambda body: body.update(unknownTaggedFields=later)))
    assert dial(quorum).request(DESCRIBE_CLUSTER, ASK).body["clusterId"] == quorum.cluster_id


def test_an_answer_that_has_begun_may_take_longer(quorum: Quorum) -> None:
    """A slow link is no node that hangs: what counts then is that bytes keep coming."""
    quorum.on("DescribeCluster", faults.slow(0.5, after=20))
    assert dial(quorum).request(DESCRIBE_CLUSTER, ASK, timeout=0.2, whole=5.0).body["clusterId"] == quorum.cluster_id
    for whole in (None, 0.3):
        with pytest.raises(SourceTimeoutError):
            dial(quorum).request(DESCRIBE_CLUSTER, ASK, timeout=0.2, whole=whole)


def test_an_answer_that_stops_is_not_waited_for(quorum: Quorum, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kshell.client.connection._STALL", 0.2)
    quorum.on("DescribeCluster", faults.slow(5.0, after=20))
    connection = dial(quorum)
    began = time.monotonic()
    with pytest.raises(SourceTimeoutError):
        connection.request(DESCRIBE_CLUSTER, ASK, timeout=1.0, whole=30.0)
    assert time.monotonic() - began < 4


def test_a_session_that_expires_is_renewed_before_it_does() -> None:
    """A broker ends an expired session at its next request, which would fail (KIP-368)."""
    with Quorum(users={"u": "p"}) as quorum:
        quorum.on("SaslAuthenticate", faults.change(lambda body: body.update(sessionLifetimeMs=400)))
        nodes = quorum.keep(Nodes(CONTROLLER, addresses(quorum.bootstrap), settings(**PLAIN_LOGIN)))
        first = nodes.any()
        assert first.is_usable() and nodes.any() is first
        time.sleep(0.4)
        assert nodes.any() is not first
        assert not first.is_open


def test_a_listener_that_wants_a_login_is_guessed() -> None:
    """ApiVersions is answered before the login; then Kafka hangs up."""
    with Quorum(users={"u": "p"}) as quorum:
        nodes = quorum.keep(Nodes(CONTROLLER, addresses(quorum.bootstrap), settings()))
        with pytest.raises(ConnectError, match="hangs up on the next request") as raised:
            nodes.any()
        assert "security.protocol" in (raised.value.hint or "")
        assert not nodes.was_reached


def test_a_name_server_that_does_not_answer_costs_the_deadline_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **more: over.wait(20))
    began = time.monotonic()
    with pytest.raises(ConnectError, match="no answer from the name server in time"):
        connect("controller.example", 9093, settings(), timeout=0.3)
    assert time.monotonic() - began < 5
    over.set()


def test_an_interrupt_ends_the_connection(quorum: Quorum, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = dial(quorum)

    def interrupted(deadline: float, flow: object) -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr(connection._transport, "receive", interrupted)
    with pytest.raises(KeyboardInterrupt):
        connection.request(DESCRIBE_CLUSTER, ASK)
    assert not connection.is_open


def test_correlation_ids_begin_again_before_they_overflow(quorum: Quorum) -> None:
    connection = dial(quorum)
    connection._next_id = 0x7FFFFFFF
    for _ in range(2):
        connection.request(DESCRIBE_CLUSTER, ASK)
    assert connection._next_id == 2
