"""Writes tables into files, one class per format. A writer is given one table after another, and returns file names.

Numbers, text and null are exact in every format, except that CSV escapes what a spreadsheet or terminal would
interpret. Lists and objects are lists, structs and maps in Parquet and DuckDB, JSON values in JSON, and JSON text in
CSV and SQLite.
"""

from __future__ import annotations

import importlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from kshell.engine.result import Row, Timestamp
from kshell.errors import CommandError
from kshell.extras import require
from kshell.json_text import to_json
from kshell.separated_values import csv_line
from kshell.tables.arrow import batches, create_table, literal, schema
from kshell.tables.declaration import ColumnarRows, Field, Table

DATABASE = "kraft"
"""The name, without its ending, of the single file of a database format."""


class Writer(ABC):
    """Writes tables into the directory ``place``. A context manager: at its end, open files are finished."""

    def __init__(self, place: str) -> None:
        self.place = place

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def write(self, table: Table, rows: Iterable[Row]) -> str:
        """Write one table, and return the name of its file."""

    def close(self) -> None:  # noqa: B027  # most formats keep no file open
        """Finish a file that has several tables."""

    def _file(self, name: str) -> str:
        return os.path.join(self.place, name)


class JsonLines(Writer):
    """One file per table, one JSON object per line with every field."""

    def write(self, table: Table, rows: Iterable[Row]) -> str:
        name = f"{table.name}.jsonl"
        names = [field.name for field in table.fields]
        with open(self._file(name), "w", encoding="utf-8", newline="") as stream:
            stream.writelines(to_json({column: row.get(column) for column in names}) + "\n" for row in rows)
        return name


class Csv(Writer):
    """One file per table: a header and one line per row, as ``-o csv`` prints them."""

    def write(self, table: Table, rows: Iterable[Row]) -> str:
        name = f"{table.name}.csv"
        names = [field.name for field in table.fields]
        with open(self._file(name), "w", encoding="utf-8", newline="") as stream:
            stream.write(csv_line(names))
            stream.writelines(csv_line([row.get(column) for column in names]) for row in rows)
        return name


class Parquet(Writer):
    """One file per table, compressed with zstd."""

    def __init__(self, place: str) -> None:
        super().__init__(place)
        _, self._arrow, self._parquet = require("export --format parquet", "sql", "numpy", "pyarrow", "pyarrow.parquet")

    def write(self, table: Table, rows: Iterable[Row]) -> str:
        name = f"{table.name}.parquet"
        arrow_schema = schema(self._arrow, table.fields)
        # Dictionaries are for texts that recur; numbers, times and JSON hardly do.
        texts = [
            field.name for field in table.fields if field.type == "string" and not isinstance(field.type, Timestamp)
        ]
        with self._parquet.ParquetWriter(
            self._file(name), arrow_schema, compression="zstd", use_dictionary=texts
        ) as writer:
            for batch in batches(self._arrow, table.fields, rows):
                writer.write_batch(batch)
        return name


class Sqlite(Writer):
    """One database file. Integers and booleans are INTEGER, floats REAL, everything else TEXT."""

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
    """One database file, with the descriptions of tables and columns as comments."""

    def __init__(self, place: str) -> None:
        super().__init__(place)
        duckdb, _, self._arrow = require("export --format duckdb", "sql", "duckdb", "numpy", "pyarrow")
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
            self._connection.execute("CHECKPOINT")  # raises if the disk is full; close() would not
        self._connection.close()


@contextmanager
def _refused(name: str, *errors: type[Exception]) -> Iterator[None]:
    """Turn an error of a database that cannot write into a CommandError; most likely the disk is full."""
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


def _sqlite(value: object) -> Any:
    if value is None or isinstance(value, int | float):
        return value
    text = value if isinstance(value, str) else to_json(value)
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


class Counted(ColumnarRows):
    """Rows whose number is known, as :attr:`count`, after they have passed."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = rows
        self.count = 0

    def __iter__(self) -> Iterator[Row]:
        for row in self._rows:
            self.count += 1
            yield row

    def record_batches(self, fields: Sequence[Field]) -> Iterator[Any]:
        """Yield the rows as record batches, in the fastest way that they can be made."""
        for batch in batches(importlib.import_module("pyarrow"), fields, self._rows):
            self.count += batch.num_rows
            yield batch
