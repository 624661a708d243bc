"""SQL over the tables, in a DuckDB that holds nothing else and may touch nothing else.

The database is in memory, cannot reach files, the network, extensions or Python's variables, and its settings are
locked before the query is looked at. A table is made only if the query names it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from kshell.engine.result import Row
from kshell.errors import EXIT_OK, CommandError, KshellError, UsageError, did_you_mean
from kshell.extras import require
from kshell.sources.directory.source import without_collector
from kshell.tables.arrow import create_table
from kshell.tables.declaration import Table, Wanted, image_for, load_for, told_rows
from kshell.tables.macros import Catalog, MacroCall, create_macros, tables_of_calls
from kshell.tables.where_grammar import ExpressionError

if TYPE_CHECKING:
    from kshell.engine.session import Session

_ENABLED_OPTIMIZER = "unused_columns"
"""The optimizer that leaves columns out; all others are off, as some go by what is in the tables."""

_ABOUT_TABLES = re.compile(r"(?i)duckdb_|pragma_")
"""Functions that tell how large tables are."""


def columns_of(duckdb: Any, connection: Any, text: str, wanted: Sequence[Table]) -> Mapping[str, Wanted]:
    """Table -> the names of the fields that the query reads; ``None`` for all. Tables that it does not read have none.

    ``connection`` has the tables, empty; its settings are locked before the query is planned. Raises nothing: what is
    wrong with the query is said when it is run.
    """
    fields_by_table = {table.name: frozenset(field.name for field in table.fields) for table in wanted}
    every: Mapping[str, Wanted] = dict.fromkeys(fields_by_table)
    if not fields_by_table or _ABOUT_TABLES.search(text):
        return every
    try:
        names = [name for (name,) in connection.execute("SELECT name FROM duckdb_optimizers()").fetchall()]
        connection.execute(
            f"SET disabled_optimizers = '{','.join(name for name in names if name != _ENABLED_OPTIMIZER)}'"
        )
        connection.execute("SET lock_configuration = true")
        name, field = wanted[0].name, wanted[0].fields[0].name
        if _columns_read(connection, f'SELECT "{field}" FROM "{name}"', fields_by_table) != {name: frozenset((field,))}:
            return every  # this DuckDB prints its plans in another way
        return _columns_read(connection, text, fields_by_table)
    except (duckdb.Error, ValueError, KeyError):
        return every


def _columns_read(connection: Any, text: str, fields_by_table: Mapping[str, frozenset[str]]) -> dict[str, Wanted]:
    """What the plan of a query reads. Raises ValueError, KeyError for a plan that is not understood."""
    ((_, plan),) = connection.execute(f"EXPLAIN (FORMAT json) {text}").fetchall()
    columns_by_table: dict[str, Wanted] = {}
    for name, columns in _scans(json.loads(plan)):
        before = columns_by_table.get(name, frozenset[str]())
        columns_by_table[name] = (
            None if before is None or columns is None or not columns <= fields_by_table[name] else before | columns
        )
    return columns_by_table


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
            read = None if listed is None else frozenset(column.partition(".")[0] for column in listed if column)
            yield facts["Table"].rpartition(".")[2], read


_WORD_PATTERN = re.compile(r"\w+")
_LISTING = frozenset(("show", "describe", "information_schema", "duckdb_tables", "duckdb_columns"))
"""Words of queries that may ask which tables there are."""
_NO_TABLE = re.compile(r'Catalog Error: Table (?:Function )?with name "?([^"\s]+)"? does not exist')
_LINE = re.compile(r"LINE \d+: ")
_SETTINGS = {
    "temp_directory": "''",
    "enable_external_access": "false",
    "python_enable_replacements": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "preserve_insertion_order": "true",
    "TimeZone": "'UTC'",
}
_MOST_MEMORY = 4 << 30
MOST_CONFINED = 100_000
"""Rows of an answer in a confined session: DuckDB's Arrow reader has all in memory, which its limit does not count."""
_READ_ONLY = ("SELECT", "EXPLAIN")
_ROWS = 1000
_LOOK = 0.1
"""Seconds between two looks at whether DuckDB has an answer."""
_PATIENCE = 1.0
"""Seconds that DuckDB has to hear an interrupt."""
_MOST_BYTES = 256 << 20
"""Bytes of a batch of rows that are made into Python's values, which take several times as much."""


class QueryResult(NamedTuple):
    """The names of the columns, the rows, made while they are read, and the exit code that damage met asks for."""

    columns: tuple[str, ...]
    rows: Iterator[Row]
    exit_code: int


