"""What a task does with the slices that it gets, on the executors, or on the driver if they are few. Free of Spark."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any, NamedTuple

from kshell.spark.decoding.decode import View
from kshell.spark.options import Narrowing
from kshell.spark.schemas import QUARANTINE, QUARANTINE_FIELDS, RECORD_FIELDS, RECORDS
from kshell.spark.tables.data_files import DataFile, DataFileWriter


class WrittenFiles(NamedTuple):
    """The files that were written of the slices, and how many things were found to be wrong in them."""

    files: list[DataFile]
    finding_count: int


class Writing:
    """Slices, pickled, as files of the table ``records``."""

    def __init__(self, writer: DataFileWriter) -> None:
        self._writer = writer

    def __call__(self, piece: bytes) -> WrittenFiles:
        """Reads and decodes them. Raises CommandError."""
        view = View(RECORDS, RECORD_FIELDS, Narrowing(), dictionaries=True)
        files = self._writer.write(view.batches(pickle.loads(piece)))
        return WrittenFiles(files, view.finding_count)


def quarantined(piece: bytes) -> Iterator[Any]:
    """Runs on the executors, or on the driver."""
    return View(QUARANTINE, QUARANTINE_FIELDS, Narrowing()).batches(pickle.loads(piece))
