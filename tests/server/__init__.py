"""A pretend Kafka in this process: nodes on loopback sockets that answer from kshell's own declarations.

::

    with Quorum(controllers=3, release="4.4") as quorum:
        quorum.append(value("TOPIC", name="orders", topicId=uuid(1)))
        source = QuorumSource(quorum.bootstrap, settings())
        ...
        quorum.elect(2)                                          # another leader, another epoch
        quorum.on("Fetch", faults.error(8), times=3)             # every node: three times, then as ever
        quorum.controller(1).on("ApiVersions", faults.hang_up)   # one node, from now on

What a server of that release would say comes from :mod:`kshell.client.releases`; what nobody would say, from
:mod:`tests.server.faults`. Everything that was asked is in ``quorum.asked``.
"""

from __future__ import annotations

from kshell.client.settings import Settings
from tests.server.log import Log
from tests.server.node import Asked, Node
from tests.server.quorum import Quorum

__all__ = ["PLAIN_LOGIN", "Asked", "Log", "Node", "Quorum", "settings"]

PLAIN_LOGIN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.plain.allow.plaintext": "true",
    "sasl.jaas.config": ('org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p";'),
}
"""Properties for a quorum with ``users={"u": "p"}``."""

_QUICK = {
    "request.timeout.ms": "2000",
    "default.api.timeout.ms": "3000",
    "socket.connection.setup.timeout.ms": "2000",
    "reconnect.backoff.ms": "1",
    "reconnect.backoff.max.ms": "10",
    "retry.backoff.ms": "1",
    "retry.backoff.max.ms": "10",
}


def settings(**properties: str) -> Settings:
    """Settings whose pauses suit a server in the same process; ``_`` in a name stands for ``.``."""
    return Settings.of(_QUICK | {name.replace("_", "."): text for name, text in properties.items()})
