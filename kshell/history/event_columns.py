"""The table ``events`` by columns: most of its records are decoded together. Needs numpy and pyarrow."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from kshell.columnar.framing import Framed
from kshell.columnar.records import RecordColumns, RecordsByColumn, Single, repeated
from kshell.history.record_paths import RecordPaths
from kshell.metadata.records import Decoded, decode_value
from kshell.protocol.batches import Batch
from kshell.tables.arrow import schema
from kshell.tables.declaration import Field

if TYPE_CHECKING:
    from kshell.engine.session import Session
    from kshell.sources.directory.records import DecodedRecords

arrow: ModuleType = importlib.import_module("pyarrow")
compute: ModuleType = importlib.import_module("pyarrow.compute")

_LAST_TIME = 253_402_300_799_999
"""The end of the year 9999, the last that ISO-8601 has without further agreement."""


def event_batches(session: Session, records: DecodedRecords, fields: Sequence[Field]) -> Iterator[Any]:
    """Yield the rows of all records as ``pyarrow.RecordBatch`` objects with the schema of the fields."""
    collected = _Events(session, records, fields)
    for file, batch in records.batches():
        collected.place(batch, file)
        if collected.is_full:
            yield from collected.rows()
    yield from collected.rows()
    records.finish()


class _Events(RecordsByColumn):
    """Collects batches with :meth:`place`, and decodes them into record batches with :meth:`rows`."""

    def __init__(self, session: Session, records: DecodedRecords, fields: Sequence[Field]) -> None:
        self._schema = schema(arrow, fields)
        super().__init__(session.redaction, self._schema.names)
        self._until = session.until
        self._records = records
        self._files: list[str] = []
        self._paths = RecordPaths(session) if "path" in self._schema.names else None

    def place(self, batch: Batch, file: str) -> None:
        """Add a batch, and the path of its file."""
        self.add(batch)
        self._files.append(file)

    def rows(self) -> Iterator[Any]:
        """Decode all collected batches and forget them; yields one record batch, or none without rows."""
        epochs = [batch.epoch for batch in self._batches]
        made = self.take()
        self._files = []
        if made.count:
            paths = None if self._paths is None else list(self._paths.of(made.in_order()))
            yield arrow.record_batch(
                [self._column(made, field.name, field.type, epochs, paths) for field in self._schema],
                schema=self._schema,
            )

    def _column(
        self, made: RecordColumns, name: str, kind: Any, epochs: list[int], paths: list[str | None] | None
    ) -> Any:
        """Return one column, given the epochs of the batches and the paths of the records."""
        match name:
            case "epoch":
                return repeated(epochs, made.batch, kind)
            case "time":
                return _times(made.column("timestampMs", arrow.int64()))
            case "path":
                return arrow.array(paths, kind)
            case _:
                return made.column(name, kind)

    def selected(self, framed: Framed) -> Framed:
        """Leave out the records after the point that the session shows."""
        if self._until is None or (mask := framed.offset <= self._until).all():
            return framed
        return framed.only(mask)

    def one_by_one(self, index: int) -> Iterator[Single]:
        """Decode the records of a batch of another form; what is wrong with it is noted as damage."""
        for record in self._records.records_of(self._batches[index], self._files[index]):
            yield Single(record.offset, record.timestamp, record.decoded)

    def alone(self, index: int, offset: int, value: bytes) -> Decoded:
        """Decode a value of a rare form; it is counted if it is malformed."""
        decoded = decode_value(value)
        self._records.note(decoded, offset, self._files[index])
        return decoded


def _times(timestamps: Any) -> Any:
    """Return the texts of epoch milliseconds, as :func:`kshell.tree.image.iso` makes each of them."""
    is_time = compute.and_(compute.greater_equal(timestamps, 0), compute.less_equal(timestamps, _LAST_TIME))
    times = compute.if_else(is_time, timestamps, None).cast(arrow.timestamp("ms")).cast(arrow.string())
    return compute.binary_join_element_wise(compute.binary_replace_slice(times, 10, 11, "T"), "Z", "")
