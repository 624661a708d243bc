"""Tables into files, a format each. A writer gets one table after the other, and says what files it made.

Numbers, text and null are exact in every format, but that CSV escapes what a spreadsheet or a terminal would obey.
Lists and objects are lists, structs and maps in Parquet and DuckDB, lists and objects in JSON, and JSON text in CSV and
SQLite.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from kshell.engine.result import Row
from kshell.errors import CommandError
from kshell.extras import require
from kshell.json_text import to_json
from kshell.separated_values import csv_line
from kshell.tables.arrow import batches, create_table, literal, schema
from kshell.tables.declaration import Table

DATABASE = "kraft"
"""The name of the one file of a database, without its ending."""
Write = Callable[[Table, Iterable[Row]], str]
"""Writes a table, and returns the name of its file."""


class Writer(ABC):
    """Writes tables into the directory ``place``; a context manager that finishes what is open."""

    def __init__(self, place: str) -> None:
        self.place = place

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def write(self, table: Table, rows: Iterable[Row]) -> str:
        """Writes one table; the name of its file."""

    def close(self) -> None:  # noqa: B027  # most have nothing open
        """Finishes a file of several tables."""

    def _file(self, name: str) -> str:
        return os.path.join(self.place, name)


class JsonLines(Writer):
    """A file a table, an object a line, every field in each."""

    def write(self, table: Table, rows: Iterable[Row]) -> str:
        name = f"{table.name}.jsonl"
        names = [field.name for field in table.fields]
        with open(self._file(name), "w", encoding="utf-8", newline="") as stream:
            stream.writelines(to_json({column: row.get(column) for column in names}) + "\n" for row in rows)
        return name


class Csv(Writer):
    """A file a table, a header and a record a row, written as ``-o csv`` writes it."""

    def write(self, table: Table, rows: Iterable[Row]) -> str:
        name = f"{table.name}.csv"
        names = [field.name for field in table.fields]
        with open(self._file(name), "w", encoding="utf-8", newline="") as stream:
            stream.write(csv_line(names))
            stream.writelines(csv_line([row.get(column) for column in names]) for row in rows)
        return name


class Parquet(Writer):
    """A file a table, compressed with zstd."""

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self._arrow, self._parquet = require("export --format parquet", "sql", "pyarrow", "pyarrow.parquet")

    def write(self, table: Table, rows: Iterable[Row]) -> str:
        name = f"{table.name}.parquet"
        arrow_schema = schema(self._arrow, table.fields)
        with self._parquet.ParquetWriter(self._file(name), arrow_schema, compression="zstd") as writer:
            for batch in batches(self._arrow, table.fields, rows):
                writer.write_batch(batch)
        return name


class Sqlite(Writer):
    """One database. Whole numbers and booleans are INTEGER, others REAL, all else TEXT."""

    def __init__(self, place: str) -> None:
        super().__init__(place)
        import sqlite3

        self._name = f"{DATABASE}.sqlite"
        self._error = sqlite3.OperationalError
        self._connection = sqlite3.connect(self._file(self._name))

    def write(self, table: Table, rows: Iterable[Row]) -> str:
        kinds = [_SQLITE.get(field.type, "TEXT") if isinstance(field.type, str) else "TEXT" for field in table.fields]
        columns = ", ".join(f'"{field.name}" {kind}' for field, kind in zip(table.fields, kinds, strict=True))
        marks = ", ".join("?" * len(kinds))
        values = (tuple(_sqlite(row.get(field.name)) for field in table.fields) for row in rows)
        with _refused(self._name, self._error), self._connection as transaction:
            transaction.execute(f'CREATE TABLE "{table.name}" ({columns})')
            transaction.executemany(f'INSERT INTO "{table.name}" VALUES ({marks})', values)
        return self._name

    def close(self) -> None:
        self._connection.close()


class DuckDb(Writer):
    """One database, with what tables and columns are as their comments."""

    def __init__(self, place: str) -> None:
        super().__init__(place)
        duckdb, self._arrow = require("export --format duckdb", "sql", "duckdb", "pyarrow")
        self._name = f"{DATABASE}.duckdb"
        self._errors = (duckdb.IOException, duckdb.FatalException, duckdb.TransactionException)
        with _refused(self._name, *self._errors):
            self._connection = duckdb.connect(self._file(self._name))

    def write(self, table: Table, rows: Iterable[Row]) -> str:
        run = self._connection.execute
        with _refused(self._name, *self._errors):
            create_table(self._arrow, self._connection, table, rows)
            run(f'COMMENT ON TABLE "{table.name}" IS {literal(table.summary)}')
            for field in table.fields:
                run(f'COMMENT ON COLUMN "{table.name}"."{field.name}" IS {literal(field.doc)}')
        return self._name

    def close(self) -> None:
        with _refused(self._name, *self._errors):
            self._connection.execute("CHECKPOINT")  # closing hides what cannot be written
        self._connection.close()


@contextmanager
def _refused(name: str, *errors: type[Exception]) -> Iterator[None]:
    """What a database could not write, as the user's error: a full disk, most likely."""
    try:
        yield
    except errors as error:
        reason = str(error).strip().splitlines()[0]
        raise CommandError(f"{name}: cannot be written: {reason}", hint="is the disk full?") from None


WRITERS: dict[str, type[Writer]] = {
    "parquet": Parquet, "jsonl": JsonLines, "csv": Csv, "sqlite": Sqlite, "duckdb": DuckDb,
}  # fmt: skip


# --- values ----------------------------------------------------------------------------------------------------------

_SQLITE = {"int16": "INTEGER", "int32": "INTEGER", "int64": "INTEGER", "boolean": "INTEGER", "float64": "REAL"}


def _sqlite(value: Any) -> Any:
    if value is None or isinstance(value, int | float):
        return value
    text = value if isinstance(value, str) else to_json(value)
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def counted(rows: Iterable[Row], count: list[int]) -> Iterator[Row]:
    """The rows, counted in ``count[0]`` as they pass."""
    for row in rows:
        count[0] += 1
        yield row
