"""The batch header, and the records inside a batch whose CRC is good."""

from __future__ import annotations

import struct

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from kshell.protocol.batches import (
    APPEND_TIME_BIT,
    CRC_START,
    HEADER_SIZE,
    Batch,
    RawRecord,
    iter_records,
    pack,
    read_header,
    write_batch,
)
from kshell.protocol.primitives import DecodeError, write_varint
from tests.builders import TIME, parsed, recorded

PART = st.none() | st.binary(max_size=300)


def with_body(body: bytes, count: int, attributes: int = 0) -> Batch:
    """A batch with any bytes where its records should be, and a good CRC."""
    covered = struct.pack(">hiqqqhii", attributes, count - 1, TIME, TIME + 9, -1, -1, -1, count) + body
    raw = struct.pack(">qiibI", 40, len(covered) + 9, 3, 2, crc32c(covered)) + covered
    found = parsed(raw)
    assert found.crc_is_good()
    return found


def one(*, attributes: int = 0, time: int = 0, delta: int = 0, parts: bytes = b"\x01\x02v\x00") -> bytes:
    """One record; ``parts`` is what follows the offset delta: key, value, headers."""
    body = bytes([attributes]) + write_varint(time) + write_varint(delta) + parts
    return write_varint(len(body)) + body


@given(st.lists(st.tuples(PART, PART), min_size=1, max_size=80), st.integers(0, 2**62), st.integers(0, 2**31 - 1))
def test_batches_round_trip(pairs: list[tuple[bytes | None, bytes | None]], offset: int, epoch: int) -> None:
    raw = write_batch(pairs, base_offset=offset, epoch=epoch, timestamp=TIME)
    found = read_header(b"before" + raw, 6)
    assert (found.base_offset, found.epoch, found.magic, found.records) == (offset, epoch, 2, len(pairs))
    assert (found.position, found.size, found.end) == (6, len(raw), 6 + len(raw))
    assert found.last_offset == offset + len(pairs) - 1
    assert found.crc_is_good()
    expected = [RawRecord(offset + index, TIME, key, value) for index, (key, value) in enumerate(pairs)]
    assert list(iter_records(found)) == expected


def test_the_layout_of_a_batch() -> None:
    raw = write_batch([(None, b"v")], base_offset=5, epoch=2, timestamp=1000)
    covered = bytes.fromhex(
        "0000" "00000000" "00000000000003e8" "00000000000003e8" "ffffffffffffffff" "ffff" "ffffffff" "00000001"
        "0e" "00" "00" "00" "01" "02" "76" "00"
    )  # fmt: skip
    head = bytes.fromhex("0000000000000005000000390000000202") + crc32c(covered).to_bytes(4, "big")
    assert raw == head + covered


def test_a_real_batch() -> None:
    node = next(node for node in recorded() if node.parent.name == "3.3.2")
    raw = next((node / "__cluster_metadata-0").glob("*.log")).read_bytes()
    first = read_header(raw, 0)
    assert first.crc_is_good()
    assert first.is_control
    assert first.base_offset == 0
    assert [record.offset for record in iter_records(first)] == [0]


def test_every_flip_of_what_the_crc_covers_is_seen() -> None:
    raw = write_batch([(None, b"value"), (b"k", None)], base_offset=0, epoch=0, timestamp=TIME)
    for place in range(CRC_START - 4, len(raw)):
        for bit in range(8):
            damaged = bytearray(raw)
            damaged[place] ^= 1 << bit
            assert not read_header(bytes(damaged), 0).crc_is_good()


@pytest.mark.parametrize("size", [10, 16_000, 17_000, 500_000])
def test_a_flip_is_seen_in_batches_of_every_size_wherever_they_are(size: int) -> None:
    raw = write_batch([(None, bytes(size))], base_offset=0, epoch=0, timestamp=TIME)
    for place in (CRC_START, len(raw) // 2, len(raw) - 1):
        damaged = bytearray(raw)
        damaged[place] ^= 1
        assert not read_header(b"before" + damaged + raw, 6).crc_is_good()
        assert read_header(b"before" + damaged + raw, 6 + len(raw)).crc_is_good()


def test_the_attributes() -> None:
    control = parsed(write_batch([(b"k", b"v")], base_offset=0, epoch=0, timestamp=0, control=True))
    assert control.is_control
    assert control.codec == 0
    compressed = parsed(write_batch([(b"k", b"v")], base_offset=0, epoch=0, timestamp=0, codec=4, compressed=b""))
    assert compressed.codec == 4
    assert not compressed.is_control


def test_timestamps_are_deltas_or_the_time_of_the_append() -> None:
    body = one(time=-5) + one(time=2**40, delta=1)
    assert [record.timestamp for record in iter_records(with_body(body, 2))] == [TIME - 5, TIME + 2**40]
    assert [record.timestamp for record in iter_records(with_body(body, 2, APPEND_TIME_BIT))] == [TIME + 9] * 2


def test_headers_are_passed_over() -> None:
    body = one(parts=b"\x02k\x02v\x04" + b"\x02a\x02b" + b"\x02c\x01")
    assert list(iter_records(with_body(body, 1))) == [RawRecord(40, TIME, b"k", b"v")]


@pytest.mark.parametrize(
    ("body", "count", "reason"),
    [
        (one(), 2, "past the end"),
        (one() + one(delta=1), 1, "bytes too many after the last record"),
        (one() + one(), 2, "record 1 of the batch claims offset 40"),
        (one(delta=-1), 1, "record 0 of the batch claims offset 39"),
        (one(parts=b"\x01\x02v\x00\x00"), 1, "parts fill"),
        (one(parts=b"\x01\x08v\x00"), 1, "past the end of the record"),
        (one(parts=b"\x01\x02v\x02"), 1, "past the end"),
        (one(parts=b"\x01\x02v\xfe\xff\xff\xff\x0f"), 1, "past the end"),
        (one(parts=b""), 1, "past the end"),
        (write_varint(-3), 1, "a record of -3 bytes"),
        (write_varint(0), 1, "past the end"),
        (write_varint(2**31 - 1) + b"\x00" * 20, 1, "a record of 2147483647 bytes"),
        (b"", 1, "past the end"),
    ],
)
def test_records_that_do_not_fill_their_batch_exactly(body: bytes, count: int, reason: str) -> None:
    with pytest.raises(DecodeError, match=reason):
        list(iter_records(with_body(body, count)))


@given(st.binary(max_size=60), st.integers(1, 4))
def test_any_bytes_are_records_or_a_decode_error(body: bytes, count: int) -> None:
    try:
        found = list(iter_records(with_body(body, count)))
    except DecodeError:
        return
    assert len(found) == count


def test_pack_is_the_body_of_a_batch() -> None:
    pairs: list[tuple[bytes | None, bytes | None]] = [(None, b"a"), (b"", b"")]
    raw = write_batch(pairs, base_offset=0, epoch=0, timestamp=0)
    assert raw[HEADER_SIZE:] == pack(pairs)
