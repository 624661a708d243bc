"""Readers of records that need no whole decoding: the key of one message, and many partition records at once.

A log repeats its keys: what a record says matters only if no later one has its key. So the key is read first, and with
it that the rest of the message is sound; the message is decoded only if it turns out to be the last one of its key.

Partition records stand back to back in snapshots. Framing (:mod:`.framing`) proves a run's records by their length
prefixes and leaves them where they are. Neighbours mostly have one layout: the same size, every field at the same
place, offset deltas that count up. Columns of such a block (one byte of each record) are compared at once, and one
``struct`` takes all of its records apart; what a record says but for its number and topic is decoded once for all that
say the same. A run with anything else in it is left to the caller, who goes from record to record
(:func:`.framing.iter_values`).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Generic, NamedTuple, TypeVar

from kshell.protocol.framing import span
from kshell.protocol.primitives import Buffer, DecodeError, read_uvarint, read_varint, write_varint
from kshell.protocol.schema import Field, Schema

KeyReader = Callable[[Buffer, int, int], "tuple[bytes, bytes, bool] | None"]
"""(buffer, where the message begins, where it ends) -> (the bytes of the key's first part, those of the rest of it,
whether the message is a tombstone)."""

_SIZES = {"bool": 1, "int8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8, "float64": 8, "uuid": 16}
_ONE_BYTE = 0x7F
"""The largest number that a varint of one byte holds."""


def key_reader(
    schema: Schema, version: int, key: tuple[str, ...], tombstone: str | bool, first_part: int = 0
) -> KeyReader:
    """Make the reader of a flexible version.

    Args:
        schema: what the message is.
        version: one of the schema's.
        key: top-level fields that lie side by side, in the order of the message.
        tombstone: whether every such message removes its key, or the nullable or boolean field that decides it.
        first_part: how many fields of the key are its first part.

    Returns:
        A reader that never raises. It returns ``None`` for a message that must be decoded to be understood: one that
        is malformed, has tagged fields, a text of more than 126 bytes in its key, or, as a tombstone, an array of
        several elements there, for their order may say nothing. Otherwise :func:`~.decoder.decoder` succeeds on it,
        and messages with one key have the same bytes, unless such an array is in it.
    """
    if version < schema.flexible:
        raise ValueError(f"{schema.name} v{version} is not flexible")
    emitter = _Emitter(version, key, tombstone, first_part)
    return emitter.function(schema.fields)


class _Emitter:
    """Writes the source of one reader. ``b`` is the buffer, ``p`` the position, throughout."""

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
        """A string or bytes: the length and one in a varint, 0 for null."""
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
            # A null of two bytes is one, too.
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
R = TypeVar("R")

HEAD = 3
"""Bytes of a value before the partition's number: frame version, api key, version."""
KEY = 4 + 16
"""Bytes of the number and the topic's id, which follow."""
_GROUP = 64
"""Neighbouring offset deltas that differ in the lowest digit of their varint alone."""
_ONLY_DIGITS = bytes(2 * delta for delta in range(_GROUP))
_LOWEST_DIGITS = bytes(0x80 | (2 * delta & 0x7F) for delta in range(_GROUP))
"""Of the deltas below 64, whose varints have one digit, and of all others."""
_MOST_LAYOUTS = 1 << 10
_MOST_GROUPS = 1 << 14
"""Of as many records as a batch may have."""


class _OddError(Exception):
    """A run that must be read record by record."""


class _Layout(NamedTuple, Generic[T]):
    """How the records of a block are laid out. ``size`` and ``digit`` are counted from a record's start."""

    size: int
    size_varint: tuple[bytes, ...]
    digit: int
    """Where the lowest digit of the offset delta is; a time delta of one byte is before it."""
    head: bytes
    """What is between the offset delta and the partition's number: the same in all records of the block."""
    unpack: Callable[[bytes], Iterator[tuple[bytes, int, bytes]]]
    """(the higher digits of the offset delta and ``head``, number, state) of each record."""
    states: _States[T]


class _States(dict[bytes, T]):
    """What follows number and topic in records that begin with ``head`` -> what it says; emptied when it is full."""

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


