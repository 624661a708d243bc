"""Record batches, magic 2: read and write the header, the CRC, and the records inside.

Source: KIP-98 and ``org.apache.kafka.common.record.DefaultRecordBatch``. Nothing here reads files or compares a batch
with its neighbours: :mod:`kshell.protocol.verify` does that. Records in the *plain form* (no key, no headers, the
batch's timestamp), which is how Kafka's controllers write them, have a fast path: :func:`plain_values`.
"""

from __future__ import annotations

import re
import struct
from array import array
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache, partial
from typing import NamedTuple

from kshell.protocol.checksum import crc32c
from kshell.protocol.primitives import Buffer, DecodeError, read_varint, read_varlong, write_varint

HEADER_SIZE = 61
LENGTH_END = 12
"""Bytes of the base offset and the length field; the length counts the bytes after them."""
MIN_LENGTH = HEADER_SIZE - LENGTH_END
CRC_START = 21
MAX_BATCH = 32 << 20
"""Bytes that a batch may have, both as it is stored and decompressed. Kafka writes metadata batches of 8 MiB at most
(``KafkaRaftClient.MAX_BATCH_SIZE_BYTES``): a larger claim is damage, or an attempt to fill the reader's memory."""
CODEC_MASK = 0x07
APPEND_TIME_BIT = 0x08
CONTROL_BIT = 0x20

_HALF = 1 << 63

_HEADER = struct.Struct(">qiibIhiqq14xi")
"""The header without producer id, producer epoch and base sequence, which the metadata log does not use."""
_COPIED = 1 << 14
"""Up to this number of bytes, copying them costs less than making a memoryview."""


class Batch(NamedTuple):
    """One batch: its position and size in the file, the fields of its header, and a buffer with its bytes.

    ``position`` is the byte of the file at which the batch begins, ``size`` its bytes with the header, and ``start``
    the byte of the file at which ``buf`` begins. ``records`` is the number of records that the header claims.
    """

    buf: Buffer
    position: int
    size: int
    base_offset: int
    epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    records: int
    start: int = 0

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def end(self) -> int:
        """The position in the file after the batch."""
        return self.position + self.size

    @property
    def at(self) -> int:
        """The index in ``buf`` at which the batch begins."""
        return self.position - self.start

    @property
    def after(self) -> int:
        """The index in ``buf`` after the batch."""
        return self.position - self.start + self.size

    def time(self, delta: int) -> int:
        """Return the timestamp of a record, in ms since the epoch: an int64 that wraps around, as in Kafka."""
        moment = self.base_timestamp + delta
        return moment if -_HALF <= moment < _HALF else (moment + _HALF) % (2 * _HALF) - _HALF

    @property
    def plain_timestamp(self) -> int:
        """The timestamp of all records in the plain form (:func:`plain_values`), in ms since the epoch."""
        return self.max_timestamp if self.attributes & APPEND_TIME_BIT else self.base_timestamp

    def raw(self) -> bytes:
        """Return the bytes of the batch, header included."""
        return bytes(self.buf[self.at : self.after])

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_BIT)

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    def crc_is_good(self) -> bool:
        at = self.position - self.start
        return crc_of(self.buf, at + CRC_START, at + self.size) == self.crc

    def region(self) -> tuple[Buffer, int, int]:
        """Return (buffer, start, end) of the records, decompressed. Raises DecodeError, MissingCodecError."""
        if self.codec == 0:
            return self.buf, self.at + HEADER_SIZE, self.after
        from kshell.protocol.compression import decompress  # late: Kafka's controllers compress nothing

        data = decompress(self.codec, self.buf[self.at + HEADER_SIZE : self.after])
        return data, 0, len(data)


_new_batch = partial(tuple.__new__, Batch)
"""Makes a Batch from a tuple of its fields. Calling ``Batch`` takes twice as long, and each batch of a log needs it."""


