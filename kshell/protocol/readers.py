"""Readers that avoid decoding whole messages: the key of one message, and many partition records in one step.

*Keys* (:func:`key_reader`): a log writes the same keys again and again, and only the last record of a key matters. So
the reader returns the key and checks that the rest of the message is well formed; the caller decodes the message later,
and only if it is the last one of its key.

*Runs* (:class:`RunReader`): in snapshots, partition records are back to back, and their values have few lengths. A
regular expression over bytes, compiled from these lengths, takes all records of a run apart in one step. The *state* of
a record, which is everything after the partition's number and the topic id, is decoded once for all records with equal
bytes. A run with any other record in it is left to the caller, who goes from record to record
(:func:`.framing.iter_values`).
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Generic, TypeVar

from kshell.protocol.framing import iter_values
from kshell.protocol.primitives import Buffer, DecodeError, read_uvarint, read_varint, write_varint
from kshell.protocol.schema import Field, Schema

KeyReader = Callable[[Buffer, int, int], "tuple[bytes, bytes, bool] | None"]
"""(buffer, start of the message, its end) -> (bytes of the key's first part, bytes of the rest of the key, whether the
message is a tombstone), or ``None``: see :func:`key_reader`."""

_SIZES = {"bool": 1, "int8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8, "float64": 8, "uuid": 16}
_ONE_BYTE = 0x7F
"""The largest number that a varint of one byte holds."""


def key_reader(
    schema: Schema, version: int, key: tuple[str, ...], tombstone: str | bool, first_part: int = 0
) -> KeyReader:
    """Make a function that reads the key of a message, for a flexible version (KIP-482).

    Args:
        schema: the declaration of the message.
        version: a version of the schema. ValueError is raised for one that is not flexible.
        key: top-level fields that lie side by side, in the order of the message.
        tombstone: whether every such message removes its key, or the nullable or boolean field that decides it.
        first_part: how many fields of the key are its first part.

    Returns:
        A reader that never raises. It returns ``None`` for a message that must be decoded to be understood: one that
        is malformed, has tagged fields, has a text of more than 126 bytes in its key, or is a tombstone with an array
        of several elements in its key (their order may have no meaning). For any other message,
        :func:`~.decoder.decoder` succeeds, and equal keys have equal bytes, except for keys with such an array.
    """
    if version < schema.flexible:
        raise ValueError(f"{schema.name} v{version} is not flexible")
    emitter = _Emitter(version, key, tombstone, first_part)
    return emitter.function(schema.fields)


class _Emitter:
    """Generates the source of a key reader; in it, ``b`` is the buffer and ``p`` the position.

    ``removes`` is whether the message is a tombstone, ``several`` whether an array in the key has more than one
    element.
    """

    def __init__(self, version: int, key: tuple[str, ...], tombstone: str | bool, first_part: int) -> None:
        self.version = version
        self.key = key
        self.tombstone = tombstone
        self.first_part = first_part
        self.lines: list[str] = []

    def function(self, fields: tuple[Field, ...]) -> KeyReader:
        self.lines = ["def read(b, p, stop):", "    try:"]
        self.emit(2, f"removes, several = {self.tombstone is True}, False")
        mine = [field for field in fields if self.version in field.versions and field.tag is None]
        names = [field.name for field in mine]
        first = names.index(self.key[0]) if self.key else 0
        if tuple(names[first : first + len(self.key)]) != self.key:
            raise ValueError(f"the fields {', '.join(self.key)} do not lie side by side")
        marks = {"start": first, "middle": first + self.first_part, "end": first + len(self.key)}
        for at in range(len(mine) + 1):
            for name, position in marks.items():
                if position == at:
                    self.emit(2, f"{name} = p")
            if at < len(mine):
                self.field(mine[at], 2, is_key=mine[at].name in self.key)
        self.emit(2, "if p + 1 != stop or b[p] or removes and several: return None")
        self.emit(2, "return b[start:middle], b[middle:end], removes")
        self.emit(1, "except (IndexError, DecodeError): return None")
        names_in_scope: dict[str, Any] = {"uvarint": read_uvarint, "DecodeError": DecodeError}
        exec("\n".join(self.lines), names_in_scope)  # the text is made from our own declarations only
        read: KeyReader = names_in_scope["read"]
        return read

    def emit(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def field(self, field: Field, depth: int, *, is_key: bool) -> None:
        decides = field.name == self.tombstone
        if field.array:
            self.array(field, depth, is_key=is_key)
        elif field.type in _SIZES:
            if decides:
                self.emit(depth, "removes = b[p] != 0")
            self.emit(depth, f"p += {_SIZES[field.type]}")
        elif field.is_struct:
            self.struct(field, depth, is_key=is_key)
        else:
            self.text(field, depth, is_key=is_key, decides=decides)

    def text(self, field: Field, depth: int, *, is_key: bool, decides: bool) -> None:
        """Emit the skipping of a string or bytes, whose length is a varint of length plus one (0 for null)."""
        self.emit(depth, "n = b[p]")
        if decides:
            self.emit(depth, "removes = not n")
        if not field.nullable:
            self.emit(depth, "if not n: return None")
        self.emit(depth, f"if n <= {_ONE_BYTE}: p += {'n or 1' if field.nullable else 'n'}")
        if is_key:
            self.emit(depth, "else: return None")
        else:
            self.emit(depth, "else:")
            self.emit(depth + 1, "n, p = uvarint(b, p)")
            # A varint of two bytes can also hold 0 (null) or a small length; the decoder decides about those.
            self.emit(depth + 1, f"if n <= {_ONE_BYTE}: return None")
            self.emit(depth + 1, "p += n - 1")

    def array(self, field: Field, depth: int, *, is_key: bool) -> None:
        counter = f"n{depth}"
        self.emit(depth, f"{counter} = b[p]; p += 1")
        self.emit(depth, f"if not 0 < {counter} <= {_ONE_BYTE}: return None")
        if is_key:
            self.emit(depth, f"several = several or {counter} > 2")
        self.emit(depth, f"for _ in range({counter} - 1):")
        self.field(field._replace(array=False, nullable=False), depth + 1, is_key=is_key)

    def struct(self, field: Field, depth: int, *, is_key: bool) -> None:
        if field.nullable:
            raise ValueError(f"{field.name}: a struct that may be null")
        for part in field.fields:
            if self.version in part.versions and part.tag is None:
                self.field(part, depth, is_key=is_key)
        self.emit(depth, "if b[p]: return None")
        self.emit(depth, "p += 1")


T = TypeVar("T")

_NULL_KEY = 1
"""The key's length, -1 for null, as a zigzag varint."""
HEAD = 3
"""Bytes of a value before the partition's number: frame version, api key, version."""
KEY = 4 + 16
"""Bytes of the partition's number and the topic id, which follow the head of the value."""
_GROUP = 64
"""Consecutive numbers whose varints are kept together; in such a group all varints have the same length."""
_MOST_GROUPS = 1 << 14
"""Groups that are remembered: enough for the offset deltas of the largest batch."""
_MOST_NUMBERS = 1 << 8
"""Topics whose partition numbers are remembered."""
_MOST_LENGTHS = 64
"""Lengths of values that are noted for one version; a reader that meets more of them begins anew."""
_PATIENCE = 128
"""Records that are read one by one, for each length in a pattern, before it is compiled: as dear as its compilation."""


