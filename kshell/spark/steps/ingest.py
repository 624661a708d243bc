"""Slices of logs into rows of ``bronze/records``: planned before, read, decoded and written on the executors."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kshell.spark.files.pack import Slice
from kshell.spark.schemas import QUARANTINE_FIELDS, RECORDS, spark_schema
from kshell.spark.steps.executor_work import gathered, spread
from kshell.spark.steps.local_frames import frame_of_batches
from kshell.spark.steps.tasks import Writing, quarantined
from kshell.tables.declaration import Field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kshell.spark.tables.warehouse import Warehouse

Read = Callable[[bytes], Iterator[Any]]

_TASK_BYTES = 64 << 20
"""At most about so many bytes of files a task: seconds of work, and little to do again where one fails."""
_HERE = 4 << 20
"""Bytes up to which the driver reads, as it has read their headers: a tenth of a second, which is what it costs to have
workers do anything."""
_LEAST = 4 << 20
"""Bytes below which a task of its own does not pay: to start one costs as much as to read a megabyte, or two."""
_PER_RECORD = 1 << 5
"""What makes a row of a record costs about as much as so many bytes of it, besides its own (measured: 38)."""


def packed(slices: Sequence[Slice], parallelism: int) -> list[bytes]:
    """The slices, in their order, spread evenly over tasks, pickled: one for each of ``parallelism`` cores, or several
    times as many where there is much to read; fewer where there is little.
    """
    size = sum(piece.cost() for piece in slices)
    waves = -(-size // (parallelism * _TASK_BYTES))
    count = min(parallelism * waves, max(size // _LEAST, 1))
    tasks: list[list[Slice]] = [[] for _ in range(count)]
    works = [piece.cost() + piece.records() * _PER_RECORD for piece in slices]
    before, total = 0, sum(works)
    for piece, work in zip(slices, works, strict=True):
        tasks[(2 * before + work) * count // (2 * total)].append(piece)
        before += work
    return [pickle.dumps(joined(task)) for task in tasks if task]


def joined(slices: Sequence[Slice]) -> tuple[Slice, ...]:
    """The same with neighbours of one file, of which nothing was found, as one: each file is opened once."""
    merged: list[Slice] = []
    for piece in slices:
        last = merged[-1] if merged else piece
        if merged and not piece.file.findings and last._replace(file=last.file._replace(runs=piece.file.runs)) == piece:
            merged[-1] = last._replace(file=last.file._replace(runs=last.file.runs + piece.file.runs))
        else:
            merged.append(piece)
    return tuple(merged)


class AppendedRecords(NamedTuple):
    """What became of slices: rows that were written, and how many things were found to be wrong meanwhile."""

    rows: int
    finding_count: int


def append(warehouse: Warehouse, slices: Sequence[Slice], parallelism: int) -> AppendedRecords:
    """The rows of the view ``records`` into the table, in a step that was begun. Raises CommandError.

    Tasks write them as they decode them.
    """
    pieces, work = packed(slices, parallelism), Writing(warehouse.writer(RECORDS))
    written = list(map(work, pieces)) if _is_little(slices) else gathered(warehouse.spark, pieces, work)
    rows = warehouse.append_files(RECORDS, [file for task in written for file in task.files])
    return AppendedRecords(rows, sum(task.finding_count for task in written))


def findings(spark: SparkSession, slices: Sequence[Slice], parallelism: int) -> DataFrame:
    """The rows of the view ``quarantine`` but for records that were not decoded, which ``records`` has as well."""
    return _read(spark, slices, parallelism, quarantined, QUARANTINE_FIELDS).where("kind <> 'record'")


def _read(
    spark: SparkSession, slices: Sequence[Slice], parallelism: int, work: Read, fields: Sequence[Field]
) -> DataFrame:
    pieces = packed(slices, parallelism)
    if _is_little(slices):
        return frame_of_batches(spark, fields, (batch for piece in pieces for batch in work(piece)))
    return spread(spark, pieces, work, spark_schema(fields))


def _is_little(slices: Sequence[Slice]) -> bool:
    """Whether the driver reads them itself."""
    return sum(piece.cost() for piece in slices) <= _HERE
