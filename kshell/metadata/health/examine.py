"""Runs all health checks on one state, in one pass over its topics and partitions."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import NamedTuple

from kshell.metadata.families.topics import TOPICS
from kshell.metadata.health.check import (
    IN_ELR,
    LOST_DIRECTORY,
    RACKS,
    UNREGISTERED,
    Check,
    CheckedState,
    CheckFindings,
    Finding,
    ObservedValue,
    OfPartition,
    PartitionState,
    TopicState,
    checks,
    finding,
    is_reported,
    of_kind,
)
from kshell.metadata.partition_state import (
    AT_MIN_ISR,
    MIGRATING,
    OFFLINE,
    REASSIGNING,
    UNASSIGNED,
    Verdicts,
    effective_min_isr,
    is_online,
    problems,
    replication_factor,
)
from kshell.metadata.partitions import Partition, Topic
from kshell.metadata.reassignment import Placement

_EVERY = 100
"""Topics between two reports of progress."""


class Health(NamedTuple):
    """The findings of each check that has any, the worst first, and how much was examined."""

    by_check: list[CheckFindings]
    topics: int
    partitions: int
    counts: Counter[str]
    """Problem -> number of partitions with it."""

    @property
    def findings(self) -> Iterator[Finding]:
        """All findings, the worst first."""
        return chain.from_iterable(self.by_check)


def examine(state: CheckedState, progress: Callable[[int, int, str], None] | None = None) -> Health:
    """Run every check on the state. ``progress`` gets a text every hundred topics: large clusters take seconds."""
    all_checks = checks()
    state = state._replace(placement=Placement(state.image))
    by_check = {health_check.name: CheckFindings(health_check) for health_check in all_checks}
    walk = _Walk(state, by_check, all_checks)
    topics = sorted(state.image[TOPICS].values(), key=lambda topic: topic.name)
    for number, topic in enumerate(topics):
        if progress is not None and not number % _EVERY:
            progress(0, 0, f"looking at topics: {number} of {len(topics)}")
        walk.topic(topic)
    state = state._replace(holding=frozenset(walk.holding), is_moving=walk.is_moving)
    for declared_check, find in of_kind(all_checks, "of_state"):
        for observation in find(state):
            by_check[declared_check.name].add(finding(declared_check, observation, state))
    with_findings = [findings for findings in by_check.values() if findings]
    return Health(with_findings, len(state.image[TOPICS]), walk.partitions, walk.counts)


_Observed = tuple[CheckFindings, ObservedValue]
"""The findings of a check, and what to add to them for each partition."""


class _Status(NamedTuple):
    """What the checks of a topic need of a partition: whether it has a leader, and its replicas brokers that run."""

    factor: int
    is_led: bool
    is_served: bool


class _Verdict(NamedTuple):
    """What equal partitions share: their status, and their problems if any."""

    status: _Status
    """One object for all that are equal."""
    problems: _Problems | None


class _Problems(NamedTuple):
    """The problems of equal partitions, and what checks observe in them."""

    counted: tuple[str, ...]
    """Those of the problems that are counted in :attr:`Health.counts`."""
    observed: tuple[_Observed, ...]
    state: PartitionState
    reassignments: dict[int, tuple[_Observed, ...]] | None
    """For partitions that are being reassigned: what is observed in that, by the time of the last change."""


class _Walk:
    """The pass over topics, with their checks and those of partitions. Equal partitions have the same verdict."""

    def __init__(
        self, state: CheckedState, by_check: Mapping[str, CheckFindings], all_checks: tuple[Check, ...]
    ) -> None:
        self.partitions = 0
        self.counts: Counter[str] = Counter()
        self.holding: set[int] = set()
        self.is_moving = False
        self._state = state
        self._by_check = by_check
        self._of_topic = list(of_kind(all_checks, "of_topic"))
        self._of_problem: defaultdict[str, list[tuple[Check, OfPartition]]] = defaultdict(list)
        for health_check, find in of_kind(all_checks, "of_partition"):
            self._of_problem[health_check.problem].append((health_check, find))
        self._verdicts = Verdicts(self._verdict, state.min_isr)
        self._statuses: dict[_Status, _Status] = {}
        self._placed: dict[tuple[int, ...], tuple[str, ...]] = {}
        brokers = {number: entry.value for number, entry in state.image["brokers"].items()}
        self._racks = {number: broker.rack for number, broker in brokers.items()}
        reported = {number: broker.directories for number, broker in brokers.items() if is_reported(broker.directories)}
        self._directories = reported
        # Ids of directories are unique. So if each of a partition's directories is that of some broker, it is almost
        # certainly the right broker.
        self._online = frozenset(
            (MIGRATING, UNASSIGNED, *(directory for listed in reported.values() for directory in listed))
        )

    def topic(self, topic: Topic) -> None:
        """Examine a topic and its partitions."""
        partitions = topic.scan()
        name = topic.name
        verdicts = self._verdicts.of_topic(name)
        statuses: set[_Status] = set()
        last: _Status | None = None
        for number, value in partitions:
            cached = verdicts.get(id(value))
            if cached is None:
                if not isinstance(value, Partition):
                    continue
                cached = self._verdicts.add(name, value)
            status, value_problems = cached[0]
            if status is not last:  # it rarely changes from one partition to the next
                last = status
                statuses.add(status)
            if value_problems is not None:
                self._with_problems(topic, number, value_problems)
        factors = frozenset(status.factor for status in statuses)
        led = frozenset(status.factor for status in statuses if status.is_led)
        served = frozenset(status.factor for status in statuses if status.is_led and status.is_served)
        self.partitions += len(partitions)
        least = self._state.min_isr.of(name)
        topic_state = TopicState(topic, len(partitions), factors, led, served, least)
        for health_check, find in self._of_topic:
            observation = find(self._state, topic_state)
            if observation is not None:
                self._by_check[health_check.name].add(finding(health_check, observation, self._state))

    def _verdict(self, value: Partition, min_isr: int | None) -> _Verdict:
        """Find the problems of a partition, and run the checks that examine such."""
        self.holding.update(value.replicas)
        self.is_moving = self.is_moving or bool(value.adding_replicas or value.removing_replicas)
        factor = replication_factor(value)
        least = effective_min_isr(value, min_isr)
        counted = problems(value, least)
        if AT_MIN_ISR in counted and len(value.isr) >= factor:
            counted.remove(AT_MIN_ISR)  # all replicas are in sync, so none has been lost
        present = [*counted, *self._placement(value.replicas)]
        if value.elr and is_reported(value.elr):
            present.append(IN_ELR)
        lost = self._lost(value)
        if lost:
            present.append(LOST_DIRECTORY)
        status = _Status(factor, OFFLINE not in present, not self._state.placement.waits_for(value))
        status = self._statuses.setdefault(status, status)
        if not present:
            return _Verdict(status, None)
        partition_state = PartitionState(value, tuple(present), least, lost)
        observed = (self._observed(partition_state, problem) for problem in present if problem != REASSIGNING)
        reassignments: dict[int, tuple[_Observed, ...]] | None = {} if REASSIGNING in present else None
        value_problems = _Problems(tuple(counted), tuple(chain.from_iterable(observed)), partition_state, reassignments)
        return _Verdict(status, value_problems)

    def _with_problems(self, topic: Topic, number: int, value_problems: _Problems) -> None:
        """Count the problems of a partition, and add what was observed in its value."""
        counted, observed, partition_state, reassignments = value_problems
        for problem in counted:
            self.counts[problem] += 1
        for findings, observed_value in observed:
            findings.add_partition(topic.name, number, observed_value)
        if reassignments is None:
            return
        entry = topic.partition(number)
        since = -1 if entry is None else entry.origin.timestamp
        if since not in reassignments:
            reassignments[since] = tuple(self._observed(partition_state._replace(since=since), REASSIGNING))
        for findings, observed_value in reassignments[since]:
            findings.add_partition(topic.name, number, observed_value)

    def _observed(self, partition_state: PartitionState, problem: str) -> Iterator[_Observed]:
        """Run the checks of partitions that have the problem, and yield what each observes, if anything."""
        for health_check, find in self._of_problem[problem]:
            observation = find(self._state, partition_state)
            if observation is not None:
                yield self._by_check[health_check.name], ObservedValue(health_check, observation, self._state)

    def _lost(self, value: Partition) -> tuple[int, ...]:
        """Return the brokers that do not have the log directory of their replica."""
        if self._online.issuperset(value.directories) or not is_reported(value.directories):
            return ()
        places = zip(value.replicas, value.directories, strict=True)
        return tuple(broker for broker, place in places if not is_online(place, self._directories.get(broker, ())))

    def _placement(self, replicas: tuple[int, ...]) -> tuple[str, ...]:
        """Return the problems that depend on the replicas alone, cached: :data:`UNREGISTERED` and :data:`RACKS`."""
        cached = self._placed.get(replicas)
        if cached is None:
            cached = self._placed[replicas] = tuple(self._placed_badly(replicas))
        return cached

    def _placed_badly(self, replicas: tuple[int, ...]) -> list[str]:
        violations = [UNREGISTERED] if any(broker not in self._racks for broker in replicas) else []
        racks = [self._racks.get(broker) for broker in replicas]
        there = {rack for rack in self._racks.values() if rack is not None}
        if None not in racks and len(set(racks)) < min(len(replicas), len(there)):
            violations.append(RACKS)
        return violations
