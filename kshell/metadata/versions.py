"""All versions of the values of a table: the newest of each key as an object, earlier ones packed into one buffer.

:class:`Cells` has the keys that exist (:class:`Cell`), :class:`Tombstones` those that were removed, and
:class:`PackedValues` is the buffer. A packed version costs a few dozen bytes, where an object takes hundreds: the
offset at which it took effect, counted from the log's start, the number of its *kind* (:class:`_Kind`: what many values
share), and its payload. Its origin is found again from its kind and the log. A removed key costs only a row that says
when it was created and removed: a log may be full of ACLs or topics that come and go.
"""

from __future__ import annotations

import marshal
import struct
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kshell.metadata.partition_changes import PartitionChanges
from kshell.metadata.record_log import Interned, RecordLog
from kshell.metadata.recorded_topics import RecordedTopic
from kshell.metadata.values import Entry, Origin
from kshell.protocol.primitives import Uuid

if TYPE_CHECKING:
    from kshell.metadata.image import Keys

_HEAD = struct.Struct("<II")
_SINCE = struct.Struct("<I")
_NUMBER = struct.Struct("<Q")
_SCALARS = frozenset((str, int, float, bool, bytes, type(None)))
_LONG = 2 * _NUMBER.size
"""Payloads of this size (bytes) or more are packed only once: repetitions refer to the first one."""
_MOST_RECENT = 4096


class _Kind(NamedTuple):
    """The part that many packed versions have in common.

    ``how`` is the value's class, or the name of one of the constants below. ``record_type``, ``version`` and ``lag``
    give the origin: the value took effect ``lag`` offsets after its record. ``types`` are those of the fields of a
    named tuple.
    """

    how: Any
    record_type: str = ""
    version: int = 0
    lag: int = 0
    types: tuple[type, ...] = ()


_NOTHING, _OBJECT, _SAME = _Kind("nothing"), _Kind("object"), _Kind("the same as another row, but for the offset")


class PackedValues:
    """The buffer of packed versions. A *position* is where a version begins in it."""

    def __init__(self, log: RecordLog, changes: PartitionChanges) -> None:
        self._log = log
        self._changes = changes
        self._packed = bytearray()
        self._kinds: Interned[_Kind] = Interned()
        self._nothing, self._same = self._kinds.number(_NOTHING), self._kinds.number(_SAME)
        self._parts: list[object] = []
        """Fields of named tuples that are not scalars or UUIDs (listeners, directories), each stored once."""
        self._part_numbers: dict[object, int] = {}
        self._recent: dict[tuple[_Kind, bytes], int] = {}
        """(kind, payload) -> position of the first such version: a broker that is fenced repeatedly has two values."""
        self._objects: list[object] = []
        """Values that cannot be packed, such as those of a snapshot."""

    def pack(self, since: int, value: object) -> int:
        """Pack a value that took effect at offset ``since`` (``None``: removed there); return its position."""
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

    def _form(self, since: int, value: object) -> tuple[_Kind, bytes]:
        """Return a value's kind and payload."""
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
        """Return kind and payload of the value of an :class:`Entry`; ``None`` if it cannot be packed."""
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

    def _part(self, part: object) -> int:
        """Return the number of a field that is stored once. Raises TypeError or ValueError if it cannot be."""
        key = (dict, marshal.dumps(part)) if type(part) is dict else (type(part), part)
        number = self._part_numbers.setdefault(key, len(self._parts))
        if number == len(self._parts):
            self._parts.append(part)
        return number

    def since(self, position: int) -> int:
        """Return the offset at which the value at a position took effect."""
        since: int = _SINCE.unpack_from(self._packed, position)[0]
        return since + self._log.start

    def is_something(self, position: int) -> bool:
        """Whether the version at a position is a value, and not the removal of one."""
        kind: int = _HEAD.unpack_from(self._packed, position)[1]
        return kind != self._nothing

    def unpack(self, position: int) -> tuple[int, Any]:
        """Return (offset at which it took effect, value or ``None``) of the version at a position."""
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
"""(the offset at which it took effect, the value; ``None`` if it was removed there)."""
_MASK = 2**64 - 1


class Cell:
    """The versions of one key. ``value`` is the newest (``None``: removed), in effect since offset ``since``."""

    __slots__ = ("older", "since", "value")

    def __init__(self, since: int, value: object) -> None:
        self.older: array[int] | None = None
        """Positions of the packed versions before it, oldest first."""
        self.since = since
        self.value = value


