"""All checks on one state, in one pass over its partitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from kshell.metadata.families.topics import TOPICS
from kshell.metadata.health.check import (
    Check,
    Finding,
    Found,
    PartitionState,
    State,
    TopicState,
    checks,
    finding,
    is_told,
    of_kind,
)
from kshell.metadata.partition_state import (
    AT_MIN_ISR,
    MIGRATING,
    UNASSIGNED,
    effective_min_isr,
    is_online,
    problems,
    replication_factor,
)
from kshell.metadata.partitions import Partition, Topic
from kshell.protocol.primitives import Uuid

_EVERY = 100
"""Topics between two words of progress."""


class Health(NamedTuple):
    """Findings, the worst first; how many topics and partitions there are, and how many have which problem."""

    findings: list[Finding]
    topics: int
    partitions: int
    counts: Counter[str]


def examine(state: State, progress: Callable[[int, int, str], None] | None = None) -> Health:
    """Every finding in the state. ``progress`` is told how far it is: a million partitions take seconds."""
    known = checks()
    found: dict[str, list[Finding]] = {one.name: [] for one in known}
    for made, find in of_kind(known, "of_state"):
        found[made.name] += [finding(made, one) for one in find(state)]
    walk = _Walk(state, found, known)
    topics = sorted(state.image[TOPICS].values(), key=lambda one: one.name)
    for number, topic in enumerate(topics):
        if progress is not None and not number % _EVERY:
            progress(0, 0, f"looking at topics: {number} of {len(topics)}")
        walk.topic(topic)
    ranked = [one for made in known for one in found[made.name]]
    return Health(ranked, len(state.image[TOPICS]), walk.partitions, walk.counts)


class _Walk:
    """The pass over topics: what of each partition is looked at depends on its having a problem."""

    def __init__(self, state: State, found: dict[str, list[Finding]], known: tuple[Check, ...]) -> None:
        self.partitions = 0
        self.counts: Counter[str] = Counter()
        self._state = state
        self._found = found
        self._of_topic = list(of_kind(known, "of_topic"))
        self._of_partition = list(of_kind(known, "of_partition"))
        self._placed: dict[tuple[int, ...], tuple[str, ...]] = {}
        brokers = {number: entry.value for number, entry in state.image["brokers"].items()}
        self._racks = {number: broker.rack for number, broker in brokers.items()}
        told = {number: broker.directories for number, broker in brokers.items() if is_told(broker.directories)}
        self._directories = told
        self._lost_of: dict[tuple[tuple[int, ...], tuple[Uuid, ...]], tuple[int, ...]] = {}
        # Ids of directories are unique: that each is some broker's tells of nearly all partitions that they are stored.
        self._online = frozenset((MIGRATING, UNASSIGNED, *(one for listed in told.values() for one in listed)))

    def topic(self, topic: Topic) -> None:
        """Looks at a topic and its partitions."""
        factors = set()
        held = topic.scan()
        for number, value in held:
            if not isinstance(value, Partition):
                continue
            if _is_whole(value):
                factors.add(len(value.replicas))
                if not self._placement(value.replicas) and not self._lost(value):
                    continue
            factors.add(replication_factor(value))
            self._partition(topic, number, value)
        self.partitions += len(held)
        told = TopicState(topic, len(held), frozenset(factors), self._state.min_isr.of(topic.name))
        for made, find in self._of_topic:
            self._add(made, find(self._state, told))

    def _partition(self, topic: Topic, number: int, value: Partition) -> None:
        factor = replication_factor(value)
        leader = value.leader if isinstance(value.leader, int) else None
        least = effective_min_isr(value, self._state.min_isr.of(topic.name, leader))
        found = problems(value, least)
        if AT_MIN_ISR in found and len(value.isr) >= factor:
            found.remove(AT_MIN_ISR)  # as many as there are to be: none has been lost
        self.counts.update(found)
        told = (*found, *self._placement(value.replicas), *(("elr",) if value.elr and is_told(value.elr) else ()))
        lost = self._lost(value)
        if told or lost:
            shown = PartitionState(topic, number, value, told, least, lost)
            for made, find in self._of_partition:
                self._add(made, find(self._state, shown))

    def _lost(self, value: Partition) -> tuple[int, ...]:
        """The brokers whose replica is in a log directory that they do not have."""
        if self._online.issuperset(value.directories) or not is_told(value.directories):
            return ()
        key = value.replicas, value.directories
        known = self._lost_of.get(key)
        if known is None:
            found = (
                one for one, place in zip(*key, strict=True) if not is_online(place, self._directories.get(one, ()))
            )
            known = self._lost_of[key] = tuple(found)
        return known

    def _placement(self, replicas: tuple[int, ...]) -> tuple[str, ...]:
        """What is wrong with where replicas are: the same for all partitions with the same ones."""
        known = self._placed.get(replicas)
        if known is None:
            known = self._placed[replicas] = tuple(self._placed_badly(replicas))
        return known

    def _placed_badly(self, replicas: tuple[int, ...]) -> list[str]:
        found = ["unregistered"] if any(one not in self._racks for one in replicas) else []
        racks = [self._racks.get(one) for one in replicas]
        there = {rack for rack in self._racks.values() if rack is not None}
        if None not in racks and len(set(racks)) < min(len(replicas), len(there)):
            found.append("racks")
        return found

    def _add(self, made: Check, found: Found | None) -> None:
        if found is not None:
            self._found[made.name].append(finding(made, found))


def _is_whole(value: Partition) -> bool:
    """Whether there is nothing to say of the partition but where it is: so it is with nearly all, and that is quick."""
    return (
        len(value.isr) == len(value.replicas) > 0
        and value.leader == value.replicas[0]
        and not (value.adding_replicas or value.removing_replicas or value.elr)
        and value.leader_recovery_state == "RECOVERED"
    )
