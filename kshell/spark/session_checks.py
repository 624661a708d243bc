"""The checks of ``kshell-pipeline doctor``: small things that a Spark session must be able to do, tried one by one."""

from __future__ import annotations

import contextlib
import importlib
import os
import platform
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from kshell.engine.result import Row
from kshell.errors import KshellError
from kshell.spark.tables.delta import DeltaTable
from kshell.tables.arrow import batches
from kshell.tables.declaration import Field

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

WORKS = "works"
FAILS = "fails"
_ROWS = 1000
_LONGEST = 160
"""Characters of an exception's message that a row shows."""


class SessionChecks:
    """Runs checks, and collects a row for each: check, standing (works or fails), seconds, detail, hint."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def add(self, check: str, standing: str, seconds: float | None, detail: str, hint: str | None = None) -> None:
        """Add the row of a check."""
        seconds = None if seconds is None else round(seconds, 2)
        self.rows.append({"check": check, "standing": standing, "seconds": seconds, "detail": detail, "hint": hint})

    def run(self, check: str, trial: Callable[[], str]) -> None:
        """Run a check and add its row. ``trial`` returns the detail for the row, or raises."""
        began = time.monotonic()
        try:
            detail = trial()
        except Exception as error:  # any exception of Spark and its formats means that the check fails
            self.failed(check, time.monotonic() - began, error)
        else:
            self.add(check, WORKS, time.monotonic() - began, detail)

    def failed(self, check: str, seconds: float, error: Exception) -> None:
        """Add the row of a check that raised an error."""
        self.add(check, FAILS, seconds, error_summary(error), error.hint if isinstance(error, KshellError) else None)


def error_summary(error: Exception) -> str:
    """Return the most useful line of an exception's message: if it is from Java, the last cause."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    # py4j: the first line says that a call failed, the second names the exception.
    first = lines[1].removeprefix(": ") if len(lines) > 1 and lines[1].startswith(": ") else "".join(lines[:1])
    return (causes[-1] if causes else first or type(error).__name__)[:_LONGEST]


@contextlib.contextmanager
def session(
    checks: SessionChecks, check: str, start: Callable[[], AbstractContextManager[SparkSession]]
) -> Iterator[SparkSession | None]:
    """Start a session for the block, and add a row about the start; the value is ``None`` if it does not start."""
    with contextlib.ExitStack() as stack:
        began = time.monotonic()
        try:
            spark = stack.enter_context(start())
        except KshellError as error:
            checks.failed(check, time.monotonic() - began, error)
            yield None
        else:
            checks.add(check, WORKS, time.monotonic() - began, f"Spark {spark.version}")
            yield spark


def basics(checks: SessionChecks, spark: SparkSession, folder: str | None) -> None:
    """Check SQL and a Python worker; also writing a file if ``folder`` is a directory that the executors see."""
    checks.run("sql", lambda: _sql(spark))
    checks.run("python worker", lambda: _worker(spark))
    if folder is not None:
        checks.run("parquet", lambda: _path(spark, "parquet", os.path.join(folder, "parquet")))


def _sql(spark: SparkSession) -> str:
    row = spark.sql(f"SELECT count(*) AS n, sum(id) AS total FROM range({_ROWS})").collect()[0]
    return _check_sum(row.n, int(row.total))


def _worker(spark: SparkSession) -> str:
    """Run a function of this package in a worker: shows the worker's Python, and that it can import the package."""
    rows = spark.range(1).mapInArrow(_python, "python string").collect()
    return f"Python {rows[0].python}"


def _python(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    arrow = importlib.import_module("pyarrow")
    for batch in batches:
        yield arrow.RecordBatch.from_pydict({"python": [platform.python_version()] * batch.num_rows})


def _path(spark: SparkSession, name: str, path: str) -> str:
    spark.range(_ROWS).write.format(name).save(path)
    return _read_back(spark.read.format(name).load(path))


def _read_back(frame: DataFrame) -> str:
    row = frame.selectExpr("count(*) AS n", "sum(id) AS total").collect()[0]
    return _check_sum(row.n, int(row.total))


def _check_sum(count: int, total: int) -> str:
    if (count, total) != (_ROWS, _ROWS * (_ROWS - 1) // 2):
        raise ArithmeticError(f"{count} rows with the sum {total}")
    return f"{count} rows"


def delta(checks: SessionChecks, folder: str) -> None:
    """Check that ``deltalake`` works on this machine: commit a small Delta table and read it."""
    checks.run("delta", lambda: _delta(os.path.join(folder, "delta")))


def _delta(path: str) -> str:
    fields = (Field("id", "int64", "a number"),)
    table = DeltaTable(path, "doctor", "a trial", fields)
    arrow = importlib.import_module("pyarrow")
    table.add(table.writer.write(batches(arrow, fields, ({"id": number} for number in range(_ROWS)))))
    table.commit(1)
    table.open()
    ids = [row["id"] for part in table.writer.read(table.files.values()) for row in part.to_pylist()]
    return _check_sum(len(ids), sum(ids))
