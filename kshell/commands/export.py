"""``export``: all tables into files. They are made beside the directory, and take its place when all is well."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from kshell.engine.declaration import Arg, Command, Example, Flag, Task
from kshell.engine.result import Result, Rows, typed
from kshell.errors import CommandError, SourceError, UsageError
from kshell.sources.directory.files import is_inside
from kshell.tables.declaration import Table, image_for, load_for, tables, told_rows

if TYPE_CHECKING:
    from kshell.engine.session import Session

FORMATS = ("parquet", "jsonl", "csv", "sqlite", "duckdb")
_COLUMNS = typed("table:string rows:int64 file:string")


def run(session: Session, args: Any) -> Result:
    """A row a table. Raises CommandError where the directory may not be written, UsageError without its extra."""
    from kshell.tables.export import WRITERS

    if args.format is None:
        raise UsageError("export: --format is missing", hint=f"one of {', '.join(FORMATS)}")
    if not args.directory:
        raise UsageError("export: the directory has no name", hint="export --format csv DIRECTORY")
    target = os.path.realpath(os.path.expanduser(args.directory))
    _check(session, args, target)
    chosen = _chosen(args.table)
    load_for(session, chosen)
    with _staging(args.directory, target) as place, WRITERS[args.format](place) as writer:
        rows = list(_written(session, writer, chosen))
    return Rows(_COLUMNS, rows)


def _written(session: Session, writer: Any, chosen: Iterable[Table]) -> Iterator[dict[str, Any]]:
    """Writes the tables; one that the source does not tell is left out, which a remark says."""
    from kshell.tables.export import counted

    for table in chosen:
        try:
            image = image_for(session, table.name, table.parts)
        except SourceError as error:
            session.remarks.append(f"{error.message}: left out")
            continue
        count = [0]
        rows = told_rows(session, table, table.rows(session, image, None))
        file = writer.write(table, counted(rows, count))
        yield {"table": table.name, "rows": count[0], "file": file}


def _chosen(names: list[str] | None) -> list[Table]:
    every = tables()
    for name in names or ():
        if name not in every:
            raise UsageError(f"export: there is no table {name}", hint=f"tables: {', '.join(every)}")
    return [table for table in every.values() if not names or table.name in names]


def _check(session: Session, args: Any, target: str) -> None:
    if any(is_inside(target, place) for place in session.protected):
        raise CommandError(
            f"{args.directory}: is in the source's own directory, where kshell writes nothing",
            hint="choose another directory",
        )
    try:
        if not args.force and os.path.lexists(target) and (not os.path.isdir(target) or os.listdir(target)):
            raise CommandError(
                f"{args.directory}: is there, and not an empty directory",
                hint="--force writes into it, over files of the same names",
            )
    except OSError as error:
        raise _failed(args.directory, error) from None


@contextmanager
def _staging(said: str, target: str) -> Iterator[str]:
    """A new directory beside the target, whose files go there at the end; it is gone if anything fails."""
    parent, name = os.path.split(target)
    place = os.path.join(parent, f".{name}.{os.getpid()}.part")
    try:
        os.makedirs(parent, exist_ok=True)
        os.mkdir(place)
    except (FileExistsError, NotADirectoryError):
        raise CommandError(f"{said}: something on the way there is a file, not a directory") from None
    except OSError as error:
        raise _failed(said, error) from None
    try:
        yield place
        _publish(place, target)
    except OSError as error:
        raise _failed(said, error) from None
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _publish(place: str, target: str) -> None:
    """The whole directory at once where the target is not there or empty, else file by file, each at once."""
    with suppress(OSError):
        os.rmdir(target)
    if not os.path.lexists(target):
        os.rename(place, target)
        return
    for name in sorted(os.listdir(place)):
        os.replace(os.path.join(place, name), os.path.join(target, name))


def _failed(said: str, error: OSError) -> CommandError:
    return CommandError(f"{said}: {error.strerror or error}")


def complete_table(session: Session, typed: str) -> Iterable[str]:
    """The tables."""
    return list(tables())


COMMAND = Command(
    name="export",
    task=Task.PROGRAMS,
    summary="all tables into files: Parquet, JSON lines, CSV, SQLite or DuckDB",
    run=run,
    args=(Arg("directory", "where the files go; made when it is not there"),),
    flags=(
        Flag(("--format",), "parquet, jsonl, csv, sqlite or duckdb", metavar="FORMAT", choices=FORMATS),
        Flag(("--table",), "only this table (repeatable)", metavar="TABLE", repeat=True, complete=complete_table),
        Flag(("--force",), "write into a directory that is not empty, over files of the same names"),
    ),
    examples=(
        Example("export --format jsonl tables", "a file a table, for any program"),
        Example("export --format parquet --table partitions --table topics lake", "two tables, for a data lake"),
        Example("export --format sqlite audit", "one database"),
    ),
    description=(
        "docs/reference/tables.md has the columns, which are the same in every format and in `sql`; they are only ever"
        " added to. Numbers are exact. Lists and objects are lists, structs and maps in Parquet and DuckDB, and JSON in"
        " CSV and SQLite. CSV is that of `-o csv`: a text that a spreadsheet would run as a formula has a ' in front,"
        " and control and bidirectional characters are visible escapes; the other formats hold text exactly. parquet"
        " and duckdb need the extra sql (pip install 'kraft-shell[sql]'). Nothing is seen in the directory before all"
        " of it is written, and a failure leaves it as it was; databases are one file, kraft.sqlite or kraft.duckdb."
        " Nothing is written into the directory that is being read. Secrets are redacted unless --show-secrets is"
        " given."
    ),
)
