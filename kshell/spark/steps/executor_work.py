"""Run a function on the executors, one input ("piece", pickled) per task, in classic sessions and through Connect."""

from __future__ import annotations

import importlib
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial, reduce
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from kshell.spark.failures import of_task

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

T = TypeVar("T")
_VALUE = "value"
PICKLED = f"{_VALUE} binary"
"""The schema of rows that have one pickled value each."""
_TOGETHER = 2000
"""Pieces per DataFrame: their bytes are sent along with the function to each task, some hundred kilobytes."""


def spread(
    spark: SparkSession,
    pieces: Sequence[bytes],
    work: Callable[[bytes], Iterable[pa.RecordBatch]],
    schema: StructType | str,
) -> DataFrame:
    """Return the rows that ``work`` makes of each piece, in the order of the pieces.

    ``work`` must be a function at the top of a module, or a ``partial`` of one, because it is pickled by name. It
    returns ``pyarrow.RecordBatch`` objects of exactly ``schema`` (a StructType, or a schema as Spark SQL writes it).
    """
    frames = [
        spark.range(0, len(part), 1, max(len(part), 1)).mapInArrow(partial(_task, part, work), schema)
        for part in (pieces[at : at + _TOGETHER] for at in range(0, max(len(pieces), 1), _TOGETHER))
    ]
    return reduce(lambda merged, frame: merged.unionAll(frame), frames)


def gathered(spark: SparkSession, pieces: Sequence[bytes], work: Callable[[bytes], T]) -> list[T]:
    """Return the value that ``work`` makes of each piece, in the order of the pieces; values must be picklable.

    Raises CommandError if tasks fail for a reason that :func:`~kshell.spark.failures.of_task` knows.
    """
    return collected(spread(spark, pieces, partial(_pickling, work), PICKLED))


def collected(frame: DataFrame) -> list[Any]:
    """Return the values of a frame of :data:`PICKLED` rows. Raises CommandError as :func:`gathered` does."""
    try:
        rows = frame.collect()
    except Exception as error:
        if (cause := of_task(error)) is not None:
            raise cause from error
        raise
    return [pickle.loads(row[_VALUE]) for row in rows]


def _pickling(work: Callable[[bytes], object], piece: bytes) -> Iterator[pa.RecordBatch]:
    yield pickled(work(piece))


def pickled(value: object) -> pa.RecordBatch:
    """Return a value as a record batch with one :data:`PICKLED` row."""
    arrow: ModuleType = importlib.import_module("pyarrow")
    return arrow.record_batch([arrow.array([pickle.dumps(value)], type=arrow.binary())], names=[_VALUE])


def _task(
    pieces: Sequence[bytes], work: Callable[[bytes], Iterable[pa.RecordBatch]], numbers: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Call ``work``, in a task, with each of the pieces whose indexes the task gets as rows."""
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            yield from work(pieces[number])
