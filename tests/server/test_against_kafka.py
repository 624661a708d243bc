"""The pretend server and Kafka itself give the same kind of answer to the same questions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kshell.client.connection import Connection
from kshell.client.leader import TOPIC_ID, find_leader
from kshell.client.negotiation import connect
from kshell.client.nodes import CONTROLLER, TOPIC, Nodes
from kshell.errors import ConnectError
from kshell.protocol.decoder import Message
from kshell.protocol.messages.cluster import DESCRIBE_CLUSTER
from kshell.protocol.messages.connection import API_VERSIONS
from kshell.protocol.messages.quorum import DESCRIBE_QUORUM, FETCH, FETCH_SNAPSHOT
from kshell.protocol.primitives import Uuid
from tests.builders import uuid, value
from tests.kafka import jars
from tests.kafka.cluster import Cluster
from tests.server import Quorum, settings

pytestmark = pytest.mark.live

VERSIONS = ("3.3.2", "3.7.2", "3.9.2", "4.0.0", "4.4.0")


class Peer:
    """One node that leads, real or not."""

    def __init__(self, port: int) -> None:
        nodes = Nodes(CONTROLLER, [("127.0.0.1", port)], settings(default_api_timeout_ms="20000"))
        leader = find_leader(nodes, timeout=20)
        nodes.close()
        self.leader_id, self.epoch, self.port = leader.id, leader.epoch, port

    def connection(self) -> Connection:
        """A new one."""
        return connect("127.0.0.1", self.port, settings())

    def fetch(self, **changed: Any) -> Message:
        """What becomes of a Fetch that differs from a good one in ``changed``."""
        partition = {
            "partition": 0, "currentLeaderEpoch": self.epoch, "fetchOffset": 0, "lastFetchedEpoch": 0,
            "partitionMaxBytes": 1 << 20,
        }  # fmt: skip
        more = {name: changed.pop(name) for name in list(changed) if name in ("clusterId", "maxWaitMs", "topicId")}
        topic = {"topicId": more.pop("topicId", TOPIC_ID), "partitions": [partition | changed]}
        connection = self.connection()
        with_closing = {"replicaId": -1, "maxWaitMs": 0, "maxBytes": 1 << 20, "topics": [topic], **more}
        try:
            version, body = connection.request(FETCH, with_closing)
        finally:
            connection.close()
        found = body["responses"][0]["partitions"][0] if body["responses"] else {}
        return {"version": version, "error": body["errorCode"], **self.kind(found, body)}

    def kind(self, found: Message, body: Message) -> Message:
        """What does not depend on who answers, and when."""
        leader = found.get("currentLeader") or {}
        diverging = found.get("divergingEpoch", {})
        return {
            "partition": found.get("errorCode"),
            "leader": leader.get("leaderId") == self.leader_id and leader.get("leaderEpoch") == self.epoch,
            "diverges": diverging.get("epoch", -1) >= 0,
            "snapshot": found.get("snapshotId", {}).get("endOffset", -1) >= 0 and "size" not in found,
            "records": bool(found.get("records")),
            "endpoints": [node["nodeId"] == self.leader_id for node in body.get("nodeEndpoints", ())],
        }


@pytest.fixture(scope="module", params=VERSIONS)
def pair(request: pytest.FixtureRequest) -> Iterator[tuple[Peer, Peer]]:
    """A real controller, and a pretended one of its release."""
    version = request.param
    jars.require(version)
    release = version.rpartition(".")[0]
    with Cluster(version, controllers=1, brokers=0) as cluster, Quorum(release=release) as quorum:
        for number in range(3):
            quorum.append(value("TOPIC", name=f"topic-{number}", topicId=uuid(number)))
        yield Peer(cluster.controllers[0].port), Peer(quorum.leader.port)


FETCHES: list[dict[str, Any]] = [
    {},
    {"fetchOffset": 1, "lastFetchedEpoch": 1},
    {"currentLeaderEpoch": 0},
    {"currentLeaderEpoch": 99},
    {"currentLeaderEpoch": -1},
    {"clusterId": "A" * 22},
    {"topicId": Uuid(bytes(15) + b"\7")},
    {"fetchOffset": -1},
    {"lastFetchedEpoch": -1},
    {"lastFetchedEpoch": 99},
    {"fetchOffset": 1 << 40, "lastFetchedEpoch": 1},
    {"maxWaitMs": -1},
]


@pytest.mark.parametrize("changed", FETCHES, ids=str)
def test_fetch(pair: tuple[Peer, Peer], changed: dict[str, Any]) -> None:
    real, pretended = (peer.fetch(**changed) for peer in pair)
    assert pretended == real


SNAPSHOTS: list[dict[str, Any]] = [
    {},
    {"currentLeaderEpoch": 0},
    {"currentLeaderEpoch": 99},
    {"clusterId": "A" * 22},
    {"name": "another"},
]


@pytest.mark.parametrize("changed", SNAPSHOTS, ids=str)
def test_fetch_snapshot(pair: tuple[Peer, Peer], changed: dict[str, Any]) -> None:
    seen = []
    for peer in pair:
        rest = dict(changed)
        partition = {
            "partition": 0, "currentLeaderEpoch": rest.pop("currentLeaderEpoch", peer.epoch), "position": 0,
            "snapshotId": {"endOffset": 999999, "epoch": 1},
        }  # fmt: skip
        topics = [{"name": rest.pop("name", TOPIC), "partitions": [partition]}]
        connection = peer.connection()
        version, body = connection.request(FETCH_SNAPSHOT, {"maxBytes": 1 << 20, "topics": topics, **rest})
        connection.close()
        found = body["topics"][0]["partitions"][0] if body["topics"] else {}
        kind = peer.kind(found, body)
        seen.append({"version": version, "error": body["errorCode"], **kind})
    real, pretended = seen
    assert pretended == real


@pytest.mark.parametrize("endpoint", [1, 2, 3])
def test_describe_cluster(pair: tuple[Peer, Peer], endpoint: int) -> None:
    seen = []
    for peer in pair:
        connection = peer.connection()
        if connection.offers(DESCRIBE_CLUSTER, 1):
            body = connection.request(DESCRIBE_CLUSTER, {"endpointType": endpoint}).body
            nodes = [node["brokerId"] == peer.leader_id for node in body["brokers"]]
            seen.append((body["errorCode"], body["controllerId"] == peer.leader_id, nodes))
        connection.close()
    assert seen[1:] == seen[:1] or not seen


def test_describe_quorum(pair: tuple[Peer, Peer]) -> None:
    seen = []
    for peer in pair:
        connection = peer.connection()
        asked = {"topics": [{"topicName": TOPIC, "partitions": [{"partitionIndex": 0}]}]}
        version, body = connection.request(DESCRIBE_QUORUM, asked)
        connection.close()
        found = body["topics"][0]["partitions"][0]
        voters = [sorted(voter) for voter in found["currentVoters"]]
        seen.append((version, body["errorCode"], found["errorCode"], found["leaderId"] == peer.leader_id, voters))
    assert seen[1] == seen[0]


def test_api_versions(pair: tuple[Peer, Peer]) -> None:
    real, pretended = (peer.connection() for peer in pair)
    assert pretended.versions.ranges == real.versions.ranges
    seen = []
    for connection in (real, pretended):
        # A version that nobody has is answered in version 0: error 35, and what would do.
        frame = connection.exchange_raw(API_VERSIONS._replace(request=_later()), 99, {})
        seen.append(frame[4:])
        connection.close()
    assert seen[1] == seen[0]


def _later() -> Any:
    from kshell.protocol.schema import Schema

    return Schema(
        "ApiVersionsRequest", "0-99", "clientSoftwareName string 3+\nclientSoftwareVersion string 3+", flexible=3
    )


def test_a_version_that_is_not_offered_ends_the_connection(pair: tuple[Peer, Peer]) -> None:
    for peer in pair:
        connection = peer.connection()
        versions = FETCH.request.versions
        assert versions.high is not None
        high = connection.versions.ranges[FETCH.key][1]
        if high < versions.high:
            with pytest.raises(ConnectError):
                connection.exchange(FETCH, high + 1, {})
        connection.close()
