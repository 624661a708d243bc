"""``export``: all tables into files. They are made beside the directory, and take its place when all is well."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from kshell.engine.declaration import Arg, Command, Example, Flag, Task
from kshell.engine.result import Result, Rows, typed
from kshell.engine.staging import demand_new_directory, demand_new_file, new_directory
from kshell.errors import SourceError, UsageError, did_you_mean
from kshell.history.catalog import past_tables
from kshell.tables.declaration import Table, image_for, load_for, tables, told_rows

if TYPE_CHECKING:
    from kshell.engine.session import Session

FORMATS = ("parquet", "jsonl", "csv", "sqlite", "duckdb")
_SUFFIXES = {f".{name}": name for name in FORMATS} | {".db": "sqlite", ".ndjson": "jsonl"}
"""How the names of such files end: the format, where none is given."""
_DATABASES = frozenset(("sqlite", "duckdb"))
_COLUMNS = typed("table:string rows:int64 file:string")


def run(session: Session, args: Any) -> Result:
    """A row a table. Raises CommandError where the directory may not be written, UsageError without its extra."""
    from kshell.tables.export import DATABASE, WRITERS

    suffix = os.path.splitext(args.directory)[1]
    chosen_format = args.format or _SUFFIXES.get(suffix)
    if chosen_format is None:
        named = f", and {suffix} names none" if suffix else ""
        raise UsageError(f"export: --format is missing{named}", hint=f"--format is one of {', '.join(FORMATS)}")
    if not args.directory:
        raise UsageError("export: the directory has no name", hint="export --format csv DIRECTORY")
    lone_file = f"{DATABASE}.{chosen_format}" if {chosen_format, _SUFFIXES.get(suffix)} <= _DATABASES else None
    if lone_file is not None:
        target = demand_new_file(session, args.directory, force=args.force, example="export audit.sqlite")
    else:
        hint = "--force writes into it, over files of the same names"
        target = demand_new_directory(session, args.directory, hint, force=args.force)
    chosen = _chosen(args.table, with_past=args.history)
    load_for(session, [table for table in chosen if table.parts])
    with new_directory(args.directory, target, lone_file) as place, WRITERS[chosen_format](place) as writer:
        # The past first: who has read all of the log has the state, too.
        rows = list(_written(session, writer, sorted(chosen, key=lambda table: table.name in tables())))
    if lone_file is not None:
        rows = [{**row, "file": os.path.basename(target)} for row in rows]
    elif suffix in _SUFFIXES:
        session.remarks.append(f"{args.directory} is a directory: column file says which file of it has which table")
    return Rows(_COLUMNS, sorted(rows, key=lambda row: str(row["table"])))


def _written(session: Session, writer: Any, chosen: Iterable[Table]) -> Iterator[dict[str, Any]]:
    """Writes the tables; one that the source does not tell is left out, which a remark says."""
    from kshell.tables.export import counted

    for table in chosen:
        try:
            table_rows = iter(table.rows(session, image_for(session, table.name, table.parts), None))
            first = list(islice(table_rows, 1))
        except SourceError as error:
            session.remarks.append(f"{error.message}: left out")
            continue
        count = [0]
        rows = told_rows(session, table, chain(first, table_rows))
        file = writer.write(table, counted(rows, count))
        yield {"table": table.name, "rows": count[0], "file": file}


def _chosen(names: list[str] | None, *, with_past: bool) -> list[Table]:
    """The tables that are named, else all: those of the past only with ``--history``."""
    tables_by_name = {**tables(), **past_tables()}
    for name in names or ():
        if name not in tables_by_name:
            hint = did_you_mean(
                name, tables_by_name, f"tables: {', '.join(tables())}; `help export` has those of --history"
            )
            raise UsageError(f"export: there is no table {name}", hint=hint)
    every = tables_by_name if with_past else tables()
    return [tables_by_name[name] for name in sorted(set(names or every))]


def complete_table(session: Session, typed: str) -> Iterable[str]:
    """The tables, those of the past among them."""
    return [*tables(), *past_tables()]


COMMAND = Command(
    name="export",
    task=Task.PROGRAMS,
    summary="all tables into files: Parquet, JSON lines, CSV, SQLite or DuckDB",
    run=run,
    args=(
        Arg(
            "directory",
            "where the files go, made when it is not there; a name in .sqlite, .db or .duckdb is a database",
        ),
    ),
    flags=(
        Flag(
            ("--format",),
            "parquet, jsonl, csv, sqlite or duckdb; where it is absent, as the name ends: out.duckdb",
            metavar="FORMAT",
            choices=FORMATS,
        ),
        Flag(("--table",), "only this table (repeatable)", metavar="TABLE", repeat=True, complete=complete_table),
        Flag(("--history",), "the tables of the past, too: history_NAME of each, events and config_changes"),
        Flag(("--force",), "write into a directory that is not empty, over files of the same names"),
    ),
    examples=(
        Example("export --format jsonl tables", "a file a table, for any program"),
        Example("export --format parquet --table partitions --table topics lake", "two tables, for a data lake"),
        Example("export audit.sqlite", "one database"),
        Example("export --format csv --history past", "the past as well: every version of every row"),
    ),
    description=(
        "docs/reference/tables.md has the columns, which are the same in every format and in `sql`; they are only ever"
        " added to. Numbers are exact. Lists and objects are lists, structs and maps in Parquet and DuckDB, and JSON in"
        " CSV and SQLite. CSV is that of `-o csv`: a text that a spreadsheet would run as a formula has a ' in front,"
        " and control and bidirectional characters are visible escapes; the other formats hold text exactly. parquet"
        " and duckdb need the extra sql (pip install 'kraft-shell[sql]'). Nothing is seen in the directory before all"
        " of it is written, and a failure leaves it as it was. A database is one file: the one that is named, as"
        " out.duckdb is, or kraft.sqlite or kraft.duckdb in the directory."
        " Nothing is written into the directory that is being read. --history adds the tables of the past that `sql`"
        " has: history_topics and so on, events and config_changes; --table names one of them without it. Secrets are"
        " redacted unless --show-secrets is given."
    ),
)
