"""Ask a running quorum to describe itself, for ``/quorum`` and the command ``quorum`` (KIP-595, KIP-836, KIP-853)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from kshell.client import codes
from kshell.client.address import name_of
from kshell.client.backoff import Backoff
from kshell.client.connection import Connection
from kshell.client.leader import find_leader
from kshell.client.nodes import CONTROLLER, FIRST_CONTACT, TOPIC, ClusterNode, Nodes
from kshell.errors import (
    ConnectError,
    LeaderNotListedError,
    NodeError,
    NoLeaderError,
    ProtocolError,
    SourceTimeoutError,
)
from kshell.protocol.messages.quorum import DESCRIBE_QUORUM
from kshell.protocol.primitives import ZERO_UUID
from kshell.sources.directory import describe
from kshell.sources.source import Loaded, SourceFacts

if TYPE_CHECKING:
    from kshell.json_text import JsonObject
    from kshell.protocol.decoder import Message
    from kshell.sources.quorum.source import QuorumSource

_REQUEST = {"topics": [{"topicName": TOPIC, "partitions": [{"partitionIndex": 0}]}]}
_NEVER = -1


def quorum(source: QuorumSource, loaded: Loaded) -> SourceFacts:
    """The facts of ``/quorum`` for a live source: those of a directory, with the high watermark, observers and lags."""
    return describe.quorum(loaded) | described(describe_quorum(source.nodes))


def described(description: JsonObject) -> SourceFacts:
    """The facts of ``/quorum`` that the leader reports, of controllers and brokers alike."""
    facts: SourceFacts = {
        name: ("quorum", description[name], None) for name in ("leaderId", "leaderEpoch", "highWatermark")
    }
    facts["voters"] = {str(voter["id"]): ("voter", voter, None) for voter in description["voters"]}
    facts["observers"] = _observers(description)
    return facts


def _observers(description: JsonObject) -> dict[str, tuple[str, JsonObject, None]]:
    """The leaves of ``/quorum/observers`` by name: an id, or ``ID-DIRECTORY`` for all but the last one that fetched.

    A node that comes back with another disk is another observer with the same id, until the leader forgets the first
    (KIP-853); observers that are not nodes of the cluster all have the id -1.
    """
    named: dict[str, tuple[str, JsonObject, None]] = {}
    for observer in sorted(description["observers"], key=lambda row: row["lastFetchTimestamp"] or _NEVER, reverse=True):
        name = str(observer["id"])
        named[f"{name}-{observer['directoryId']}" if name in named else name] = ("observer", observer, None)
    return named


def describe_quorum(nodes: Nodes) -> JsonObject:
    """Ask the leader (or a broker, which asks the leader), and return the command's JSON object. Raises NodeError."""
    settings = nodes.settings
    backoff = Backoff(settings.retry_backoff, settings.retry_backoff_max, time.monotonic() + settings.api_timeout)
    failure: NodeError | None = None
    started = time.monotonic()
    while not backoff.is_over:
        try:
            body, node = _ask(nodes, backoff)
        except LeaderNotListedError:
            raise
        except (ConnectError, SourceTimeoutError) as error:
            if not nodes.was_reached and time.monotonic() - started > FIRST_CONTACT:
                raise
            is_news = backoff.seconds_left > 0 or isinstance(error, NoLeaderError)  # else the deadline caused it
            failure = error if failure is None or is_news else failure
            nodes.controller_id = -1  # the leader may be gone; the other nodes know the next one
        else:
            partitions = [partition for topic in body["topics"] for partition in topic["partitions"]]
            described = partitions[0] if partitions else {}
            code = body["errorCode"] or described.get("errorCode", 0)
            message = body.get("errorMessage") or described.get("errorMessage")
            if not code and not described:
                raise ProtocolError(node, "the answer holds no partition", api=DESCRIBE_QUORUM.name)
            if not code:
                _learn_leader(nodes, described["leaderId"], node)
                return _object(nodes, described, body)
            failure = codes.failure(node, code, DESCRIBE_QUORUM.name, message)
            if not codes.may_succeed_later(code):
                raise failure
            nodes.controller_id = -1
        backoff.wait()
    assert failure is not None
    raise failure


