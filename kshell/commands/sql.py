"""``sql``: run one SELECT over the tables of state and history, with DuckDB (:mod:`kshell.tables.query`)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from kshell.engine.declaration import Arg, Arguments, Command, Example, Task
from kshell.engine.predicates import FAIL_IF_ANY, fail_if_any
from kshell.engine.result import Result, Rows

if TYPE_CHECKING:
    from kshell.engine.session import Session


class SqlArguments(Arguments):
    """Arguments and options of ``sql``."""

    query: str
    fail_if_any: bool


def run(session: Session, args: SqlArguments) -> Result:
    """Return the rows of one SELECT. Raises UsageError for other statements, CommandError with DuckDB's message."""
    from kshell.history.catalog import catalog
    from kshell.tables.query import query

    answer = query(session, args.query, catalog())
    result = Rows(answer.columns, answer.rows, exit_code=answer.exit_code)
    if answer.is_plan:
        result = Rows(
            answer.columns,
            answer.rows,
            style="lines",
            line=lambda row: row[answer.columns[-1].name].rstrip("\n"),
            multiline=True,  # it is a drawing
            exit_code=answer.exit_code,
        )
    if args.fail_if_any:
        fail_if_any(result)
    return result


def complete_query(session: Session, typed: str) -> Iterable[str]:
    """Complete the last word of a query: tables after FROM and JOIN, else fields; a candidate is the whole query."""
    from kshell.history.catalog import catalog
    from kshell.tables.query import named

    catalogued = catalog()
    head, _, last = typed.rpartition(" ")
    words = head.upper().split()
    if not words:
        return ["SELECT * FROM ", "SELECT "] if not last or "SELECT".startswith(last.upper()) else []
    if words[-1] in ("FROM", "JOIN"):
        tables = [*catalogued.state, *catalogued.past]
        macros = [f"{name}(" for name in catalogued.macros]
        return [f"{head} {name}" for name in (*tables, *macros) if name.startswith(last)]
    fields = dict.fromkeys(field.name for table in named(typed, catalogued) for field in table.fields)
    mentioned = set(re.findall(r"\w+", typed.lower()))
    called = [macro for name, macro in catalogued.macros.items() if name in mentioned]
    fields |= dict.fromkeys(field.name for macro in called for field in macro.fields)
    more = ("FROM", "WHERE", "GROUP BY", "ORDER BY", "LIMIT")
    return [f"{head} {word}" for word in (*fields, *more) if word.startswith(last)]


COMMAND = Command(
    name="sql",
    task=Task.PROGRAMS,
    summary="a SELECT over the tables, run by DuckDB",
    run=run,
    arguments=SqlArguments,
    extra_words_for="query",
    args=(Arg("query", "one SELECT, in quotes", complete=complete_query),),
    flags=(FAIL_IF_ANY,),
    examples=(
        Example(
            'sql "SELECT leader, count(*) AS partitions FROM partitions GROUP BY leader ORDER BY leader"',
            "how many partitions each broker leads",
        ),
        Example(
            'sql "SELECT t.name, c.value FROM topics t LEFT JOIN configs c ON c.resourceName = t.name AND'
            " c.resourceType = 'TOPIC' AND c.name = 'retention.ms' ORDER BY ALL LIMIT 5\"",
            "topics with their retention",
        ),
        Example('sql "SELECT topic, unnest(replicas) AS broker FROM partitions" -o csv', "one row per replica"),
        Example('sql "DESCRIBE quotas"', "the columns of a table"),
        Example('sql "SELECT count(*) AS topics FROM topics_at(100)"', "how many topics there were at a point"),
        Example(
            'sql "SELECT topic, count(*) AS versions FROM history_partitions GROUP BY topic'
            ' ORDER BY versions DESC, topic"',
            "whose partitions changed most",
        ),
        Example("sql \"SELECT type, change FROM changes(160, 'now')\"", "what `diff 160 now` says, as a table"),
        Example('sql "SELECT * FROM config_changes"', "each change of a config: before and after"),
    ),
    description=(
        'The tables are those of `export`: docs/reference/tables.md has their columns, and `sql "SHOW TABLES"` their'
        " names. Each has a function that gives it at a point in time, topics_at('-1h') or partitions_at(160), and a"
        " table of versions: a row of history_topics says what was so from validFromOffset to before validToOffset;"
        " isCurrent if it lasts. changes(A, B) has the rows of `diff`, events the records of the log, config_changes"
        " what each config was before and after. A point is a number, or a text in quotes (`help points`)."
        " docs/sql.md has questions that they answer. Lists are DuckDB's lists; objects whose keys are data (configs of"
        " a topic) are maps: configs['retention.ms']. Needs the extra sql (pip install 'kraft-shell[sql]'). The query"
        " sees nothing but the tables: no files, no network, no settings. Only tables that it names are made, in"
        " memory, and of them only the columns that it reads: of a million partitions all columns take some 30 seconds,"
        " one takes 10. The tables may take half of the machine's memory, 4 GiB at the most; a query that needs more is"
        " refused. Whole decimals come out as integers, other decimals as floating-point numbers."
    ),
)
