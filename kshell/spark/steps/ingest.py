"""Write planned slices of logs into ``bronze/records``, in tasks; a second read gives findings, if there are any."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kshell.spark.files.pack import Slice
from kshell.spark.schemas import QUARANTINE_FIELDS, RECORDS, spark_schema
from kshell.spark.steps.cluster_changes import RecordCounts
from kshell.spark.steps.executor_work import gathered, spread
from kshell.spark.steps.local_frames import frame_of_batches
from kshell.spark.steps.tasks import Writing, quarantined
from kshell.tables.declaration import Field

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from kshell.spark.tables.warehouse import Warehouse

    Read = Callable[[bytes], Iterator[pa.RecordBatch]]

_TASK_BYTES = 64 << 20
"""About the most bytes of files per task: seconds of work, and little to repeat if the task fails."""
_HERE = 4 << 20
"""Bytes up to which the driver reads the slices itself: a tenth of a second, about what starting tasks would cost."""
_LEAST = 4 << 20
"""Bytes below which a task of its own does not pay: starting one costs as much as reading one or two megabytes."""
_PER_RECORD = 1 << 5
"""The cost of making a row of a record, in bytes to read, in addition to the record's own bytes (measured: 38)."""


def packed(slices: Sequence[Slice], parallelism: int) -> list[bytes]:
    """Spread slices, in their order, evenly over tasks; return the slices of each task, pickled.

    There is one task per core (``parallelism``), a multiple of that if there is much to read, fewer if there is little.
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
    """Merge neighbouring slices of one file that have no findings, so that a task opens each file once."""
    merged: list[Slice] = []
    for piece in slices:
        last = merged[-1] if merged else piece
        if merged and not piece.file.findings and last._replace(file=last.file._replace(runs=piece.file.runs)) == piece:
            merged[-1] = last._replace(file=last.file._replace(runs=last.file.runs + piece.file.runs))
        else:
            merged.append(piece)
    return tuple(merged)


class AppendedRecords(NamedTuple):
    """How many rows were written, and what was found while the slices were read."""

    rows: int
    finding_count: int
    counts: dict[str, RecordCounts]
    """Cluster id -> its records."""


def append(warehouse: Warehouse, slices: Sequence[Slice], parallelism: int) -> AppendedRecords:
    """Append the records of slices to the table ``records``, in a step that was begun. Raises CommandError.

    Tasks write the rows as they decode them; they do not pass through Spark.
    """
    pieces, work = packed(slices, parallelism), Writing(warehouse.writer(RECORDS))
    written = list(map(work, pieces)) if _is_little(slices) else gathered(warehouse.spark, pieces, work)
    rows = warehouse.append_files(RECORDS, [file for task in written for file in task.files])
    counts: dict[str, RecordCounts] = {}
    for task in written:
        for name, found in task.counts.items():
            counts[name] = counts[name].plus(found) if name in counts else found
    return AppendedRecords(rows, sum(task.finding_count for task in written), counts)


def findings(spark: SparkSession, slices: Sequence[Slice], parallelism: int) -> DataFrame:
    """Read the slices' rows of the view ``quarantine``, without undecoded records: ``records`` has those, too."""
    return _read(spark, slices, parallelism, quarantined, QUARANTINE_FIELDS).where("kind <> 'record'")


def _read(
    spark: SparkSession, slices: Sequence[Slice], parallelism: int, work: Read, fields: Sequence[Field]
) -> DataFrame:
    pieces = packed(slices, parallelism)
    if _is_little(slices):
        return frame_of_batches(spark, fields, (batch for piece in pieces for batch in work(piece)))
    return spread(spark, pieces, work, spark_schema(fields))


def _is_little(slices: Sequence[Slice]) -> bool:
    """Whether the slices are so small that the driver reads them itself."""
    return sum(piece.cost() for piece in slices) <= _HERE
