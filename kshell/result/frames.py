"""An answer's rows as Arrow, and from there as pandas, polars and Spark: one set of types for all.

========= ============================ ====================== ============ ============================
declared  Arrow                        pandas                 polars       Spark
========= ============================ ====================== ============ ============================
int16…64  int16, int32, int64          ``ArrowDtype`` of it   Int16…Int64  smallint, int, bigint
float64   double                       …                      Float64      double
string    string                       …                      String       string
boolean   bool                         …                      Boolean      boolean
json      string, the value as JSON    …                      String       string
[type]    list<type>                   …                      List         array<type>
{name: …} struct                       …                      Struct       struct
{*: type} map<string, type>            …                      List(Struct) map<string, type>
========= ============================ ====================== ============ ============================

A null is null in all of them, and an integer never becomes a float for its sake.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kshell.engine.result import Row
from kshell.extras import require
from kshell.tables import arrow as arrow_tables
from kshell.tables.declaration import Field

_EXTRA = "notebook"


def to_arrow(fields: Sequence[Field], rows: Sequence[Row]) -> Any:
    """A ``pyarrow.Table``; with its columns also when there is no row."""
    (arrow,) = require("to_arrow", _EXTRA, "pyarrow")
    schema = arrow_tables.schema(arrow, fields)
    batches = list(arrow_tables.batches(arrow, fields, rows))
    # A table without any batch has columns without a chunk, which Spark does not take.
    return arrow.Table.from_batches(batches or [arrow.RecordBatch.from_pylist([], schema=schema)], schema)


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
