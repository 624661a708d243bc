"""KIP-885, as drafted and as drafted before: a broker tells the name and version of its software."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kshell.client.address import addresses
from kshell.client.connection import Connection
from kshell.client.negotiation import connect
from kshell.client.nodes import BROKER, Nodes
from kshell.errors import ConnectError, NodeError, ProtocolError
from kshell.protocol.messages.cluster import DESCRIBE_CLUSTER
from tests.server import Node, Quorum, settings

TOLD: list[tuple[str | None, str | None]] = [
    ("apache-kafka-java", "3.4.0"),
    (None, None),
    ("redpanda", None),
    (None, "1.0"),
    ("", ""),
    ("\x1b[31mred", "1\n2"),
    ("名" * 300, "x" * 32000),
]


@pytest.fixture
def current() -> Iterator[Quorum]:
    with Quorum(brokers=2, dialects=["kip-885"]) as made:
        yield made


@pytest.fixture
def older() -> Iterator[Quorum]:
    with Quorum(brokers=2, dialects=["kip-885-apiversions"]) as made:
        yield made


def dial(node: Node, dialect: str) -> Connection:
    return node.quorum.keep(connect("127.0.0.1", node.port, settings(dialect=dialect)))


@pytest.mark.parametrize("told", TOLD, ids=range(len(TOLD)))
def test_describe_cluster_v1_tells_a_brokers_software(current: Quorum, told: tuple[str | None, str | None]) -> None:
    node = current.brokers[0]
    current.software[node.id] = told
    answer = dial(node, "kip-885").request(DESCRIBE_CLUSTER, {})
    assert answer.version == 1
    assert (answer.body["brokerSoftwareName"], answer.body["brokerSoftwareVersion"]) == told
    assert [broker["brokerId"] for broker in answer.body["brokers"]] == [101, 102]
    assert current.asked_for("DescribeCluster")[0].body == {"includeClusterAuthorizedOperations": False}


def test_a_broker_answers_for_itself_only(current: Quorum) -> None:
    current.software[102] = ("apache-kafka-java", "3.5.1")
    one, two = (dial(node, "kip-885").request(DESCRIBE_CLUSTER, {}).body for node in current.brokers)
    assert (one["brokerSoftwareVersion"], two["brokerSoftwareVersion"]) == (None, "3.5.1")


def test_a_broker_of_before_does_not_tell(current: Quorum) -> None:
    current.brokers[0].ranges[DESCRIBE_CLUSTER.key] = (0, 0)
    answer = dial(current.brokers[0], "kip-885").request(DESCRIBE_CLUSTER, {})
    assert answer.version == 0
    assert "brokerSoftwareName" not in answer.body


def test_nodes_learn_the_cluster_from_the_drafts_answer(current: Quorum) -> None:
    made = current.keep(Nodes(BROKER, addresses(current.bootstrap_servers), settings(dialect="kip-885")))
    made.describe(made.any())
    assert (made.cluster_id, sorted(made.by_id)) == (current.cluster_id, [101, 102])


@pytest.mark.parametrize("told", TOLD[:5], ids=range(5))
def test_api_versions_v4_tells_a_brokers_software(older: Quorum, told: tuple[str | None, str | None]) -> None:
    older.software[101] = told
    connection = dial(older.brokers[0], "kip-885-apiversions")
    assert connection.versions.software == told
    assert connection.versions.ranges == older.brokers[0].ranges
    assert connection.versions.finalized == {"metadata.version": 30}
    assert [asked.version for asked in older.asked] == [4]


def test_api_versions_v3_does_not_tell(older: Quorum) -> None:
    older.software[101] = ("apache-kafka-java", "3.4.0")
    older.brokers[0].ranges[18] = (0, 3)
    assert dial(older.brokers[0], "kip-885-apiversions").versions.software == (None, None)


def test_without_the_dialect_nothing_is_told() -> None:
    with Quorum(brokers=1) as quorum:
        quorum.software[101] = ("apache-kafka-java", "4.3.1")
        assert quorum.keep(connect("127.0.0.1", quorum.brokers[0].port, settings())).versions.software == (None, None)


@pytest.mark.parametrize("dialect", ["kip-885", "kip-885-apiversions"])
@pytest.mark.parametrize("release", ["3.7", "4.0", "4.3"])
def test_a_release_that_does_not_speak_the_draft_is_not_misread(dialect: str, release: str) -> None:
    with Quorum(brokers=3, release=release) as quorum:
        try:
            connection = dial(quorum.brokers[0], dialect)
            body = connection.request(DESCRIBE_CLUSTER, {}).body
        except NodeError as error:
            assert isinstance(error, ProtocolError | ConnectError)
            assert "dialect" in str(error.hint)
        else:
            assert dialect == "kip-885-apiversions"  # those releases end at version 3, whose layout is the same
            assert release == "3.7"
            assert connection.versions.software == (None, None)
            assert body["clusterId"] == quorum.cluster_id
