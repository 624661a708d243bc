"""Varints and UUIDs at their edges."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshell.protocol.primitives import (
    ZERO_UUID,
    DecodeError,
    Uuid,
    read_uvarint,
    read_varint,
    read_varlong,
    write_uvarint,
    write_varint,
)


@pytest.mark.parametrize(
    ("number", "raw"),
    [
        (0, "00"),
        (1, "01"),
        (127, "7f"),
        (128, "8001"),
        (300, "ac02"),
        (16383, "ff7f"),
        (16384, "808001"),
        (2**31, "8080808008"),
        (2**32 - 1, "ffffffff0f"),
    ],
)
def test_unsigned_varints(number: int, raw: str) -> None:
    encoded = bytes.fromhex(raw)
    assert write_uvarint(number) == encoded
    assert read_uvarint(b"x" + encoded + b"\xff", 1) == (number, 1 + len(encoded))


@pytest.mark.parametrize(
    ("number", "raw"),
    [(0, "00"), (-1, "01"), (1, "02"), (63, "7e"), (-64, "7f"), (64, "8001"), (-65, "8101"),
     (2**31 - 1, "feffffff0f"), (-(2**31), "ffffffff0f")],
)  # fmt: skip
def test_zigzag_varints(number: int, raw: str) -> None:
    encoded = bytes.fromhex(raw)
    assert write_varint(number) == encoded
    assert read_varint(encoded, 0) == (number, len(encoded))
    assert read_varlong(encoded, 0) == (number, len(encoded))


@pytest.mark.parametrize("number", [2**63 - 1, -(2**63), 2**32, -(2**32) - 1])
def test_a_varlong_holds_64_bits(number: int) -> None:
    encoded = write_varint(number)
    assert read_varlong(encoded, 0) == (number, len(encoded))
    if number in (2**63 - 1, -(2**63)):
        assert len(encoded) == 10


@given(st.integers(-(2**63), 2**63 - 1), st.binary(max_size=3))
def test_varlongs_round_trip(number: int, before: bytes) -> None:
    encoded = write_varint(number)
    assert read_varlong(before + encoded, len(before)) == (number, len(before) + len(encoded))


@given(st.integers(0, 2**32 - 1))
def test_every_cut_of_a_varint_is_an_error(number: int) -> None:
    encoded = write_uvarint(number)
    for size in range(len(encoded)):
        for read in (read_uvarint, read_varint, read_varlong):
            with pytest.raises(DecodeError, match="past the end"):
                read(encoded[:size], 0)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [(b"\xff\xff\xff\xff\x1f", "larger than 32 bits"), (b"\x80\x80\x80\x80\x80\x00", "longer than 5 bytes")],
)
def test_a_varint_beyond_32_bits_is_damage(raw: bytes, reason: str) -> None:
    for read in (read_uvarint, read_varint):
        with pytest.raises(DecodeError, match=reason) as caught:
            read(b"\x00" + raw, 1)
        assert caught.value.position == 1


def test_a_varlong_beyond_ten_bytes_is_damage() -> None:
    with pytest.raises(DecodeError, match="longer than 10 bytes"):
        read_varlong(b"\x80" * 10 + b"\x00", 0)


def test_uuids_print_as_kafka_prints_them() -> None:
    assert str(ZERO_UUID) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert str(Uuid(b"\x00" * 15 + b"\x01")) == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert repr(Uuid(b"\xff" * 16)) == "Uuid('_____________________w')"
    assert str(Uuid(b"\xfb" * 16)) == "-_v7-_v7-_v7-_v7-_v7-w"


@given(st.binary(min_size=16, max_size=16))
def test_uuids_round_trip(raw: bytes) -> None:
    text = str(Uuid(raw))
    assert len(text) == 22
    assert Uuid.parse(text) == raw


@pytest.mark.parametrize(
    "text", ["", "A", "AAAAAAAAAAAAAAAAAAAAA", "A" * 23, "A" * 24, "AAAAAAAAAAAAAAAAAAAA+Q", "é" * 22]
)
def test_what_is_not_a_uuid_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a Kafka UUID"):
        Uuid.parse(text)


def test_a_decode_error_says_where() -> None:
    error = DecodeError("odd", 7)
    assert (error.reason, error.position) == ("odd", 7)
    assert "byte 7" in str(error)
