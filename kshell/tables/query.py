"""``sql``: a query over the tables, run in a DuckDB that has nothing else and cannot reach anything else.

The database is in memory. It cannot reach files, the network, extensions or Python's variables, and its settings are
locked before the query is parsed. A query and a :class:`.Catalog` come in, a stream of rows goes out (:func:`query`).
Only tables that the query names are filled, and only with the columns that it reads: a dry run over empty tables finds
these out.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import warnings
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, repeat
from typing import TYPE_CHECKING, Any, NamedTuple

from kshell.engine.result import Column, Row
from kshell.errors import EXIT_OK, CommandError, KshellError, UsageError, did_you_mean
from kshell.extras import require
from kshell.sources.directory.source import without_collector
from kshell.tables.arrow import create_table, literal
from kshell.tables.declaration import FieldNames, Table, Type, ask_brokers_once, image_for, with_progress
from kshell.tables.macros import Catalog, MacroCall, create_macros, tables_of_calls
from kshell.tables.where_grammar import ExpressionError

if TYPE_CHECKING:
    from types import ModuleType

    from duckdb import DuckDBPyConnection, Statement

    from kshell.engine.session import Session

_ENABLED_OPTIMIZER = "unused_columns"
"""The one optimizer that stays on, as it drops unused columns. Some others depend on the contents of the tables."""

_ABOUT_TABLES = re.compile(r"(?i)duckdb_|pragma_")
"""Functions that report how large tables are: a query with one needs every column."""


def columns_of(duckdb: ModuleType, connection: Any, text: str, wanted: Sequence[Table]) -> Mapping[str, FieldNames]:
    """Return table -> the columns that a query reads (``None``: all). Tables that it does not read are missing.

    If the plan cannot be understood, every column is needed; a faulty query is reported when it is run. ``connection``
    has the tables, empty; its settings are locked here before the query is planned.
    """
    fields_by_table = {table.name: frozenset(field.name for field in table.fields) for table in wanted}
    every: Mapping[str, FieldNames] = dict.fromkeys(fields_by_table)
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
            return every  # this release of DuckDB prints plans in a form that is not understood
        return _columns_read(connection, text, fields_by_table)
    except (duckdb.Error, ValueError, KeyError):
        return every


def _columns_read(connection: Any, text: str, fields_by_table: Mapping[str, frozenset[str]]) -> dict[str, FieldNames]:
    """Return what a query reads, by its plan. Raises ValueError or KeyError for a plan that is not understood."""
    ((_, plan),) = connection.execute(f"EXPLAIN (FORMAT json) {text}").fetchall()
    columns_by_table: dict[str, FieldNames] = {}
    for name, columns in _scans(json.loads(plan)):
        before = columns_by_table.get(name, frozenset[str]())
        columns_by_table[name] = (
            None if before is None or columns is None or not columns <= fields_by_table[name] else before | columns
        )
    return columns_by_table


def _scans(plan: Any) -> Iterator[tuple[str, frozenset[str] | None]]:
    """Yield (table, columns read) for every scan in a plan, which DuckDB prints as ``memory.main.topics``."""
    waiting = list(plan) if isinstance(plan, list) else [plan]
    while waiting:
        node = waiting.pop()
        waiting += node.get("children", [])
        facts = node.get("extra_info") or {}
        if isinstance(facts, str):  # older releases of DuckDB
            raise ValueError(facts)
        if "Table" in facts:
            columns = facts.get("Projections")
            listed = [columns] if isinstance(columns, str) else columns
            # A field of a struct is printed as column.field.
            read = None if listed is None else frozenset(column.partition(".")[0] for column in listed if column)
            yield facts["Table"].rpartition(".")[2], read


_WORD_PATTERN = re.compile(r"\w+")
_LISTING = frozenset(("show", "describe", "information_schema", "duckdb_tables", "duckdb_columns"))
"""Words of a query that lists tables: it needs all of them."""
_NO_TABLE = re.compile(r'Catalog Error: Table (?:Function )?with name "?([^"\s]+)"? does not exist')
_LINE = re.compile(r"LINE \d+: ")
_PIPE = re.compile(r"(?<!\|)\|\s*[a-z][\w ./-]*$")
"""What follows a query in which ``|`` is meant as the operating system's."""
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
"""The most rows of an answer in a confined session: DuckDB's Arrow reader has all rows in memory, outside its limit."""
_READ_ONLY = ("SELECT", "EXPLAIN")
_ROWS = 1000
_LOOK = 0.1
"""Seconds between two checks whether DuckDB has an answer."""
_PATIENCE = 1.0
"""Seconds that DuckDB has to react to an interrupt."""
_MOST_BYTES = 256 << 20
"""The most bytes of a batch of rows: converted into Python's values, they take several times as much."""


