"""Kafka's primitive types on the wire: UUIDs and variable-length numbers.

Sources: Kafka's protocol guide ("Protocol Primitive Types") and ``org.apache.kafka.common.utils.ByteUtils``.
"""

from __future__ import annotations

import binascii
from mmap import mmap

Buffer = bytes | mmap
"""Bytes to read from: the value of a record, a segment, or a memory-mapped snapshot."""

MAX_VARINT_BYTES = 5
"""Bytes of the longest varint of an int32; a longer one is damage."""
MAX_VARLONG_BYTES = 10
_UUID_CHARS = 22
_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_STANDARD = str.maketrans("-_", "+/")
_ALPHABET = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


class DecodeError(ValueError):
    """Bytes are not what their declaration or format says; ``position`` is an index into the buffer being decoded."""

    def __init__(self, reason: str, position: int) -> None:
        super().__init__(f"{reason} (at byte {position} of the value)")
        self.reason = reason
        self.position = position


class Uuid(bytes):
    """16 bytes; prints as Kafka prints it: URL-safe base64 without padding (``org.apache.kafka.common.Uuid``)."""

    __slots__ = ()

    def __str__(self) -> str:
        return binascii.b2a_base64(self, newline=False)[:-2].translate(_URL_SAFE).decode("ascii")

    def __repr__(self) -> str:
        return f"Uuid({str(self)!r})"

    @classmethod
    def parse(cls, text: str) -> Uuid:
        """Parse what ``str`` returns. Raises ``ValueError`` for anything else than 22 characters of URL-safe base64."""
        if len(text) != _UUID_CHARS or not set(text) <= _ALPHABET:
            raise ValueError(f"not a Kafka UUID: {text!r}")
        return cls(binascii.a2b_base64(text.translate(_STANDARD) + "=="))


ZERO_UUID = Uuid(16)


def _digits(buf: Buffer, pos: int, most: int) -> tuple[int, int]:
    """Read a number of up to ``most`` bytes, seven bits each, lowest first; return (value, position after it)."""
    value = shift = 0
    start = pos
    while True:
        if pos >= len(buf):
            raise DecodeError("a varint runs past the end", start)
        byte = buf[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, pos
        shift += 7
        if pos - start >= most:
            raise DecodeError(f"a varint is longer than {most} bytes", start)


def read_uvarint(buf: Buffer, pos: int) -> tuple[int, int]:
    """Read the unsigned varint (at most 32 bits) at ``pos``; return (value, position after it). Raises DecodeError."""
    value, end = _digits(buf, pos, MAX_VARINT_BYTES)
    if value > 0xFFFFFFFF:
        raise DecodeError("a varint is larger than 32 bits", pos)
    return value, end


def read_varint(buf: Buffer, pos: int) -> tuple[int, int]:
    """Read the zigzag varint (32 bits) at ``pos``; return (value, position after it). Raises DecodeError."""
    if pos < len(buf) and buf[pos] < 0x80:
        return (buf[pos] >> 1) ^ -(buf[pos] & 1), pos + 1
    value, pos = read_uvarint(buf, pos)
    return (value >> 1) ^ -(value & 1), pos


def read_varlong(buf: Buffer, pos: int) -> tuple[int, int]:
    """Read the zigzag varint (64 bits, for timestamp deltas) at ``pos``; return as :func:`read_varint`."""
    if pos < len(buf) and buf[pos] < 0x80:
        return (buf[pos] >> 1) ^ -(buf[pos] & 1), pos + 1
    value, pos = _digits(buf, pos, MAX_VARLONG_BYTES)
    value &= 0xFFFFFFFFFFFFFFFF
    return (value >> 1) ^ -(value & 1), pos


def write_uvarint(value: int) -> bytes:
    """Encode a number as an unsigned varint."""
    out = bytearray()
    while value > 0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def write_varint(value: int) -> bytes:
    """Encode a signed number (32 or 64 bits) as a zigzag varint."""
    return write_uvarint((value << 1) if value >= 0 else ((-value) << 1) - 1)