def query(session: Session, text: str, catalog: Catalog) -> QueryResult:
    """The answer of one SELECT. Only what it reads is made.

    Raises UsageError for anything else, CommandError with DuckDB's words, SourceError where a table is not told.
    """
    duckdb, arrow = require("sql", "sql", "duckdb", "pyarrow")
    try:
        connection = duckdb.connect(":memory:")
    except duckdb.Error as error:
        raise _failed(duckdb, error, text, catalog) from None
    try:
        _lock(connection)
        statement = _statement(duckdb, connection, text)
        tables = _past_first(named(text, catalog), catalog)
        pasts = sum(table.name in catalog.past for table in tables)
        sessions: dict[str, Session] = {}
        calls = tables_of_calls(duckdb, connection, session, text, catalog, sessions, pasts)
        wanted = [*tables, *(call.table for call in calls)]
        read = _read(duckdb, arrow, text, wanted, calls, catalog.past)
        load_for(session, [table for table in wanted if table.name in read and table.parts])
        with without_collector():
            for table in wanted:
                rows = _rows_of(session, table, read)
                create_table(arrow, connection, table, rows, read.get(table.name))
        create_macros(connection, calls)
        if session.is_confined and statement.type.name == "SELECT":
            quoted = text.replace("'", "''")
            statement = f"SELECT * FROM query('{quoted}') LIMIT {MOST_CONFINED}"
        reader = _waited(connection, lambda: _reader(connection, statement))
    except duckdb.Error as error:
        _close(duckdb, connection)
        raise _failed(duckdb, error, text, catalog) from None
    except BaseException:
        _close(duckdb, connection)
        raise
    for then in sessions.values():
        session.remarks += [remark for remark in (*then.problems(), *then.notes()) if remark not in session.remarks]
    code = max((then.exit_code() for then in sessions.values()), default=EXIT_OK)
    return QueryResult(unique(reader.schema.names), _rows(duckdb, connection, reader, text, catalog), code)


def named(text: str, catalog: Catalog) -> list[Table]:
    """The tables whose names are words of the query; all of them where it asks which there are."""
    identifiers = _identifiers(text)
    every = {**catalog.state, **catalog.past}
    if identifiers & _LISTING:
        return list(every.values())
    return [table for name, table in every.items() if name in identifiers]


def _identifiers(text: str) -> set[str]:
    return {identifier.lower() for identifier in _WORD_PATTERN.findall(text)}


def _past_first(wanted: Iterable[Table], catalog: Catalog) -> list[Table]:
    """The tables of the past before those of the state: who has read all of the log has the state, too."""
    return sorted(wanted, key=lambda table: table.name in catalog.state)


def _read(
    duckdb: Any, arrow: Any, text: str, wanted: Sequence[Table], calls: Sequence[MacroCall], past: Container[str]
) -> Mapping[str, Wanted]:
    """What the query reads of which tables: asked of a database whose tables are empty."""
    if not wanted:
        return {}
    with duckdb.connect(":memory:") as connection:
        _set(connection)
        for table in wanted:
            create_table(arrow, connection, table, ())
        create_macros(connection, calls)
        read = columns_of(duckdb, connection, text, wanted)
    # Who asks which tables there are, and how large they are, does not want all of the past for it.
    identifiers = _identifiers(text)
    return {name: columns for name, columns in read.items() if name not in past or name in identifiers}


def _lock(connection: Any) -> None:
    _set(connection)
    connection.execute("SET lock_configuration = true")


def _set(connection: Any) -> None:
    for name, value in _SETTINGS.items():
        connection.execute(f"SET {name} = {value}")
    connection.execute(f"SET memory_limit = '{memory_limit() >> 20}MiB'")


def memory_limit() -> int:
    """Bytes that the tables of a query and its work may take; what needs more is refused."""
    return min(_MOST_MEMORY, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2)


def _statement(duckdb: Any, connection: Any, text: str) -> Any:
    statements = connection.extract_statements(text)
    if len(statements) != 1:
        raise UsageError(f"sql: one statement is needed, not {len(statements)}", hint='sql "SELECT … FROM partitions"')
    kind = statements[0].type.name
    if kind not in _READ_ONLY:
        raise UsageError(f"sql: {kind} changes something, or is not for here: only SELECT is", hint="`man sql`")
    return statements[0]


def _rows_of(session: Session, table: Table, read: Mapping[str, Wanted]) -> Iterable[Row]:
    """A table's rows; none of a table that is not read."""
    if table.name not in read:
        return ()
    image = image_for(session, table.name, table.parts)
    return told_rows(session, table, table.rows(session, image, read[table.name]))


