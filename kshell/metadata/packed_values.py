"""Values that a key held once, packed into one buffer: a few dozen bytes each, where an object takes hundreds.

A row is the offset since when the value held, counted from the log's start, the number of its kind, and what the kind
does not tell. Where the value came from is in the kind (the record's type, how long a transaction kept it waiting) and
in the index of the log.
"""

from __future__ import annotations

import marshal
import struct
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
            told = origin.record_type, origin.version, since - origin.offset
            if isinstance(value, RecordedTopic):
                topic = value.packed()
                form = None if topic is None else (_Kind(RecordedTopic, *told), marshal.dumps(topic))
            else:
                form = self._entry(value.value, told)
        if form is None:
            self._objects.append(value)
            form = _OBJECT, _NUMBER.pack(len(self._objects) - 1)
        return form

    def _entry(self, value: Any, told: tuple[str, int, int]) -> tuple[_Kind, bytes] | None:
        if type(value) in _SCALARS:
            return _Kind(type(value), *told), marshal.dumps(value)
        if not isinstance(value, tuple) or not hasattr(value, "_fields"):
            return None
        types = tuple(map(type, value))
        try:
            fields = [one if type(one) in _SCALARS or type(one) is Uuid else self._part(one) for one in value]
        except (TypeError, ValueError):  # a part that can be neither a key nor packed
            return None
        return _Kind(type(value), *told, types), marshal.dumps(tuple(fields))

    def _part(self, part: Any) -> int:
        key = (dict, marshal.dumps(part)) if type(part) is dict else (type(part), part)
        number = self._part_numbers.setdefault(key, len(self._parts))
        if number == len(self._parts):
            self._parts.append(part)
        return number

    def since(self, position: int) -> int:
        """The offset from which the value at a position held."""
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
            held = marshal.loads(view)  # which ends where the value ends
        if kind.how is RecordedTopic:
            return RecordedTopic.unpacked(held, origin, log, self._changes)
        if not kind.types:
            return Entry(held, origin)
        fields = [self._field(one, type_) for one, type_ in zip(held, kind.types, strict=True)]
        return Entry(kind.how(*fields), origin)

    def _field(self, held: Any, type_: type) -> Any:
        if type_ in _SCALARS:
            return held
        return Uuid(held) if type_ is Uuid else self._parts[held]
