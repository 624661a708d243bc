"""Topics with their whole past: every value that a partition ever had, a short row each.

A row holds a partition's numbers, and the numbers of what many rows have in common (replicas, ISR, …); its record's
time and place are in the index of the log. So a million changes take about 50 MB, and a topic as of any offset is the
rows up to there: nothing is replayed.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator

from kshell.metadata.log_index import ROW, LogIndex
from kshell.metadata.partitions import Partition, Topic
from kshell.metadata.records import Undecoded
from kshell.metadata.values import Entry, Origin
from kshell.protocol.primitives import Uuid

_NUMBER = struct.Struct(f"<i{ROW.size - 4}x")
_EFFECT = struct.Struct(f"<{ROW.size - 12}xiq")


class _Rows(Topic):
    """A topic whose partitions are rows above what a snapshot holds of them."""

    __slots__ = ("_base", "_log", "_rows")

    def __init__(self, name: str, topic_id: Uuid, origin: Origin, log: LogIndex, base: Topic | None) -> None:
        super().__init__(name, topic_id, origin)
        self._log = log
        self._base = base
        self._rows = bytearray()

    def _last(self) -> dict[int, int]:
        """Partition -> its newest row."""
        raise NotImplementedError  # an ABC would make isinstance() slower, which packing asks of every value

    def __len__(self) -> int:
        return self.count()

    def __contains__(self, partition_id: int) -> bool:
        if partition_id in self._changed or partition_id in self._last():
            return True
        return self._base is not None and partition_id in self._base

    def partition_ids(self) -> list[int]:
        """The partitions' numbers, sorted."""
        base = () if self._base is None else self._base.partition_ids()
        return sorted({*base, *self._last(), *self._changed})

    def count(self) -> int:
        """How many partitions there are."""
        return len(self.partition_ids())

    def partition(self, partition_id: int) -> Entry[Partition] | Entry[Undecoded] | None:
        """One partition; ``None`` when absent."""
        changed = self._changed.get(partition_id)
        if changed is not None:
            return changed
        row = self._last().get(partition_id)
        if row is not None:
            return self._log.entry(self._rows, row)
        return None if self._base is None else self._base.partition(partition_id)

    def raw(self, partition_id: int) -> bytes | None:
        """The record of a partition that waits as bytes in the snapshot before the log."""
        if self._base is None or partition_id in self._changed or partition_id in self._last():
            return None
        return self._base.raw(partition_id)

    def scan(self) -> list[tuple[int, Partition | Undecoded]]:
        """Every partition's value, by number."""
        held: dict[int, Partition | Undecoded] = {} if self._base is None else dict(self._base.scan())
        held |= {number: self._log.value(self._rows, row) for number, row in self._last().items()}
        held |= {number: entry.value for number, entry in self._changed.items()}
        return sorted(held.items())


