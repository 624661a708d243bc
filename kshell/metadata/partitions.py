"""Partitions: their values, how a change merges into one, and topics whose partitions wait as bytes.

A snapshot of a large cluster is mostly partitions, and users look at few of them. So a topic keeps *runs*:
stretches of the snapshot's buffer that hold its partition records. They are framed when the topic is opened, and one
partition is decoded when someone looks at it. Partitions that a log record touched are kept as values beside the runs.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from itertools import islice
from operator import itemgetter, lt
from typing import Any, NamedTuple

from kshell.metadata.records import ReplayError, Undecoded, decode_known, decode_value
from kshell.metadata.values import BatchPosition, Entry, Origin
from kshell.protocol.framing import iter_values
from kshell.protocol.primitives import ZERO_UUID, Buffer, Uuid
from kshell.protocol.readers import HEAD, KEY, RunReader

RECOVERY_STATES = {0: "RECOVERED", 1: "RECOVERING"}
NO_LEADER_CHANGE = -2
NO_RECOVERY_CHANGE = -1
_MOST = (1 << 31) - 1
_ID = slice(3, 7)
"""Where a PartitionRecord's value holds the partition's number: after frame version, api key and version."""
_RECORD = "PARTITION_RECORD"
_MOST_STATES = 1 << 14
"""States of partitions that are remembered while all are looked at; with the values some 20 MB."""
_ARRAYS = HEAD + KEY
"""Where a PartitionRecord's replicas begin."""
_EPOCHS = struct.Struct(">ii")
_WITHOUT_EPOCHS: dict[bytes, Partition] = {}
"""A PartitionRecord of number and topic zero, without its epochs -> a partition that it may be. Epochs differ most."""


class Partition(NamedTuple):
    """``org.apache.kafka.metadata.PartitionRegistration``; brokers by id, ``leader`` -1 for none."""

    replicas: tuple[int, ...]
    directories: tuple[Uuid, ...]
    isr: tuple[int, ...]
    removing_replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    elr: tuple[int, ...]
    last_known_elr: tuple[int, ...]
    leader: int
    leader_recovery_state: str
    leader_epoch: int
    partition_epoch: int


def _recovery(code: int) -> str:
    if code not in RECOVERY_STATES:
        raise ReplayError(f"leader recovery state {code} is not known")
    return RECOVERY_STATES[code]


def _directories(listed: tuple[Uuid, ...] | list[Uuid] | None, replicas: int) -> tuple[Uuid, ...]:
    """Where no directory is assigned, each replica gets the MIGRATING id (KIP-858)."""
    if not listed or all(directory == ZERO_UUID for directory in listed):
        return (ZERO_UUID,) * replicas
    if len(listed) != replicas:
        raise ReplayError(f"{len(listed)} directories for {replicas} replicas")
    return tuple(listed)


def from_record(data: dict[str, Any]) -> Partition:
    """The partition of a PartitionRecord. Raises ReplayError where Kafka refuses it."""
    return Partition(
        replicas=tuple(data["replicas"]),
        directories=_directories(data.get("directories"), len(data["replicas"])),
        isr=tuple(data["isr"]),
        removing_replicas=tuple(data["removingReplicas"]),
        adding_replicas=tuple(data["addingReplicas"]),
        elr=tuple(data.get("eligibleLeaderReplicas") or ()),
        last_known_elr=tuple(data.get("lastKnownElr") or ()),
        leader=data["leader"],
        leader_recovery_state=_recovery(data.get("leaderRecoveryState", 0)),
        leader_epoch=data["leaderEpoch"],
        partition_epoch=data["partitionEpoch"],
    )


def merge(old: Partition, data: dict[str, Any]) -> Partition:
    """The partition after a PartitionChangeRecord (``PartitionRegistration.merge``).

    Every change raises the partition epoch; the leader epoch rises only when the change names a leader.
    """
    get = data.get
    replicas = old.replicas if (new := get("replicas")) is None else tuple(new)
    leader = get("leader", NO_LEADER_CHANGE)
    recovery = get("leaderRecoveryState", NO_RECOVERY_CHANGE)
    return Partition(
        replicas,
        _directories(old.directories if (new := get("directories")) is None else new, len(replicas)),
        old.isr if (new := get("isr")) is None else tuple(new),
        old.removing_replicas if (new := get("removingReplicas")) is None else tuple(new),
        old.adding_replicas if (new := get("addingReplicas")) is None else tuple(new),
        old.elr if (new := get("eligibleLeaderReplicas")) is None else tuple(new),
        old.last_known_elr if (new := get("lastKnownElr")) is None else tuple(new),
        old.leader if leader == NO_LEADER_CHANGE else leader,
        old.leader_recovery_state if recovery == NO_RECOVERY_CHANGE else _recovery(recovery),
        old.leader_epoch if leader == NO_LEADER_CHANGE else _next(old.leader_epoch),
        _next(old.partition_epoch),
    )


def _next(epoch: int) -> int:
    """One more, as an ``int`` of Java: after the largest comes the smallest."""
    return epoch + 1 if epoch < _MOST else -_MOST - 1