class _OddError(Exception):
    """Raised inside this module for a run that must be read record by record."""


class _States(dict[bytes, T]):
    """A cache: bytes of a state -> decoded state, for values that begin with ``head``; cleared at ``most`` entries."""

    def __init__(self, head: bytes, decode: Callable[[bytes], T | None], most: int) -> None:
        super().__init__()
        self._head = head + bytes(KEY)
        self._decode = decode
        self._most = most

    def __missing__(self, state: bytes) -> T:
        decoded = self._decode(self._head + state)
        if decoded is None:
            raise _OddError
        if len(self) >= self._most:
            self.clear()
        self[state] = decoded
        return decoded


_Read = tuple[tuple[int, ...], tuple[bytes, ...], _States[T]]
"""The number in each record of a run, the bytes of its state, and the cache that decodes these."""


class RunReader(Generic[T]):
    """Reads runs of partition records (:class:`.framing.PartitionRun`); keep one object, its caches make it fast.

    Args:
        decode: value of a record -> state of its partition, or ``None`` if the value cannot be decoded. The number and
            the topic id in the values that it gets are zero.
        most: how many different states of one version of the record are cached.
        patience: how many records are left to the caller, for each length in a pattern, before it is compiled.
    """

    def __init__(self, decode: Callable[[bytes], T | None], most: int, patience: int = _PATIENCE) -> None:
        self._decode = decode
        self._most = most
        self._patience = patience
        self._states: dict[bytes, _States[T]] = {}
        self._lengths: dict[bytes, Counter[int]] = {}
        """The first bytes of a value, one of three versions -> its length -> how many such were read one by one."""
        self._waiting = 0
        """Records that were read one by one since the last compilation."""
        self._new: set[bytes] = set()
        """The first bytes of values of which a length is in no pattern."""
        self._compiled: dict[bytes, tuple[re.Pattern[bytes], _States[T]]] = {}
        """The first bytes of a value -> the pattern of runs of such values, and the cache that decodes their states."""

    def partitions(self, buf: Buffer, start: int, end: int) -> tuple[tuple[int, ...], list[T]] | None:
        """Return the partition number and the state of each record of a run; equal states are one object.

        ``None`` means that the caller must read the run record by record.
        """
        read = self._read(buf, start, end)
        if read is None:
            return None
        numbers, found, states = read
        try:
            return numbers, list(map(states.__getitem__, found))
        except _OddError:
            return None

    def numbers(self, buf: Buffer, start: int, end: int) -> tuple[int, ...] | None:
        """Return the partition number in each record of a run, states not decoded; ``None`` as :meth:`partitions`."""
        read = self._read(buf, start, end)
        return None if read is None else read[0]

    def state(self, value: bytes) -> T | None:
        """Return the state in the value of one record, from the cache if possible; ``None`` if it cannot be decoded."""
        try:
            return self._states_of(value[:HEAD])[value[HEAD + KEY :]]
        except _OddError:
            return None

    def _states_of(self, head: bytes) -> _States[T]:
        states = self._states.get(head)
        if states is None:
            states = _States(head, self._decode, self._most)
            if len(head) == HEAD and head[0] == 1 and head[1] == 3:
                self._states[head] = states
        return states

    def _read(self, buf: Buffer, start: int, end: int) -> _Read[T] | None:
        """Return what is in the records of a run; ``None`` if one is not as expected."""
        read = self._matched(buf, start, end)
        return self._matched(buf, start, end) if read is None and self._learn(buf, start, end) else read

    def _matched(self, buf: Buffer, start: int, end: int) -> _Read[T] | None:
        for pattern, states in tuple(self._compiled.values()):
            deltas, numbers, found = zip(*pattern.findall(buf, start, end), strict=True)
            # Where a record has another form, the rest of the run is one match, without a number.
            if numbers[-1] and _count_up(deltas):
                return _numbers(b"".join(numbers)), found, states
        return None

    def _learn(self, buf: Buffer, start: int, end: int) -> bool:
        """Note the lengths of a run's values, and compile them if it is time. Return whether there is a new pattern."""
        for _, value in iter_values(buf, start, end):
            head, length = value[:HEAD], len(value)
            lengths = self._lengths.setdefault(head, Counter())
            if length not in lengths:
                if len(lengths) >= _MOST_LENGTHS:
                    lengths.clear()
                    self._compiled.pop(head, None)
                self._new.add(head)
            lengths[length] += 1
            self._waiting += 1
        new = tuple(self._new)
        if not new or self._waiting < self._patience * sum(len(self._lengths[head]) for head in new):
            return False
        for head in new:
            lengths = self._lengths[head]
            self._compiled[head] = (
                _compiled(head, [length for length, _ in lengths.most_common()]),
                self._states_of(head),
            )
        self._new.clear()
        self._waiting = 0
        return True


