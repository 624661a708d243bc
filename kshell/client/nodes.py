"""The nodes of one cluster: pooled connections to them, checked for the right kind of node and the right cluster.

In: a bootstrap list of controllers or of brokers (KIP-919). Out: connections, and the nodes that the cluster reports.
Addresses that cannot be reached are skipped; a node of the wrong kind is an error, because then the whole list may be
wrong. The first cluster id that a node reports is pinned: a node of another cluster is an error from then on.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from kshell.client import codes
from kshell.client.address import Address, name_of
from kshell.client.concurrency import concurrently, first_success
from kshell.client.connection import Connection, NodeVersions
from kshell.client.negotiation import connect
from kshell.errors import (
    AuthorizationError,
    ClusterIdError,
    ConnectError,
    NodeError,
    ProtocolError,
    ServerError,
    SourceTimeoutError,
    TlsError,
    UnsupportedVersionError,
    WrongEndpointError,
)
from kshell.protocol.decoder import Message
from kshell.protocol.messages.cluster import DESCRIBE_CLUSTER, METADATA
from kshell.protocol.messages.quorum import FETCH
from kshell.protocol.schema import Versions

if TYPE_CHECKING:
    from kshell.client.settings import Settings


CONTROLLER, BROKER = "controller", "broker"
TOPIC = "__cluster_metadata"
KIP_919_DRAFT = "kip-919-draft"
"""The dialect in which Metadata v13 reports controllers and cluster id (:func:`drafted_description`)."""
FIRST_CONTACT = 1.0
"""Seconds to keep trying while no node has ever answered: the addresses may be wrong, and the user should know."""
_ENDPOINT_TYPES = {BROKER: 1, CONTROLLER: 2}
_FLAGS = {BROKER: "--bootstrap-servers", CONTROLLER: "--bootstrap-controllers"}
_WITH_TYPE = Versions(1, None)
_MOST_OPEN = 256
"""Connections in the pool, at most; for one more, the oldest is closed."""
_MOST_NAMED = 256
"""Nodes known by id, at most, when responses name further ones. A real cluster has fewer than ten controllers."""
_MOST_NODES = 10_000
"""Nodes of a DescribeCluster response, at most: each of them may be asked, over a connection of its own."""


class ClusterNode(NamedTuple):
    """A node as the cluster reports it, with its address. ``fenced`` is ``None`` where it is not reported."""

    id: int
    address: Address
    rack: str | None = None
    fenced: bool | None = None


class Nodes:
    """Connections to the nodes of a cluster, opened on demand and pooled; end with :meth:`close`.

    Use :meth:`any` for a question that every node can answer, :meth:`node` for a node by its id, :meth:`at` for an
    address, and :meth:`dial` for a connection of one's own. ``kind`` is ``controller`` or ``broker``. ``cluster_id`` is
    that of the property ``cluster.id``, or else of the first node that reported one. ``notes`` are sentences for the
    user.
    """

    def __init__(self, kind: str, bootstrap: list[Address], settings: Settings) -> None:
        self.kind = kind
        self.bootstrap = bootstrap
        allowed = settings.allowed_hosts
        self.settings = settings if allowed is None else settings._replace(allowed_hosts=allowed.including(bootstrap))
        self.cluster_id = settings.cluster_id
        self.by_id: dict[int, ClusterNode] = {}
        """The nodes by id, as the cluster last reported them."""
        self.controller_id = -1
        """The active controller, as a controller last reported it; brokers report a random broker, which is ignored."""
        self.was_reached = False
        """Whether any node has ever answered; if none has, the bootstrap list may be wrong."""
        self.notes: list[str] = []
        self._open: dict[Address, Connection] = {}
        self._silent: set[Address] = set()
        """Addresses whose last attempt ended in a timeout; they are tried after all others."""
        self._dialed: set[Address] = set()
        """Addresses to which a connection is being made, or was when an interrupt or a deadline came."""
        self._lock = threading.Lock()
        self._is_closed = False

    # --- connections ---------------------------------------------------------------------------------------------

    def dial(self, address: Address, *, timeout: float = inf) -> Connection:
        """Open a new connection, which the caller must close, and check the node's kind and cluster. Raises NodeError.

        Args:
            address: where the node listens.
            timeout: seconds for everything; connecting and authenticating have at most
                ``socket.connection.setup.timeout.ms`` of it.
        """
        self._dialed.add(address)
        try:
            connection = self._dial(address, time.monotonic() + timeout)
        except NodeError:
            self._dialed.discard(address)
            raise
        self._dialed.discard(address)
        self.was_reached = True
        return connection

    def _dial(self, address: Address, deadline: float) -> Connection:
        connection = connect(*address, self.settings, timeout=_seconds_left(deadline, self.settings.connect_timeout))
        try:
            self._admit(connection, _seconds_left(deadline, connection.patience))
        except BaseException:
            connection.close()
            raise
        return connection

    def take_unanswered(self, *, with_fetch: bool) -> list[str]:
        """Return who was asked and has not answered: ``host:9093 (DescribeQuorum)``, or an address being dialed.

        Connections that an interrupt or a deadline has ended are named once: the next error is about another question.

        Args:
            with_fetch: whether Fetch counts, for which a server may wait until there is something new.
        """
        pending: list[str] = []
        for connection in list(self._open.values()):  # a copy, because another thread may add some
            if (api := connection.awaited) is not None and (with_fetch or api.key != FETCH.key):
                pending.append(f"{connection.node} ({api.name})")
                connection.awaited = api if connection.is_open else None
        dialed = sorted(self._dialed)
        self._dialed.clear()
        return [*pending, *(name_of(*address) for address in dialed)]

    def at(self, address: Address, *, timeout: float = inf) -> Connection:
        """Return the pooled connection to an address, or open one; ``timeout`` as in :meth:`dial`. Raises NodeError."""
        connection = self._pooled(address)
        if connection is not None:
            return connection
        try:
            dialed = self.dial(address, timeout=timeout)  # without the lock: close() must not wait for it
        except SourceTimeoutError:
            self._silent.add(address)
            raise
        self._silent.discard(address)
        try:
            connection = self._pooled(address, dialed) or dialed
        except ConnectError:
            dialed.close()
            raise
        if connection is not dialed:
            dialed.close()  # another thread has opened one meanwhile
        return connection

    def _pooled(self, address: Address, dialed: Connection | None = None) -> Connection | None:
        """Return the usable pooled connection, else pool ``dialed``. Raises ConnectError after :meth:`close`."""
        with self._lock:
            if self._is_closed:
                raise ConnectError(name_of(*address), "closed meanwhile")
            pooled = self._open.get(address)
            if pooled is not None and pooled.is_usable():
                return pooled
            if dialed is not None:
                self._open.pop(address, None)
                self._open[address] = dialed
                while len(self._open) > _MOST_OPEN:
                    self._open.pop(next(iter(self._open))).close()
            return dialed

    def any(self, *, timeout: float = inf) -> Connection:
        """Return a pooled connection to any node; if none is open, connect to the first node that can be reached.

        ``timeout`` is in seconds, for all attempts. Raises NodeError if no node can be reached.
        """
        with self._lock:
            connections = list(self._open.values())
        usable = next((connection for connection in connections if connection.is_usable()), None)
        if usable is not None:
            return usable
        deadline = time.monotonic() + timeout

        def attempt(address: Address) -> Connection:
            return self.at(address, timeout=_seconds_left(deadline))

        return first_success([partial(attempt, address) for address in self.addresses()], unreachable)

    def reachable(self, *, timeout: float = inf) -> Iterator[Connection]:
        """Yield a connection to every reachable node, of the bootstrap list and of those known when this is called.

        ``timeout``: seconds for all nodes together; nodes that are left then count as not reachable.

        Raises NodeError if no node can be reached, or one fails for another reason (such as a refused login).
        """
        deadline = time.monotonic() + timeout
        failures: list[NodeError] = []
        any_reachable = False
        for address in self.addresses():
            try:
                connection = self.at(address, timeout=_seconds_left(deadline))
            except (ConnectError, SourceTimeoutError) as error:
                failures.append(error)
                continue
            any_reachable = True
            yield connection
        if not any_reachable:
            raise unreachable(failures)

    def addresses(self) -> list[Address]:
        """Return every known address: open connections first, those that timed out last, else bootstrap list first."""
        nodes = tuple(self.by_id.values())  # a copy, because another thread may add nodes
        addresses = dict.fromkeys([*self.bootstrap, *(node.address for node in nodes)])
        return sorted(addresses, key=self._rank)

    def _rank(self, address: Address) -> int:
        connection = self._open.get(address)
        return 0 if connection is not None and connection.is_open else 2 if address in self._silent else 1

    def close(self) -> None:
        """Close every pooled connection; from then on :meth:`at` raises ConnectError."""
        with self._lock:
            self._is_closed = True
            for connection in self._open.values():
                connection.close()
            self._open.clear()

    # --- who is there --------------------------------------------------------------------------------------------

    def node(self, node_id: int) -> Connection:
        """Return the connection to the node with that id. Raises NodeError; for an unknown id, with the known ones."""
        if node_id not in self.by_id:
            self.describe(self.any())
        node = self.by_id.get(node_id)
        if node is None:
            there = ", ".join(map(str, sorted(self.by_id))) or "none"
            reason = f"no {self.kind} with this id is known"
            raise ConnectError(f"node {node_id}", reason, hint=f"known {self.kind}s: {there}")
        return self.at(node.address)

    def learn(self, node: ClusterNode) -> None:
        """Add a node that some other response named. If there are too many, the oldest ones are dropped."""
        self.by_id.pop(node.id, None)
        self.by_id[node.id] = node
        while len(self.by_id) > _MOST_NAMED:
            self.by_id.pop(next(iter(self.by_id)))

    def describe(self, connection: Connection, *, fenced: bool = False, timeout: float | None = None) -> Message | None:
        """Send DescribeCluster, and note the nodes and cluster id of the response. Raises NodeError.

        With ``fenced``, fenced brokers are included, if the node can report them (KIP-1073). Returns ``None`` if the
        node's release cannot describe nodes of this kind.
        """
        body = self._described(connection, fenced, timeout)
        if body is None:
            return None
        if len(body["brokers"]) > _MOST_NODES:
            connection.close()
            reason = f"the answer names {len(body['brokers']):,} {self.kind}s, and no cluster has more than"
            raise ProtocolError(connection.node, f"{reason} {_MOST_NODES:,}", api=DESCRIBE_CLUSTER.name)
        self._pin(connection, body["clusterId"])
        if self.kind == CONTROLLER:
            self.controller_id = body["controllerId"]
        nodes = [
            ClusterNode(n["brokerId"], (n["host"], n["port"]), n["rack"], n.get("isFenced")) for n in body["brokers"]
        ]
        if nodes:
            self.by_id = {node.id: node for node in nodes}  # nodes that have left the cluster are dropped
        return body

    def _described(self, connection: Connection, fenced: bool, timeout: float | None) -> Message | None:
        if KIP_919_DRAFT in self.settings.dialects:
            return drafted_description(connection, direct=self.kind == CONTROLLER, timeout=timeout)
        if not connection.offers(DESCRIBE_CLUSTER, 0 if self.kind == BROKER else 1):
            return None
        wanted = {"endpointType": _ENDPOINT_TYPES[self.kind], "includeFencedBrokers": fenced}
        accepted = None if self.kind == BROKER else _WITH_TYPE
        body = connection.request(DESCRIBE_CLUSTER, wanted, accepted=accepted, timeout=timeout).body
        code = body["errorCode"]
        if code in (codes.MISMATCHED_ENDPOINT_TYPE, codes.UNSUPPORTED_ENDPOINT_TYPE):
            raise self._wrong_kind(connection)
        if code == codes.UNSUPPORTED_VERSION:
            return None  # the metadata.version is from before controllers register (15, KIP-919)
        if code:
            raise codes.failure(connection.node, code, DESCRIBE_CLUSTER.name, body["errorMessage"])
        return body

    def _admit(self, connection: Connection, timeout: float) -> None:
        """Check the node's kind and cluster; one that reports no cluster id is accepted. Raises NodeError."""
        if KIP_919_DRAFT in self.settings.dialects:
            self.describe(connection, timeout=timeout)  # the draft's own response says which kind of node sent it
            return
        if connection.versions.assumed is None and connection.versions.is_broker != (self.kind == BROKER):
            raise self._wrong_kind(connection)
        try:
            self.describe(connection, timeout=timeout)
        except UnsupportedVersionError:
            return  # api.versions.exclude leaves no version of DescribeCluster
        except ConnectError as error:
            if error.hint is not None or isinstance(error, TlsError) or self.settings.sasl is not None:
                raise
            hint = "does this listener want a login? See security.protocol and sasl.mechanism; or is it restarting?"
            reason = "the node answers ApiVersions, and hangs up on the next request"
            raise ConnectError(error.node, reason, api=error.api, hint=hint) from None
        except (AuthorizationError, ServerError) as error:
            # The node may refuse this and still serve everything else, so it is used, with a note.
            why = f"; {error.hint}" if error.hint else ""
            note = f"{error.message}: the cluster's id and its {self.kind}s stay unknown{why}"
            if note not in self.notes:
                self.notes.append(note)

    def _pin(self, connection: Connection, cluster_id: str | None) -> None:
        """Note the first cluster id that a node reports; raise ClusterIdError for a different one."""
        if self.cluster_id is None:
            self.cluster_id = cluster_id
        elif cluster_id is not None and cluster_id != self.cluster_id:
            reason = f"the node belongs to cluster {cluster_id}, not to {self.cluster_id}"
            hint = "do all addresses belong to one cluster? Is cluster.id right?"
            raise ClusterIdError(connection.node, reason, hint=hint)

    def _wrong_kind(self, connection: Connection) -> WrongEndpointError:
        is_a = CONTROLLER if self.kind == BROKER else BROKER
        reason = f"this is a {is_a}, and {_FLAGS[self.kind]} takes {self.kind}s"
        hint = f"use {_FLAGS[is_a]} for it, or give the address of a {self.kind}'s listener"
        return WrongEndpointError(connection.node, reason, hint=hint)


