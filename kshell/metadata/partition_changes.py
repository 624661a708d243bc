"""What the records of one partition come to, one after another.

A log holds many changes and few different ones: the same leaders fail over the same replicas, again and again. So a
state without its epochs, and a record without the partition that it names, are brought together once; from then on the
pair is looked up. Epochs are counted beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import starmap
from typing import NamedTuple

from kshell.metadata.partitions import NO_LEADER_CHANGE, NO_RECOVERY_CHANGE, Partition, from_record, merge
from kshell.metadata.record_log import RecordLog
from kshell.metadata.records import decode_known
from kshell.protocol.decoder import Message
from kshell.protocol.primitives import ZERO_UUID

PARTITION, PARTITION_CHANGE, CLEAR_ELR = 3, 5, 28
"""Api keys of the records that write partitions."""
NUMBER, TOPIC_ID, REST = slice(3, 7), slice(7, 23), 23
"""Where the first two of them hold the partition's number and its topic's id, and where the rest begins."""
_CLEAR: Message = {"eligibleLeaderReplicas": [], "lastKnownElr": []}
_MOST_REMEMBERED = 1 << 17
"""Pairs and partitions; a log may have as many states as records."""
_INT32 = 1 << 32
_HALF = 1 << 31


def essence(value: bytes) -> bytes:
    """A record without the partition's identity: records of the same essence change equal states alike."""
    return value[:3] if value[1] == CLEAR_ELR else value[:3] + value[REST:]


def fits_every_partition(change: Message) -> bool:
    """Whether a PartitionChangeRecord with a known recovery state can be merged into any partition.

    Others depend on how many replicas the partition has: their directories must be as many.
    """
    replicas, directories = change.get("replicas"), change.get("directories")
    if replicas is None and directories is None:
        return True
    if directories is None:
        return False
    is_assigned = any(directory != ZERO_UUID for directory in directories)
    return not is_assigned or (replicas is not None and len(replicas) == len(directories))


def check_recovery(change: Message) -> None:
    """Raises ReplayError for a PartitionChangeRecord whose recovery state Kafka refuses."""
    merge(_NOTHING, {"leaderRecoveryState": change.get("leaderRecoveryState", NO_RECOVERY_CHANGE)})


def cleared(value: Partition) -> Partition:
    """The partition after a ClearElrRecord that concerns it."""
    return merge(value, _CLEAR)


class _State:
    """A partition without its epochs, and what each record made of it so far."""

    __slots__ = ("after", "at_epochs", "value")

    def __init__(self, value: Partition) -> None:
        self.value = value
        self.after: dict[bytes, _Step] = {}
        self.at_epochs: dict[tuple[int, int], Partition] = {}
        """Partitions in this state: whoever looks at all of them decides once for those that are equal."""


class _Step(NamedTuple):
    """The state after a record. ``epochs``: those that it sets, of leader and partition; else how much the leader
    epoch rises.
    """

    state: _State
    epochs: tuple[int, int] | None
    rise: int


class Aspects(NamedTuple):
    """What of a partition's values is wanted. The less that is, the more of the values are one object: an epoch that is
    not wanted is 0, and the rest is that of a partition without replicas.
    """

    rest: bool = True
    """All but the epochs."""
    leader_epoch: bool = False
    partition_epoch: bool = False


_EVERY_ASPECT = Aspects(leader_epoch=True, partition_epoch=True)
ALL_BUT_EPOCHS = Aspects()

_At = tuple[_State, int, int]
"""State, and the epochs of leader and partition."""


class Waypoint(NamedTuple):
    """A partition on its way through its records. It holds nothing that :class:`PartitionChanges` may forget."""

    without_epochs: Partition
    leader_epoch: int
    partition_epoch: int


class PartitionChanges:
    """Replays partition records of one log. All of them must be known to fit."""

    def __init__(self, log: RecordLog) -> None:
        self._log = log
        self._nothing = _State(_NOTHING)
        self._states: dict[Partition, _State] = {}
        self._sets: dict[bytes, _Step] = {}
        self._remembered = 0

    def last(self, first: Partition | None, addresses: Iterable[int]) -> Partition:
        """The partition after all of the records.

        Args:
            first: what it was before them; ``None`` if the first of them is a PartitionRecord.
            addresses: at least one, in the order in which the records took effect.
        """
        return self._partition(*self._last(self._first(first), addresses))

    def begin(self, first: Partition | None) -> Waypoint:
        """Where a partition's records begin, as :meth:`last` has it."""
        state, leader_epoch, partition_epoch = self._first(first)
        return Waypoint(state.value, leader_epoch, partition_epoch)

    def after(self, waypoint: Waypoint, addresses: Iterable[int]) -> Waypoint:
        """How far some more records bring a partition."""
        begin = self._state(waypoint.without_epochs), waypoint.leader_epoch, waypoint.partition_epoch
        state, leader_epoch, partition_epoch = self._last(begin, addresses)
        return Waypoint(state.value, leader_epoch, partition_epoch)

    def value(self, waypoint: Waypoint) -> Partition:
        """The partition there."""
        without_epochs, leader_epoch, partition_epoch = waypoint
        return self._partition(self._state(without_epochs), leader_epoch, partition_epoch)

    def every(self, first: Partition | None, addresses: Iterable[int]) -> Iterator[Partition]:
        """The partition after each of the records, as :meth:`last` has it."""
        return self.states(first, addresses, _EVERY_ASPECT)

    def states(
        self, first: Partition | None, addresses: Iterable[int], aspects: Aspects = ALL_BUT_EPOCHS
    ) -> Iterator[Partition]:
        """As :meth:`every`, with what is not asked for left out: then most values are the same few objects."""
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
        """As :meth:`every`; equal partitions without their epochs are mostly one object."""
        for state, leader_epoch, partition_epoch in self._after_each(self._first(first), addresses):
            yield Waypoint(state.value, leader_epoch, partition_epoch)

    def _first(self, first: Partition | None) -> _At:
        if first is None:
            return self._nothing, 0, 0
        return self._state(_without_epochs(first)), first.leader_epoch, first.partition_epoch

    def _last(self, begin: _At, addresses: Iterable[int]) -> _At:
        last = begin
        for passed in self._after_each(begin, addresses):
            last = passed
        return last

    def _after_each(self, begin: _At, addresses: Iterable[int]) -> Iterator[_At]:
        """State and epochs of leader and partition after each of some more records."""
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
            partition = state.at_epochs[epochs] = Partition(*state.value[:9], *epochs)
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


def java_int(epoch: int) -> int:
    """An epoch as an ``int`` of Java: after the largest comes the smallest."""
    return (epoch + _HALF) % _INT32 - _HALF


def waypoint_of(value: Partition) -> Waypoint:
    """A partition with its epochs apart."""
    return Waypoint(_without_epochs(value), value.leader_epoch, value.partition_epoch)


def _without_epochs(value: Partition) -> Partition:
    return value._replace(leader_epoch=0, partition_epoch=0)


_NOTHING = Partition((), (), (), (), (), (), (), -1, "RECOVERED", 0, 0)
"""What comes before a PartitionRecord, which passes over it."""