class QueryResult(NamedTuple):
    """The answer to a query: its columns, rows (made while they are read), and the exit code for damage met.

    ``is_plan``: the query is an EXPLAIN, whose plan is in the last column.
    """

    columns: tuple[Column, ...]
    rows: Iterator[Row]
    exit_code: int
    is_plan: bool


def query(session: Session, text: str, catalog: Catalog) -> QueryResult:
    """Return the answer to one SELECT or EXPLAIN; only the tables that it reads are filled.

    Raises UsageError for any other or faulty SQL, CommandError if DuckDB fails, SourceError if the source lacks a
    table.
    """
    duckdb, _, arrow = require("sql", "sql", "duckdb", "numpy", "pyarrow")
    try:
        connection = duckdb.connect(":memory:")
    except duckdb.Error as error:
        raise _failed(duckdb, error, text, catalog) from None
    try:
        _lock(connection)
        statement = _statement(duckdb, connection, text)
        is_plan = statement.type.name == "EXPLAIN"
        tables = _past_first(named(text, catalog), catalog)
        pasts = sum(table.name in catalog.past for table in tables)
        sessions: dict[str, Session] = {}
        calls = tables_of_calls(duckdb, connection, session, text, catalog, sessions, pasts)
        wanted = [*tables, *(call.table for call in calls)]
        read = _read(duckdb, arrow, text, wanted, calls, catalog.past)
        ask_brokers_once(session, [table for table in wanted if table.name in read and table.parts])
        with without_collector():
            for table in wanted:
                rows = _rows_of(session, table, read)
                create_table(arrow, connection, table, rows, read.get(table.name))
        create_macros(connection, calls)
        if not is_plan:
            columns, is_cast = _waited(connection, lambda: _selected(duckdb, connection, text))
            limit = f" LIMIT {MOST_CONFINED}" if session.is_confined else ""
            if limit or is_cast:
                statement = f"SELECT {columns} FROM query({literal(text)}){limit}"
        reader = _waited(connection, lambda: _reader(connection, statement))
    except duckdb.Error as error:
        _close(duckdb, connection)
        raise _failed(duckdb, error, text, catalog) from None
    except BaseException:
        _close(duckdb, connection)
        raise
    for then in sessions.values():
        session.remark(*then.problems(), *then.notes())
    code = max((then.exit_code() for then in sessions.values()), default=EXIT_OK)
    types = [_column_type(arrow.types, field.type) for field in reader.schema]
    columns = tuple(map(Column, unique(reader.schema.names), repeat(False), types))
    return QueryResult(columns, _rows(duckdb, connection, reader, text, catalog), code, is_plan)


