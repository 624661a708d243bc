"""The records of a log, found again by offset or by address: their time, their batch, and their bytes.

A replay does not decode records that may never be asked for. It keeps the verified bytes here and *files* each such
record: it stores only the record's *address* with the topic or key that the record belongs to. An address is the
position of the record's value if all buffers that were retained (*chunks*) were laid end to end. Value, offset, time
and batch of a record are found again from its address.
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
"""Takes the place of a chunk that was dropped, because no address in it was filed."""
_API_KEY, _VERSION = 1, 2
"""Positions of the api key and of the version in a record's value; each takes one byte."""


class Interned(Generic[_T]):
    """Distinct values: each is stored once and has a number."""

    def __init__(self) -> None:
        self._numbers: dict[_T, int] = {}
        self.values: list[_T] = []

    def number(self, value: _T) -> int:
        """Return the number of a value: that of an equal value if there is one, else the next number."""
        index = self._numbers.get(value)
        if index is None:
            index = self._numbers[value] = len(self.values)
            self.values.append(value)
        return index


class RecordRun(NamedTuple):
    """Consecutive records of one batch with one timestamp: those with offsets from ``start`` up to ``end`` (exclusive).

    Attributes:
        epoch: the leader epoch of the batch.
        timestamp: in epoch milliseconds.
        is_metadata: whether they are metadata records; else they are control records.
        is_open: whether a metadata transaction is open after each of them.
    """

    start: int
    end: int
    epoch: int
    timestamp: int
    is_metadata: bool
    is_open: bool


