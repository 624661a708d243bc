"""Make the rows of the view ``records``: collect batches, then decode all their records together.

Records of the usual form are decoded by columns (:mod:`kshell.spark.columns`), all others one by one, as in the other
views. Both ways give the same rows, in the order of the batches. Values that all records of a batch share are stored
once per batch; only requested columns are made.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from kshell.errors import MissingCodecError
from kshell.history.records import only
from kshell.metadata.records import Decoded, decode_record
from kshell.metadata.redaction import Redaction
from kshell.protocol.batches import Batch, RawRecord
from kshell.protocol.primitives import DecodeError
from kshell.spark.columns.framing import Framed, frame
from kshell.spark.columns.values import Group, Values
from kshell.spark.decoding.single_records import INT16, INT64, json_text, raw_bytes, records
from kshell.spark.options import Narrowing
from kshell.tables.arrow import schema
from kshell.tables.declaration import Field

if TYPE_CHECKING:
    import pyarrow as pa

    from kshell.spark.columns.framing import Ints

np: ModuleType = importlib.import_module("numpy")

ROWS = 1 << 16
SIZE = 4 << 20
"""Records, and bytes of batches, after which collected batches are decoded; the columns have ten times the bytes."""

Shared = tuple[str | None, int | None, str, bool, int, int]
"""The values that all records of a batch share: clusterId, nodeId, file, isSnapshot, position, epoch."""
_SHARED = ("clusterId", "nodeId", "file", "isSnapshot", "position", "epoch")
_SNAPSHOT = _SHARED.index("isSnapshot")
_TEXTS = ("clusterId", "file", "type")
_DATA_COLUMNS = ("data", "reason", "raw")
"""Columns that need the values decoded completely, not only their types."""


class Records:
    """Collects batches and decodes them: :meth:`add` batches, and :meth:`take` the rows once it :attr:`is_full`.

    Args:
        arrow: the module ``pyarrow``.
        fields: the requested columns of the view, in any order.
        is_whole: raise MissingCodecError for a batch whose codec is not installed, instead of counting it as broken.
        dictionaries: make dictionary-encoded columns of the texts that many rows share, for writing them to a file.
    """

    def __init__(
        self,
        arrow: ModuleType,
        fields: Sequence[Field],
        narrowing: Narrowing,
        redaction: Redaction,
        *,
        is_whole: bool = False,
        dictionaries: bool = False,
    ) -> None:
        self._arrow = arrow
        self._schema = schema(arrow, fields)
        if dictionaries:
            self._schema = _with_dictionaries(arrow, self._schema)
        self._narrowing = narrowing
        self._redaction = redaction
        self._wanted = None if narrowing.types is None else only(narrowing.types)
        self._raises = is_whole
        self._with_data = not set(_DATA_COLUMNS).isdisjoint(self._schema.names)
        self._values = Values(redaction, with_data=self._with_data)
        self.broken = 0
        """How many batches that were taken could not be read completely."""
        self._start()

    def _start(self) -> None:
        self._batches: list[Batch] = []
        self._shared: list[Shared] = []
        self._rows = self._size = 0

    def add(self, shared: Shared, batch: Batch) -> None:
        """Add a batch whose CRC is good."""
        self._batches.append(batch)
        self._shared.append(shared)
        self._rows += batch.records
        self._size += batch.size

    @property
    def is_full(self) -> bool:
        """Whether enough batches were added to take their rows."""
        return self._rows >= ROWS or self._size >= SIZE

    def take(self) -> Iterator[pa.RecordBatch]:
        """Decode all collected batches and forget them; yields one ``pyarrow.RecordBatch``, or none without rows."""
        framed, unframed = frame(self._batches)
        framed = self._narrowed(framed)
        lines_of = {index: list(self._one_by_one(index)) for index in unframed}
        added = np.zeros(len(self._batches), np.int64)
        for index, lines in lines_of.items():
            added[index] = len(lines)
        counts = np.bincount(framed.batch, minlength=len(self._batches)) + added
        rows = _RecordColumns(self._arrow, int(counts.sum()))
        places = np.arange(len(framed.offset)) + (np.cumsum(added) - added)[framed.batch]
        rows.put(places, framed)
        groups, alone = self._values.decode(framed)
        for group in groups:
            rows.put_group(places[group.rows], group)
        for row in alone.tolist():
            raw = RawRecord(int(framed.offset[row]), int(framed.timestamp[row]), None, framed.value(row))
            rows.put_line(int(places[row]), self._line(raw, decode_record(raw, control=False)))
        first = np.cumsum(counts) - counts
        for index, lines in lines_of.items():
            for place, line in enumerate(lines, int(first[index])):
                rows.put_line(place, line)
        shared = dict(zip(_SHARED, zip(*self._shared, strict=True), strict=True)) if self._shared else {}
        self._start()
        if rows.count:
            batches = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
            columns = [
                _repeated(self._arrow, shared[name], batches, kind) if name in shared else rows.column(name, kind)
                for name, kind in zip(self._schema.names, self._schema.types, strict=True)
            ]
            yield self._arrow.record_batch(columns, schema=self._schema)

    def _narrowed(self, framed: Framed) -> Framed:
        """Select the wanted records. Of snapshots only types count: their offsets and times are not the log's."""
        since, until = self._narrowing.since, self._narrowing.until
        mask = np.ones(len(framed.offset), bool)
        for column, least, most in (
            (framed.offset, since.offset, until.offset),
            (framed.timestamp, since.time_ms, until.time_ms),
        ):
            if least is not None:
                mask &= column >= least
            if most is not None:
                mask &= column <= most
        mask |= np.array([shared[_SNAPSHOT] for shared in self._shared], bool)[framed.batch]
        if self._wanted is not None:
            mask &= self._values.are_wanted(framed, self._wanted)
        return framed if mask.all() else framed.only(mask)

    def _one_by_one(self, index: int) -> Iterator[_DecodedRecord]:
        """Decode the records of a batch of another form as far as possible; the view ``quarantine`` has the reason."""
        log = not self._shared[index][_SNAPSHOT]
        try:
            for raw, decoded in records(self._batches[index], self._narrowing, self._wanted, log=log):
                yield self._line(raw, decoded)
        except MissingCodecError as error:
            if self._raises:
                _, _, file, _, position, _ = self._shared[index]
                raise error.at(file, position) from None
            self.broken += 1
        except DecodeError:
            self.broken += 1

    def _line(self, raw: RawRecord, decoded: Decoded) -> _DecodedRecord:
        name, version = decoded.name, decoded.version
        if not self._with_data:
            return _DecodedRecord(raw.offset, raw.timestamp, name, version, "", None, None)
        redacted = self._redaction.record(decoded)
        reason = None if decoded.undecoded is None else decoded.undecoded.reason
        return _DecodedRecord(
            raw.offset, raw.timestamp, name, version, json_text(redacted), reason, raw_bytes(decoded, redacted)
        )


