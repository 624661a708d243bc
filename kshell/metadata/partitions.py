"""Partitions: their values, how a change merges into one, and topics whose partitions stay undecoded.

A snapshot of a large cluster is mostly partitions, and users look at few of them. So a topic keeps *runs*: ranges of
the snapshot's buffer that hold its partition records. A topic's runs are framed (cut into records) when the topic is
opened, and a partition is decoded when it is read. Partitions that were set later are kept as values next to
the runs, and take precedence over them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from itertools import islice
from operator import itemgetter, lt
from typing import TYPE_CHECKING, Final, NamedTuple

from kshell.metadata.records import ReplayError, Undecoded, decode_known, decode_value
from kshell.metadata.values import BatchPosition, Entry, Origin
from kshell.protocol.framing import iter_values
from kshell.protocol.primitives import ZERO_UUID, Buffer, Uuid
from kshell.protocol.readers import HEAD, KEY, RunReader

if TYPE_CHECKING:
    from kshell.protocol.decoder import Message

RECOVERY_STATES = {0: "RECOVERED", 1: "RECOVERING"}
NO_LEADER_CHANGE = -2
NO_RECOVERY_CHANGE = -1
_INT32 = 1 << 32
_HALF = 1 << 31
_ID = slice(3, 7)
"""Position of the partition's number in a PartitionRecord's value: after frame version, api key and version."""
_RECORD = "PARTITION_RECORD"
_MOST_STATES = 1 << 14
"""The most decoded states of partitions that are cached; with the values they take some 20 MB."""
_ARRAYS = HEAD + KEY
"""Position of the replicas in a PartitionRecord's value."""
_EPOCHS = struct.Struct(">ii")
_WITHOUT_EPOCHS: dict[bytes, Partition] = {}
"""Value of a PartitionRecord with number and topic id zero, without its epochs -> a partition decoded from such a
record. Epochs are left out because they differ most."""


class Partition(NamedTuple):
    """The state of a partition (``org.apache.kafka.metadata.PartitionRegistration``).

    Brokers are given by id; ``leader`` is -1 for none. ``directories`` are those of ``replicas``, in their order.
    """

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


EPOCHS_FROM: Final = 9
"""The epochs, in which partitions differ most, are the last fields of a partition."""


def _recovery(code: int) -> str:
    if code not in RECOVERY_STATES:
        raise ReplayError(f"leader recovery state {code} is not known")
    return RECOVERY_STATES[code]


def _directories(listed: tuple[Uuid, ...] | list[Uuid] | None, replicas: int) -> tuple[Uuid, ...]:
    """Return the log directory of each replica: the MIGRATING id for all where none is assigned (KIP-858)."""
    if not listed or all(directory == ZERO_UUID for directory in listed):
        return (ZERO_UUID,) * replicas
    if len(listed) != replicas:
        raise ReplayError(f"{len(listed)} directories for {replicas} replicas")
    return tuple(listed)


def from_record(data: Message) -> Partition:
    """Return the partition that a PartitionRecord describes. Raises ReplayError if Kafka refuses the record."""
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


