"""The two calls of an observer of the metadata log: Fetch and FetchSnapshot, replica id -1 (KIP-595, KIP-630).

One topic, one partition; what the answer means is for the caller to decide.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kshell.client.codes import failure
from kshell.client.connection import Connection
from kshell.errors import ProtocolError
from kshell.protocol.messages.quorum import FETCH, FETCH_SNAPSHOT
from kshell.protocol.primitives import Uuid

TOPIC = "__cluster_metadata"
TOPIC_ID = Uuid.parse("AAAAAAAAAAAAAAAAAAAAAQ")
NO_REPLICA = -1
"""An observer that is no node: an id >= 0 would make state at the leader, a voter's could move its high watermark."""
MAX_BYTES = 8 << 20


class Position(NamedTuple):
    """What an observer knows when it asks: the leader's epoch, the next offset, the epoch of the one before it."""

    leader_epoch: int = 0
    offset: int = 0
    last_epoch: int = 0
    high_watermark: int = -1


class SnapshotId(NamedTuple):
    """The offset after the last record in a snapshot, and its epoch."""

    end_offset: int
    epoch: int


class Answered(NamedTuple):
    """What both answers tell of the quorum. ``leader_id`` -1: none is known; ``leader_epoch`` -1: not told."""

    node: str
    error: int
    leader_id: int
    leader_epoch: int
    endpoints: dict[int, tuple[str, int]]


class Fetched(NamedTuple):
    """The answer to a Fetch. ``records`` are batches, the last perhaps cut, and perhaps not committed."""

    quorum: Answered
    high_watermark: int
    log_start: int
    diverging: tuple[int, int] | None
    """(epoch, end offset): what we have from there on is not what the leader has."""
    snapshot: SnapshotId | None
    records: bytes
    version: int


class Piece(NamedTuple):
    """A part of a snapshot: ``data`` from byte ``position`` on, of ``size`` bytes in all."""

    quorum: Answered
    snapshot: SnapshotId
    size: int
    position: int
    data: bytes


def fetch(
    connection: Connection,
    at: Position,
    cluster_id: str | None,
    *,
    wait: float = 0.0,
    max_bytes: int = MAX_BYTES,
    timeout: float | None = None,
) -> Fetched:
    """Asks for what follows a position; the leader may wait ``wait`` seconds for more. Raises NodeError.

    Error codes of the partition are in the answer; those of the whole request are raised.
    """
    wanted: dict[str, Any] = {
        "partition": 0,
        "currentLeaderEpoch": at.leader_epoch,
        "fetchOffset": at.offset,
        "lastFetchedEpoch": at.last_epoch,
        "partitionMaxBytes": max_bytes,
        "highWatermark": at.high_watermark,
    }
    message: dict[str, Any] = {
        "replicaId": NO_REPLICA,
        "maxWaitMs": int(wait * 1000),
        "minBytes": 0,
        "maxBytes": max_bytes,
        "topics": [{"topicId": TOPIC_ID, "partitions": [wanted]}],
    }
    if cluster_id is not None:
        message["clusterId"] = cluster_id
    version, body = connection.request(FETCH, message, timeout=timeout)
    if body["errorCode"]:
        raise failure(connection.node, body["errorCode"], FETCH.name)
    found = _only_partition(connection, body["responses"], FETCH.name)
    diverging, snapshot = found.get("divergingEpoch"), found.get("snapshotId")
    return Fetched(
        _answered(connection, found, body),
        found["highWatermark"],
        found["logStartOffset"],
        (diverging["epoch"], diverging["endOffset"]) if diverging and diverging["epoch"] >= 0 else None,
        _snapshot_id(connection, snapshot) if snapshot and snapshot["endOffset"] >= 0 else None,
        found["records"] or b"",
        version,
    )


def _snapshot_id(connection: Connection, claim: dict[str, Any]) -> SnapshotId:
    """Raises ProtocolError for an epoch that no leader has."""
    if claim["epoch"] < 0:
        connection.close()
        reason = f"a snapshot of epoch {claim['epoch']} is named (end offset {claim['endOffset']})"
        raise ProtocolError(connection.node, reason, api=FETCH.name)
    return SnapshotId(claim["endOffset"], claim["epoch"])


def fetch_snapshot(
    connection: Connection,
    leader_epoch: int,
    snapshot: SnapshotId,
    position: int,
    cluster_id: str | None,
    *,
    max_bytes: int = MAX_BYTES,
    timeout: float | None = None,
) -> Piece:
    """Asks for a part of a snapshot. Raises NodeError; error codes of the partition are in the answer."""
    wanted = {
        "partition": 0,
        "currentLeaderEpoch": leader_epoch,
        "snapshotId": {"endOffset": snapshot.end_offset, "epoch": snapshot.epoch},
        "position": position,
    }
    message: dict[str, Any] = {
        "replicaId": NO_REPLICA,
        "maxBytes": max_bytes,
        "topics": [{"name": TOPIC, "partitions": [wanted]}],
    }
    if cluster_id is not None:
        message["clusterId"] = cluster_id
    _, body = connection.request(FETCH_SNAPSHOT, message, timeout=timeout)
    if body["errorCode"]:
        raise failure(connection.node, body["errorCode"], FETCH_SNAPSHOT.name)
    found = _only_partition(connection, body["topics"], FETCH_SNAPSHOT.name)
    named = SnapshotId(found["snapshotId"]["endOffset"], found["snapshotId"]["epoch"])
    answered = _answered(connection, found, body)
    return Piece(answered, named, found["size"], found["position"], found["unalignedRecords"])


def _only_partition(connection: Connection, topics: list[dict[str, Any]], api: str) -> dict[str, Any]:
    partitions = [partition for topic in topics for partition in topic["partitions"]]
    if len(partitions) != 1:
        connection.close()
        reason = f"the answer holds {len(partitions)} partitions, one was asked for"
        raise ProtocolError(connection.node, reason, api=api)
    found: dict[str, Any] = partitions[0]
    return found


def _answered(connection: Connection, found: dict[str, Any], body: dict[str, Any]) -> Answered:
    leader = found.get("currentLeader") or {"leaderId": -1, "leaderEpoch": -1}
    endpoints = {point["nodeId"]: (point["host"], point["port"]) for point in body.get("nodeEndpoints", ())}
    return Answered(connection.node, found["errorCode"], leader["leaderId"], leader["leaderEpoch"], endpoints)
