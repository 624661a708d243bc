"""The columns of the view ``records``, collected one by one: every record has them, and rows would cost as much again
as decoding does.

What most records of a batch share is kept once with its count; only columns that were asked for are made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kshell.commands.base.arrow_tables import schema
from kshell.commands.base.tables import Field

INT16 = range(-(1 << 15), 1 << 15)
INT64 = range(-(1 << 63), 1 << 63)
_FITS = {"version": INT16, "offset": INT64, "timestampMs": INT64}
"""Columns whose numbers come from the bytes as they are. What such a column cannot hold, only damage has: null."""

Shared = tuple[str | None, int | None, str, bool, int, int]
"""clusterId, nodeId, file, isSnapshot, position, epoch of the records of one batch."""
_SHARED = ("clusterId", "nodeId", "file", "isSnapshot", "position", "epoch")
_OWN = {"offset": "offset", "timestampMs": "timestamp", "type": "type", "version": "version", "data": "data"}
"""Column -> where it is collected."""


class RecordColumns:
    """Rows until they are a batch. ``arrow``: the module; ``fields``: some of the view's, in any order."""

    def __init__(self, arrow: Any, fields: Sequence[Field]) -> None:
        self._arrow = arrow
        self._schema = schema(arrow, fields)
        self._start()

    def _start(self) -> None:
        self.offset: list[int] = []
        self.timestamp: list[int] = []
        self.type: list[str] = []
        self.version: list[int] = []
        self.data: list[str] = []
        """JSON text, secrets hidden; empty where nobody asked for it."""
        self.undecoded: dict[int, tuple[str, bytes | None]] = {}
        """Row -> reason, and bytes where they may be shown."""
        self._shared: list[Shared] = []
        self._counts: list[int] = []
        self._begun = 0

    def __len__(self) -> int:
        return len(self.offset)

    def end_batch(self, shared: Shared) -> None:
        """The rows since the last call are of one batch."""
        count = len(self.offset) - self._begun
        if count:
            self._shared.append(shared)
            self._counts.append(count)
            self._begun = len(self.offset)

    def take(self) -> Any:
        """The rows as a ``pyarrow.RecordBatch``; none are left."""
        made = self._arrow.record_batch([self._column(one.name, one.type) for one in self._schema], schema=self._schema)
        self._start()
        return made

    def _column(self, name: str, kind: Any) -> Any:
        arrow = self._arrow
        if name in _SHARED:
            at, runs = _SHARED.index(name), []
            for values, count in zip(self._shared, self._counts, strict=True):
                runs += [values[at]] * count
            return arrow.array(runs, type=kind)
        if name in ("reason", "raw"):
            at = ("reason", "raw").index(name)
            column: list[Any] = [None] * len(self)
            for row, odd in self.undecoded.items():
                column[row] = odd[at]
            return arrow.array(column, type=kind)
        own: list[Any] = getattr(self, _OWN[name])
        try:
            return arrow.array(own, type=kind)
        except (OverflowError, arrow.ArrowInvalid):
            return arrow.array([value if value in _FITS[name] else None for value in own], type=kind)
