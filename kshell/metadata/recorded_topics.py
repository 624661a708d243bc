"""Topics with their whole past: for each partition the addresses of its records in the log, in order.

A replay files records here (:meth:`TopicRecords.file`) instead of decoding them, at eight bytes per record. A partition
is made from its records only when it is asked for. A topic as of an offset (:class:`TopicAt`) is the same lists of
addresses, cut off at a limit: nothing is replayed for it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeGuard

from kshell.metadata.partition_changes import PartitionChanges, Waypoint
from kshell.metadata.partitions import Partition, Scan, Topic
from kshell.metadata.record_log import RecordLog
from kshell.metadata.records import Undecoded
from kshell.metadata.values import Entry, Origin
from kshell.protocol.primitives import Uuid

_HALF = 1 << 31
_BUSY = 64
"""Records from which on the state of a partition, once made from them, is cached."""
_STRIDE = 1024
"""Records between two cached waypoints of a partition."""
Addresses = dict[bytes, "array[int]"]
"""Partition -> the addresses of its records, in the order of offsets. The key, called ``key`` in this module, is the
partition's number as records have it: four bytes, big-endian."""


class AgreedState(NamedTuple):
    """The state of a topic when a snapshot that lies inside the log agreed with the log's records."""

    counts: list[int]
    """How many records each partition had; partitions in the order of :attr:`TopicRecords.addresses`."""
    values: Scan
    """Its partitions in the snapshot."""


class _PartitionAt(NamedTuple):
    """A partition after the first ``records`` of its records."""

    records: int
    waypoint: Waypoint
    partition: Partition


class TopicRecords:
    """The filed records of one topic. ``base`` is the topic in the snapshot before them; ``None`` without one."""

    __slots__ = ("_last", "_waypoints", "addresses", "agreed", "base", "changes", "log")

    def __init__(self, log: RecordLog, changes: PartitionChanges, base: Topic | None) -> None:
        self.log = log
        self.changes = changes
        self.base = base
        self.addresses: Addresses = {}
        self.agreed: AgreedState | None = None
        self._last: dict[bytes, _PartitionAt] = {}
        """Partition -> its latest state that was cached."""
        self._waypoints: dict[tuple[bytes, int], Waypoint] = {}
        """(partition, number of its records) -> the state after them, for questions about earlier states."""

    def file(self, key: bytes, address: int) -> None:
        """Add the address of a partition's next record."""
        filed = self.addresses.get(key)
        if filed is None:
            self.addresses[key] = array("q", (address,))
        else:
            filed.append(address)

    def first(self, key: bytes) -> Entry[Partition] | Entry[Undecoded] | None:
        """Return the partition before its records, which is that of the snapshot; ``None`` if it is not there."""
        return None if self.base is None else self.base.partition(_to_int(key))

    def value(self, key: bytes, count: int, first: Partition | None, *, remember: bool = False) -> Partition:
        """Return a partition after the first ``count`` of its records.

        Args:
            key: the partition's number, in four bytes.
            count: how many of its records apply, at least one.
            first: the partition before its records; ``None`` if the first of them is a PartitionRecord.
            remember: whether to cache the state because it will soon be asked for after more records. With many
                records (:data:`_BUSY`) it is cached anyway.
        """
        addresses, changes = self.addresses[key], self.changes
        if count < _BUSY and not remember:
            return changes.last(first, addresses if count == len(addresses) else addresses[:count])
        last = self._last.get(key)
        if last is not None and last.records == count:
            return last.partition
        if last is not None and last.records > count:
            replayed = count - count % _STRIDE
            waypoint = self._waypoints[key, replayed] if replayed else changes.begin(first)
            return changes.value(changes.after(waypoint, addresses[replayed:count]))
        replayed, waypoint = (0, changes.begin(first)) if last is None else last[:2]
        while replayed < count:
            stop = min(count, replayed - replayed % _STRIDE + _STRIDE)
            waypoint = changes.after(waypoint, addresses[replayed:stop])
            replayed = stop
            if replayed % _STRIDE == 0:
                self._waypoints[key, replayed] = waypoint
        partition = changes.value(waypoint)
        self._last[key] = _PartitionAt(count, waypoint, partition)
        return partition

    def entries(self, key: bytes, count: int) -> Iterator[Entry[Partition]]:
        """Yield a partition after each of the first ``count`` of its records, with that record as origin."""
        addresses = self.addresses[key][:count]
        values = self.changes.every(self.first_value(key), addresses)
        for address, value in zip(addresses, values, strict=True):
            yield Entry(value, self.log.origin(address))

    def first_value(self, key: bytes) -> Partition | None:
        """As :meth:`first`, without the origin; ``None`` also where the snapshot's record cannot be decoded."""
        first = self.first(key)
        return first.value if first is not None and isinstance(first.value, Partition) else None


