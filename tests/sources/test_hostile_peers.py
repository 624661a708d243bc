"""Controllers and brokers that answer for ever and lead nowhere: every call ends in time, with few questions, and says
which node did what.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest

from kshell.client.address import addresses
from kshell.client.leader import TOPIC_ID, Leader, find_leader
from kshell.client.nodes import BROKER, CONTROLLER, Nodes
from kshell.errors import KshellError, NodeError, ProtocolError, SourceTimeoutError
from kshell.metadata.delta import Delta
from kshell.metadata.image import EMPTY
from kshell.protocol.decoder import Message
from kshell.sources.brokers.topics import topics
from kshell.sources.quorum.earlier_log import older_log
from kshell.sources.quorum.facts import describe_quorum
from kshell.sources.quorum.source import QuorumSource
from tests import builders
from tests.builders import uuid, value
from tests.server import Node, Quorum, faults, guarded, settings
from tests.server.faults import Fault, Reply

TIMEOUT = 1.5
"""Seconds of ``default.api.timeout.ms``."""
SLACK = 3.0
"""More seconds for a machine that is busy; who does not heed the deadline takes 8 or more."""
KAFKAS = {
    "default_api_timeout_ms": "1500",
    "request_timeout_ms": "30000",
    "socket_connection_setup_timeout_ms": "10000",
    "reconnect_backoff_ms": "50",
    "reconnect_backoff_max_ms": "1000",
    "retry_backoff_ms": "100",
    "retry_backoff_max_ms": "1000",
}
"""Kafka's own defaults but for the deadline: the pauses are what bounds the number of questions."""
MOST_QUESTIONS = 150
"""Requests within the deadline. Without a pause a server in the same process is asked thousands of times."""


@pytest.fixture
def quorum() -> Iterator[Quorum]:
    with Quorum(2) as made:
        yield made


def source_of(quorum: Quorum, bootstrap: str | None = None, **properties: str) -> QuorumSource:
    return quorum.keep(QuorumSource(bootstrap or quorum.bootstrap, settings(**(KAFKAS | properties))))


def nodes_of(quorum: Quorum, kind: str = CONTROLLER, **properties: str) -> Nodes:
    there = quorum.bootstrap if kind == CONTROLLER else quorum.bootstrap_servers
    return quorum.keep(Nodes(kind, addresses(there), settings(**(KAFKAS | properties))))


def failure_of(call: Callable[[], object], quorum: Quorum, *, seconds: float = TIMEOUT) -> KshellError:
    """The error of a call that must end in time and must not hammer anybody."""
    before, begin = len(quorum.asked), time.monotonic()
    with pytest.raises(KshellError) as caught:
        call()
    assert time.monotonic() - begin < seconds + SLACK
    assert len(quorum.asked) - before < MOST_QUESTIONS
    return caught.value


def partition(**fields: Any) -> Message:
    """The only partition of a Fetch answer."""
    nothing = {"leaderId": -1, "leaderEpoch": -1}
    made = {"partitionIndex": 0, "errorCode": 0, "highWatermark": -1, "logStartOffset": 0, "currentLeader": nothing}
    return made | {"abortedTransactions": None, "records": b""} | fields


def fetched(part: Message, endpoint: tuple[int, str, int] | None = None) -> Message:
    """The body of a Fetch answer."""
    body: Message = {"responses": [{"topicId": TOPIC_ID, "partitions": [part]}]}
    if endpoint is not None:
        body["nodeEndpoints"] = [dict(zip(("nodeId", "host", "port"), endpoint, strict=True))]
    return body


def points_at(leader: Node, epochs: Iterator[int], *, code: int = 6) -> Fault:
    """Refuses each Fetch: another node leads, in a later epoch each time."""

    def spoil(reply: Reply) -> None:
        claim = {"leaderId": leader.id, "leaderEpoch": next(epochs)}
        part = partition(errorCode=code, currentLeader=claim)
        reply.body = fetched(part, (leader.id, "127.0.0.1", leader.port))

    return spoil


def answers(make: Callable[[Message], Message]) -> Fault:
    """Answers each Fetch with a partition made of the one that was asked for."""

    def spoil(reply: Reply) -> None:
        reply.body = fetched(make(reply.request["topics"][0]["partitions"][0]))

    return spoil


# --- who leads ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [6, 74, 75])
def test_two_controllers_that_point_at_each_other_are_both_named(quorum: Quorum, code: int) -> None:
    one, two = quorum.controllers
    epochs = count(7)
    one.on("Fetch", points_at(two, epochs, code=code))
    two.on("Fetch", points_at(one, epochs, code=code))
    for call in (source_of(quorum).load, lambda: find_leader(nodes_of(quorum), timeout=TIMEOUT)):
        error = failure_of(call, quorum)
        assert isinstance(error, SourceTimeoutError)
        assert error.api == "Fetch"
        assert "each name the other as leader" in error.reason
        assert one.address in error.node
        assert two.address in error.node


