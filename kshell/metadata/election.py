"""What gives a partition without a leader one: by Kafka's rules for elections, and as the next step of an operator.

The controller (``PartitionChangeBuilder``, ``ReplicationControlManager``) elects among a partition's replicas only.
Without loss it takes a member of the ISR or, when that is empty, of the ELR (KIP-966) which is unfenced, is not in
controlled shutdown, and has the replica's log directory (KIP-858). When both are empty and the feature is on, it takes
the last known leader, whatever records that broker lost in a crash. Any other election is an unclean one: by request,
or from 3.9 on because of ``unclean.leader.election.enable``.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from kshell.metadata.families.cluster import Broker
from kshell.metadata.feature_levels import METADATA_VERSION, version_level
from kshell.metadata.image import Image
from kshell.metadata.partial import is_unreported
from kshell.metadata.partition_state import is_online
from kshell.metadata.partitions import Partition

ELR_FEATURE = "eligible.leader.replicas.version"
UNCLEAN_CONFIG = "unclean.leader.election.enable"
_READS_UNCLEAN_CONFIG = version_level("3.9-IV0") or 0
"""Controllers of earlier releases take the config and never act on it."""
PREFERRED, UNCLEAN = "preferred", "unclean"
ACTIVE, FENCED, STOPPING, UNREGISTERED = "active", "fenced", "in controlled shutdown", "not registered"
NO_DIRECTORY = "without the log directory"


class ElectedLeader(NamedTuple):
    """Whom an election makes the leader; ``is_clean``: with every committed record."""

    id: int
    is_clean: bool


class Leaderless(NamedTuple):
    """A partition that has no leader, or is to lose it, and all that decides who may become it.

    Args:
        partition: Its value.
        statuses: What became of each broker that it names: :data:`ACTIVE` and so on.
        has_elr: Whether ``eligible.leader.replicas.version`` is on.
        elects_unclean: Whether the controller elects uncleanly by itself.
        is_partial: Whether brokers reported the state: they leave out log directories.
    """

    partition: Partition
    statuses: Mapping[int, str]
    has_elr: bool
    elects_unclean: bool = False
    is_partial: bool = False

    @property
    def isr(self) -> tuple[int, ...]:
        """The in-sync replicas; none where the source does not say."""
        return _brokers_of(self.partition.isr)

    @property
    def elr(self) -> tuple[int, ...]:
        """The eligible leader replicas; none where the source does not say."""
        return _brokers_of(self.partition.elr)

    @property
    def source(self) -> str:
        """Which list names the brokers that have every committed record."""
        return "ISR" if self.isr else "ELR"

    @property
    def complete(self) -> tuple[int, ...]:
        """Replicas that may be elected without loss, in the order in which Kafka looks at them."""
        listed = self.isr or self.elr
        return tuple(replica for replica in self.partition.replicas if replica in listed)

    @property
    def departed(self) -> tuple[int, ...]:
        """Members of the ISR or the ELR that are no replicas any more: Kafka never elects them."""
        return tuple(broker for broker in self.isr or self.elr if broker not in self.partition.replicas)

    @property
    def last_leader(self) -> int | None:
        """The last known leader, which the ELR's rules elect when ISR and ELR are empty; ``None``: there is none."""
        last_known = _brokers_of(self.partition.last_known_elr)
        return (
            last_known[0]
            if self.has_elr and len(last_known) == 1 and last_known[0] in self.partition.replicas
            else None
        )

    @property
    def awaited(self) -> tuple[int, ...]:
        """The replicas among which Kafka elects a leader by itself as soon as one is up."""
        if self.complete or self.isr or self.elr or self.last_leader is None:
            return self.complete
        return (self.last_leader,)

    @property
    def is_alone(self) -> bool:
        """Whether there is one replica only."""
        return len(self.partition.replicas) == 1

    @property
    def awaits_last_leader(self) -> bool:
        """Whether Kafka elects the last known leader by itself as soon as that broker is up."""
        return not self.isr and not self.elr and self.last_leader is not None

    def with_status(self, status: str, brokers: Collection[int]) -> tuple[int, ...]:
        """Those of the brokers that have a status."""
        return tuple(broker for broker in brokers if self.statuses.get(broker, UNREGISTERED) == status)

    def elect(self, kind: str) -> ElectedLeader | None:
        """Whom an election of that kind makes the leader now; ``None``: it fails."""
        ready = self.with_status(ACTIVE, self.partition.replicas)
        clean = next((replica for replica in ready if replica in self.complete), None)
        if clean is not None:
            return ElectedLeader(clean, True)
        if self.awaits_last_leader and self.last_leader in ready:
            return ElectedLeader(self.last_leader, False)
        return ElectedLeader(ready[0], False) if kind == UNCLEAN and ready else None