def _seconds_left(deadline: float, most: float = inf) -> float:
    """Return the seconds until ``deadline``, at least 0 and at most ``most``."""
    return min(most, max(deadline - time.monotonic(), 0.0))


def unreachable(failures: list[NodeError]) -> NodeError:
    """Return one error for nodes that all failed: the single failure, or one whose reason lists all of them."""
    if len(failures) == 1:
        return failures[0]
    reasons = "; ".join(f"{error.node}: {error.reason}" for error in failures)
    hinted = next((error for error in failures if error.hint), failures[0])
    return type(hinted)(
        ", ".join(error.node for error in failures), f"none can be reached ({reasons})", hint=_advice(failures)
    )


def _advice(failures: list[NodeError]) -> str | None:
    """Return the hint that all failures share; where they differ, the beginning of each, with the nodes it is for."""
    groups: dict[str, list[NodeError]] = {}
    for error in failures:
        if error.hint is not None:
            groups.setdefault(error.hint.replace(error.node, ""), []).append(error)  # a hint may name its node
    hints = [(errors[0].hint or "", ", ".join(error.node for error in errors)) for errors in groups.values()]
    if len(hints) <= 1:
        return hints[0][0] if hints else None
    return "; ".join(f"{names}: {hint.partition('; ')[0]}" for hint, names in hints)


