"""Health checks of topics and partitions. Most next steps bring replicas back, or move them to other brokers."""

from __future__ import annotations

from kshell.metadata.election import ACTIVE, leaderless, name_brokers, steps
from kshell.metadata.health.check import (
    CRITICAL,
    ERROR,
    IN_ELR,
    INFO,
    LOST_DIRECTORY,
    RACKS,
    UNREGISTERED,
    WARNING,
    CheckedState,
    Observation,
    PartitionObservation,
    PartitionState,
    TopicState,
    is_reported,
    partition_check,
    topic_check,
)
from kshell.metadata.kafka_tools import move_command
from kshell.metadata.next_steps import Cure, NextStep
from kshell.metadata.partition_state import (
    AT_MIN_ISR,
    LOST,
    NON_PREFERRED,
    OFFLINE,
    REASSIGNING,
    UNCLEAN,
    UNDER_MIN_ISR,
    UNDER_REPLICATED,
    replication_factor,
    staying_replicas,
)
from kshell.metadata.partitions import Partition
from kshell.metadata.reassignment import MOST, can_cancel, cancel_command
from kshell.wording import ids

STUCK_AFTER = 3600_000
"""Milliseconds without a change after which a reassignment is called stuck."""
_ELECT = Cure(
    "automatic rebalancing does it (auto.leader.rebalance.enable), or {0}",
    ("kafka-leader-election.sh --election-type preferred --topic {topic} --partition {partition}",),
)
_RETURN = "start the missing brokers; one that is gone for good: move its replicas to brokers that run"
"""General advice; the next step of a single finding names the brokers and has the commands."""
_NO_ROOM = "start a further broker: none that runs could take a replica"


_WAIT = NextStep("wait for the reassignment to end")
_OR_CANCEL = ", or cancel the reassignment"
_TOO_FEW = NextStep(
    "all its replicas are in sync, and they are too few for min.insync.replicas: see minIsrAboveReplicas"
)
_NEEDS_LEADER = NextStep("the partition needs a leader first: see offlinePartition")


def _missing(state: CheckedState, partition_state: PartitionState, evidence: str) -> PartitionObservation:
    """Return the observation of out-of-sync replicas. Without a leader, none of them can return to the ISR."""
    if OFFLINE in partition_state.problems:
        return PartitionObservation(evidence, _NEEDS_LEADER)
    value = partition_state.partition
    missing = tuple(
        replica for replica in staying_replicas(value) if replica not in value.isr and not _leaves(value, replica)
    )
    if not missing:
        is_moving = bool(value.adding_replicas or value.removing_replicas)
        return _ending(state, value, evidence) if is_moving else PartitionObservation(evidence, _TOO_FEW)
    return _moving_away(state, value, evidence, missing, _return_of(state, missing))


def _leaves(value: Partition, replica: int) -> bool:
    """Whether a reassignment that is in progress removes a replica: it need not come back."""
    return is_reported(value.removing_replicas) and replica in value.removing_replicas


def _ending(state: CheckedState, value: Partition, evidence: str) -> PartitionObservation:
    """Return an observation that calls for the end of a reassignment, which may need brokers that do not run."""
    targets = state.placement.missing_targets(value)
    if not targets:
        return PartitionObservation(evidence, _WAIT)
    start = f"start {name_brokers(targets)}"
    return _or_cancel(state, value, evidence, start, f"{start}{_OR_CANCEL}")


def _or_cancel(state: CheckedState, value: Partition, evidence: str, step: str, choice: str) -> PartitionObservation:
    """Return an observation whose next step is ``choice``, which has a cancel; ``step`` if Kafka would refuse that."""
    if not can_cancel(value):
        return PartitionObservation(evidence, NextStep(step))
    return PartitionObservation(
        evidence, NextStep(choice), lambda topic, number: (cancel_command(state.tools, [(topic, number, value)]),)
    )


def _once_served(
    state: CheckedState, value: Partition, evidence: str, waits: list[int], first: str, then: str
) -> PartitionObservation:
    """Return an observation whose next step is ``then``, but needs brokers, or the end of the reassignment to them."""
    targets = [target for target in state.placement.missing_targets(value) if target in waits]
    if rest := [broker for broker in waits if broker not in targets]:
        then += f", once {name_brokers(rest)} {'serves' if len(rest) == 1 else 'serve'} again"
    if not targets:
        return PartitionObservation(evidence, NextStep(f"{first}{then}"))
    start = f"start {name_brokers(targets)}"
    choice = f"{first}either {start} or cancel the reassignment; then {then}"
    return _or_cancel(state, value, evidence, f"{first}{start}; then {then}", choice)


