"""All checks on one state, in one pass over its partitions."""

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
    Finding,
    Found,
    OfPartition,
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
    Verdicts,
    effective_min_isr,
    is_online,
    problems,
    replication_factor,
)
from kshell.metadata.partitions import Partition, Topic

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
    walk = _Walk(state, found, known)
    topics = sorted(state.image[TOPICS].values(), key=lambda one: one.name)
    for number, topic in enumerate(topics):
        if progress is not None and not number % _EVERY:
            progress(0, 0, f"looking at topics: {number} of {len(topics)}")
        walk.topic(topic)
    state = state._replace(holding=frozenset(walk.holding), is_moving=walk.is_moving)
    for made, find in of_kind(known, "of_state"):
        found[made.name] += [finding(made, one) for one in find(state)]
    ranked = [one for made in known for one in found[made.name]]
    return Health(ranked, len(state.image[TOPICS]), walk.partitions, walk.counts)


class _Verdict(NamedTuple):
    """What there is to say of all partitions with one value."""

    factor: int
    problems: tuple[str, ...]
    counted: tuple[str, ...]
    """The problems that health counts."""
    min_isr: int | None
    lost: tuple[int, ...]
    checks: tuple[tuple[Check, OfPartition], ...]
    """Those that look at such a partition."""


class _Walk:
    """The pass over topics. Most partitions have nothing to tell, and all with one value have the same problems."""

    def __init__(self, state: State, found: dict[str, list[Finding]], known: tuple[Check, ...]) -> None:
        self.partitions = 0
        self.counts: Counter[str] = Counter()
        self.holding: set[int] = set()
        self.is_moving = False
        self._state = state
        self._found = found
        self._of_topic = list(of_kind(known, "of_topic"))
        self._of_partition = list(of_kind(known, "of_partition"))
        self._verdicts = Verdicts(self._verdict, state.min_isr)
        self._placed: dict[tuple[int, ...], tuple[str, ...]] = {}
        brokers = {number: entry.value for number, entry in state.image["brokers"].items()}
        self._racks = {number: broker.rack for number, broker in brokers.items()}
        told = {number: broker.directories for number, broker in brokers.items() if is_told(broker.directories)}
        self._directories = told
        # Ids of directories are unique: that each is some broker's tells of nearly all partitions that they are stored.
        self._online = frozenset((MIGRATING, UNASSIGNED, *(one for listed in told.values() for one in listed)))

    def topic(self, topic: Topic) -> None:
        """Looks at a topic and its partitions."""
        factors = set()
        held = topic.scan()
        name = topic.name
        known = self._verdicts.of_topic(name)
        for number, value in held:
            judged = known.get(id(value))
            if judged is None:
                if not isinstance(value, Partition):
                    continue
                judged = self._verdicts.add(name, value)
            verdict = judged[0]
            factors.add(verdict.factor)
            if verdict.problems:
                self._partition(topic, number, *judged)
        self.partitions += len(held)
        told = TopicState(topic, len(held), frozenset(factors), self._state.min_isr.of(name))
        for made, find in self._of_topic:
            self._add(made, find(self._state, told))

    def _verdict(self, value: Partition, min_isr: int | None) -> _Verdict:
        self.holding.update(value.replicas)
        self.is_moving = self.is_moving or bool(value.adding_replicas or value.removing_replicas)
        factor = replication_factor(value)
        least = effective_min_isr(value, min_isr)
        counted = problems(value, least)
        if AT_MIN_ISR in counted and len(value.isr) >= factor:
            counted.remove(AT_MIN_ISR)  # as many as there are to be: none has been lost
        found = [*counted, *self._placement(value.replicas)]
        if value.elr and is_told(value.elr):
            found.append(IN_ELR)
        lost = self._lost(value)
        if lost:
            found.append(LOST_DIRECTORY)
        looking = tuple((made, find) for made, find in self._of_partition if made.problem in found)
        return _Verdict(factor, tuple(found), tuple(counted), least, lost, looking)

    def _partition(self, topic: Topic, number: int, verdict: _Verdict, value: Partition) -> None:
        for problem in verdict.counted:
            self.counts[problem] += 1
        shown = PartitionState(topic, number, value, verdict.problems, verdict.min_isr, verdict.lost)
        for made, find in verdict.checks:
            self._add(made, find(self._state, shown))

    def _lost(self, value: Partition) -> tuple[int, ...]:
        """The brokers whose replica is in a log directory that they do not have."""
        if self._online.issuperset(value.directories) or not is_told(value.directories):
            return ()
        places = zip(value.replicas, value.directories, strict=True)
        return tuple(one for one, place in places if not is_online(place, self._directories.get(one, ())))

    def _placement(self, replicas: tuple[int, ...]) -> tuple[str, ...]:
        """What is wrong with where replicas are: the same for all partitions with the same ones."""
        known = self._placed.get(replicas)
        if known is None:
            known = self._placed[replicas] = tuple(self._placed_badly(replicas))
        return known

    def _placed_badly(self, replicas: tuple[int, ...]) -> list[str]:
        found = [UNREGISTERED] if any(one not in self._racks for one in replicas) else []
        racks = [self._racks.get(one) for one in replicas]
        there = {rack for rack in self._racks.values() if rack is not None}
        if None not in racks and len(set(racks)) < min(len(replicas), len(there)):
            found.append(RACKS)
        return found

    def _add(self, made: Check, found: Found | None) -> None:
        if found is not None:
            self._found[made.name].append(finding(made, found))