Report = Callable[[Origin, str, Undecoded | None], None]
"""Called with a record that turned out wrong when its topic was decoded: (origin, reason, its bytes if not decoded)."""


class UndecodedRun(NamedTuple):
    """Bytes ``start`` to ``end`` of ``buf``: partition records of one topic, back to back, in one batch."""

    buf: Buffer
    start: int
    end: int
    base_offset: int
    timestamp: int
    place: BatchPosition
    report: Report


class Topic:
    """A topic and its partitions. Only the delta that made it changes it; an image's topics stay as they are."""

    __slots__ = ("_changed", "_framed", "_runs", "id", "name", "origin")

    def __init__(self, name: str, topic_id: Uuid, origin: Origin) -> None:
        self.name = name
        self.id = topic_id
        self.origin = origin
        self._runs: list[UndecodedRun] = []
        self._framed: dict[int, tuple[bytes, int, UndecodedRun]] | None = None
        self._changed: dict[int, Entry[Partition]] = {}

    def copy(self) -> Topic:
        """A topic to change, while this one stays."""
        twin = Topic(self.name, self.id, self.origin)
        twin._runs, twin._framed, twin._changed = list(self._runs), self._framed, dict(self._changed)
        return twin

    def add_run(self, run: UndecodedRun) -> None:
        """Add partitions that wait as bytes."""
        last = self._runs[-1] if self._runs else None
        if last is not None and last.buf is run.buf and last.end == run.start:
            self._runs[-1] = last._replace(end=run.end)
        elif run.start < run.end:
            self._runs.append(run)
        self._framed = None

    def put(self, partition_id: int, entry: Entry[Partition]) -> None:
        """Set one partition."""
        self._changed[partition_id] = entry

    def _waiting(self) -> dict[int, tuple[bytes, int, UndecodedRun]]:
        if self._framed is None:
            self._framed = self._frame()
        return self._framed

    def _frame(self) -> dict[int, tuple[bytes, int, UndecodedRun]]:
        framed = {}
        for run in self._runs:
            due: int | None = None
            for delta, value in iter_values(run.buf, run.start, run.end):
                if due is not None and delta != due:
                    _report_offset(run, value, delta, due)
                due = delta + 1
                framed[int.from_bytes(value[_ID], "big", signed=True)] = (value, run.base_offset + delta, run)
        return framed

    def __len__(self) -> int:
        return len(self.partition_ids())

    def __contains__(self, partition_id: int) -> bool:
        return partition_id in self._changed or (bool(self._runs) and partition_id in self._waiting())

    def partition_ids(self) -> list[int]:
        """The partitions' numbers, sorted."""
        return sorted(self._waiting().keys() | self._changed.keys()) if self._runs else sorted(self._changed)

    def partition(self, partition_id: int) -> Entry[Partition] | Entry[Undecoded] | None:
        """One partition; :class:`Undecoded` when its snapshot record breaks its declaration; ``None`` when absent."""
        entry = self._changed.get(partition_id)
        if entry is not None:
            return entry
        waiting = self._waiting().get(partition_id) if self._runs else None
        return None if waiting is None else _decode(*waiting)

    def value(self, partition_id: int) -> Partition | Undecoded | None:
        """As :meth:`partition`, without where the value comes from."""
        entry = self._changed.get(partition_id)
        if entry is not None:
            return entry.value
        waiting = self._waiting().get(partition_id) if self._runs else None
        return None if waiting is None else _value(*waiting)

    def partitions(self) -> Iterator[tuple[int, Entry[Partition] | Entry[Undecoded]]]:
        """Every partition, by number."""
        for number in self.partition_ids():
            entry = self.partition(number)
            if entry is not None:
                yield number, entry

    def scan(self) -> list[tuple[int, Partition | Undecoded]]:
        """Every partition's value, by number: for a look at all topics, after which nothing of it is kept."""
        waiting = self._in_bulk()
        if waiting is not None and not self._changed:
            return waiting
        values: dict[int, Partition | Undecoded] = {} if waiting is None else dict(waiting)
        values |= {number: entry.value for number, entry in self._changed.items()}
        if waiting is None:
            for number, framed in (self._framed or self._frame()).items():
                if number not in values:
                    values[number] = _value(*framed)
        return sorted(values.items())

    def changes(self) -> Iterator[tuple[int, Entry[Partition]]]:
        """The partitions that are kept as values beside the runs."""
        return iter(self._changed.items())

    def _in_bulk(self) -> list[tuple[int, Partition | Undecoded]] | None:
        """What the runs hold, by number; equal values are one object. ``None`` where a record needs a look of its own:
        one that cannot be decoded, whose offset is wrong, or that comes after another of the same partition.
        """
        values: list[tuple[int, Partition | Undecoded]] = []
        for run in self._runs:
            read = _READER.partitions(run.buf, run.start, run.end)
            if read is None:
                return None
            values += read
        if not _is_rising([number for number, _ in values]):
            values.sort(key=itemgetter(0))
            if not _is_rising([number for number, _ in values]):
                return None
        return values

    def is_same(self, topic: Topic) -> bool:
        """Whether the other is surely the same, found without decoding anything."""
        if self is topic:
            return True
        mine, theirs = self._runs, topic._runs
        same = (self.id, self.name, len(mine)) == (topic.id, topic.name, len(theirs)) and bool(mine)
        return same and not self._changed and not topic._changed and all(map(_same_bytes, mine, theirs))

    def agrees(self, topic: Topic) -> bool:
        """Whether a snapshot has the same topic."""
        return self.name == topic.name and (self.is_same(topic) or self.scan() == topic.scan())

    def differing(self, topic: Topic) -> list[int]:
        """The numbers of partitions that are not the same in both; what is the same as bytes is not decoded."""
        numbers = []
        for number in sorted({*self.partition_ids(), *topic.partition_ids()}):
            raw = self.raw(number)
            if raw is None or raw != topic.raw(number):
                mine, theirs = self.partition(number), topic.partition(number)
                if mine is None or theirs is None or mine.value != theirs.value:
                    numbers.append(number)
        return numbers

    def raw(self, partition_id: int) -> bytes | None:
        """The record of a partition that waits as bytes; ``None`` for any other."""
        waiting = self._waiting().get(partition_id) if self._runs and partition_id not in self._changed else None
        return None if waiting is None else waiting[0]

    def count(self) -> int:
        """How many partitions there are, as ``len``, after which nothing is kept."""
        return len(self.numbers())

    def numbers(self) -> list[int]:
        """As :meth:`partition_ids`, after which nothing is kept."""
        numbers: list[int] = []
        for run in self._runs:
            read = _READER.numbers(run.buf, run.start, run.end)
            if read is None:
                return sorted((self._framed or self._frame()).keys() | self._changed.keys())
            numbers += read
        return numbers if not self._changed and _is_rising(numbers) else sorted({*numbers, *self._changed})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Topic):
            return NotImplemented
        return (self.name, self.id) == (other.name, other.id) and list(self.partitions()) == list(other.partitions())

    __hash__ = None  # type: ignore[assignment]  # compared by content, never a key


