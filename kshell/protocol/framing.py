"""Find where the records of a batch begin and end ("framing"), fast enough for a snapshot of a million partitions.

In: the records of a batch, back to back, decompressed. Out: their positions, one item per record, or per run of
partition records of one topic.

Each record begins with its length, so a plain loop takes a step of Python per record: too slow here. But records have
few *shapes*: the bytes before the value and the length of the value are equal where the fields have the same sizes.
:class:`Framer` frames the records of a new shape one by one (:func:`span`) and notes the shape. From the shapes of
topics and partitions it compiles one regular expression over bytes: one match takes a topic's record and, by a
back-reference to the topic id, all of the topic's partitions that follow. The length is part of the shape, so every
boundary is still proven by it; the work is linear, and nothing is copied.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from kshell.protocol.primitives import Buffer, DecodeError, read_varint, read_varlong

_PARTITION_API_KEY = 3
_VALUE_HEADER_SIZE = 3
"""Bytes of a value before its message: frame version, api key, version (one each while they stay below 128)."""
_TOPIC_ID_AT = _VALUE_HEADER_SIZE + 4
"""Position of the topic id in the value of a PartitionRecord; the partition's number is before it."""
_UUID = 16
_TOPIC_HEADER = b"\x01\x02\x00"
"""The first bytes of the value of a TopicRecord, version 0."""
_LONGEST_NAME = 126
"""Bytes of the longest topic name whose length fits one byte (Kafka's limit is 249); longer ones are framed singly."""
_BACK = b"<topic id>"
"""Placeholder for the back-reference in a partition's shape: the group's number depends on the pattern around it."""
_NULL_KEY = 1
"""The key's length, -1 for null, as a zigzag varint."""
_HEAD_ROOM = 10
"""Bytes before the value of a record, at most, if its sizes have two bytes and its offset delta has three."""
_MAX_SHAPES = 128
"""Shapes that are noted; real snapshots have 17 to 35. Records of further shapes are framed one by one, because a
pattern that grows with the input is slow."""
_SMALL, _PATIENCE = 512, 32
"""Partition records that are framed one by one before the first patterns are compiled, and before the next ones."""
_POSSESSIVE = b"" if re.fullmatch(b"(?:a.b|acc)*+", b"acca") else b"+"
"""Suffix that makes a repetition possessive: no backtracking, which saves memory and, in long runs, most of the time.

Nothing follows these repetitions, so they match the same without the suffix. It is left out for Python before 3.11.5
(Debian 12 has 3.11.2), where possessive repetitions of alternatives match too much (python/cpython#106052).
"""


class RecordBounds(NamedTuple):
    """Positions of a record and of its value in a buffer (ends are exclusive), and its offset and timestamp deltas."""

    start: int
    value: int
    value_end: int
    end: int
    delta: int
    time_delta: int


class KeyedRecord(NamedTuple):
    """A record with a key or headers, or without a value: bytes ``start`` to ``end``; its contents are not read."""

    start: int
    end: int
    delta: int


class PartitionRun(NamedTuple):
    """Partition records of one topic, bytes ``start`` to ``end``; ``delta`` is the offset delta of the first record."""

    topic_id: bytes
    start: int
    end: int
    delta: int


class TopicRun(NamedTuple):
    """A TopicRecord (v0, without tags), and the bytes ``start`` to ``end`` of its partitions' records, maybe none."""

    name: bytes
    topic_id: bytes
    delta: int
    start: int
    end: int


_new_topic_run = partial(tuple.__new__, TopicRun)
Framed = RecordBounds | PartitionRun | TopicRun | KeyedRecord
_RUNS = (PartitionRun, TopicRun)


class NotPlainError(DecodeError):
    """Raised for a record of valid length that has a key or headers, or no value; ``record`` has its positions."""

    def __init__(self, record: KeyedRecord) -> None:
        super().__init__("a metadata record has a key, headers or no value", record.start)
        self.record = record


def span(buf: Buffer, start: int, limit: int) -> RecordBounds:
    """Read the bounds of the record at ``start``, which must end by ``limit``. Raises DecodeError, NotPlainError."""
    # Most of these numbers fit one byte. That case is written out here because this function is called very often.
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
        raise NotPlainError(KeyedRecord(start, end, delta))
    return RecordBounds(start, pos, pos + length, end, delta, time_delta)


