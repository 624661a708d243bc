"""The source ``kraft-growth``: how far each directory of a stream has grown, instead of its records.

Every micro-batch has one row per directory, also for directories that did not grow. ``kshell-pipeline stream`` uses it
(:mod:`kshell.spark.stream.tables`): Structured Streaming only gives trigger, checkpoint and limit, while the records
are read in a step of the pipeline (:mod:`kshell.spark.steps.step`).
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from kshell.errors import SourceNotFoundError
from kshell.sources.directory.files import scan
from kshell.spark.files.scan import LogCopy
from kshell.spark.options import Options, parse
from kshell.spark.schemas import spark_schema
from kshell.spark.stream.directory_walk import find_readable_end
from kshell.spark.stream.plan import listed_copies
from kshell.spark.stream.positions import Offset, StreamPosition, StreamPositions, bytes_after
from kshell.spark.stream.source import MicroBatchPlanner
from kshell.tables import arrow as arrow_tables
from kshell.tables.declaration import Field

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import InputPartition
    from pyspark.sql.types import StructType

_spark: Any = importlib.import_module("pyspark.sql.datasource")
FORMAT = "kraft-growth"
FIELDS = (
    Field("path", "string", "the real path of a directory, as JSON: names need not be UTF-8, and columns are"),
    Field("offset", "int64", "the next offset to read in it"),
    Field("bytes", "int64", "bytes of its log in this micro-batch"),
    Field("behind", "int64", "bytes of its log that are left for later micro-batches; a torn tail alone is 0"),
    Field("moved", "boolean", "whether this micro-batch moves its position"),
)
GrowthRow = tuple[str, int, int, int, bool]
"""A row: the values of :data:`FIELDS`, in their order; ``stream/tables.py`` unpacks it by position."""


class GrowthSource(_spark.DataSource):  # type: ignore[misc]
    """``spark.readStream.format("kraft-growth")``, with the options of ``kraft``."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return FORMAT

    def schema(self) -> Any:
        """The columns of a row."""
        return spark_schema(FIELDS)

    def streamReader(self, schema: StructType) -> GrowthReader:  # noqa: N802  # Spark's name
        """Return a reader of all columns."""
        return GrowthReader(parse(self.options)._replace(skips_unlistable=True))


class GrowthReader(MicroBatchPlanner):
    """Computes all rows on the driver; the executor only returns them."""

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """Return one partition, with all rows of the micro-batch."""
        return [_spark.InputPartition(tuple(growth_rows(self._options, *self._between(start, end))))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the rows of a partition."""
        pyarrow = importlib.import_module("pyarrow")
        names = [field.name for field in FIELDS]
        rows = (dict(zip(names, (json.dumps(path), *more), strict=True)) for path, *more in partition.value)
        return arrow_tables.batches(pyarrow, FIELDS, rows)


def growth_rows(options: Options, before: StreamPositions, after: StreamPositions) -> Iterator[GrowthRow]:
    """Compute the growth of each directory, in the order of their paths."""
    copies = listed_copies(options)
    for path in sorted(after):
        was, place = before.get(path, StreamPosition()), after[path]
        copy = copies.get(path)
        remaining = bytes_after(copy.listing, place) if copy else 0
        taken = max(bytes_after(copy.listing, was) - remaining, 0) if copy and place != was else 0
        behind = remaining if copy and remaining and _has_more(copy, place) else 0
        yield path, _offset(place), taken, behind, place != was


def _has_more(copy: LogCopy, place: StreamPosition) -> bool:
    """Whether a whole batch follows a position, not only a torn tail, which its server is still writing."""
    try:
        return find_readable_end(partial(scan, copy.path), place, "none", 1).used > 0
    except SourceNotFoundError:
        return False  # deleted since it was listed


def _offset(place: StreamPosition) -> int:
    """Return the next offset to read at a position; in a directory without a log, the end offset of its snapshot."""
    digits = place.snapshot.partition("-")[0]
    return max(place.offset, int(digits) if digits.isascii() and digits.isdigit() else 0)
