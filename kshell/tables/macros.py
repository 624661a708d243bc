"""Functions in a query that give a table at a point in time: ``topics_at('-1h')``, ``changes(160, 'now')``.

DuckDB cannot ask Python for a table while a query runs. So the calls are found among its own tokens before, the points
that they name are looked up, and each call gets a table; a macro of DuckDB's chooses among them by its arguments.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kshell.engine.result import Row
from kshell.tables.arrow import literal
from kshell.tables.declaration import Field, Table, Wanted
from kshell.tables.where_grammar import ExpressionError

if TYPE_CHECKING:
    from kshell.engine.session import Session

_OWN_TABLE = re.compile(r"\([^()]*\)\s*AS\s+((NOT\s+)?MATERIALIZED\s*)?\(", re.IGNORECASE)
"""What follows the name of a table that a query declares with its columns: ``WITH changes(a, b) AS (…)``."""


class TableMacro(NamedTuple):
    """A function of points in time that gives a table: ``topics_at('-1h')``.

    Attributes:
        parameters: their names; each is a point.
        rows: the rows, of a session at each of the points.
    """

    name: str
    parameters: tuple[str, ...]
    summary: str
    fields: tuple[Field, ...]
    rows: Callable[[Sequence[Session], Wanted], Iterable[Row]]


class Catalog(NamedTuple):
    """What a query can name: tables of the state that the session shows, tables of all of the past, and macros."""

    state: Mapping[str, Table]
    past: Mapping[str, Table]
    macros: Mapping[str, TableMacro]

    def names(self) -> list[str]:
        """All names."""
        return [*self.state, *self.past, *self.macros]


class MacroCall(NamedTuple):
    """A macro with its points as the query writes them, and the table that has its rows."""

    macro: TableMacro
    points: tuple[str, ...]
    table: Table


def macro_calls(duckdb: Any, text: str, macros: Mapping[str, TableMacro]) -> list[tuple[TableMacro, tuple[str, ...]]]:
    """The calls of macros in a query: each with its arguments as they are written, which must be literals.

    Raises ExpressionError, which points at the call, for any other arguments.
    """
    raw = text.encode("utf-8", "replace")  # DuckDB counts bytes
    marks = duckdb.tokenize(text)
    ends = [*(at for at, _ in marks[1:]), len(raw)]
    tokens = [
        (raw[at:end].decode().strip(), len(raw[:at].decode()), kind)
        for (at, kind), end in zip(marks, ends, strict=True)
        if kind != duckdb.token_type.comment
    ]
    literal = (duckdb.token_type.numeric_const, duckdb.token_type.string_const)
    found: list[tuple[TableMacro, tuple[str, ...]]] = []
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
            raise ExpressionError(
                f"sql: {macro.name}({', '.join(macro.parameters)}): a point is an offset (160), or a text in quotes"
                " ('-1h', '2026-01-31T12:00:00Z', '@NAME', 'now')",
                text,
                at,
                hint="what a query computes is no point: ask for it first",
            )
        found.append((macro, points))
    return found


def tables_of_calls(
    duckdb: Any,
    connection: Any,
    session: Session,
    text: str,
    catalog: Catalog,
    sessions: dict[str, Session],
    pasts: int,
) -> list[MacroCall]:
    """The calls of macros, each once, with a table of its own.

    Args:
        sessions: gets one for each point.
        pasts: how many tables of the past the query names beside.
    """
    found: dict[tuple[str, tuple[str, ...]], TableMacro] = {}
    for macro, literals in macro_calls(duckdb, text, catalog.macros):
        (points,) = connection.execute(
            f"SELECT {', '.join(f'CAST({text} AS VARCHAR)' for text in literals)}"
        ).fetchall()
        found[macro.name, points] = macro
    named_points = dict.fromkeys(point for _, points in found for point in points)
    if len(named_points) + pasts > 1:
        session.travels()  # the log is read once for all of them
    sessions |= {point: session.reshape(point=point) for point in named_points}
    return [
        MacroCall(macro, points, _table_of(macro, number, [sessions[point] for point in points]))
        for number, ((_, points), macro) in enumerate(found.items())
    ]


def _table_of(macro: TableMacro, number: int, sessions: Sequence[Session]) -> Table:
    """A table with the rows of a macro at some points."""
    name = f"{macro.name}_{number}"
    return Table(name, macro.summary, macro.fields, lambda session, image, wanted: macro.rows(sessions, wanted), ())


def create_macros(connection: Any, calls: Iterable[MacroCall]) -> None:
    """The macros that are called, each of which chooses a table by its arguments."""
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
    each = (f"CAST({name} AS VARCHAR) = {literal(point)}" for name, point in zip(parameters, points, strict=True))
    return " AND ".join(each)
