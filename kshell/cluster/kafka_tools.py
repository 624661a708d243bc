"""What Kafka's command line tools need to know of a cluster: its release, where to connect, and with which properties.

The user's own words come first: addresses and ``--config`` of a live source. What they do not say is taken from the
registrations of the nodes; where nobody says it, ``HOST:9092`` stands in its place.
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
"""Addresses that a command names: one is down sooner or later."""
_PLAINTEXT = "PLAINTEXT"
_KNOW_WHO_ASKS = ("SASL_SSL", "SASL_PLAINTEXT", "SSL")
"""Security protocols of listeners at which brokers give tokens; at one of SSL, if clients have a certificate."""
_BROKER, _CONTROLLER = "broker", "controller"
_NO_FILE = "client.properties"
"""Stands for the file that the tools need at a listener that is not plain."""


def kafka_tools(session: Session, standing: ClusterFeatures) -> KafkaTools:
    """The tools of the cluster that a session shows.

    Args:
        session: the source, and the moment that is shown.
        standing: what its nodes support: the lowest release of them decides.
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
    lowest, _ = registered_span(node.supported for node in standing.nodes)
    return KafkaTools(
        quote(servers) if servers else UNKNOWN_SERVERS,
        quote(controllers) if controllers else None,
        file,
        release_of(lowest),
        _authenticated(image) if servers_protocol not in _KNOW_WHO_ASKS else None,
    )


def _authenticated(image: Image) -> str | None:
    """Brokers at listeners that know who connects, as shell text; ``None`` where none is registered."""
    listed = _listeners(image, _BROKER)
    for protocol in _KNOW_WHO_ASKS:
        chosen = _at(listed, protocol)
        if chosen:
            return quote(_names(chosen))
    return None


def _bootstrap(nodes: Nodes | None, kind: str) -> str | None:
    """The user's own list of nodes of that kind."""
    return (
        ",".join(name_of(*address) for address in nodes.bootstrap) if nodes is not None and nodes.kind == kind else None
    )


def _listeners(image: Image, kind: str) -> list[list[Listener]]:
    """The listeners of each node that is registered, those that serve first."""
    reported = [
        entry.value for _, entry in sorted(image[f"{kind}s"].items()) if not isinstance(entry.value.listeners, str)
    ]
    serving = [node for node in reported if getattr(node, "fenced", False) is not True]
    return [list(node.listeners) for node in serving or reported]


def _voters(image: Image) -> list[list[Listener]]:
    """Where the voters of a dynamic quorum listen; their control record names no security protocol."""
    entry = image[QUORUM].get(VOTERS)
    endpoints = [voter["endpoints"] for voter in entry.value] if entry is not None else []
    return [
        [Listener(point["name"], point["host"], point["port"], _PLAINTEXT) for point in points]
        for points in endpoints
        if points
    ]


def _addresses(own: str | None, nodes: Iterable[list[Listener]], protocol: str) -> tuple[str | None, str]:
    """(a list of addresses, the security protocol that they speak): the user's own, else by registrations.

    Of registrations, listeners with the protocol of the source, else plain ones, else the first of each node.
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
    """The first listener of each node that speaks a security protocol (``None``: any), of a few nodes."""
    fitting = [
        next((listener for listener in listeners if protocol in (None, listener.security_protocol)), None)
        for listeners in nodes
    ]
    return [listener for listener in fitting if listener is not None][:_NAMED]


def _names(listeners: Iterable[Listener]) -> str:
    """``host:port,…``, each of them once."""
    return ",".join(dict.fromkeys(name_of(listener.host, listener.port) for listener in listeners))
