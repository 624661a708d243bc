"""Whether a static quorum can become a dynamic one (KIP-853), and what is missing: for ``quorum --can-upgrade``.

An active controller of Kafka 4.1 or later raises kraft.version from 0 to 1 (KAFKA-16907) if every node supports 1 and
every voter has sent it its directory id and versions. Earlier controllers accept the command without an error,
but leave the quorum static.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from kshell.metadata.feature_levels import KRAFT_VERSION
from kshell.metadata.feature_update import ClusterFeatures, check, handles_kraft_version
from kshell.metadata.health.nodes import BEHIND_AFTER
from kshell.metadata.kafka_tools import KafkaTools

if TYPE_CHECKING:
    from kshell.engine.result import Row
    from kshell.json_text import JsonObject

_PRESENT_STATE = "kraftVersion"
_COMMAND = "kafka-features.sh upgrade --feature kraft.version=1"


class QuorumRequirement(NamedTuple):
    """One requirement of the upgrade, and whether it is met. ``fulfilled`` is ``None`` if that cannot be known."""

    requirement: str
    fulfilled: bool | None
    evidence: str
    next_step: str | None = None
    command: str | None = None
    is_required: bool = True
    """Whether the upgrade depends on it. False for what nobody can check, or what is to be done after the upgrade."""

    def row(self) -> Row:
        """The values under the column names of result rows."""
        return {
            "requirement": self.requirement,
            "fulfilled": self.fulfilled,
            "evidence": self.evidence,
            "nextStep": self.next_step,
            "command": self.command,
        }


def requirements(cluster: ClusterFeatures, quorum: JsonObject | None, tools: KafkaTools) -> list[QuorumRequirement]:
    """List the present state, with the command if nothing is missing, and after it what the upgrade needs.

    Args:
        cluster: finalized features, and what every node supports.
        quorum: the description of a running quorum; ``None`` if no quorum was asked.
        tools: fills in the addresses and options of the command.
    """
    level = cluster.finalized.get(KRAFT_VERSION, 0)
    if level:
        return [
            QuorumRequirement(
                _PRESENT_STATE, True, f"the quorum is dynamic already: kraft.version {level} is finalized"
            )
        ]
    required = list(_required(cluster, quorum))
    is_possible = all(requirement.fulfilled for requirement in required if requirement.is_required)
    static = "the quorum is static: kraft.version 0 is finalized"
    command = tools.fill(_COMMAND, {}) if is_possible else None
    step = f"make it dynamic: {command}" if command else "see what is missing below"
    return [QuorumRequirement(_PRESENT_STATE, None, static, step, command, is_required=False), *required]


def _required(cluster: ClusterFeatures, quorum: JsonObject | None) -> Iterator[QuorumRequirement]:
    if cluster.leader_supports is None:
        yield QuorumRequirement(
            "software", None, "which release the active controller runs is not known: it must be Kafka 4.1 or later"
        )
    elif handles_kraft_version(cluster):
        yield QuorumRequirement(
            "software", True, "the active controller changes kraft.version: it runs Kafka 4.1 or later"
        )
    else:
        yield QuorumRequirement(
            "software",
            False,
            "the active controller runs a release before 4.1: it takes kraft.version=1, and the quorum stays static",
            "there is no other cure: upgrade all nodes to Kafka 4.1 or later",
        )
    (verdict,) = check(cluster, {KRAFT_VERSION: 1}, upgrade=True)
    if verdict.possible:
        yield QuorumRequirement("nodes", True, "every node supports kraft.version 1")
    else:
        step = "start or upgrade these nodes, or unregister those that were removed" if verdict.nodes else None
        yield QuorumRequirement("nodes", verdict.possible, verdict.reason or "not every node is known", step)
    yield _voters(quorum)
    yield QuorumRequirement(
        "properties",
        None,
        "which properties the nodes have is not in the metadata",
        "afterwards set controller.quorum.bootstrap.servers in place of controller.quorum.voters on every node, with"
        " its next restart",
        is_required=False,
    )


def _voters(quorum: JsonObject | None) -> QuorumRequirement:
    """Whether every voter fetches: one that does has sent its directory id and versions before (UpdateRaftVoter)."""
    if quorum is None:
        return QuorumRequirement(
            "voters", None, "whether every voter runs is known only to a running quorum (-q)", is_required=False
        )
    now = max((voter["lastFetchTimestamp"] or 0 for voter in quorum["voters"]), default=0)
    late = [
        str(voter["id"])
        for voter in quorum["voters"]
        if voter["id"] != quorum["leaderId"] and now - (voter["lastFetchTimestamp"] or 0) > BEHIND_AFTER
    ]
    if late:
        names = ", ".join(late)
        return QuorumRequirement(
            "voters", False, f"the leader does not hear of {names}", f"start the controllers {names}"
        )
    return QuorumRequirement("voters", True, "every voter follows the leader")
