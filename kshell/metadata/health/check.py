"""How a health check is declared, what it gets as input, and what it returns.

A check examines the whole state (:func:`check`), each topic (:func:`topic_check`), or the partitions that have a
certain problem (:func:`partition_check`). So partitions are decoded once, whatever the number of checks; and as a
million partitions have few different values, each value is examined once. The docstring of a check states the
condition that it reports.
"""

from __future__ import annotations

import importlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from kshell.discovery import module_names
from kshell.metadata.feature_update import ClusterFeatures
from kshell.metadata.image import Image
from kshell.metadata.kafka_tools import KafkaTools
from kshell.metadata.names import encode_name
from kshell.metadata.next_steps import Cure, Cures, NextStep, cures_of, fitting_cure, next_step
from kshell.metadata.partition_state import MinIsr
from kshell.metadata.partitions import Partition, Topic
from kshell.metadata.reassignment import Placement

if TYPE_CHECKING:
    from kshell.json_text import JsonObject

CRITICAL, ERROR, WARNING, INFO = "critical", "error", "warning", "info"
LEVELS = (CRITICAL, ERROR, WARNING, INFO)
"""Levels of findings, the worst first."""

IN_ELR, LOST_DIRECTORY, UNREGISTERED, RACKS = "elr", "lost-directory", "unregistered", "racks"
"""Problems of partitions in addition to :data:`kshell.metadata.partition_state.PROBLEMS`: a replica is in the ELR, in a
log directory that its broker does not have, or on a broker that is not registered; replicas share racks needlessly."""


class SnapshotAge(NamedTuple):
    """The timestamps of the newest snapshot (``None``: there is none) and of the log's first and last record.

    They are in epoch milliseconds; ``log_bytes`` is the size of all segments.
    """

    snapshot: int | None
    first: int
    last: int
    log_bytes: int
    is_running: bool = False
    """Whether the leader of a running quorum reported them: that it has no snapshot does not mean that one was lost."""


class SnapshotSlip(NamedTuple):
    """A value in the tree that differs between a snapshot (a file's name) and the log before it, and how it differs."""

    path: str
    snapshot: str
    difference: str


class CheckedState(NamedTuple):
    """The state of a cluster that checks examine. ``now`` is its time in epoch milliseconds, ``None`` if not known."""

    image: Image
    features: ClusterFeatures
    min_isr: MinIsr
    now: int | None = None
    voters: tuple[int, ...] = ()
    voter_directories: Mapping[int, str] = {}
    """Voter -> its directory id, if it is known: only voters of a dynamic quorum have one."""
    quorum: JsonObject | None = None
    """The answer of a live quorum to DescribeQuorum; ``None`` if no quorum was asked, or it did not answer."""
    leaderless: str | None = None
    """The evidence that a live quorum has no leader; ``None``: it has one, or no quorum was asked."""
    snapshots: SnapshotAge | None = None
    """The ages of snapshot and log; ``None`` where the source has no information about files."""
    slips: tuple[SnapshotSlip, ...] = ()
    is_partial: bool = False
    """Whether brokers reported the image: what they leave out may exist nevertheless."""
    holding: frozenset[int] = frozenset()
    """The brokers that have replicas. Set by :func:`.examine` before it runs the checks of the whole state."""
    is_moving: bool = False
    """Whether any partition is being reassigned. Set like ``holding``."""
    tools: KafkaTools = KafkaTools()
    """Writes the commands of next steps, for the release and the addresses of this cluster."""
    placement: Placement = Placement()
    """The brokers to which replicas may be moved. Set by :func:`.examine`."""


class TopicState(NamedTuple):
    """The input of a check of topics: a topic, the number and replication factors of its partitions, its min ISR."""

    topic: Topic
    partitions: int
    factors: frozenset[int]
    """Replication factors that partitions have, not counting replicas that are being added."""
    factors_with_leader: frozenset[int]
    """Replication factors that partitions with a leader have."""
    factors_served: frozenset[int]
    """Replication factors that partitions have which have a leader, and of whose replicas all brokers run."""
    min_isr: int | None

    @property
    def path(self) -> str:
        """The path of the topic's directory in the tree."""
        return topic_path(self.topic.name)


class PartitionState(NamedTuple):
    """The input of a check of partitions: a value with at least one problem, and what equal partitions share with it.

    ``min_isr`` is the effective one.
    """

    partition: Partition
    problems: tuple[str, ...]
    min_isr: int | None
    lost: tuple[int, ...] = ()
    """The brokers that do not have the log directory of their replica."""
    since: int = -1
    """When the partition last changed, in epoch milliseconds; -1: not known, or it is not being reassigned."""


class Observation(NamedTuple):
    """What a check returns for one thing that is wrong: its path in the tree, the facts, and values for the cures."""

    path: str
    evidence: str
    placeholders: Mapping[str, object] = {}
    next_step: NextStep | None = None
    """The next step, where it depends on the state; ``None``: that of the check's cure that fits."""
    moves: Callable[[], tuple[str, ...]] | None = None
    """Returns further commands, which reassign replicas; not part of the sentence, and made only when asked for."""


