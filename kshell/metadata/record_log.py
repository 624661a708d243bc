"""The records of a log by offset and by address: their time, their batch, and their bytes.

A replay does not decode what nobody may look at. It keeps the verified bytes and files the *address* of a record where
it belongs: the position of its value in all the bytes laid end to end. From an address, everything that the log says
of a record is found again.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Iterator
from heapq import merge
from typing import Generic, NamedTuple, TypeVar

from kshell.metadata.records import record_types
from kshell.metadata.values import BatchPosition, Origin
from kshell.protocol.batches import Batch
from kshell.protocol.primitives import Buffer, read_varint

_T = TypeVar("_T", bound=Hashable)
_LET_GO = b""
_API_KEY, _VERSION = 1, 2
"""Where a value holds them, one byte each."""


class Interned(Generic[_T]):
    """Values, each kept once, and a number for each."""

    def __init__(self) -> None:
        self._numbers: dict[_T, int] = {}
        self.values: list[_T] = []

    def number(self, value: _T) -> int:
        """The value's number, the same for an equal one."""
        index = self._numbers.get(value)
        if index is None:
            index = self._numbers[value] = len(self.values)
            self.values.append(value)
        return index


class RecordRun(NamedTuple):
    """The records from offset ``start`` up to ``end`` (exclusive), of one batch, one time and one leader epoch.

    Attributes:
        timestamp: in epoch milliseconds.
        is_metadata: whether they are no control records.
        is_open: whether a transaction is open once each of them is there.
    """

    start: int
    end: int
    epoch: int
    timestamp: int
    is_metadata: bool
    is_open: bool