class _TopicFromRecords(Topic):
    """A topic whose partitions are made from filed records, and otherwise taken from the snapshot before the log.

    Subclasses say how many of a partition's records apply (:meth:`_count`). Values that were put directly, as in any
    :class:`Topic`, take precedence over both.
    """

    __slots__ = ("records",)

    def __init__(self, name: str, topic_id: Uuid, origin: Origin, records: TopicRecords) -> None:
        super().__init__(name, topic_id, origin)
        self.records = records
        """The filed records of the topic."""

    def _count(self, addresses: array[int]) -> int:
        """Return how many of a partition's records apply, given the addresses of all."""
        raise NotImplementedError  # an ABC would make isinstance() slower

    def _value(self, key: bytes, count: int, first: Partition | None) -> Partition:
        return self.records.value(key, count, first)

    def _filed(self, partition_id: int) -> tuple[bytes, int]:
        """Return a partition's key, and how many of its records apply; 0 for a partition without records."""
        if not -_HALF <= partition_id < _HALF:
            return b"", 0
        key = _to_bytes(partition_id)
        addresses = self.records.addresses.get(key)
        return key, 0 if addresses is None else self._count(addresses)

    def _all_filed(self) -> list[tuple[int, bytes, int]]:
        """Return (number, key, how many records apply) of every partition with records that apply."""
        # A copy: another thread may be filing.
        counts = [(key, self._count(addresses)) for key, addresses in list(self.records.addresses.items())]
        return [(_to_int(key), key, count) for key, count in counts if count]

    def __len__(self) -> int:
        return self.count()

    def __contains__(self, partition_id: int) -> bool:
        if partition_id in self._changed or self._filed(partition_id)[1]:
            return True
        base = self.records.base
        return base is not None and partition_id in base

    def partition_ids(self) -> list[int]:
        """Return the partitions' numbers, sorted."""
        base = self.records.base
        return sorted({*(() if base is None else base.partition_ids()), *self._filed_ids(), *self._changed})

    def _filed_ids(self) -> Iterator[int]:
        return (partition_id for partition_id, _, _ in self._all_filed())

    def count(self) -> int:
        """Return how many partitions there are, without caching anything."""
        return len(self.numbers())

    def numbers(self) -> list[int]:
        """As :meth:`partition_ids`, but nothing is cached in the snapshot's topic."""
        base = self.records.base
        return sorted({*(() if base is None else base.numbers()), *self._filed_ids(), *self._changed})

    def partition(self, partition_id: int) -> Entry[Partition] | Entry[Undecoded] | None:
        """Return a partition with its origin; ``None`` when absent."""
        changed = self._changed.get(partition_id)
        if changed is not None:
            return changed
        key, count = self._filed(partition_id)
        records = self.records
        if not count:
            return None if records.base is None else records.base.partition(partition_id)
        origin = records.log.origin(records.addresses[key][count - 1])
        return Entry(self._value(key, count, records.first_value(key)), origin)

    def value(self, partition_id: int) -> Partition | Undecoded | None:
        """As :meth:`partition`, without the origin."""
        changed = self._changed.get(partition_id)
        if changed is not None:
            return changed.value
        key, count = self._filed(partition_id)
        if count:
            return self._value(key, count, self.records.first_value(key))
        return None if self.records.base is None else self.records.base.value(partition_id)

    def decoded(self) -> Topic:
        """Return the same topic independent of the log: every partition that has records is decoded."""
        base = self.records.base
        topic = Topic(self.name, self.id, self.origin) if base is None else base.copy()
        for partition_id in {*self._filed_ids(), *self._changed}:
            entry = self.partition(partition_id)
            if entry is not None and isinstance(entry.value, Partition):
                topic.put(partition_id, Entry(entry.value, entry.origin))
        return topic

    def raw(self, partition_id: int) -> bytes | None:
        """Return the undecoded snapshot record of a partition; ``None`` if it has records that apply, or is decoded."""
        base = self.records.base
        if base is None or partition_id in self._changed or self._filed(partition_id)[1]:
            return None
        return base.raw(partition_id)

    def scan(self) -> Scan:
        """Return (number, value) of every partition, sorted by number."""
        records = self.records
        values: dict[int, Partition | Undecoded] = {} if records.base is None else dict(records.base.scan())
        for partition_id, key, count in self._all_filed():
            first = values.get(partition_id)
            values[partition_id] = self._value(key, count, first if isinstance(first, Partition) else None)
        values |= {partition_id: entry.value for partition_id, entry in self._changed.items()}
        return sorted(values.items())


