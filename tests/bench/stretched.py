"""Generated logs, which are written in an instant, with the times of a cluster that has run for months."""

from __future__ import annotations

import struct
from pathlib import Path

import crc32c

_HEADER = struct.Struct(">qi")
_CRC, _ATTRIBUTES, _TIMES = 17, 21, 27
_BEGIN = 1_700_000_000_000
_DAY = 86_400_000


def stretched(log: Path, days: int) -> Path:
    """The same log, its batches evenly over so many days; kept beside it."""
    made = log.parent / f"{days}-days" / log.name
    if not made.exists():
        raw = bytearray(log.read_bytes())
        places = list(_places(raw))
        for number, (at, end) in enumerate(places):
            ms = _BEGIN + days * _DAY * number // len(places)
            struct.pack_into(">qq", raw, at + _TIMES, ms, ms)
            struct.pack_into(">I", raw, at + _CRC, crc32c.crc32c(raw[at + _ATTRIBUTES : end]))
        made.parent.mkdir(exist_ok=True)
        part = made.with_suffix(".part")
        part.write_bytes(raw)
        part.replace(made)
    return made


def _places(raw: bytearray) -> list[tuple[int, int]]:
    """(first byte, byte after) of each batch."""
    found, at = [], 0
    while at < len(raw):
        _, size = _HEADER.unpack_from(raw, at)
        found.append((at, at + _HEADER.size + size))
        at = found[-1][1]
    return found
