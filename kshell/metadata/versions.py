"""What the keys of one table were, at every offset: the newest value as it is, those before it packed into one buffer.

A packed value costs a few dozen bytes, where an object takes hundreds: the offset since when it held, counted from the
log's start, the number of its kind, and what the kind does not have. Where the value came from is in the kind (the
record's type, how long a transaction kept it waiting) and in the index of the log. A key that is gone has no object of
its own any more, only a row that says when it came and went: a log may be full of ACLs or topics that come and go.
"""

from __future__ import annotations

import marshal
import struct
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from kshell.metadata.partition_changes import PartitionChanges
from kshell.metadata.record_log import Interned, RecordLog
from kshell.metadata.recorded_topics import RecordedTopic
from kshell.metadata.values import Entry, Origin
from kshell.protocol.primitives import Uuid

_HEAD = struct.Struct("<II")
_SINCE = struct.Struct("<I")
_NUMBER = struct.Struct("<Q")
_SCALARS = frozenset((str, int, float, bool, bytes, type(None)))
_LONG = 2 * _NUMBER.size
"""Payloads from this size on are worth a look whether they are there already."""
_MOST_RECENT = 4096


class _Kind(NamedTuple):
    """What many rows share. ``how`` is the value's class, or one of the names below; ``lag`` is the number of offsets
    after its record's at which the value took effect; ``types`` are those of a named tuple's fields.
    """

    how: Any
    record_type: str = ""
    version: int = 0
    lag: int = 0
    types: tuple[type, ...] = ()


_NOTHING, _OBJECT, _SAME = _Kind("nothing"), _Kind("object"), _Kind("the same as another row, but for the offset")


class PackedValues:
    """The buffer, and what its rows have in common."""

    def __init__(self, log: RecordLog, changes: PartitionChanges) -> None:
        self._log = log
        self._changes = changes
        self._packed = bytearray()
        self._kinds: Interned[_Kind] = Interned()
        self._nothing, self._same = self._kinds.number(_NOTHING), self._kinds.number(_SAME)
        self._parts: list[Any] = []
        """What named tuples hold beside numbers and text (listeners, directories), each once."""
        self._part_numbers: dict[Any, int] = {}
        self._recent: dict[tuple[_Kind, bytes], int] = {}
        """Where a payload was packed first: brokers that are fenced and unfenced are the same two again and again."""
        self._objects: list[Any] = []

    def pack(self, since: int, value: Any) -> int:
        """Where the value was put."""
        kind, payload = self._form(since, value)
        position = len(self._packed)
        if len(payload) >= _LONG:
            if len(self._recent) > _MOST_RECENT:
                self._recent.clear()
            first = self._recent.setdefault((kind, payload), position)
            if first != position:
                kind, payload = _SAME, _NUMBER.pack(first)
        self._packed += _HEAD.pack(since - self._log.start, self._kinds.number(kind))
        self._packed += payload
        return position

    def _form(self, since: int, value: Any) -> tuple[_Kind, bytes]:
        if value is None:
            return _NOTHING, b""
        if type(value) is Uuid:
            return _Kind(Uuid), value
        form = None
        if isinstance(value, Entry | RecordedTopic) and not value.origin.place.in_snapshot:
            origin = value.origin
            origin_fields = origin.record_type, origin.version, since - origin.offset
            if isinstance(value, RecordedTopic):
                topic = value.packed()
                form = None if topic is None else (_Kind(RecordedTopic, *origin_fields), marshal.dumps(topic))
            else:
                form = self._entry(value.value, origin_fields)
        if form is None:
            self._objects.append(value)
            form = _OBJECT, _NUMBER.pack(len(self._objects) - 1)
        return form

    def _entry(self, value: Any, origin_fields: tuple[str, int, int]) -> tuple[_Kind, bytes] | None:
        if type(value) in _SCALARS:
            return _Kind(type(value), *origin_fields), marshal.dumps(value)
        if not isinstance(value, tuple) or not hasattr(value, "_fields"):
            return None
        types = tuple(map(type, value))
        try:
            fields = [part if type(part) in _SCALARS or type(part) is Uuid else self._part(part) for part in value]
        except (TypeError, ValueError):  # a part that can be neither a key nor packed
            return None
        return _Kind(type(value), *origin_fields, types), marshal.dumps(tuple(fields))

    def _part(self, part: Any) -> int:
        key = (dict, marshal.dumps(part)) if type(part) is dict else (type(part), part)
        number = self._part_numbers.setdefault(key, len(self._parts))
        if number == len(self._parts):
            self._parts.append(part)
        return number

    def since(self, position: int) -> int:
        """The offset from which the value at a position was in effect."""
        since: int = _SINCE.unpack_from(self._packed, position)[0]
        return since + self._log.start

    def is_something(self, position: int) -> bool:
        """Whether there is a value at a position: a row may say that there was none."""
        kind: int = _HEAD.unpack_from(self._packed, position)[1]
        return kind != self._nothing

    def unpack(self, position: int) -> tuple[int, Any]:
        """(since when, value) of what was put at a position."""
        since, number = _HEAD.unpack_from(self._packed, position)
        start = position + _HEAD.size
        if number == self._same:
            (first,) = _NUMBER.unpack_from(self._packed, start)
            number, start = _HEAD.unpack_from(self._packed, first)[1], first + _HEAD.size
        since += self._log.start
        return since, self._value(self._kinds.values[number], start, since)

    def _value(self, kind: _Kind, start: int, since: int) -> Any:
        if kind.how is Uuid and not kind.record_type:
            return Uuid(self._packed[start : start + 16])
        if kind == _NOTHING:
            return None
        if kind == _OBJECT:
            return self._objects[_NUMBER.unpack_from(self._packed, start)[0]]
        offset = since - kind.lag
        log = self._log
        origin = Origin(offset, log.timestamp(offset), kind.record_type, kind.version, log.place(offset))
        with memoryview(self._packed)[start:] as view:
            unpacked = marshal.loads(view)  # which ends where the value ends
        if kind.how is RecordedTopic:
            return RecordedTopic.unpacked(unpacked, origin, log, self._changes)
        if not kind.types:
            return Entry(unpacked, origin)
        fields = [self._field(packed_field, type_) for packed_field, type_ in zip(unpacked, kind.types, strict=True)]
        return Entry(kind.how(*fields), origin)

    def _field(self, packed_field: Any, type_: type) -> Any:
        if type_ in _SCALARS:
            return packed_field
        return Uuid(packed_field) if type_ is Uuid else self._parts[packed_field]


