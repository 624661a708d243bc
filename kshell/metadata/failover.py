"""What the controller makes of a partition when a broker dies, or when an unclean election is requested.

A broker from which no heartbeat comes is fenced (``ReplicationControlManager.handleBrokerFenced``): it leaves the ISR
of each of its partitions, and ``PartitionChangeBuilder`` builds one change of what follows. With the ELR on (KIP-966),
who leaves an ISR that is smaller than min.insync.replicas becomes eligible, and the ISR may become empty; without it
the last one stays in the ISR. A leader that may stay does; whom else the controller elects is in
:mod:`kshell.metadata.election`. Brokers that die together are fenced one after another.

Not in here, for no log says it: when followers catch up again, and what an election does to brokers that come back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kshell.metadata.election import ACTIVE, FENCED, UNCLEAN, UNREGISTERED, Leaderless
from kshell.metadata.partition_state import effective_min_isr
from kshell.metadata.partitions import Partition

ONLINE_ELECTION = "online"
"""The kind of election that the controller holds by itself: without loss, or of the last known leader."""
KAFKA_MIN_ISR = 1
"""Kafka's default of ``min.insync.replicas``: what counts for the ELR where the log does not say more."""


class Outcome(NamedTuple):
    """What becomes of a partition. Its epochs are left as they are.

    Args:
        partition: Its value then.
        is_clean: Whether every leader that was elected has every committed record.
    """

    partition: Partition
    is_clean: bool = True


def after_crashes(case: Leaderless, brokers: Sequence[int], min_isr: int | None) -> Outcome:
    """What becomes of a partition when the controller has fenced the brokers, in that order.

    Args:
        case: The partition, which may have a leader, and what became of its brokers so far.
        brokers: Those that die. It makes no difference for one that is fenced, or is not registered.
        min_isr: ``min.insync.replicas`` of the topic, for the ELR; ``None`` counts as Kafka's default.
    """
    is_clean = True
    for broker in brokers:
        if case.statuses.get(broker, UNREGISTERED) in (FENCED, UNREGISTERED):
            continue
        case = case._replace(statuses={**case.statuses, broker: FENCED})
        if broker in case.isr:
            isr = tuple(member for member in case.isr if member != broker)
            kind = UNCLEAN if case.elects_unclean else ONLINE_ELECTION
            outcome = _changed(case, isr, kind, min_isr)
            case = case._replace(partition=outcome.partition)
            is_clean = is_clean and outcome.is_clean
    return Outcome(case.partition, is_clean)


def after_unclean_election(case: Leaderless, min_isr: int | None) -> Outcome:
    """What becomes of a partition without a leader when an unclean election is requested (``electLeader``)."""
    return _changed(case, case.isr, UNCLEAN, min_isr)


def _changed(case: Leaderless, isr: tuple[int, ...], kind: str, min_isr: int | None) -> Outcome:
    """What ``PartitionChangeBuilder.build`` makes of the partition with that ISR."""
    before = case.partition
    elr = _eligible(case, isr, min_isr) if case.has_elr else ()
    candidates = case._replace(partition=before._replace(isr=isr, elr=elr))
    stays = before.leader in candidates.complete and case.statuses.get(before.leader) == ACTIVE
    elected = None if stays else candidates.elect(kind)
    leader = before.leader if stays else -1 if elected is None else elected.id
    is_clean = elected is None or elected.is_clean
    if not is_clean:
        isr, elr = (leader,), ()
    elif leader != before.leader and leader in elr:
        isr, elr = (leader,), tuple(member for member in elr if member != leader)
    elif not isr and not case.has_elr:
        isr = case.isr
    after = before._replace(
        isr=isr,
        elr=elr,
        leader=leader,
        leader_recovery_state=before.leader_recovery_state if is_clean else "RECOVERING",
        last_known_elr=_last_known(case, leader) if case.has_elr else before.last_known_elr,
    )
    return Outcome(after, is_clean)


def _eligible(case: Leaderless, isr: tuple[int, ...], min_isr: int | None) -> tuple[int, ...]:
    """The ELR beside an ISR: nobody where that has enough members, else those that left it since it had
    (``maybePopulateTargetElr``).
    """
    enough = effective_min_isr(case.partition, KAFKA_MIN_ISR if min_isr is None else min_isr)
    if enough is not None and len(isr) >= enough:
        return ()
    return tuple(sorted({*case.elr, *case.isr}.difference(isr)))


def _last_known(case: Leaderless, leader: int) -> tuple[int, ...]:
    """Who led when the leader was lost, until somebody leads again (``maybeUpdateLastKnownLeader``)."""
    if leader >= 0:
        return ()
    before = case.partition
    return (before.leader,) if before.leader >= 0 else before.last_known_elr
