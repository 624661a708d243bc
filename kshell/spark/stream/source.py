"""``spark.readStream.format("kraft")``: the records of every copy as its files grow, each record once.

A stream offset says for each directory where the last batch ended, so each trigger reads headers only from there on;
Spark keeps these offsets in its checkpoint, as JSON. New segments, directories and snapshots are found at each trigger.
A torn tail is left for a later trigger. Records that were deleted before they were read are a finding in the view
``quarantine``; the other views get the oldest snapshot that covers them instead (``isSnapshot``), unless the option
``snapshots`` is ``none``. If delivered records are truncated because they were not committed, a finding (``truncated``)
says from which offset on; the records that replace them have the same offsets and a higher epoch.

``maxBytesPerTrigger`` and ``availableNow`` need Spark 4.2. On 4.1 a limit counts from the second micro-batch on,
because that release does not pass the start offset to the source.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kshell.errors import UsageError
from kshell.spark.decoding.decode import View
from kshell.spark.files.pack import Slice
from kshell.spark.options import STARTS, UNLIMITED, Options
from kshell.spark.schemas import FILES
from kshell.spark.stream.plan import Bounds, bounds, latest, slices
from kshell.spark.stream.positions import Offset, StreamPositions, offset_of, places_of
from kshell.spark.variants import with_variants

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import InputPartition
    from pyspark.sql.streaming.datasource import ReadLimit

_spark: Any = importlib.import_module("pyspark.sql.datasource")
try:
    _limits: Any = importlib.import_module("pyspark.sql.streaming.datasource")
except ModuleNotFoundError:  # before 4.2
    _limits = None
_Mixed: Any = object if _limits is None else _limits.SupportsTriggerAvailableNow


class MicroBatchPlanner(_spark.DataSourceStreamReader, _Mixed):  # type: ignore[misc]
    """The calls that Spark makes on the driver: where the stream begins, and where the next micro-batch ends."""

    def __init__(self, options: Options) -> None:
        if options.view == FILES:
            raise UsageError("a stream has no view files", hint="records, quarantine, or a record type")
        for name in options.moving:
            raise UsageError(
                f"{name}: a stream takes no relative time: after a restart it would be another moment",
                hint="give a time (2026-01-31T12:00:00Z) or an offset",
            )
        self._options = options
        self._within: Bounds | None = None
        self._known: StreamPositions | None = None
        """Where the last micro-batch ended, for Spark 4.1, which does not pass it."""

    def initialOffset(self) -> Offset:  # noqa: N802  # Spark's name, as those below
        """Return where a new query begins. Raises SourceNotFoundError for a missing path that is no glob."""
        self._known = {} if self._options.starts == STARTS[0] else latest(self._options, {})
        return offset_of(self._known)

    def latestOffset(self, start: Offset | None = None, limit: ReadLimit | None = None) -> Offset:  # noqa: N802
        """Return where the next micro-batch ends. Spark 4.1 passes neither argument. Raises SourceError."""
        before, most = self._known, self._options.trigger_bytes
        if start is not None:
            before, most = places_of(start), _bytes(limit)
        elif before is None:  # 4.1 after a restart: the position is unknown, so the end is found from the beginning
            before, most = {}, UNLIMITED
        self._known = latest(self._options, before, most, self._within)
        return offset_of(self._known)

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        """Return the limit of the option ``maxBytesPerTrigger``."""
        if self._options.trigger_bytes == UNLIMITED:
            return _limits.ReadAllAvailable()
        return _limits.ReadMaxBytes(self._options.trigger_bytes)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Limit the query to what the directories contain now."""
        self._within = bounds(self._options)

    def _between(self, start: Offset, end: Offset) -> tuple[StreamPositions, StreamPositions]:
        """Return where a micro-batch begins and ends. After a restart, Spark 4.1 tells its position only here."""
        before, after = places_of(start), places_of(end)
        self._known = after if self._known is None else self._known
        return before, after

    def commit(self, end: Offset) -> None:
        """Do nothing: no state depends on committed offsets."""


def _bytes(limit: ReadLimit | None) -> int:
    return int(getattr(limit, "max_bytes", UNLIMITED))


class KraftStreamReader(MicroBatchPlanner):
    """Plans on the driver, reads on the executors."""

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """Return the slices that each task reads: of at least one task, which may have none. Raises SourceError."""
        parts = slices(self._options, *self._between(start, end))
        return [_spark.InputPartition(part) for part in parts or [()]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return Arrow record batches of the requested columns.

        Raises UnreadError for a file that is gone, so that no micro-batch succeeds with rows missing.
        """
        return read_view(self._options, partition.value)


def read_view(options: Options, pieces: tuple[Slice, ...]) -> Iterator[pa.RecordBatch]:
    """Read slices in a task, as Arrow record batches of the requested columns. Raises UnreadError."""
    fields = options.fields()
    view = View(options.view, fields, options.narrowing, show_secrets=options.show_secrets, is_whole=True)
    batches = view.batches(pieces)
    return with_variants(batches, fields) if options.variant else batches