def _moving_away(
    state: CheckedState, value: Partition, evidence: str, leaving: tuple[int, ...], first: str
) -> PartitionObservation:
    """Return an observation whose next step is ``first`` and, as a last resort, to replace the leaving brokers."""
    placement = state.placement
    if not is_reported(value.replicas) or not placement.can_replace(value, leaving):
        return PartitionObservation(evidence, NextStep(f"{first}, {_NO_ROOM}"))
    if waits := placement.waits_for(value, leaving):
        return _once_served(state, value, evidence, waits, f"{first}, ", "move the replicas to brokers that run")

    def moves(topic: str, number: int) -> tuple[str, ...]:
        replicas = placement.replace(value, leaving, number)
        assert replicas is not None
        return (move_command(state.tools, [(topic, number, replicas)]),)

    return PartitionObservation(evidence, NextStep(f"{first}, move the replicas to brokers that run"), moves)


def _return_of(state: CheckedState, missing: tuple[int, ...]) -> str:
    """Return the first part of a next step: how to bring missing replicas back, by the status of their brokers."""
    running = [broker for broker in missing if broker in state.placement.active]
    stopped = [broker for broker in missing if broker not in running]
    sentences = [f"start {name_brokers(stopped)}"] if stopped else []
    if running:
        verb = "runs and is" if len(running) == 1 else "run and are"
        sentences.append(f"see the server.log of {name_brokers(running)}, which {verb} not in sync")
    pronoun = "it is" if len(missing) == 1 else "they are"
    return f"{', and '.join(sentences)}; if {pronoun} gone for good"


def _replicas(partition_state: PartitionState) -> str:
    return f"isr {ids(partition_state.partition.isr)} of replicas {ids(partition_state.partition.replicas)}"


@partition_check(
    "offlinePartition",
    CRITICAL,
    "no leader: it can be neither read nor written",
    "bring back a replica that Kafka elects without loss; an unclean election is the last resort",
    problem=OFFLINE,
)
def offline(state: CheckedState, partition_state: PartitionState) -> PartitionObservation | None:
    """The partition has no leader. How to get one depends on ISR, ELR and the statuses of the brokers in them."""
    value = partition_state.partition
    last = value.last_known_elr if is_reported(value.last_known_elr) else ()
    elr = value.elr if IN_ELR in partition_state.problems else ()
    more = f", elr {ids(elr)}" if elr else ""
    more += f", lastKnownElr {ids(last)}" if last else ""

    def next_step(topic: str, number: int) -> NextStep:
        case = leaderless(state.image, topic, value, controller=state.features.leader_id, is_partial=state.is_partial)
        first, fallback, if_never = steps(case, topic, number, state.tools)
        if fallback is None:
            return first
        return first._replace(text=f"{first.text}; {if_never}: `why TOPIC-PARTITION` has the last resort")

    return PartitionObservation(f"leader none, {_replicas(partition_state)}{more}", next_step)


@partition_check(
    "underMinIsr",
    ERROR,
    "fewer in-sync replicas than min.insync.replicas: acks=all is refused",
    _RETURN,
    problem=UNDER_MIN_ISR,
)
def under_min_isr(state: CheckedState, partition_state: PartitionState) -> PartitionObservation | None:
    """The ISR is smaller than min.insync.replicas. Offline partitions count as well, as in ``kafka-topics.sh``."""
    least = "not known" if partition_state.min_isr is None else str(partition_state.min_isr)
    return _missing(state, partition_state, f"{_replicas(partition_state)}, min.insync.replicas {least}")


@partition_check(
    "uncleanRecovery",
    ERROR,
    "an unclean leader recovers: records may be lost",
    "compare the topic with its sources: records of former leaders may be gone; the mark goes with the next change of"
    " the ISR (a lone replica keeps it)",
    problem=UNCLEAN,
)
def unclean_recovery(state: CheckedState, partition_state: PartitionState) -> PartitionObservation | None:
    """The partition's ``leaderRecoveryState`` is RECOVERING."""
    leader = partition_state.partition.leader
    return PartitionObservation(f"leaderRecoveryState RECOVERING, leader {leader}, {_replicas(partition_state)}")


