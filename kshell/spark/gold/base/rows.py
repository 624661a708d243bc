"""Rows of a declared table, and aggregates, out of SQL expressions."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from kshell.commands.base.tables import Field, Type

_TYPES = {"int16": "smallint", "int32": "int", "int64": "bigint", "float64": "double"}


def of(frame: Any, fields: Sequence[Field]) -> Any:
    """Those columns of a DataFrame, in their order and declared types."""
    return frame.selectExpr(*(f"cast(`{field.name}` as {_type(field.type)}) as `{field.name}`" for field in fields))


def _type(declared: Type) -> str:
    """The SQL name of a type: those that gold tables have."""
    if isinstance(declared, str):
        return _TYPES.get(declared, declared)
    assert not isinstance(declared, dict)
    return f"array<{_type(next(iter(declared)))}>"


def grouped(frame: Any, keys: Sequence[str], **aggregates: str) -> Any:
    """``GROUP BY`` those columns; an aggregate is an SQL expression, by the name of its column."""
    expr = importlib.import_module("pyspark.sql.functions").expr  # late: declarations need no Spark

    return frame.groupBy(*keys).agg(*(expr(made).alias(name) for name, made in aggregates.items()))
