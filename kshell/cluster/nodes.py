"""The nodes of a running cluster: which there are, and what each reports about itself (API versions, software).

Controllers are listed by DescribeCluster (3.7 and later), else by DescribeQuorum (3.9), else only the addresses of the
bootstrap list are known, without ids; brokers by DescribeCluster, or by their registrations in the image. Since
DescribeQuorum may name another listener than the one that was asked, registrations of controllers count more. The
software name that a node reports is untrusted text: it is truncated here, and escaped where it is rendered.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kshell.client.address import Address, name_of
from kshell.client.concurrency import concurrently
from kshell.client.connection import NodeVersions
from kshell.client.nodes import BROKER, CONTROLLER, Nodes, VersionsReply, ask_versions, none_answers
from kshell.errors import (
    AuthorizationError,
    ConnectError,
    DataError,
    NodeError,
    SourceError,
    TlsError,
    UnsupportedVersionError,
)
from kshell.protocol.messages.cluster import DESCRIBE_CLUSTER
from kshell.protocol.messages.quorum import DESCRIBE_QUORUM
from kshell.sources.quorum.reachable import controller_addresses

if TYPE_CHECKING:
    from kshell.client.connection import Connection
    from kshell.engine.session import Session
    from kshell.json_text import JsonObject
    from kshell.metadata.families.cluster import Listener

_WITH_NODES = 2
"""The first version of DescribeQuorum that returns the endpoints of nodes (KIP-853)."""
_OTHER_LISTENER = (
    "DescribeQuorum names this address, and it may be of another listener than those that were given: list every"
    " controller, or allow ALTER on CLUSTER:kafka-cluster"
)


class Member(NamedTuple):
    """A node. ``id`` is ``None`` if only its address is known; ``trouble`` says why there is no ``address`` to use.

    ``hint`` is advice in place of that of a failed TLS handshake, where the address may be of an unsuitable listener.
    """

    kind: str
    id: int | None
    address: Address | None
    trouble: str | None = None
    hint: str | None = None

    @property
    def name(self) -> str:
        """Its id, or ``host:port``."""
        if self.id is not None:
            return str(self.id)
        return name_of(*self.address) if self.address else "?"

    @property
    def title(self) -> str:
        """Kind and name for messages, such as ``controller 3000``."""
        return f"{self.kind} {self.name}"


def live_nodes(session: Session, command: str, offline: str | None = None) -> Nodes:
    """The nodes of a live source, or an error that says that the command needs one.

    Args:
        session: the session with the source.
        command: the command that needs nodes, for the error.
        offline: a hint for the error: which command answers a similar question for a directory.

    Raises:
        SourceError: the source is a directory.
        UsageError: there is no source.
    """
    nodes = session.source.nodes
    if nodes is None:
        if not session.source.path:
            session.source.listing()
        raise SourceError(
            f"{command} asks running nodes, and {session.source.name or session.source.path} is a directory",
            hint="; ".join(filter(None, (f"needs -q or -b: kshell -q HOST:PORT {command} …", offline))),
        )
    return nodes


def own_members(session: Session, nodes: Nodes) -> list[Member]:
    """The nodes of the source's kind (``-q``: controllers, ``-b``: brokers), by id. Raises NodeError.

    If no API lists them: the addresses of the bootstrap list, with ids only where nodes have reported them.
    """
    connection = nodes.any()
    description = None
    if nodes.kind == BROKER:
        description = nodes.describe(connection, fenced=True)
    else:
        with contextlib.suppress(UnsupportedVersionError, AuthorizationError):
            description = nodes.describe(connection)
    if description is not None and nodes.by_id:
        return [Member(nodes.kind, node.id, node.address) for _, node in sorted(nodes.by_id.items())]
    if nodes.kind == CONTROLLER and connection.offers(DESCRIBE_QUORUM, _WITH_NODES):
        with contextlib.suppress(NodeError):
            return _reachable(session, nodes, controllers_of_quorum(nodes))
    ids = {node.address: node.id for node in nodes.by_id.values()}
    return [Member(nodes.kind, ids.get(address), address) for address in nodes.bootstrap]


def controllers_of_quorum(nodes: Nodes) -> list[Member]:
    """Voters, and observers that are controllers (only these have endpoints), from DescribeQuorum. Raises NodeError."""
    from kshell.sources.quorum.facts import describe_quorum

    quorum = describe_quorum(nodes)
    members = []
    for replica in [*quorum["voters"], *(observer for observer in quorum["observers"] if observer["endpoints"])]:
        point = next(iter(replica["endpoints"]), None)
        address = (point["host"], point["port"]) if point else None
        trouble = None if point else "DescribeQuorum reports no endpoint (it does from 3.9 on)"
        members.append(Member(CONTROLLER, replica["id"], address, trouble))
    return members


def _reachable(session: Session, nodes: Nodes, members: list[Member]) -> list[Member]:
    """Controllers that DescribeQuorum named, each at the address where this client reaches it.

    DescribeQuorum names one listener of each voter, whichever was asked. If the bootstrap list is of another one, the
    registrations are read. If these cannot be had, the addresses of the bootstrap list may be all that is usable.
    """
    given = {port for _, port in nodes.bootstrap}
    if given <= {member.address[1] for member in members if member.address is not None}:
        return members
    registered: Mapping[int, Iterable[Listener]] = {}
    with contextlib.suppress(NodeError, DataError):
        registered = _listeners(session, CONTROLLER)
    addresses = controller_addresses(nodes, registered)
    certain = [
        member._replace(address=addresses[member.id], trouble=None) for member in members if member.id in addresses
    ]
    rest = [member._replace(hint=_OTHER_LISTENER) for member in members if member.id not in addresses]
    used = {member.address for member in certain}
    unused = [address for address in nodes.bootstrap if address not in used]
    if rest and len(unused) >= len(rest):
        rest = [Member(CONTROLLER, None, address) for address in unused]
    return [*certain, *rest]


def _listeners(session: Session, kind: str) -> dict[int, Iterable[Listener]]:
    """The listeners of the registered nodes of a kind, by id. Raises NodeError, DataError."""
    return {node_id: entry.value.listeners for node_id, entry in sorted(session.image[f"{kind}s"].items())}


def other_members(session: Session, nodes: Nodes) -> list[Member]:
    """The nodes of the other kind: controllers for ``-b``, brokers for ``-q``. Raises NodeError, DataError."""
    if nodes.kind == BROKER:
        return controllers_of_quorum(nodes)
    return _registered(session, nodes, BROKER)


def _registered(session: Session, nodes: Nodes, kind: str) -> list[Member]:
    """The registered nodes of a kind: brokers at their first listener with the security protocol of this client."""
    protocol = nodes.settings.security_protocol
    listeners = _listeners(session, kind)
    addresses = controller_addresses(nodes, listeners) if kind == CONTROLLER else {}
    members = []
    for node_id, own in listeners.items():
        fits = next((listener for listener in own if listener.security_protocol == protocol), None)
        address = addresses.get(node_id) or ((fits.host, fits.port) if fits else None)
        members.append(Member(kind, node_id, address, None if address else f"it has no listener with {protocol}"))
    return members


def find_member(session: Session, nodes: Nodes, node_id: int) -> Member:
    """The node with that id. Raises NodeError; a ConnectError lists the known nodes if none has this id."""
    members = find_members(session, nodes, node_id)
    if members[0].id is None:
        raise _not_known(node_id, members)
    return members[0]


def find_members(session: Session, nodes: Nodes, node_id: int) -> list[Member]:
    """Find the node with that id; if none has it, return all nodes without a known id: any of them may be it.

    Raises NodeError; a ConnectError lists the known nodes if no node is without an id.
    """
    members = own_members(session, nodes)
    for member in members:
        if member.id == node_id:
            return [member]
    with contextlib.suppress(AuthorizationError, UnsupportedVersionError):
        members += other_members(session, nodes)
    if nodes.kind == CONTROLLER and session.is_loaded:
        members += _registered(session, nodes, CONTROLLER)
    for member in members:
        if member.id == node_id:
            return [member]
    nameless = [member for member in members if member.id is None]
    if not nameless:
        raise _not_known(node_id, members)
    return nameless


def _not_known(node_id: int, members: Iterable[Member]) -> ConnectError:
    there = ", ".join(sorted({member.title for member in members})) or "none"
    return ConnectError(f"node {node_id}", "no node with this id is known", hint=f"known: {there}")


def connection_to(nodes: Nodes, member: Member) -> Connection:
    """Open a new connection to that node; the caller closes it. Kind and cluster are checked. Raises NodeError."""
    if member.address is None:
        raise ConnectError(member.title, member.trouble or "its address is not known")
    if member.kind == nodes.kind:
        try:
            return nodes.dial(member.address)
        except TlsError as error:
            raise _advised(error, member) from None
    settings = nodes.settings._replace(cluster_id=nodes.cluster_id)
    # No bootstrap list: the cluster named this address, not the user, so `allowed.hosts` has to list it.
    return Nodes(member.kind, [], settings).dial(member.address)


Range = tuple[int, int]
_METADATA_VERSION = "metadata.version"


class Survey(NamedTuple):
    """The ApiVersions responses of nodes; all keys are names of members.

    ``versions`` has the nodes that answered, ``members`` all nodes, ``silent`` why each of the others did not.
    """

    versions: dict[str, NodeVersions]
    members: dict[str, Member]
    silent: dict[str, str]

    @property
    def ranges(self) -> dict[str, Mapping[int, Range]]:
        """The (lowest, highest) version by API key, for each node that answered."""
        return {name: versions.ranges for name, versions in self.versions.items()}

    @property
    def finalized(self) -> Mapping[str, int] | None:
        """Finalized levels by feature, from a node that reports metadata.version (KRaft always has it), or ``None``."""
        finalized_levels = (versions.finalized for versions in self.versions.values())
        return next((levels for levels in finalized_levels if _METADATA_VERSION in levels), None)


def survey(session: Session, nodes: Nodes, *, node_id: int | None = None, everyone: bool = False) -> Survey:
    """Send ApiVersions to node ``node_id``, to all nodes of the source's kind, or to ``everyone``.

    A remark names each node without an answer. Raises NodeError if none answers.
    """
    if node_id is not None:
        members = [find_member(session, nodes, node_id)]
    else:
        members = own_members(session, nodes)
        if everyone:
            members += _try_other_members(session, nodes)
    names = _names(members)
    answers = ask_versions([member.address for member in members if member.address is not None], nodes.settings)
    node_survey = Survey({}, names, {})
    for name, member in names.items():
        reply = answers[member.address] if member.address is not None else None
        if member.address is not None and reply is not None and isinstance(reply.failure, TlsError):
            reply = answers[member.address] = VersionsReply(None, _advised(reply.failure, member))
        if reply is not None and reply.versions is not None:
            node_survey.versions[name] = reply.versions
        else:
            node_survey.silent[name] = _why(member, reply)
    if not node_survey.versions:
        raise _none(members, answers.values())
    session.remarks += [
        f"{names[name].kind} {name} was not asked: {reason}" for name, reason in node_survey.silent.items()
    ]
    return node_survey


def _advised(error: TlsError, member: Member) -> TlsError:
    """The same error with the hint of the member, if it has one."""
    return error if member.hint is None else TlsError(error.node, error.reason, api=error.api, hint=member.hint)


def _try_other_members(session: Session, nodes: Nodes) -> list[Member]:
    try:
        return other_members(session, nodes)
    except NodeError as error:
        session.remarks.append(f"the other nodes are not known: {error.message}")
        return []


def _names(members: Iterable[Member]) -> dict[str, Member]:
    """Members by name. A node that is broker and controller is listed twice: the kind is then put before its id."""
    members = list(members)
    often = Counter(member.name for member in members)
    return {f"{member.kind}-{member.name}" if often[member.name] > 1 else member.name: member for member in members}


def _why(member: Member, reply: VersionsReply | None) -> str:
    if reply is None or reply.failure is None:
        return member.trouble or "its address is not known"
    return reply.failure.message


def _none(members: list[Member], answers: Iterable[VersionsReply]) -> NodeError:
    answers = list(answers)
    if answers:
        return none_answers(answers)
    first = members[0] if members else None
    return ConnectError(first.title if first else "the cluster", _why(first, None) if first else "it names no node")


REPORTED, INFERRED, UNKNOWN = "reported", "inferred", "unknown"
_LONGEST = 256
"""Characters: a longer software name or version is truncated."""


class Software(NamedTuple):
    """A broker's software; ``source`` is REPORTED, INFERRED or UNKNOWN; a range of releases has two bounds."""

    name: str | None
    version: str | None
    source: str
    evidence: list[str]
    lowest: str | None = None
    highest: str | None = None


