"""Which software the brokers run: each is asked itself (KIP-885's drafts), or its release is inferred.

What a broker says of itself is text that nobody trusts: it is cut to a length, and escaped wherever it is shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from kshell.client.versions import NodeVersions
from kshell.commands.base.members import Member, connection_to, live_nodes, other_members, own_members
from kshell.errors import NodeError

if TYPE_CHECKING:
    from kshell.client.nodes import Nodes
    from kshell.session import Session

REPORTED, INFERRED, UNKNOWN = "reported", "inferred", "unknown"
_LONGEST = 256
"""Characters of a name or version that are kept."""
_NUMBERS = re.compile(r"v?(\d{1,9}(?:\.\d{1,9}){0,5})", re.ASCII)


class Software(NamedTuple):
    """A broker's software; ``lowest`` and ``highest`` bound its version where that is not a single one."""

    name: str | None
    version: str | None
    source: str
    evidence: list[str]
    lowest: str | None = None
    highest: str | None = None


def add_software(session: Session, rows: list[dict[str, Any]]) -> None:
    """Adds the software to the brokers' rows, by their ids. Raises SourceError on a directory."""
    nodes = live_nodes(session, "brokers --software")
    members = own_members(nodes) if nodes.kind == "broker" else other_members(session, nodes)
    found = dict(zip((member.id for member in members), _ask_all(nodes, members), strict=True))
    lowest, highest = span(found.values())
    for row in rows:
        told = found.get(row["id"], Software(None, None, UNKNOWN, ["its address is not known"]))
        row |= {
            "softwareName": told.name,
            "softwareVersion": told.version,
            "softwareSource": told.source,
            "evidence": told.evidence,
            "lowestSoftwareVersion": lowest,
            "highestSoftwareVersion": highest,
        }


def _ask_all(nodes: Nodes, members: list[Member]) -> list[Software]:
    from kshell.client.together import at_once

    return at_once(lambda member: _ask(nodes, member), members)


def _ask(nodes: Nodes, member: Member) -> Software:
    try:
        connection = connection_to(nodes, member)
        try:
            name, version = connection.versions.software
            if "kip-885" in nodes.settings.dialects:
                from kshell.protocol.messages.cluster import DESCRIBE_CLUSTER

                told = connection.request(DESCRIBE_CLUSTER, {}).body
                name, version = told.get("brokerSoftwareName"), told.get("brokerSoftwareVersion")
        finally:
            connection.close()
    except NodeError as error:
        return Software(None, None, UNKNOWN, [error.message])
    if name is None and version is None:
        return inferred(connection.versions)
    return reported(name, version)


def reported(name: str | None, version: str | None) -> Software:
    """What a broker says; ``None`` is what it does not say."""
    name, version = (None if text is None else text[:_LONGEST] for text in (name, version))
    return Software(name, version, REPORTED, [], version, version)


def inferred(versions: NodeVersions) -> Software:
    """The release that the offered APIs and features speak for, or the shortest range of them."""
    from kshell.client.inference import infer

    found = infer(versions.ranges, versions.supported, "broker")
    if found.lowest is None:
        return Software(None, None, UNKNOWN, found.evidence)
    highest = found.highest or f"{found.lowest} or later"
    return Software(None, found.text, INFERRED, found.evidence, found.lowest, highest)


def span(found: Iterable[Software]) -> tuple[str | None, str | None]:
    """The lowest and the highest version of a cluster, among those that begin with a number."""
    told = list(found)
    lows = [(numbers, one.lowest) for one in told if one.lowest and (numbers := _numbers(one.lowest))]
    highs = [(numbers, one.highest) for one in told if one.highest and (numbers := _numbers(one.highest))]
    return (min(lows)[1] if lows else None), (max(highs)[1] if highs else None)


def _numbers(version: str) -> tuple[int, ...] | None:
    match = _NUMBERS.match(version)
    return tuple(map(int, match[1].split("."))) if match else None
