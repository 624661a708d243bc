"""Simulation of the controller: a partition after brokers have crashed, or after an unclean election was requested.

A broker that sends no heartbeats is fenced (``ReplicationControlManager.handleBrokerFenced``): it leaves the ISR of
each of its partitions, and ``PartitionChangeBuilder`` puts all consequences (ISR, ELR, leader) into one change. With
the ELR on (KIP-966), a broker that leaves an ISR smaller than min.insync.replicas becomes eligible, and the ISR may
become empty; without it the last member stays in the ISR. The leader stays if it is still in sync and active;
:mod:`kshell.metadata.election` says which other broker is elected. Brokers that crash together are fenced one after
another.

Not simulated, because a log cannot say it in advance: when followers catch up again, and what happens to brokers that
come back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kshell.metadata.election import ACTIVE, FENCED, UNCLEAN, UNREGISTERED, ElectionCase
from kshell.metadata.partition_state import effective_min_isr
from kshell.metadata.partitions import Partition

ONLINE_ELECTION = "online"
"""The kind of election that the controller holds by itself: without loss, or of the last known leader."""
KAFKA_MIN_ISR = 1
"""Kafka's default of ``min.insync.replicas``, which the ELR's rules use where the log has no value."""


class Outcome(NamedTuple):
    """The result of a simulation.

    Args:
        partition: The partition afterwards, with its epochs unchanged.
        is_clean: Whether every leader that was elected has every committed record.
    """

    partition: Partition
    is_clean: bool = True


def after_crashes(case: ElectionCase, brokers: Sequence[int], min_isr: int | None) -> Outcome:
    """Return a partition after the controller has fenced crashed brokers, one after another.

    Args:
        case: The partition, which may have a leader, and the present statuses of its brokers.
        brokers: The brokers that crash, in the order of fencing. Fenced and unregistered ones are passed over.
        min_isr: ``min.insync.replicas`` of the topic, for the ELR; ``None`` stands for Kafka's default.
    """
    is_clean = True
    for broker in brokers:
        if case.statuses.get(broker, UNREGISTERED) in (FENCED, UNREGISTERED):
            continue
        case = case._replace(statuses={**case.statuses, broker: FENCED})
        if broker in case.isr:
            isr = tuple(member for member in case.isr if member != broker)
            kind = UNCLEAN if case.elects_unclean else ONLINE_ELECTION
            outcome = _with_new_isr(case, isr, kind, min_isr)
            case = case._replace(partition=outcome.partition)
            is_clean = is_clean and outcome.is_clean
    return Outcome(case.partition, is_clean)


def after_unclean_election(case: ElectionCase, min_isr: int | None) -> Outcome:
    """Return a partition without a leader after an unclean election was requested (``electLeader``)."""
    return _with_new_isr(case, case.isr, UNCLEAN, min_isr)


def _with_new_isr(case: ElectionCase, isr: tuple[int, ...], kind: str, min_isr: int | None) -> Outcome:
    """Return what ``PartitionChangeBuilder.build`` makes of the partition, given its new ISR and a kind of election."""
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


def _eligible(case: ElectionCase, isr: tuple[int, ...], min_isr: int | None) -> tuple[int, ...]:
    """Return the new ELR for a new ISR (``maybePopulateTargetElr``): empty if the ISR has min.insync.replicas members,
    else all former members of ISR and ELR that are not in the new ISR.
    """
    enough = effective_min_isr(case.partition, KAFKA_MIN_ISR if min_isr is None else min_isr)
    if enough is not None and len(isr) >= enough:
        return ()
    return tuple(sorted({*case.elr, *case.isr}.difference(isr)))


def _last_known(case: ElectionCase, leader: int) -> tuple[int, ...]:
    """Return the last known leader while there is no leader, else nothing (``maybeUpdateLastKnownLeader``)."""
    if leader >= 0:
        return ()
    before = case.partition
    return (before.leader,) if before.leader >= 0 else before.last_known_elr