def _with_dictionaries(arrow: ModuleType, schema: pa.Schema) -> pa.Schema:
    """Return the schema with dictionary encoding for the columns of texts that many records share."""
    kind = arrow.dictionary(arrow.int32(), arrow.string())
    return arrow.schema([field.with_type(kind) if field.name in _TEXTS else field for field in schema])


class _DecodedRecord(NamedTuple):
    """A record that was decoded one by one; ``reason`` and ``raw`` are set if it could not be decoded."""

    offset: int
    timestamp: int
    name: str
    version: int
    data: str
    """The record as JSON text; empty if the column was not requested."""
    reason: str | None
    raw: bytes | None


def _repeated(arrow: ModuleType, values: Sequence[Any], places: Ints, kind: pa.DataType) -> pa.Array:
    """Return ``values[place]`` for each of ``places`` as an Arrow array of type ``kind``, dictionary-encoded or not."""
    return arrow.array(values, type=kind).take(arrow.array(places))


class _RecordColumns:
    """Collects the rows of records decoded by columns and of records decoded one by one, and makes columns of them.

    ``place`` is everywhere the number of a row in the result, which has ``count`` rows. Each record is put at its
    place, in any order; then :meth:`column` makes the Arrow arrays.
    """

    def __init__(self, arrow: ModuleType, count: int) -> None:
        self._arrow = arrow
        self.count = count
        self._numbers = {
            "offset": np.zeros(count, np.int64),
            "timestampMs": np.zeros(count, np.int64),
            "version": np.zeros(count, np.int16),
        }
        self._missing: dict[str, list[int]] = {"offset": [], "timestampMs": [], "version": []}
        self._types: dict[str, int] = {}
        self._type = np.zeros(count, np.int32)
        self._texts: list[pa.StringArray] = []
        self._places: list[Ints] = []
        self._lines: dict[int, _DecodedRecord] = {}

    def put(self, places: Ints, framed: Framed) -> None:
        """Set offset and timestamp of records."""
        self._numbers["offset"][places] = framed.offset
        self._numbers["timestampMs"][places] = framed.timestamp

    def put_group(self, places: Ints, group: Group) -> None:
        """Set type, version and JSON text of records of one type and version."""
        self._numbers["version"][places] = group.version
        self._type[places] = self._types.setdefault(group.name, len(self._types))
        self._texts.append(group.texts)
        self._places.append(places)

    def put_line(self, place: int, line: _DecodedRecord) -> None:
        """Set all values of a record that was decoded one by one; a number out of its column's range becomes null."""
        for name, value, range_ in (
            ("offset", line.offset, INT64),
            ("timestampMs", line.timestamp, INT64),
            ("version", line.version, INT16),
        ):
            if value in range_:
                self._numbers[name][place] = value
            else:
                self._missing[name].append(place)
        self._type[place] = self._types.setdefault(line.name, len(self._types))
        self._lines[place] = line

    def column(self, name: str, kind: pa.DataType) -> pa.Array:
        """Return a column of the view as an Arrow array of type ``kind``."""
        arrow = self._arrow
        if name in self._numbers:
            mask = None
            if self._missing[name]:
                mask = np.zeros(self.count, bool)
                mask[self._missing[name]] = True
            return arrow.array(self._numbers[name], type=kind, mask=mask)
        if name == "type":
            return _repeated(arrow, list(self._types), self._type, kind)
        if name == "data":
            return self._data(kind)
        values = {place: value for place, line in self._lines.items() if (value := getattr(line, name)) is not None}
        return (
            arrow.array([values.get(place) for place in range(self.count)], kind)
            if values
            else arrow.nulls(self.count, kind)
        )

    def _data(self, kind: pa.DataType) -> pa.Array:
        arrow = self._arrow
        lines = arrow.array([line.data for line in self._lines.values()], type=kind)
        places = np.concatenate([*self._places, np.array(list(self._lines), np.int64)])
        order = np.empty(self.count, np.int64)
        order[places] = np.arange(self.count)
        return arrow.concat_arrays([*self._texts, lines]).take(arrow.array(order))
