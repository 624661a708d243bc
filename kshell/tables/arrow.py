"""Tables as Arrow: their schemas, and their rows in batches. Needs pyarrow, which the extra ``sql`` brings."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from kshell.engine.result import Row
from kshell.tables.declaration import OTHER_FIELDS, Field, Table, Type, Wanted

BATCH = 20_000
"""Rows of a batch: some megabytes."""
_DOC = b"doc"


def schema(arrow: Any, fields: Iterable[Field]) -> Any:
    """The Arrow schema of those fields: every one nullable, with what it says as the metadata ``doc``."""
    return arrow.schema([_field(arrow, field) for field in fields])


def _field(arrow: Any, field: Field) -> Any:
    return arrow.field(field.name, arrow_type(arrow, field.type), metadata={_DOC: field.doc.encode()})


def arrow_type(arrow: Any, declared: Type) -> Any:
    """An object with fixed fields is a struct; one whose keys are data is a map."""
    if isinstance(declared, str):
        return getattr(arrow, {"boolean": "bool_", "json": "string"}.get(declared, declared))()
    if not isinstance(declared, Mapping):
        return arrow.list_(arrow_type(arrow, declared[0]))
    if OTHER_FIELDS in declared:
        return arrow.map_(arrow.string(), arrow_type(arrow, declared[OTHER_FIELDS]))
    return arrow.struct([arrow.field(name, arrow_type(arrow, below)) for name, below in declared.items()])


def batches(arrow: Any, fields: Sequence[Field], rows: Iterable[Row]) -> Iterator[Any]:
    """The rows as record batches of the fields' schema."""
    arrow_schema, waiting = schema(arrow, fields), iter(rows)
    while part := list(islice(waiting, BATCH)):
        columns = [_array(arrow, [row.get(field.name) for row in part], field.type) for field in fields]
        yield arrow.record_batch(columns, schema=arrow_schema)


def create_table(arrow: Any, connection: Any, table: Table, rows: Iterable[Row], wanted: Wanted = None) -> None:
    """The table in a DuckDB, which keeps its own copy of the rows; a field that is not ``wanted`` is null in all.

    What is raised while rows are made comes out as it is: DuckDB would put its own error in the place of it, of Ctrl-C
    too.
    """
    failed: list[BaseException] = []
    # Of rows without any field, one is made nevertheless: they are counted.
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
    """A text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


def _array(arrow: Any, values: list[Any], declared: Type) -> Any:
    kind = arrow_type(arrow, declared)
    if declared != "json":
        # A lone surrogate somewhere, or a map, which Arrow takes as pairs, needs a look at each value.
        with contextlib.suppress(UnicodeEncodeError, arrow.ArrowException):
            return arrow.array(values, type=kind)
    return arrow.array([_value(value, declared) for value in values], type=kind)


def _value(value: Any, declared: Type) -> Any:
    """A plain value as Arrow takes it: text that is no UTF-8 (a lone surrogate) has a replacement character there."""
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


def json_text(value: Any) -> str:
    """A plain value as JSON text, compact; what is no UTF-8 is a JSON escape."""
    import json

    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=dict)
    return text if _is_utf8(text) else json.dumps(value, separators=(",", ":"), default=dict)


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
