"""The last steps of most gold tables: ``GROUP BY`` with SQL expressions, and the declared columns in their types."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kshell.spark.schemas import spark_columns
from kshell.tables.declaration import Field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_UNTIL = Field("untilMs", "int64", "the time from which on the row is final")


def typed(frame: DataFrame, fields: Sequence[Field]) -> DataFrame:
    """Select the declared columns of a DataFrame, in their order and types."""
    return frame.selectExpr(*(f"cast(`{name}` as {kind}) as `{name}`" for name, kind in spark_columns(fields)))


def typed_with_until(frame: DataFrame, fields: Sequence[Field]) -> DataFrame:
    """Select the declared columns of a table whose rows become final (``final_by``), and ``untilMs``."""
    return typed(frame, (*fields, _UNTIL))


def by_keys(keys: Sequence[str]) -> list[str]:
    """Return a key's columns in the order to sort by: ``clusterId``, which all rows may share, comes last.

    Spark's sort compares the first eight bytes of the first column without loading rows. If all rows have the same
    bytes there, it must load two rows for every comparison.
    """
    return sorted(keys, key=lambda key: key == "clusterId")


def grouped(frame: DataFrame, keys: Sequence[str], **aggregates: str) -> DataFrame:
    """Group a DataFrame by the key columns. ``aggregates``: result column -> SQL aggregate expression."""
    expr = importlib.import_module("pyspark.sql.functions").expr  # late: declarations need no Spark

    return frame.groupBy(*by_keys(keys)).agg(*(expr(expression).alias(name) for name, expression in aggregates.items()))