def _rows(duckdb: Any, connection: Any, reader: Any, text: str, catalog: Catalog) -> Iterator[dict[str, Any]]:
    """By way of Arrow: DuckDB's own rows need one more package for times with a zone."""
    stream = iter(reader)
    try:
        while (batch := _waited(connection, lambda: next(stream, None))) is not None:
            if batch.nbytes > _MOST_BYTES:
                size = f"{batch.num_rows} rows of this answer take {batch.nbytes >> 20} MiB"
                hint = "shorten its texts: substr(column, 1, 1000)"
                raise CommandError(f"sql: {size}, and {_MOST_BYTES >> 20} may be printed", hint=hint)
            names = unique(batch.schema.names)
            for values in zip(*(column.to_pylist(maps_as_pydicts="lossy") for column in batch.columns), strict=True):
                yield dict(zip(names, map(plain, values), strict=True))
    except duckdb.Error as error:
        raise _failed(duckdb, error, text, catalog) from None
    finally:
        _close(duckdb, connection)


def _waited(connection: Any, work: Callable[[], Any]) -> Any:
    """What the work gives, done beside the main thread: in DuckDB's own code neither Ctrl-C nor a deadline is heard.

    Some of its functions (``repeat``) hear no interrupt either, and are left to end by themselves.
    """
    from kshell.client.concurrency import start

    future = start(work)
    try:
        while not future.done():
            with contextlib.suppress(TimeoutError):
                future.result(_LOOK)
        return future.result()
    except BaseException:
        if not future.done():
            connection.interrupt()
            with contextlib.suppress(Exception):
                future.result(_PATIENCE)
        raise


def _close(duckdb: Any, connection: Any) -> None:
    """Close it; what still runs in it closes it when that ends."""
    with contextlib.suppress(duckdb.Error):
        connection.close()


def _reader(connection: Any, statement: Any) -> Any:
    """The result as a stream of record batches; the method's name changed with DuckDB 1.4."""
    import warnings

    cursor = connection.execute(statement)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that this makes a copy of the rows
        reader = getattr(cursor, "to_arrow_reader", None) or cursor.fetch_record_batch
        return reader(_ROWS)


def _failed(duckdb: Any, error: Exception, text: str, catalog: Catalog) -> KshellError:
    """DuckDB's first line and its advice; where it points at the query, so does the error."""
    message, *rest = str(error).strip().splitlines()
    missing = _NO_TABLE.match(message)
    if missing is not None:  # DuckDB knows only the tables that the query names
        advice = did_you_mean(missing[1].lower(), catalog.names()) or ""
    else:
        advice = next((line for line in rest if line.startswith(("Did you mean", "Candidate"))), "")
    hint = "; ".join(filter(None, (advice, f"tables: {', '.join(catalog.state)}; `help sql` has those of the past")))
    if isinstance(error, duckdb.OutOfMemoryException):
        limit = f"a query may take {memory_limit() >> 20} MiB"
        return CommandError(f"sql: {limit}, and this one needs more", hint="name the columns that you need, not *")
    if not isinstance(error, duckdb.ParserException | duckdb.BinderException | duckdb.CatalogException):
        return CommandError(f"sql: {message}", hint=hint)
    at = _place(rest, text)
    if at is None:
        return UsageError(f"sql: {message}", hint=hint)
    return ExpressionError(f"sql: {message}", text, at, hint=hint)


def _place(lines: list[str], text: str) -> int | None:
    """Where in the query DuckDB's caret points: ``LINE 1: …`` and the line below it."""
    for line, mark in pairwise(lines):
        prefix = _LINE.match(line)
        if prefix is not None and set(mark.strip()) == {"^"}:
            around, column = line[prefix.end() :], mark.index("^") - prefix.end()
            part = around.removesuffix("...")
            if part.startswith("..."):
                part, column = part[3:], column - 3
            start = text.find(part)
            return start + column if start >= 0 and "\n" not in text else None
    return None


def unique(names: list[str]) -> tuple[str, ...]:
    """The names of columns, those that come twice with a number: rows are objects."""
    out: list[str] = []
    for name in names:
        candidate, number = name, 2
        while candidate in out:
            candidate, number = f"{name}_{number}", number + 1
        out.append(candidate)
    return tuple(out)


def plain(value: Any) -> Any:
    """A value of DuckDB's as one that JSON knows: whole decimals are exact integers, times ISO-8601 in UTC."""
    import datetime
    import decimal

    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, decimal.Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, datetime.datetime):
        moment = value if value.tzinfo is None else value.astimezone(datetime.UTC).replace(tzinfo=None)
        return moment.isoformat(timespec="milliseconds") + "Z"
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if hasattr(value, "nanoseconds"):  # an interval: months have no length
        return {name: getattr(value, name) for name in ("months", "days", "nanoseconds")}
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return str(value)