def statuses(partition: Partition, broker_of: Callable[[int], Broker | None]) -> dict[int, str]:
    """Broker id -> what became of it, for every broker that a partition names."""
    directories = partition.directories
    places = {} if is_unreported(directories) else dict(zip(partition.replicas, directories, strict=True))
    lists = (partition.replicas, partition.isr, partition.elr, partition.last_known_elr)
    named = {broker for brokers in lists for broker in _brokers_of(brokers)}
    return {broker: _status(broker_of(broker), places.get(broker)) for broker in named if broker >= 0}


def _status(broker: Broker | None, place: Any) -> str:
    if broker is None:
        return UNREGISTERED
    if broker.fenced is True:
        return FENCED
    if broker.in_controlled_shutdown is True:
        return STOPPING
    is_stored = place is None or is_unreported(broker.directories) or is_online(place, broker.directories)
    return ACTIVE if is_stored else NO_DIRECTORY


def _brokers_of(brokers: tuple[int, ...] | str) -> tuple[int, ...]:
    """A list of brokers; an empty one where the source does not report it."""
    return () if isinstance(brokers, str) else brokers


def leaderless(
    image: Image, topic: str, partition: Partition, *, controller: int | None = None, is_partial: bool = False
) -> Leaderless:
    """A partition of an image, with all that decides who may lead it.

    Args:
        image: The state that it is part of.
        topic: The name of its topic.
        partition: Its value.
        controller: The active controller, whose own configs count; ``None``: not known.
        is_partial: Whether brokers reported the image.
    """
    brokers = image["brokers"]

    def registration(broker: int) -> Broker | None:
        entry = brokers.get(broker)
        return None if entry is None else entry.value

    return Leaderless(
        partition,
        statuses(partition, registration),
        has_elr=_has_elr(image),
        elects_unclean=is_unclean_enabled(image, topic, controller) and _reads_unclean_config(image),
        is_partial=is_partial,
    )


def is_unclean_enabled(image: Image, topic: str, controller: int | None = None) -> bool:
    """``unclean.leader.election.enable`` of a topic: its own, the active controller's, then all nodes' value.

    What only a ``server.properties`` says is not in the log and counts as Kafka's default, ``false``.
    """
    for resource in (("TOPIC", topic), ("BROKER", str(controller)), ("BROKER", "")):
        entry = image["configs"].get(resource, {}).get(UNCLEAN_CONFIG)
        if entry is not None:
            return str(entry.value).strip().lower() == "true"
    return False


def _has_elr(image: Image) -> bool:
    return _level(image, ELR_FEATURE) > 0


def _level(image: Image, feature: str) -> int:
    entry = image["features"].get(feature)
    return entry.value if entry is not None and isinstance(entry.value, int) else 0


def _reads_unclean_config(image: Image) -> bool:
    """Whether the controllers' software is 3.9 or later, by what is finalized and what nodes support."""
    supported = [_level(image, METADATA_VERSION)]
    for table in ("brokers", "controllers"):
        for entry in image[table].values():
            features = entry.value.supported_features
            if not isinstance(features, str):
                supported.append(features.get(METADATA_VERSION, {}).get("max", 0))
    return max(supported) >= _READS_UNCLEAN_CONFIG


# --- the next step ---------------------------------------------------------------------------------------------------


def election_command(kind: str, topic: str, partition: int) -> str:
    """``kafka-leader-election.sh`` for one partition, with names quoted for a shell."""
    return (
        f'kafka-leader-election.sh --bootstrap-server "$BOOTSTRAP_SERVER" --election-type {kind}'
        f" --topic {shlex.quote(topic)} --partition {partition}"
    )


