"""Find the records of many batches at once: position of each value, offset and timestamp, as numpy columns.

Nearly all metadata records look alike: no key, no headers, small numbers. Batches with only such records ("plain") are
parsed here, as a whole. All others (control batches, compression, keys, damage) are left to
:func:`~kshell.protocol.batches.iter_records`; for plain batches the result is the same as that function's.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple, SupportsIndex

from kshell.protocol.batches import APPEND_TIME_BIT, CODEC_MASK, CONTROL_BIT, HEADER_SIZE, Batch

if TYPE_CHECKING:
    from numpy import bool_, int64, uint8
    from numpy.typing import NDArray

    Bytes = NDArray[uint8]
    Ints = NDArray[int64]
    """Positions of bytes, indexes of rows, or values, one per row."""
    Mask = NDArray[bool_]

np: ModuleType = importlib.import_module("numpy")

_BIG = 1 << 62
"""Beyond this, a base offset or timestamp plus a delta may not fit an int64."""
_NO_KEY = 1
_ZERO_HEADERS = 0


class Framed(NamedTuple):
    """Records in the order of their batches, one element per record; all columns are numpy arrays of int64."""

    data: bytes
    """The bytes of all records: those of each batch after its header, joined."""
    batch: Ints
    """The index of the record's batch in the argument of :func:`frame`."""
    offset: Ints
    timestamp: Ints
    start: Ints
    """The first byte of the record's value in ``data``."""
    end: Ints
    """The byte after the value."""

    @property
    def buf(self) -> Bytes:
        """``data`` as a numpy array, without a copy; one byte if it is empty, so that positions can be clipped."""
        buf: Bytes = np.frombuffer(self.data or bytes(1), np.uint8)
        return buf

    @property
    def api_keys(self) -> Bytes:
        """The byte in which each value of a known type has its api key; any byte where a value is too short."""
        return self.buf.take(self.start + 1, mode="clip")

    def only(self, rows: Ints | Mask) -> Framed:
        """Select records by a mask or an index array."""
        return Framed(self.data, *(column[rows] for column in self[1:]))

    def value(self, row: SupportsIndex) -> bytes:
        """Return the bytes of one record's value."""
        return self.data[self.start[row] : self.end[row]]


def frame(batches: Sequence[Batch]) -> tuple[Framed, list[int]]:
    """Return the records of all plain batches, and the indexes of all other batches. All CRCs must be good."""
    plain: list[Batch] = []
    places: list[int] = []
    unframed: list[int] = []
    regions: list[bytes] = []
    ends: list[int] = []
    for index, batch in enumerate(batches):
        region = _region(batch)
        record_ends = None if region is None else _ends(region, batch.records)
        if region is None or record_ends is None:
            unframed.append(index)
            continue
        plain.append(batch)
        places.append(index)
        regions.append(region)
        ends += record_ends
    framed, good = _parsed(plain, regions, ends)
    if not good.all():
        unframed += [places[place] for place in np.flatnonzero(~good)]
        framed = framed.only(good[framed.batch])
    return framed._replace(batch=np.array(places, np.int64)[framed.batch]), sorted(unframed)


def _region(batch: Batch) -> bytes | None:
    """Return the bytes of a batch's records; ``None`` for control batches, compression and extreme base values."""
    if batch.attributes & (CONTROL_BIT | CODEC_MASK):
        return None
    if not (-_BIG < batch.base_offset < _BIG and -_BIG < batch.base_timestamp < _BIG):
        return None
    return bytes(batch.buf[batch.at + HEADER_SIZE : batch.after])


def _ends(region: bytes, count: int) -> list[int] | None:
    """Return the end of each record by its size field; ``None`` if the records do not fill the region exactly."""
    record_ends: list[int] = []
    add, at, end = record_ends.append, 0, len(region)
    try:
        while at < end:
            size = region[at]
            if size < 0x80:
                at += (size >> 1) + 1
            elif (more := region[at + 1]) < 0x80:
                at += ((size & 0x7F | more << 7) >> 1) + 2
            elif (most := region[at + 2]) < 0x80:
                at += ((size & 0x7F | (more & 0x7F) << 7 | most << 14) >> 1) + 3
            else:
                return None
            add(at)
    except IndexError:
        return None
    return record_ends if at == end and len(record_ends) == count else None


def _parsed(batches: Sequence[Batch], regions: Sequence[bytes], ends: list[int]) -> tuple[Framed, Mask]:
    """Parse all records at once; return them, and a mask of the batches in which every record is plain."""
    data = b"".join(regions)
    headers = Batch(*(zip(*batches, strict=True) if batches else [()] * len(Batch._fields)))
    count = np.array(headers.records, np.int64)
    owner = np.repeat(np.arange(len(batches)), count)
    index = np.arange(len(ends)) - (np.cumsum(count) - count)[owner]
    buf = np.frombuffer(data or bytes(1), np.uint8)
    sizes = np.array([len(region) for region in regions], np.int64)
    end = np.array(ends, np.int64) + (np.cumsum(sizes) - sizes)[owner]
    begin = np.concatenate((np.zeros(1, np.int64), end[:-1]))[: len(end)]
    size, at = _varints(buf, begin)
    good = at + size == end
    moved, at = _varints(buf, at + 1)
    delta, at = _varints(buf, at)
    good &= (moved != _TOO_LONG) & (delta == index) & (buf.take(at, mode="clip") == _NO_KEY)
    length, at = _varints(buf, at + 1)
    good &= (length >= 0) & (at + length + 1 == end) & (buf.take(end - 1, mode="clip") == _ZERO_HEADERS)
    is_good = np.ones(len(batches), bool)
    is_good[owner[~good]] = False
    first, last, base, attributes = (
        np.array(column, np.int64)[owner]
        for column in (headers.base_timestamp, headers.max_timestamp, headers.base_offset, headers.attributes)
    )
    timestamp = np.where(attributes & APPEND_TIME_BIT, last, first + moved)
    return Framed(data, owner, base + delta, timestamp, at, at + length), is_good


_TOO_LONG = -(1 << 40)
"""Stands for a varint of more than four bytes; a shorter one cannot have this value."""


def _varints(buf: Bytes, at: Ints) -> tuple[Ints, Ints]:
    """Read the zigzag varints (at most four bytes) at positions ``at``; return them and the positions after them."""
    byte = buf.take(at, mode="clip").astype(np.int64)
    value, after = byte & 0x7F, at + 1
    longer = np.flatnonzero(byte > 0x7F)
    for shift in (7, 14, 21):
        if not len(longer):
            break
        byte = buf.take(after[longer], mode="clip").astype(np.int64)
        value[longer] |= (byte & 0x7F) << shift
        after[longer] += 1
        longer = longer[byte > 0x7F]
    value = (value >> 1) ^ -(value & 1)
    value[longer] = _TOO_LONG
    return value, after