class RunReader(Generic[T]):
    """Reads runs of partition records.

    Args:
        decode: What a record's value says of its partition; it is given values whose number and topic id are zero.
            ``None`` where that is nothing.
        most: How many different states of one version of the record are remembered.
    """

    def __init__(self, decode: Callable[[bytes], T | None], most: int) -> None:
        self._decode = decode
        self._most = most
        self._states: dict[bytes, _States[T]] = {}
        self._layouts: dict[tuple[bytes, int], _Layout[T]] = {}
        """By the first two bytes of a record and how many higher digits its offset delta has."""
        self._higher_digits: dict[int, bytes] = {}
        """Of each group of offset deltas that was met."""

    def partitions(self, buf: Buffer, start: int, end: int) -> list[tuple[int, T]] | None:
        """(number, state) of each record of a run; equal states are one object. ``None``: read it record by record."""

        def take(layout: _Layout[T], head: bytes, block: bytes) -> list[tuple[int, T]]:
            states = layout.states
            return [(number, states[state]) for same, number, state in layout.unpack(block) if same == head]

        return self._taken(bytes(buf[start:end]), take)

    def numbers(self, buf: Buffer, start: int, end: int) -> list[int] | None:
        """The number in each record of a run, nothing decoded. ``None``: read it record by record."""

        def take(layout: _Layout[T], head: bytes, block: bytes) -> list[int]:
            return [number for same, number, _ in layout.unpack(block) if same == head]

        return self._taken(bytes(buf[start:end]), take)

    def _taken(self, run: bytes, take: Callable[[_Layout[T], bytes, bytes], list[R]]) -> list[R] | None:
        """What is taken from each block of a run; ``None`` if a record of one is not laid out as its first."""
        rows: list[R] = []
        try:
            for layout, head, block in self._blocks(run):
                read = take(layout, head, block)
                if len(read) * layout.size != len(block):
                    return None
                rows += read
        except _OddError:
            return None
        return rows

    def state(self, value: bytes) -> T | None:
        """What one record's value says but for number and topic; ``None`` where that is nothing."""
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

    def _blocks(self, run: bytes) -> Iterator[tuple[_Layout[T], bytes, bytes]]:
        """(layout, the bytes before the number, the records) of neighbours that are laid out alike. Raises _OddError.

        Those bytes are proven for the first of the records; the caller compares the others' while taking them apart.
        """
        at, last = 0, len(run)
        try:
            due = read_varint(run, _size_end(run, 0) + 2)[0] if run else 0
        except DecodeError:
            raise _OddError from None
        while at < last:
            higher = self._higher_digits.get(due // _GROUP)
            if higher is None:
                if due < 0 or len(self._higher_digits) >= _MOST_GROUPS:
                    self._higher_digits.clear()
                higher = self._higher_digits[due // _GROUP] = write_varint(due)[1:]
            key = run[at : at + 2], len(higher)
            layout = self._layouts.get(key)
            is_new = layout is None
            if layout is None:
                layout = self._learn(run, at, due)
                if len(self._layouts) >= _MOST_LAYOUTS:
                    self._layouts.clear()
                self._layouts[key] = layout
            size, digit = layout.size, at + layout.digit
            step = due % _GROUP
            stop = at + size * min((last - at) // size, _GROUP - step)
            for place, byte in enumerate(layout.size_varint, at):
                column = run[place:stop:size]
                stop = at + size * (len(column) - len(column.lstrip(byte)))
            digits = _LOWEST_DIGITS if higher else _ONLY_DIGITS
            count = (stop - at) // size
            head = higher + layout.head
            if (
                count
                and run[digit:stop:size] == digits[step : step + count]
                and run[digit - 1 : stop : size].isascii()
                and run.startswith(head, digit + 1)
            ):
                yield layout, head, run[at:stop]
                at, due = stop, due + count
            elif is_new:
                raise _OddError
            else:
                del self._layouts[key]  # that of a record which begins alike

    def _learn(self, run: bytes, at: int, due: int) -> _Layout[T]:
        """The layout of the record at a position, framed by hand. Raises _OddError where it cannot have neighbours."""
        record = span(run, at, len(run))
        size_end = _size_end(run, at)
        digit, delta = size_end + 2, write_varint(due)
        after, number = digit + len(delta), record.value + HEAD
        state = number + KEY
        if (
            due != record.delta
            or due < 0
            or run[digit:after] != delta
            or not after < number < state <= record.value_end
        ):
            raise _OddError
        return _Layout(
            size=record.end - at,
            size_varint=tuple(run[place : place + 1] for place in range(at, size_end)),
            digit=digit - at,
            head=run[after:number],
            unpack=_unpacker(digit + 1 - at, number - digit - 1, record.value_end - state),
            states=self._states_of(run[record.value : number]),
        )


def _size_end(run: bytes, at: int) -> int:
    """Where the size of the record at a position ends; attributes and a time delta of one byte are behind it."""
    while run[at] >= 0x80:
        at += 1
    return at + 1


@lru_cache(_MOST_LAYOUTS)
def _unpacker(before: int, head: int, state: int) -> Callable[[bytes], Iterator[tuple[bytes, int, bytes]]]:
    return struct.Struct(f">{before}x{head}si16x{state}sx").iter_unpack