def _compiled(head: bytes, lengths: list[int]) -> re.Pattern[bytes]:
    """Compile a pattern for records whose values begin with ``head`` and have one of the lengths.

    Its groups are the offset delta, the partition's number, and the state. Everything that is no such record, to the
    end, is one match with empty groups.
    """
    before = {length: re.escape(b"%c%s%s" % (_NULL_KEY, write_varint(length), head)) for length in lengths}
    records = []
    for width in (3, 2, 1):  # most records of a large batch have the longest varints
        delta = b"[\x80-\xff]" * (width - 1) + b"[\x00-\x7f]"
        for length in lengths:
            size = 2 + width + 1 + len(write_varint(length)) + length + 1
            records.append(b"%s.[\x00-\x7f](?=%s%s)" % (re.escape(write_varint(size)), delta, before[length]))
    states = [b"(?<=%s.{%d}).{%d}" % (before[length], KEY, length - HEAD - KEY) for length in lengths]
    varint = b"[\x80-\xff]*[\x00-\x7f]"
    parts = b"|".join(records), varint, _NULL_KEY, varint, re.escape(head), b"|".join(states)
    return re.compile(b"(?s)(?:%s)(%s)%c%s%s(.{4}).{16}(%s)\x00|.+" % parts)


def _count_up(deltas: tuple[bytes, ...]) -> bool:
    """Whether varints of offset deltas are those of consecutive numbers from some number on that is not negative."""
    first, _ = read_varint(deltas[0], 0)
    group, place = divmod(first, _GROUP)
    last = (first + len(deltas) - 1) // _GROUP
    expected = _varints(group) if group == last else b"".join(map(_varints, range(group, last + 1)))
    return first >= 0 and expected.startswith(b"".join(deltas), place * len(deltas[0]))


@lru_cache(_MOST_NUMBERS)
def _numbers(joined: bytes) -> tuple[int, ...]:
    """Return partition numbers that are back to back; cached, because most topics have the same few."""
    return struct.unpack(f">{len(joined) // 4}i", joined)


@lru_cache(_MOST_GROUPS)
def _varints(group: int) -> bytes:
    """Return the varints of a group of consecutive numbers, which all have the same length, back to back."""
    return b"".join(map(write_varint, range(group * _GROUP, (group + 1) * _GROUP)))
