"""The problems of a partition, with the same names in every answer, and its ``min.insync.replicas``.

The definitions are those of ``kafka-topics.sh`` (``org.apache.kafka.tools.TopicCommand``): a partition that is being
reassigned has the replication factor without the replicas that are being added, and one without a leader is below
``min.insync.replicas`` whatever its ISR.

Of ``min.insync.replicas``, the topic's own value counts, else that of the broker which leads (``BROKER:3``), else that
of all brokers (``BROKER``). What only a ``server.properties`` says is not in the log: then it is unknown, unless the
caller gives it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Generic, TypeVar

from kshell.metadata.image import Image
from kshell.metadata.partial import is_unreported
from kshell.metadata.partitions import Partition
from kshell.protocol.primitives import ZERO_UUID, Uuid

CONFIG = "min.insync.replicas"
NUMBER = r"^[\x00-\x20]*\+?0*([0-9]{1,9})[\x00-\x20]*$"
"""What a broker takes for its number (``ConfigDef.parseType``: trimmed as Java does it), for Python and for Java."""


class MinIsr:
    """The values of an image; ``default`` is set in the brokers' own files, ``None`` if it is not known."""

    def __init__(self, image: Image, default: int | None = None) -> None:
        self._topics: dict[str, int] = {}
        self._brokers: dict[str, int] = {}
        for (kind, name), configs in image["configs"].items():
            entry = configs.get(CONFIG) if kind in ("TOPIC", "BROKER") else None
            value = _number(entry.value) if entry is not None else None
            if value is not None:
                (self._topics if kind == "TOPIC" else self._brokers)[name] = value
        self._default = self._brokers.get("", default)

    def own(self, topic: str) -> int | None:
        """The topic's own value. Where there is none, that of its partitions depends on their leaders alone."""
        return self._topics.get(topic)

    def of(self, topic: str, leader: int | None = None) -> int | None:
        """In-sync replicas that a partition of the topic needs; ``leader`` is the broker that leads it, if one does."""
        own = self._topics.get(topic)
        if own is not None:
            return own
        return self._brokers.get(str(leader), self._default) if len(self._brokers) else self._default


def _number(value: str | None) -> int | None:
    """A config's value; what is no number in range cannot be in force."""
    match = re.match(NUMBER, value or "")
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
"""The placeholder of a replica's log directory where there is none (``DirectoryId``, KIP-858)."""

PROBLEMS = (OFFLINE, UNDER_MIN_ISR, AT_MIN_ISR, UNDER_REPLICATED, UNCLEAN, REASSIGNING, NON_PREFERRED)
_STATES = (OFFLINE, UNDER_MIN_ISR, UNDER_REPLICATED)
STATES = (ONLINE, *_STATES, UNDECODED)
"""What the state of a partition may be."""


T = TypeVar("T")
_MOST_VERDICTS = 1 << 14
_MOST_MIN_ISRS = 1 << 8


class Verdicts(Generic[T]):
    """The verdicts on partitions by their values and min.insync.replicas, decided once for each value.

    A scan gives one object for all partitions whose values are equal (:meth:`.Topic.scan`), so a value is known by its
    identity. How many are remembered has a bound: after a long log all partitions may differ.
    """

    def __init__(self, decide: Callable[[Partition, int | None], T], min_isr: MinIsr) -> None:
        self._decide = decide
        self._min_isr = min_isr
        self._count = 0
        self._by_own: dict[int | None, dict[int, tuple[T, Partition]]] = {}

    def of_topic(self, topic: str) -> Mapping[int, tuple[T, Partition]]:
        """Identity of a value -> (the verdict, the value), as far as is known for the topic; :meth:`add` adds to it.

        The value is kept so that no other one gets its identity.
        """
        own = self._min_isr.own(topic)
        if own not in self._by_own:
            if len(self._by_own) >= _MOST_MIN_ISRS:
                self._by_own.clear()
                self._count = 0
            self._by_own[own] = {}
        return self._by_own[own]

    def add(self, topic: str, value: Partition) -> tuple[T, Partition]:
        """The verdict on a partition of the topic with a value that is not known yet."""
        if self._count >= _MOST_VERDICTS:
            for verdicts in self._by_own.values():
                verdicts.clear()
            self._count = 0
        self._count += 1
        verdict = self._decide(value, self._min_isr.of(topic, value.leader)), value
        self._by_own.setdefault(self._min_isr.own(topic), {})[id(value)] = verdict
        return verdict


def problems(partition: Partition, min_isr: int | None) -> list[str]:
    """Those of :data:`PROBLEMS` that the partition has. ``min_isr`` is ``None`` where it is unknown.

    What a source does not tell (a string in the place of a value) is no problem.
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
    """The worst of the problems that keep clients from data; ``online`` when there is none of those."""
    return next((problem for problem in _STATES if problem in problem_names), ONLINE)


def is_reassigning(partition: Partition) -> bool:
    """Whether replicas are being added or removed; brokers may not report it (a string)."""
    moving = partition.adding_replicas, partition.removing_replicas
    return any(replicas and not is_unreported(replicas) for replicas in moving)


def replication_factor(partition: Partition) -> int:
    """How many replicas there are to be: those that are being added do not count yet."""
    adding = partition.adding_replicas
    return len(partition.replicas) - (0 if is_unreported(adding) else len(adding))


def target_replicas(partition: Partition) -> tuple[int, ...]:
    """The replicas when a reassignment that goes on has come to its end."""
    return _without(partition.replicas, partition.removing_replicas)


def staying_replicas(partition: Partition) -> tuple[int, ...]:
    """The replicas when a reassignment that goes on is taken back."""
    return _without(partition.replicas, partition.adding_replicas)


def _without(replicas: tuple[int, ...], others: tuple[int, ...] | str) -> tuple[int, ...]:
    return replicas if is_unreported(others) or not others else tuple(one for one in replicas if one not in others)


def effective_min_isr(partition: Partition, min_isr: int | None) -> int | None:
    """What a broker asks for: no more in-sync replicas than there are replicas (``Partition.effectiveMinIsr``)."""
    return None if min_isr is None else min(min_isr, max(replication_factor(partition), 1))


def is_online(directory: Uuid, online: Collection[Uuid]) -> bool:
    """Whether a broker has a replica's log directory, as Kafka counts (``DirectoryId.isOnline``).

    ``online`` are the directories of its registration; one from before 3.7-IV2 has none, and nothing is known then.
    """
    if directory in (MIGRATING, UNASSIGNED):
        return True
    return directory != LOST and (not online or directory in online)