class Tombstones:
    """The keys of a family that the log created and removed, one row for each removal, in that order."""

    def __init__(self, values: PackedValues) -> None:
        self._values = values
        self._born, self._died = array("Q"), array("Q")
        self._hashes = array("Q")
        self._rows = array("Q")
        """For each row, where its keys and the positions of its versions begin in ``_packed``."""
        self._packed = bytearray()
        self._by_hash = array("Q")
        """The numbers of the rows, sorted by the hash of their keys; made when a key is searched for."""

    def add(self, keys: Keys, older: Sequence[int], died: int) -> None:
        """Add a value that was removed at offset ``died``; ``older`` are the positions of its packed versions."""
        self._born.append(self._values.since(older[0]))
        self._died.append(died)
        self._hashes.append(hash(keys) & _MASK)
        self._rows.append(len(self._packed))
        self._packed += marshal.dumps((keys, *older))

    def _row(self, number: int) -> tuple[Keys, tuple[int, ...]]:
        """Return the keys of a row and the positions of its packed versions, oldest first."""
        with memoryview(self._packed)[self._rows[number] :] as view:
            keys, *older = marshal.loads(view)
        return tuple([Uuid(key) if type(key) is bytes else key for key in keys]), tuple(older)

    def keys(self, until: int) -> Iterator[Keys]:
        """Yield the keys that were created up to an offset; a key that was created twice comes twice."""
        return (self._row(number)[0] for number, born in enumerate(self._born) if born <= until)

    def there(self, offset: int) -> dict[Keys, tuple[int, ...]]:
        """Return the keys that existed at an offset -> the positions of their packed versions."""
        first = bisect_right(self._died, offset)
        born = self._born
        return dict(self._row(number) for number in range(first, len(born)) if born[number] <= offset)

    def lifetimes(self, keys: Keys) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Yield, for each time that a key existed, (offset of removal, positions of its versions), newest first."""
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
    """The versions of the keys of one table; ``above`` is the key of the table itself in a family with two levels."""

    __slots__ = ("_above", "_cells", "_tombstones", "_values")

    def __init__(self, values: PackedValues, tombstones: Tombstones, above: Keys = ()) -> None:
        self._values = values
        self._tombstones = tombstones
        self._above = above
        self._cells: dict[object, Cell] = {}

    def __len__(self) -> int:
        return len(self._cells)

    def __iter__(self) -> Iterator[object]:
        """Iterate over the keys that have a cell: those that were written and did not become tombstones."""
        return iter(self._cells)

    def keys_created_until(self, until: int) -> Iterator[object]:
        """Yield the keys with a cell whose first version took effect at or before an offset."""
        for key, cell in self._cells.items():
            if (self._values.since(cell.older[0]) if cell.older else cell.since) <= until:
                yield key

    def put(self, key: object, since: int, value: object, base: object) -> None:
        """Note a key's value (``None``: removed) from offset ``since`` on; ``base`` is its value before the log."""
        cell = self._cells.get(key)
        if cell is None:
            if value is not base:
                self._cells[key] = Cell(since, value)
        elif value is None and base is None:
            self._move_to_tombstones(key, cell, since)
        elif cell.since == since:
            cell.value = value
        elif cell.value is not value:
            self._make_older(cell)
            cell.since, cell.value = since, value

    def _make_older(self, cell: Cell) -> None:
        """Pack the newest version of a cell, before it gets another one."""
        if cell.older is None:
            cell.older = array("Q")
        cell.older.append(self._values.pack(cell.since, cell.value))

    def _move_to_tombstones(self, key: object, cell: Cell, died: int) -> None:
        """Turn a removed key into a tombstone. A version removed where it took effect, in a transaction, is dropped."""
        del self._cells[key]
        if cell.since < died:
            self._make_older(cell)
        if cell.older is not None:
            self._tombstones.add((*self._above, key), cell.older, died)

    def at(self, key: object, offset: int) -> Version | None:
        """Return the version of a key at an offset; ``None`` without a cell, or if all its versions came later."""
        cell = self._cells.get(key)
        if cell is None:
            return None
        if cell.since <= offset:
            return cell.since, cell.value
        packed_version = self._last_by(cell.older or (), offset)
        return None if packed_version is None else self._values.unpack(packed_version)

    def holds(self, key: object, offset: int) -> bool | None:
        """Whether :meth:`at` is a value and not a removal; ``None`` where it is ``None``. Nothing is unpacked."""
        cell = self._cells.get(key)
        if cell is None:
            return None
        if cell.since <= offset:
            return cell.value is not None
        packed_version = self._last_by(cell.older or (), offset)
        return None if packed_version is None else self._values.is_something(packed_version)

    def packed(self, older: Sequence[int], offset: int) -> Any:
        """Return the value at an offset of a removed key that existed there; ``older`` is where it is packed."""
        packed_version = self._last_by(older, offset)
        return None if packed_version is None else self._values.unpack(packed_version)[1]

    def _last_by(self, older: Sequence[int], offset: int) -> int | None:
        """Return the position of the last of the packed versions that took effect up to an offset."""
        index = bisect_right(older, offset, key=self._values.since) - 1
        return None if index < 0 else older[index]

    def versions(self, key: object, until: int) -> Iterator[Version]:
        """Yield all versions of a key that took effect up to an offset, newest first, removals included."""
        cell = self._cells.get(key)
        if cell is not None:
            if cell.since <= until:
                yield cell.since, cell.value
            yield from self._unpacked(cell.older or (), until)
        for died, older in self._tombstones.lifetimes((*self._above, key)):
            if died <= until:
                yield died, None
            yield from self._unpacked(older, until)

    def _unpacked(self, older: Sequence[int], until: int) -> Iterator[Version]:
        for position in reversed(older):
            if self._values.since(position) <= until:
                yield self._values.unpack(position)
