"""Where the records of a batch begin and end, found by the regular-expression engine.

A batch is a chain of length-prefixed records and has few distinct shapes. The shapes of topic and partition records
seen so far become one bytes pattern: one match takes a topic's record and, by a back-reference to the id in it, all
partitions of that topic that follow. A record of a new shape is framed by hand and its shape learned. Every boundary is
still proven by its length prefix, the work is linear, and nothing is copied.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from kshell.protocol.primitives import Buffer, DecodeError, read_varint, read_varlong

_PARTITION_API_KEY = 3
_HEAD = 3
"""Bytes of a value before its message: frame version, api key, version (one each while they stay below 128)."""
_TOPIC_ID = _HEAD + 4
_UUID = 16
_TOPIC_HEAD = b"\x01\x02\x00"
_LONGEST_NAME = 126
"""A name whose length fits one byte (Kafka's own limit is 249 characters); longer ones are framed by hand."""
_BACK = b"<topic id>"
"""Placeholder of the back-reference in a partition's shape: its number depends on the pattern around it."""
_NULL_KEY = 1
"""-1 as a zigzag varint."""
_HEAD_ROOM = 10
"""Bytes before a value whose record has sizes and an offset delta as most have."""
_MAX_SHAPES = 128
"""Real snapshots have 17 to 35. Further ones are framed by hand: patterns that grow with the input are slow."""
_POSSESSIVE = b"" if re.fullmatch(b"(?:a.b|acc)*+", b"acca") else b"+"
"""Behind a repetition: its turns are not kept for going back, which saves memory and, in long runs, most of the time.

Nothing follows these repetitions, so the matches are the same without it. Python before 3.11.5 (Debian 12 has 3.11.2)
does without: its possessive repetitions of alternatives run past the end of what matches (python/cpython#106052).
"""


class RecordBounds(NamedTuple):
    """A record in a buffer: its first byte, its value's first byte and end, its end, and its offset delta."""

    start: int
    value: int
    value_end: int
    end: int
    delta: int
    time_delta: int


class OddRecord(NamedTuple):
    """A record with a key or headers, or without a value: bytes ``start`` to ``end``, not looked into."""

    start: int
    end: int
    delta: int


class PartitionRun(NamedTuple):
    """Partition records of one topic, back to back: bytes ``start`` to ``end``; ``delta`` is the first one's."""

    topic_id: bytes
    start: int
    end: int
    delta: int


class TopicRun(NamedTuple):
    """A topic's record (v0, without tags), and the partition records behind it: bytes ``start`` to ``end``, or none."""

    name: bytes
    topic_id: bytes
    delta: int
    start: int
    end: int


Framed = RecordBounds | PartitionRun | TopicRun | OddRecord
_RUNS = (PartitionRun, TopicRun)


class NotPlainError(DecodeError):
    """A record of the right length that is no plain metadata record (:class:`OddRecord`)."""

    def __init__(self, record: OddRecord) -> None:
        super().__init__("a metadata record has a key, headers or no value", record.start)
        self.record = record


def span(buf: Buffer, start: int, limit: int) -> RecordBounds:
    """Frame the record at ``start`` by hand. Raises DecodeError: NotPlainError for a key, headers or no value."""
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
        raise NotPlainError(OddRecord(start, end, delta))
    return RecordBounds(start, pos, pos + length, end, delta, time_delta)


def iter_values(buf: Buffer, start: int, end: int) -> Iterator[tuple[int, bytes]]:
    """(offset delta, value) of each record between two boundaries."""
    while start < end:
        # What span() does, spelled out once more for records without a time delta whose size, offset delta and length
        # have two digits at most (the offset delta three): a topic of many partitions is opened with this.
        if end - start >= _HEAD_ROOM:
            size, pos = buf[start], start + 1
            if size >= 0x80:
                size, pos = size & 0x7F | buf[pos] << 7, pos + 1
            stop, is_timed, delta, pos = pos + (size >> 1), buf[pos + 1], buf[pos + 2], pos + 3
            if delta >= 0x80:
                digit, pos = buf[pos], pos + 1
                delta = delta & 0x7F | digit << 7
                if digit >= 0x80:
                    delta, pos = delta & 0x3FFF | buf[pos] << 14, pos + 1
            key, length, pos = buf[pos], buf[pos + 1], pos + 2
            if length >= 0x80:
                length, pos = length & 0x7F | buf[pos] << 7, pos + 1
            is_short = size < 1 << 14 and delta < 1 << 21 and length < 1 << 14
            if is_short and not (size & 1 or is_timed or delta & 1 or length & 1) and key == _NULL_KEY and stop <= end:
                value_end = pos + (length >> 1)
                if value_end + 1 == stop and buf[value_end] == 0:
                    yield delta >> 1, bytes(buf[pos:value_end])
                    start = stop
                    continue
        record = span(buf, start, end)
        yield record.delta, bytes(buf[record.value : record.value_end])
        start = record.end


class Framer:
    """Walks the records of batches; keeps the shapes of topic and partition records that it has met.

    ``patience``: partitions framed by hand before a new shape goes into the patterns, because compiling one takes a
    millisecond or more; a small snapshot needs none.
    """

    def __init__(self, patience: int = 32) -> None:
        self._patience = patience
        self._shapes: set[bytes] = set()
        self._topics: list[bytes] = []
        self._name_sizes: set[int] = set()
        self._partitions: list[bytes] = []
        self._sizes: set[int] = set()
        """Of partition records, in bytes."""
        self._by_hand = 0
        self._new = False
        self._topic: re.Pattern[bytes] | None = None
        self._runs: dict[int, re.Pattern[bytes]] | None = None

    def checked(self, buf: Buffer, start: int, end: int, last: int) -> Iterator[Framed]:
        """As :meth:`frame`, for a batch whose last offset delta is ``last``. Raises DecodeError if offsets do not fit.

        Runs are not walked for that (it would cost what runs save): what follows one only has to be later. The batch's
        last record is looked for.
        """
        due, run = 0, None
        for framed in self.frame(buf, start, end):
            delta = framed.delta
            if delta < due or (run is None and delta != due):
                raise DecodeError(f"a record claims offset delta {delta}, {due} was to come", framed.start)
            due = delta + 1
            run = framed if isinstance(framed, _RUNS) and framed.start < framed.end else None
            yield framed
        if due != last + 1 if run is None else not self._ends_with(buf, run.start, run.end, last):
            raise DecodeError(f"the batch counts {last + 1} records, its last record is not number {last + 1}", end)

    def _ends_with(self, buf: Buffer, start: int, end: int, delta: int) -> bool:
        """Whether a run's last record has that offset delta: looked for from behind by the sizes met, else walked."""
        for size in self._sizes:
            if start <= end - size:
                try:
                    tail = span(buf, end - size, end)
                except (DecodeError, IndexError):
                    continue
                if tail.end == end and tail.delta == delta and _is_partition(buf, tail):
                    return True
        return [record_delta for record_delta, _ in iter_values(buf, start, end)][-1] == delta

    def frame(self, buf: Buffer, start: int, end: int) -> Iterator[Framed]:
        """Every record between two boundaries; topics and partitions taken together where they follow each other."""
        while start < end:
            match = self._topic.match(buf, start, end) if self._topic else None
            if match is not None:
                # Size (one byte or two), attributes and time delta (one byte each) come before the offset delta.
                delta, _ = read_varint(buf, start + (3 if buf[start] < 0x80 else 4))
                name_start, name_end = match.end(1), match.start(2)
                start = match.end()
                yield TopicRun(buf[name_start:name_end], match[2], delta, name_end + _UUID + 2, start)
                continue
            try:
                record = span(buf, start, end)
            except NotPlainError as error:
                yield error.record
                start = error.record.end
                continue
            if _is_partition(buf, record):
                stop = self._run(buf, record, end)
                place = record.value + _TOPIC_ID
                yield PartitionRun(buf[place : place + _UUID], start, stop, record.delta)
                start = stop
            else:
                self._learn_topic(buf, record)
                yield record
                start = record.end

    def _run(self, buf: Buffer, first: RecordBounds, end: int) -> int:
        """The end of the run that starts with ``first``: a topic without its record in front, or a new shape."""
        self._learn_partition(buf, first)
        if self._runs is None:
            return first.end
        place = first.value + _TOPIC_ID - first.start
        pattern = self._runs.get(place)
        if pattern is None:
            pattern = self._runs[place] = re.compile(
                b"(?s)(?=.{%d}(.{16}))(?:%s)+%s" % (place, self._any(1), _POSSESSIVE)
            )
        match = pattern.match(buf, first.start, end)
        return match.end() if match else first.end

    def _learn_topic(self, buf: Buffer, record: RecordBounds) -> None:
        name_size = record.value_end - record.value - _HEAD - 1 - _UUID - 1
        if buf[record.value : record.value + _HEAD] != _TOPIC_HEAD or not 0 < name_size <= _LONGEST_NAME:
            return
        plain = buf[record.value + _HEAD] == name_size + 1 and buf[record.value_end - 1] == 0 and record.time_delta == 0
        if plain and self._is_new(head := _head(buf, record, _HEAD + 1)):
            self._topics.append(head)
            self._name_sizes.add(name_size)

    def _learn_partition(self, buf: Buffer, record: RecordBounds) -> None:
        rest = record.value_end - record.value - _TOPIC_ID - _UUID
        if self._is_new(head := _head(buf, record, _HEAD)):
            self._sizes.add(record.end - record.start)
            self._partitions.append(head + b".{4}%s.{%d}\x00" % (_BACK, rest))
        self._by_hand += 1
        if self._new and self._by_hand >= self._patience:
            self._compile()

    def _is_new(self, shape: bytes) -> bool:
        if shape in self._shapes or len(self._shapes) >= _MAX_SHAPES:
            return False
        self._shapes.add(shape)
        self._new = True
        return True

    def _compile(self) -> None:
        self._by_hand, self._new, self._runs = 0, False, {}
        if not self._topics:
            return
        # Which head matched decides how long the name is: a look-behind at its last byte, the name's length, says so.
        names = b"|".join(b"(?<=%s).{%d}" % (re.escape(bytes([n + 1])), n) for n in sorted(self._name_sizes))
        heads = b"|".join(reversed(self._topics))
        self._topic = re.compile(b"(?s)(%s)(?:%s)(.{16})\x00\x00(?:%s)*%s" % (heads, names, self._any(2), _POSSESSIVE))

    def _any(self, group: int) -> bytes:
        """Any shape of partition, with the topic id that ``group`` captured.

        The shapes met last come first: those of large offset deltas, which most records of a large batch have.
        """
        return b"|".join(reversed(self._partitions)).replace(_BACK, b"\\%d" % group)


def _is_partition(buf: Buffer, record: RecordBounds) -> bool:
    value = record.value
    return (
        record.value_end - value >= _TOPIC_ID + _UUID
        and buf[value + 1] == _PARTITION_API_KEY
        and buf[value] == 1
        and buf[value + 2] <= 2
    )


def _head(buf: Buffer, record: RecordBounds, size: int) -> bytes:
    """The pattern of a record up to ``size`` bytes of its value: literal but for the digits of the offset delta."""
    start = record.start + _varint_width(buf, record.start) + 1
    start += _varint_width(buf, start)
    width = _varint_width(buf, start)
    digits = b"[\x80-\xff]" * (width - 1) + b"[\x00-\x7f]"
    return re.escape(buf[record.start : start]) + digits + re.escape(buf[start + width : record.value + size])


def _varint_width(buf: Buffer, pos: int) -> int:
    width = 1
    while buf[pos + width - 1] >= 0x80:
        width += 1
    return width