class PartitionObservation(NamedTuple):
    """What a check returns for a value of partitions: the facts, which are the same for each partition with that value.

    Next step and commands may name the partition: functions get (topic, partition number). The cures of the check have
    ``{topic}`` and ``{partition}``.
    """

    evidence: str
    next_step: NextStep | Callable[[str, int], NextStep | None] | None = None
    """The next step, where it depends on the state; ``None``: that of the check's cure that fits."""
    moves: Callable[[str, int], tuple[str, ...]] | None = None
    """As :attr:`Observation.moves`."""


OfState = Callable[[CheckedState], Iterable[Observation]]
OfTopic = Callable[[CheckedState, TopicState], Observation | None]
OfPartition = Callable[[CheckedState, PartitionState], PartitionObservation | None]
_Find = TypeVar("_Find", bound=Callable[..., object])


class Check(NamedTuple):
    """A declared check: the name and level of its findings, what they mean, the cures, and one of three functions."""

    name: str
    level: str
    about: str
    cures: tuple[Cure, ...]
    of_state: OfState | None = None
    of_topic: OfTopic | None = None
    of_partition: OfPartition | None = None
    problem: str = ""
    """The problem of the partitions that ``of_partition`` is called for."""


class Finding:
    """An observation with its check. Sentence and commands are made when asked for: there may be 100,000 findings.

    Args:
        check: The check.
        path: The path in the tree of what the finding is about.
        evidence: The facts.
        make_step: Returns the next step.
        moves: As :attr:`Observation.moves`.
    """

    def __init__(
        self,
        check: Check,
        path: str,
        evidence: str,
        make_step: Callable[[], NextStep],
        moves: Callable[[], tuple[str, ...]] | None = None,
    ) -> None:
        self.check = check
        self.path = path
        self.evidence = evidence
        self.moves = moves
        self._make_step = make_step

    @cached_property
    def _step(self) -> NextStep:
        return self._make_step()

    @property
    def next_step(self) -> str:
        """What to do about the finding, as a sentence."""
        return self._step.text

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands of the next step, in order, followed by those that reassign replicas."""
        return (*self._step.commands, *(self.moves() if self.moves is not None else ()))


class ObservedValue:
    """What a check observed in a value of partitions: makes the finding of each partition that has the value."""

    def __init__(self, health_check: Check, observation: PartitionObservation, state: CheckedState) -> None:
        self._check = health_check
        self._evidence, self._next_step, self._moves = observation
        self._state = state
        self.has_moves = observation.moves is not None

    @property
    def step(self) -> NextStep | None:
        """The next step, if it is the same for every partition."""
        return self._next_step if isinstance(self._next_step, NextStep) else None

    @cached_property
    def is_of_one_partition(self) -> bool:
        """Whether every partition has a next step of its own."""
        if self._next_step is not None:
            return False
        return fitting_cure(self._check.cures, self._state.tools, self._state.features.finalized).is_of_one_partition()

    def finding(self, topic: str, number: int) -> Finding:
        """Return the finding of a partition."""
        moves = None if self._moves is None else partial(self._moves, topic, number)
        path = f"{topic_path(topic)}/{number}"
        return Finding(self._check, path, self._evidence, partial(self._make_step, topic, number), moves)

    def _make_step(self, topic: str, number: int) -> NextStep:
        step = self._next_step(topic, number) if callable(self._next_step) else self._next_step
        if step is not None:
            return step
        return _cure_of(self._check, self._state, {"topic": topic, "partition": number})


class FindingGroup:
    """Findings with the same next step: how many there are, and some of them."""

    def __init__(self) -> None:
        self.count = 0
        self.first: list[Finding] = []
        self.moves = 0
        """How many have commands that reassign replicas."""
        self.moving: Finding | None = None
        """The first finding that has such commands."""

    def add(self, finding: Finding, most: int) -> None:
        """Add a finding; at most ``most`` are kept."""
        if self.count < most:
            self.first.append(finding)
        self.count += 1
        if finding.moves is not None:
            self.moving = self.moving or finding
            self.moves += 1


class CheckFindings:
    """The findings of one check, by topic and partition; those of partitions are made on iteration."""

    def __init__(self, health_check: Check) -> None:
        self.check = health_check
        self._findings: list[Finding | tuple[str, int, ObservedValue]] = []

    def add(self, finding: Finding) -> None:
        """Add a finding of the whole state or about a topic."""
        self._findings.append(finding)

    def add_partition(self, topic: str, number: int, observed: ObservedValue) -> None:
        """Add the finding about a partition that has the observed value."""
        self._findings.append((topic, number, observed))

    def __len__(self) -> int:
        return len(self._findings)

    def __iter__(self) -> Iterator[Finding]:
        for entry in self._findings:
            if isinstance(entry, Finding):
                yield entry
            else:
                topic, number, observed = entry
                yield observed.finding(topic, number)

    def by_step(self, most: int) -> dict[str, FindingGroup]:
        """Return the findings by their next step: at least the first ``most`` steps, of each as many findings."""
        by_text: defaultdict[str, FindingGroup] = defaultdict(FindingGroup)
        by_value: dict[ObservedValue, FindingGroup] = {}
        for entry in self._findings:
            if isinstance(entry, Finding):
                by_text[entry.next_step].add(entry, most)
                continue
            topic, number, observed = entry
            group = by_value.get(observed)
            if group is None and (step := observed.step) is not None:
                group = by_value[observed] = by_text[step.text]
            if len(by_text) >= most and observed.is_of_one_partition:
                continue  # a further step: to make its sentence takes time
            if group is None or group.count < most or (group.moving is None and observed.has_moves):
                finding = observed.finding(topic, number)
                (by_text[finding.next_step] if group is None else group).add(finding, most)
            else:  # it is only counted: there may be 100,000
                group.count += 1
                group.moves += observed.has_moves
        return by_text


_CHECKS: dict[str, Check] = {}


def declare(health_check: Check) -> None:
    """Add a check to those that :func:`checks` returns. Raises ValueError if its name is declared already."""
    if _CHECKS.setdefault(health_check.name, health_check) is not health_check:
        raise ValueError(f"the check {health_check.name} is declared twice")


def check(name: str, level: str, about: str, cures: Cures) -> Callable[[OfState], OfState]:
    """Declare a check of the whole state.

    Args:
        name: the name of its findings, by which users select them.
        level: one of :data:`LEVELS`.
        about: what a finding means, without a full stop.
        cures: the next step, or several for different releases. Every observation must have the keys that stand in
            braces, such as ``{topic}``, in its ``placeholders``; otherwise ``health`` fails.
    """
    return _declaring(lambda find: Check(name, level, about, cures_of(cures), of_state=find))


def topic_check(name: str, level: str, about: str, cures: Cures) -> Callable[[OfTopic], OfTopic]:
    """Declare a check of each topic. The arguments are those of :func:`check`."""
    return _declaring(lambda find: Check(name, level, about, cures_of(cures), of_topic=find))


def partition_check(
    name: str, level: str, about: str, cures: Cures, *, problem: str
) -> Callable[[OfPartition], OfPartition]:
    """Declare a check of the partitions that have the problem. The arguments are those of :func:`check`."""
    return _declaring(lambda find: Check(name, level, about, cures_of(cures), of_partition=find, problem=problem))


def _declaring(check_of: Callable[[_Find], Check]) -> Callable[[_Find], _Find]:
    """Return a decorator that declares the check of a function."""

    def declared(find: _Find) -> _Find:
        declare(check_of(find))
        return find

    return declared


@cache
def checks() -> tuple[Check, ...]:
    """Return every check: the worst levels first, within a level by subject."""
    package = importlib.import_module(__package__ or "kshell.metadata.health")
    for name in reversed(module_names(package.__path__)):  # topics, nodes, …: the most important subjects first
        importlib.import_module(f"{package.__name__}.{name}")
    return tuple(sorted(_CHECKS.values(), key=lambda health_check: LEVELS.index(health_check.level)))


def level_of(name: str) -> str:
    """Return the level of a check's findings, for other reports on the same facts. Raises KeyError."""
    return {check.name: check.level for check in checks()}[name]