Version = tuple[int, Any]
"""(the offset from which it holds, the value; ``None`` for nothing)."""
Keys = tuple[Any, ...]
"""The keys on the way to a value: one, or two in a family with two levels."""
_MASK = 2**64 - 1


class Cell:
    """The versions of one key. ``value`` is the newest, ``None`` for nothing, since offset ``since``."""

    __slots__ = ("older", "since", "value")

    def __init__(self, since: int, value: Any) -> None:
        self.older: array[int] | None = None
        """Where the values before it are packed, oldest first."""
        self.since = since
        self.value = value


class Tombstones:
    """The keys of a family that were created after the log's start and removed, in the order of removal."""

    def __init__(self, values: PackedValues) -> None:
        self._values = values
        self._born, self._died = array("Q"), array("Q")
        self._hashes = array("Q")
        self._rows = array("Q")
        """Where a key is packed, with the positions of its values."""
        self._packed = bytearray()
        self._by_hash = array("Q")
        """The numbers of the keys, sorted by their hashes; made when a key is looked for."""

    def add(self, keys: Keys, older: Sequence[int], died: int) -> None:
        """Add one: its versions are packed at ``older``, until its removal."""
        self._born.append(self._values.since(older[0]))
        self._died.append(died)
        self._hashes.append(hash(keys) & _MASK)
        self._rows.append(len(self._packed))
        self._packed += marshal.dumps((keys, *older))

    def _row(self, number: int) -> tuple[Keys, tuple[int, ...]]:
        with memoryview(self._packed)[self._rows[number] :] as view:
            keys, *older = marshal.loads(view)
        return tuple([Uuid(key) if type(key) is bytes else key for key in keys]), tuple(older)

    def keys(self, until: int) -> Iterator[Keys]:
        """Those that came up to an offset; one that came twice comes twice."""
        return (self._row(number)[0] for number, born in enumerate(self._born) if born <= until)

    def there(self, offset: int) -> dict[Keys, tuple[int, ...]]:
        """Those that were there at an offset, and where their values are packed."""
        first = bisect_right(self._died, offset)
        born = self._born
        return dict(self._row(number) for number in range(first, len(born)) if born[number] <= offset)

    def lives(self, keys: Keys) -> Iterator[tuple[int, tuple[int, ...]]]:
        """(offset at which it went, where its values are packed) of each time that a key was there, newest first."""
        if len(self._by_hash) != len(self._rows):
            self._by_hash = array("Q", sorted(range(len(self._rows)), key=self._hashes.__getitem__))
        wanted = hash(keys) & _MASK
        end = bisect_right(self._by_hash, wanted, key=self._hashes.__getitem__)
        for number in reversed(
            self._by_hash[bisect_left(self._by_hash, wanted, 0, end, key=self._hashes.__getitem__) : end]
        ):
            key, older = self._row(number)
            if key == keys:
                yield self._died[number], older