# --- the draft of KIP-919 ---------------------------------------------------------------------------------------------

# The layout of Metadata v13 is in protocol/messages/drafts.py; Kafka then extended DescribeCluster in its place.

_DIRECT = Versions(13, None)


def drafted_metadata(
    connection: Connection, *, direct: bool, topics: Sequence[str] | None = (), timeout: float | None = None
) -> Message:
    """Send Metadata in the dialect ``kip-919-draft``, and return the body of the response.

    In this dialect, the request says whether it is meant for a controller, and the response says whether it comes from
    one. The response has no error code of its own; a node puts it into the entry of the topic ``__cluster_metadata``.

    Args:
        connection: to the node that is asked.
        direct: whether the node must be a controller; else it must be a broker.
        topics: names of topics to describe; ``None`` for all, none by default.
        timeout: seconds to wait; ``None`` for the connection's own timeout.

    Raises:
        UnsupportedVersionError: ``direct`` is true, and the node does not know version 13.
        WrongEndpointError: a node of the other kind answered.
        NodeError: any other failure.
    """
    wanted = {
        "topics": None if topics is None else [{"name": name} for name in topics],
        "allowAutoTopicCreation": False,  # the default on the wire is true, and controllers refuse it
        "directToKRaftControllerQuorum": direct,
    }
    body = connection.request(METADATA, wanted, accepted=_DIRECT if direct else None, timeout=timeout).body
    if bool(body.get("fromKRaftController")) != direct:
        meant, actual = (CONTROLLER, BROKER) if direct else (BROKER, CONTROLLER)
        reason = f"this is a {actual}, and {_FLAGS[meant]} takes {meant}s"
        hint = f"use {_FLAGS[actual]} for it, or turn off the dialect {KIP_919_DRAFT} where no node speaks it"
        raise WrongEndpointError(connection.node, reason, api=METADATA.name, hint=hint)
    for topic in body["topics"]:
        if topic["name"] == TOPIC and topic["errorCode"]:
            raise codes.failure(connection.node, topic["errorCode"], METADATA.name)
    return body


