"""``dump``: the records of the log, or of a snapshot, as they are."""

from __future__ import annotations

from collections.abc import Iterator

from kshell.engine.arguments import count
from kshell.engine.declaration import Arguments, Command, Example, Flag, Task
from kshell.engine.result import Result, Row, Rows, TextRows
from kshell.engine.session import Session
from kshell.engine.walk import one_line
from kshell.history.records import (
    COLUMNS,
    SNAPSHOT_FLAG,
    TYPE_FLAG,
    before_log,
    conclude,
    notes_on_start,
    only,
    record_row,
    snapshot_to_read,
    when,
)
from kshell.json_text import to_json
from kshell.metadata.record_text import RecordTexts
from kshell.sources.directory.records import DecodedRecords, log_records, snapshot_records


class DumpArguments(Arguments):
    """Arguments and options of ``dump``."""

    type: list[str] | None
    to: int | None
    snapshot: str | None


def run(session: Session, args: DumpArguments) -> Result:
    """Return the records as rows that are read while they are printed; damage is reported after the last of them."""
    records = _records(session, args)
    result = Rows(columns=COLUMNS, rows=(), style="lines", line=_line, hanging=7)
    result.rows = _Dumped(session, records, result)
    return result


def _records(session: Session, args: DumpArguments) -> DecodedRecords:
    listing = session.source.listing()
    start = vars(args)["from"] or 0  # args.from is no valid Python
    if args.to is not None and args.to < start:
        session.remarks.append(f"--from {start} is after --to {args.to}: no record is between them")
    wanted = only(frozenset(args.type)) if args.type else None
    snapshot = snapshot_to_read(listing, args.snapshot)
    if snapshot is not None:
        return snapshot_records(listing, snapshot, start=start, until=args.to, wanted=wanted, progress=session.progress)
    limits = [limit for limit in (args.to, session.until) if limit is not None]
    until = min(limits) if limits else None
    if until is not None and start <= until and (deleted := before_log(session, until)) is not None:
        session.remarks.append(deleted)
    return log_records(session.source, start=start, until=until, wanted=wanted, progress=session.progress)


class _Dumped(TextRows):
    """The records, iterated as rows or as lines of JSON; the latter mostly without making a row, which is faster."""

    def __init__(self, session: Session, records: DecodedRecords, result: Rows) -> None:
        self._session = session
        self._records = records
        self._result = result

    def __iter__(self) -> Iterator[Row]:
        for record in self._records:
            yield record_row(self._session, record)
        self._conclude()

    def json_lines(self) -> Iterator[str]:
        """One JSON object per record: metadata records by :class:`RecordTexts`, control records from their rows."""
        session = self._session
        yield from self._records.json_lines(
            RecordTexts(session.redaction), lambda record: to_json(record_row(session, record)) + "\n"
        )
        self._conclude()

    def _conclude(self) -> None:
        conclude(self._session, self._records, self._result)
        self._session.remarks += notes_on_start(self._records, "--from")


def _line(row: Row) -> str:
    return f"{row['offset']:>6} {row['epoch']:>3} {when(row)} {row['type']} v{row['version']} {one_line(row['data'])}"


COMMAND = Command(
    name="dump",
    task=Task.LOG,
    summary="the records of the log, or of a snapshot",
    run=run,
    arguments=DumpArguments,
    flags=(
        TYPE_FLAG,
        Flag(("--from",), "begin at that offset", metavar="OFFSET", convert=count),
        Flag(("--to",), "end with that offset", metavar="OFFSET", convert=count),
        SNAPSHOT_FLAG,
    ),
    examples=(
        Example("dump --type TOPIC_RECORD", "every topic that was ever created"),
        Example("dump --from 100 --to 110 -o jsonl", "some records, one JSON object per line"),
        Example("dump --snapshot 159-1 --type PARTITION_RECORD", "the partitions in a snapshot"),
        Example("dump --type LEADER_CHANGE -o yaml", "control records, too"),
    ),
    description=(
        "Prints what the log holds, oldest first, control records included; data has the fields of Kafka's records, as"
        " kafka-dump-log prints them. Types may be written without _RECORD, in any case."
        " No image is made, so a log whose beginning is missing can be dumped as well. Where there are only snapshots,"
        " the newest one is dumped. In a snapshot offsets count within the file: they are not the log's."
        " Damaged batches are left out; records that break their declaration are shown as bytes, with the reason. Both"
        " are named at the end (exit code 4)."
    ),
)