@partition_check(
    "offlineDirectory",
    ERROR,
    "a replica is in a log directory that its broker does not have: a failed disk, or one that was taken away",
    "see the server.log of the broker for the directory; repair or replace the disk and restart the broker, or move the"
    " replica to another broker",
    problem=LOST_DIRECTORY,
)
def offline_directory(state: CheckedState, partition_state: PartitionState) -> PartitionObservation | None:
    """The id of a replica's log directory is LOST, or not among those that its broker registered with (KIP-858)."""
    places = dict(zip(partition_state.partition.replicas, partition_state.partition.directories, strict=True))
    sentences = [
        f"broker {number} has no directory {'(LOST)' if places[number] == LOST else places[number]}"
        for number in partition_state.lost
    ]
    evidence = f"{', '.join(sentences)}; {_replicas(partition_state)}"
    if OFFLINE in partition_state.problems:
        return PartitionObservation(evidence, _NEEDS_LEADER)
    lost = tuple(number for number in partition_state.lost if not _leaves(partition_state.partition, number))
    if not lost:
        return _ending(state, partition_state.partition, evidence)
    repair = (
        f"see the server.log of {name_brokers(lost)} for the directory; repair or replace the disk and restart the"
        " broker; if that cannot be done"
    )
    return _moving_away(state, partition_state.partition, evidence, lost, repair)


@partition_check(
    "atMinIsr",
    WARNING,
    "if one more replica is lost, acks=all is refused; with an ISR of one, the partition goes offline",
    _RETURN,
    problem=AT_MIN_ISR,
)
def at_min_isr(state: CheckedState, partition_state: PartitionState) -> PartitionObservation | None:
    """The ISR has exactly min.insync.replicas members, and replicas are missing (else: minIsrEqualsReplicas)."""
    return _missing(
        state, partition_state, f"{_replicas(partition_state)}, min.insync.replicas {partition_state.min_isr}"
    )


@partition_check("underReplicated", WARNING, "fewer in-sync replicas than replicas", _RETURN, problem=UNDER_REPLICATED)
def under_replicated(state: CheckedState, partition_state: PartitionState) -> PartitionObservation | None:
    """The ISR is smaller than the replication factor; replicas that a reassignment adds do not count."""
    return _missing(state, partition_state, _replicas(partition_state))


@partition_check(
    "elrInUse",
    WARNING,
    "the ISR fell below min.insync.replicas: others are still eligible to lead",
    _RETURN,
    problem=IN_ELR,
)
def elr_in_use(state: CheckedState, partition_state: PartitionState) -> PartitionObservation | None:
    """The partition has eligible leader replicas (KIP-966)."""
    return _missing(state, partition_state, f"elr {ids(partition_state.partition.elr)}, {_replicas(partition_state)}")


@partition_check(
    "nonPreferredLeader",
    INFO,
    "led by another broker than the first replica: load may be uneven",
    (_ELECT,),
    problem=NON_PREFERRED,
)
def non_preferred(state: CheckedState, partition_state: PartitionState) -> PartitionObservation | None:
    """The leader is not the first replica. Kafka elects that one only in sync, on a broker and a disk that serve."""
    value = partition_state.partition
    evidence = f"leader {value.leader}, replicas {ids(value.replicas)}"
    preferred = value.replicas[0]
    status = state.placement.status(preferred)
    if preferred in partition_state.lost:
        step = f"broker {preferred} needs the log directory of its replica before it can lead: see offlineDirectory"
    elif preferred not in value.isr and _leaves(value, preferred):
        step = (
            f"broker {preferred} is not in sync, and the reassignment removes it: once that ends, another is preferred"
        )
    elif preferred not in value.isr:
        if preferred not in staying_replicas(value):
            see = "the reassignment that adds it"
        else:  # with the replicas that a reassignment adds, enough may be in sync
            see = "underReplicated" if UNDER_REPLICATED in partition_state.problems else "its server.log"
        step = f"broker {preferred} must be in sync before it can lead: see {see}"
    elif status != ACTIVE:
        step = f"broker {preferred} must serve before it can lead: it is {status}"
    else:
        return PartitionObservation(evidence)
    return PartitionObservation(evidence, NextStep(step))


def _moving(partition_state: PartitionState) -> str:
    value = partition_state.partition
    return f"adding {ids(value.adding_replicas)}, removing {ids(value.removing_replicas)}, {_replicas(partition_state)}"


