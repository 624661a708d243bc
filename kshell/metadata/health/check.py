"""How a check is declared, its input, and its findings.

A check looks at the whole state, at one topic, or at one partition that has a certain problem: partitions are decoded
once, whatever the number of checks.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from typing import Any, NamedTuple

from kshell.discovery import module_names
from kshell.metadata.feature_update import ClusterFeatures
from kshell.metadata.image import Image
from kshell.metadata.kafka_tools import KafkaTools
from kshell.metadata.names import encode_name
from kshell.metadata.next_steps import Cure, Cures, NextStep, cures_of, next_step
from kshell.metadata.partition_state import MinIsr
from kshell.metadata.partitions import Partition, Topic
from kshell.metadata.reassignment import Placement

CRITICAL, ERROR, WARNING, INFO = "critical", "error", "warning", "info"
LEVELS = (CRITICAL, ERROR, WARNING, INFO)
"""The worst first."""

IN_ELR, LOST_DIRECTORY, UNREGISTERED, RACKS = "elr", "lost-directory", "unregistered", "racks"
"""What checks of partitions look for beside :data:`kshell.metadata.partition_state.PROBLEMS`: replicas in the ELR, in a
log directory that their broker does not have, on a broker that is not registered, and more of them in a rack than need
be."""


class SnapshotAge(NamedTuple):
    """The age of the newest snapshot and of the log: ``None`` for the snapshot's time where there is no snapshot.

    Times are epoch milliseconds of records; ``log_bytes`` is the size of all segments.
    """

    snapshot: int | None
    first: int
    last: int
    log_bytes: int
    is_running: bool = False
    """Whether the leader of a running quorum reported them: one that has none after some minutes has lost none."""


class SnapshotSlip(NamedTuple):
    """A value that a snapshot holds otherwise than the log before it, and that is shown so."""

    path: str
    snapshot: str
    difference: str


class CheckedState(NamedTuple):
    """The state that checks examine. ``now`` is its time (epoch milliseconds), ``None`` if not known."""

    image: Image
    standing: ClusterFeatures
    min_isr: MinIsr
    now: int | None = None
    voters: tuple[int, ...] = ()
    voter_directories: Mapping[int, str] = {}
    """The directory id of each voter whose one is known: that of a voter of a dynamic quorum."""
    quorum: Mapping[str, Any] | None = None
    """The description of a live quorum (DescribeQuorum); ``None`` where no quorum was asked, or none answered."""
    leaderless: str | None = None
    """Why a live quorum is taken to have no leader; ``None``: it has one, or nobody was asked."""
    snapshots: SnapshotAge | None = None
    """``None`` where a source does not know its files."""
    slips: tuple[SnapshotSlip, ...] = ()
    is_partial: bool = False
    """Whether the image is what brokers report: what they leave out is not missing."""
    holding: frozenset[int] = frozenset()
    """The brokers that have replicas."""
    is_moving: bool = False
    """Whether a partition is being reassigned."""
    tools: KafkaTools = KafkaTools()
    """Writes the commands of next steps, for the release and the addresses of this cluster."""
    placement: Placement = Placement()
    """Where replicas may be moved to."""


class TopicState(NamedTuple):
    """A topic: replication factors of its partitions without replicas that are being added, and its min ISR."""

    topic: Topic
    partitions: int
    factors: frozenset[int]
    min_isr: int | None

    @property
    def path(self) -> str:
        """Its directory in the tree."""
        return topic_path(self.topic.name)


class PartitionState(NamedTuple):
    """A partition with problems: those of :mod:`kshell.metadata.partition_state`, and :data:`IN_ELR` and the rest."""

    topic: Topic
    number: int
    partition: Partition
    problems: tuple[str, ...]
    min_isr: int | None
    lost: tuple[int, ...] = ()
    """Replicas whose log directory their broker does not have."""

    @property
    def path(self) -> str:
        """Its leaf in the tree."""
        return f"{topic_path(self.topic.name)}/{self.number}"


class Observation(NamedTuple):
    """``path`` is what it is about; ``evidence`` the facts; ``placeholders`` fill those of the check's cures."""

    path: str
    evidence: str
    placeholders: Mapping[str, Any] = {}
    next_step: NextStep | None = None
    """The whole next step where it depends on the state; else that of the cure that fits."""
    moves: Callable[[], tuple[str, ...]] | None = None
    """Writes further commands, which are not in the sentence: those that reassign replicas, and are asked for late."""


OfState = Callable[[CheckedState], Iterable[Observation]]
OfTopic = Callable[[CheckedState, TopicState], Observation | None]
OfPartition = Callable[[CheckedState, PartitionState], Observation | None]


