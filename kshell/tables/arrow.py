"""Tables as Arrow: schemas, record batches, tables in a DuckDB. Needs pyarrow (extra ``sql``), given as ``arrow``."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from kshell.engine.result import Row
from kshell.tables.declaration import OTHER_FIELDS, ColumnarRows, Field, FieldNames, Table, Type

if TYPE_CHECKING:
    from types import ModuleType

    from duckdb import DuckDBPyConnection

BATCH = 20_000
"""Rows per record batch: some megabytes."""
INT16 = range(-(1 << 15), 1 << 15)
INT64 = range(-(1 << 63), 1 << 63)
"""The ranges of the columns for versions, and for offsets and timestamps; only damage has numbers beyond them."""
_DOC = b"doc"


def schema(arrow: ModuleType, fields: Iterable[Field]) -> Any:
    """Return the Arrow schema of the fields. All are nullable; each field's description is its metadata ``doc``."""
    return arrow.schema([_field(arrow, field) for field in fields])


def _field(arrow: ModuleType, field: Field) -> Any:
    return arrow.field(field.name, arrow_type(arrow, field.type), metadata={_DOC: field.doc.encode()})


def arrow_type(arrow: ModuleType, declared: Type) -> Any:
    """Return the Arrow type of a column's: a struct for an object with fixed fields, a map if its keys are data."""
    if isinstance(declared, str):
        return getattr(arrow, {"boolean": "bool_", "json": "string"}.get(declared, declared))()
    if not isinstance(declared, Mapping):
        return arrow.list_(arrow_type(arrow, declared[0]))
    if OTHER_FIELDS in declared:
        return arrow.map_(arrow.string(), arrow_type(arrow, declared[OTHER_FIELDS]))
    return arrow.struct([arrow.field(name, arrow_type(arrow, below)) for name, below in declared.items()])


def batches(arrow: ModuleType, fields: Sequence[Field], rows: Iterable[Row]) -> Iterator[Any]:
    """Yield the rows as record batches with the schema of the fields."""
    if isinstance(rows, ColumnarRows):
        yield from rows.record_batches(fields)
        return
    arrow_schema, waiting = schema(arrow, fields), iter(rows)
    while part := list(islice(waiting, BATCH)):
        columns = [_array(arrow, [row.get(field.name) for row in part], field.type) for field in fields]
        yield arrow.record_batch(columns, schema=arrow_schema)


def create_table(
    arrow: ModuleType, connection: DuckDBPyConnection, table: Table, rows: Iterable[Row], wanted: FieldNames = None
) -> None:
    """Create a table in a DuckDB with its own copy of the rows; columns that are not ``wanted`` are null in every row.

    An exception that is raised while rows are made, Ctrl-C too, is raised unchanged: DuckDB would replace it by its
    own.
    """
    failed: list[BaseException] = []
    # If no field is wanted (a query only counts rows), one is filled all the same, so that there are rows to count.
    fields = [field for field in table.fields if wanted is None or field.name in wanted] or list(table.fields[:1])

    def watched() -> Iterator[Any]:
        try:
            yield from batches(arrow, fields, rows)
        except BaseException as error:
            failed.append(error)
            raise

    query = "SELECT * FROM _rows"
    if len(fields) < len(table.fields):
        connection.register("_columns", arrow.RecordBatchReader.from_batches(schema(arrow, table.fields), ()))
        query = f"SELECT * FROM _columns UNION ALL BY NAME {query}"
    connection.register("_rows", arrow.RecordBatchReader.from_batches(schema(arrow, fields), watched()))
    try:
        connection.execute(f'CREATE TABLE "{table.name}" AS {query}')
    except Exception:
        if failed:
            raise failed[0] from None
        raise
    for name in ("_rows", "_columns"):
        connection.unregister(name)


def literal(text: str) -> str:
    """Return a text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def _array(arrow: ModuleType, values: list[object], declared: Type) -> Any:
    kind = arrow_type(arrow, declared)
    if declared != "json":
        # Fails for a lone surrogate, and for a map, which Arrow takes as pairs: then each value is converted below.
        with contextlib.suppress(UnicodeEncodeError, arrow.ArrowException):
            return arrow.array(values, type=kind)
    return arrow.array([_value(value, declared) for value in values], type=kind)


def _value(value: Any, declared: Type) -> Any:
    """Return a plain value as Arrow takes it; a lone surrogate, which is no UTF-8, becomes a replacement character."""
    if value is None:
        return None
    if declared == "json":
        return json_text(value)
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(declared, list):
        below = declared[0]
        return value if isinstance(below, str) and below != "string" else [_value(item, below) for item in value]
    assert isinstance(declared, Mapping)
    if OTHER_FIELDS in declared:
        return [(_value(key, "string"), _value(item, declared[OTHER_FIELDS])) for key, item in value.items()]
    return {name: _value(value.get(name), below) for name, below in declared.items()}


def json_text(value: object) -> str:
    """Return a plain value as compact JSON text; if it has a lone surrogate, everything outside ASCII is escaped."""
    exact, escaped = _encoders()
    text = exact(value)
    return text if text.isascii() or _is_utf8(text) else escaped(value)


@cache
def _encoders() -> tuple[Callable[[object], str], Callable[[object], str]]:
    """Return a function that encodes as compact JSON, and one that escapes everything outside ASCII."""
    import json

    exact, escaped = (
        json.JSONEncoder(ensure_ascii=is_escaped, separators=(",", ":"), default=dict).encode
        for is_escaped in (False, True)
    )
    return exact, escaped


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
