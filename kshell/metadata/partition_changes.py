"""Replay of one partition's records: from their addresses in the log to the partition after them.

A log holds many changes of partitions but few different ones: leadership moves between the same replicas, again and
again. So the result of a record (without the partition's number and topic: its *essence*) on a state (a partition
without its epochs) is worked out once and cached. The epochs are counted separately.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import starmap
from typing import TYPE_CHECKING, NamedTuple

from kshell.metadata.partitions import (
    EPOCHS_FROM,
    NO_LEADER_CHANGE,
    NO_RECOVERY_CHANGE,
    Partition,
    from_record,
    java_int,
    merge,
)
from kshell.metadata.record_log import RecordLog
from kshell.metadata.records import decode_known
from kshell.protocol.decoder import Message
from kshell.protocol.primitives import ZERO_UUID

if TYPE_CHECKING:
    from weakref import WeakMethod

PARTITION, PARTITION_CHANGE, CLEAR_ELR = 3, 5, 28
"""Api keys of the records that write partitions."""
NUMBER, TOPIC_ID, REST = slice(3, 7), slice(7, 23), 23
"""Positions in the values of PartitionRecord and PartitionChangeRecord: the partition's number, the topic's id, and the
start of all further fields."""
_CLEAR: Message = {"eligibleLeaderReplicas": [], "lastKnownElr": []}
_MOST_REMEMBERED = 1 << 17
"""The most cached results and partitions, then the caches are cleared: a log may have as many states as records."""
_MOST_SCANNED = 1 << 17
"""The most partitions of scans that topics keep."""


def essence(value: bytes) -> bytes:
    """Return a record without its partition's number and topic id: all that decides its effect on a state."""
    return value[:3] if value[1] == CLEAR_ELR else value[:3] + value[REST:]


def fits_every_partition(change: Message) -> bool:
    """Whether a PartitionChangeRecord with a known recovery state can be merged into any partition.

    If not, it depends on the partition: there must be as many log directories as replicas.
    """
    replicas, directories = change.get("replicas"), change.get("directories")
    if replicas is None and directories is None:
        return True
    if directories is None:
        return False
    is_assigned = any(directory != ZERO_UUID for directory in directories)
    return not is_assigned or (replicas is not None and len(replicas) == len(directories))


def check_recovery(change: Message) -> None:
    """Raise ReplayError for a PartitionChangeRecord whose leader recovery state Kafka refuses."""
    merge(_NOTHING, {"leaderRecoveryState": change.get("leaderRecoveryState", NO_RECOVERY_CHANGE)})


def cleared(value: Partition) -> Partition:
    """Return the partition after a ClearElrRecord that applies to it."""
    return merge(value, _CLEAR)


class _State:
    """A partition without its epochs (``value``), and a cache: essence of a record -> the result on it (``after``)."""

    __slots__ = ("after", "at_epochs", "value")

    def __init__(self, value: Partition) -> None:
        self.value = value
        self.after: dict[bytes, _Step] = {}
        self.at_epochs: dict[tuple[int, int], Partition] = {}
        """(leader epoch, partition epoch) -> the partition with them, so that equal partitions are one object."""


class _Step(NamedTuple):
    """The result of a record: the next state, and its effect on the epochs.

    ``epochs``: the leader and partition epoch that a PartitionRecord sets. ``None`` for any other record, which raises
    the leader epoch by ``rise`` and the partition epoch by one.
    """

    state: _State
    epochs: tuple[int, int] | None
    rise: int


class Aspects(NamedTuple):
    """Which parts of a partition a caller of :meth:`PartitionChanges.states` needs.

    A part that is not needed gets a fixed value: epochs are 0, the rest is that of a partition without replicas. The
    fewer parts, the more of the results are the same object.
    """

    rest: bool = True
    """Everything but the epochs."""
    leader_epoch: bool = False
    partition_epoch: bool = False


_EVERY_ASPECT = Aspects(leader_epoch=True, partition_epoch=True)
ALL_BUT_EPOCHS = Aspects()

