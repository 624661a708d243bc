"""Which versions of which APIs the nodes of a cluster offer. Each is asked itself; who does not answer is named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kshell.client.nodes import Nodes
from kshell.client.survey import Told, ask_versions, unreachable
from kshell.client.versions import NodeVersions
from kshell.cluster.members import Member, find_member, other_members, own_members
from kshell.errors import ConnectError, NodeError

if TYPE_CHECKING:
    from kshell.engine.session import Session

Range = tuple[int, int]
_METADATA_VERSION = "metadata.version"


class Survey(NamedTuple):
    """What was told, by the members' names; ``silent`` are the others, each with the reason."""

    told: dict[str, NodeVersions]
    members: dict[str, Member]
    silent: dict[str, str]

    @property
    def ranges(self) -> dict[str, Mapping[int, Range]]:
        """API key -> (lowest, highest), by node."""
        return {name: versions.ranges for name, versions in self.told.items()}

    @property
    def finalized(self) -> Mapping[str, int] | None:
        """Feature -> finalized level, as a node told it; ``None``: none did (KRaft always has metadata.version)."""
        told = (versions.finalized for versions in self.told.values())
        return next((levels for levels in told if _METADATA_VERSION in levels), None)


def survey(session: Session, nodes: Nodes, *, node_id: int | None = None, everyone: bool = False) -> Survey:
    """Asks one node, the nodes of the source's kind, or ``everyone``. Raises NodeError when none answers.

    Nodes that do not answer are left in ``session.remarks``, for people.
    """
    if node_id is not None:
        members = [find_member(session, nodes, node_id)]
    else:
        members = own_members(nodes)
        if everyone:
            members += _others(session, nodes)
    names = _names(members)
    answers = ask_versions([member.address for member in members if member.address is not None], nodes.settings)
    found = Survey({}, names, {})
    for name, member in names.items():
        told = answers[member.address] if member.address is not None else None
        if told is not None and told.versions is not None:
            found.told[name] = told.versions
        else:
            found.silent[name] = _why(member, told)
    if not found.told:
        raise _none(members, answers.values())
    session.remarks += [f"{names[name].kind} {name} was not asked: {reason}" for name, reason in found.silent.items()]
    return found


def _others(session: Session, nodes: Nodes) -> list[Member]:
    try:
        return other_members(session, nodes)
    except NodeError as error:
        session.remarks.append(f"the other nodes are not known: {error.message}")
        return []


def _names(members: Iterable[Member]) -> dict[str, Member]:
    """A node that is both has two listeners, and the same id at both: then the kind tells them apart."""
    members = list(members)
    often = Counter(member.name for member in members)
    return {f"{one.kind}-{one.name}" if often[one.name] > 1 else one.name: one for one in members}


def _why(member: Member, told: Told | None) -> str:
    if told is None or told.failure is None:
        return member.trouble or "its address is not known"
    return told.failure.message


def _none(members: list[Member], answers: Iterable[Told]) -> NodeError:
    answers = list(answers)
    if answers:
        return unreachable(answers)
    first = members[0] if members else None
    return ConnectError(first.title if first else "the cluster", _why(first, None) if first else "it names no node")
