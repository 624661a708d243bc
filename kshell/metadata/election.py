"""How a partition without a leader gets one: by Kafka's rules for elections, and by what an operator should do next.

:func:`leaderless` collects all that matters about a partition of an image; :meth:`ElectionCase.elect` says whom Kafka
would elect, and :func:`steps` what to do.

The controller (``PartitionChangeBuilder``, ``ReplicationControlManager``) elects among a partition's replicas only.
Without loss it takes a member of the ISR or, when that is empty, of the ELR (KIP-966) which is unfenced, is not in
controlled shutdown, and has the replica's log directory (KIP-858). When both are empty and the feature is on, it takes
the last known leader, whatever records that broker lost in a crash. Any other election is an unclean one: by request,
or from 3.9 on because of ``unclean.leader.election.enable``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kshell.metadata.families.cluster import Broker
from kshell.metadata.feature_levels import METADATA_VERSION, version_level
from kshell.metadata.image import Image
from kshell.metadata.kafka_tools import KafkaTools, move_command
from kshell.metadata.next_steps import NextStep
from kshell.metadata.partial import is_unreported, reported_ids
from kshell.metadata.partition_state import is_online
from kshell.metadata.partitions import Partition
from kshell.metadata.values import Entry

if TYPE_CHECKING:
    from kshell.protocol.primitives import Uuid

ELR_FEATURE = "eligible.leader.replicas.version"
UNCLEAN_CONFIG = "unclean.leader.election.enable"
_READS_UNCLEAN_CONFIG = version_level("3.9-IV0") or 0
"""The first metadata.version of the releases whose controllers act on the config: earlier ones accept and ignore it."""
PREFERRED, UNCLEAN = "preferred", "unclean"
ACTIVE, FENCED, STOPPING, UNREGISTERED = "active", "fenced", "in controlled shutdown", "not registered"
NO_DIRECTORY = "without the log directory"


class ElectedLeader(NamedTuple):
    """The broker that an election makes the leader; ``is_clean``: it has every committed record."""

    id: int
    is_clean: bool


class ElectionCase(NamedTuple):
    """A partition that has no leader, or is about to lose it, and all that decides which broker may become the leader.

    Args:
        partition: The partition.
        statuses: The status of each broker that the partition names: :data:`ACTIVE` and so on.
        has_elr: Whether ``eligible.leader.replicas.version`` is on.
        elects_unclean: Whether the controller holds unclean elections by itself.
        is_partial: Whether brokers reported the state: they leave out log directories.
        registered: All brokers of the cluster: one could take over a partition without any replica left.
    """

    partition: Partition
    statuses: Mapping[int, str]
    has_elr: bool
    elects_unclean: bool = False
    is_partial: bool = False
    registered: Mapping[int, Entry[Broker]] = {}

    @property
    def isr(self) -> tuple[int, ...]:
        """The in-sync replicas; empty where the source does not report them."""
        return reported_ids(self.partition.isr)

    @property
    def elr(self) -> tuple[int, ...]:
        """The eligible leader replicas; empty where the source does not report them."""
        return reported_ids(self.partition.elr)

    @property
    def source(self) -> str:
        """The name of the list whose brokers have every committed record: ``ISR``, or ``ELR`` if the ISR is empty."""
        return "ISR" if self.isr else "ELR"

    @property
    def complete(self) -> tuple[int, ...]:
        """The replicas that have every committed record, in the order in which Kafka would elect them."""
        listed = self.isr or self.elr
        return tuple(replica for replica in self.partition.replicas if replica in listed)

    @property
    def departed(self) -> tuple[int, ...]:
        """The members of the ISR or the ELR that are no longer replicas: Kafka never elects them."""
        return tuple(broker for broker in self.isr or self.elr if broker not in self.partition.replicas)

    @property
    def last_leader(self) -> int | None:
        """The last known leader, which is elected when ISR and ELR are empty; ``None`` without one, or without ELR."""
        last_known = reported_ids(self.partition.last_known_elr)
        return (
            last_known[0]
            if self.has_elr and len(last_known) == 1 and last_known[0] in self.partition.replicas
            else None
        )

    @property
    def awaited(self) -> tuple[int, ...]:
        """The replicas from which Kafka elects one by itself as soon as it is active."""
        if self.complete or self.isr or self.elr or self.last_leader is None:
            return self.complete
        return (self.last_leader,)

    @property
    def is_alone(self) -> bool:
        """Whether the partition has only one replica."""
        return len(self.partition.replicas) == 1

    @property
    def awaits_last_leader(self) -> bool:
        """Whether Kafka elects the last known leader by itself as soon as that broker is up."""
        return not self.isr and not self.elr and self.last_leader is not None

    def with_status(self, status: str, brokers: Collection[int]) -> tuple[int, ...]:
        """Return those of ``brokers`` that have the status."""
        return tuple(broker for broker in brokers if self.statuses.get(broker, UNREGISTERED) == status)

    def elect(self, kind: str) -> ElectedLeader | None:
        """Return the leader that an election of a kind would make now; ``None`` if the election would fail."""
        ready = self.with_status(ACTIVE, self.partition.replicas)
        clean = next((replica for replica in ready if replica in self.complete), None)
        if clean is not None:
            return ElectedLeader(clean, True)
        if self.awaits_last_leader and self.last_leader in ready:
            return ElectedLeader(self.last_leader, False)
        return ElectedLeader(ready[0], False) if kind == UNCLEAN and ready else None


def statuses(partition: Partition, broker_of: Callable[[int], Broker | None]) -> dict[int, str]:
    """Return broker id -> status, for every broker that a partition names; ``broker_of`` returns its registration."""
    directories = partition.directories
    places = {} if is_unreported(directories) else dict(zip(partition.replicas, directories, strict=True))
    lists = (partition.replicas, partition.isr, partition.elr, partition.last_known_elr)
    named = {broker for brokers in lists for broker in reported_ids(brokers)}
    return {broker: status_of(broker_of(broker), places.get(broker)) for broker in named if broker >= 0}


def status_of(broker: Broker | None, place: Uuid | None = None) -> str:
    """Return a broker's status: :data:`ACTIVE` and so on. ``place`` is a replica's log directory that it must have."""
    if broker is None:
        return UNREGISTERED
    if broker.fenced is True:
        return FENCED
    if broker.in_controlled_shutdown is True:
        return STOPPING
    is_stored = place is None or is_unreported(broker.directories) or is_online(place, broker.directories)
    return ACTIVE if is_stored else NO_DIRECTORY


def leaderless(
    image: Image, topic: str, partition: Partition, *, controller: int | None = None, is_partial: bool = False
) -> ElectionCase:
    """Return a partition with all that decides which broker may lead it.

    Args:
        image: The image that has the partition.
        topic: The name of the partition's topic.
        partition: The partition.
        controller: The id of the active controller, whose own configs apply; ``None``: not known.
        is_partial: Whether brokers reported the image.
    """
    brokers = image["brokers"]

    def registration(broker: int) -> Broker | None:
        entry = brokers.get(broker)
        return None if entry is None else entry.value

    return ElectionCase(
        partition,
        statuses(partition, registration),
        has_elr=_level(image, ELR_FEATURE) > 0,
        elects_unclean=is_unclean_enabled(image, topic, controller) and _reads_unclean_config(image),
        is_partial=is_partial,
        registered=brokers,
    )


def depends_on_controller(image: Image) -> bool:
    """Whether some node has an ``unclean.leader.election.enable`` of its own: it counts if that is the controller."""
    return any(
        kind == "BROKER" and name and UNCLEAN_CONFIG in configs for (kind, name), configs in image["configs"].items()
    )


def is_unclean_enabled(image: Image, topic: str, controller: int | None = None) -> bool:
    """Return ``unclean.leader.election.enable`` of a topic: its own, else the active controller's, else all nodes'.

    A value that is only in a ``server.properties`` is not in the log, so Kafka's default, ``false``, is assumed.
    """
    for resource in (("TOPIC", topic), ("BROKER", str(controller)), ("BROKER", "")):
        entry = image["configs"].get(resource, {}).get(UNCLEAN_CONFIG)
        if entry is not None:
            return str(entry.value).strip().lower() == "true"
    return False


def _level(image: Image, feature: str) -> int:
    entry = image["features"].get(feature)
    return entry.value if entry is not None and isinstance(entry.value, int) else 0


def _reads_unclean_config(image: Image) -> bool:
    """Whether the controllers' release is 3.9 or later, by the features that are finalized or supported."""
    supported = [_level(image, METADATA_VERSION)]
    for table in ("brokers", "controllers"):
        for entry in image[table].values():
            features = entry.value.supported_features
            if not isinstance(features, str):
                supported.append(features.get(METADATA_VERSION, {}).get("max", 0))
    return max(supported) >= _READS_UNCLEAN_CONFIG


