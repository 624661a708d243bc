"""Rows that the driver has, as a DataFrame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from kshell.commands.base.result import Row
from kshell.commands.base.tables import Field
from kshell.spark.schemas import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def frame_of(spark: Any, fields: Sequence[Field], rows: Iterable[Row]) -> DataFrame:
    """Few rows as a DataFrame."""
    values = [tuple(row.get(field.name) for field in fields) for row in rows]
    frame: DataFrame = spark.createDataFrame(values, spark_schema(fields))
    return frame