class RawRecord(NamedTuple):
    """One record of a batch, not decoded; ``timestamp`` is in ms since the epoch, a null key or value is ``None``."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


_new_record = partial(tuple.__new__, RawRecord)
"""Makes a RawRecord from a tuple of its fields, as :data:`_new_batch` does for a batch."""


def crc_of(buf: Buffer, start: int, end: int) -> int:
    """The CRC-32C of ``buf[start:end]``."""
    if end - start <= _COPIED:
        return crc32c(buf[start:end])
    with memoryview(buf) as view, view[start:end] as covered:
        return crc32c(covered)


def read_header(buf: Buffer, at: int, start: int = 0) -> Batch:
    """Read the header at ``buf[at]``; the caller has checked that :data:`HEADER_SIZE` bytes are there.

    Nothing is verified. ``start`` is the byte of the file at which ``buf`` begins.
    """
    base, length, epoch, magic, crc, attributes, delta, first, last, count = _HEADER.unpack_from(buf, at)
    return _new_batch(
        (buf, start + at, length + LENGTH_END, base, epoch, magic, crc, attributes, delta, first, last, count, start)
    )


Select = Callable[[Buffer, "array[int]"], Iterable[int]]
"""(records of a batch, bounds from :func:`plain_values`) -> which values to read, as indexes into the bounds (even: the
first byte of a value)."""


def iter_records(batch: Batch, select: Select | None = None) -> Iterator[RawRecord]:
    """Yield the records of a batch whose CRC is good. Raises DecodeError if they do not fill the batch exactly.

    ``select`` chooses the values to read, so that other records are not built; it applies only where all records are in
    the plain form. Of other batches every record is yielded.
    """
    buf, pos, end = batch.region()
    values = plain_values(buf, pos, end, batch.records)
    if values is not None:
        moment, base_offset = batch.plain_timestamp, batch.base_offset
        for index in range(0, len(values), 2) if select is None else select(buf, values):
            value = bytes(buf[values[index] : values[index + 1]])
            yield _new_record((base_offset + index // 2, moment, None, value))
        return
    region = bytes(buf[pos:end]) if batch.codec == 0 else buf
    at = 0
    for index in range(batch.records):
        record, at = _plain_record(region, at, batch) or read_record(region, at, batch)
        if record.offset != batch.base_offset + index:
            raise DecodeError(f"record {index} of the batch claims offset {record.offset}", at)
        yield record
    if at != len(region):
        raise DecodeError(f"{len(region) - at} bytes too many after the last record of the batch", at)


def plain_values(region: Buffer, start: int, end: int, count: int) -> array[int] | None:
    """Find the values of records that are all in the plain form, as Kafka's controllers write them.

    Args:
        region: a buffer with the records, back to back.
        start: the position of the first record.
        end: the position after the last record.
        count: how many records there must be.

    Returns:
        Start and end of each value, alternating. ``None`` unless every record has no key, no headers, a value, the
        timestamp of the batch, and the offset after that of the record before; also ``None`` if anything is malformed.
    """
    bounds = array("I")
    add = bounds.append
    position = start
    try:
        for head in _heads(count.bit_length())[:count] if count < _MANY else map(_head, range(count)):
            first = region[position]
            if first < 0x80:
                at = position + 1
                stop = at + (first >> 1) - 1
            elif region[position + 1] < 0x80:
                at = position + 2
                stop = at + ((first & 0x7F | region[position + 1] << 7) >> 1) - 1
            else:
                size, at = read_varint(region, position)
                stop = at + size - 1
            value = at + len(head)
            if first & 1 or region[at:value] != head:  # an odd number stands for a negative one
                return None
            first = region[value]
            if first < 0x80:
                value += 1
                size = first >> 1
            elif region[value + 1] < 0x80:
                size = (first & 0x7F | region[value + 1] << 7) >> 1
                value += 2
            else:
                size, value = read_varint(region, value)
            if first & 1 or value + size != stop or stop >= end or region[stop]:
                return None
            add(value)
            add(stop)
            position = stop + 1
    except (IndexError, DecodeError, OverflowError):
        return None
    return bounds if position == end else None


def _head(delta: int) -> bytes:
    """The bytes between the size of a plain record and the size of its value."""
    return b"\0\0" + write_varint(delta) + b"\1"


_MANY = 1 << 13
"""From this number of records on, the heads of a batch are not cached; Kafka's batches have a few thousand at most."""


