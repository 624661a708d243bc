"""Work for executors: one piece a task, rows as Arrow record batches. Classic sessions and Connect alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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
    return reduce(lambda one, other: one.unionAll(other), frames)


class Work:
    """What a task does with the numbers that it gets: the pieces of those numbers."""

    def __init__(self, pieces: Sequence[bytes], work: Callable[[bytes], Iterable[Any]]) -> None:
        self._pieces = tuple(pieces)
        self._work = work

    def __call__(self, numbers: Iterator[Any]) -> Iterator[Any]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from self._work(self._pieces[number])