def test_one_controller_that_points_at_itself_and_refuses_is_named(quorum: Quorum) -> None:
    liar = quorum.controllers[0]
    liar.on("Fetch", points_at(liar, count(7)))
    error = failure_of(source_of(quorum, liar.address).load, quorum)
    assert isinstance(error, SourceTimeoutError)
    assert error.node == liar.address
    assert "names itself (controller 1) as the leader, and refuses to serve epoch" in error.reason


def test_a_later_epoch_with_each_answer_is_named(quorum: Quorum) -> None:
    liar, epochs = quorum.controllers[0], count(7)

    def spoil(reply: Reply) -> None:
        reply.body = fetched(partition(errorCode=74, currentLeader={"leaderId": 77, "leaderEpoch": next(epochs)}))

    liar.on("Fetch", spoil)
    error = failure_of(source_of(quorum, liar.address).load, quorum)
    assert "names a later epoch each time" in error.message
    assert liar.address in error.message


def test_controllers_that_are_made_up_with_each_answer_are_not_all_remembered(quorum: Quorum) -> None:
    """Each address is another name of the same server: 127.0.0.2, 127.0.0.3, …."""
    liar, numbers = quorum.controllers[0], count(2)

    def spoil(reply: Reply) -> None:
        number = next(numbers)
        part = partition(errorCode=6, currentLeader={"leaderId": number, "leaderEpoch": number})
        reply.body = fetched(part, (number, f"127.0.0.{number % 250 + 2}", liar.port))

    liar.on("Fetch", spoil)
    nodes = quorum.keep(Nodes(CONTROLLER, addresses(liar.address), settings(**KAFKAS)))
    failure_of(lambda: find_leader(nodes, timeout=TIMEOUT), quorum)
    for number in range(2000):
        nodes.learn(nodes.by_id[max(nodes.by_id)]._replace(id=10_000 + number))
    assert len(nodes.by_id) <= 256


@pytest.mark.parametrize("api", ["Fetch", "DescribeCluster", "ApiVersions"])
def test_a_controller_that_hangs_costs_no_more_than_the_deadline(quorum: Quorum, api: str) -> None:
    quorum.on(api, faults.slow(8))
    assert isinstance(failure_of(source_of(quorum).load, quorum), SourceTimeoutError)
    if api != "Fetch":
        assert isinstance(failure_of(lambda: describe_quorum(nodes_of(quorum)), quorum), SourceTimeoutError)


def test_a_cluster_of_a_million_nodes_is_not_believed(quorum: Quorum) -> None:
    def spoil(body: Message) -> None:
        body["brokers"] = [{"brokerId": i, "host": "h", "port": 1, "rack": None} for i in range(10_001)]

    quorum.on("DescribeCluster", faults.change(spoil))
    error = failure_of(source_of(quorum, default_api_timeout_ms="30000").load, quorum, seconds=20)
    assert isinstance(error, ProtocolError)
    assert "10,001 controllers" in error.reason
    assert error.api == "DescribeCluster"


@pytest.mark.parametrize("port", [-1, 0, 70_000, 2**31 - 1])
def test_an_address_that_cannot_be_is_a_typed_error(quorum: Quorum, port: int) -> None:
    def spoil(body: Message) -> None:
        body["brokers"] = [{"brokerId": 9, "host": "a\0b", "port": port, "rack": None}]

    nodes = nodes_of(quorum)
    quorum.on("DescribeCluster", faults.change(spoil))
    assert isinstance(failure_of(lambda: nodes.node(9), quorum), NodeError)


# --- a leader that serves -----------------------------------------------------------------------------------------


def test_a_leader_that_answers_at_once_and_brings_nothing_is_not_hammered(quorum: Quorum) -> None:
    quorum.on("Fetch", answers(lambda asked: partition(highWatermark=100)))
    error = failure_of(source_of(quorum).load, quorum)
    assert isinstance(error, SourceTimeoutError)
    assert "the leader sends nothing after offset 0" in error.reason


def test_a_watermark_that_rises_and_brings_nothing_is_not_hammered(quorum: Quorum) -> None:
    marks = count(100)
    quorum.on("Fetch", answers(lambda asked: partition(highWatermark=next(marks))))
    failure_of(source_of(quorum).load, quorum)


def test_a_follower_is_not_kept_busy_by_empty_answers(quorum: Quorum) -> None:
    quorum.append(value("TOPIC", name="a", topicId=uuid(1)))
    source = source_of(quorum)
    source.load()
    quorum.on("Fetch", answers(lambda asked: partition(highWatermark=2)))
    source.start()
    before = len(quorum.asked)
    time.sleep(1)
    assert len(quorum.asked) - before < 15


def test_a_log_that_is_never_committed_is_not_taken_without_end(quorum: Quorum) -> None:
    def make(asked: Message) -> Message:
        batch = builders.batch([value("TOPIC", name="x" * 30_000, topicId=uuid(1))] * 100, asked["fetchOffset"], 1)
        return partition(records=batch)

    quorum.leader.on("Fetch", answers(make), skip=1)
    outcome = guarded.load("quorum", quorum.leader.address, **KAFKAS | {"default_api_timeout_ms": "4000"})
    assert outcome.error == "SourceTimeoutError"
    assert "the leader does not say what is committed" in outcome.message
    assert outcome.seconds < 5
    assert outcome.memory < guarded.MOST_MEMORY