class RecordLog:
    """Grows at its end. Offsets from ``start`` up to ``end`` (exclusive) are here."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.end = start
        """The offset after the last record."""
        self.retained = 0
        """Bytes of buffers that were retained, each counted once; some are let go again."""
        self._recent: tuple[Buffer, Buffer] = (_LET_GO, _LET_GO)
        """The buffers that were counted last: batches of other forms may lie between those of one buffer."""
        self._size = 0
        """The address after the last chunk."""
        self._tail = 0
        """The address after the last record."""
        self.last_batch: tuple[int, int] | None = None
        """Base offset and CRC of the last batch."""
        self.max_timestamp = -1
        """The largest time in the last batch, as its header has it, in epoch milliseconds."""
        self._chunks: list[Buffer] = []
        self._is_kept = False
        """Whether somebody keeps an address in the last chunk: the bytes of others are let go."""
        self._chunk_starts = array("q")
        """The address of the first byte of each chunk."""
        self._files: Interned[str] = Interned()
        self._times, self._times_from = array("q"), array("q")
        """Epoch milliseconds, and the first of the records in a row that have them: those of a batch, as a rule."""
        self._is_metadata = bytearray()
        """One a batch: 0 for control records."""
        self._bases, self._positions = array("q"), array("q")
        self._epochs, self._file_numbers = array("i"), array("i")
        self._addresses = array("q")
        """Of each batch's first record."""
        self._started, self._ended = array("q"), array("q")
        """The offsets of the records that begin and end the metadata transactions that are over."""
        self._open: int | None = None
        self._last_limit = (-1, -1, 0)

    # --- what a replay adds --------------------------------------------------------------------------------------

    def add_batch(self, batch: Batch, file: str, start: int) -> None:
        """One more batch, of which records from offset ``start`` on follow, after its bytes (:meth:`retain`)."""
        if self.last_batch is None:
            self.start = self.end = max(self.start, batch.base_offset, start)
        self._bases.append(batch.base_offset)
        self._is_metadata.append(not batch.is_control)
        self._positions.append(batch.position)
        self._epochs.append(batch.epoch)
        self._file_numbers.append(self._files.number(file))
        self._addresses.append(self._tail)
        self.last_batch = batch.base_offset, batch.crc
        self.max_timestamp = batch.max_timestamp

    def retain(self, region: Buffer, start: int, end: int) -> int:
        """Keep the records of the batch that was added last, at least until others are.

        Args:
            region: bytes that hold records back to back. They must not change, and are not copied.
            start: where the batch's records begin in them.
            end: where they end.

        Returns:
            The address of the region's first byte.
        """
        if not self._chunks or self._chunks[-1] is not region:
            if self._chunks and not self._is_kept:
                self._chunks[-1] = _LET_GO
            self._is_kept = False
            self._chunks.append(region)
            self._chunk_starts.append(self._size)
            self._size += len(region)
            if not any(region is recent for recent in self._recent):
                self.retained += len(region)
                self._recent = (self._recent[-1], region)
        first = self._chunk_starts[-1]
        self._addresses[-1], self._tail = first + start, first + end
        return first

    def keep_last_chunk(self) -> None:
        """Somebody keeps an address of the batch that was added last, or may yet: its bytes must stay."""
        self._is_kept = True

    def add_records(self, count: int, timestamp: int) -> None:
        """So many more records of one time."""
        if not self._times or self._times[-1] != timestamp:
            self._times.append(timestamp)
            self._times_from.append(self.end)
        self.end += count

    def begin_transaction(self, offset: int) -> None:
        """A metadata transaction begins with the record at an offset."""
        self._open = offset

    def end_transaction(self, offset: int) -> None:
        """The open transaction is over with the record at an offset: its records take effect there, or never."""
        if self._open is not None:
            self._started.append(self._open)
            self._ended.append(offset)
            self._open = None

    # --- by offset -----------------------------------------------------------------------------------------------

    def timestamp(self, offset: int) -> int:
        """When the record was written, in epoch milliseconds."""
        return self._times[bisect_right(self._times_from, offset) - 1]

    def offset_by(self, time_ms: int) -> int | None:
        """The last record written by then; ``None`` for none, and where the clocks of the log leave it open."""
        if not all(map(int.__le__, self._times, self._times[1:])):
            return None
        count = bisect_right(self._times, time_ms)
        last = self.end if count == len(self._times) else self._times_from[count]
        return last - 1 if count else None

    def last_metadata(self, offset: int) -> int | None:
        """The last record up to an offset that is no control record."""
        at = bisect_right(self._bases, offset) - 1
        if at < 0 or offset < self.start:
            return None
        index = self._is_metadata.rfind(1, 0, at + 1)
        last = offset if index == at else self._bases[index + 1] - 1
        return last if index >= 0 and last >= self.start else None

    def place(self, offset: int) -> BatchPosition:
        """The batch of the record at an offset."""
        at = bisect_right(self._bases, offset) - 1
        return BatchPosition(self._files.values[self._file_numbers[at]], self._positions[at], self._epochs[at], False)

    def epoch_starts(self) -> list[int]:
        """The offsets at which the records of another leader epoch begin."""
        starts = []
        for at, epoch in enumerate(self._epochs):
            if at and epoch != self._epochs[at - 1]:
                starts.append(self._bases[at])
        return starts

    def runs(self, until: int) -> Iterator[RecordRun]:
        """All records up to an offset, in their order: what is looked up for each alone is the same in a run."""
        end = min(until + 1, self.end)
        bounds = (self._bases, self._times_from, self._started, self._ended, (end,))
        start = self.start
        for bound in merge(*bounds, () if self._open is None else (self._open,)):
            stop = min(bound, end)
            if start < stop:
                at = bisect_right(self._bases, start) - 1
                is_open = self.open_transaction(start) is not None
                yield RecordRun(
                    start, stop, self._epochs[at], self.timestamp(start), bool(self._is_metadata[at]), is_open
                )
                start = stop
            if bound >= end:
                break

    def transaction_end(self, offset: int) -> int | None:
        """The end of the transaction that is open once the record at an offset is there, if it is over by now."""
        at = bisect_right(self._started, offset) - 1
        return self._ended[at] if at >= 0 and offset < self._ended[at] else None

    def open_transaction(self, offset: int) -> int | None:
        """Where the transaction begins that is open once the record at an offset is there, if one is."""
        if self._open is not None and offset >= self._open:
            return self._open
        at = bisect_right(self._started, offset) - 1
        return self._started[at] if at >= 0 and offset < self._ended[at] else None

    def limit(self, offset: int) -> int:
        """The address below which every filed record is in effect at an offset, and from which on none is."""
        last_offset, end, limit = self._last_limit
        if (last_offset, end) != (offset, self.end):
            transaction_start = self.open_transaction(offset)
            limit = self._address(offset + 1 if transaction_start is None else transaction_start)
            self._last_limit = (offset, self.end, limit)
        return limit

    def _address(self, offset: int) -> int:
        """An address that is behind every record before an offset, and not behind the one at it."""
        if offset >= self.end:
            return self._tail
        at = bisect_right(self._bases, offset) - 1
        if at < 0:
            return 0
        first = self._addresses[at]
        if not self._is_metadata[at]:
            return first
        chunk, start = self._find(first)
        if chunk is _LET_GO:
            return first
        position = start
        for _ in range(offset - self._bases[at]):
            size, position = read_varint(chunk, position)
            position += size
        return first + position - start

    # --- by address ----------------------------------------------------------------------------------------------

    def _find(self, address: int) -> tuple[Buffer, int]:
        at = bisect_right(self._chunk_starts, address) - 1
        return self._chunks[at], address - self._chunk_starts[at]

    def value(self, address: int) -> bytes:
        """A record's value; its size precedes it."""
        chunk, position = self._find(address)
        start = position - 1
        while chunk[start - 1] > 0x7F:
            start -= 1
        return bytes(chunk[position : position + read_varint(chunk, start)[0]])

    def values(self, addresses: Iterable[int]) -> Iterator[bytes]:
        """The value of each record, as :meth:`value` has it, with a short way for sizes of one byte."""
        chunk: Buffer = _LET_GO
        low = high = 0
        for address in addresses:
            if not low <= address < high:
                at = bisect_right(self._chunk_starts, address) - 1
                chunk, low = self._chunks[at], self._chunk_starts[at]
                high = low + len(chunk)
            position = address - low
            size = chunk[position - 1]
            if size | chunk[position - 2] < 0x80:
                yield chunk[position : position + (size >> 1)]
            else:
                yield self.value(address)

    def offset(self, address: int) -> int:
        """A record's offset: its delta precedes the key, which is null, and the value's size."""
        chunk, position = self._find(address)
        key = position - 2
        while chunk[key] > 0x7F:
            key -= 1
        start = key - 1
        while chunk[start - 1] > 0x7F:
            start -= 1
        return self._bases[bisect_right(self._addresses, address) - 1] + read_varint(chunk, start)[0]

    def effective(self, address: int) -> int:
        """The offset from which a record is in effect: in a metadata transaction, that of its end."""
        return self._effective(self.offset(address))

    def _effective(self, offset: int) -> int:
        if not self._started:
            return offset
        at = bisect_left(self._started, offset) - 1
        return self._ended[at] if at >= 0 and offset < self._ended[at] else offset

    def effective_offsets(self, addresses: Iterable[int]) -> list[int]:
        """As :meth:`effective` of each of the addresses, which rise; with a short way for small deltas and sizes."""
        chunk: Buffer = _LET_GO
        low = high = at = 0
        first_addresses, bases = self._addresses, self._bases
        offsets: list[int] = []
        for address in addresses:
            if not low <= address < high:
                index = bisect_right(self._chunk_starts, address) - 1
                chunk, low = self._chunks[index], self._chunk_starts[index]
                high = low + len(chunk)
            key = address - low - 2
            if chunk[key] > 0x7F:
                key -= 1
            last, before = chunk[key - 1], chunk[key - 2]
            if chunk[key] > 0x7F or last & 1 or (before > 0x7F and chunk[key - 3] > 0x7F):
                offsets.append(self.offset(address))
                continue
            delta = last >> 1 if before < 0x80 else (before & 0x7F | last << 7) >> 1
            at = bisect_right(first_addresses, address, at) - 1
            offsets.append(bases[at] + delta)
        if self._started:
            return [self._effective(offset) for offset in offsets]
        return offsets

    def origin(self, address: int) -> Origin:
        """Where a record's values come from."""
        offset = self.offset(address)
        chunk, position = self._find(address)
        kind = record_types()[chunk[position + _API_KEY]]
        return Origin(offset, self.timestamp(offset), kind.name, chunk[position + _VERSION], self.place(offset))
