"""Make a DataFrame of rows that are in the driver's memory, or of other DataFrames."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from functools import reduce
from types import ModuleType
from typing import TYPE_CHECKING

from kshell.engine.result import Row
from kshell.spark.schemas import spark_schema
from kshell.tables.arrow import batches, schema
from kshell.tables.declaration import Field

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


def frame_of(spark: SparkSession, fields: Sequence[Field], rows: Iterable[Row]) -> DataFrame:
    """Make a DataFrame of rows with the given columns; meant for few rows, as all are sent to Spark at once."""
    arrow: ModuleType = importlib.import_module("pyarrow")
    return frame_of_batches(spark, fields, batches(arrow, fields, rows))


def frame_of_batches(
    spark: SparkSession, fields: Sequence[Field], record_batches: Iterable[pa.RecordBatch]
) -> DataFrame:
    """Make a DataFrame of Arrow record batches, in their order; unlike lists of tuples, they need no Python worker."""
    arrow: ModuleType = importlib.import_module("pyarrow")
    columns = schema(arrow, fields)
    table = arrow.Table.from_batches(record_batches, schema=columns)
    if not table.num_rows:
        table = columns.empty_table()  # columns without a chunk are an error in PySpark
    frame: DataFrame = spark.createDataFrame(table, spark_schema(fields))
    return frame


def union(frames: Iterable[DataFrame]) -> DataFrame:
    """Return the rows of several frames, of at least one, which have the same columns."""
    return reduce(lambda merged, frame: merged.unionByName(frame), frames)
