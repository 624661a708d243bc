"""The problems of a partition, under the names that all commands use, and its ``min.insync.replicas``.

The definitions are those of ``kafka-topics.sh`` (``org.apache.kafka.tools.TopicCommand``): a partition that is being
reassigned has the replication factor without the replicas that are being added, and one without a leader is below
``min.insync.replicas`` whatever its ISR.

The value of ``min.insync.replicas`` is the topic's own, else that of the broker which leads (``BROKER:3``), else that
of all brokers (``BROKER``). A value that is only in a ``server.properties`` is not in the log: it is unknown, unless
the caller gives it. If brokers do not report the configs of one of these, they may have a value: then it is unknown,
whatever the caller gives.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Generic, NamedTuple, TypeVar

from kshell.metadata.families.configs import resource_segment
from kshell.metadata.image import Image
from kshell.metadata.partial import MISSING, is_unreported
from kshell.metadata.partitions import EPOCHS_FROM, Partition
from kshell.protocol.primitives import ZERO_UUID, Uuid

MIN_ISR_CONFIG = "min.insync.replicas"
NUMBER_PATTERN = r"^[\x00-\x20]*\+?0*([0-9]{1,9})[\x00-\x20]*$"
"""A value that a broker accepts as a number (``ConfigDef.parseType``, with Java's trimming), in Python and in Java."""


class Unreported(NamedTuple):
    """A resource whose configs brokers do not report (``TOPIC:orders``, ``BROKER``; empty for all), and why."""

    resource: str
    reason: str


class MinIsr:
    """The values of ``min.insync.replicas`` in an image; ``default`` is that of ``server.properties``, if known."""

    def __init__(self, image: Image, default: int | None = None) -> None:
        self._topics: dict[str, int] = {}
        self._brokers: dict[str, int] = {}
        for (kind, name), configs in image["configs"].items():
            entry = configs.get(MIN_ISR_CONFIG) if kind in ("TOPIC", "BROKER") else None
            value = _number(entry.value) if entry is not None else None
            if value is not None:
                (self._topics if kind == "TOPIC" else self._brokers)[name] = value
        self._default = self._brokers.get("", default)
        self._unreported = {"/".join(path[1:]): text for path, text in image[MISSING].items() if path[0] == "configs"}
        """Path segment of a resource, empty for all of them -> why brokers do not report its configs."""

    def own(self, topic: str) -> int | None:
        """Return the topic's own value; ``None`` if it has none: then only the leader of a partition matters."""
        return self._topics.get(topic)

    def unreported(self, topic: str, leader: int | None = None) -> Unreported | None:
        """Return the resource that may have the value, if brokers do not report its configs.

        ``None`` if the value is known, or surely only in ``server.properties``; ``leader`` as in :meth:`of`.
        """
        if not self._unreported or topic in self._topics:
            return None
        segments = ["", resource_segment(("TOPIC", topic))]
        if str(leader) not in self._brokers:
            segments += [f"BROKER:{leader}", "BROKER"]
        return next((Unreported(key, self._unreported[key]) for key in segments if key in self._unreported), None)

    def has_unreported_brokers(self) -> bool:
        """Whether the value may depend on a leader whose configs are not reported."""
        return any(segment.startswith("BROKER:") for segment in self._unreported)

    def group(self, topic: str) -> int | None:
        """Return what is the same for topics that have the same value under each leader: as :meth:`own`, or -1."""
        unreported = self.unreported(topic)
        return self.own(topic) if unreported is None or unreported.resource == "BROKER" else -1

    def of(self, topic: str, leader: int | None = None) -> int | None:
        """Return the value for a partition of the topic, ``None`` if unknown; ``leader`` is the broker leading it."""
        own = self._topics.get(topic)
        if own is not None:
            return own
        if self._unreported and self.unreported(topic, leader) is not None:
            return None
        return self._brokers.get(str(leader), self._default) if len(self._brokers) else self._default


def _number(value: str | None) -> int | None:
    """Return a config's value as a number; ``None`` for a text that brokers do not accept."""
    match = re.match(NUMBER_PATTERN, value or "")
    return int(match[1]) if match is not None else None


OFFLINE = "offline"
UNDER_MIN_ISR = "under-min-isr"
AT_MIN_ISR = "at-min-isr"
UNDER_REPLICATED = "under-replicated"
UNCLEAN = "unclean"
REASSIGNING = "reassigning"
NON_PREFERRED = "non-preferred"
ONLINE = "online"
UNDECODED = "undecoded"

MIGRATING, UNASSIGNED, LOST = ZERO_UUID, Uuid((1).to_bytes(16, "big")), Uuid((2).to_bytes(16, "big"))
"""Placeholders for the log directory of a replica that has none (``DirectoryId``, KIP-858)."""

PROBLEMS = (OFFLINE, UNDER_MIN_ISR, AT_MIN_ISR, UNDER_REPLICATED, UNCLEAN, REASSIGNING, NON_PREFERRED)
_STATES = (OFFLINE, UNDER_MIN_ISR, UNDER_REPLICATED)
STATES = (ONLINE, *_STATES, UNDECODED)
"""All states of a partition: ``online``, or its worst problem that keeps clients from data, or ``undecoded``."""


T = TypeVar("T")
_MOST_VERDICTS = 1 << 14
_MOST_MIN_ISRS = 1 << 8


class Verdicts(Generic[T]):
    """A cache of verdicts on partitions: ``decide`` is called once for each value of a partition and its min ISR.

    A scan returns one object for all partitions with equal values (:meth:`.Topic.scan`), so the cache goes by the
    identity of values. After a long log nearly all partitions differ, but most of them only in their epochs. The
    cache's size is bounded.

    Args:
        decide: Called with a partition and its effective min ISR.
        min_isr: Knows the effective min ISR of partitions.
        by_epochs: Whether verdicts depend on the epochs of partitions.
    """

    def __init__(
        self, decide: Callable[[Partition, int | None], T], min_isr: MinIsr, *, by_epochs: bool = False
    ) -> None:
        self._decide = decide
        self._min_isr = min_isr
        self._by_epochs = by_epochs
        self._decided: dict[tuple[int | None, tuple[object, ...]], T] = {}
        self._count = 0
        self._by_own: dict[int | None, dict[int, tuple[T, Partition]]] = {}

    def of_topic(self, topic: str) -> Mapping[int, tuple[T, Partition]]:
        """Return ``id()`` of a partition -> (verdict, partition), as far as known for a topic; :meth:`add` adds to it.

        The partition is kept so that no other object gets its identity.
        """
        group = self._min_isr.group(topic)
        if group not in self._by_own:
            if len(self._by_own) >= _MOST_MIN_ISRS:
                self._by_own.clear()
                self._count = 0
            self._by_own[group] = {}
        return self._by_own[group]

    def add(self, topic: str, value: Partition) -> tuple[T, Partition]:
        """Decide on a partition of the topic whose value is not in the cache yet, and cache the verdict."""
        if self._count >= _MOST_VERDICTS:
            for verdicts in self._by_own.values():
                verdicts.clear()
            self._count = 0
        self._count += 1
        group = self._min_isr.group(topic)
        compared = group, value if self._by_epochs else value[:EPOCHS_FROM]
        if compared not in self._decided:
            if len(self._decided) >= _MOST_VERDICTS:
                self._decided.clear()
            self._decided[compared] = self._decide(value, self._min_isr.of(topic, value.leader))
        verdict = self._decided[compared], value
        self._by_own.setdefault(group, {})[id(value)] = verdict
        return verdict


def problems(partition: Partition, min_isr: int | None) -> list[str]:
    """Return those of :data:`PROBLEMS` that a partition has. ``min_isr`` is ``None`` where it is unknown.

    A field that the source does not report (a string in place of the value) counts as no problem.
    """
    leader, in_sync = partition.leader, len(partition.isr)
    leaderless = leader == -1
    problem_names = [OFFLINE] if leaderless else []
    if leaderless or (min_isr is not None and in_sync < min_isr):
        problem_names.append(UNDER_MIN_ISR)
    if in_sync == min_isr:
        problem_names.append(AT_MIN_ISR)
    if in_sync < replication_factor(partition):
        problem_names.append(UNDER_REPLICATED)
    if partition.leader_recovery_state == "RECOVERING":
        problem_names.append(UNCLEAN)
    if is_reassigning(partition):
        problem_names.append(REASSIGNING)
    if partition.replicas and not (leaderless or is_unreported(leader)) and leader != partition.replicas[0]:
        problem_names.append(NON_PREFERRED)
    return problem_names


def state(problem_names: list[str]) -> str:
    """Return the worst of the problems that keep clients from data; ``online`` if there is none."""
    return next((problem for problem in _STATES if problem in problem_names), ONLINE)


def is_reassigning(partition: Partition) -> bool:
    """Whether replicas are being added or removed; brokers may not report it (a string)."""
    moving = partition.adding_replicas, partition.removing_replicas
    return any(replicas and not is_unreported(replicas) for replicas in moving)


def replication_factor(partition: Partition) -> int:
    """Return the replication factor, for which replicas that are being added do not count yet."""
    adding = partition.adding_replicas
    return len(partition.replicas) - (0 if is_unreported(adding) else len(adding))


def target_replicas(partition: Partition) -> tuple[int, ...]:
    """Return the replicas after an ongoing reassignment has completed."""
    return _without(partition.replicas, partition.removing_replicas)


def staying_replicas(partition: Partition) -> tuple[int, ...]:
    """Return the replicas after an ongoing reassignment was cancelled."""
    return _without(partition.replicas, partition.adding_replicas)


def _without(replicas: tuple[int, ...], ids: tuple[int, ...] | str) -> tuple[int, ...]:
    return replicas if is_unreported(ids) or not ids else tuple(node for node in replicas if node not in ids)


def effective_min_isr(partition: Partition, min_isr: int | None) -> int | None:
    """Return the min ISR that a broker enforces: at most the number of replicas, with those that are being added
    (``Partition.effectiveMinIsr``)."""
    return None if min_isr is None else min(min_isr, max(len(partition.replicas), 1))


def is_online(directory: Uuid, online: Collection[Uuid]) -> bool:
    """Whether a broker has a replica's log directory, by Kafka's rules (``DirectoryId.isOnline``).

    ``online`` are the directories in the broker's registration. A registration from before 3.7-IV2 has none: then every
    directory but LOST counts as online.
    """
    if directory in (MIGRATING, UNASSIGNED):
        return True
    return directory != LOST and (not online or directory in online)