# --- the next step ---------------------------------------------------------------------------------------------------


_ELECT = "kafka-leader-election.sh --election-type {kind} --topic {topic} --partition {partition}"
_FORBID = f"kafka-configs.sh --alter --topic {{topic}} --add-config {UNCLEAN_CONFIG}=false"
_DIRECTORIES = "kafka-log-dirs.sh --describe --broker-list {broker}"


class Steps(NamedTuple):
    """What to do about a partition without a leader, and what is left if brokers of ``first`` never come back."""

    first: NextStep
    last_resort: NextStep | None = None
    if_never: str = ""
    """The condition under which to take ``last_resort``, and its cost."""


def steps(case: ElectionCase, topic: str, number: int, tools: KafkaTools) -> Steps:
    """Return the step that loses the fewest records, and the last resort.

    Args:
        case: The partition.
        topic: The name of its topic.
        number: The partition's number.
        tools: Writes the commands.
    """
    elections = _Elections(case, topic, number, tools)
    if (chosen := case.elect(PREFERRED)) is not None:
        return Steps(elections.now(chosen))
    awaited = case.awaited
    if not awaited:
        unclean = elections.unclean()
        first = unclean._replace(text=f"{_no_candidate(case)}; {unclean.text}")
        if not elections.is_unknown:
            return Steps(first)
        return Steps(first, elections.empty("all records are lost"), "only if those log directories are gone")
    pronoun, verb = ("it", "comes") if len(awaited) == 1 else ("they", "come")
    without_awaited = case._replace(statuses={**case.statuses, **dict.fromkeys(awaited, UNREGISTERED)})
    guard = elections.guard()
    step = "; ".join([*([guard.text] if guard.text else []), *_revival(case)])
    return Steps(
        elections.after(NextStep(step, guard.commands)),
        elections._replace(case=without_awaited, given_up=awaited).unclean(),
        f"only if {pronoun} never {verb} back, with the loss of records that only {pronoun} had",
    )


