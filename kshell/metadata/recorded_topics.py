"""Topics that a log writes, with their whole past: for each partition the addresses of its records.

Eight bytes a record, and nothing is decoded before somebody looks. A topic as of any offset is the records up to there:
nothing is replayed for it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeGuard

from kshell.metadata.partition_changes import PartitionChanges, Waypoint
from kshell.metadata.partitions import Partition, Topic
from kshell.metadata.record_log import RecordLog
from kshell.metadata.records import Undecoded
from kshell.metadata.values import Entry, Origin
from kshell.protocol.primitives import Uuid

_HALF = 1 << 31
_BUSY = 64
"""Records from which on what a look at a partition found is remembered."""
_STRIDE = 1024
"""Records between two waypoints."""
Addresses = dict[bytes, "array[int]"]
"""A partition's number, as a record has it, and the addresses of its records in the order of their offsets."""


class Agreed(NamedTuple):
    """The state of a topic in which a snapshot inside the log agreed with the log."""

    counts: list[int]
    """How many records each partition had, in the order in which they were filed first."""
    values: list[tuple[int, Partition | Undecoded]]
    """Every partition, by number, as the snapshot has it."""


class _PartitionAt(NamedTuple):
    """A partition after so many of its records."""

    records: int
    waypoint: Waypoint
    partition: Partition


class TopicRecords:
    """What is filed of one topic. ``base``: what a snapshot holds of it, from which the records go on."""

    __slots__ = ("_last", "_waypoints", "addresses", "agreed", "base", "changes", "log")

    def __init__(self, log: RecordLog, changes: PartitionChanges, base: Topic | None) -> None:
        self.log = log
        self.changes = changes
        self.base = base
        self.addresses: Addresses = {}
        self.agreed: Agreed | None = None
        self._last: dict[bytes, _PartitionAt] = {}
        """What was asked for last of a partition."""
        self._waypoints: dict[tuple[bytes, int], Waypoint] = {}
        """Partitions on the way there, every so many records, for looks back."""

    def file(self, number: bytes, address: int) -> None:
        """One more record of a partition."""
        filed = self.addresses.get(number)
        if filed is None:
            self.addresses[number] = array("q", (address,))
        else:
            filed.append(address)

    def first(self, number: bytes) -> Entry[Partition] | Entry[Undecoded] | None:
        """What a partition was before its records."""
        return None if self.base is None else self.base.partition(_to_int(number))

    def value(self, number: bytes, count: int, first: Partition | None, *, remember: bool = False) -> Partition:
        """A partition after so many of its records.

        Args:
            number: the partition's, as records have it.
            count: of its records.
            first: what it was before them.
            remember: whether it will soon be asked for with more of them. What has many is remembered anyway.
        """
        addresses, changes = self.addresses[number], self.changes
        if count < _BUSY and not remember:
            return changes.last(first, addresses if count == len(addresses) else addresses[:count])
        last = self._last.get(number)
        if last is not None and last.records == count:
            return last.partition
        if last is not None and last.records > count:
            replayed = count - count % _STRIDE
            waypoint = self._waypoints[number, replayed] if replayed else changes.begin(first)
            return changes.value(changes.after(waypoint, addresses[replayed:count]))
        replayed, waypoint = (0, changes.begin(first)) if last is None else last[:2]
        while replayed < count:
            stop = min(count, replayed - replayed % _STRIDE + _STRIDE)
            waypoint = changes.after(waypoint, addresses[replayed:stop])
            replayed = stop
            if replayed % _STRIDE == 0:
                self._waypoints[number, replayed] = waypoint
        partition = changes.value(waypoint)
        self._last[number] = _PartitionAt(count, waypoint, partition)
        return partition

    def entries(self, number: bytes, count: int) -> Iterator[Entry[Partition]]:
        """A partition after each of the first ``count`` of its records."""
        addresses = self.addresses[number][:count]
        values = self.changes.every(self.first_value(number), addresses)
        for address, value in zip(addresses, values, strict=True):
            yield Entry(value, self.log.origin(address))

    def first_value(self, number: bytes) -> Partition | None:
        """As :meth:`first`; ``None`` for what was no partition."""
        first = self.first(number)
        return first.value if first is not None and isinstance(first.value, Partition) else None