def merge(old: Partition, data: Message) -> Partition:
    """Return the partition after a PartitionChangeRecord (``PartitionRegistration.merge``).

    Every change raises the partition epoch; the leader epoch rises only if the change names a leader. Raises
    ReplayError if Kafka refuses the change.
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
        old.leader_epoch if leader == NO_LEADER_CHANGE else java_int(old.leader_epoch + 1),
        java_int(old.partition_epoch + 1),
    )


def java_int(epoch: int) -> int:
    """Wrap an epoch to 32 bits, as a Java ``int`` does: the largest is followed by the smallest."""
    return (epoch + _HALF) % _INT32 - _HALF


Scan = list[tuple[int, Partition | Undecoded]]
"""(number, value) of every partition of a topic, sorted by number."""
Report = Callable[[Origin, str, Undecoded | None], None]
"""Called for a record of a snapshot that turns out wrong when it is framed or decoded: (origin, reason, its bytes if it
could not be decoded)."""


class UndecodedRun(NamedTuple):
    """Partition records of one topic, back to back in one batch of a snapshot: ``buf[start:end]``."""

    buf: Buffer
    start: int
    end: int
    base_offset: int
    timestamp: int
    place: BatchPosition
    report: Report


new_undecoded_run = partial(tuple.__new__, UndecodedRun)
"""Make an :class:`UndecodedRun` from a tuple of its fields, in a third of the time: a snapshot has one per topic."""


class Topic:
    """A topic and its partitions. Only the delta that created or copied it changes it; an image's topics are fixed.

    ``run``: undecoded partition records to begin with, as for :meth:`add_run`.
    """

    __slots__ = ("_changed", "_framed", "_runs", "id", "name", "origin")

    def __init__(self, name: str, topic_id: Uuid, origin: Origin, run: UndecodedRun | None = None) -> None:
        self.name = name
        self.id = topic_id
        self.origin = origin
        self._runs: list[UndecodedRun] = [] if run is None or run.start == run.end else [run]
        self._framed: dict[int, tuple[bytes, int, UndecodedRun]] | None = None
        self._changed: dict[int, Entry[Partition]] = {}

    def copy(self) -> Topic:
        """Return a copy that may be changed; this topic stays as it is."""
        twin = Topic(self.name, self.id, self.origin)
        twin._runs, twin._framed, twin._changed = list(self._runs), self._framed, dict(self._changed)
        return twin

    def add_run(self, run: UndecodedRun) -> None:
        """Add undecoded partition records."""
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
        """Return number -> (value, offset, run) of the records in the runs, framed once and cached."""
        if self._framed is None:
            self._framed = self._frame()
        return self._framed

    def _frame(self) -> dict[int, tuple[bytes, int, UndecodedRun]]:
        """As :meth:`_waiting`, without caching; reports records whose offsets are not consecutive."""
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
        """Return the partitions' numbers, sorted."""
        return sorted(self._waiting().keys() | self._changed.keys()) if self._runs else sorted(self._changed)

    def partition(self, partition_id: int) -> Entry[Partition] | Entry[Undecoded] | None:
        """Return a partition; :class:`Undecoded` if its record in the snapshot is wrong; ``None`` when absent."""
        entry = self._changed.get(partition_id)
        if entry is not None:
            return entry
        waiting = self._waiting().get(partition_id) if self._runs else None
        return None if waiting is None else _decode(*waiting)

    def value(self, partition_id: int) -> Partition | Undecoded | None:
        """As :meth:`partition`, without the origin, which makes it faster."""
        entry = self._changed.get(partition_id)
        if entry is not None:
            return entry.value
        waiting = self._waiting().get(partition_id) if self._runs else None
        return None if waiting is None else _value(*waiting)

    def partitions(self) -> Iterator[tuple[int, Entry[Partition] | Entry[Undecoded]]]:
        """Yield (number, partition with its origin), sorted by number."""
        for number in self.partition_ids():
            entry = self.partition(number)
            if entry is not None:
                yield number, entry

    def scan(self) -> Scan:
        """Return (number, value) of every partition, sorted, without caching framed records: to scan all topics."""
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
        """Return (number, value with its origin) of the partitions that were set over the runs."""
        return iter(self._changed.items())

    def _in_bulk(self) -> Scan | None:
        """Return (number, value) of the partitions in the runs, sorted by number; equal values are one object.
        ``None`` if a record cannot be decoded, has a wrong offset, or repeats a partition: read them one by one then.
        """
        scan: Scan = []
        are_sorted = True
        for run in self._runs:
            read = _READER.partitions(run.buf, run.start, run.end)
            if read is None:
                return None
            are_sorted = not scan and _is_rising(read[0])
            scan += zip(*read, strict=True)
        if not are_sorted:
            scan.sort(key=itemgetter(0))
            if not _is_rising(tuple([number for number, _ in scan])):
                return None
        return scan

    def is_same(self, topic: Topic) -> bool:
        """Whether both topics surely are the same, without decoding anything; ``False`` may mean not known."""
        if self is topic:
            return True
        mine, theirs = self._runs, topic._runs
        same = (self.id, self.name, len(mine)) == (topic.id, topic.name, len(theirs)) and bool(mine)
        return same and not self._changed and not topic._changed and all(map(_same_bytes, mine, theirs))

    def agrees(self, topic: Topic) -> bool:
        """Whether a topic of the same id, in a snapshot, has the same name and partitions."""
        return self.name == topic.name and (self.is_same(topic) or self.scan() == topic.scan())

    def differing(self, topic: Topic) -> list[int]:
        """Return the sorted numbers of partitions that differ; records of equal bytes are not decoded."""
        numbers = []
        for number in sorted({*self.partition_ids(), *topic.partition_ids()}):
            raw = self.raw(number)
            if raw is None or raw != topic.raw(number):
                mine, theirs = self.value(number), topic.value(number)
                if mine is None or mine != theirs:
                    numbers.append(number)
        return numbers

    def raw(self, partition_id: int) -> bytes | None:
        """Return the value of a partition's record if the partition is undecoded; else ``None``."""
        waiting = self._waiting().get(partition_id) if self._runs and partition_id not in self._changed else None
        return None if waiting is None else waiting[0]

    def count(self) -> int:
        """Return how many partitions there are, as ``len``, without caching framed records."""
        return len(self.numbers())

    def numbers(self) -> list[int]:
        """As :meth:`partition_ids`, without caching framed records."""
        numbers: list[int] = []
        for run in self._runs:
            read = _READER.numbers(run.buf, run.start, run.end)
            if read is None:
                return sorted((self._framed or self._frame()).keys() | self._changed.keys())
            numbers += read
        return sorted({*numbers, *self._changed})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Topic):
            return NotImplemented
        return (self.name, self.id) == (other.name, other.id) and list(self.partitions()) == list(other.partitions())

    __hash__ = None  # type: ignore[assignment]  # compared by content, never a key