_WITHOUT_ARROW = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|\b(BIT|BIGNUM|TIME WITH TIME ZONE)(?=[\[\]),]|$)""")
"""Matches, in the name of a type, those that Arrow lacks (group 1), and quoted names, which are skipped."""


def _selected(duckdb: ModuleType, connection: DuckDBPyConnection, text: str) -> tuple[str, bool]:
    """Return what to select from a query, with types that Arrow lacks as text, and whether there are such types."""
    try:
        described = connection.execute(f"DESCRIBE {text}").fetchall()
    except duckdb.Error:
        return "*", False  # DESCRIBE itself, or a faulty query, which says so when it is run
    types = [(kind, _WITHOUT_ARROW.sub(lambda hit: "VARCHAR" if hit[1] else hit[0], kind)) for _, kind, *_ in described]
    names = ['"' + name.replace('"', '""') + '"' for name, *_ in described]
    casts = (
        f"CAST(#{number} AS {cast_type})" if kind != cast_type else f"#{number}"
        for number, (kind, cast_type) in enumerate(types, 1)
    )
    selected = ", ".join(f"{cast} AS {name}" for cast, name in zip(casts, names, strict=True))
    return selected, any(kind != cast_type for kind, cast_type in types)


def _column_type(kinds: ModuleType, kind: Any) -> Type | None:
    """Return the type of a column's values in JSON (:func:`plain`); ``None`` if only the values show it.

    Those are whole numbers that may be longer than 64 bits, decimals, and objects. ``kinds`` is ``pyarrow.types``.
    """
    if kinds.is_list(kind):
        below = _column_type(kinds, kind.value_type)
        return [below] if isinstance(below, str) else None
    if kinds.is_boolean(kind):
        return "boolean"
    if kinds.is_integer(kind) and not kinds.is_uint64(kind):
        return "int64"
    if kinds.is_floating(kind):
        return "float64"
    if kinds.is_nested(kind) or kinds.is_decimal(kind) or kinds.is_integer(kind) or kinds.is_null(kind):
        return None
    return None if kinds.is_interval(kind) else "string"


def named(text: str, catalog: Catalog) -> list[Table]:
    """Return the tables whose names are words of the query; all tables if it asks which there are."""
    identifiers = _identifiers(text)
    every = {**catalog.state, **catalog.past}
    if identifiers & _LISTING:
        return list(every.values())
    return [table for name, table in every.items() if name in identifiers]


def _identifiers(text: str) -> set[str]:
    return {identifier.lower() for identifier in _WORD_PATTERN.findall(text)}


def _past_first(wanted: Iterable[Table], catalog: Catalog) -> list[Table]:
    """Return the tables, those of the past first: reading them reads the whole log, which also gives the state."""
    return sorted(wanted, key=lambda table: table.name in catalog.state)


def _read(
    duckdb: ModuleType,
    arrow: ModuleType,
    text: str,
    wanted: Sequence[Table],
    calls: Sequence[MacroCall],
    past: Container[str],
) -> Mapping[str, FieldNames]:
    """Return table -> the columns that the query reads, found by planning it on empty tables."""
    if not wanted:
        return {}
    with duckdb.connect(":memory:") as connection:
        _set(connection)
        for table in wanted:
            create_table(arrow, connection, table, ())
        create_macros(connection, calls)
        read = columns_of(duckdb, connection, text, wanted)
    # A query that only lists tables or their sizes must not read the whole past for it.
    identifiers = _identifiers(text)
    return {name: columns for name, columns in read.items() if name not in past or name in identifiers}


def _lock(connection: DuckDBPyConnection) -> None:
    _set(connection)
    connection.execute("SET lock_configuration = true")


def _set(connection: DuckDBPyConnection) -> None:
    for name, value in _SETTINGS.items():
        connection.execute(f"SET {name} = {value}")
    connection.execute(f"SET memory_limit = '{memory_limit() >> 20}MiB'")


def memory_limit() -> int:
    """Return how many bytes a query and its tables may take; a query that needs more is refused."""
    return min(_MOST_MEMORY, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2)


def _statement(duckdb: ModuleType, connection: DuckDBPyConnection, text: str) -> Any:
    statements = connection.extract_statements(text)
    if len(statements) != 1:
        raise UsageError(f"sql: one statement is needed, not {len(statements)}", hint='sql "SELECT … FROM partitions"')
    kind = statements[0].type.name
    if kind == "MULTI":
        raise UsageError("sql: this is several statements in one", hint="PIVOT … ON column IN (…) is a single one")
    if kind not in _READ_ONLY:
        raise UsageError(f"sql: {kind} changes something, or is not allowed here: only SELECT is", hint="`man sql`")
    return statements[0]


def _rows_of(session: Session, table: Table, read: Mapping[str, FieldNames]) -> Iterable[Row]:
    """Return a table's rows; none if the query does not read it."""
    if table.name not in read:
        return ()
    image = image_for(session, table.name, table.parts)
    return with_progress(session, table, table.rows(session, image, read[table.name]))


