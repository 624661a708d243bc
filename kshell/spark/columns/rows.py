"""Build the columns of the view ``records`` from records decoded by columns and records decoded one by one.

``place`` is everywhere the number of a row in the result. Each record is put at its place, in any order; then
:meth:`RecordColumns.column` makes the Arrow arrays.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from kshell.spark.columns.framing import Framed
from kshell.spark.columns.values import Group
from kshell.spark.decoding.single_records import INT16, INT64

if TYPE_CHECKING:
    import pyarrow as pa

    from kshell.spark.columns.framing import Ints

np: ModuleType = importlib.import_module("numpy")


class DecodedRecord(NamedTuple):
    """A record that was decoded one by one; ``reason`` and ``raw`` are set if it could not be decoded."""

    offset: int
    timestamp: int
    name: str
    version: int
    data: str
    """The record as JSON text; empty if the column was not requested."""
    reason: str | None
    raw: bytes | None


def repeated(arrow: ModuleType, values: Sequence[Any], places: Ints, kind: pa.DataType) -> pa.Array:
    """Return ``values[place]`` for each of ``places`` as an Arrow array of type ``kind``, dictionary-encoded or not."""
    if not arrow.types.is_dictionary(kind):
        return arrow.array(values, type=kind).take(arrow.array(places))
    codes = {value: code for code, value in enumerate(dict.fromkeys(values))}
    coded = np.array([codes[value] for value in values], np.int32)[places]
    mask = coded == codes[None] if None in codes else None
    texts = arrow.array(["" if value is None else value for value in codes], type=kind.value_type)
    return arrow.DictionaryArray.from_arrays(arrow.array(coded, type=kind.index_type, mask=mask), texts)


class RecordColumns:
    """Collects ``count`` rows in any order, each with its place, and makes columns of them."""

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
        self._lines: dict[int, DecodedRecord] = {}

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

    def put_line(self, place: int, line: DecodedRecord) -> None:
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
            return repeated(arrow, list(self._types), self._type, kind)
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