def _is_rising(numbers: list[int]) -> bool:
    return all(map(lt, numbers, islice(numbers, 1, None)))


def _same_bytes(mine: UndecodedRun, theirs: UndecodedRun) -> bool:
    return mine.end - mine.start == theirs.end - theirs.start and (
        mine.buf[mine.start : mine.end] == theirs.buf[theirs.start : theirs.end]
    )


def _report_offset(run: UndecodedRun, value: bytes, delta: int, due: int) -> None:
    decoded = decode_value(value)
    offset = run.base_offset + delta
    origin = Origin(offset, run.timestamp, decoded.name, decoded.version, run.place)
    run.report(origin, f"the record claims offset {offset}, {run.base_offset + due} was to come", None)


def _value(value: bytes, offset: int, run: UndecodedRun) -> Partition | Undecoded:
    """As :func:`_decode`, without an origin where all is well: that is the greater part of the work."""
    partition = _READER.state(value)
    return _decode(value, offset, run).value if partition is None else partition


def _of_nobody(value: bytes) -> Partition | None:
    """Decode a record without its partition's number and topic: of a million records, most equal another.

    ``None`` where that is nothing, or no partition.
    """
    at = _epochs_at(value)
    if at is None:
        return _sound(value)
    without_epochs = value[:at] + value[at + _EPOCHS.size :]
    cached = _WITHOUT_EPOCHS.get(without_epochs)
    if cached is None:
        cached = _sound(value)
        if cached is None:
            return None
        if len(_WITHOUT_EPOCHS) >= _MOST_STATES:
            _WITHOUT_EPOCHS.clear()
        _WITHOUT_EPOCHS[without_epochs] = cached
    return Partition(*cached[:9], *_EPOCHS.unpack_from(value, at))


def _sound(value: bytes) -> Partition | None:
    read = decode_known(value)
    if read is not None and read[0].name == _RECORD:
        try:
            return from_record(read[2])
        except ReplayError:
            pass
    return None


def _epochs_at(value: bytes) -> int | None:
    """Where a PartitionRecord has its two epochs, if it is one: behind four arrays of brokers, and the leader."""
    at = _ARRAYS
    try:
        for _ in range(4):
            count = value[at]
            if not 0 < count < 0x80:
                return None
            at += 1 + 4 * (count - 1)
    except IndexError:
        return None
    return at + 4 if at + 4 + _EPOCHS.size < len(value) else None


def _decode(value: bytes, offset: int, run: UndecodedRun) -> Entry[Partition] | Entry[Undecoded]:
    decoded = decode_value(value)
    origin = Origin(offset, run.timestamp, decoded.name, decoded.version, run.place)
    if decoded.data is None:
        undecoded = decoded.undecoded or Undecoded(value, "not a partition record", True)
        run.report(origin, undecoded.reason, undecoded)
        return Entry(undecoded, origin)
    try:
        return Entry(from_record(decoded.data), origin)
    except ReplayError as error:
        run.report(origin, str(error), None)
        return Entry(Undecoded(value, str(error), True), origin)


_READER = RunReader(_of_nobody, _MOST_STATES)
