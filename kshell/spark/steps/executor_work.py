"""Work for executors, one piece a task: rows as Arrow record batches, or values. Classic sessions and Connect alike."""

from __future__ import annotations

import importlib
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeVar

from kshell.spark.failures import of_task

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")
_VALUE = "value"
PICKLED = f"{_VALUE} binary"
"""The schema of rows that hold a value, pickled."""
_TOGETHER = 2000
"""Pieces whose bytes travel together with each task's function: some hundred kilobytes."""


def spread(
    spark: SparkSession, pieces: Sequence[bytes], work: Callable[[bytes], Iterable[Any]], schema: Any
) -> DataFrame:
    """The rows that ``work`` makes of each piece, in the order of the pieces. ``work``: of a module, or of a
    class of one, so that it travels by name; it gives ``pyarrow.RecordBatch`` es of exactly ``schema`` (a StructType,
    or as SQL spells it).
    """
    frames = [
        spark.range(0, len(part), 1, max(len(part), 1)).mapInArrow(Work(part, work), schema)
        for part in (pieces[at : at + _TOGETHER] for at in range(0, len(pieces), _TOGETHER))
    ] or [spark.range(0, 0, 1, 1).mapInArrow(Work((), work), schema)]
    return reduce(lambda merged, frame: merged.unionAll(frame), frames)


def gathered(spark: SparkSession, pieces: Sequence[bytes], work: Callable[[bytes], T]) -> list[T]:
    """What ``work`` makes of each piece, in the order of the pieces: any values, pickled on their way here. Raises
    CommandError for what is known to keep tasks from their work.
    """
    return collected(spread(spark, pieces, Pickled(work), PICKLED))


def collected(frame: DataFrame) -> list[Any]:
    """The values of a frame of :data:`PICKLED` rows. Raises CommandError as :func:`gathered` does."""
    try:
        rows = frame.collect()
    except Exception as error:
        if (cause := of_task(error)) is not None:
            raise cause from error
        raise
    return [pickle.loads(row[_VALUE]) for row in rows]


class Pickled:
    """Work that makes one value of a piece, as work that makes rows: one row, which holds it."""

    def __init__(self, work: Callable[[bytes], Any]) -> None:
        self._work = work

    def __call__(self, piece: bytes) -> Iterator[Any]:
        yield pickled(self._work(piece))


def pickled(value: Any) -> Any:
    """A value as the record batch of one :data:`PICKLED` row."""
    arrow: Any = importlib.import_module("pyarrow")
    return arrow.record_batch([arrow.array([pickle.dumps(value)], type=arrow.binary())], names=[_VALUE])


class Work:
    """What a task does with the numbers that it gets: the pieces of those numbers."""

    def __init__(self, pieces: Sequence[bytes], work: Callable[[bytes], Iterable[Any]]) -> None:
        self._pieces = tuple(pieces)
        self._work = work

    def __call__(self, numbers: Iterator[Any]) -> Iterator[Any]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from self._work(self._pieces[number])