class _Elections(NamedTuple):
    """Writes the steps, with their commands, that make a replica of one partition its leader."""

    case: ElectionCase
    topic: str
    number: int
    tools: KafkaTools
    given_up: tuple[int, ...] = ()
    """Brokers that are assumed never to come back."""

    def now(self, chosen: ElectedLeader) -> NextStep:
        """Return the step that has ``chosen`` elected now: without loss, or as the last known leader."""
        command = self._command(PREFERRED)
        about = f"is in the {self.case.source}" if chosen.is_clean else "was the last leader"
        loss = "" if chosen.is_clean else "; what it lost if it crashed stays lost"
        step = f"broker {chosen.id} runs and {about}; have it elected: {command}{loss}"
        if self.case.is_partial:
            directories = self.tools.fill(_DIRECTORIES, {"broker": chosen.id})
            step += (
                f"; if Kafka refuses, the log directory of its replica is offline ({directories}, or its server.log)"
            )
        return NextStep(step, (command,))

    def guard(self) -> NextStep:
        """Return the step that forbids the controller an unclean election of its own; empty if none could come."""
        case = self.case
        if not case.elects_unclean or set(case.partition.replicas) <= set(case.awaited):
            return NextStep("")
        chosen = case.elect(UNCLEAN)
        who = f"broker {chosen.id} soon" if chosen else "whichever other replica is up first"
        command = self.tools.fill(_FORBID, {"topic": self.topic})
        step = f"{UNCLEAN_CONFIG} is true, so Kafka elects {who}, with loss; to prevent that: {command}"
        return NextStep(step, (command,))

    def after(self, step: NextStep) -> NextStep:
        """Return ``step`` with the unclean election added that it still needs, if Kafka elects nobody by itself then.

        An unclean election takes the first active replica. Where a replica without all records might be the first, the
        command is left out.
        """
        case = self.case
        is_by_itself = _then_elects_last_leader(case) or case.elects_unclean
        if not _all_leave(case) or is_by_itself or set(case.partition.replicas) != set(case.awaited):
            return step
        command = self._command(UNCLEAN)
        return NextStep(f"{step.text}; the unclean election: {command}", (*step.commands, command))

    def unclean(self) -> NextStep:
        """Return the step that has any replica elected, with the loss of records that only other replicas had."""
        case, command = self.case, self._command(UNCLEAN)
        if (chosen := case.elect(UNCLEAN)) is not None:
            loss = "records that only others had are lost"
            step = f"an unclean election makes {_described(case, chosen.id)} the leader, and {loss}: {command}"
            step += f" ({UNCLEAN_CONFIG} is true: Kafka soon does so by itself)" if case.elects_unclean else ""
            return NextStep(step, (command,))
        revivals = self._revivals()
        if not revivals:
            return self.empty("no other replica exists, so all its records are lost")
        who = "no other replica runs" if self.given_up else "no replica runs"
        loss = "" if case.is_alone and not case.departed else ", with the loss of records that only others had"
        end = "; if these are lost, too, so are all records" if self.given_up and self.is_unknown else ""
        step = f"{who}: {', or '.join(revivals)}, then have it elected uncleanly{loss}: {command}{end}"
        return NextStep(step, (command,))

    @property
    def is_unknown(self) -> bool:
        """Whether none of the replicas' brokers is registered."""
        replicas = self.case.partition.replicas
        return len(self.case.with_status(UNREGISTERED, replicas)) == len(replicas)

    def _revivals(self) -> list[str]:
        """Return alternative ways to get a replica active, leaving out brokers that are given up."""
        case = self.case
        replicas = [broker for broker in case.partition.replicas if broker not in self.given_up]
        unregistered = case.with_status(UNREGISTERED, replicas)
        blocked = case.with_status(NO_DIRECTORY, replicas)
        stopping = case.with_status(STOPPING, replicas)
        stopped = [broker for broker in replicas if broker not in (*unregistered, *blocked, *stopping)]
        revivals = [f"start {name_brokers(stopped, 'or')}"] if stopped else []
        if stopping:
            brokers, are = name_brokers(stopping, "or"), _verb(stopping, "it is", "they are")
            revivals.append(f"start {brokers} again when the process has ended ({are} in controlled shutdown)")
        if blocked:
            brokers = name_brokers(blocked, "or")
            revivals.append(f"repair the replica's log directory of {brokers} and restart the broker")
        if unregistered:
            brokers, are = name_brokers(unregistered, "or"), _verb(unregistered, "is", "are")
            revivals.append(_register_again(case).format(brokers=brokers, are=are))
        return revivals

    def empty(self, reason: str) -> NextStep:
        """Return the step that replaces all replicas by an active broker, which then leads an empty partition."""
        registered = sorted(self.case.registered.items())
        running = [number for number, entry in registered if status_of(entry.value) == ACTIVE]
        ready = [number for number in running if number not in self.case.partition.replicas]
        if not ready:
            return NextStep(f"{reason}; no broker runs that could lead it, empty: start one more broker")
        place, elect = move_command(self.tools, [(self.topic, self.number, ready[:1])]), self._command(UNCLEAN)
        return NextStep(f"{reason}: {place} and then {elect} makes broker {ready[0]} lead, empty", (place, elect))

    def _command(self, kind: str) -> str:
        return self.tools.fill(_ELECT, {"kind": kind, "topic": self.topic, "partition": self.number})


