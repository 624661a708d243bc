"""Make columns of records: collect batches, then decode all their records together.

Records of the usual form are decoded by columns, all others one by one. Both ways give the same rows, in the order of
the batches.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from kshell.columnar.framing import Framed, frame
from kshell.columnar.values import Group, Values
from kshell.metadata.records import Decoded, decode_value
from kshell.metadata.redaction import Redaction
from kshell.protocol.batches import Batch
from kshell.tables.arrow import INT16, INT64, json_text

if TYPE_CHECKING:
    import pyarrow as pa

    from kshell.columnar.framing import Ints, Mask

arrow: ModuleType = importlib.import_module("pyarrow")
np: ModuleType = importlib.import_module("numpy")

ROWS = 1 << 16
SIZE = 4 << 20
"""Records, and bytes of batches, after which collected batches are decoded; the columns have ten times the bytes."""
C = TypeVar("C")


class Single(NamedTuple):
    """A record that was decoded one by one."""

    offset: int
    timestamp: int
    decoded: Decoded


class BatchDecoder(ABC, Generic[C]):
    """Collects batches and decodes all their records together: :meth:`add` batches; when it :attr:`is_full`, take the
    :meth:`record_batches`.

    Args:
        schema: the ``pyarrow.Schema`` of the requested columns.
        redaction: hides secrets before they get into a column.
        with_data: whether values are decoded completely, not only their types.
    """

    def __init__(self, schema: pa.Schema, redaction: Redaction, *, with_data: bool) -> None:
        self._schema = schema
        self._redaction = redaction
        self._values = Values(redaction, with_data=with_data)
        self._forget()

    def _forget(self) -> None:
        self._batches: list[Batch] = []
        self._contexts: list[C] = []
        self._rows = self._size = 0

    def add(self, batch: Batch, context: C) -> None:
        """Add a batch whose CRC is good, and what a subclass has to know of it."""
        self._batches.append(batch)
        self._contexts.append(context)
        self._rows += batch.records
        self._size += batch.size

    @property
    def is_full(self) -> bool:
        """Whether enough batches were added to take their rows."""
        return self._rows >= ROWS or self._size >= SIZE

    def record_batches(self) -> Iterator[pa.RecordBatch]:
        """Decode all collected batches and forget them; yields one ``pyarrow.RecordBatch``, or none without rows."""
        decoded = self._decoded()
        columns = [self._column(decoded, field.name, field.type) for field in self._schema] if decoded.count else None
        self._forget()  # before the caller works with the rows: the batches keep their files' bytes
        if columns is not None:
            yield arrow.record_batch(columns, schema=self._schema)

    def _decoded(self) -> RecordColumns:
        framed, unframed = frame(self._batches)
        framed = self._selected(framed)
        groups, rare = self._values.decode(framed)
        # In the order of the log: of several faults, the first is reported.
        by_batch = [(int(framed.batch[row]), int(row)) for row in rare] + [(index, -1) for index in unframed]
        singles_of_batch: dict[int, list[Single]] = {}
        singles_of_row: dict[int, Single] = {}
        for index, row in sorted(by_batch):
            context = self._contexts[index]
            if row < 0:
                singles_of_batch[index] = list(self._one_by_one(self._batches[index], context))
            else:
                offset, timestamp = int(framed.offset[row]), int(framed.timestamp[row])
                decoded = self._decoded_value(framed.value(row), offset, context)
                singles_of_row[row] = Single(offset, timestamp, decoded)
        columns = RecordColumns(self._redaction, len(self._batches), framed, singles_of_batch)
        for group in groups:
            columns.put_group(group)
        for row, single in singles_of_row.items():
            columns.put_single(int(columns.places[row]), single)
        return columns

    @abstractmethod
    def _column(self, columns: RecordColumns, name: str, kind: pa.DataType) -> pa.Array:
        """Return one of the requested columns."""

    @abstractmethod
    def _one_by_one(self, batch: Batch, context: C) -> Iterator[Single]:
        """Decode the wanted records of a batch of another form, up to its first fault, which must not be raised."""

    def _decoded_value(self, value: bytes, offset: int, context: C) -> Decoded:
        """Decode a value of a rare or broken form in a batch of the usual form."""
        return decode_value(value)

    def _selected(self, framed: Framed) -> Framed:
        """Select the wanted records."""
        return framed


class RecordColumns:
    """The rows of records decoded by columns and of records decoded one by one, from which columns are made.

    ``count``: how many rows there are. ``batch``: the index of the batch of each row. ``place``, below, is the number
    of a row; ``places``: that of each record of ``framed``. ``singles``: the records decoded one by one, by place; of
    ``framed``, those of a rare form are among them.
    """

    def __init__(
        self, redaction: Redaction, batches: int, framed: Framed, singles_of_batch: dict[int, list[Single]]
    ) -> None:
        added = np.zeros(batches, np.int64)
        for index, singles in singles_of_batch.items():
            added[index] = len(singles)
        counts = np.bincount(framed.batch, minlength=batches) + added
        self._redaction = redaction
        self.framed = framed
        self.count = int(counts.sum())
        self.batch: Ints = np.repeat(np.arange(batches, dtype=np.int32), counts)
        self.places: Ints = np.arange(len(framed.offset)) + (np.cumsum(added) - added)[framed.batch]
        self._numbers = {
            "offset": np.zeros(self.count, np.int64),
            "timestampMs": np.zeros(self.count, np.int64),
            "version": np.zeros(self.count, np.int16),
        }
        self._missing: dict[str, list[int]] = {name: [] for name in self._numbers}
        self._types: dict[str, int] = {}
        self._type = np.zeros(self.count, np.int32)
        self._texts: list[pa.StringArray] = []
        self._text_places: list[Ints] = []
        self.singles: dict[int, Single] = {}
        self._numbers["offset"][self.places] = framed.offset
        self._numbers["timestampMs"][self.places] = framed.timestamp
        first = np.cumsum(counts) - counts
        for index, singles in singles_of_batch.items():
            for place, single in enumerate(singles, int(first[index])):
                self.put_single(place, single)

    def put_group(self, group: Group) -> None:
        """Set type, version and JSON text of records of one type and version."""
        places = self.places[group.rows]
        self._numbers["version"][places] = group.version
        self._type[places] = self._types.setdefault(group.name, len(self._types))
        self._texts.append(group.texts)
        self._text_places.append(places)

    def put_single(self, place: int, single: Single) -> None:
        """Set all values of a record that was decoded one by one; a number out of its column's range becomes null."""
        for name, value, range_ in (
            ("offset", single.offset, INT64),
            ("timestampMs", single.timestamp, INT64),
            ("version", single.decoded.version, INT16),
        ):
            if value in range_:
                self._numbers[name][place] = value
            else:
                self._missing[name].append(place)
        self._type[place] = self._types.setdefault(single.decoded.name, len(self._types))
        self.singles[place] = single

    def in_order(self, rows: Mask) -> Iterator[tuple[int, int, int, bytes | Decoded]]:
        """Yield place, offset, timestamp and value of the framed records of a mask, and of all that were decoded alone.

        Of the latter, the value is the decoded one. Call it before :meth:`column`, which replaces values in it by their
        printed form.
        """
        framed = self.framed.only(rows)
        spans = zip(framed.start.tolist(), framed.end.tolist(), strict=True)
        values = [framed.data[start:end] for start, end in spans]
        records = zip(framed.offset.tolist(), framed.timestamp.tolist(), values, strict=True)
        chosen: dict[int, tuple[int, int, bytes | Decoded]] = dict(
            zip(self.places[rows].tolist(), records, strict=True)
        )
        chosen |= self.singles
        for place in sorted(chosen):
            yield place, *chosen[place]

    def column(self, name: str, kind: pa.DataType) -> pa.Array:
        """Return a column as an Arrow array of type ``kind``."""
        if name in self._numbers:
            mask = None
            if self._missing[name]:
                mask = np.zeros(self.count, bool)
                mask[self._missing[name]] = True
            return arrow.array(self._numbers[name], type=kind, mask=mask)
        if name == "type":
            return repeated(list(self._types), self._type, kind)
        if name == "data":
            return self._data(kind)
        values: dict[int, str | bytes | None] = {}
        for place, single in self.singles.items():
            if (undecoded := single.decoded.undecoded) is not None:
                values[place] = undecoded.reason if name == "reason" else self._redaction.raw(single.decoded)
        if not values:
            return arrow.nulls(self.count, kind)
        return arrow.array([values.get(place) for place in range(self.count)], kind)

    def _data(self, kind: pa.DataType) -> pa.Array:
        texts = (json_text(self._redaction.record(single.decoded)) for single in self.singles.values())
        places = np.concatenate([*self._text_places, np.array(list(self.singles), np.int64)])
        return in_places([*self._texts, arrow.array(texts, type=kind)], places)


def in_places(arrays: Sequence[pa.Array], places: Ints) -> pa.Array:
    """Return all elements of some arrays in the order of ``places``, the number of the row of each, in which all occur.

    Of several elements for one row, the last one counts.
    """
    order = np.empty(int(places.max(initial=-1)) + 1, np.int64)
    order[places] = np.arange(len(places))
    return arrow.concat_arrays(arrays).take(arrow.array(order))


def repeated(values: Sequence[Any], places: Ints, kind: pa.DataType) -> pa.Array:
    """Return ``values[place]`` for each of ``places`` as an Arrow array of type ``kind``, dictionary-encoded or not."""
    return arrow.array(values, type=kind).take(arrow.array(places))
