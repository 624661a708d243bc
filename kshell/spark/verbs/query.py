"""``kshell-pipeline query``: runs a SELECT on the tables of a warehouse and its views ``current_…``."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from kshell.engine.declaration import Arg, Example, Flag
from kshell.engine.result import Column, Row, Rows
from kshell.errors import CommandError, UsageError
from kshell.escape import terminal
from kshell.sources.points import Point
from kshell.spark.session import NAME
from kshell.spark.verbs import SPARK_FLAGS, Verb
from kshell.spark.verbs.warehouse.flags import OUT, WarehouseArguments, point
from kshell.spark.verbs.warehouse.opening import open_warehouse
from kshell.tables.query import plain, unique
from kshell.wording import first_of

if TYPE_CHECKING:
    import pyarrow as pa

    from kshell.spark.tables.warehouse import Warehouse

_IDENTIFIER = re.compile(r"\w+")
_INSERTS = re.compile(r"\binsert\s+(with\s+schema\s+evolution\s+)?(into|overwrite|table)\b")
_READS = ("select", "with", "values", "from", "table", "explain", "describe", "desc", "show")
_APART = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*|/\*.*?\*/""", re.DOTALL)
"""Matches strings, quoted names and comments of SQL, in which no keyword counts."""
_CONDITION = re.compile(r"\A\[(\w+)(?:\.\w+)*\] *")
_NAMED = 3
"""How many clusters a note names at most."""
_MOST = 100_000
"""How many rows an answer has at most; who needs more reads the files, or uses Spark."""


class QueryArguments(WarehouseArguments):
    """Arguments and options of ``query``."""

    sql: str
    as_of: Point | None  # type: ignore[assignment]  # parsed here; the shell's own is text


def run(args: QueryArguments) -> Rows:
    """Run one query. Raises UsageError for a mistake in it (with Spark's message), CommandError if it fails."""
    from kshell.spark.views.named import register

    statement = _APART.sub(" ", args.sql.lower())
    keywords = _IDENTIFIER.findall(statement) or [""]
    if keywords[0] not in _READS or _INSERTS.search(statement):  # WITH … and FROM … may go on with INSERT
        raise UsageError("query: only SELECT is allowed", hint=f'{NAME} query --out DIR "SELECT … FROM partitions"')
    with open_warehouse(args) as place:
        if not place.warehouse.state.step:
            raise place.warehouse.no_tables()
        place.starts_reading()
        moment = register(place.warehouse, _named_in(args.sql), args.as_of or Point())
        place.progress(0, 0, "query")
        answer = _answer(place.warehouse, args.sql)
        place.progress.stop()
        if moment.unknown:
            _note(f"nothing is known at that point of {first_of(moment.unknown, _NAMED)}: the views leave them out")
        if moment.outdated:
            whose = first_of(moment.outdated, _NAMED)
            _note(
                f"the state of {whose} is that before damage in the log, which goes on after it:"
                " the table clusters has stateOffset, and quarantine says where"
            )
        return answer


def _note(text: str) -> None:
    sys.stderr.write(f"{NAME}: note: {terminal(text)}\n")


def _named_in(sql: str) -> list[str]:
    """Return the tables and views that a query may read: all whose name is in it; for SHOW and DESCRIBE, all."""
    from kshell.spark.views.named import names

    identifiers = {identifier.lower() for identifier in _IDENTIFIER.findall(sql)}
    return names() if identifiers & {"show", "describe", "desc"} else [name for name in names() if name in identifiers]


def _answer(warehouse: Warehouse, sql: str) -> Rows:
    from pyspark.errors import AnalysisException, ParseException, PySparkException
    from pyspark.logger import PySparkLogger

    from kshell.spark.failures import of_task

    # Otherwise Spark also logs each mistake to standard error, with the stack trace of the JVM.
    PySparkLogger.getLogger("SQLQueryContextLogger").setLevel("CRITICAL")
    try:
        frame = warehouse.spark.sql(sql)
        table = frame.limit(_MOST + 1).toArrow()
    except (ParseException, AnalysisException) as error:
        raise UsageError(
            f"query: {_spark_message(error)}", hint=f"`{NAME} tables --schema` lists tables and columns"
        ) from None
    except PySparkException as error:
        raise of_task(error) or CommandError(f"query: {_spark_message(error)}") from None
    if table.num_rows > _MOST:
        raise CommandError(f"query: more than {_MOST:,} rows", hint="LIMIT, or read the files themselves")
    names = unique(frame.columns)
    return Rows(tuple(Column(name) for name in names), list(_rows(names, table)))


def _rows(names: Sequence[str], table: pa.Table) -> Iterator[Row]:
    for batch in table.to_batches():
        for values in zip(*map(_values, batch.columns), strict=True):
            yield dict(zip(names, map(plain, values), strict=True))


def _values(column: pa.Array) -> list[Any]:
    try:
        values: list[Any] = column.to_pylist(maps_as_pydicts="lossy")
    except TypeError:  # keys that are lists or structs: a map is a list of pairs
        values = column.to_pylist()
    return values


def _spark_message(error: Exception) -> str:
    """Return the first line of Spark's message, without ``[ERROR_CONDITION]`` and SQLSTATE."""
    first = str(error).strip().partition("\n")[0]
    return _CONDITION.sub("", first).partition(" SQLSTATE: ")[0]


VERB = Verb(
    name="query",
    summary="SQL (Spark's) over the tables",
    run=run,
    arguments=QueryArguments,
    args=(Arg("sql", "a SELECT; tables have their plain names"),),
    flags=(
        OUT,
        Flag(
            ("--as-of",),
            "the views current_… as of then: an offset, a time, -1d (now)",
            "POINT",
            convert=point,
            dashed=True,
        ),
        *SPARK_FLAGS,
    ),
    examples=(
        Example(
            f'{NAME} query --out tables "SELECT clusterId, count(*) FROM current_topics GROUP BY 1"',
            "topics by cluster",
        ),
        Example(
            f'{NAME} query --out tables "SELECT * FROM leadership ORDER BY gained DESC LIMIT 10" -o csv', "the busiest"
        ),
        Example(f'{NAME} query --out tables --as-of -1d "SELECT * FROM current_acls"', "as it was yesterday"),
    ),
    description="Silver tables have a row per version; the views `current_…` are the shell's tables, of all clusters.",
)