def _revival(case: ElectionCase) -> list[str]:
    """Return how to bring back each broker that Kafka would elect by itself; the last text says what happens then."""
    revivals = []
    for status, step in (
        (FENCED, "start {brokers} (if the process runs, its server.log says why it is fenced)"),
        (UNREGISTERED, _register_again(case)),
        (STOPPING, "{brokers} {are} in controlled shutdown: start {them} again when the process has ended"),
        (
            NO_DIRECTORY,
            "{brokers} {run}, but the log directory of the replica is offline: repair the disk (server.log names it)"
            " and restart the broker",
        ),
    ):
        brokers = case.with_status(status, case.awaited)
        if brokers:
            are, run, them = (_verb(brokers, *forms) for forms in (("is", "are"), ("runs", "run"), ("it", "them")))
            revivals.append(step.format(brokers=name_brokers(brokers), are=are, run=run, them=them))
    revivals[-1] += f": {_promise(case)}"
    return revivals


def _register_again(case: ElectionCase) -> str:
    """Return a template: how to bring back unregistered brokers (in a partial image also fenced ones)."""
    condition = "" if case.is_partial else ", which {are} not registered,"
    return f"start {{brokers}}{condition} with the same log directories"


def _promise(case: ElectionCase) -> str:
    """Return what Kafka does when the awaited brokers have come back.

    With the ELR's feature on, a broker that crashed, or was unregistered, leaves the ISR and the ELR when it registers:
    its disk may have lost records (``ReplicationControlManager.handleBrokerShutdown``).
    """
    several = len(case.awaited) > 1
    if not case.complete:
        return "it was the last leader, and Kafka elects it by itself; what it lost if it crashed stays lost"
    clean = "they are in the {}, and Kafka elects the first that is back" if several else "it is in the {}, and leads"
    clean = f"{clean.format(case.source)} without loss"
    if not case.has_elr:
        return clean
    unregistered = case.with_status(UNREGISTERED, case.complete)
    if _all_leave(case):
        leave = "they leave" if several else "it leaves"
        return (
            f"{leave} the {case.source} when {'they register' if several else 'it registers'}, and then {_after(case)}"
        )
    suspects = "a broker that crashed or was unregistered" if unregistered else "a broker that crashed"
    then = "when all have," if several else "then"
    return (
        f"{clean} after an orderly shutdown ({suspects} leaves the {case.source} when it starts; {then} {_after(case)})"
    )