def iter_values(buf: Buffer, start: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Yield (offset delta, value) of each record in bytes ``start`` to ``end``. Raises DecodeError, as :func:`span`."""
    while start < end:
        # The same as span(), written out for the common record: timestamp delta 0, size and value length of at most
        # two bytes, offset delta of at most three. It makes opening a topic of many partitions fast.
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
    """Finds the records of batches; one object for all batches of a log, because it remembers the shapes of records.

    ``patience``: how many partition records are framed one by one before new shapes are compiled into the patterns,
    which takes a millisecond or more. By default a framer that sees fewer than :data:`_SMALL` of them compiles none.
    """

    def __init__(self, patience: int | None = None) -> None:
        self._patience = _PATIENCE if patience is None else patience
        self._remaining = _SMALL if patience is None else patience
        """Partition records that are framed one by one before the next compilation, if there are new shapes."""
        self._shapes: set[bytes] = set()
        self._topics: list[bytes] = []
        self._name_sizes: set[int] = set()
        self._partitions: list[bytes] = []
        self._sizes: set[int] = set()
        """Sizes in bytes of the partition records whose shapes are noted."""
        self._has_new_shapes = False
        self._topic: re.Pattern[bytes] | None = None
        self._runs: dict[int, re.Pattern[bytes]] | None = None

    def checked(self, buf: Buffer, start: int, end: int, last: int) -> Iterator[Framed]:
        """Yield the same as :meth:`frame`; raise DecodeError if the offset deltas, 0 to ``last``, are not in order.

        Records inside a run are not visited, because that would cost what runs save: a record after a run only has to
        have a higher delta than the run's first one. The last record of the batch must have the delta ``last``.
        A topic's partition records count as one run with its TopicRecord, also where they are framed one by one: the
        verdict must not depend on which patterns there are already.
        """
        due, run, before = 0, None, None
        for framed in self.frame(buf, start, end):
            delta = framed.delta
            if before is None or not isinstance(framed, PartitionRun) or framed.topic_id != _topic_id(buf, before):
                if delta < due or (run is None and delta != due):
                    raise DecodeError(f"a record claims offset delta {delta}, {due} was expected", framed.start)
                due = delta + 1
            run = framed if isinstance(framed, _RUNS) and framed.start < framed.end else None
            before = framed
            yield framed
        is_complete = due == last + 1 if run is None else self._ends_with(buf, run.start, run.end, last)
        if not is_complete:
            raise DecodeError(f"the batch counts {last + 1} records, its last record is not number {last + 1}", end)

    def _ends_with(self, buf: Buffer, start: int, end: int, delta: int) -> bool:
        """Whether a run's last record has that offset delta: tried with each known size, else the run is read."""
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
        """Yield the records in bytes ``start`` to ``end``; a topic and its partition records after it are one item."""
        while start < end:
            match = self._topic.match(buf, start, end) if self._topic else None
            if match is not None:
                # Size (one byte or two), attributes and time delta (one byte each) come before the offset delta, of
                # which the common lengths, two bytes and three, are read here.
                at = start + (3 if buf[start] < 0x80 else 4)
                low, middle, high = buf[at : at + 3]
                if low < 0x80 or low & 1 or high & middle & 0x80:
                    delta, _ = read_varint(buf, at)
                else:
                    delta = (low & 0x7F | (middle & 0x7F) << 7 | (high << 14 if middle & 0x80 else 0)) >> 1
                name_start, start = match.end(1), match.end()
                name_end = name_start + buf[name_start - 1] - 1  # the prefix ends with the name's length plus one
                yield _new_topic_run((buf[name_start:name_end], match[2], delta, name_end + _UUID + 2, start))
                continue
            try:
                record = span(buf, start, end)
            except NotPlainError as error:
                yield error.record
                start = error.record.end
                continue
            if _is_partition(buf, record):
                stop = self._run(buf, record, end)
                place = record.value + _TOPIC_ID_AT
                yield PartitionRun(buf[place : place + _UUID], start, stop, record.delta)
                start = stop
            else:
                self._learn_topic(buf, record)
                yield record
                start = record.end

    def _run(self, buf: Buffer, first: RecordBounds, end: int) -> int:
        """Return the end of the run that starts with ``first``: no TopicRecord is in front, or its shape is new."""
        self._learn_partition(buf, first)
        if self._runs is None:
            return first.end
        place = first.value + _TOPIC_ID_AT - first.start
        pattern = self._runs.get(place)
        if pattern is None:
            pattern = self._runs[place] = re.compile(
                b"(?s)(?=.{%d}(.{16}))(?:%s)+%s" % (place, self._any(1), _POSSESSIVE)
            )
        match = pattern.match(buf, first.start, end)
        return match.end() if match else first.end

    def _learn_topic(self, buf: Buffer, record: RecordBounds) -> None:
        """Note the shape of a TopicRecord (v0, without tags, with a short name); ignore any other record."""
        name_size = record.value_end - record.value - _VALUE_HEADER_SIZE - 1 - _UUID - 1
        if buf[record.value : record.value + _VALUE_HEADER_SIZE] != _TOPIC_HEADER or not 0 < name_size <= _LONGEST_NAME:
            return
        has_name = buf[record.value + _VALUE_HEADER_SIZE] == name_size + 1
        has_no_tags = buf[record.value_end - 1] == 0
        if not (has_name and has_no_tags) or record.time_delta:
            return
        prefix = _shape_prefix(buf, record, _VALUE_HEADER_SIZE + 1)
        if self._add_shape(prefix):
            self._topics.append(prefix)
            self._name_sizes.add(name_size)

    def _learn_partition(self, buf: Buffer, record: RecordBounds) -> None:
        """Note the shape of a partition record; compile the patterns when enough records were framed one by one."""
        rest = record.value_end - record.value - _TOPIC_ID_AT - _UUID
        if self._add_shape(prefix := _shape_prefix(buf, record, _VALUE_HEADER_SIZE)):
            self._sizes.add(record.end - record.start)
            self._partitions.append(prefix + b".{4}%s.{%d}\x00" % (_BACK, rest))
        self._remaining -= 1
        if self._has_new_shapes and self._remaining <= 0:
            self._compile()

    def _add_shape(self, shape: bytes) -> bool:
        """Note a shape. Return False if it was known, or if :data:`_MAX_SHAPES` are noted already."""
        if shape in self._shapes or len(self._shapes) >= _MAX_SHAPES:
            return False
        self._shapes.add(shape)
        self._has_new_shapes = True
        return True

    def _compile(self) -> None:
        """Compile the pattern of a topic with its partitions; patterns of runs are compiled when they are needed."""
        self._remaining, self._has_new_shapes, self._runs = self._patience, False, {}
        if not self._topics:
            return
        # The prefix that matched decides the length of the name: its last byte, which a look-behind reads, is that
        # length plus one.
        names = b"|".join(b"(?<=%s).{%d}" % (re.escape(bytes([n + 1])), n) for n in sorted(self._name_sizes))
        prefixes = b"|".join(reversed(self._topics))
        parts = (prefixes, names, self._any(2), _POSSESSIVE)
        self._topic = re.compile(b"(?s)(%s)(?:%s)(.{16})\x00\x00(?:%s)*%s" % parts)

    def _any(self, group: int) -> bytes:
        """Return a pattern for a partition record of any noted shape whose topic id is what ``group`` captured.

        The shapes that were noted last come first: they have large offset deltas, as most records of a large batch.
        """
        return b"|".join(reversed(self._partitions)).replace(_BACK, b"\\%d" % group)


def _topic_id(buf: Buffer, framed: Framed) -> bytes | None:
    """The id of the topic that a TopicRecord or a run is of; ``None`` for any other record."""
    if isinstance(framed, _RUNS):
        return framed.topic_id
    if isinstance(framed, KeyedRecord) or buf[framed.value : framed.value + _VALUE_HEADER_SIZE] != _TOPIC_HEADER:
        return None
    return bytes(buf[framed.value_end - 1 - _UUID : framed.value_end - 1])


def _is_partition(buf: Buffer, record: RecordBounds) -> bool:
    """Whether the value is a PartitionRecord of version 0 to 2, by its first bytes and its size."""
    value = record.value
    return (
        record.value_end - value >= _TOPIC_ID_AT + _UUID
        and buf[value + 1] == _PARTITION_API_KEY
        and buf[value] == 1
        and buf[value + 2] <= 2
    )


def _shape_prefix(buf: Buffer, record: RecordBounds, size: int) -> bytes:
    """Return a pattern for a record up to ``size`` bytes of its value: literal except for the offset delta's bytes."""
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
