"""Where a log's records are, and what many values that they wrote have in common: an index by offset."""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_right
from collections.abc import Hashable
from typing import Generic, TypeVar

from kshell.metadata.partitions import Partition
from kshell.metadata.values import Entry, Origin, Place
from kshell.protocol.batches import Batch
from kshell.protocol.primitives import Uuid

ROW = struct.Struct("<9iq")
"""Partition; numbers of replicas with directories, of the ISR, of what is rare, of the kind; leader, leader epoch,
partition epoch; how many offsets after its own the record took effect (in a transaction); its own offset."""
_T = TypeVar("_T", bound=Hashable)


class Interned(Generic[_T]):
    """Values, each kept once, and a number for each."""

    def __init__(self) -> None:
        self._numbers: dict[_T, int] = {}
        self.values: list[_T] = []

    def number(self, value: _T) -> int:
        """The value's number, the same for an equal one."""
        known = self._numbers.get(value)
        if known is None:
            known = self._numbers[value] = len(self.values)
            self.values.append(value)
        return known


class LogIndex:
    """Where the log's records are, by offset, from ``start`` on: their time, epoch, file and batch."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.end = start
        """The offset after the last record."""
        self.effective = start
        """The offset at which what is being replayed takes effect."""
        self.replicas: Interned[tuple[tuple[int, ...], tuple[Uuid, ...]]] = Interned()
        self.brokers: Interned[tuple[int, ...]] = Interned()
        self.rare: Interned[tuple[tuple[int, ...], ...]] = Interned()
        self.kinds: Interned[tuple[str, int, str]] = Interned()
        self._uuids: dict[Uuid, Uuid] = {}
        self._files: Interned[str] = Interned()
        self._times, self._times_from = array("q"), array("q")
        """Epoch milliseconds, and the first of the records in a row that have them: those of a batch, as a rule."""
        self._is_metadata = bytearray()
        """One a batch: 0 for control records."""
        self._bases, self._positions = array("q"), array("q")
        self._epochs, self._file_numbers = array("i"), array("i")
        self.last_batch: tuple[int, int] | None = None
        """Base offset and CRC of the last batch."""

    def batch(self, batch: Batch, file: str) -> None:
        """One more batch; its records follow."""
        if self.last_batch is None:
            self.start = self.end = max(self.start, batch.base_offset)  # a live source gives nothing before its start
        self._bases.append(batch.base_offset)
        self._is_metadata.append(not batch.is_control)
        self._positions.append(batch.position)
        self._epochs.append(batch.epoch)
        self._file_numbers.append(self._files.number(file))
        self.last_batch = batch.base_offset, batch.crc

    def record(self, timestamp: int) -> None:
        """One more record."""
        if not self._times or self._times[-1] != timestamp:
            self._times.append(timestamp)
            self._times_from.append(self.end)
        self.end += 1

    def timestamp(self, offset: int) -> int:
        """When the record was written, in epoch milliseconds."""
        return self._times[bisect_right(self._times_from, offset) - 1]

    def offset_by(self, time_ms: int) -> int | None:
        """The last record written by then; ``None`` for none, and where the clocks of the log leave it open."""
        if not all(map(int.__le__, self._times, self._times[1:])):
            return None
        found = bisect_right(self._times, time_ms)
        last = self.end if found == len(self._times) else self._times_from[found]
        return last - 1 if found else None

    def last_metadata(self, offset: int) -> int | None:
        """The last record up to an offset that is no control record."""
        at = bisect_right(self._bases, offset) - 1
        if at < 0 or offset < self.start:
            return None
        found = self._is_metadata.rfind(1, 0, at + 1)
        last = offset if found == at else self._bases[found + 1] - 1
        return last if found >= 0 and last >= self.start else None

    def place(self, offset: int) -> Place:
        """The batch of the record at an offset."""
        at = bisect_right(self._bases, offset) - 1
        return Place(self._files.values[self._file_numbers[at]], self._positions[at], self._epochs[at], False)

    def directories(self, given: tuple[Uuid, ...]) -> tuple[Uuid, ...]:
        """The same ids, each kept once."""
        known = self._uuids
        return tuple([known.setdefault(one, one) for one in given])

    def packed(self, number: int, entry: Entry[Partition]) -> bytes:
        """A partition's value and origin as a row."""
        value, origin = entry.value, entry.origin
        replicas = self.replicas.number((value.replicas, self.directories(value.directories)))
        rare = (value.removing_replicas, value.adding_replicas, value.elr, value.last_known_elr)
        return ROW.pack(
            number,
            replicas,
            self.brokers.number(value.isr),
            self.rare.number(rare),
            self.kinds.number((origin.record_type, origin.version, value.leader_recovery_state)),
            value.leader,
            value.leader_epoch,
            value.partition_epoch,
            self.effective - origin.offset,
            origin.offset,
        )

    def value(self, rows: bytearray, row: int) -> Partition:
        """A row's value."""
        _, replicas, isr, rare, kind, leader, leader_epoch, epoch, _, _ = ROW.unpack_from(rows, row * ROW.size)
        removing, adding, elr, last_known = self.rare.values[rare]
        state = self.kinds.values[kind][2]
        listed, directories = self.replicas.values[replicas]
        isr_ids = self.brokers.values[isr]
        return Partition(
            listed, directories, isr_ids, removing, adding, elr, last_known, leader, state, leader_epoch, epoch
        )

    def entry(self, rows: bytearray, row: int) -> Entry[Partition]:
        """A row's value and origin."""
        _, _, _, _, kind, _, _, _, _, offset = ROW.unpack_from(rows, row * ROW.size)
        name, version, _ = self.kinds.values[kind]
        origin = Origin(offset, self.timestamp(offset), name, version, self.place(offset))
        return Entry(self.value(rows, row), origin)
