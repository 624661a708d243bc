"""SQL that sections share: sums by day of the largest topics, brokers or clusters, and the first of many rows."""

from __future__ import annotations

from collections.abc import Sequence

from kshell.engine.result import Row
from kshell.spark.report.section import Scope, SectionDrawing, SectionTable, TableColumn

DAYS = 366
"""How many days a sum by day goes back from the last day that has rows."""
LINES = 20
"""How many topics, brokers or clusters are shown by day at most: those with the largest sums."""
_OF = "of"
"""The column with the count of all rows, or of all that :func:`daily` chose from, before the limit."""


def daily(table: str, who: str, value: str, column: str, where: str = "true") -> str:
    """SQL: per ``day`` and ``who`` (a column of ``table``), the sum of ``value`` as ``column``, for the :data:`LINES`
    values of ``who`` with the largest sums; ``of`` is how many values there are."""
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


def by_day(rows: Sequence[Row], who: str) -> tuple[SectionDrawing, ...]:
    """Draw an answer to :func:`daily`, if it has rows. A note says how many values of ``who`` are left out, if any."""
    count, all_of = len({row[who] for row in rows}), total_of(rows)
    note = f"{count} of {all_of:,} {who.removesuffix('Id')}s: those with the most" if count < all_of else ""
    return (SectionDrawing(rows, note),) if rows else ()


def top_rows(columns: str, rest: str, order: str, limit: int) -> str:
    """SQL: the first rows in an order, each with the count of all (``of``). ``rest``: FROM, WHERE and GROUP BY."""
    return f"SELECT {columns}, count(*) OVER () AS {_OF} {rest} ORDER BY {order} LIMIT {limit}"


def total_of(rows: Sequence[Row]) -> int:
    """Return the count of all rows from an answer to :func:`top_rows` or :func:`daily`; 0 for one without rows."""
    return int(rows[0][_OF]) if rows else 0


def top_table(scope: Scope, caption: str, rows: Sequence[Row], *columns: TableColumn) -> SectionTable:
    """Return an answer to :func:`top_rows` as a table; ``columns`` as for :func:`in_cluster`."""
    return SectionTable(caption, in_cluster(scope, *columns), rows, total_of(rows))


def in_cluster(scope: Scope, *columns: TableColumn) -> tuple[TableColumn, ...]:
    """Return a table's columns, with the cluster in front if the report is about several clusters."""
    return (TableColumn("clusterId", "cluster"), *columns) if scope.is_fleet else columns