def _rows(
    duckdb: ModuleType, connection: DuckDBPyConnection, reader: Any, text: str, catalog: Catalog
) -> Iterator[Row]:
    """Yield the rows, then close the connection. Arrow is used as DuckDB's own rows need another package for times."""
    stream = iter(reader)
    try:
        while (batch := _waited(connection, lambda: next(stream, None))) is not None:
            if batch.nbytes > _MOST_BYTES:
                size = f"{batch.num_rows} rows of this answer take {batch.nbytes >> 20} MiB"
                hint = "shorten its texts: substr(column, 1, 1000)"
                raise CommandError(f"sql: {size}, and {_MOST_BYTES >> 20} may be printed", hint=hint)
            names = unique(batch.schema.names)
            columns = map(_values, batch.schema.names, batch.columns)
            yield from (dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True))
    except duckdb.Error as error:
        raise _failed(duckdb, error, text, catalog) from None
    finally:
        _close(duckdb, connection)


def _values(name: str, column: Any) -> list[Any]:
    """Return a column's values as :func:`plain` gives them. Raises CommandError for one that JSON does not have."""
    try:
        return [*map(plain, column.to_pylist(maps_as_pydicts="lossy"))]
    except (OverflowError, TypeError, ValueError):  # infinity, a year that Python does not have, a list as a map's key
        hint = "cast it to text in the query: (…)::VARCHAR"
        raise CommandError(f"sql: the column {name} has a value that JSON cannot express", hint=hint) from None


def _waited(connection: DuckDBPyConnection, work: Callable[[], Any]) -> Any:
    """Run ``work`` in another thread and return its result: inside DuckDB neither Ctrl-C nor a deadline has an effect.

    Some of its functions (``repeat``) do not react to an interrupt either; their thread is left to end by itself.
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


def _close(duckdb: ModuleType, connection: DuckDBPyConnection) -> None:
    """Close the connection; a query that still runs closes it when it ends."""
    with contextlib.suppress(duckdb.Error):
        connection.close()


def _reader(connection: Any, statement: Statement | str) -> Any:
    """Run a statement and return a stream of record batches; the method's name changed with DuckDB 1.4."""
    cursor = connection.execute(statement)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the warning that this copies the rows
        reader = getattr(cursor, "to_arrow_reader", None) or cursor.fetch_record_batch
        return reader(_ROWS)


def _failed(duckdb: ModuleType, error: Exception, text: str, catalog: Catalog) -> KshellError:
    """Return the error for DuckDB's: its first line and advice, pointing into the query if DuckDB does."""
    message, *rest = str(error).strip().splitlines()
    missing = _NO_TABLE.match(message)
    if missing is not None:  # DuckDB knows only the tables that the query names
        macro = catalog.macros.get(missing[1].lower())
        points = "'-1h'" if macro is None or len(macro.parameters) == 1 else "'-1h', 'now'"
        takes = f"name a point in time: {missing[1].lower()}({points})"
        advice = takes if macro is not None else did_you_mean(missing[1].lower(), catalog.names()) or ""
    else:
        advice = next((line for line in rest if line.startswith(("Did you mean", "Candidate"))), "")
    if _PIPE.search(text):
        advice = f"a line that begins with SELECT is all SQL: `sql 'SELECT …' | PROGRAM` pipes; {advice}".rstrip("; ")
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
    """Return the position in the query that DuckDB's caret, below ``LINE 1: …``, points at; ``None`` for none."""
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
    """Make column names unique, as rows are objects: a repeated name gets a number."""
    out: list[str] = []
    for name in names:
        candidate, number = name, 2
        while candidate in out:
            candidate, number = f"{name}_{number}", number + 1
        out.append(candidate)
    return tuple(out)


def plain(value: object) -> Any:
    """Convert a value of DuckDB's to one that JSON has: times are ISO-8601 in UTC.

    A decimal with places after the point is a float, unless that would lose digits of a whole number; one without is an
    exact integer.
    """
    import datetime
    import decimal

    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, decimal.Decimal):
        is_whole = value == value.to_integral_value()
        has_places = not value.same_quantum(decimal.Decimal(1))
        return int(value) if is_whole and not (has_places and float(value) == value) else float(value)
    if isinstance(value, datetime.datetime):
        moment = value if value.tzinfo is None else value.astimezone(datetime.UTC).replace(tzinfo=None)
        unit = "microseconds" if moment.microsecond % 1000 else "milliseconds"
        return moment.isoformat(timespec=unit) + "Z"
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if hasattr(value, "nanoseconds"):  # an interval: a month has no fixed length
        return {name: getattr(value, name) for name in ("months", "days", "nanoseconds")}
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return str(value)
