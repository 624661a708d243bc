"""What tasks do with slices of logs, on the executors or, for little data, on the driver. Free of Spark."""

from __future__ import annotations

import importlib
import pickle
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from kshell.spark.decoding.decode import View
from kshell.spark.options import Narrowing
from kshell.spark.schemas import QUARANTINE, QUARANTINE_FIELDS, RECORD_FIELDS, RECORDS
from kshell.spark.steps.cluster_changes import RecordCounts, TimeRange
from kshell.spark.tables.data_files import DataFile, DataFileWriter

if TYPE_CHECKING:
    import pyarrow as pa


class WrittenFiles(NamedTuple):
    """The data files that a task wrote of its slices, and what it found in them."""

    files: list[DataFile]
    finding_count: int
    counts: dict[str, RecordCounts]
    """Cluster id -> its records."""


class Writing:
    """Writes pickled slices as data files of the table ``records``."""

    def __init__(self, writer: DataFileWriter) -> None:
        self._writer = writer

    def __call__(self, piece: bytes) -> WrittenFiles:
        """Read, decode and write the slices of one task. Raises CommandError."""
        view = View(RECORDS, RECORD_FIELDS, Narrowing(), dictionaries=True)
        counts: dict[str, RecordCounts] = {}
        files = self._writer.write(_counting(view.batches(pickle.loads(piece)), counts))
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
