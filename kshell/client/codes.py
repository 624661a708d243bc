"""Turn Kafka's error codes into typed errors with a hint for the user, for all APIs."""

from __future__ import annotations

from kshell.errors import (
    AuthorizationError,
    ClusterIdError,
    NodeError,
    ServerError,
    UnsupportedVersionError,
    WrongEndpointError,
)
from kshell.protocol.names import UNKNOWN_SERVER_ERROR, error_name, is_retriable

UNSUPPORTED_VERSION = 35
INCONSISTENT_CLUSTER_ID = 104
MISMATCHED_ENDPOINT_TYPE = 114
UNSUPPORTED_ENDPOINT_TYPE = 115
NOT_LEADER_OR_FOLLOWER = 6
BROKER_NOT_AVAILABLE = 8
FENCED_LEADER_EPOCH = 74
UNKNOWN_LEADER_EPOCH = 75
EPOCH_CODES = (NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH)
"""Codes that say that the node is not the leader, or that the epoch of the request is not the leader's."""
OFFSET_OUT_OF_RANGE = 1
SNAPSHOT_NOT_FOUND = 98
POSITION_OUT_OF_RANGE = 99

_LONGEST = 1000
"""Characters of a server's error message that are shown, at most."""
_AUTHORIZATION = {29, 30, 31, 53, 65}
_REQUIRED_ACCESS = {
    "Fetch": "CLUSTER_ACTION on CLUSTER:kafka-cluster",
    "FetchSnapshot": "CLUSTER_ACTION on CLUSTER:kafka-cluster",
    "DescribeQuorum": "DESCRIBE on CLUSTER:kafka-cluster",
    "DescribeCluster": "ALTER on CLUSTER:kafka-cluster at a controller",
    "DescribeConfigs": "DESCRIBE_CONFIGS on the resource (TOPIC:name, GROUP:name; for all else CLUSTER:kafka-cluster)",
    # Of log levels; kshell changes nothing else.
    "IncrementalAlterConfigs": "ALTER_CONFIGS on CLUSTER:kafka-cluster at a broker,"
    " CLUSTER_ACTION on CLUSTER:kafka-cluster at a controller",
    "DescribeAcls": "DESCRIBE on CLUSTER:kafka-cluster",
    "DescribeTopicPartitions": "DESCRIBE on the topic",
    "DescribeClientQuotas": "DESCRIBE_CONFIGS on CLUSTER:kafka-cluster",
    "DescribeUserScramCredentials": "DESCRIBE on CLUSTER:kafka-cluster",
    "Metadata": "DESCRIBE on the topic",
    "ListPartitionReassignments": "DESCRIBE on CLUSTER:kafka-cluster",
    "ListConfigResources": "DESCRIBE_CONFIGS on CLUSTER:kafka-cluster",
    "DescribeDelegationToken": "DESCRIBE on DELEGATION_TOKEN:id",
}
"""API -> the operation that StandardAuthorizer requires for it, as a user reads it (KafkaApis, ControllerApis)."""


def may_succeed_later(code: int) -> bool:
    """Whether the same request may succeed later, after an election or a restart.

    A controller that shuts down answers BROKER_NOT_AVAILABLE. One that has just started answers UNKNOWN_SERVER_ERROR
    to everybody but super users until it has loaded its ACLs (``StandardAuthorizer``, AuthorizerNotReadyException).
    Kafka's clients do not retry these codes, its observers do (``KafkaRaftClient``).
    """
    return code in (BROKER_NOT_AVAILABLE, UNKNOWN_SERVER_ERROR) or is_retriable(code)


def failure(node: str, code: int, api: str, message: str | None = None) -> NodeError:
    """Return the typed error for the error code of a response; ``message`` is the server's, and is only shown."""
    name = error_name(code)
    reason = f"{name}: {message[:_LONGEST]}" if message and message != name else name
    if code in _AUTHORIZATION:
        reason = name  # the server's message repeats the whole request
        hint = f"the principal needs {_REQUIRED_ACCESS[api]}" if api in _REQUIRED_ACCESS else None
        return AuthorizationError(node, reason, api=api, hint=hint)
    if code == UNSUPPORTED_VERSION:
        return UnsupportedVersionError(node, reason, api=api, hint="`api-versions` shows what each node offers")
    if code == INCONSISTENT_CLUSTER_ID:
        hint = "is this the right cluster? cluster.id, or the node that was asked first, has another id"
        return ClusterIdError(node, reason, api=api, hint=hint)
    if code in (MISMATCHED_ENDPOINT_TYPE, UNSUPPORTED_ENDPOINT_TYPE):
        return WrongEndpointError(node, reason, api=api)
    hint = "try again: the error may be temporary" if may_succeed_later(code) else "the node's own log may say more"
    return ServerError(node, code, reason, api=api, hint=hint)