def add_software(session: Session, rows: list[JsonObject]) -> None:
    """Ask every broker for its software and add it to the rows of ``brokers``, in place. Raises SourceError offline."""
    from kshell.client.inference import span  # late: few ask for it

    nodes = live_nodes(session, "brokers --software")
    members = own_members(session, nodes) if nodes.kind == "broker" else other_members(session, nodes)
    software_by_id = dict(zip((member.id for member in members), _ask_all(nodes, members), strict=True))
    lowest, highest = span((software.lowest, software.highest) for software in software_by_id.values())
    for row in rows:
        software = software_by_id.get(row["id"], Software(None, None, UNKNOWN, ["its address is not known"]))
        row |= {
            "softwareName": software.name,
            "softwareVersion": software.version,
            "softwareSource": software.source,
            "evidence": software.evidence,
            "lowestSoftwareVersion": lowest,
            "highestSoftwareVersion": highest,
        }


def _ask_all(nodes: Nodes, members: list[Member]) -> list[Software]:
    return concurrently(lambda member: _ask(nodes, member), members)


def _ask(nodes: Nodes, member: Member) -> Software:
    try:
        connection = connection_to(nodes, member)
        try:
            name, version = connection.versions.software
            if "kip-885" in nodes.settings.dialects:
                description = connection.request(DESCRIBE_CLUSTER, {}).body
                name, version = description.get("brokerSoftwareName"), description.get("brokerSoftwareVersion")
        finally:
            connection.close()
    except NodeError as error:
        return Software(None, None, UNKNOWN, [error.message])
    if name is None and version is None:
        return inferred(connection.versions)
    return reported(name, version)


def reported(name: str | None, version: str | None) -> Software:
    """The software that a broker reports about itself; ``None`` for a name or version that it does not report."""
    name, version = (None if text is None else text[:_LONGEST] for text in (name, version))
    return Software(name, version, REPORTED, [], version, version)


def inferred(versions: NodeVersions) -> Software:
    """The release that a broker's APIs and features point to, or the shortest range of releases if several fit."""
    from kshell.client.inference import infer

    inference = infer(versions.ranges, versions.supported, "broker")
    if inference.lowest is None:
        return Software(None, None, UNKNOWN, inference.evidence)
    return Software(None, inference.text, INFERRED, inference.evidence, *inference.bounds)
