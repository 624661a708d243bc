"""Where the records of a batch begin and end, found by the regular-expression engine.

A batch is a chain of length-prefixed records and has few distinct shapes. For partition records the shapes seen so far
become one bytes pattern; a look-ahead captures the topic id at its fixed place, and one match then takes all following
partitions of that topic. A record of a new shape is framed by hand and its shape learned. Every boundary is still
proven by its length prefix, the work is linear, and nothing is copied.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from kshell.protocol.primitives import Buffer, DecodeError, read_varint, read_varlong, write_varint

_PARTITION_API_KEY = 3
_HEAD = 3
"""Bytes of a value before its message: frame version, api key, version (one each while they stay below 128)."""
_TOPIC_ID = _HEAD + 4
_UUID = 16
_NULL_KEY = 1
"""-1 as a zigzag varint."""
_MAX_SHAPES = 128
"""Real snapshots have 17 to 35. Further ones are framed by hand: patterns that grow with the input are slow."""


class Span(NamedTuple):
    """A record in a buffer: its first byte, its value's first byte and end, its end, and its offset delta."""

    start: int
    value: int
    value_end: int
    end: int
    delta: int
    time_delta: int


class PartitionRun(NamedTuple):
    """Partition records of one topic, back to back: bytes ``start`` to ``end``."""

    topic_id: bytes
    start: int
    end: int


def span(buf: Buffer, start: int, limit: int) -> Span:
    """Frames the record at ``start`` by hand. Raises DecodeError unless it is a plain one: null key, no headers."""
    # Most of these numbers fit one byte; spelled out here because a large snapshot is framed with this.
    first, pos = buf[start], start + 1
    size = first >> 1 if first < 0x80 and not first & 1 else -1
    if size < 0:
        size, pos = read_varint(buf, start)
    end = pos + size
    if size < 0 or end > limit:
        raise DecodeError(f"a record of {size} bytes runs past the end of the batch", start)
    time_delta, pos = (0, pos + 2) if not buf[pos + 1] else read_varlong(buf, pos + 1)
    delta, pos = read_varint(buf, pos)
    key, pos = (-1, pos + 1) if buf[pos] == _NULL_KEY else read_varint(buf, pos)
    length, pos = read_varint(buf, pos)
    if key != -1 or length < 0 or pos + length + 1 != end or buf[end - 1] != 0:
        raise DecodeError("a metadata record has a key, headers or no value", start)
    return Span(start, pos, pos + length, end, delta, time_delta)


def iter_values(buf: Buffer, start: int, end: int) -> Iterator[tuple[int, bytes]]:
    """(offset delta, value) of each record between two boundaries."""
    while start < end:
        found = span(buf, start, end)
        yield found.delta, bytes(buf[found.value : found.value_end])
        start = found.end


class Framer:
    """Walks the records of batches; keeps the shapes of partition records that it has met.

    ``patience``: partitions framed by hand before a new shape goes into the patterns, because compiling one takes a
    millisecond or more; a small snapshot needs none.
    """

    def __init__(self, patience: int = 32) -> None:
        self._patience = patience
        self._known: set[tuple[int, ...]] = set()
        self._patterns: dict[int, re.Pattern[bytes]] = {}
        self._alternatives: list[bytes] = []
        self._by_hand = 0
        self._last: re.Pattern[bytes] | None = None
        """The pattern of the last run: the next topic's partitions begin alike more often than not."""

    def frame(self, buf: Buffer, start: int, end: int) -> Iterator[Span | PartitionRun]:
        """Every record between two boundaries, partitions taken together where they follow each other."""
        while start < end:
            match = self._last.match(buf, start, end) if self._last else None
            if match is not None:
                yield PartitionRun(match[1], start, match.end())
                start = match.end()
                continue
            found = span(buf, start, end)
            if not _is_partition(buf, found):
                yield found
                start = found.end
                continue
            place = found.value + _TOPIC_ID
            stop = self._run(buf, found, place - start, end)
            yield PartitionRun(bytes(buf[place : place + _UUID]), start, stop)
            start = stop

    def _run(self, buf: Buffer, first: Span, place: int, end: int) -> int:
        """The end of the run that starts with ``first``, whose topic id is ``place`` bytes into it."""
        self._learn(buf, first)
        pattern = self._patterns.get(place)
        if pattern is None:
            self._by_hand += 1
            if self._by_hand < self._patience:
                return first.end
            self._by_hand = 0
            # The shapes met last come first: those of large offset deltas, which most records of a large batch have.
            shapes = b"|".join(reversed(self._alternatives))
            pattern = self._patterns[place] = re.compile(b"(?s)(?=.{%d}(.{16}))(?:%s)++" % (place, shapes))
        self._last = pattern
        match = pattern.match(buf, first.start, end)
        return match.end() if match else first.end

    def _learn(self, buf: Buffer, found: Span) -> None:
        length = found.value_end - found.value
        width = found.value - 1 - len(write_varint(length)) - found.start  # up to and with the offset delta
        shape = (found.end - found.start, length, width, found.time_delta, buf[found.value + 2])
        if shape in self._known or len(self._known) >= _MAX_SHAPES:
            return
        self._known.add(shape)
        self._patterns.clear()
        self._alternatives.append(_alternative(buf, found, length))


def _is_partition(buf: Buffer, found: Span) -> bool:
    value = found.value
    return (
        found.value_end - value >= _TOPIC_ID + _UUID
        and buf[value + 1] == _PARTITION_API_KEY
        and buf[value] == 1
        and buf[value + 2] <= 2
    )


def _alternative(buf: Buffer, found: Span, length: int) -> bytes:
    """The pattern of one shape: literal framing, any partition id, the run's topic id, then as many bytes as it has."""
    size = write_varint(found.end - found.start - _varint_width(buf, found.start))
    delta_width = _delta_width(buf, found, len(size))
    delta = b"[\x80-\xff]" * (delta_width - 1) + b"[\x00-\x7f]"
    head = buf[found.start + len(size) : found.start + len(size) + 1] + write_varint(found.time_delta)
    value_head = write_varint(-1) + write_varint(length) + buf[found.value : found.value + _HEAD]
    rest = length - _TOPIC_ID - _UUID
    return re.escape(size + head) + delta + re.escape(value_head) + b".{4}\\1.{%d}\x00" % rest


def _varint_width(buf: Buffer, pos: int) -> int:
    width = 1
    while buf[pos + width - 1] >= 0x80:
        width += 1
    return width


def _delta_width(buf: Buffer, found: Span, size_width: int) -> int:
    return _varint_width(buf, found.start + size_width + 1 + len(write_varint(found.time_delta)))
