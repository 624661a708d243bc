"""Readers that avoid decoding whole messages: the key of one message, and many partition records in one step.

*Keys* (:func:`key_reader`): a log writes the same keys again and again, and only the last record of a key matters. So
the reader returns the key and checks that the rest of the message is well formed; the caller decodes the message later,
and only if it is the last one of its key.

*Runs* (:class:`RunReader`): in snapshots, partition records are back to back. Framing (:mod:`.framing`) has proven the
bounds of a run by the records' lengths. Neighbours mostly have one layout: the same size, every field at the same
place, offset deltas that count up. Such neighbours are a *block*: its columns (one byte of each record) are compared in
one step, and one ``struct`` unpacks all of its records. The *state* of a record, which is everything after the
partition's number and the topic id, is decoded once for all records with equal bytes. A run with any other record in it
is left to the caller, who goes from record to record (:func:`.framing.iter_values`).
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
R = TypeVar("R")

HEAD = 3
"""Bytes of a value before the partition's number: frame version, api key, version."""
KEY = 4 + 16
"""Bytes of the partition's number and the topic id, which follow the head of the value."""
_GROUP = 64
"""Size of a group of neighbouring offset deltas whose varints differ only in their first byte (the *lowest digit*)."""
_ONLY_DIGITS = bytes(2 * delta for delta in range(_GROUP))
"""The varints of the deltas of the first group (0 to 63), which have one byte each."""
_LOWEST_DIGITS = bytes(0x80 | (2 * delta & 0x7F) for delta in range(_GROUP))
"""The first bytes of the varints of the deltas of any other group."""
_MOST_LAYOUTS = 1 << 10
_MOST_GROUPS = 1 << 14
"""Groups whose higher digits are remembered: enough for the records of the largest batch."""


class _OddError(Exception):
    """Raised inside this module for a run that must be read record by record."""


class _Layout(NamedTuple, Generic[T]):
    """How the records of a block are laid out: ``size`` is the bytes of one, ``size_varint`` those of its prefix."""

    size: int
    size_varint: tuple[bytes, ...]
    digit: int
    """Position in the record of the lowest digit of the offset delta; a time delta of one byte is before it."""
    head: bytes
    """The bytes between the offset delta and the partition's number: the same in all records of the block."""
    unpack: Callable[[bytes], Iterator[tuple[bytes, int, bytes]]]
    """Block -> (higher digits of the offset delta followed by ``head``, number, bytes of the state) of each record."""
    states: _States[T]


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


class RunReader(Generic[T]):
    """Reads runs of partition records (:class:`.framing.PartitionRun`); keep one object, its caches make it fast.

    Args:
        decode: value of a record -> state of its partition, or ``None`` if the value cannot be decoded. The number and
            the topic id in the values that it gets are zero.
        most: how many different states of one version of the record are cached.
    """

    def __init__(self, decode: Callable[[bytes], T | None], most: int) -> None:
        self._decode = decode
        self._most = most
        self._states: dict[bytes, _States[T]] = {}
        self._layouts: dict[tuple[bytes, int], _Layout[T]] = {}
        """By the first two bytes of a record and the number of higher digits of its offset delta."""
        self._higher_digits: dict[int, bytes] = {}
        """Group of offset deltas (delta // 64) -> the bytes of their varints after the first one."""

    def partitions(self, buf: Buffer, start: int, end: int) -> list[tuple[int, T]] | None:
        """Return (partition number, state) of each record of a run; equal states are one object.

        ``None`` means that the caller must read the run record by record.
        """

        def take(layout: _Layout[T], head: bytes, block: bytes) -> list[tuple[int, T]]:
            states = layout.states
            return [(number, states[state]) for same, number, state in layout.unpack(block) if same == head]

        return self._taken(bytes(buf[start:end]), take)

    def numbers(self, buf: Buffer, start: int, end: int) -> list[int] | None:
        """Return the partition number in each record of a run, states not decoded; ``None`` as :meth:`partitions`."""

        def take(layout: _Layout[T], head: bytes, block: bytes) -> list[int]:
            return [number for same, number, _ in layout.unpack(block) if same == head]

        return self._taken(bytes(buf[start:end]), take)

    def _taken(self, run: bytes, take: Callable[[_Layout[T], bytes, bytes], list[R]]) -> list[R] | None:
        """Return what ``take`` reads from each block; ``None`` if a record is unlike the first one of its block."""
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

    def _blocks(self, run: bytes) -> Iterator[tuple[_Layout[T], bytes, bytes]]:
        """Yield (layout, bytes before the number, records) of each block of a run. Raises _OddError.

        The bytes before the number (higher digits of the offset delta and ``layout.head``) are checked for the first
        record only; the caller compares them with what ``layout.unpack`` returns for each record.
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
                del self._layouts[key]  # the cached layout is of another record that begins with the same two bytes

    def _learn(self, run: bytes, at: int, due: int) -> _Layout[T]:
        """Return the layout of the record at ``at``. Raises _OddError if it is not plain, or its delta not ``due``."""
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
    """The position after the size varint of the record at ``at``; attributes and time delta (one byte each) follow."""
    while run[at] >= 0x80:
        at += 1
    return at + 1


@lru_cache(_MOST_LAYOUTS)
def _unpacker(before: int, head: int, state: int) -> Callable[[bytes], Iterator[tuple[bytes, int, bytes]]]:
    """Make a :attr:`_Layout.unpack` from byte counts: up to the higher digits, from there to the number, the state."""
    return struct.Struct(f">{before}x{head}si16x{state}sx").iter_unpack
