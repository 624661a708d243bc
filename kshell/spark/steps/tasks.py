"""What tasks do with slices of logs, on the executors or, for little data, on the driver. Free of Spark."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from kshell.spark.decoding.decode import View
from kshell.spark.options import Narrowing
from kshell.spark.schemas import QUARANTINE, QUARANTINE_FIELDS, RECORD_FIELDS, RECORDS
from kshell.spark.tables.data_files import DataFile, DataFileWriter

if TYPE_CHECKING:
    import pyarrow as pa


class WrittenFiles(NamedTuple):
    """The data files that a task wrote of its slices, and the number of findings in these slices."""

    files: list[DataFile]
    finding_count: int


class Writing:
    """Writes pickled slices as data files of the table ``records``."""

    def __init__(self, writer: DataFileWriter) -> None:
        self._writer = writer

    def __call__(self, piece: bytes) -> WrittenFiles:
        """Read, decode and write the slices of one task. Raises CommandError."""
        view = View(RECORDS, RECORD_FIELDS, Narrowing(), dictionaries=True)
        files = self._writer.write(view.batches(pickle.loads(piece)))
        return WrittenFiles(files, view.finding_count)


def quarantined(piece: bytes) -> Iterator[pa.RecordBatch]:
    """Read pickled slices as record batches of the view ``quarantine``."""
    return View(QUARANTINE, QUARANTINE_FIELDS, Narrowing()).batches(pickle.loads(piece))
