"""Write planned slices of logs into ``bronze/records``, in tasks; a second read gives findings, if there are any."""

from __future__ import annotations

import importlib
import pickle
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from kshell.spark.decoding.decode import View
from kshell.spark.files.pack import Slice
from kshell.spark.options import Narrowing
from kshell.spark.schemas import QUARANTINE, QUARANTINE_FIELDS, RECORD_FIELDS, RECORDS, spark_schema
from kshell.spark.steps.cluster_changes import RecordCounts, TimeRange
from kshell.spark.steps.executor_work import gathered, spread
from kshell.spark.steps.local_frames import frame_of_batches
from kshell.spark.tables.data_files import DataFile, DataFileWriter

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from kshell.spark.tables.warehouse import Warehouse

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
    pieces, work = packed(slices, parallelism), partial(write, warehouse.writer(RECORDS))
    written = list(map(work, pieces)) if _is_little(slices) else gathered(warehouse.spark, pieces, work)
    rows = warehouse.append_files(RECORDS, [file for task in written for file in task.files])
    counts: dict[str, RecordCounts] = {}
    for task in written:
        for name, found in task.counts.items():
            counts[name] = counts[name].plus(found) if name in counts else found
    return AppendedRecords(rows, sum(task.finding_count for task in written), counts)


def findings(spark: SparkSession, slices: Sequence[Slice], parallelism: int) -> DataFrame:
    """Read the slices' rows of the view ``quarantine``, without undecoded records: ``records`` has those, too."""
    pieces = packed(slices, parallelism)
    if _is_little(slices):
        frame = frame_of_batches(spark, QUARANTINE_FIELDS, (rows for piece in pieces for rows in quarantined(piece)))
    else:
        frame = spread(spark, pieces, quarantined, spark_schema(QUARANTINE_FIELDS))
    return frame.where("kind <> 'record'")


def _is_little(slices: Sequence[Slice]) -> bool:
    """Whether the slices are so small that the driver reads them itself."""
    return sum(piece.cost() for piece in slices) <= _HERE


# --- what tasks do, or the driver with little data: free of Spark -----------------------------------------------------


class WrittenFiles(NamedTuple):
    """The data files that a task wrote of its slices, and what it found in them."""

    files: list[DataFile]
    finding_count: int
    counts: dict[str, RecordCounts]
    """Cluster id -> its records."""


def write(writer: DataFileWriter, piece: bytes) -> WrittenFiles:
    """Read and decode the slices of one task, given pickled, and write them as files of ``records``. CommandError."""
    view = View(RECORDS, RECORD_FIELDS, Narrowing(), dictionaries=True)
    counts: dict[str, RecordCounts] = {}
    files = writer.write(_counting(view.batches(pickle.loads(piece)), counts))
    return WrittenFiles(files, view.finding_count, counts)


_COUNTED = ["clusterId", "type", "reason", "timestampMs"]


def _counting(batches: Iterator[pa.RecordBatch], counts: dict[str, RecordCounts]) -> Iterator[pa.RecordBatch]:
    """Pass on batches of ``records``, and add to ``counts`` what they have of each cluster."""
    arrow = importlib.import_module("pyarrow")
    for batch in batches:
        groups = arrow.table([batch.column(name) for name in _COUNTED], names=_COUNTED).group_by(_COUNTED[:2])
        for row in groups.aggregate([([], "count_all"), ("reason", "count"), ("timestampMs", "min_max")]).to_pylist():
            times = TimeRange(row["timestampMs_min_max"]["min"], row["timestampMs_min_max"]["max"])
            new = RecordCounts({row["type"]: row["count_all"]}, row["reason_count"], times)
            name = row["clusterId"]
            counts[name] = counts[name].plus(new) if name in counts else new
        yield batch


def quarantined(piece: bytes) -> Iterator[pa.RecordBatch]:
    """Read pickled slices as record batches of the view ``quarantine``."""
    return View(QUARANTINE, QUARANTINE_FIELDS, Narrowing()).batches(pickle.loads(piece))