class Check(NamedTuple):
    """A finding's name, its level, what it means, and what to do about it in which release."""

    name: str
    level: str
    about: str
    cures: tuple[Cure, ...]
    of_state: OfState | None = None
    of_topic: OfTopic | None = None
    of_partition: OfPartition | None = None
    problem: str = ""
    """The problem of those partitions that ``of_partition`` looks at."""


class Finding(NamedTuple):
    """What a check found. What to do about it is written when it is asked for: there may be 100,000 findings."""

    check: Check
    path: str
    evidence: str
    make_step: Callable[[], NextStep]
    moves: Callable[[], tuple[str, ...]] | None = None

    @property
    def next_step(self) -> str:
        """What to do about it, as a sentence."""
        return self.make_step().text

    @property
    def commands(self) -> tuple[str, ...]:
        """The command lines that do it, in their order, with those of a reassignment."""
        return (*self.make_step().commands, *(self.moves() if self.moves is not None else ()))


_CHECKS: dict[str, Check] = {}


def declare(health_check: Check) -> None:
    """Add a check."""
    if _CHECKS.setdefault(health_check.name, health_check) is not health_check:
        raise ValueError(f"the check {health_check.name} is declared twice")


def check(name: str, level: str, about: str, cures: Cures) -> Callable[[OfState], OfState]:
    """Declare a check of the whole state.

    Args:
        name: the finding's, by which users select it.
        level: one of :data:`LEVELS`.
        about: what it means, without a full stop.
        cures: the next step, or one for each release. ``{word}`` in it wants that key in each observation's
            ``placeholders``; without it ``health`` ends with a fault.
    """

    def declared(find: OfState) -> OfState:
        declare(Check(name, level, about, cures_of(cures), of_state=find))
        return find

    return declared


def topic_check(name: str, level: str, about: str, cures: Cures) -> Callable[[OfTopic], OfTopic]:
    """Declare a check of each topic. The arguments are those of :func:`check`."""

    def declared(find: OfTopic) -> OfTopic:
        declare(Check(name, level, about, cures_of(cures), of_topic=find))
        return find

    return declared


def partition_check(
    name: str, level: str, about: str, cures: Cures, *, problem: str
) -> Callable[[OfPartition], OfPartition]:
    """Declare a check of each partition that has the problem. The arguments are those of :func:`check`."""

    def declared(find: OfPartition) -> OfPartition:
        declare(Check(name, level, about, cures_of(cures), of_partition=find, problem=problem))
        return find

    return declared


@cache
def checks() -> tuple[Check, ...]:
    """Every check, the worst levels first, otherwise by subject."""
    package = importlib.import_module(__package__ or "kshell.metadata.health")
    for name in reversed(module_names(package.__path__)):  # topics, nodes, …: what matters to most comes first
        importlib.import_module(f"{package.__name__}.{name}")
    return tuple(sorted(_CHECKS.values(), key=lambda health_check: LEVELS.index(health_check.level)))


def level_of(name: str) -> str:
    """The level of a check's findings. Other reports on the same facts take it from here. Raises KeyError."""
    return {check.name: check.level for check in checks()}[name]


def step_of(name: str, tools: KafkaTools, finalized: Mapping[str, int], placeholders: Mapping[str, Any]) -> NextStep:
    """What to do about a finding of that name. Other reports on the same facts take it from here. Raises KeyError."""
    cures = {check.name: check.cures for check in checks()}[name]
    return next_step(cures, tools, finalized, placeholders)


def finding(health_check: Check, observation: Observation, state: CheckedState) -> Finding:
    """A finding with its next step; names in it are quoted for a shell, for they are anybody's."""
    step = observation.next_step

    def make_step() -> NextStep:
        nonlocal step
        if step is None:
            step = next_step(health_check.cures, state.tools, state.standing.finalized, observation.placeholders)
        return step

    return Finding(health_check, observation.path, observation.evidence, make_step, observation.moves)


@lru_cache(64)
def topic_path(name: str) -> str:
    """A topic's directory in the tree."""
    return f"/image/topics/byName/{encode_name(name)}"


def broker_path(node_id: int) -> str:
    """A broker's leaf in the tree."""
    return f"/image/cluster/brokers/{node_id}"


def is_reported(value: object) -> bool:
    """Whether a source reported the value: brokers leave some out, and a sentence takes its place."""
    return not isinstance(value, str)


def ids(numbers: Iterable[int]) -> str:
    """``1,2,3``; ``none`` for none."""
    return ",".join(map(str, numbers)) or "none"


def of_kind(candidates: Iterable[Check], kind: str) -> Iterator[tuple[Check, Any]]:
    """The checks that look at that kind of thing, each with its function."""
    return ((candidate, getattr(candidate, kind)) for candidate in candidates if getattr(candidate, kind) is not None)
