"""``export``: write all tables into files or a database, which take their place only when all are complete."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING

from kshell.engine.declaration import Arg, Arguments, Command, Example, Flag, Task
from kshell.engine.result import Result, Row, Rows, typed
from kshell.engine.staging import new_directory, require_new_directory, require_new_file
from kshell.errors import SourceError, UsageError, did_you_mean
from kshell.history.catalog import past_tables
from kshell.tables.declaration import ColumnarRows, Table, ask_brokers_once, image_for, tables, with_progress
from kshell.tables.export import DATABASE, WRITERS, Counted, Writer

if TYPE_CHECKING:
    from kshell.engine.session import Session

EXPORT_FORMATS = ("parquet", "jsonl", "csv", "sqlite", "duckdb")
_SUFFIXES = {f".{name}": name for name in EXPORT_FORMATS} | {".db": "sqlite", ".ndjson": "jsonl"}
"""Suffix of the target -> format, if ``--format`` is not given."""
_DATABASES = frozenset(("sqlite", "duckdb"))
_COLUMNS = typed("table:string rows:int64 file:string")


class ExportArguments(Arguments):
    """Arguments and options of ``export``."""

    directory: str
    format: str | None
    table: list[str] | None
    history: bool
    force: bool


def run(session: Session, args: ExportArguments) -> Result:
    """Write the tables; one row per table. Raises CommandError for the target, UsageError for format or table."""
    suffix = os.path.splitext(args.directory)[1]
    chosen_format = args.format or _SUFFIXES.get(suffix)
    if chosen_format is None:
        named = f", and the ending {suffix} is not that of a format" if suffix else ""
        raise UsageError(f"export: --format is missing{named}", hint=f"--format is one of {', '.join(EXPORT_FORMATS)}")
    if not args.directory:
        raise UsageError("export: the directory has no name", hint="export --format csv DIRECTORY")
    lone_file = f"{DATABASE}.{chosen_format}" if {chosen_format, _SUFFIXES.get(suffix)} <= _DATABASES else None
    if lone_file is not None:
        target = require_new_file(session, args.directory, force=args.force, example="export audit.sqlite")
    else:
        hint = "--force writes into it, over files of the same names"
        target = require_new_directory(session, args.directory, hint, force=args.force)
    chosen = _chosen(args.table, with_past=args.history)
    ask_brokers_once(session, [table for table in chosen if table.parts])
    with new_directory(args.directory, target, lone_file) as place, WRITERS[chosen_format](place) as writer:
        # History first: reading the whole log for it also yields the state.
        rows = list(_written(session, writer, sorted(chosen, key=lambda table: table.name in tables())))
    if lone_file is not None:
        rows = [{**row, "file": os.path.basename(target)} for row in rows]
    elif suffix in _SUFFIXES:
        session.remarks.append(f"{args.directory} is a directory: column file says which file of it has which table")
    return Rows(_COLUMNS, sorted(rows, key=lambda row: str(row["table"])))


def _written(session: Session, writer: Writer, chosen: Iterable[Table]) -> Iterator[Row]:
    """Write the tables, and yield a row for each; a remark names tables that the source cannot give."""
    for table in chosen:
        try:
            table_rows = _with_first_row(table.rows(session, image_for(session, table.name, table.parts), None))
        except SourceError as error:
            session.remarks.append(f"{error.message}: left out")
            continue
        rows = Counted(with_progress(session, table, table_rows))
        file = writer.write(table, rows)
        yield {"table": table.name, "rows": rows.count, "file": file}


def _with_first_row(rows: Iterable[Row]) -> Iterable[Row]:
    """Return the rows after making the first: a source that cannot give them says so before a file is created."""
    if isinstance(rows, ColumnarRows):
        return rows  # they have started to read the source
    waiting = iter(rows)
    return chain(list(islice(waiting, 1)), waiting)


def _chosen(names: list[str] | None, *, with_past: bool) -> list[Table]:
    """The named tables, else all tables; history tables are among these only with ``--history``."""
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
    """Complete the name of a table, history tables included."""
    return [*tables(), *past_tables()]


COMMAND = Command(
    name="export",
    task=Task.PROGRAMS,
    summary="all tables into files: Parquet, JSON lines, CSV, SQLite or DuckDB",
    run=run,
    arguments=ExportArguments,
    args=(
        Arg(
            "directory",
            "where the files go, created if missing; a name that ends in .sqlite, .db or .duckdb is a database",
        ),
    ),
    flags=(
        Flag(
            ("--format",),
            "parquet, jsonl, csv, sqlite or duckdb; when absent, by the ending of the name: out.duckdb",
            metavar="FORMAT",
            choices=EXPORT_FORMATS,
        ),
        Flag(("--table",), "only this table (repeatable)", metavar="TABLE", repeat=True, complete=complete_table),
        Flag(("--history",), "the tables of the past, too: history_NAME of each, events and config_changes"),
        Flag(("--force",), "write into a directory that is not empty, over files of the same names"),
    ),
    examples=(
        Example("export --format jsonl tables", "one file per table, for any program"),
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
        " of it is written, and a failure leaves it unchanged. A database is one file: the one that is named, as"
        " out.duckdb is, or kraft.sqlite or kraft.duckdb in the directory."
        " Nothing is written into the directory that is being read. --history adds the tables of the past that `sql`"
        " has: history_topics and so on, events and config_changes; --table names one of them without it. Secrets are"
        " redacted unless --show-secrets is given."
    ),
)