class Steps(NamedTuple):
    """What to do about a partition without a leader, and what is left when the brokers of ``first`` never come back."""

    first: str
    last_resort: str | None = None
    if_never: str = ""
    """When ``last_resort`` is due, and what it costs."""


def steps(case: Leaderless, topic: str, number: int) -> Steps:
    """The step that loses nothing, or least, and the one after it.

    Args:
        case: The partition.
        topic: The name of its topic.
        number: The partition's number.
    """
    if (chosen := case.elect(PREFERRED)) is not None:
        return Steps(_elected_now(case, chosen, topic, number))
    awaited = case.awaited
    if not awaited:
        return Steps(f"{_no_candidate(case)}: {_unclean_steps(case, topic, number)}")
    pronoun, verb = ("it", "comes") if len(awaited) == 1 else ("they", "come")
    without_awaited = case._replace(statuses={**case.statuses, **dict.fromkeys(awaited, UNREGISTERED)})
    return Steps(
        "; ".join([*_guard(case, topic), *_revival(case)]),
        _unclean_steps(without_awaited, topic, number),
        f"only if {pronoun} never {verb} back, with the loss of records that only {pronoun} had",
    )


def _elected_now(case: Leaderless, chosen: ElectedLeader, topic: str, number: int) -> str:
    command = election_command(PREFERRED, topic, number)
    about = f"is in the {case.source}" if chosen.is_clean else "was the last leader"
    loss = "" if chosen.is_clean else "; what it lost if it crashed stays lost"
    step = f"broker {chosen.id} runs and {about}; have it elected: {command}{loss}"
    if case.is_partial:
        step += (
            "; if Kafka refuses, the log directory of its replica is offline (kafka-log-dirs.sh --bootstrap-server"
            f' "$BOOTSTRAP_SERVER" --describe --broker-list {chosen.id}, or its server.log)'
        )
    return step


def _revival(case: Leaderless) -> list[str]:
    """How to bring back each broker that Kafka would elect by itself, and what then happens."""
    revivals = []
    unregistered = "" if case.is_partial else ", which {are} not registered,"
    for status, step in (
        (FENCED, "start {brokers} (if the process runs, its server.log says why it is fenced)"),
        (UNREGISTERED, f"start {{brokers}}{unregistered} with the same log directories"),
        (STOPPING, "{brokers} {are} in controlled shutdown: start again when the process has ended"),
        (
            NO_DIRECTORY,
            "{brokers} {run}, but the log directory of the replica is offline: repair the disk (server.log names it)"
            " and restart the broker",
        ),
    ):
        brokers = case.with_status(status, case.awaited)
        if brokers:
            are, run = _verb(brokers, "is", "are"), _verb(brokers, "runs", "run")
            revivals.append(step.format(brokers=_brokers(brokers), are=are, run=run))
    revivals[-1] += f": {_promise(case)}"
    return revivals


def _promise(case: Leaderless) -> str:
    """What Kafka does when the brokers that are awaited have come back.

    With the ELR's feature a broker that crashed, or was unregistered, leaves the ISR and the ELR when it registers: it
    cannot show that its disk has everything (``ReplicationControlManager.handleBrokerShutdown``).
    """
    several = len(case.awaited) > 1
    if not case.complete:
        return "it was the last leader, and Kafka elects it by itself; what it lost if it crashed stays lost"
    clean = "they are in the {}, and Kafka elects the first that is back" if several else "it is in the {}, and leads"
    clean = f"{clean.format(case.source)} without loss"
    if not case.has_elr:
        return clean
    unregistered = case.with_status(UNREGISTERED, case.complete)
    if unregistered == case.complete and not case.is_partial:
        leave = "they leave" if several else "it leaves"
        return (
            f"{leave} the {case.source} when {'they register' if several else 'it registers'}, and then {_after(case)}"
        )
    suspects = (
        "a broker that crashed or was unregistered leaves it" if unregistered else "a broker that crashed leaves it"
    )
    then = "when all have," if several else "then"
    return f"{clean} after an orderly shutdown ({suspects} when it starts; {then} {_after(case)})"


