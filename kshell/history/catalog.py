"""All that a query of ``sql`` can name: tables of state, their versions, the log's events, functions of points."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kshell.engine.result import Row
from kshell.history.diff import FIELDS, TreeComparison
from kshell.history.events import CONFIG_CHANGES_TABLE, EVENTS_TABLE
from kshell.history.versions import history_tables
from kshell.tables.declaration import FieldNames, Table, image_for, tables
from kshell.tables.macros import Catalog, TableMacro
from kshell.tree.paths import HOME

if TYPE_CHECKING:
    from kshell.engine.session import Session

AT = "_at"


def past_tables() -> dict[str, Table]:
    """Return every table that covers the whole past of the log, by name, sorted."""
    return {table.name: table for table in (CONFIG_CHANGES_TABLE, EVENTS_TABLE, *history_tables().values())}


def past_macros() -> dict[str, TableMacro]:
    """Return every table macro whose arguments are points in time, by name, sorted."""
    macros = [*map(_at, tables().values()), _CHANGES]
    return {macro.name: macro for macro in sorted(macros, key=lambda macro: macro.name)}


def catalog() -> Catalog:
    """Return all tables and macros that ``sql`` knows."""
    return Catalog(tables(), past_tables(), past_macros())


def _at(table: Table) -> TableMacro:
    """Return the macro ``NAME_at(point)``: the rows of a table of state at a point in time."""

    def rows(sessions: Sequence[Session], wanted: FieldNames) -> Iterable[Row]:
        (session,) = sessions
        return table.rows(session, image_for(session, table.name, table.parts), wanted)

    return TableMacro(f"{table.name}{AT}", ("point",), f"{table.summary}, at a point in time", table.fields, rows)


def _changes(sessions: Sequence[Session], wanted: FieldNames) -> Iterable[Row]:
    old, new = sessions
    return (change.row() for change in TreeComparison(old, new, HOME).changes())


_CHANGES = TableMacro(
    "changes", ("a", "b"), "what differs between two points in time, as `diff` says", FIELDS, _changes
)
