"""``spark.readStream.format("kraft")``: the records of every copy as its files grow, each once.

An offset says of each directory where its last batch ended, so a trigger reads headers from there on and nothing
twice; checkpoints hold them as JSON. New segments, directories and snapshots are found at each trigger. A torn tail
waits. What was deleted before it was read is a finding in the view ``quarantine``, and in the other views the oldest
snapshot that covers it comes in its place (``isSnapshot``), unless the option ``snapshots`` says ``none``. When a
leader takes back what it had not committed, a finding (``truncated``) says from which offset on; records that replace
them have the same offsets and a higher epoch.

``maxBytesPerTrigger`` and ``availableNow`` need Spark 4.2. On 4.1 a limit counts from the second micro-batch on: that
release does not say where a source begins.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

from kshell.errors import UsageError
from kshell.spark.decoding.decode import View
from kshell.spark.files.pack import Slice
from kshell.spark.options import STARTS, UNLIMITED, Options
from kshell.spark.schemas import FILES
from kshell.spark.stream.plan import Bounds, bounds, latest, slices
from kshell.spark.stream.positions import Places, offset_of, places_of
from kshell.spark.variants import with_variants

_spark: Any = importlib.import_module("pyspark.sql.datasource")
try:
    _limits: Any = importlib.import_module("pyspark.sql.streaming.datasource")
except ModuleNotFoundError:  # before 4.2
    _limits = None
_Mixed: Any = object if _limits is None else _limits.SupportsTriggerAvailableNow

Offset = dict[str, Any]


class KraftStreamPartition(_spark.InputPartition):  # type: ignore[misc]
    """The slices that one task reads."""

    def __init__(self, slices: tuple[Slice, ...]) -> None:
        self.slices = slices


class Offsets(_spark.DataSourceStreamReader, _Mixed):  # type: ignore[misc]
    """What Spark asks a stream on the driver: where it begins, and where the next micro-batch ends."""

    def __init__(self, options: Options) -> None:
        if options.view == FILES:
            raise UsageError("a stream has no view files", hint="records, quarantine, or a record type")
        for name in options.moving:
            raise UsageError(
                f"{name}: a stream has no point that is a while ago: after a restart it is another one",
                hint="say it as a time (2026-01-31T12:00:00Z) or an offset",
            )
        self._options = options
        self._within: Bounds | None = None
        self._known: Places | None = None
        """Where the last micro-batch ended, for a Spark that does not say it."""

    def initialOffset(self) -> Offset:  # noqa: N802  # Spark's name, as those below
        """Where a new query begins. Raises SourceNotFoundError for a path that is no glob and not there."""
        self._known = {} if self._options.starts == STARTS[0] else latest(self._options, {})
        return offset_of(self._known)

    def latestOffset(self, start: Offset | None = None, limit: Any = None) -> Offset:  # noqa: N802
        """Where the next micro-batch ends. Spark 4.1 gives neither argument. Raises SourceError."""
        before, most = self._known, self._options.trigger_bytes
        if start is not None:
            before, most = places_of(start), _bytes(limit)
        elif before is None:  # 4.1, after a restart: only from the beginning on is the end found for certain
            before, most = {}, UNLIMITED
        self._known = latest(self._options, before, most, self._within)
        return offset_of(self._known)

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        """The option ``maxBytesPerTrigger``."""
        if self._options.trigger_bytes == UNLIMITED:
            return _limits.ReadAllAvailable()
        return _limits.ReadMaxBytes(self._options.trigger_bytes)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """From here on only what is there now counts."""
        self._within = bounds(self._options)

    def _between(self, start: Offset, end: Offset) -> tuple[Places, Places]:
        """The places of a micro-batch. After a restart its end is the first thing that Spark 4.1 says."""
        before, after = places_of(start), places_of(end)
        self._known = after if self._known is None else self._known
        return before, after

    def commit(self, end: Offset) -> None:
        """Nothing is held that could be let go."""


def _bytes(limit: Any) -> int:
    return int(getattr(limit, "max_bytes", UNLIMITED))


class KraftStreamReader(Offsets):
    """Plans on the driver, reads on the executors."""

    def partitions(self, start: Offset, end: Offset) -> list[Any]:
        """At least one, which may have nothing to read. Raises SourceError."""
        parts = slices(self._options, *self._between(start, end))
        return [KraftStreamPartition(part) for part in parts] or [KraftStreamPartition(())]

    def read(self, partition: Any) -> Iterator[Any]:
        """Arrow record batches of the columns that were asked for. Raises UnreadError for a file that is gone: a
        micro-batch does not end with rows missing.
        """
        return read_view(self._options, partition.slices)


def read_view(options: Options, pieces: tuple[Slice, ...]) -> Iterator[Any]:
    """Arrow record batches of the columns that were asked for, in a task. Raises UnreadError."""
    fields = options.fields()
    view = View(options.view, fields, options.narrowing, show_secrets=options.show_secrets, is_whole=True)
    batches = view.batches(pieces)
    return with_variants(batches, fields) if options.variant else batches
