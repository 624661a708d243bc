"""Read and change the log levels of one node, by asking that node itself (KIP-412; controllers: KIP-919, from 3.7)."""

from __future__ import annotations

from typing import NamedTuple

from kshell.client import codes
from kshell.client.connection import Connection
from kshell.errors import ProtocolError
from kshell.protocol.decoder import Message
from kshell.protocol.messages.configs import DESCRIBE_CONFIGS, INCREMENTAL_ALTER_CONFIGS

BROKER_LOGGER = 8
"""The resource type for the loggers of a node, broker or controller (``ConfigResource.Type``)."""
INVALID_REQUEST = 42
"""The error code of a node that is asked for the loggers of another node id; it has other causes, too."""
_SET, _DELETE = 0, 1
SOURCES = {4: "STATIC_BROKER_CONFIG", 5: "DEFAULT_CONFIG", 6: "DYNAMIC_BROKER_LOGGER_CONFIG"}


class Logger(NamedTuple):
    """A logger of a node; ``level`` is the effective one, its own or inherited; ``source`` is in :data:`SOURCES`."""

    name: str
    level: str | None
    source: str
    is_read_only: bool


def loggers(connection: Connection, node_id: int) -> list[Logger]:
    """Return every logger of the node that ``connection`` leads to, root first, then by name.

    Raises NodeError: among others, the node has another id than ``node_id`` (INVALID_REQUEST).
    """
    wanted = {"resourceType": BROKER_LOGGER, "resourceName": str(node_id), "configurationKeys": None}
    body = connection.request(DESCRIBE_CONFIGS, {"resources": [wanted]}).body
    resource = _only(connection, body["results"], DESCRIBE_CONFIGS.name)
    entries = [
        Logger(
            item["name"],
            item["value"],
            SOURCES.get(item["configSource"], f"UNKNOWN({item['configSource']})"),
            item["readOnly"],
        )
        for item in resource["configs"]
    ]
    return sorted(entries, key=lambda logger: (logger.name != "root", logger.name))


def set_level(connection: Connection, node_id: int, name: str, level: str | None) -> None:
    """Change the level of a logger at the node that ``connection`` leads to; ``None`` restores the inherited level.

    The node does not store the level: a restart resets it. Raises NodeError.
    """
    change = {"name": name, "configOperation": _DELETE if level is None else _SET, "value": level}
    wanted = {"resourceType": BROKER_LOGGER, "resourceName": str(node_id), "configs": [change]}
    body = connection.request(INCREMENTAL_ALTER_CONFIGS, {"resources": [wanted], "validateOnly": False}).body
    _only(connection, body["responses"], INCREMENTAL_ALTER_CONFIGS.name)


def _only(connection: Connection, results: list[Message], api: str) -> Message:
    if len(results) != 1:
        connection.close()
        raise ProtocolError(connection.node, f"the answer holds {len(results)} resources, one was asked for", api=api)
    resource: Message = results[0]
    if resource["errorCode"]:
        raise codes.failure(connection.node, resource["errorCode"], api, resource["errorMessage"])
    return resource
