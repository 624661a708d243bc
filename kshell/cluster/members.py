"""The nodes of a running cluster as commands name them: which there are, and where each can be asked itself.

Controllers are named by DescribeCluster (3.7 and later), else by DescribeQuorum (3.9), else they are the addresses that
were given; brokers by DescribeCluster, or by their registrations in the image.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from kshell.client.address import Address, name_of
from kshell.client.nodes import BROKER, CONTROLLER, Nodes
from kshell.errors import AuthorizationError, ConnectError, NodeError, SourceError, UnsupportedVersionError
from kshell.protocol.messages.quorum import DESCRIBE_QUORUM

if TYPE_CHECKING:
    from kshell.client.connection import Connection
    from kshell.engine.session import Session

_WITH_NODES = 2
"""The version of DescribeQuorum from which on it tells where nodes listen (KIP-853)."""


class Member(NamedTuple):
    """A node. ``id`` is ``None`` where only its address is known; ``trouble`` is why it has no ``address`` for us."""

    kind: str
    id: int | None
    address: Address | None
    trouble: str | None = None

    @property
    def name(self) -> str:
        """Its id, or ``host:port``."""
        if self.id is not None:
            return str(self.id)
        return name_of(*self.address) if self.address else "?"

    @property
    def title(self) -> str:
        """``controller 3000``."""
        return f"{self.kind} {self.name}"


def live_nodes(session: Session, command: str) -> Nodes:
    """The nodes of a live source. Raises SourceError on a directory, UsageError where there is no source."""
    nodes = session.source.nodes
    if nodes is None:
        if not session.source.path:
            session.source.listing()
        raise SourceError(
            f"{command} asks running nodes, and {session.source.name or session.source.path} is a directory",
            hint=f"needs -q or -b: kshell -q HOST:PORT {command} …",
        )
    return nodes


def own_members(nodes: Nodes) -> list[Member]:
    """The nodes of the kind that the source talks to, by id. Raises NodeError when none can be reached."""
    connection = nodes.any()
    told = None
    if nodes.kind == BROKER:
        told = nodes.describe(connection, fenced=True)
    else:
        with contextlib.suppress(UnsupportedVersionError, AuthorizationError):
            told = nodes.describe(connection)
    if told is not None and nodes.known:
        return [Member(nodes.kind, node.id, node.address) for _, node in sorted(nodes.known.items())]
    if nodes.kind == CONTROLLER and connection.offers(DESCRIBE_QUORUM, _WITH_NODES):
        with contextlib.suppress(NodeError):
            return controllers_of_quorum(nodes)
    ids = {node.address: node.id for node in nodes.known.values()}
    return [Member(nodes.kind, ids.get(address), address) for address in nodes.bootstrap]


def controllers_of_quorum(nodes: Nodes) -> list[Member]:
    """Voters, and observers that are controllers, as DescribeQuorum tells them. Raises NodeError."""
    from kshell.sources.quorum.facts import describe_quorum

    told = describe_quorum(nodes)
    found = []
    for replica in [*told["voters"], *(one for one in told["observers"] if one["endpoints"])]:
        point = next(iter(replica["endpoints"]), None)
        address = (point["host"], point["port"]) if point else None
        trouble = None if point else "DescribeQuorum tells no endpoint (3.9 and later do)"
        found.append(Member(CONTROLLER, replica["id"], address, trouble))
    return found


def other_members(session: Session, nodes: Nodes) -> list[Member]:
    """The nodes of the other kind, as far as the source can name them. Raises NodeError, DataError."""
    if nodes.kind == BROKER:
        return controllers_of_quorum(nodes)
    return _registered(session, nodes, BROKER)


def _registered(session: Session, nodes: Nodes, kind: str) -> list[Member]:
    """By their registrations in the image: the listener whose security protocol is ours."""
    protocol = nodes.settings.security_protocol
    found = []
    for node_id, entry in sorted(session.image[f"{kind}s"].items()):
        listeners: Iterable[Any] = entry.value.listeners
        fits = next((one for one in listeners if one.security_protocol == protocol), None)
        address = (fits.host, fits.port) if fits else None
        found.append(Member(kind, node_id, address, None if fits else f"it has no listener with {protocol}"))
    return found


def find_member(session: Session, nodes: Nodes, node_id: int) -> Member:
    """The node with that id. Raises NodeError; ConnectError names the ids that are known."""
    found = find_members(session, nodes, node_id)
    if found[0].id is None:
        raise _not_known(node_id, found)
    return found[0]


def find_members(session: Session, nodes: Nodes, node_id: int) -> list[Member]:
    """The node with that id; where ids are not told, those that it may be, of which one at least there is.

    Raises NodeError; ConnectError names the ids that are known.
    """
    known = own_members(nodes)
    for member in known:
        if member.id == node_id:
            return [member]
    with contextlib.suppress(AuthorizationError, UnsupportedVersionError):
        known += other_members(session, nodes)
    if nodes.kind == CONTROLLER and session.is_loaded:
        known += _registered(session, nodes, CONTROLLER)
    for member in known:
        if member.id == node_id:
            return [member]
    nameless = [member for member in known if member.id is None]
    if not nameless:
        raise _not_known(node_id, known)
    return nameless


def _not_known(node_id: int, known: Iterable[Member]) -> ConnectError:
    there = ", ".join(sorted({member.title for member in known})) or "none"
    return ConnectError(f"node {node_id}", "no node with this id is known", hint=f"known: {there}")


def connection_to(nodes: Nodes, member: Member) -> Connection:
    """A new connection, the caller's own, to that node, which is of the right kind and cluster. Raises NodeError."""
    if member.address is None:
        raise ConnectError(member.title, member.trouble or "its address is not known")
    if member.kind == nodes.kind:
        return nodes.dial(member.address)
    settings = nodes.settings._replace(cluster_id=nodes.cluster_id)
    return Nodes(member.kind, [member.address], settings).dial(member.address)
