"""The table ``events`` by columns: most of its records are decoded together. Needs numpy and pyarrow."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from kshell.columnar.framing import Framed
from kshell.columnar.records import BatchDecoder, RecordColumns, Single, repeated
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
    decoder = _EventDecoder(session, records, fields)
    for file, batch in records.batches():
        decoder.add(batch, file)
        if decoder.is_full:
            yield from decoder.record_batches()
    yield from decoder.record_batches()
    records.finish()


class _EventDecoder(BatchDecoder[str]):
    """Decodes batches, each with the path of its file, into the columns of the table."""

    def __init__(self, session: Session, records: DecodedRecords, fields: Sequence[Field]) -> None:
        # Also where nobody asks for the data: what is malformed must be noticed.
        super().__init__(schema(arrow, fields), session.redaction, with_data=True)
        self._until = session.until
        self._records = records
        self._paths = RecordPaths(session) if "path" in self._schema.names else None

    def _column(self, columns: RecordColumns, name: str, kind: Any) -> Any:
        match name:
            case "epoch":
                return repeated([batch.epoch for batch in self._batches], columns.batch, kind)
            case "time":
                return _times(columns.column("timestampMs", arrow.int64()))
            case "path" if self._paths is not None:
                return self._paths.of(columns)
            case _:
                return columns.column(name, kind)

    def _selected(self, framed: Framed) -> Framed:
        """Leave out the records after the point that the session shows."""
        if self._until is None or (mask := framed.offset <= self._until).all():
            return framed
        return framed.only(mask)

    def _one_by_one(self, batch: Batch, context: str) -> Iterator[Single]:
        """Decode the records of a batch of another form; what is wrong with it is noted as damage."""
        for record in self._records.records_of(batch, context):
            yield Single(record.offset, record.timestamp, record.decoded)

    def _decoded_value(self, value: bytes, offset: int, context: str) -> Decoded:
        decoded = decode_value(value)
        self._records.note(decoded, offset, context)
        return decoded


def _times(timestamps: Any) -> Any:
    """Return the texts of epoch milliseconds, as :func:`kshell.tree.image.iso` makes each of them."""
    is_time = compute.and_(compute.greater_equal(timestamps, 0), compute.less_equal(timestamps, _LAST_TIME))
    times = compute.if_else(is_time, timestamps, None).cast(arrow.timestamp("ms")).cast(arrow.string())
    return compute.binary_join_element_wise(compute.binary_replace_slice(times, 10, 11, "T"), "Z", "")
