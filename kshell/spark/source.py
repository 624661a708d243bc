"""The data source ``kraft`` for batch reads: the classes that Spark calls.

The driver plans a read by batch headers alone (:mod:`kshell.spark.files.pack`); executors read, check CRCs and decode
(:mod:`kshell.spark.decoding.decode`). Spark has no column pruning for Python sources, so the option ``columns``, or a
schema given to the reader, selects columns. Conditions are pushed into the source only with the option ``pushFilters``,
which needs ``spark.sql.python.filterPushdown.enabled`` in the session: without it Spark refuses a source that supports
pushing. Conditions on type, offset and time reduce what is decoded; those on cluster, offset and a lower bound of time
also reduce what is planned and read. (Batch headers have the latest time of their records, but not the earliest.)
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from kshell.errors import KshellError, UsageError
from kshell.spark.files.pack import partitions
from kshell.spark.options import Narrowing, Options, chosen, parse
from kshell.spark.schemas import FILES, QUARANTINE, fields_of, spark_schema
from kshell.spark.stream.source import KraftStreamReader, read_view
from kshell.spark.variants import variant_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import Filter, InputPartition
    from pyspark.sql.types import StructType

# By name, so that type checking gives the same result with and without pyspark installed.
_spark: Any = importlib.import_module("pyspark.sql.datasource")


class KraftDataSource(_spark.DataSource):  # type: ignore[misc]
    """``spark.read.format("kraft")``. Raises UsageError for an unknown option or column."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "kraft"

    def schema(self) -> Any:
        """Return the requested columns of the view."""
        with _hinted():
            return _schema(parse(self.options))

    def reader(self, schema: StructType) -> KraftReader:
        """Return a batch reader of exactly the columns of ``schema``."""
        with _hinted():
            options = parse(self.options)
            reader: type[KraftReader] = PushingReader if options.push_filters else KraftReader
            return reader(_as_asked(options, schema))

    def streamReader(self, schema: StructType) -> KraftStreamReader:  # noqa: N802  # Spark's name
        """Return a stream reader of exactly the columns of ``schema``."""
        with _hinted():
            return KraftStreamReader(_as_asked(parse(self.options), schema))


@contextlib.contextmanager
def _hinted() -> Iterator[None]:
    """Add the hint of an error as a note to the exception, because Spark shows only the traceback."""
    try:
        yield
    except KshellError as error:
        if error.hint:
            error.add_note(f"hint: {error.hint}")
        raise


def _as_asked(options: Options, schema: StructType) -> Options:
    """Return the options with the columns of ``schema``, perhaps the user's. Raises UsageError for other types."""
    fields = chosen(fields_of(options.view), schema.fieldNames(), options.view)
    columns = tuple(field.name for field in fields)
    for column, ours in zip(schema.fields, _schema(options._replace(columns=columns)).fields, strict=True):
        if column.dataType != ours.dataType:
            raise UsageError(
                f"{column.name}: the view {options.view} has it as {ours.dataType.simpleString()},"
                f" not as {column.dataType.simpleString()}"
            )
    return options._replace(columns=columns)


def _schema(options: Options) -> Any:
    fields = options.fields()
    return variant_schema(fields) if options.variant else spark_schema(fields)


class KraftReader(_spark.DataSourceReader):  # type: ignore[misc]
    """The reader of a batch read: :meth:`partitions` plans on the driver, :meth:`read` runs on the executors."""

    def __init__(self, options: Options) -> None:
        self._options = options

    def partitions(self) -> list[InputPartition]:
        """Return the slices that each task reads: of at least one task, which may have none. Raises SourceError."""
        with _hinted():
            return [_spark.InputPartition(slices) for slices in partitions(self._options) or [()]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return Arrow record batches of the requested columns. Raises UnreadError."""
        return read_view(self._options, partition.value)


class PushingReader(KraftReader):
    """A reader that accepts conditions. Spark applies all of them again: here they only reduce what is read."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802  # Spark's name
        """Narrow what is read, and return every condition, so that Spark applies it as well."""
        for condition in filters:
            self._options = self._options._replace(narrowing=self._narrowed(condition))
        return filters

    def _narrowed(self, condition: Any) -> Narrowing:
        now, name = self._options.narrowing, type(condition).__name__
        column = ".".join(getattr(condition, "attribute", ()))
        values = tuple(condition.value) if name == "In" else (getattr(condition, "value", None),)
        if name in ("EqualTo", "In") and column == "clusterId":
            return now._replace(clusters=_both(now.clusters, values))
        if self._options.view in (FILES, QUARANTINE):
            return now  # a finding has no type and no offset
        if name in ("EqualTo", "In") and column == "type":
            return now._replace(types=_both(now.types, values))
        if column in _ENDS and isinstance(values[0], int):
            return _bounded(now, name, _ENDS[column], values[0])
        return now


def _both(before: frozenset[str] | None, values: Iterable[Any]) -> frozenset[str]:
    wanted = frozenset(value for value in values if value is not None)
    return wanted if before is None else before & wanted


_ENDS = {"offset": "offset", "timestampMs": "time_ms"}
"""Column of ``records`` -> the attribute of a :class:`~kshell.sources.points.Point` for it."""


def _bounded(now: Narrowing, name: str, end: str, value: int) -> Narrowing:
    """Narrow by a comparison. ``>`` is treated as ``>=``, which is harmless because Spark compares again."""
    since, until = now.since, now.until
    least, most = getattr(since, end), getattr(until, end)
    if name in ("EqualTo", "GreaterThan", "GreaterThanOrEqual"):
        since = since._replace(**{end: value if least is None else max(value, least)})
    if name in ("EqualTo", "LessThan", "LessThanOrEqual"):
        until = until._replace(**{end: value if most is None else min(value, most)})
    return now._replace(since=since, until=until)
