"""KIP-919 as it was drafted: Metadata v13 tells controllers and cluster id, where Kafka then extended DescribeCluster.

The request says that it is meant for the controllers, the answer says that it comes from one. There is no error code
of the whole answer, so the entry of ``__cluster_metadata`` carries it. Only with the dialect ``kip-919-draft``.
"""

from __future__ import annotations

from collections.abc import Sequence

from kshell.client import codes
from kshell.client.connection import Connection
from kshell.client.observe import TOPIC
from kshell.errors import WrongEndpointError
from kshell.protocol.decoder import Message
from kshell.protocol.messages.cluster import METADATA
from kshell.protocol.schema import Versions

DIALECT = "kip-919-draft"
_DIRECT = Versions(13, None)
_FLAGS = {True: "--bootstrap-controllers", False: "--bootstrap-servers"}


def metadata(
    connection: Connection, *, direct: bool, topics: Sequence[str] | None = (), timeout: float | None = None
) -> Message:
    """The body of a Metadata answer: asked of a controller (``direct``) or of a broker.

    ``topics``: ``None`` for all, none by default. Raises UnsupportedVersionError where a controller is asked and the
    peer does not know version 13, WrongEndpointError for the other kind of node, NodeError.
    """
    wanted = {
        "topics": None if topics is None else [{"name": name} for name in topics],
        "allowAutoTopicCreation": False,  # the default on the wire is true, and controllers refuse it
        "directToKRaftControllerQuorum": direct,
    }
    body = connection.request(METADATA, wanted, needed=_DIRECT if direct else None, timeout=timeout).body
    if bool(body.get("fromKRaftController")) != direct:
        raise _wrong_kind(connection, direct)
    for topic in body["topics"]:
        if topic["name"] == TOPIC and topic["errorCode"]:
            raise codes.failure(connection.node, topic["errorCode"], METADATA.name)
    return body


def description(connection: Connection, *, direct: bool, timeout: float | None = None) -> Message:
    """What :func:`metadata` tells of the cluster, as a body of DescribeCluster. Raises NodeError."""
    body = metadata(connection, direct=direct, timeout=timeout)
    nodes = [{**{k: node[k] for k in ("host", "port", "rack")}, "brokerId": node["nodeId"]} for node in body["brokers"]]
    # Below version 2 brokers do not tell their cluster, so it is not compared.
    return {
        "errorCode": 0,
        "errorMessage": None,
        "clusterId": body.get("clusterId"),
        "controllerId": body["controllerId"],
        "brokers": nodes,
    }


def _wrong_kind(connection: Connection, direct: bool) -> WrongEndpointError:
    is_a = "broker" if direct else "controller"
    reason = f"this is a {is_a}, and {_FLAGS[direct]} takes {'controllers' if direct else 'brokers'}"
    hint = f"use {_FLAGS[not direct]} for it, or turn off the dialect {DIALECT} where no node speaks it"
    return WrongEndpointError(connection.node, reason, api=METADATA.name, hint=hint)