def _after(case: Leaderless) -> str:
    """What happens when every replica of the ISR and the ELR has left it."""
    if case.departed:
        names = "is no replica" if len(case.departed) == 1 else "are no replicas"
        blocker = f"{_brokers(case.departed)} of the {case.source}, which {names}"
        keeps = "keeps" if len(case.departed) == 1 else "keep"
        return f"only an unclean election is left, for {blocker}, {keeps} Kafka from electing the last leader"
    if case.last_leader is None or case.isr:
        return "only an unclean election is left"
    pronoun = "it" if case.complete == (case.last_leader,) else f"broker {case.last_leader}"
    return f"Kafka elects {pronoun} as the last leader, without what it lost if it crashed"


def _guard(case: Leaderless, topic: str) -> list[str]:
    """What comes before anything else where the controller does not wait for the brokers that have the records."""
    if not case.elects_unclean or set(case.partition.replicas) <= set(case.awaited):
        return []
    chosen = case.elect(UNCLEAN)
    who = f"broker {chosen.id} soon" if chosen else "whichever other replica is up first"
    return [
        f"{UNCLEAN_CONFIG} is true, so Kafka elects {who}, with loss; to prevent that: kafka-configs.sh"
        f' --bootstrap-server "$BOOTSTRAP_SERVER" --alter --topic {shlex.quote(topic)} --add-config'
        f" {UNCLEAN_CONFIG}=false"
    ]


def _no_candidate(case: Leaderless) -> str:
    """Why no replica can be elected without loss, whatever is started."""
    reason = "no replica is known to have all records"
    if not case.departed:
        return reason
    be = "is in the {} but no replica" if len(case.departed) == 1 else "are in the {} but no replicas"
    departed = f"{_brokers(case.departed)} {be.format(case.source)} any more"
    return f"{reason} ({departed}: Kafka elects among replicas only)"


def _unclean_steps(case: Leaderless, topic: str, number: int) -> str:
    """How to have some replica elected, with the loss of what only others had."""
    command = election_command(UNCLEAN, topic, number)
    if (chosen := case.elect(UNCLEAN)) is not None:
        loss = "records that only others had are lost"
        step = f"an unclean election makes {_described(case, chosen.id)} the leader, and {loss}: {command}"
        return f"{step} ({UNCLEAN_CONFIG} is true: Kafka soon does so by itself)" if case.elects_unclean else step
    registered = [replica for replica in case.partition.replicas if case.statuses.get(replica) != UNREGISTERED]
    blocked = case.with_status(NO_DIRECTORY, registered)
    stopped = [replica for replica in registered if replica not in blocked]
    revivals = [f"start {_brokers(stopped, 'or')}"] if stopped else []
    if blocked:
        revivals.append(f"repair the replica's log directory of {_brokers(blocked, 'or')} and restart the broker")
    if revivals:
        loss = "with the loss of records that only others had"
        return f"no replica runs: {', or '.join(revivals)}, then have it elected uncleanly, {loss}: {command}"
    empty = (
        'kafka-reassign-partitions.sh --bootstrap-server "$BOOTSTRAP_SERVER" --reassignment-json-file FILE --execute'
        f" with a broker that runs, then {command} makes that one lead, empty"
    )
    if case.is_alone:
        return f"no other replica exists, so all its records are lost: {empty}"
    return (
        "no other replica is registered: start its broker with its log directories; where all are lost for ever, so"
        f" are the records: {empty}"
    )


def _described(case: Leaderless, broker: int) -> str:
    """A broker; a replica that a reassignment adds has not caught up, for the partition has no leader."""
    is_new = broker in _brokers_of(case.partition.adding_replicas)
    return f"broker {broker} (which a reassignment adds: it may be empty)" if is_new else f"broker {broker}"


def _brokers(brokers: Sequence[int], last: str = "and") -> str:
    numbers = [str(broker) for broker in brokers]
    return f"broker {numbers[0]}" if len(numbers) == 1 else f"brokers {', '.join(numbers[:-1])} {last} {numbers[-1]}"


def _verb(brokers: Sequence[int], single: str, several: str) -> str:
    return single if len(brokers) == 1 else several