class RecordedTopic(_TopicFromRecords):
    """A topic during the replay of a log: with all records filed so far. Its past can be asked for at any offset."""

    __slots__ = ()

    def _count(self, addresses: array[int]) -> int:
        return len(addresses)

    def _value(self, key: bytes, count: int, first: Partition | None) -> Partition:
        return self.records.value(key, count, first, remember=True)  # asked for by a replay, which will soon file more

    @property
    def base(self) -> Topic | None:
        """The topic in the snapshot before the log, to which the records apply."""
        return self.records.base

    def copy(self) -> Topic:
        """Return this topic itself: filing more records leaves its past readable."""
        return self

    def agrees(self, topic: Topic) -> bool:
        """Whether a topic of a snapshot inside the log has the same name and partitions.

        CopyComparison is remembered: at the next snapshot, only partitions with records since then are made again.
        """
        if self.name != topic.name or self._changed:
            return False
        records, theirs = self.records, topic.scan()
        counts = list(map(len, records.addresses.values()))
        agreed = records.agreed
        is_unchanged = agreed is not None and agreed.counts == counts
        if (agreed.values if agreed is not None and is_unchanged else self._expected(agreed, counts)) != theirs:
            return False
        # The snapshot's own objects: in the next snapshot, an equal partition is mostly the same object.
        records.agreed = AgreedState(counts, theirs)
        return True

    def _expected(self, agreed: AgreedState | None, counts: list[int]) -> Scan:
        """Return (number, value) of every partition as the log has it, sorted by number.

        Args:
            agreed: the previous agreement: a partition without records since then is taken from it, not made again.
            counts: how many records each partition has now, in the order of :attr:`TopicRecords.addresses`.
        """
        records = self.records
        if agreed is None or len(agreed.counts) != len(counts):
            return self.scan()
        values = dict(agreed.values)
        for key, before, count in zip(records.addresses, agreed.counts, counts, strict=True):
            if before != count:
                values[_to_int(key)] = self._value(key, count, records.first_value(key))
        return sorted(values.items())

    def below(self, address: int) -> TopicAt:
        """Return the topic with only its records below an address; filing more records does not change it."""
        return TopicAt(self, address)

    def at(self, offset: int) -> Topic:
        """Return the topic as of an offset."""
        return self.below(self.records.log.limit(offset))

    def versions(self, partition_id: int, until: int) -> Iterator[tuple[int, Entry[Partition]]]:
        """Yield (offset at which it took effect, value and origin) of a partition up to an offset, newest first."""
        return reversed(self._versions(_to_bytes(partition_id), until))

    def every_version(self, until: int) -> Iterator[tuple[int, int, Entry[Partition]]]:
        """Yield (partition, offset at which it took effect, value and origin) of all versions up to an offset.

        Partition by partition; the versions of a partition come oldest first.
        """
        for key in self.records.addresses:
            for since, entry in self._versions(key, until):
                yield _to_int(key), since, entry

    def states(
        self, until: int, first: Mapping[int, Partition | Undecoded]
    ) -> Iterator[tuple[int, Iterator[tuple[int, Waypoint]]]]:
        """Yield every partition with records up to an offset, and its state after each of these records.

        As :meth:`every_version`, at a fraction of the cost: the origins of the values are not looked up.

        Args:
            until: the last offset, inclusive.
            first: number -> partition in the snapshot, before the log's records.

        Returns:
            (number, [(offset at which it took effect, state), ...]), the states oldest first.
        """
        records = self.records
        limit, effective, waypoints = records.log.limit(until), records.log.effective_offsets, records.changes.waypoints
        for key, addresses in list(records.addresses.items()):
            counted = addresses[: bisect_left(addresses, limit)]
            if counted:
                partition_id = _to_int(key)
                before = first.get(partition_id)
                values = waypoints(before if isinstance(before, Partition) else None, counted)
                yield partition_id, zip(effective(counted), values, strict=True)

    def _versions(self, key: bytes, until: int) -> list[tuple[int, Entry[Partition]]]:
        """As :meth:`versions`, oldest first, for the partition with a key."""
        records = self.records
        addresses = records.addresses.get(key)
        if addresses is None:
            return []
        effective = records.log.effective
        count = bisect_right(addresses, until, key=effective)
        entries = records.entries(key, count)
        return [(effective(address), entry) for address, entry in zip(addresses[:count], entries, strict=True)]

    def packed(self) -> tuple[str, bytes, dict[bytes, bytes]] | None:
        """Return the topic as (name, id, partition -> its addresses as bytes); ``None`` if it has a base."""
        records = self.records
        if records.base is not None:
            return None
        return self.name, bytes(self.id), {key: filed.tobytes() for key, filed in records.addresses.items()}

    @classmethod
    def unpacked(
        cls, packed: tuple[str, bytes, dict[bytes, bytes]], origin: Origin, log: RecordLog, changes: PartitionChanges
    ) -> RecordedTopic:
        """Return the topic that :meth:`packed` was called on, given its origin and the log of its records."""
        name, topic_id, addresses = packed
        records = TopicRecords(log, changes, None)
        records.addresses = {key: array("q", filed) for key, filed in addresses.items()}
        return cls(name, Uuid(topic_id), origin, records)

    def first(self, partition_id: int) -> Entry[Partition] | Entry[Undecoded] | None:
        """Return the partition in the snapshot before the log; ``None`` if it is not there."""
        return self.records.first(_to_bytes(partition_id))