class RecordedTopic(_Rows):
    """A topic that grows while the log is replayed and forgets nothing."""

    __slots__ = ("_newest",)

    def __init__(self, name: str, topic_id: Uuid, origin: Origin, log: LogIndex, base: Topic | None = None) -> None:
        super().__init__(name, topic_id, origin, log, base)
        self._newest: dict[int, int] = {}

    def _last(self) -> dict[int, int]:
        return self._newest

    @property
    def base(self) -> Topic | None:
        """The topic as a snapshot has it, from which the rows go on."""
        return self._base

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self._rows) // ROW.size

    def copy(self) -> Topic:
        """Itself: what was stays readable beside what comes."""
        return self

    def put(self, partition_id: int, entry: Entry[Partition]) -> None:
        """One more value of a partition."""
        self._newest[partition_id] = self.rows
        self._rows += self._log.packed(partition_id, entry)

    def at(self, offset: int) -> Topic:
        """The topic as of an offset."""
        count = bisect_right(range(self.rows), offset, key=self._effective)
        return self._base if count == 0 and self._base is not None else TopicAt(self, count)

    def _effective(self, row: int) -> int:
        lag, offset = _EFFECT.unpack_from(self._rows, row * ROW.size)
        return int(offset + lag)

    def versions(self, partition_id: int, until: int) -> Iterator[tuple[int, Entry[Partition]]]:
        """(offset from which it holds, value with its record) of every value up to an offset, newest first."""
        count = bisect_right(range(self.rows), until, key=self._effective)
        with memoryview(self._rows)[: count * ROW.size] as view:
            found = [row for row, (number,) in enumerate(_NUMBER.iter_unpack(view)) if number == partition_id]
        for row in reversed(found):
            yield self._effective(row), self._log.entry(self._rows, row)

    def every_version(self, until: int) -> Iterator[tuple[int, int, Entry[Partition]]]:
        """(partition, offset from which it holds, value with its record): all up to an offset, oldest first."""
        for row in range(bisect_right(range(self.rows), until, key=self._effective)):
            (number,) = _NUMBER.unpack_from(self._rows, row * ROW.size)
            yield number, self._effective(row), self._log.entry(self._rows, row)

    def packed(self) -> tuple[str, bytes, bytes] | None:
        """All of it as numbers and text: name, id, rows; ``None`` for a topic that a snapshot knows."""
        return None if self._base is not None else (self.name, bytes(self.id), bytes(self._rows))

    @classmethod
    def unpacked(cls, held: tuple[str, bytes, bytes], origin: Origin, log: LogIndex) -> RecordedTopic:
        """The inverse of :meth:`packed`."""
        name, topic_id, rows = held
        topic = cls(name, Uuid(topic_id), origin, log)
        topic._rows += rows
        topic._newest = {number: row for row, (number,) in enumerate(_NUMBER.iter_unpack(rows))}
        return topic

    def first(self, partition_id: int) -> Entry[Partition] | Entry[Undecoded] | None:
        """What the snapshot before the log says of a partition."""
        return None if self._base is None else self._base.partition(partition_id)


class TopicAt(_Rows):
    """A recorded topic as of the offset of one of its rows."""

    __slots__ = ("_count", "_of", "_seen")

    def __init__(self, of: RecordedTopic, count: int) -> None:
        super().__init__(of.name, of.id, of.origin, of._log, of._base)
        self._rows = of._rows
        self._of = of
        self._count = count
        self._seen: dict[int, int] | None = None

    def _last(self) -> dict[int, int]:
        if self._seen is None:
            if self._count == self._of.rows:
                self._seen = dict(self._of._newest)
            else:
                with memoryview(self._rows)[: self._count * ROW.size] as view:
                    self._seen = {number: row for row, (number,) in enumerate(_NUMBER.iter_unpack(view))}
        return self._seen

    def copy(self) -> Topic:
        """A topic to change, while this one stays."""
        twin = TopicAt(self._of, self._count)
        twin._changed = dict(self._changed)
        return twin

    def is_same(self, other: Topic) -> bool:
        """Whether the other is the same topic with the same past; cheap, and never true without cause."""
        if not isinstance(other, TopicAt) or self._changed or other._changed:
            return self is other
        return self._rows is other._rows and self._count == other._count

    def differing(self, other: Topic) -> list[int]:
        """The numbers of partitions that are not the same in both: of one past, only the rows between are looked at."""
        if not isinstance(other, TopicAt) or self._rows is not other._rows or self._changed or other._changed:
            return super().differing(other)
        first, last = sorted((self._count, other._count))
        with memoryview(self._rows)[first * ROW.size : last * ROW.size] as view:
            numbers = {number for (number,) in _NUMBER.iter_unpack(view)}
        return [number for number in sorted(numbers) if self._value(number) != other._value(number)]

    def _value(self, number: int) -> Partition | Undecoded | None:
        row = self._last().get(number)
        if row is not None:
            return self._log.value(self._rows, row)
        entry = None if self._base is None else self._base.partition(number)
        return None if entry is None else entry.value
