"""What a node that is well answers, one function an API (``KafkaRaftClient``, ``ControllerApis``, ``KafkaApis``)."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from kshell.protocol.api import Api
from kshell.protocol.decoder import Message
from kshell.protocol.primitives import Uuid
from tests.server import sasl

if TYPE_CHECKING:
    from tests.server.node import Node, Session

TOPIC = "__cluster_metadata"
TOPIC_ID = Uuid.parse("AAAAAAAAAAAAAAAAAAAAAQ")
ERRORS = {
    "UNKNOWN_SERVER_ERROR": -1,
    "UNKNOWN_TOPIC": 3, "NOT_LEADER": 6, "UNSUPPORTED_MECHANISM": 33, "ILLEGAL_SASL_STATE": 34,
    "UNSUPPORTED_VERSION": 35, "INVALID_REQUEST": 42,
    "SASL_FAILED": 58, "FENCED": 74, "UNKNOWN_EPOCH": 75, "SNAPSHOT_NOT_FOUND": 98, "POSITION_OUT_OF_RANGE": 99,
    "INCONSISTENT_CLUSTER_ID": 104, "MISMATCHED_ENDPOINT_TYPE": 114, "UNSUPPORTED_ENDPOINT_TYPE": 115,
}  # fmt: skip
_TELLS_ENDPOINTS = {"Fetch": 17, "FetchSnapshot": 1}
_KNOWS_WATERMARK = 18
_BROKERS, _CONTROLLERS = 1, 2
_DIRECT_FROM = 13

Answer = Callable[["Node", int, Message, "Session"], Message]
_ANSWERS: dict[str, Answer] = {}


def answer(node: Node, api: Api, version: int, request: Message, session: Session) -> Message:
    """The body of the response."""
    made = node.quorum.bodies.get(api.name)
    if made is not None:
        return copy.deepcopy(made)  # a fault edits it in place
    return _ANSWERS[api.name](node, version, request, session) if api.name in _ANSWERS else {}


def _answers(name: str) -> Callable[[Answer], Answer]:
    def keep(function: Answer) -> Answer:
        _ANSWERS[name] = function
        return function

    return keep


@_answers("ApiVersions")
def _api_versions(node: Node, version: int, request: Message, session: Session) -> Message:
    wanted = request.get("apiKeys")
    name, number = node.quorum.software.get(node.id, (None, None))
    return {
        "apiKeys": [
            {"apiKey": key, "minVersion": low, "maxVersion": high}
            for key, (low, high) in sorted(node.ranges.items())
            if wanted is None or key in wanted
        ],
        "brokerSoftwareName": name,
        "brokerSoftwareVersion": number,
        "supportedFeatures": [
            {"name": name, "minVersion": low, "maxVersion": high} for name, (low, high) in node.quorum.supported.items()
        ],
        "finalizedFeaturesEpoch": node.quorum.log.high_watermark,
        "finalizedFeatures": [
            {"name": name, "maxVersionLevel": level, "minVersionLevel": level}
            for name, level in node.quorum.finalized.items()
        ],
    }


# --- SASL --------------------------------------------------------------------------------------------------------


@_answers("SaslHandshake")
def _sasl_handshake(node: Node, version: int, request: Message, session: Session) -> Message:
    quorum = node.quorum
    if request["mechanism"] not in quorum.mechanisms:
        return {"errorCode": ERRORS["UNSUPPORTED_MECHANISM"], "mechanisms": quorum.mechanisms}
    session.exchange = sasl.exchange(request["mechanism"], quorum.users, quorum.scram)
    next(session.exchange)
    return {"mechanisms": quorum.mechanisms}


@_answers("SaslAuthenticate")
def _sasl_authenticate(node: Node, version: int, request: Message, session: Session) -> Message:
    if session.exchange is None:
        session.ends = True
        return {"errorCode": ERRORS["ILLEGAL_SASL_STATE"], "errorMessage": "SaslAuthenticate came before SaslHandshake"}
    try:
        token = session.exchange.send(request["authBytes"])
    except sasl.Refused as refused:
        session.ends = True
        return {"errorCode": ERRORS["SASL_FAILED"], "errorMessage": str(refused)}
    session.is_authenticated = token == b"" or token.startswith(b"v=")
    return {"authBytes": token}


# --- the quorum --------------------------------------------------------------------------------------------------


@_answers("Fetch")
def _fetch(node: Node, version: int, request: Message, session: Session) -> Message:
    quorum = node.quorum
    if request.get("clusterId") not in (None, node.cluster_id or quorum.cluster_id):
        return {"errorCode": ERRORS["INCONSISTENT_CLUSTER_ID"]}
    if [topic["topicId"] for topic in request["topics"]] != [TOPIC_ID]:
        return {"errorCode": ERRORS["INVALID_REQUEST"]}
    wanted = request["topics"][0]["partitions"][0]
    until = time.monotonic() + request["maxWaitMs"] / 1000
    with quorum.changed:
        before = quorum.log.end
        while True:
            found = _partition(node, wanted, request)
            moved = version >= _KNOWS_WATERMARK and wanted.get("highWatermark", 1 << 63) < found["highWatermark"]
            news = found["errorCode"] or found["records"] or moved or "divergingEpoch" in found or "snapshotId" in found
            left = until - time.monotonic()
            if news or left <= 0 or quorum.over.is_set() or quorum.log.end != before:
                break
            quorum.changed.wait(left)
        body: Message = {"responses": [{"topicId": TOPIC_ID, "partitions": [found]}]}
        return body | _endpoints(node, "Fetch", version)


def _partition(node: Node, wanted: Message, request: Message) -> Message:
    quorum, log = node.quorum, node.quorum.log
    found: Message = {
        "partitionIndex": 0,
        "errorCode": 0,
        "highWatermark": -1,
        "logStartOffset": log.start,
        "currentLeader": {"leaderId": quorum.leader_id, "leaderEpoch": quorum.epoch},
        "records": b"",
        "abortedTransactions": None,
    }
    offset, last = wanted["fetchOffset"], wanted["lastFetchedEpoch"]
    if offset < 0 or not 0 <= last <= wanted["currentLeaderEpoch"] or request["maxWaitMs"] < 0:
        return found | {"errorCode": ERRORS["INVALID_REQUEST"]}
    refused = _refused(node, wanted["currentLeaderEpoch"])
    if refused:
        return found | {"errorCode": refused}
    found["highWatermark"] = quorum.told_watermark()
    kind, one, two = log.judge(offset, last, prefers_snapshot=node.quorum.prefers_snapshot)
    if kind == "snapshot":
        found["snapshotId"] = {"endOffset": one, "epoch": two}
    elif kind == "diverging":
        found["divergingEpoch"] = {"epoch": one, "endOffset": two}
    else:
        found["records"] = log.read(offset, min(wanted["partitionMaxBytes"], quorum.max_piece))
    return found


def _refused(node: Node, epoch: int) -> int:
    quorum = node.quorum
    if epoch < quorum.epoch:
        return ERRORS["FENCED"]
    if epoch > quorum.epoch:
        return ERRORS["UNKNOWN_EPOCH"]
    return 0 if node.id == quorum.leader_id else ERRORS["NOT_LEADER"]


def _endpoints(node: Node, api: str, version: int) -> Message:
    """Where the leader is, in the versions whose servers tell it."""
    leader = node.quorum.leader_id
    if version < _TELLS_ENDPOINTS[api] or leader < 0:
        return {}
    return {"nodeEndpoints": [{"nodeId": leader, "host": "127.0.0.1", "port": node.quorum.leader.port}]}


@_answers("FetchSnapshot")
def _fetch_snapshot(node: Node, version: int, request: Message, session: Session) -> Message:
    quorum = node.quorum
    if request.get("clusterId") not in (None, node.cluster_id or quorum.cluster_id):
        return {"errorCode": ERRORS["INCONSISTENT_CLUSTER_ID"]}
    topic = request["topics"][0]
    wanted = topic["partitions"][0]
    named = (wanted["snapshotId"]["endOffset"], wanted["snapshotId"]["epoch"])
    with quorum.changed:
        data = quorum.log.snapshots.get(named)
        found: Message = {
            "snapshotId": wanted["snapshotId"],
            "currentLeader": {"leaderId": quorum.leader_id, "leaderEpoch": quorum.epoch},
            "unalignedRecords": b"",
        }
        refused = ERRORS["UNKNOWN_TOPIC"] if topic["name"] != TOPIC else _refused(node, wanted["currentLeaderEpoch"])
        if refused:
            found["errorCode"] = refused
        elif data is None:
            found["errorCode"] = ERRORS["SNAPSHOT_NOT_FOUND"]
        elif not 0 <= wanted["position"] < len(data):
            found["errorCode"] = ERRORS["POSITION_OUT_OF_RANGE"]
        else:
            at = wanted["position"]
            piece = data[at : at + min(request["maxBytes"], quorum.max_piece)]
            found |= {"size": len(data), "position": at, "unalignedRecords": piece}
        if found.get("errorCode") and not quorum.writes_refusals:
            return {"errorCode": ERRORS["UNKNOWN_SERVER_ERROR"]}
        body: Message = {"topics": [{"name": topic["name"], "partitions": [found]}]}
        return body | _endpoints(node, "FetchSnapshot", version)


@_answers("DescribeQuorum")
def _describe_quorum(node: Node, version: int, request: Message, session: Session) -> Message:
    """Of the leader; a broker forwards it there."""
    quorum = node.quorum
    found: Message = {"leaderId": -1, "leaderEpoch": -1, "highWatermark": -1, "currentVoters": [], "observers": []}
    if node.kind == "controller" and node.id != quorum.leader_id:
        found["errorCode"] = ERRORS["NOT_LEADER"]
    else:
        now = int(time.time() * 1000)

        def replica(node_id: int) -> Message:
            told = {"logEndOffset": quorum.log.end, "lastFetchTimestamp": now, "lastCaughtUpTimestamp": now}
            return {"replicaId": node_id, "replicaDirectoryId": Uuid(node_id.to_bytes(16, "big")), **told}

        found = {
            "leaderId": quorum.leader_id,
            "leaderEpoch": quorum.epoch,
            "highWatermark": quorum.told_watermark(),
            "currentVoters": [replica(voter.id) for voter in quorum.controllers],
            "observers": [replica(broker.id) for broker in quorum.brokers],
        }
    listeners = [
        {"nodeId": voter.id, "listeners": [{"name": "CONTROLLER", "host": "127.0.0.1", "port": voter.port}]}
        for voter in quorum.controllers
    ]
    return {"topics": [{"topicName": TOPIC, "partitions": [found]}], "nodes": listeners}


# --- the cluster -------------------------------------------------------------------------------------------------


@_answers("DescribeCluster")
def _describe_cluster(node: Node, version: int, request: Message, session: Session) -> Message:
    quorum = node.quorum
    mine = _BROKERS if node.kind == "broker" else _CONTROLLERS
    wanted = request.get("endpointType", _BROKERS)
    if wanted not in (_BROKERS, _CONTROLLERS):
        return {"errorCode": ERRORS["UNSUPPORTED_ENDPOINT_TYPE"], "errorMessage": f"Unsupported endpoint type {wanted}"}
    if 60 not in quorum.dialects and wanted != mine:
        said = f"The request was sent to an endpoint of the wrong type: this is a {node.kind}."
        return {"errorCode": ERRORS["MISMATCHED_ENDPOINT_TYPE"], "errorMessage": said, "endpointType": mine}
    there = quorum.brokers if mine == _BROKERS else quorum.controllers
    name, number = quorum.software.get(node.id, (None, None))
    return {
        "endpointType": mine,
        "clusterId": node.cluster_id or quorum.cluster_id,
        "controllerId": quorum.leader_id if mine == _CONTROLLERS else there[-1].id,
        "brokers": [{"brokerId": one.id, "host": "127.0.0.1", "port": one.port} for one in there],
        "brokerSoftwareName": name,
        "brokerSoftwareVersion": number,
    }


@_answers("Metadata")
def _metadata(node: Node, version: int, request: Message, session: Session) -> Message:
    """Nodes, and no topics. With KIP-919's draft: what its handling matrix says."""
    quorum = node.quorum
    if quorum.dialects.get(3) is not None and version >= _DIRECT_FROM:
        refused = _refused_metadata(node, request)
        if refused:
            names = [topic["name"] for topic in request["topics"] or ()] or [TOPIC]
            topics = [{"errorCode": refused, "name": name, "partitions": []} for name in names]
            return {"topics": topics} | _from_controller(node)
    there = quorum.controllers if node.kind == "controller" else quorum.brokers
    body: Message = {
        "brokers": [{"nodeId": one.id, "host": "127.0.0.1", "port": one.port} for one in there],
        "clusterId": node.cluster_id or quorum.cluster_id,
        "controllerId": quorum.leader_id if node.kind == "controller" else there[-1].id,
        "topics": [],
    }
    return body | _from_controller(node)