class _FromRecords(Topic):
    """A topic whose partitions are records, over what a snapshot holds of them."""

    __slots__ = ("records",)

    def __init__(self, name: str, topic_id: Uuid, origin: Origin, records: TopicRecords) -> None:
        super().__init__(name, topic_id, origin)
        self.records = records
        """What is filed of it."""

    def _count(self, addresses: array[int]) -> int:
        """How many of a partition's records count."""
        raise NotImplementedError  # an ABC would make isinstance() slower

    def _value(self, number: bytes, count: int, first: Partition | None) -> Partition:
        return self.records.value(number, count, first)

    def _filed(self, partition_id: int) -> tuple[bytes, int]:
        """A partition's number as records have it, and how many of its records count."""
        if not -_HALF <= partition_id < _HALF:
            return b"", 0
        number = _to_bytes(partition_id)
        addresses = self.records.addresses.get(number)
        return number, 0 if addresses is None else self._count(addresses)

    def _all_filed(self) -> list[tuple[int, bytes, int]]:
        """Every partition with records that count: (number, the same as records have it, how many)."""
        # A copy: another thread may be filing.
        counts = [(number, self._count(addresses)) for number, addresses in list(self.records.addresses.items())]
        return [(_to_int(number), number, count) for number, count in counts if count]

    def __len__(self) -> int:
        return self.count()

    def __contains__(self, partition_id: int) -> bool:
        if partition_id in self._changed or self._filed(partition_id)[1]:
            return True
        base = self.records.base
        return base is not None and partition_id in base

    def partition_ids(self) -> list[int]:
        """The partitions' numbers, sorted."""
        base = self.records.base
        return sorted({*(() if base is None else base.partition_ids()), *self._filed_ids(), *self._changed})

    def _filed_ids(self) -> Iterator[int]:
        return (partition_id for partition_id, _, _ in self._all_filed())

    def count(self) -> int:
        """How many partitions there are."""
        return len(self.numbers())

    def numbers(self) -> list[int]:
        """As :meth:`partition_ids`, after which nothing is kept."""
        base = self.records.base
        return sorted({*(() if base is None else base.numbers()), *self._filed_ids(), *self._changed})

    def partition(self, partition_id: int) -> Entry[Partition] | Entry[Undecoded] | None:
        """One partition; ``None`` when absent."""
        changed = self._changed.get(partition_id)
        if changed is not None:
            return changed
        number, count = self._filed(partition_id)
        records = self.records
        if not count:
            return None if records.base is None else records.base.partition(partition_id)
        origin = records.log.origin(records.addresses[number][count - 1])
        return Entry(self._value(number, count, records.first_value(number)), origin)

    def value(self, partition_id: int) -> Partition | Undecoded | None:
        """As :meth:`partition`, without where the value comes from."""
        changed = self._changed.get(partition_id)
        if changed is not None:
            return changed.value
        number, count = self._filed(partition_id)
        if count:
            return self._value(number, count, self.records.first_value(number))
        return None if self.records.base is None else self.records.base.value(partition_id)

    def decoded(self) -> Topic:
        """The same topic without the log: every partition that has records as a value."""
        base = self.records.base
        topic = Topic(self.name, self.id, self.origin) if base is None else base.copy()
        for partition_id in {*self._filed_ids(), *self._changed}:
            entry = self.partition(partition_id)
            if entry is not None and isinstance(entry.value, Partition):
                topic.put(partition_id, Entry(entry.value, entry.origin))
        return topic

    def raw(self, partition_id: int) -> bytes | None:
        """The record of a partition that waits as bytes in the snapshot before the log."""
        base = self.records.base
        if base is None or partition_id in self._changed or self._filed(partition_id)[1]:
            return None
        return base.raw(partition_id)

    def scan(self) -> list[tuple[int, Partition | Undecoded]]:
        """Every partition's value, by number."""
        records = self.records
        values: dict[int, Partition | Undecoded] = {} if records.base is None else dict(records.base.scan())
        for partition_id, number, count in self._all_filed():
            first = values.get(partition_id)
            values[partition_id] = self._value(number, count, first if isinstance(first, Partition) else None)
        values |= {partition_id: entry.value for partition_id, entry in self._changed.items()}
        return sorted(values.items())