def drafted_description(connection: Connection, *, direct: bool, timeout: float | None = None) -> Message:
    """Call :func:`drafted_metadata` and return the response in the form of a DescribeCluster body. Raises NodeError."""
    body = drafted_metadata(connection, direct=direct, timeout=timeout)
    nodes = [{**{k: node[k] for k in ("host", "port", "rack")}, "brokerId": node["nodeId"]} for node in body["brokers"]]
    return {
        "errorCode": 0,
        "errorMessage": None,
        "clusterId": body.get("clusterId"),  # absent before version 2: then the cluster id is not checked
        "controllerId": body["controllerId"],
        "brokers": nodes,
    }


# --- the versions of many nodes ---------------------------------------------------------------------------------------


_MOST_ASKED = 32
"""Nodes that are asked at the same time."""


class VersionsReply(NamedTuple):
    """What a node reported in ApiVersions, or why it did not: exactly one of the two fields is ``None``."""

    versions: NodeVersions | None
    failure: NodeError | None


def ask_versions(addresses: Iterable[Address], settings: Settings) -> dict[Address, VersionsReply]:
    """Ask many nodes for their API versions, in parallel; each has twice ``settings.connect_timeout`` to answer.

    The client does not authenticate: nodes answer ApiVersions before SASL (KIP-43), even if they would refuse the
    login. UnreadErrors of nodes are in the result. Raises UsageError for properties that cannot be used.
    """
    wanted = list(dict.fromkeys(addresses))
    replies = concurrently(lambda address: _ask_versions(address, settings), wanted, most=_MOST_ASKED)
    return dict(zip(wanted, replies, strict=True))


def _ask_versions(address: Address, settings: Settings) -> VersionsReply:
    try:
        connection = connect(*address, settings._replace(sasl=None), timeout=settings.connect_timeout * 2)
    except NodeError as error:
        return VersionsReply(None, error)
    try:
        return VersionsReply(connection.versions, None)
    finally:
        connection.close()


def none_answers(replies: Iterable[VersionsReply]) -> NodeError:
    """Return one ConnectError for nodes that all failed, or the failure itself if it is a single one."""
    failures = [reply.failure for reply in replies if reply.failure is not None]
    if len(failures) == 1:
        return failures[0]
    reasons = "; ".join(f"{error.node}: {error.reason}" for error in failures)
    names = ", ".join(error.node for error in failures)
    return ConnectError(names, f"none answers ({reasons})", hint=_advice(failures))