def _from_controller(node: Node) -> Message:
    return {"fromKRaftController": True} if node.kind == "controller" else {}


def _refused_metadata(node: Node, request: Message) -> int:
    """The draft's table: direct or not x broker or controller; controllers take none of the three other flags."""
    if request["directToKRaftControllerQuorum"] != (node.kind == "controller"):
        return ERRORS["INVALID_REQUEST"] if node.kind == "broker" else ERRORS["UNSUPPORTED_VERSION"]
    flags = ("allowAutoTopicCreation", "includeClusterAuthorizedOperations", "includeTopicAuthorizedOperations")
    if node.kind == "controller" and any(request.get(flag) for flag in flags):
        return ERRORS["INVALID_REQUEST"]
    return 0


# --- configurations ----------------------------------------------------------------------------------------------


@_answers("DescribeConfigs")
def _describe_configs(node: Node, version: int, request: Message, session: Session) -> Message:
    results = []
    for resource in request["resources"]:
        name = (resource["resourceType"], resource["resourceName"])
        wanted = resource["configurationKeys"]
        configs = [c for c in node.quorum.configs.get(name, []) if wanted is None or c["name"] in wanted]
        if not request.get("includeDocumentation"):
            configs = [{**config, "documentation": None} for config in configs]
        results.append({"errorMessage": None, **resource, "configs": configs})
    return {"results": results}


@_answers("IncrementalAlterConfigs")
def _incremental_alter_configs(node: Node, version: int, request: Message, session: Session) -> Message:
    responses = []
    for resource in request["resources"]:
        kept = node.quorum.configs.setdefault((resource["resourceType"], resource["resourceName"]), [])
        for config in resource["configs"] if not request["validateOnly"] else ():
            kept[:] = [one for one in kept if one["name"] != config["name"]]
            kept.append({"name": config["name"], "value": config["value"], "synonyms": [], "documentation": None})
        responses.append({"errorMessage": None, **resource})
    return {"responses": responses}
