"""Which columns of which tables a query needs: DuckDB's own planner says so of empty tables.

Columns that it leaves out need not be made: nothing of them can come into the answer. Where the plan is not understood,
or there is none, all columns are needed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kshell.tables.declaration import Table, Wanted

_KEPT = "unused_columns"
"""The optimizer that leaves columns out; all others are off, as some go by what is in the tables."""

_ABOUT_TABLES = re.compile(r"(?i)duckdb_|pragma_")
"""Functions that tell how large tables are."""


def columns_of(duckdb: Any, connection: Any, text: str, wanted: Sequence[Table]) -> Mapping[str, Wanted]:
    """Table -> the names of the fields that the query reads; ``None`` for all. Tables that it does not read have none.

    ``connection`` has the tables, empty; its settings are locked before the query is planned. Raises nothing: what is
    wrong with the query is said when it is run.
    """
    known = {table.name: frozenset(field.name for field in table.fields) for table in wanted}
    every: Mapping[str, Wanted] = dict.fromkeys(known)
    if not known or _ABOUT_TABLES.search(text):
        return every
    try:
        names = [name for (name,) in connection.execute("SELECT name FROM duckdb_optimizers()").fetchall()]
        connection.execute(f"SET disabled_optimizers = '{','.join(name for name in names if name != _KEPT)}'")
        connection.execute("SET lock_configuration = true")
        name, field = wanted[0].name, wanted[0].fields[0].name
        if _read(connection, f'SELECT "{field}" FROM "{name}"', known) != {name: frozenset((field,))}:
            return every  # this DuckDB prints its plans in another way
        return _read(connection, text, known)
    except (duckdb.Error, ValueError, KeyError):
        return every


def _read(connection: Any, text: str, known: Mapping[str, frozenset[str]]) -> dict[str, Wanted]:
    """What the plan of a query reads. Raises ValueError, KeyError for a plan that is not understood."""
    ((_, plan),) = connection.execute(f"EXPLAIN (FORMAT json) {text}").fetchall()
    found: dict[str, Wanted] = {}
    for name, columns in _scans(json.loads(plan)):
        before = found.get(name, frozenset[str]())
        found[name] = None if before is None or columns is None or not columns <= known[name] else before | columns
    return found


def _scans(plan: Any) -> Iterator[tuple[str, frozenset[str] | None]]:
    """(table, the columns that are read) of every scan of a plan, as DuckDB prints it: ``memory.main.topics``."""
    waiting = list(plan) if isinstance(plan, list) else [plan]
    while waiting:
        node = waiting.pop()
        waiting += node.get("children", [])
        facts = node.get("extra_info") or {}
        if isinstance(facts, str):  # older releases
            raise ValueError(facts)
        if "Table" in facts:
            columns = facts.get("Projections")
            listed = [columns] if isinstance(columns, str) else columns
            # A field of a struct is told as column.field.
            read = None if listed is None else frozenset(one.partition(".")[0] for one in listed if one)
            yield facts["Table"].rpartition(".")[2], read
