"""Where and how Kafka's command line tools connect to a cluster, for the commands that reports propose to users.

The addresses and ``--config`` of a live source come first, then the registrations of the nodes. If no address is known,
the commands have ``HOST:9092``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kshell.client.address import name_of
from kshell.client.inference import registered_span
from kshell.metadata.families.cluster import Listener
from kshell.metadata.families.quorum import QUORUM, VOTERS
from kshell.metadata.feature_update import ClusterFeatures
from kshell.metadata.image import Image
from kshell.metadata.kafka_tools import UNKNOWN_SERVERS, KafkaTools, release_of
from kshell.shell_words import quote

if TYPE_CHECKING:
    from kshell.client.nodes import Nodes
    from kshell.engine.session import Session

_NAMED = 3
"""Addresses in a bootstrap list at most: several, so that the command works while one node is down."""
_PLAINTEXT = "PLAINTEXT"
_KNOW_WHO_ASKS = ("SASL_SSL", "SASL_PLAINTEXT", "SSL")
"""Protocols that authenticate clients, as brokers require for tokens; SSL does only with client certificates."""
_BROKER, _CONTROLLER = "broker", "controller"
_NO_FILE = "client.properties"
"""Placeholder for the properties file, which the tools need for a listener that is not PLAINTEXT."""


def kafka_tools(session: Session, cluster: ClusterFeatures) -> KafkaTools:
    """The tools of the cluster that a session shows.

    Args:
        session: the source, and the point in time that is shown.
        cluster: what its nodes support; commands are written for the lowest release among them.
    """
    nodes = session.source.nodes
    protocol = nodes.settings.security_protocol if nodes is not None else _PLAINTEXT
    image = session.image
    servers, servers_protocol = _addresses(_bootstrap(nodes, _BROKER), _listeners(image, _BROKER), protocol)
    controllers, controllers_protocol = _addresses(
        _bootstrap(nodes, _CONTROLLER), [*_listeners(image, _CONTROLLER), *_voters(image)], protocol
    )
    file = nodes.settings.file if nodes is not None else None
    if file is None and {servers_protocol, controllers_protocol} != {_PLAINTEXT}:
        file = _NO_FILE
    lowest, _ = registered_span(node.supported for node in cluster.nodes)
    return KafkaTools(
        quote(servers) if servers else UNKNOWN_SERVERS,
        quote(controllers) if controllers else None,
        file,
        release_of(lowest),
        _authenticated(image) if servers_protocol not in _KNOW_WHO_ASKS else None,
    )


def _authenticated(image: Image) -> str | None:
    """A bootstrap list of broker listeners that authenticate clients, quoted for a shell; ``None`` if there is none."""
    listed = _listeners(image, _BROKER)
    for protocol in _KNOW_WHO_ASKS:
        chosen = _at(listed, protocol)
        if chosen:
            return quote(_names(chosen))
    return None


def _bootstrap(nodes: Nodes | None, kind: str) -> str | None:
    """The user's own bootstrap list, if it names nodes of that kind."""
    return (
        ",".join(name_of(*address) for address in nodes.bootstrap) if nodes is not None and nodes.kind == kind else None
    )


def _listeners(image: Image, kind: str) -> list[list[Listener]]:
    """The listeners of each registered node; nodes that are fenced are left out unless all are."""
    reported = [
        entry.value for _, entry in sorted(image[f"{kind}s"].items()) if not isinstance(entry.value.listeners, str)
    ]
    serving = [node for node in reported if getattr(node, "fenced", False) is not True]
    return [list(node.listeners) for node in serving or reported]


def _voters(image: Image) -> list[list[Listener]]:
    """The endpoints of a dynamic quorum's voters. VotersRecord has no security protocol: PLAINTEXT is assumed."""
    entry = image[QUORUM].get(VOTERS)
    endpoints = [voter["endpoints"] for voter in entry.value] if entry is not None else []
    return [
        [Listener(point["name"], point["host"], point["port"], _PLAINTEXT) for point in points]
        for points in endpoints
        if points
    ]


def _addresses(own: str | None, nodes: Iterable[list[Listener]], protocol: str) -> tuple[str | None, str]:
    """Choose (addresses, their security protocol): the user's ``own``, else listeners of registered ``nodes``.

    Of each node the first listener with the source's protocol; if no node has one, PLAINTEXT; else the first of all.
    """
    if own is not None:
        return own, protocol
    listed = list(nodes)
    for wanted in (protocol, _PLAINTEXT, None):
        chosen = _at(listed, wanted)
        if chosen:
            return _names(chosen), chosen[0].security_protocol
    return None, _PLAINTEXT


def _at(nodes: Iterable[list[Listener]], protocol: str | None) -> list[Listener]:
    """Each node's first listener with a security protocol (``None``: any), for :data:`_NAMED` nodes at most."""
    fitting = [
        next((listener for listener in listeners if protocol in (None, listener.security_protocol)), None)
        for listeners in nodes
    ]
    return [listener for listener in fitting if listener is not None][:_NAMED]


def _names(listeners: Iterable[Listener]) -> str:
    """The addresses as ``host:port,…`` without duplicates."""
    return ",".join(dict.fromkeys(name_of(listener.host, listener.port) for listener in listeners))