@lru_cache(1 << 8)
def _is_rising(numbers: tuple[int, ...]) -> bool:
    """Cached, because most topics have the same few numbers of partitions."""
    return all(map(lt, numbers, islice(numbers, 1, None)))


def _same_bytes(mine: UndecodedRun, theirs: UndecodedRun) -> bool:
    return mine.end - mine.start == theirs.end - theirs.start and (
        mine.buf[mine.start : mine.end] == theirs.buf[theirs.start : theirs.end]
    )


def _report_offset(run: UndecodedRun, value: bytes, delta: int, due: int) -> None:
    """Report a record whose offset delta is ``delta`` where ``due`` should follow."""
    decoded = decode_value(value)
    offset = run.base_offset + delta
    origin = Origin(offset, run.timestamp, decoded.name, decoded.version, run.place)
    run.report(origin, f"the record claims offset {offset}, {run.base_offset + due} was expected", None)


def _value(value: bytes, offset: int, run: UndecodedRun) -> Partition | Undecoded:
    """As :func:`_decode`, without the origin, whose making is the greater part of the work where all is well."""
    partition = _READER.state(value)
    return _decode(value, offset, run).value if partition is None else partition


def _decode_without_identity(value: bytes) -> Partition | None:
    """Decode the value of a PartitionRecord in which number and topic id are zero: most such values recur.

    ``None`` if it cannot be decoded, or is not a PartitionRecord that Kafka accepts.
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
    return Partition(*cached[:EPOCHS_FROM], *_EPOCHS.unpack_from(value, at))


def _sound(value: bytes) -> Partition | None:
    """Return the partition of a record's value; ``None`` if it is not a PartitionRecord that Kafka accepts."""
    read = decode_known(value)
    if read is not None and read[0].name == _RECORD:
        try:
            return from_record(read[2])
        except ReplayError:
            pass
    return None


def _epochs_at(value: bytes) -> int | None:
    """Return the position of a PartitionRecord's two epochs: after four arrays of brokers (``None``: not found)."""
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
    """Decode the record at ``offset`` of a snapshot; a wrong one is reported, and stays undecoded."""
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


_READER = RunReader(_decode_without_identity, _MOST_STATES)