def _ask(nodes: Nodes, limit: Backoff) -> tuple[JsonObject, str]:
    """Send one DescribeQuorum; of controllers the leader is asked, because the others refuse and do not name it."""
    connection = nodes.any(timeout=limit.seconds_left)
    if nodes.kind == CONTROLLER:
        controller = nodes.by_id.get(nodes.controller_id)
        if controller is None:
            return _ask_each(nodes, limit)
        connection = nodes.at(controller.address, timeout=limit.seconds_left)
    return _describe_at(connection, limit), connection.node


def _ask_each(nodes: Nodes, limit: Backoff) -> tuple[JsonObject, str]:
    """Ask each controller if the leader is not known: the leader is the one that answers. This needs only DESCRIBE.

    If the leader is not among them, it is searched for with Fetch, which needs CLUSTER_ACTION.
    """
    for connection in nodes.reachable(timeout=limit.seconds_left):
        body = _describe_at(connection, limit)
        refused = [part["errorCode"] for topic in body["topics"] for part in topic["partitions"]]
        if codes.NOT_LEADER_OR_FOLLOWER not in (body["errorCode"], *refused):
            return body, connection.node
    connection = nodes.at(find_leader(nodes, timeout=limit.seconds_left).address, timeout=limit.seconds_left)
    return _describe_at(connection, limit), connection.node


def _learn_leader(nodes: Nodes, leader_id: int, node: str) -> None:
    """Note where the leader listens: of controllers, only the leader answers."""
    address = next((address for address in nodes.bootstrap if name_of(*address) == node), None)
    if nodes.kind == CONTROLLER and address is not None and leader_id >= 0 and leader_id not in nodes.by_id:
        nodes.learn(ClusterNode(leader_id, address))


def _describe_at(connection: Connection, limit: Backoff) -> JsonObject:
    return connection.request(DESCRIBE_QUORUM, _REQUEST, timeout=min(connection.patience, limit.seconds_left)).body


def _object(nodes: Nodes, partition: Message, body: Message) -> JsonObject:
    leader_end = max(
        (r["logEndOffset"] for r in partition["currentVoters"] if r["replicaId"] == partition["leaderId"]), default=-1
    )
    endpoints = {node["nodeId"]: [_endpoint(point) for point in node["listeners"]] for node in body.get("nodes", ())}
    return {
        "clusterId": nodes.cluster_id,
        "leaderId": partition["leaderId"],
        "leaderEpoch": partition["leaderEpoch"],
        "highWatermark": partition["highWatermark"],
        "voters": [_replica(replica, leader_end, endpoints) for replica in partition["currentVoters"]],
        "observers": [_replica(replica, leader_end, endpoints) for replica in partition["observers"]],
    }


def _replica(replica: Message, leader_end: int, endpoints: dict[int, list[Message]]) -> JsonObject:
    """A voter or an observer; its lag is in offsets behind the leader's log end. Unknown values are ``None``."""
    end = replica["logEndOffset"]
    directory = replica.get("replicaDirectoryId")
    return {
        "id": replica["replicaId"],
        "directoryId": None if directory is None or directory == ZERO_UUID else str(directory),
        "logEndOffset": end if end >= 0 else None,
        "lag": leader_end - end if end >= 0 and leader_end >= 0 else None,
        "lastFetchTimestamp": _time(replica.get("lastFetchTimestamp", _NEVER)),
        "lastCaughtUpTimestamp": _time(replica.get("lastCaughtUpTimestamp", _NEVER)),
        "endpoints": endpoints.get(replica["replicaId"], []),
    }


def _endpoint(point: Message) -> JsonObject:
    return {"name": point["name"], "host": point["host"], "port": point["port"]}


def _time(value: int) -> int | None:
    return value if value >= 0 else None