def _all_leave(case: ElectionCase) -> bool:
    """Whether all replicas with every committed record are known to leave the ISR or the ELR when they come back."""
    is_known = case.has_elr and not case.is_partial
    return is_known and bool(case.complete) and case.with_status(UNREGISTERED, case.complete) == case.complete


def _then_elects_last_leader(case: ElectionCase) -> bool:
    """Whether Kafka elects the last leader by itself when every replica has left the ISR and the ELR."""
    return not case.departed and case.last_leader is not None and not case.isr


def _after(case: ElectionCase) -> str:
    """Return what happens when every replica of the ISR and the ELR has left them."""
    if case.departed:
        are = _verb(case.departed, "is no replica", "are no replicas")
        stay = f"{name_brokers(case.departed)}, which {are} any more, {_verb(case.departed, 'stays', 'stay')} in it"
        rule = f"Kafka elects a last leader only where the {case.source} is empty"
        return f"only an unclean election is left: {rule}, and {stay}"
    if not _then_elects_last_leader(case):
        return "only an unclean election is left"
    pronoun = "it" if case.complete == (case.last_leader,) else f"broker {case.last_leader}"
    return f"Kafka elects {pronoun} as the last leader, without what it lost if it crashed"


def _no_candidate(case: ElectionCase) -> str:
    """Return why no replica can be elected without loss, whichever brokers are started."""
    reason = "no replica is known to have all records"
    if not case.departed:
        return reason
    be = "is in the {} but no replica" if len(case.departed) == 1 else "are in the {} but no replicas"
    departed = f"{name_brokers(case.departed)} {be.format(case.source)} any more"
    return f"{reason} ({departed}: Kafka elects among replicas only)"


def _described(case: ElectionCase, broker: int) -> str:
    """Return a broker's name, with a warning if a reassignment adds it: it cannot have caught up without a leader."""
    is_new = broker in reported_ids(case.partition.adding_replicas)
    return f"broker {broker} (which a reassignment adds: it may be empty)" if is_new else f"broker {broker}"


def name_brokers(numbers: Sequence[int], last: str = "and") -> str:
    """Name brokers in a sentence: ``broker 1``, ``brokers 1, 2 and 3``; ``last`` is the word before the last one."""
    texts = [str(number) for number in numbers]
    return f"broker {texts[0]}" if len(texts) == 1 else f"brokers {', '.join(texts[:-1])} {last} {texts[-1]}"


def _verb(brokers: Sequence[int], single: str, several: str) -> str:
    return single if len(brokers) == 1 else several
