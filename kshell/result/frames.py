"""An answer's rows as Arrow, and from there as pandas, polars and Spark: one set of types for all.

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

A null is null in all of them, and an integer never becomes a float for its sake.

A column has the type that its command declares, else the one that its values show.
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
"""An empty list, which may be one of anything."""
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


def fields(columns: Iterable[Column], rows: Sequence[Row]) -> list[Field]:
    """A field for each column. One whose type nobody declares gets one that holds every value of it."""
    return [
        Field(column.name, column.type if column.type is not None else _type(row.get(column.name) for row in rows), "")
        for column in columns
    ]


def _type(values: Iterable[Any]) -> Type:
    """The type of all these values. Columns that are always null, or of several kinds, are JSON."""
    found: Type | None = None
    for value in values:
        if value is not None:
            found = _joined(found, _type_of(value))
            if found == ANY:
                break
    return ANY if found in (None, _LIST_OF_NOTHING) else found


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
        return ANY  # the next row's may have other keys
    if not value:
        return _LIST_OF_NOTHING
    element = _type(value)
    return [element] if isinstance(element, str) and element != ANY else ANY


def _joined(one: Type | None, other: Type) -> Type:
    """What holds both. Numbers stay exact: an integer beside a float is no float."""
    if one is None or one == other:
        return other
    if isinstance(one, list) and isinstance(other, list) and _LIST_OF_NOTHING in (one, other):
        return one if other == _LIST_OF_NOTHING else other
    return ANY


def schema(fields: Iterable[Field]) -> dict[str, str]:
    """The name of each column -> its type as the table above writes it."""
    return {field.name: "timestamp" if isinstance(field.type, Timestamp) else type_text(field.type) for field in fields}


def row_names(rows: Sequence[Row]) -> Iterator[str]:
    """The keys of rows in the order in which they first come up."""
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
    """A ``pandas.DataFrame`` whose columns keep Arrow's types, so that null and 64-bit integers go together."""
    (pandas,) = require("to_pandas", _EXTRA, "pandas")
    return table.to_pandas(types_mapper=pandas.ArrowDtype)


def to_polars(table: Any) -> Any:
    """A ``polars.DataFrame``."""
    (polars,) = require("to_polars", _EXTRA, "polars")
    return polars.from_arrow(table)


def to_spark(table: Any, spark: Any) -> Any:
    """A DataFrame of that Spark session, classic or Connect."""
    return spark.createDataFrame(table)