class RecordedTopic(_FromRecords):
    """A topic that grows while the log is replayed and forgets nothing."""

    __slots__ = ()

    def _count(self, addresses: array[int]) -> int:
        return len(addresses)

    def _value(self, number: bytes, count: int, first: Partition | None) -> Partition:
        return self.records.value(number, count, first, remember=True)  # who asks replays, and goes on

    @property
    def base(self) -> Topic | None:
        """The topic as a snapshot has it, from which the records go on."""
        return self.records.base

    def copy(self) -> Topic:
        """Itself: what was stays readable beside what comes."""
        return self

    def agrees(self, topic: Topic) -> bool:
        """Whether a snapshot inside the log has the same topic; agreement is remembered.

        Of what the snapshot before it agreed to, only partitions that were recorded since are looked at.
        """
        if self.name != topic.name or self._changed:
            return False
        records, theirs = self.records, topic.scan()
        counts = list(map(len, records.addresses.values()))
        agreed = records.agreed
        is_unchanged = agreed is not None and agreed.counts == counts
        if (agreed.values if agreed is not None and is_unchanged else self._expected(agreed, counts)) != theirs:
            return False
        # The snapshot's own objects: in the next one, what says the same is mostly the same object.
        records.agreed = Agreed(counts, theirs)
        return True

    def _expected(self, agreed: Agreed | None, counts: list[int]) -> list[tuple[int, Partition | Undecoded]]:
        """Every partition's value, by number: those that nothing was recorded of since a snapshot as it has them."""
        records = self.records
        if agreed is None or len(agreed.counts) != len(counts):
            return self.scan()
        values = dict(agreed.values)
        for number, before, count in zip(records.addresses, agreed.counts, counts, strict=True):
            if before != count:
                values[_to_int(number)] = self._value(number, count, records.first_value(number))
        return sorted(values.items())

    def until(self, limit: int) -> TopicAt:
        """The topic with the records below an address: it stays as it is while more are filed."""
        return TopicAt(self, limit)

    def at(self, offset: int) -> Topic:
        """The topic as of an offset."""
        return self.until(self.records.log.limit(offset))

    def versions(self, partition_id: int, until: int) -> Iterator[tuple[int, Entry[Partition]]]:
        """(offset from which it holds, value with its record) of every value up to an offset, newest first."""
        return reversed(self._versions(_to_bytes(partition_id), until))

    def every_version(self, until: int) -> Iterator[tuple[int, int, Entry[Partition]]]:
        """(partition, offset from which it holds, value with its record): all up to an offset.

        Those of one partition after those of another, oldest first.
        """
        for number in self.records.addresses:
            for since, entry in self._versions(number, until):
                yield _to_int(number), since, entry

    def states(
        self, until: int, first: Mapping[int, Partition | Undecoded]
    ) -> Iterator[tuple[int, Iterator[tuple[int, Waypoint]]]]:
        """Each partition with records up to an offset: its number, and what each record made of it, in order.

        As :meth:`every_version`, at a fraction of the cost: the records behind the values are not looked up.

        Args:
            until: the last offset that counts.
            first: the partitions before their records, as the snapshot has them.

        Returns:
            (number, (offset from which it holds, value) of every record).
        """
        records = self.records
        limit, effective, waypoints = records.log.limit(until), records.log.effective_offsets, records.changes.waypoints
        for number, addresses in list(records.addresses.items()):
            counted = addresses[: bisect_left(addresses, limit)]
            if counted:
                partition_id = _to_int(number)
                before = first.get(partition_id)
                values = waypoints(before if isinstance(before, Partition) else None, counted)
                yield partition_id, zip(effective(counted), values, strict=True)

    def _versions(self, number: bytes, until: int) -> list[tuple[int, Entry[Partition]]]:
        records = self.records
        addresses = records.addresses.get(number)
        if addresses is None:
            return []
        effective = records.log.effective
        count = bisect_right(addresses, until, key=effective)
        entries = records.entries(number, count)
        return [(effective(address), entry) for address, entry in zip(addresses[:count], entries, strict=True)]

    def packed(self) -> tuple[str, bytes, dict[bytes, bytes]] | None:
        """All of it as text and bytes: name, id, addresses; ``None`` for a topic that a snapshot knows."""
        records = self.records
        if records.base is not None:
            return None
        return self.name, bytes(self.id), {number: filed.tobytes() for number, filed in records.addresses.items()}

    @classmethod
    def unpacked(
        cls, packed: tuple[str, bytes, dict[bytes, bytes]], origin: Origin, log: RecordLog, changes: PartitionChanges
    ) -> RecordedTopic:
        """The inverse of :meth:`packed`."""
        name, topic_id, addresses = packed
        records = TopicRecords(log, changes, None)
        records.addresses = {number: array("q", filed) for number, filed in addresses.items()}
        return cls(name, Uuid(topic_id), origin, records)

    def first(self, partition_id: int) -> Entry[Partition] | Entry[Undecoded] | None:
        """The partition in the snapshot before the log."""
        return self.records.first(_to_bytes(partition_id))


