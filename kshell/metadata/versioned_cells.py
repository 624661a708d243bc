"""What a key of a table held, at every offset: the newest value as it is, those before it packed into one buffer.

A config that changed a thousand times costs a few dozen bytes a change. Values that are not numbers or text (brokers,
topics) are few and stay objects.
"""

from __future__ import annotations

import marshal
import struct
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

from kshell.metadata.recorded_topics import LogIndex
from kshell.metadata.values import Entry, Origin

_HEAD = struct.Struct("<qqii")
"""Since which offset it holds; its record's offset; the number of the record's kind, or below; the payload's size."""
_EFFECT = struct.Struct("<q")
_OBJECT, _NOTHING = -1, -2


class Cell:
    """What one key holds. ``value`` is the newest, ``None`` for nothing, since offset ``since``."""

    __slots__ = ("older", "since", "value")

    def __init__(self, since: int, value: Any) -> None:
        self.older: array[int] | None = None
        """Where the values before it are packed, oldest first."""
        self.since = since
        self.value = value


class Cells:
    """The buffer that older values are packed into."""

    def __init__(self, log: LogIndex) -> None:
        self._log = log
        self._packed = bytearray()
        self._objects: list[Any] = []

    def put(self, cell: Cell, since: int, value: Any) -> None:
        """A newer value of a cell."""
        if cell.since == since:
            cell.value = value
        elif cell.value is not value:
            if cell.older is None:
                cell.older = array("q")
            cell.older.append(len(self._packed))
            self._pack(cell.since, cell.value)
            cell.since, cell.value = since, value

    def _pack(self, since: int, value: Any) -> None:
        if value is None:
            self._packed += _HEAD.pack(since, 0, _NOTHING, 0)
        elif isinstance(value, Entry) and type(value.value) in (str, int, float) and not value.origin.place.in_snapshot:
            origin, payload = value.origin, marshal.dumps(value.value)
            kind = self._log.kinds.number((origin.record_type, origin.version, ""))
            self._packed += _HEAD.pack(since, origin.offset, kind, len(payload))
            self._packed += payload
        else:
            self._packed += _HEAD.pack(since, len(self._objects), _OBJECT, 0)
            self._objects.append(value)

    def _unpacked(self, position: int) -> tuple[int, Any]:
        since, offset, kind, size = _HEAD.unpack_from(self._packed, position)
        if kind == _NOTHING:
            return since, None
        if kind == _OBJECT:
            return since, self._objects[offset]
        start = position + _HEAD.size
        name, version, _ = self._log.kinds.values[kind]
        origin = Origin(offset, self._log.timestamp(offset), name, version, self._log.place(offset))
        return since, Entry(marshal.loads(self._packed[start : start + size]), origin)

    def _since(self, position: int) -> int:
        since: int = _EFFECT.unpack_from(self._packed, position)[0]
        return since

    def at(self, cell: Cell, offset: int) -> tuple[int, Any] | None:
        """(since when, value) of what a cell holds at an offset; ``None`` when all came later."""
        if cell.since <= offset:
            return cell.since, cell.value
        found = bisect_right(cell.older, offset, key=self._since) - 1 if cell.older else -1
        return None if found < 0 or cell.older is None else self._unpacked(cell.older[found])

    def holds(self, cell: Cell, offset: int) -> bool | None:
        """Whether a cell holds anything at an offset; ``None`` when all came later. Nothing is unpacked."""
        if cell.since <= offset:
            return cell.value is not None
        found = bisect_right(cell.older, offset, key=self._since) - 1 if cell.older else -1
        if found < 0 or cell.older is None:
            return None
        kind: int = _HEAD.unpack_from(self._packed, cell.older[found])[2]
        return kind != _NOTHING

    def versions(self, cell: Cell, until: int) -> Iterator[tuple[int, Any]]:
        """(since when, value) of all that a cell held up to an offset, newest first."""
        if cell.since <= until:
            yield cell.since, cell.value
        for position in reversed(cell.older or ()):
            if self._since(position) <= until:
                yield self._unpacked(position)
