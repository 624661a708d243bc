"""``when``: the periods of the log in which at least one row of a table fulfilled a condition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kshell.cluster.min_isr_flag import MIN_ISR_DEFAULT, MinIsrArguments
from kshell.commands.as_of import complete_point
from kshell.commands.why import since, until
from kshell.engine.declaration import CONDITION, Arg, Command, Example, Flag, Task
from kshell.engine.result import Column, Result, Row, Rows, typed
from kshell.errors import EXIT_FINDING, EXIT_OK, CommandError, UsageError, did_you_mean
from kshell.history.records import without_log
from kshell.history.story import LogRevisions, story_of
from kshell.sources.points import Since
from kshell.tables.declaration import Table, tables
from kshell.tables.row_counts import MatchRange, Question, match_ranges
from kshell.tables.selection import Conditions
from kshell.tree.image import format_duration, iso

if TYPE_CHECKING:
    from kshell.engine.session import Session

COLUMNS = typed(
    "fromOffset:int64 fromTime:timestamp fromTimeMs:int64 toOffset:int64 toTime:timestamp toTimeMs:int64 rows:int64"
)
_TEXT_COLUMNS = (
    Column("fromOffset", spare=2),
    Column("fromTime", spare=-1),
    Column("toOffset", spare=2),
    Column("toTime", spare=1),
    Column("lasted"),
    Column("rows"),
    Column("fromTimeMs", wide=True),
    Column("toTimeMs", wide=True),
)


class WhenArguments(MinIsrArguments):
    """Arguments and options of ``when``."""

    table: str
    where: str | None
    since: str | None
    until: str | None


def run(session: Session, args: WhenArguments) -> Result:
    """Return one row per period; exit code 1 if there is none.

    Raises:
        CommandError: the log cannot be replayed from its start.
        SourceError: the source does not report the log.
        UsageError: there is no such table, or the condition is missing or wrong.
    """
    table = _table(args.table)
    if args.where is None:
        raise UsageError("when: a condition is missing", hint=f"when {table.name} --where 'EXPR'; `help where`")
    where = Conditions(table.fields)(args.where)
    session.source.require_log("when")
    then = until(session, args.until)
    story = story_of(then, "when")
    chronicle = story.chronicle
    if chronicle is None or without_log(then) is not None:
        raise CommandError(f"there is no past to search: {story.reach}", hint=f"`{table.name}` shows the present")
    question = Question(then, table, where, chronicle.history, chronicle.until, args.min_isr_default)
    periods = list(_rows(match_ranges(question), chronicle, since(session, story, args.since)))
    if not periods:
        session.remarks.append(f"no row of {table.name} fulfilled that {_span(then, args)}: {story.reach}")
    elif periods[0]["fromOffset"] < chronicle.start:
        session.remarks.append(f"{story.reach}; the first period may have started earlier")
    result = Rows(COLUMNS, periods, exit_code=EXIT_OK if periods else EXIT_FINDING)
    end = story.end()[1]
    result.readable = Rows(_TEXT_COLUMNS, [_format_row(row, end) for row in periods])
    if then is not session:
        session.remarks += then.problems()
        result.exit_code = max(result.exit_code, then.exit_code())
    return result


def _span(session: Session, args: WhenArguments) -> str:
    """Return which part of the log was searched, as a phrase."""
    spans = [] if args.since is None else [f"since {args.since}"]
    if session.loaded.damage:
        spans.append(f"up to offset {session.loaded.last_offset}, after which the log cannot be read")
    elif session.until is not None:
        spans.append(f"up to offset {min(session.until, session.loaded.last_offset)}")
    return " ".join(spans) or "at any offset"


def _table(name: str) -> Table:
    known_tables = tables()
    if name not in known_tables:
        hint = did_you_mean(name, known_tables, f"tables: {', '.join(known_tables)}")
        raise UsageError(f"when: there is no table {name}", hint=hint)
    return known_tables[name]


def _rows(periods: Iterable[MatchRange], chronicle: LogRevisions, first: Since | None) -> Iterator[Row]:
    for period in periods:
        row = _row(period, chronicle)
        if first is None or period.end is None or first.reaches(period.end, row["toTimeMs"]):
            yield row


def _row(period: MatchRange, chronicle: LogRevisions) -> Row:
    log = chronicle.history.log
    start, end = period.start, period.end
    started = log.timestamp(start) if start >= log.start else chronicle.history.base.provenance.timestamp
    ended = None if end is None else log.timestamp(end)
    return {
        "fromOffset": start,
        "fromTime": iso(started),
        "fromTimeMs": started,
        "toOffset": end,
        "toTime": None if ended is None else iso(ended),
        "toTimeMs": ended,
        "rows": period.rows,
    }


def _format_row(row: Row, end: int) -> Row:
    """A row for text output, with how long the period lasted; ``end`` (ms) is the end of one that is still open."""
    is_open = row["toOffset"] is None
    lasted = format_duration(max((end if is_open else row["toTimeMs"]) - row["fromTimeMs"], 0))
    return {**row, "toTime": "still" if is_open else row["toTime"], "lasted": f"{lasted} so far" if is_open else lasted}


def _complete_table(session: Session, typed: str) -> Iterable[str]:
    return [name for name in tables() if name.startswith(typed)]


def _complete_where(words: list[str], typed: str) -> Iterable[str]:
    table = next((table for name, table in tables().items() if name in words), None)
    return [] if table is None else Conditions(table.fields).complete(typed)


COMMAND = Command(
    name="when",
    task=Task.PAST,
    summary="the periods in which a row of a table fulfilled a condition",
    run=run,
    arguments=WhenArguments,
    args=(Arg("table", "partitions, topics, brokers, configs, acls, …", complete=_complete_table),),
    flags=(
        Flag(
            ("--where",),
            "the condition, as for the table's own command",
            metavar=CONDITION,
            once=True,
            after=_complete_where,
        ),
        Flag(("--since",), "periods that last beyond it", metavar="POINT", complete=complete_point, dashed=True),
        Flag(("--until",), "up to that point", metavar="POINT", complete=complete_point, dashed=True),
        MIN_ISR_DEFAULT,
    ),
    examples=(
        Example("when partitions --where 'leader == -1'", "when there was a partition without a leader"),
        Example("when brokers --where fenced --since 150", "when a broker was fenced, from a point on"),
        Example("when configs --where \"name == 'retention.ms'\"", "when that config was set anywhere"),
        Example(
            "when acls --where 'operation == ALL and principal == \"User:*\"'", "whether everybody could do all", 1
        ),
    ),
    description=(
        "One row per period: it begins with the record at fromOffset, and after the record at toOffset no row fulfilled"
        " the condition any more (null, in text `still`: it lasts, or lasted at --until). Text says how long it lasted;"
        " of one that goes on, up to the last record. rows is the highest number of rows at one offset of the period;"
        " `partitions --where … --as-of OFFSET` shows which they were. What holds when the log starts, from a snapshot,"
        " begins at the snapshot's last offset. Records of a metadata transaction take effect at its end. The tables"
        " are those of `sql`: the rows and conditions of `partitions`, `topics`, `brokers` and so on, as the log has"
        " them. min.insync.replicas that only a server.properties has is unknown, or --min-isr-default. --since leaves"
        " out periods that ended before."
    ),
    needs_records=True,
    exit_1_when="no row fulfilled the condition at any offset, or since --since",
)