class TopicAt(_FromRecords):
    """A recorded topic with the records below an address (``limit``)."""

    __slots__ = ("_limit", "_of")

    def __init__(self, of: RecordedTopic, limit: int) -> None:
        super().__init__(of.name, of.id, of.origin, of.records)
        self._of = of
        self._limit = limit

    @property
    def recorded(self) -> RecordedTopic:
        """The topic with all that is filed of it."""
        return self._of

    def _count(self, addresses: array[int]) -> int:
        # Most have no record from the limit on.
        return len(addresses) if addresses[-1] < self._limit else bisect_left(addresses, self._limit)

    def copy(self) -> Topic:
        """A topic to change, while this one stays."""
        twin = TopicAt(self._of, self._limit)
        twin._changed = dict(self._changed)
        return twin

    def is_same(self, topic: Topic) -> bool:
        """Whether the other is the same topic with the same past; cheap, and never true without cause."""
        if self is topic:
            return True
        if not self._shares(topic):
            return False
        return not self._between(topic)

    def differing(self, topic: Topic) -> list[int]:
        """The numbers of partitions that are not the same in both: of one past, only records between are looked at."""
        if not self._shares(topic):
            return super().differing(topic)
        numbers = []
        for number in self._between(topic):
            partition_id = _to_int(number)
            mine, theirs = self.partition(partition_id), topic.partition(partition_id)
            if mine is None or theirs is None or mine.value != theirs.value:
                numbers.append(partition_id)
        return sorted(numbers)

    def _shares(self, topic: Topic) -> TypeGuard[TopicAt]:
        """Whether the two are points in time of one topic."""
        if not isinstance(topic, TopicAt) or self._changed or topic._changed:
            return False
        return self.records is topic.records

    def _between(self, topic: TopicAt) -> list[bytes]:
        """The numbers of partitions that have records between this point in time and another."""
        low, high = sorted((self._limit, topic._limit))
        filed = list(self.records.addresses.items())
        return [number for number, addresses in filed if bisect_left(addresses, low) < bisect_left(addresses, high)]


def _to_int(number: bytes) -> int:
    return int.from_bytes(number, "big", signed=True)


def _to_bytes(partition_id: int) -> bytes:
    return partition_id.to_bytes(4, "big", signed=True)
