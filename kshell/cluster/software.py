"""Which software the brokers run: each is asked itself (KIP-885's drafts), or its release is inferred.

What a broker says of itself is text that nobody trusts: it is cut to a length, and escaped wherever it is shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from kshell.client.versions import NodeVersions
from kshell.cluster.members import Member, connection_to, live_nodes, other_members, own_members
from kshell.errors import NodeError

if TYPE_CHECKING:
    from kshell.client.nodes import Nodes
    from kshell.engine.session import Session

REPORTED, INFERRED, UNKNOWN = "reported", "inferred", "unknown"
_LONGEST = 256
"""Characters of a name or version that are kept."""
_OR_LATER = " or later"
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
    lowest, highest = span((software.lowest, software.highest) for software in found.values())
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
    return Software(None, found.text, INFERRED, found.evidence, *found.bounds)


def span(bounds: Iterable[tuple[str | None, str | None]]) -> tuple[str | None, str | None]:
    """The lowest and the highest version of a cluster, of its nodes' bounds that begin with a number.

    One bound that is open above leaves the cluster's highest version open as well.
    """
    known = list(bounds)
    lows = [(numbers, low) for low, _ in known if low and (numbers := _numbers(low))]
    highs = [(numbers, high) for _, high in known if high and (numbers := _numbers(high))]
    lowest, highest = min(lows, default=((), None))[1], max(highs, default=((), None))[1]
    if highest is not None and any(high.endswith(_OR_LATER) for _, high in highs):
        highest = highest.removesuffix(_OR_LATER) + _OR_LATER
    return lowest, highest


def _numbers(version: str) -> tuple[int, ...] | None:
    match = _NUMBERS.match(version)
    return tuple(map(int, match[1].split("."))) if match else None
