"""Runs all health checks on one state, in one pass over its topics and partitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from kshell.metadata.families.topics import TOPICS
from kshell.metadata.health.check import (
    IN_ELR,
    LOST_DIRECTORY,
    RACKS,
    UNREGISTERED,
    Check,
    CheckedState,
    Finding,
    Observation,
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
    """The findings, the worst first; the numbers of topics and partitions; problem -> number of partitions with it."""

    findings: list[Finding]
    topics: int
    partitions: int
    counts: Counter[str]


def examine(state: CheckedState, progress: Callable[[int, int, str], None] | None = None) -> Health:
    """Run every check on the state. ``progress`` gets a text every hundred topics: large clusters take seconds."""
    all_checks = checks()
    state = state._replace(placement=Placement(state.image))
    findings: dict[str, list[Finding]] = {health_check.name: [] for health_check in all_checks}
    walk = _Walk(state, findings, all_checks)
    topics = sorted(state.image[TOPICS].values(), key=lambda topic: topic.name)
    for number, topic in enumerate(topics):
        if progress is not None and not number % _EVERY:
            progress(0, 0, f"looking at topics: {number} of {len(topics)}")
        walk.topic(topic)
    state = state._replace(holding=frozenset(walk.holding), is_moving=walk.is_moving)
    for declared_check, find in of_kind(all_checks, "of_state"):
        findings[declared_check.name] += [finding(declared_check, observation, state) for observation in find(state)]
    ranked = [entry for health_check in all_checks for entry in findings[health_check.name]]
    return Health(ranked, len(state.image[TOPICS]), walk.partitions, walk.counts)


class _Verdict(NamedTuple):
    """The facts that equal partitions share; ``min_isr`` is the effective one."""

    factor_and_led: tuple[int, bool]
    """The replication factor, and whether there is a leader."""
    problems: tuple[str, ...]
    counted: tuple[str, ...]
    """Those of the problems that are counted in :attr:`Health.counts`."""
    min_isr: int | None
    lost: tuple[int, ...]
    checks: tuple[tuple[Check, OfPartition], ...]
    """The checks that examine such a partition, with their functions."""


class _Walk:
    """The pass over topics, with their checks and those of partitions. Equal partitions have the same verdict."""

    def __init__(self, state: CheckedState, findings: dict[str, list[Finding]], all_checks: tuple[Check, ...]) -> None:
        self.partitions = 0
        self.counts: Counter[str] = Counter()
        self.holding: set[int] = set()
        self.is_moving = False
        self._state = state
        self._findings = findings
        self._of_topic = list(of_kind(all_checks, "of_topic"))
        self._of_partition = list(of_kind(all_checks, "of_partition"))
        self._verdicts = Verdicts(self._verdict, state.min_isr)
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
        factors_and_led: set[tuple[int, bool]] = set()
        for number, value in partitions:
            cached = verdicts.get(id(value))
            if cached is None:
                if not isinstance(value, Partition):
                    continue
                cached = self._verdicts.add(name, value)
            verdict = cached[0]
            factors_and_led.add(verdict.factor_and_led)
            if verdict.problems:
                self._partition(topic, number, *cached)
        factors = frozenset(factor for factor, _ in factors_and_led)
        led = frozenset(factor for factor, is_led in factors_and_led if is_led)
        self.partitions += len(partitions)
        least = self._state.min_isr.of(name)
        topic_state = TopicState(topic, len(partitions), factors, led, least)
        for health_check, find in self._of_topic:
            self._add(health_check, find(self._state, topic_state))

    def _verdict(self, value: Partition, min_isr: int | None) -> _Verdict:
        """Find the problems of a partition, and the checks that examine it."""
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
        looking = tuple(
            (health_check, find) for health_check, find in self._of_partition if health_check.problem in present
        )
        return _Verdict((factor, OFFLINE not in present), tuple(present), tuple(counted), least, lost, looking)

    def _partition(self, topic: Topic, number: int, verdict: _Verdict, value: Partition) -> None:
        """Count the problems of a partition, and run the checks that examine it."""
        for problem in verdict.counted:
            self.counts[problem] += 1
        partition_state = PartitionState(topic, number, value, verdict.problems, verdict.min_isr, verdict.lost)
        for health_check, find in verdict.checks:
            self._add(health_check, find(self._state, partition_state))

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

    def _add(self, health_check: Check, observation: Observation | None) -> None:
        if observation is not None:
            self._findings[health_check.name].append(finding(health_check, observation, self._state))
