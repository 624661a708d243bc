"""Table macros of ``sql``: functions that give a table at points in time, such as ``topics_at('-1h')``.

DuckDB cannot ask Python for a table while a query runs. So the calls are found in the query's tokens before it runs
(:func:`tables_of_calls`); each distinct call gets a table of its own, and a DuckDB macro of that name chooses among
these tables by its arguments (:func:`create_macros`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kshell.engine.result import Row
from kshell.tables.arrow import literal
from kshell.tables.declaration import Field, FieldNames, Table
from kshell.tables.where_grammar import ExpressionError

if TYPE_CHECKING:
    from types import ModuleType

    from duckdb import DuckDBPyConnection

    from kshell.engine.session import Session

_OWN_TABLE = re.compile(r"\([^()]*\)\s*AS\s+((NOT\s+)?MATERIALIZED\s*)?\(", re.IGNORECASE)
"""Matches what follows the name of a query's own table with columns, no macro: ``WITH changes(a, b) AS (…)``."""


class TableMacro(NamedTuple):
    """A function whose arguments are points in time and whose result is a table: ``topics_at('-1h')``.

    Attributes:
        parameters: their names; each is a point.
        rows: gives the rows, from one session at each point.
    """

    name: str
    parameters: tuple[str, ...]
    summary: str
    fields: tuple[Field, ...]
    rows: Callable[[Sequence[Session], FieldNames], Iterable[Row]]


class Catalog(NamedTuple):
    """What a query can name: tables of the session's state, tables of the whole past, and macros, each by name."""

    state: Mapping[str, Table]
    past: Mapping[str, Table]
    macros: Mapping[str, TableMacro]

    def names(self) -> list[str]:
        """Return all names, for suggestions."""
        return [*self.state, *self.past, *self.macros]


class MacroCall(NamedTuple):
    """A call of a macro: its points as the query writes them, and the table with its rows."""

    macro: TableMacro
    points: tuple[str, ...]
    table: Table


def macro_calls(
    duckdb: ModuleType, text: str, macros: Mapping[str, TableMacro]
) -> list[tuple[TableMacro, tuple[str, ...]]]:
    """Return the macro calls of a query, each with its arguments as written; all must be literals.

    Raises ExpressionError, which points at the call, for other arguments.
    """
    raw = text.encode("utf-8", "replace")  # DuckDB's positions count bytes
    marks = duckdb.tokenize(text)
    ends = [*(at for at, _ in marks[1:]), len(raw)]
    tokens = [
        (raw[at:end].decode().strip(), len(raw[:at].decode()), kind)
        for (at, kind), end in zip(marks, ends, strict=True)
        if kind != duckdb.token_type.comment
    ]
    literal = (duckdb.token_type.numeric_const, duckdb.token_type.string_const)
    calls: list[tuple[TableMacro, tuple[str, ...]]] = []
    for index, (name, at, kind) in enumerate(tokens[:-1]):
        macro = macros.get(name.strip('"').lower())
        if macro is None or kind in literal or not tokens[index + 1][0].startswith("("):
            continue
        if _OWN_TABLE.match(text, tokens[index + 1][1]):
            continue
        arguments = tokens[index + 2 : index + 2 + 2 * len(macro.parameters)]
        points = tuple(token for token, _, kind in arguments[::2] if kind in literal)
        commas = "".join(token for token, _, _ in arguments[1::2])
        if len(points) != len(macro.parameters) or not commas.startswith("," * (len(points) - 1) + ")"):
            number = "a point" if len(macro.parameters) == 1 else "two points"
            raise ExpressionError(
                f"sql: {macro.name}({', '.join(macro.parameters)}) takes {number}, and a point is an offset (160), or a"
                " text in quotes ('-1h', '2026-01-31T12:00:00Z', '@NAME', 'now')",
                text,
                at,
                hint="a point cannot be computed in the query: compute it with a query of its own first",
            )
        calls.append((macro, points))
    return calls


def tables_of_calls(
    duckdb: ModuleType,
    connection: DuckDBPyConnection,
    session: Session,
    text: str,
    catalog: Catalog,
    sessions: dict[str, Session],
    pasts: int,
) -> list[MacroCall]:
    """Return the distinct macro calls of a query, each with a table of its own.

    Args:
        sessions: is filled with point -> session at that point.
        pasts: how many tables of the whole past the query names as well.
    """
    calls: dict[tuple[str, tuple[str, ...]], TableMacro] = {}
    for macro, literals in macro_calls(duckdb, text, catalog.macros):
        (points,) = connection.execute(
            f"SELECT {', '.join(f'CAST({text} AS VARCHAR)' for text in literals)}"
        ).fetchall()
        calls[macro.name, points] = macro
    named_points = dict.fromkeys(point for _, points in calls for point in points)
    if len(named_points) + pasts > 1:
        session.travels()  # the log is read once for all of them
    sessions |= {point: session.reshape(point=point) for point in named_points}
    return [
        MacroCall(macro, points, _table_of(macro, number, [sessions[point] for point in points]))
        for number, ((_, points), macro) in enumerate(calls.items())
    ]


def _table_of(macro: TableMacro, number: int, sessions: Sequence[Session]) -> Table:
    """Return the table with the rows of a macro for the points of one call."""
    name = f"{macro.name}_{number}"
    return Table(name, macro.summary, macro.fields, lambda session, image, wanted: macro.rows(sessions, wanted), ())


def create_macros(connection: DuckDBPyConnection, calls: Iterable[MacroCall]) -> None:
    """Create the DuckDB macros that a query calls; each chooses the table of a call by its arguments."""
    by_macro: dict[str, list[MacroCall]] = {}
    for call in calls:
        by_macro.setdefault(call.macro.name, []).append(call)
    for name, of_macro in by_macro.items():
        parameters = of_macro[0].macro.parameters
        cases = " ".join(
            f"WHEN {_is_called_with(parameters, call.points)} THEN {literal(call.table.name)}" for call in of_macro
        )
        body = f"SELECT * FROM query_table(CASE {cases} END)"
        connection.execute(f'CREATE MACRO "{name}"({", ".join(parameters)}) AS TABLE {body}')


def _is_called_with(parameters: Iterable[str], points: Iterable[str]) -> str:
    """Return the SQL condition that a macro's arguments are these points."""
    each = (f"CAST({name} AS VARCHAR) = {literal(point)}" for name, point in zip(parameters, points, strict=True))
    return " AND ".join(each)