@pytest.mark.parametrize("kind", ["diverging", "out of range", "unknown epoch", "fenced"])
def test_a_leader_that_takes_everything_back_again_and_again(quorum: Quorum, kind: str) -> None:
    """It commits a record, and says that it never did when it is asked for the next."""
    epoch = quorum.epoch

    def make(asked: Message) -> Message:
        if asked["fetchOffset"] == 0:
            batch = builders.batch([value("TOPIC", name="a", topicId=uuid(1))], 0, epoch)
            return partition(highWatermark=50, records=batch)
        if kind == "diverging":
            return partition(divergingEpoch={"epoch": 0, "endOffset": 0})
        return partition(errorCode={"out of range": 1, "unknown epoch": 75, "fenced": 74}[kind])

    quorum.leader.on("Fetch", answers(make), skip=1)
    error = failure_of(source_of(quorum, quorum.leader.address).load, quorum, seconds=2 * TIMEOUT)
    assert isinstance(error, NodeError)
    assert error.api == "Fetch"
    if kind in ("diverging", "out of range"):
        assert "takes committed records back, again and again" in error.reason
        assert error.node == quorum.leader.address


def test_snapshots_that_change_for_ever(quorum: Quorum) -> None:
    numbers = count(10)

    def make(asked: Message) -> Message:
        number = next(numbers)
        quorum.log.snapshots[number, 1] = builders.snapshot([value("TOPIC", name="a", topicId=uuid(1))], 1)
        return partition(snapshotId={"endOffset": number, "epoch": 1})

    quorum.leader.on("Fetch", answers(make), skip=1)
    error = failure_of(source_of(quorum, quorum.leader.address).load, quorum, seconds=2 * TIMEOUT)
    assert isinstance(error, ProtocolError)
    assert "the leader names another snapshot" in error.reason


@pytest.mark.parametrize("code", [-1, 98, 6, 74])
@pytest.mark.parametrize("writes", [True, False])
def test_a_snapshot_that_is_named_and_never_given(quorum: Quorum, code: int, writes: bool) -> None:
    quorum.writes_refusals = writes
    quorum.append(value("TOPIC", name="a", topicId=uuid(1)))
    quorum.snapshot([value("TOPIC", name="a", topicId=uuid(1))])
    quorum.on("FetchSnapshot", faults.error(code, whole=not writes))
    error = failure_of(source_of(quorum).load, quorum)
    assert isinstance(error, NodeError)
    assert error.api == "FetchSnapshot"


def test_an_older_log_whose_epoch_is_never_right(quorum: Quorum) -> None:
    """At the log's start the epoch must be that of a snapshot that the leader does not name."""
    quorum.append(value("TOPIC", name="a", topicId=uuid(1)))
    quorum.snapshot([value("TOPIC", name="a", topicId=uuid(1))])
    source = source_of(quorum, default_api_timeout_ms="10000")
    source.load()
    quorum.append(value("TOPIC", name="b", topicId=uuid(2)))
    quorum.epoch = 1 << 30
    named = {"endOffset": 2, "epoch": 1 << 30}
    quorum.on("Fetch", answers(lambda asked: partition(logStartOffset=asked["fetchOffset"], snapshotId=named)))
    source.observer.leader = Leader(quorum.leader_id, 1 << 30, ("127.0.0.1", quorum.leader.port))
    before, begin = len(quorum.asked), time.monotonic()
    with pytest.raises(ProtocolError, match="no epoch fits where its log starts, of 1000"):
        older_log(source.observer, source.nodes, 1, 2)
    assert time.monotonic() - begin < 10
    assert len(quorum.asked) - before < 1100


# --- what is asked of the whole cluster ---------------------------------------------------------------------------


def test_a_quorum_that_never_describes_itself(quorum: Quorum) -> None:
    quorum.on("DescribeQuorum", faults.error(6))
    one, two = quorum.controllers
    epochs = count(7)
    one.on("Fetch", points_at(two, epochs))
    two.on("Fetch", points_at(one, epochs))
    failure_of(lambda: describe_quorum(nodes_of(quorum)), quorum)


def test_pages_of_topics_that_are_empty_end() -> None:
    with Quorum(1, 1) as quorum:
        names = count(1)

        def spoil(body: Message) -> None:
            body["topics"] = []
            body["nextCursor"] = {"topicName": f"t{next(names):09}", "partitionIndex": 0}

        quorum.on("DescribeTopicPartitions", faults.change(spoil))
        nodes = nodes_of(quorum, BROKER)
        error = failure_of(lambda: topics(nodes, Delta(EMPTY), []), quorum)
        assert isinstance(error, ProtocolError)
        assert error.api == "DescribeTopicPartitions"


def test_a_broker_that_hangs_costs_no_more_than_the_deadline() -> None:
    with Quorum(1, 1) as quorum:
        quorum.on("DescribeTopicPartitions", faults.slow(8))
        nodes = nodes_of(quorum, BROKER)
        assert isinstance(failure_of(lambda: topics(nodes, Delta(EMPTY), []), quorum), SourceTimeoutError)
