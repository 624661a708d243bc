"""CRC-32C in plain Python: the package ``crc32c`` of ``kshell.pyz``, where no compiled one can be loaded.

Short data goes through the usual table, a byte at a time. Long data is cut into lanes of 128 bytes that advance
together: in each step one byte of every lane is looked up by one call of ``bytes.translate``, and the four bytes of all
lanes' states are combined as four large numbers, so that Python's own loops in C do the work. At the end the states are
joined from left to right: a state that passes over 128 bytes changes linearly, so four tables of 256 entries do it.
"""

from __future__ import annotations

from functools import cache

_POLYNOMIAL = 0x82F63B78  # Castagnoli's, bits reversed (RFC 3720, appendix B.4)
_LANE = 128
_WORTH_IT = 3072
"""From so many bytes on the lanes are faster."""
_BLOCK = 1 << 18
"""So much at a time stays in the processor's cache."""


def _entry(index: int) -> int:
    for _ in range(8):
        index = index >> 1 ^ (_POLYNOMIAL if index & 1 else 0)
    return index


_TABLE = tuple(map(_entry, range(256)))


def crc32c(data: bytes | memoryview, value: int = 0) -> int:
    """Return the CRC-32C of ``data``; ``value`` is that of the data before it."""
    state = value ^ 0xFFFFFFFF
    rest = memoryview(data)
    while len(rest) >= _WORTH_IT:
        end = min(len(rest), _BLOCK) // _LANE * _LANE
        state = _lanes(bytes(rest[:end]), state)
        rest = rest[end:]
    table = _TABLE
    for byte in rest.tobytes():
        state = table[(state ^ byte) & 255] ^ state >> 8
    return state ^ 0xFFFFFFFF


def _lanes(data: bytes, state: int) -> int:
    """The state after ``data``, whose length is a multiple of the lanes'."""
    count = len(data) // _LANE
    lookups, joins = _tables()
    # Byte k of every lane's state, as one number: the first lane in its lowest byte.
    low, second, third, high = ((state >> shift) & 255 for shift in (0, 8, 16, 24))
    for i in range(_LANE):
        index = (low ^ int.from_bytes(data[i::_LANE], "little")).to_bytes(count, "little")
        low, second, third, high = (
            before ^ int.from_bytes(index.translate(lookup), "little")
            for before, lookup in zip((second, third, high, 0), lookups, strict=True)
        )
    planes = [plane.to_bytes(count, "little") for plane in (low, second, third, high)]
    first, *others = zip(*planes, strict=True)
    state = int.from_bytes(first, "little")
    join0, join1, join2, join3 = joins
    for lane in others:
        state = (
            join0[state & 255] ^ join1[state >> 8 & 255] ^ join2[state >> 16 & 255] ^ join3[state >> 24]
        ) ^ int.from_bytes(lane, "little")
    return state


@cache
def _tables() -> tuple[list[bytes], list[list[int]]]:
    """Each byte of the table's entries, and what each byte of a state becomes after a lane of zeros."""
    lookups = [bytes(entry >> shift & 255 for entry in _TABLE) for shift in (0, 8, 16, 24)]
    joins = []
    for shift in (0, 8, 16, 24):
        bits = []
        for bit in range(8):
            state = 1 << shift + bit
            for _ in range(_LANE):
                state = _TABLE[state & 255] ^ state >> 8
            bits.append(state)
        join = [0] * 256
        for byte in range(1, 256):
            lowest = byte & -byte
            join[byte] = join[byte ^ lowest] ^ bits[lowest.bit_length() - 1]
        joins.append(join)
    return lookups, joins