class RecordLog:
    """The records of a log with offsets from ``start`` up to ``end`` (exclusive).

    It grows at its end, batch by batch. For each batch, a replay calls:

    1. :meth:`add_batch`, with its header;
    2. :meth:`retain`, with its bytes, and :meth:`keep_last_chunk` if the address of one of its records is filed;
    3. :meth:`add_records`, once for consecutive records with one timestamp, and :meth:`begin_transaction` and
       :meth:`end_transaction` for the records that begin, end or abort a metadata transaction.

    A batch of control records has no bytes to retain.
    """

    def __init__(self, start: int) -> None:
        self.start = start
        self.end = start
        """The offset after the last record."""
        self.retained = 0
        """Bytes of all buffers that were retained, each counted once. Dropping a chunk does not lower it."""
        self._recent: tuple[Buffer, Buffer] = (_LET_GO, _LET_GO)
        """The two buffers that were counted last: a batch in another buffer may lie between batches of one buffer."""
        self._size = 0
        """The address at which the next chunk will begin."""
        self._tail = 0
        """The address after the last record."""
        self.last_batch: tuple[int, int, int] | None = None
        """Base offset, CRC and epoch of the last batch; ``None`` before the first one."""
        self.max_timestamp = -1
        """The largest timestamp of the last batch, from its header, in epoch milliseconds."""
        self._chunks: list[Buffer] = []
        self._is_kept = False
        """Whether an address in the last chunk was filed. A chunk without one is dropped when the next one comes."""
        self._chunk_starts = array("q")
        """The address of the first byte of each chunk."""
        self._files: Interned[str] = Interned()
        self._times, self._times_from = array("q"), array("q")
        """Timestamps in epoch milliseconds, and for each the offset of the first of the consecutive records that have
        it. Usually all records of a batch have one timestamp.
        """
        self._is_metadata = bytearray()
        """One byte per batch: 0 for control records, 1 for metadata records."""
        self._bases, self._positions = array("q"), array("q")
        self._epochs, self._file_numbers = array("i"), array("i")
        self._addresses = array("q")
        """For each batch the address at which its records begin."""
        self._started, self._ended = array("q"), array("q")
        """For each finished metadata transaction, the offsets of its first and of its last record, the markers."""
        self._open: int | None = None
        """The offset of the record that begins the transaction which is still open."""
        self._last_limit = (-1, -1, 0)
        """Cache of the last call of :meth:`limit`: its offset, :attr:`end` at that time, and the address returned."""

    # --- what a replay adds --------------------------------------------------------------------------------------

    def add_batch(self, batch: Batch, file: str, start: int) -> None:
        """Add a batch's header. Its bytes follow (:meth:`retain`), then its records from offset ``start`` on."""
        if self.last_batch is None:
            self.start = self.end = max(self.start, batch.base_offset, start)
        self._bases.append(batch.base_offset)
        self._is_metadata.append(not batch.is_control)
        self._positions.append(batch.position)
        self._epochs.append(batch.epoch)
        self._file_numbers.append(self._files.number(file))
        self._addresses.append(self._tail)
        self.last_batch = batch.base_offset, batch.crc, batch.epoch
        self.max_timestamp = batch.max_timestamp

    def retain(self, region: Buffer, start: int, end: int) -> int:
        """Retain the bytes of the batch that was added last.

        They stay at least until another buffer is retained, and for good after :meth:`keep_last_chunk`.

        Args:
            region: a buffer of records, perhaps of several batches. It is not copied, so it must not change.
            start: the position in ``region`` at which the batch's records begin.
            end: the position after its last record.

        Returns:
            The address of the first byte of ``region``.
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
        """Keep the chunk of the batch that was added last: an address in it was filed, or may be filed later."""
        self._is_kept = True

    def add_records(self, count: int, timestamp: int) -> None:
        """Add the next ``count`` records, which all have one timestamp (epoch milliseconds)."""
        if not self._times or self._times[-1] != timestamp:
            self._times.append(timestamp)
            self._times_from.append(self.end)
        self.end += count

    def begin_transaction(self, offset: int) -> None:
        """Note that the record at ``offset`` begins a metadata transaction."""
        self._open = offset

    def end_transaction(self, offset: int) -> None:
        """Note that the open transaction ends at ``offset``: its records take effect there or, if aborted, never."""
        if self._open is not None:
            self._started.append(self._open)
            self._ended.append(offset)
            self._open = None

    # --- by offset -----------------------------------------------------------------------------------------------

    def timestamp(self, offset: int) -> int:
        """Return the timestamp of the record at an offset, in epoch milliseconds."""
        return self._times[bisect_right(self._times_from, offset) - 1]

    def offset_by(self, time_ms: int) -> int | None:
        """Return the offset of the last record written up to a time; ``None`` if none, or if times are out of order."""
        if not all(map(int.__le__, self._times, self._times[1:])):
            return None
        count = bisect_right(self._times, time_ms)
        last = self.end if count == len(self._times) else self._times_from[count]
        return last - 1 if count else None

    def last_metadata(self, offset: int) -> int | None:
        """Return the offset of the last metadata record (not a control record) up to ``offset``; ``None`` if none."""
        at = bisect_right(self._bases, offset) - 1
        if at < 0 or offset < self.start:
            return None
        index = self._is_metadata.rfind(1, 0, at + 1)
        last = offset if index == at else self._bases[index + 1] - 1
        return last if index >= 0 and last >= self.start else None

    def place(self, offset: int) -> BatchPosition:
        """Return which batch holds the record at an offset."""
        at = bisect_right(self._bases, offset) - 1
        return BatchPosition(self._files.values[self._file_numbers[at]], self._positions[at], self._epochs[at], False)

    def epoch_starts(self) -> list[int]:
        """Return the offsets at which the leader epoch changes; the start of the log is not one of them."""
        starts = []
        for at, epoch in enumerate(self._epochs):
            if at and epoch != self._epochs[at - 1]:
                starts.append(self._bases[at])
        return starts

    def runs(self, until: int) -> Iterator[RecordRun]:
        """Yield all records up to offset ``until`` (inclusive) as runs, in order."""
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
        """Return the offset at which the transaction that was open after the record at ``offset`` ended, if it has."""
        at = bisect_right(self._started, offset) - 1
        return self._ended[at] if at >= 0 and offset < self._ended[at] else None

    def open_transaction(self, offset: int) -> int | None:
        """Return the offset at which the transaction began that was open after the record at ``offset``, if any."""
        if self._open is not None and offset >= self._open:
            return self._open
        at = bisect_right(self._started, offset) - 1
        return self._started[at] if at >= 0 and offset < self._ended[at] else None

    def limit(self, offset: int) -> int:
        """Return the address below which every filed record is in effect at ``offset``, and from which on none is."""
        last_offset, end, limit = self._last_limit
        if (last_offset, end) != (offset, self.end):
            transaction_start = self.open_transaction(offset)
            limit = self._address(offset + 1 if transaction_start is None else transaction_start)
            self._last_limit = (offset, self.end, limit)
        return limit

    def _address(self, offset: int) -> int:
        """Return an address that is above every record before ``offset`` and not above the record at ``offset``."""
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
        """Return the chunk that an address is in, and the position in it."""
        at = bisect_right(self._chunk_starts, address) - 1
        return self._chunks[at], address - self._chunk_starts[at]

    def value(self, address: int) -> bytes:
        """Return a record's value. Its size is the varint before it, which is found by going backwards."""
        chunk, position = self._find(address)
        start = position - 1
        while chunk[start - 1] > 0x7F:
            start -= 1
        return bytes(chunk[position : position + read_varint(chunk, start)[0]])

    def values(self, addresses: Iterable[int]) -> Iterator[bytes]:
        """Yield the value of each record, as :meth:`value` does, but faster where the value's size takes one byte."""
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
        """Return a record's offset. Its delta is found by going backwards, over the value's size and the null key."""
        chunk, position = self._find(address)
        key = position - 2
        while chunk[key] > 0x7F:
            key -= 1
        start = key - 1
        while chunk[start - 1] > 0x7F:
            start -= 1
        return self._bases[bisect_right(self._addresses, address) - 1] + read_varint(chunk, start)[0]

    def effective(self, address: int) -> int:
        """Return the offset at which a record took effect: its own, or that of the end of its metadata transaction."""
        return self._effective(self.offset(address))

    def _effective(self, offset: int) -> int:
        """As :meth:`effective`, for the record at an offset."""
        if not self._started:
            return offset
        at = bisect_left(self._started, offset) - 1
        return self._ended[at] if at >= 0 and offset < self._ended[at] else offset

    def effective_offsets(self, addresses: Iterable[int]) -> list[int]:
        """Return :meth:`effective` of each of the ascending addresses, with a fast path for small deltas and sizes."""
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
        """Return the origin of the values that a record wrote."""
        offset = self.offset(address)
        chunk, position = self._find(address)
        kind = record_types()[chunk[position + _API_KEY]]
        return Origin(offset, self.timestamp(offset), kind.name, chunk[position + _VERSION], self.place(offset))
