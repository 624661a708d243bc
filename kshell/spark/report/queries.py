"""Pieces of SQL that sections share: the things with the most by day, and the first of many rows."""

from __future__ import annotations

from collections.abc import Sequence

from kshell.engine.result import Row
from kshell.spark.report.section import Scope, TableColumn

DAYS = 366
"""Days back from the last one that has something, of what is shown by day."""
LINES = 20
"""Things that are shown by day."""
_OF = "of"


def daily(table: str, who: str, value: str, column: str, where: str = "true") -> str:
    """Columns ``day``, ``who``, ``column`` (the sum of ``value``) of the things with the most, and ``of``, how many
    things there are."""
    return f"""
        WITH known AS (SELECT day, {who}, {value} AS counted FROM {table} WHERE day IS NOT NULL AND {where}),
        days AS (
            SELECT day, {who}, sum(counted) AS {column} FROM known
            WHERE day > (SELECT date_format(date_sub(to_date(max(day)), {DAYS}), 'yyyy-MM-dd') FROM known)
            GROUP BY day, {who}
        ),
        most AS (
            SELECT {who}, sum({column}) AS inAll, count(*) OVER () AS {_OF} FROM days GROUP BY {who}
            ORDER BY inAll DESC, {who} LIMIT {LINES}
        )
        SELECT day, {who}, {column}, {_OF} FROM days JOIN most USING ({who}) ORDER BY {who}, day
    """


def daily_note(rows: Sequence[Row], who: str, noun: str) -> str:
    """What :func:`daily` has left out."""
    count, all_of = len({row[who] for row in rows}), of(rows)
    return f"{count} of {all_of:,} {noun}: those with the most" if count < all_of else ""


def some(columns: str, rest: str, order: str, limit: int) -> str:
    """The first rows, with how many there are."""
    return f"SELECT {columns}, count(*) OVER () AS {_OF} {rest} ORDER BY {order} LIMIT {limit}"


def of(rows: Sequence[Row]) -> int:
    """How many rows there are in all, as :func:`some` and :func:`daily` describe."""
    return int(rows[0][_OF]) if rows else 0


def in_cluster(scope: Scope, *columns: TableColumn) -> tuple[TableColumn, ...]:
    """Columns of a table, with the cluster in front where there are several."""
    return (TableColumn("clusterId", "cluster"), *columns) if scope.is_fleet else columns