@cache
def _heads(bits: int) -> list[bytes]:
    """The heads (:func:`_head`) of all offset deltas of up to ``bits`` bits; made on demand, as most need few."""
    return [_head(delta) for delta in range(1 << bits)]


_PLAIN = re.compile(
    rb"([\x80-\xff]{0,3}[\x00-\x7f])[\x00-\xff]([\x80-\xff]{0,3}[\x00-\x7f])([\x80-\xff]{0,3}[\x00-\x7f])\x01"
    rb"([\x80-\xff]{0,3}[\x00-\x7f])"
)
"""The head of a record with a null key: size, attributes, timestamp delta, offset delta, key length, value length."""


@lru_cache(maxsize=1 << 16)
def _number(raw: bytes) -> int:
    return read_varint(raw, 0)[0]


def _plain_record(region: Buffer, at: int, batch: Batch) -> tuple[RawRecord, int] | None:
    """Read the record at ``at``, without key and headers; ``None`` for any other record, and for a malformed one."""
    head = _PLAIN.match(region, at)
    if head is None:
        return None
    size, timestamp, delta, length = map(_number, head.groups())
    start = head.end()
    end = start + length
    if length < 0 or end + 1 != head.end(1) + size or end >= len(region) or region[end] != 0:
        return None
    moment = batch.max_timestamp if batch.attributes & APPEND_TIME_BIT else batch.time(timestamp)
    return RawRecord(batch.base_offset + delta, moment, None, bytes(region[start:end])), end + 1


def read_record(region: Buffer, at: int, batch: Batch) -> tuple[RawRecord, int]:
    """Read the record at ``at``, of any form, and return it with its end. Raises DecodeError if it is malformed."""
    size, start = read_varint(region, at)
    end = start + size
    if size < 0 or end > len(region):
        raise DecodeError(f"a record of {size} bytes runs past the end of the batch", at)
    body = bytes(region[start:end])
    timestamp, pos = read_varlong(body, 1)
    delta, pos = read_varint(body, pos)
    key, pos = _nullable(body, pos)
    value, pos = _nullable(body, pos)
    headers, pos = read_varint(body, pos)
    if headers < 0:
        raise DecodeError(f"a record claims {headers} headers", start + pos)
    for _ in range(headers):
        _, pos = _nullable(body, pos)
        _, pos = _nullable(body, pos)
    if pos != size:
        raise DecodeError(f"a record's parts fill {pos} of its {size} bytes", start)
    moment = batch.max_timestamp if batch.attributes & APPEND_TIME_BIT else batch.time(timestamp)
    return RawRecord(batch.base_offset + delta, moment, key, value), end


def _nullable(body: bytes, pos: int) -> tuple[bytes | None, int]:
    size, pos = read_varint(body, pos)
    if size < 0:
        return None, pos
    if size > len(body) - pos:
        raise DecodeError(f"{size} bytes run past the end of the record", pos)
    return body[pos : pos + size], pos + size


def write_batch(
    records: list[tuple[bytes | None, bytes | None]],
    *,
    base_offset: int,
    epoch: int,
    timestamp: int,
    control: bool = False,
    codec: int = 0,
    compressed: bytes | None = None,
) -> bytes:
    """Write a batch of (key, value) pairs. With a ``codec``, pass the compressed result of :func:`pack`, too."""
    body = pack(records) if compressed is None else compressed
    attributes = codec | (CONTROL_BIT if control else 0)
    count = len(records)
    covered = struct.pack(">hiqqqhii", attributes, count - 1, timestamp, timestamp, -1, -1, -1, count) + body
    head = struct.pack(">qiibI", base_offset, len(covered) + 9, epoch, 2, crc32c(covered))
    return head + covered


def pack(records: Iterable[tuple[bytes | None, bytes | None]]) -> bytes:
    """Write the records of a batch, not compressed; each has the timestamp of the batch.

    Records without a key are in the plain form that :func:`plain_values` reads.
    """
    out = []
    for index, (key, value) in enumerate(records):
        body = b"\x00" + write_varint(0) + write_varint(index) + _packed(key) + _packed(value) + write_varint(0)
        out.append(write_varint(len(body)) + body)
    return b"".join(out)


def _packed(part: bytes | None) -> bytes:
    return write_varint(-1) if part is None else write_varint(len(part)) + part
