"""Asks Spark what the sections of a report want to know: sums, and a few rows of each table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from string import Formatter
from typing import TYPE_CHECKING, Any

from kshell.engine.result import Row
from kshell.spark.report.base.told import Answers, Scope
from kshell.spark.report.sections import sections

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kshell.sources.directory.log import Progress
    from kshell.spark.tables.warehouse import Warehouse

_THREADS = 4
"""Questions at once: each is a few short jobs, between which a core waits for the driver."""


def collect(
    spark: SparkSession, read: Callable[[str], DataFrame], scope: Scope, told: Progress | None = None
) -> dict[str, Answers]:
    """Section -> the answers to what it asks. ``read`` gives a table by name, narrowed to what the report is about."""
    asked = [(section.name, name, sql) for section in sections() for name, sql in section.asks(scope).items()]
    frames = {table: read(table) for table in sorted({table for _, _, sql in asked for table in tables_of(sql)})}
    found: dict[str, dict[str, Sequence[Row]]] = {section.name: {} for section in sections()}

    def ask(one: tuple[str, str, str]) -> tuple[str, str, list[Row]]:
        section, name, sql = one
        named: dict[str, Any] = {table: frames[table] for table in tables_of(sql)}
        answer = spark.sql(sql, **named)
        return section, name, [row.asDict(recursive=True) for row in answer.collect()]

    with ThreadPoolExecutor(_THREADS) as pool:
        for done, (section, name, rows) in enumerate(pool.map(ask, asked), 1):
            found[section][name] = rows
            if told is not None:
                told(0, 0, f"report: {done} of {len(asked)} questions")
    return dict(found)


def tables_of(sql: str) -> frozenset[str]:
    """The tables that a question names (``{topics}``)."""
    return frozenset(name for _, name, _, _ in Formatter().parse(sql) if name)


def reader(warehouse: Warehouse, scope: Scope) -> Callable[[str], DataFrame]:
    """Tables of a warehouse and its views ``current_…``, by name."""
    from kshell.spark.views.named import named

    clusters = None if scope.cluster is None else [scope.cluster]
    return lambda name: named(warehouse, name, clusters=clusters)
