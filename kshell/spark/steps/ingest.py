"""Slices of logs into rows of ``bronze/records``: planned before, read, decoded and written on the executors."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql import Observation
from pyspark.sql import functions as fn

from kshell.commands.base.tables import Field
from kshell.spark.files.pack import Slice
from kshell.spark.schemas import QUARANTINE_FIELDS, RECORD_FIELDS, RECORDS, spark_schema
from kshell.spark.steps.few_rows import frame_of_batches
from kshell.spark.steps.spread import gathered, spread
from kshell.spark.steps.tasks import Writing, decoded, quarantined

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kshell.spark.warehouse import Warehouse
    from kshell.spark.warehouse.parts import Part

_AS_SPARK = "org.apache.spark.sql.parquet.row.metadata"
"""Where a file says what its columns are to Spark: with it they keep their comments."""
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
    made: list[Slice] = []
    for piece in slices:
        last = made[-1] if made else piece
        if made and not piece.file.findings and last._replace(file=last.file._replace(runs=piece.file.runs)) == piece:
            made[-1] = last._replace(file=last.file._replace(runs=last.file.runs + piece.file.runs))
        else:
            made.append(piece)
    return tuple(made)


class Taken(NamedTuple):
    """What became of slices: rows that were written, and how many things were found to be wrong meanwhile."""

    rows: int
    found: int


def append(warehouse: Warehouse, slices: Sequence[Slice], parallelism: int, clusters: int) -> Taken:
    """The rows of the view ``records`` into the table, in a step that was begun; about so many clusters have some.

    Tasks write them as they decode them, where the warehouse's format and place allow it. Raises CommandError.
    """
    if warehouse.tables.takes_files:
        return _written(warehouse, slices, parallelism)
    seen, missing = Observation(), fn.col("type").isNull()
    frame = _read(warehouse.spark, slices, parallelism, decoded, RECORD_FIELDS)
    watched = frame.observe(seen, fn.count_if(missing).alias("found"))
    return Taken(warehouse.append(RECORDS, watched.where(~missing), clusters), seen.get["found"])


def _written(warehouse: Warehouse, slices: Sequence[Slice], parallelism: int) -> Taken:
    pieces, found = packed(slices, parallelism), 0

    def write(folder: str) -> Iterator[Part]:
        nonlocal found
        work = Writing(folder, {_AS_SPARK: spark_schema(RECORD_FIELDS).json()})
        every = map(work, pieces) if _is_little(slices) else gathered(warehouse.spark, pieces, work)
        for made in every:
            found += made.found
            yield made.part

    return Taken(warehouse.append_files(RECORDS, write), found)


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