def _stuck(state: CheckedState, partition_state: PartitionState) -> str | None:
    """Return why a reassignment will not end by itself; ``None`` if it may."""
    if not is_reported(partition_state.partition.adding_replicas):
        return None
    brokers = state.image["brokers"]
    for node_id in partition_state.partition.adding_replicas:
        if node_id not in brokers:
            return f"broker {node_id} is not registered"
        if brokers[node_id].value.fenced:
            return f"broker {node_id} is fenced"
    since = partition_state.since
    if since > 0 and state.now is not None and state.now - since > STUCK_AFTER:
        return f"no change for {(state.now - since) / 3600_000:.0f} h"
    return None


@partition_check(
    "stuckReassignment",
    WARNING,
    "a reassignment that does not finish",
    "start the brokers that are being added, or cancel the reassignment",
    problem=REASSIGNING,
)
def stuck_reassignment(state: CheckedState, partition_state: PartitionState) -> PartitionObservation | None:
    """A replica moves to a broker that is unregistered or fenced, or the partition has not changed for an hour."""
    why = _stuck(state, partition_state)
    if why is None:
        return None
    value = partition_state.partition
    if targets := state.placement.missing_targets(value):
        first = f"start {name_brokers(targets)}"
    elif watched := value.adding_replicas or value.isr:
        first = f"see the server.log of {name_brokers(watched)}"
    else:  # no replica is in sync, and none is added
        first = _NEEDS_LEADER.text
    return _or_cancel(state, value, f"{why}; {_moving(partition_state)}", first, f"{first}{_OR_CANCEL}")


@partition_check(
    "reassignment",
    INFO,
    "replicas are being moved",
    (Cure("{0} shows which are moved", ("kafka-reassign-partitions.sh --list",)),),
    problem=REASSIGNING,
)
def reassignment(state: CheckedState, partition_state: PartitionState) -> PartitionObservation | None:
    """A reassignment is in progress, and not stuck."""
    return None if _stuck(state, partition_state) else PartitionObservation(_moving(partition_state))


@partition_check(
    "unregisteredReplica",
    WARNING,
    "a replica is on a broker that is not registered",
    "start the broker with its disks; if it is gone for good, move the replicas to brokers that run",
    problem=UNREGISTERED,
)
def unregistered_replica(state: CheckedState, partition_state: PartitionState) -> PartitionObservation | None:
    """A replica is on an unregistered broker; not checked with -b, as before 4.0 fenced brokers look the same there."""
    if state.is_partial:
        return None
    unregistered = [node_id for node_id in partition_state.partition.replicas if node_id not in state.image["brokers"]]
    evidence = f"broker {ids(unregistered)} is not registered, {_replicas(partition_state)}"
    if OFFLINE in partition_state.problems:
        return _missing(state, partition_state, evidence)
    value = partition_state.partition
    leaving = tuple(replica for replica in unregistered if not _leaves(value, replica))
    if not state.placement.can_replace(value, leaving) and can_cancel(value):
        leaving = tuple(replica for replica in leaving if replica in staying_replicas(value))
    if not leaving:
        return _ending(state, value, evidence)
    return _moving_away(state, value, evidence, leaving, _return_of(state, leaving))


@partition_check(
    "rackViolation",
    WARNING,
    "replicas share racks although there are other racks: the loss of one rack takes several",
    "move replicas to brokers in other racks",
    problem=RACKS,
)
def rack_violation(state: CheckedState, partition_state: PartitionState) -> PartitionObservation | None:
    """The replicas are in fewer racks than they could be."""
    value = partition_state.partition
    racks = [f"{node_id} in {state.image['brokers'][node_id].value.rack}" for node_id in value.replicas]
    evidence = f"replicas {', '.join(racks)}"
    if OFFLINE in partition_state.problems:
        return PartitionObservation(evidence, _NEEDS_LEADER)
    if waits := state.placement.waits_for(value):
        return _once_served(state, value, evidence, waits, "", "move a replica to another rack")
    if state.placement.spread(value, 0) is None:  # the number chooses among brokers: if there are none, for no number
        step = NextStep("no broker that runs is in another rack: start one there, then move a replica to it")
        return PartitionObservation(evidence, step)

    def moves(topic: str, number: int) -> tuple[str, ...]:
        replicas = state.placement.spread(value, number)
        assert replicas is not None
        return (move_command(state.tools, [(topic, number, replicas)]),)

    return PartitionObservation(evidence, moves=moves)