_At = tuple[_State, int, int]
"""A state, the leader epoch and the partition epoch. The epochs are not yet wrapped to 32 bits (:func:`java_int`)."""


class Waypoint(NamedTuple):
    """A partition after some of its records, to replay more from; independent of the caches, so it may be stored."""

    without_epochs: Partition
    leader_epoch: int
    partition_epoch: int


class KeptScans:
    """Which topics of a log keep their scans: together at most 2^17 partitions, then all drop theirs.

    The references are weak: one-shots run without the collector of cycles.
    """

    def __init__(self) -> None:
        self._forgetting: list[WeakMethod[Callable[[], None]]] = []
        self._partitions = 0

    def add(self, forget: Callable[[], None], partitions: int) -> None:
        """Count the scan of a topic, whose method ``forget`` drops it."""
        from weakref import WeakMethod  # late: not every command scans topics

        if self._partitions + partitions > _MOST_SCANNED:
            for reference in self._forgetting:
                if (drop := reference()) is not None:
                    drop()
            self._forgetting.clear()
            self._partitions = 0
        self._forgetting.append(WeakMethod(forget))
        self._partitions += max(partitions, 1)


class PartitionChanges:
    """Replays the partition records of one log, given by their addresses.

    Every record must have been checked to fit its partition when it was filed. Arguments of most methods:

    - ``first``: the partition before the records; ``None`` if the first of them is a PartitionRecord;
    - ``addresses``: the records, in the order in which they took effect.
    """

    def __init__(self, log: RecordLog) -> None:
        self._log = log
        self._nothing = _State(_NOTHING)
        self._states: dict[Partition, _State] = {}
        self._sets: dict[bytes, _Step] = {}
        self._remembered = 0
        self.kept_scans = KeptScans()
        """The topics that keep their scans."""

    def last(self, first: Partition | None, addresses: Iterable[int]) -> Partition:
        """Return the partition after all of the records, at least one."""
        return self._partition(*self._last(self._first(first), addresses))

    def begin(self, first: Partition | None) -> Waypoint:
        """Return the waypoint before a partition's first record."""
        state, leader_epoch, partition_epoch = self._first(first)
        return Waypoint(state.value, leader_epoch, partition_epoch)

    def after(self, waypoint: Waypoint, addresses: Iterable[int]) -> Waypoint:
        """Return the waypoint after further records of the partition."""
        begin = self._state(waypoint.without_epochs), waypoint.leader_epoch, waypoint.partition_epoch
        state, leader_epoch, partition_epoch = self._last(begin, addresses)
        return Waypoint(state.value, leader_epoch, partition_epoch)

    def value(self, waypoint: Waypoint) -> Partition:
        """Return the partition at a waypoint."""
        without_epochs, leader_epoch, partition_epoch = waypoint
        return self._partition(self._state(without_epochs), leader_epoch, partition_epoch)

    def every(self, first: Partition | None, addresses: Iterable[int]) -> Iterator[Partition]:
        """Return the partition after each of the records."""
        return self.states(first, addresses, _EVERY_ASPECT)

    def states(
        self, first: Partition | None, addresses: Iterable[int], aspects: Aspects = ALL_BUT_EPOCHS
    ) -> Iterator[Partition]:
        """As :meth:`every`, with only some aspects of the partitions: then most results are the same few objects."""
        passed = self._after_each(self._first(first), addresses)
        if aspects == _EVERY_ASPECT:
            return starmap(self._partition, passed)
        if not (aspects.leader_epoch or aspects.partition_epoch):
            return (state.value for state, _, _ in passed)
        return (
            self._partition(
                state if aspects.rest else self._nothing,
                leader_epoch if aspects.leader_epoch else 0,
                partition_epoch if aspects.partition_epoch else 0,
            )
            for state, leader_epoch, partition_epoch in passed
        )

    def waypoints(self, first: Partition | None, addresses: Iterable[int]) -> Iterator[Waypoint]:
        """As :meth:`every`, as waypoints; mostly, equal values of ``without_epochs`` are one object."""
        for state, leader_epoch, partition_epoch in self._after_each(self._first(first), addresses):
            yield Waypoint(state.value, leader_epoch, partition_epoch)

    def _first(self, first: Partition | None) -> _At:
        if first is None:
            return self._nothing, 0, 0
        return self._state(_without_epochs(first)), first.leader_epoch, first.partition_epoch

    def _last(self, begin: _At, addresses: Iterable[int]) -> _At:
        # As _after_each, without what it yields: a look at all partitions of a log takes most of its time here.
        state, leader_epoch, partition_epoch = begin
        for value in self._log.values(addresses):
            state, epochs, rise = state.after.get(value[:3] + value[REST:]) or self._step(state, value)
            if epochs is None:
                leader_epoch += rise
                partition_epoch += 1
            else:
                leader_epoch, partition_epoch = epochs
        return state, leader_epoch, partition_epoch

    def _after_each(self, begin: _At, addresses: Iterable[int]) -> Iterator[_At]:
        """Yield state, leader epoch and partition epoch after each of the records."""
        state, leader_epoch, partition_epoch = begin
        for value in self._log.values(addresses):
            step = state.after.get(value[:3] + value[REST:]) or self._step(state, value)
            state, epochs, rise = step
            if epochs is None:
                leader_epoch += rise
                partition_epoch += 1
            else:
                leader_epoch, partition_epoch = epochs
            yield state, leader_epoch, partition_epoch

    def _partition(self, state: _State, leader_epoch: int, partition_epoch: int) -> Partition:
        epochs = java_int(leader_epoch), java_int(partition_epoch)
        partition = state.at_epochs.get(epochs)
        if partition is None:
            self._remember()
            partition = state.at_epochs[epochs] = Partition(*state.value[:EPOCHS_FROM], *epochs)
        return partition

    def _remember(self) -> None:
        """Count one more cached value, and clear the caches when there are too many."""
        self._remembered += 1
        if self._remembered > _MOST_REMEMBERED:
            self._states.clear()
            self._sets.clear()
            self._nothing.at_epochs.clear()
            self._remembered = 0

    def _state(self, without_epochs: Partition) -> _State:
        state = self._states.get(without_epochs)
        if state is None:
            state = self._states[without_epochs] = _State(without_epochs)
        return state

    def _step(self, state: _State, value: bytes) -> _Step:
        """Return the result of a record's value on a state; that of a PartitionRecord is the same on every state."""
        key = essence(value)
        cached = self._sets.get(key) or state.after.get(key)
        if cached is not None:
            return cached
        self._remember()
        if value[1] == CLEAR_ELR:
            step = _Step(self._state(_without_epochs(cleared(state.value))), None, 0)
            state.after[key] = step
            return step
        decoded = decode_known(value)
        if decoded is None:
            raise AssertionError("a record that cannot be decoded was filed")
        data = decoded[2]
        if value[1] == PARTITION:
            partition = from_record(data)
            epochs = partition.leader_epoch, partition.partition_epoch
            step = _Step(self._state(_without_epochs(partition)), epochs, 0)
            self._sets[key] = step
        else:
            rise = 0 if data.get("leader", NO_LEADER_CHANGE) == NO_LEADER_CHANGE else 1
            step = _Step(self._state(_without_epochs(merge(state.value, data))), None, rise)
            state.after[key] = step
        return step


def waypoint_of(value: Partition) -> Waypoint:
    """Return a partition as a waypoint."""
    return Waypoint(_without_epochs(value), value.leader_epoch, value.partition_epoch)


def _without_epochs(value: Partition) -> Partition:
    return value._replace(leader_epoch=0, partition_epoch=0)


_NOTHING = Partition((), (), (), (), (), (), (), -1, "RECOVERED", 0, 0)
"""The state before a partition's first PartitionRecord, on whose result it has no influence."""