class Cells:
    """The cells of a table's keys; ``above`` is the key of the table itself in a family with two levels."""

    __slots__ = ("_above", "_cells", "_tombstones", "_values")

    def __init__(self, values: PackedValues, tombstones: Tombstones, above: Keys = ()) -> None:
        self._values = values
        self._tombstones = tombstones
        self._above = above
        self._cells: dict[Any, Cell] = {}

    def __len__(self) -> int:
        return len(self._cells)

    def __iter__(self) -> Iterator[Any]:
        """The keys that are not removed."""
        return iter(self._cells)

    def came(self, until: int) -> Iterator[Any]:
        """Those of them that were noted up to an offset."""
        for key, cell in self._cells.items():
            if (self._values.since(cell.older[0]) if cell.older else cell.since) <= until:
                yield key

    def put(self, key: Any, since: int, value: Any, base: Any) -> None:
        """Note a value of a key (``None``: removed) from an offset on; ``base`` is its value before the log."""
        cell = self._cells.get(key)
        if cell is None:
            if value is not base:
                self._cells[key] = Cell(since, value)
        elif value is None and base is None:
            self._bury(key, cell, since)
        elif cell.since == since:
            cell.value = value
        elif cell.value is not value:
            self._make_older(cell)
            cell.since, cell.value = since, value

    def _make_older(self, cell: Cell) -> None:
        if cell.older is None:
            cell.older = array("Q")
        cell.older.append(self._values.pack(cell.since, cell.value))

    def _bury(self, key: Any, cell: Cell, died: int) -> None:
        """What came and went at one offset, in a transaction, was never there."""
        del self._cells[key]
        if cell.since < died:
            self._make_older(cell)
        if cell.older is not None:
            self._tombstones.add((*self._above, key), cell.older, died)

    def at(self, key: Any, offset: int) -> Version | None:
        """The version of a present key at an offset; ``None`` when all came later."""
        cell = self._cells.get(key)
        if cell is None:
            return None
        if cell.since <= offset:
            return cell.since, cell.value
        packed_version = self._last_by(cell.older or (), offset)
        return None if packed_version is None else self._values.unpack(packed_version)

    def holds(self, key: Any, offset: int) -> bool | None:
        """Whether that is anything; ``None`` when all came later. Nothing is unpacked."""
        cell = self._cells.get(key)
        if cell is None:
            return None
        if cell.since <= offset:
            return cell.value is not None
        packed_version = self._last_by(cell.older or (), offset)
        return None if packed_version is None else self._values.is_something(packed_version)

    def packed(self, older: Sequence[int], offset: int) -> Any:
        """The value of a removed key at an offset at which it was present."""
        packed_version = self._last_by(older, offset)
        return None if packed_version is None else self._values.unpack(packed_version)[1]

    def _last_by(self, older: Sequence[int], offset: int) -> int | None:
        index = bisect_right(older, offset, key=self._values.since) - 1
        return None if index < 0 else older[index]

    def versions(self, key: Any, until: int) -> Iterator[Version]:
        """All versions of a key up to an offset, newest first."""
        cell = self._cells.get(key)
        if cell is not None:
            if cell.since <= until:
                yield cell.since, cell.value
            yield from self._unpacked(cell.older or (), until)
        for died, older in self._tombstones.lives((*self._above, key)):
            if died <= until:
                yield died, None
            yield from self._unpacked(older, until)

    def _unpacked(self, older: Sequence[int], until: int) -> Iterator[Version]:
        for position in reversed(older):
            if self._values.since(position) <= until:
                yield self._values.unpack(position)