def step_of(name: str, tools: KafkaTools, finalized: Mapping[str, int], placeholders: Mapping[str, object]) -> NextStep:
    """Return the next step of a check's findings, for other reports on the same facts. Raises KeyError."""
    cures = {check.name: check.cures for check in checks()}[name]
    return next_step(cures, tools, finalized, placeholders)


def finding(health_check: Check, observation: Observation, state: CheckedState) -> Finding:
    """Turn an observation into a finding. The names in its next step are quoted for a shell: they may be hostile."""

    def make_step() -> NextStep:
        if observation.next_step is not None:
            return observation.next_step
        return _cure_of(health_check, state, observation.placeholders)

    return Finding(health_check, observation.path, observation.evidence, make_step, observation.moves)


def _cure_of(health_check: Check, state: CheckedState, placeholders: Mapping[str, object]) -> NextStep:
    """Return the next step of the check's cure that fits the cluster."""
    return next_step(health_check.cures, state.tools, state.features.finalized, placeholders)


@lru_cache(64)
def topic_path(name: str) -> str:
    """Return the path of a topic's directory in the tree."""
    return f"/image/topics/byName/{encode_name(name)}"


def broker_path(node_id: int) -> str:
    """Return the path of a broker's leaf in the tree."""
    return f"/image/cluster/brokers/{node_id}"


def is_reported(value: object) -> bool:
    """Whether a source reported a value that is not a text: where brokers leave it out, a text takes its place."""
    return not isinstance(value, str)


def of_kind(candidates: Iterable[Check], kind: str) -> Iterator[tuple[Check, Any]]:
    """Return (check, function) of the checks of one kind: ``of_state``, ``of_topic`` or ``of_partition``."""
    return ((candidate, getattr(candidate, kind)) for candidate in candidates if getattr(candidate, kind) is not None)
