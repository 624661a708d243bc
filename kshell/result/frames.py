"""Convert rows to an Arrow table, and that to pandas, polars and Spark data frames, with corresponding types.

========= ============================ ====================== ============ ============================
declared  Arrow                        pandas                 polars       Spark
========= ============================ ====================== ============ ============================
int16…64  int16, int32, int64          ``ArrowDtype`` of it   Int16…Int64  smallint, int, bigint
float64   double                       …                      Float64      double
string    string                       …                      String       string
boolean   bool                         …                      Boolean      boolean
timestamp timestamp[ms, UTC]           …                      Datetime     timestamp
json      string, the value as JSON    …                      String       string
[type]    list<type>                   …                      List         array<type>
{name: …} struct                       …                      Struct       struct
{*: type} map<string, type>            …                      List(Struct) map<string, type>
========= ============================ ====================== ============ ============================

A null stays null in all of them, and never turns integers into floats. A column has the type that its command declares,
else one that holds all its values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kshell.engine.result import Column, Row, Timestamp
from kshell.extras import require
from kshell.tables import arrow as arrow_tables
from kshell.tables.declaration import Field, Type, type_text

ANY = "json"
_LIST_OF_NOTHING: Type = [ANY]
"""The type of an empty list, which fits a list of any type."""
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


def fields(columns: Iterable[Column], rows: Sequence[Row]) -> list[Field]:
    """Return a field for each column. A column without a declared type gets a type that holds all its values."""
    return [
        Field(column.name, column.type if column.type is not None else _type(row.get(column.name) for row in rows), "")
        for column in columns
    ]


def _type(values: Iterable[object]) -> Type:
    """Return a type that holds all values; JSON if all are null or their types differ."""
    joined: Type | None = None
    for value in values:
        if value is not None:
            joined = _joined(joined, _type_of(value))
            if joined == ANY:
                break
    return ANY if joined in (None, _LIST_OF_NOTHING) else joined


def _type_of(value: Any) -> Type:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "int64" if _LEAST <= value <= _MOST else ANY
    if isinstance(value, float):
        return "float64"
    if isinstance(value, str):
        return "string"
    if isinstance(value, Mapping):
        return ANY  # the object of the next row may have other keys
    if not value:
        return _LIST_OF_NOTHING
    element = _type(value)
    return [element] if isinstance(element, str) and element != ANY else ANY


def _joined(first: Type | None, second: Type) -> Type:
    """Return a type that holds both. It is JSON for an integer and a float, because numbers must stay exact."""
    if first is None or first == second:
        return second
    if isinstance(first, list) and isinstance(second, list) and _LIST_OF_NOTHING in (first, second):
        return first if second == _LIST_OF_NOTHING else second
    return ANY


def schema(fields: Iterable[Field]) -> dict[str, str]:
    """The name of each column -> its type as the table above writes it."""
    return {field.name: "timestamp" if isinstance(field.type, Timestamp) else type_text(field.type) for field in fields}


def row_names(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the keys of all rows in the order of their first use."""
    return iter(dict.fromkeys(name for row in rows for name in row))


_EXTRA = "notebook"


def to_arrow(fields: Sequence[Field], rows: Sequence[Row]) -> Any:
    """A ``pyarrow.Table``; with its columns also when there is no row."""
    (arrow,) = require("to_arrow", _EXTRA, "pyarrow")
    schema = arrow_tables.schema(arrow, fields)
    batches = list(arrow_tables.batches(arrow, fields, rows))
    # A table without any batch has columns without a chunk, which Spark does not take.
    table = arrow.Table.from_batches(batches or [arrow.RecordBatch.from_pylist([], schema=schema)], schema)
    moment = arrow.timestamp("ms", tz="UTC")
    for place, field in enumerate(fields):
        if isinstance(field.type, Timestamp):
            table = table.set_column(place, schema.field(place).with_type(moment), table.column(place).cast(moment))
    return table


def to_pandas(table: Any) -> Any:
    """Convert to a ``pandas.DataFrame`` with Arrow's types, so that a column can hold both null and 64-bit integers."""
    (pandas,) = require("to_pandas", _EXTRA, "pandas")
    return table.to_pandas(types_mapper=pandas.ArrowDtype)


def to_polars(table: Any) -> Any:
    """A ``polars.DataFrame``."""
    (polars,) = require("to_polars", _EXTRA, "polars")
    return polars.from_arrow(table)


def to_spark(table: Any, spark: Any) -> Any:
    """Convert to a DataFrame of the given Spark session, classic or Spark Connect."""
    return spark.createDataFrame(table)