@topic_check(
    "singleReplica",
    WARNING,
    "only one replica: if its broker is lost, the data is lost",
    "add replicas",
)
def single_replica(state: CheckedState, topic_state: TopicState) -> Observation | None:
    """Some partition of the topic has only one replica."""
    if 1 not in topic_state.factors:
        return None
    number = "1 partition" if topic_state.partitions == 1 else f"{topic_state.partitions} partitions"
    evidence = f"{number}, replication factor {ids(sorted(topic_state.factors))}"
    if 1 not in topic_state.factors_with_leader:
        return Observation(topic_state.path, evidence, next_step=_NEEDS_LEADER)
    if len(state.placement.ready) < 2:
        return Observation(topic_state.path, evidence, next_step=NextStep(_NO_ROOM))
    if 1 not in topic_state.factors_served:
        return _widened_later(state, topic_state, evidence)
    return Observation(topic_state.path, evidence, moves=lambda: _widened(state, topic_state))


def _widened_later(state: CheckedState, topic_state: TopicState, evidence: str) -> Observation:
    """Return the observation of single replicas that get no further ones before all their brokers serve."""
    topic, placement = topic_state.topic, state.placement
    stuck = [
        (topic.name, number, value)
        for number, value in topic.scan()
        if isinstance(value, Partition)
        and replication_factor(value) == 1
        and placement.missing_targets(value)
        and can_cancel(value)
    ]
    if not stuck:
        step = (
            "all its brokers must serve first, and a reassignment must end (see stuckReassignment); then add replicas"
        )
        return Observation(topic_state.path, evidence, next_step=NextStep(step))
    targets = sorted({target for _, _, value in stuck for target in placement.missing_targets(value)})
    noun = "reassignment" if len(stuck) == 1 else "reassignments"
    step = f"either start {name_brokers(targets)} or cancel the {noun}; then add replicas"
    return Observation(
        topic_state.path,
        evidence,
        next_step=NextStep(step),
        moves=lambda: tuple(
            cancel_command(state.tools, stuck[start : start + MOST]) for start in range(0, len(stuck), MOST)
        ),
    )


def _widened(state: CheckedState, topic_state: TopicState) -> tuple[str, ...]:
    """Return the commands that give each partition with one replica up to three, for many partitions per command.

    A replica that is added copies from the leader, and the tool knows only brokers that run: partitions without one, or
    on others, are left out.
    """
    topic = topic_state.topic
    moves = [
        (topic.name, number, state.placement.widen(value, _ENOUGH, number))
        for number, value in topic.scan()
        if isinstance(value, Partition)
        and replication_factor(value) == 1
        and value.leader != -1
        and not state.placement.waits_for(value)
    ]
    return tuple(move_command(state.tools, moves[start : start + MOST]) for start in range(0, len(moves), MOST))


_ENOUGH = 3
"""The replication factor at which the loss of one broker still leaves two copies."""
_MIN_ISR = (
    Cure(
        "add replicas, or {0}",
        ("kafka-configs.sh --alter --topic {topic} --add-config {setting}",),
    ),
)


@topic_check(
    "minIsrAboveReplicas",
    WARNING,
    "min.insync.replicas is above the replication factor: it guarantees less than it says",
    _MIN_ISR,
)
def min_isr_above(state: CheckedState, topic_state: TopicState) -> Observation | None:
    """min.insync.replicas is above the replication factor; brokers then use the replication factor instead."""
    if topic_state.min_isr is None or not topic_state.factors or topic_state.min_isr <= min(topic_state.factors):
        return None
    return _at_odds(topic_state)


@topic_check(
    "minIsrEqualsReplicas",
    WARNING,
    "every replica must be in sync: while one broker restarts, acks=all is refused",
    _MIN_ISR,
)
def min_isr_equals(state: CheckedState, topic_state: TopicState) -> Observation | None:
    """min.insync.replicas equals the replication factor; for a single replica there is singleReplica."""
    if (
        topic_state.min_isr is None
        or not topic_state.factors
        or topic_state.min_isr != min(topic_state.factors)
        or topic_state.min_isr == 1
    ):
        return None
    return _at_odds(topic_state)


def _at_odds(topic_state: TopicState) -> Observation:
    factor = ids(sorted(topic_state.factors))
    evidence = f"min.insync.replicas {topic_state.min_isr}, replication factor {factor}"
    setting = f"min.insync.replicas={max(min(topic_state.factors) - 1, 1)}"
    return Observation(topic_state.path, evidence, {"topic": topic_state.topic.name, "setting": setting})