class TopicAt(_TopicFromRecords):
    """A recorded topic (``of``) at one point in time: with its records below the address ``limit``."""

    __slots__ = ("__weakref__", "_limit", "_of", "_scan")

    def __init__(self, of: RecordedTopic, limit: int) -> None:
        super().__init__(of.name, of.id, of.origin, of.records)
        self._of = of
        self._limit = limit
        self._scan: Scan | None = None

    @property
    def recorded(self) -> RecordedTopic:
        """The topic with all records that are filed so far."""
        return self._of

    def _count(self, addresses: array[int]) -> int:
        # The common case: no record of the partition is at or above the limit.
        return len(addresses) if addresses[-1] < self._limit else bisect_left(addresses, self._limit)

    def scan(self) -> Scan:
        """As :meth:`.Topic.scan`, kept for the next command; not to be changed."""
        if self._changed:
            return super().scan()
        scan = self._scan  # once, because another thread may drop it
        if scan is None:
            scan = self._scan = super().scan()
            self.records.changes.kept_scans.add(self._forget_scan, len(scan))
        return scan

    def _forget_scan(self) -> None:
        """Drop the scan that is kept."""
        self._scan = None

    def copy(self) -> Topic:
        """Return a copy that may be changed; this topic stays as it is."""
        twin = TopicAt(self._of, self._limit)
        twin._changed = dict(self._changed)
        return twin

    def is_same(self, topic: Topic) -> bool:
        """Whether both surely are the same state of one topic. Decodes nothing; ``False`` may mean not known."""
        if self is topic:
            return True
        if not self._shares(topic):
            return False
        return not self._between(topic)

    def differing(self, topic: Topic) -> list[int]:
        """Return the numbers of partitions that differ; for one topic at two times, only records in between matter."""
        if not self._shares(topic):
            return super().differing(topic)
        numbers = []
        for key in self._between(topic):
            partition_id = _to_int(key)
            mine, theirs = self.value(partition_id), topic.value(partition_id)
            if mine is None or mine != theirs:
                numbers.append(partition_id)
        return sorted(numbers)

    def _shares(self, topic: Topic) -> TypeGuard[TopicAt]:
        """Whether both are points in time of one recorded topic, without values put directly."""
        if not isinstance(topic, TopicAt) or self._changed or topic._changed:
            return False
        return self.records is topic.records

    def _between(self, topic: TopicAt) -> list[bytes]:
        """Return the keys of partitions that have records between this point in time and another one."""
        low, high = sorted((self._limit, topic._limit))
        filed = list(self.records.addresses.items())
        return [key for key, addresses in filed if bisect_left(addresses, low) < bisect_left(addresses, high)]


def _to_int(key: bytes) -> int:
    return int.from_bytes(key, "big", signed=True)


def _to_bytes(partition_id: int) -> bytes:
    return partition_id.to_bytes(4, "big", signed=True)
