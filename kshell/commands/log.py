"""``log``: the records that touched a part of the tree, or with ``--stat`` what takes up the log's space.

The path of a record depends on the records before it, so with a PATH more of the log is read than is shown.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from kshell.commands.as_of import complete_point
from kshell.engine.arguments import count, regex
from kshell.engine.declaration import Arg, Arguments, Command, Example, Flag, Task
from kshell.engine.predicates import FAIL_IF_ANY, fail_if_any
from kshell.engine.result import Drawing, Result, Row, Rows
from kshell.engine.session import Session
from kshell.engine.walk import names_and_values, one_line
from kshell.errors import DataError, UsageError
from kshell.history.few_paths import with_paths_of_few
from kshell.history.log_weight import FIELDS as WEIGHT_FIELDS
from kshell.history.log_weight import LogWeight, draw, topic_names
from kshell.history.records import (
    LOG_FIELDS,
    NO_OP,
    TYPE_FLAG,
    PathRecordFilter,
    RecordsWithPaths,
    Touched,
    before_log,
    conclude,
    first_snapshot_end,
    log_start,
    notes_on_start,
    only,
    place_of,
    record_row_with_path,
    summary,
    when,
    with_listing,
    with_paths,
    without_log,
)
from kshell.metadata.readable import readable
from kshell.metadata.records import decode_value
from kshell.protocol.batches import Batch, RawRecord
from kshell.sources.directory.files import Listing
from kshell.sources.directory.records import DecodedRecords, LogRecord, Wanted, log_records
from kshell.sources.points import Since
from kshell.tables.declaration import columns
from kshell.tables.selection import where_flag
from kshell.tree.paths import is_under, resolve
from kshell.tree.paths import walk as tree_node

if TYPE_CHECKING:
    from kshell.tables.where import Predicate

_COLUMNS = columns(LOG_FIELDS)
_NO_OP_HEAD = b"\x01\x14\x00"


class LogArguments(Arguments):
    """Arguments and options of ``log``."""

    path: str | None
    since: str | None
    until: str | None
    type: list[str] | None
    grep: re.Pattern[str] | None
    where: Predicate | None
    noop: bool
    newest_first: bool
    count: int | None
    stat: bool
    fail_if_any: bool


def run(session: Session, args: LogArguments) -> Result:
    """Return the matching records as rows that are read while printed (all at once for ``--newest-first``)."""
    if args.stat:
        return _statistics(session, args)
    search = _Search(session, args)
    result = Rows(_COLUMNS, (), "lines", line=_line, hanging=7)
    result.rows = search.rows(result, named=False)
    people = Rows(_COLUMNS, (), "lines", line=_line, hanging=7)
    people.rows = search.rows(people, named=True)
    result.readable = people
    if args.fail_if_any:
        fail_if_any(result, args.count, "--count")
    return result


def _statistics(session: Session, args: LogArguments) -> Result:
    """Count the records instead of showing them. Raises UsageError for an option that chooses single records."""
    alone: dict[str, object] = {"PATH": args.path, "--grep": args.grep, "--where": args.where, "--count": args.count}
    alone |= {"--newest-first": args.newest_first or None, "--fail-if-any": args.fail_if_any or None}
    conflicts = [name for name, value in alone.items() if value is not None]
    if conflicts:
        hint = "`--since`, `--until` and `--type` choose what is counted"
        raise UsageError(f"log: --stat counts records and shows none, so it takes no {conflicts[0]}", hint=hint)
    since, until = _bounds(session, args)
    records = log_records(session.source, until=until, progress=session.progress)
    weight = LogWeight(_names_before(session), since, until, frozenset(args.type or ()))

    def count_batch(batch: Batch, file: str) -> Iterator[None]:
        weight.count(batch)
        yield

    deque(records.each(count_batch), maxlen=0)
    result = Rows(columns(WEIGHT_FIELDS), list(weight.rows()))
    plain, timezone = os.environ.get("TERM") == "dumb", session.settings.get("timezone") or "UTC"
    result.readable = Drawing(lambda width: draw(weight, width, plain=plain, timezone=timezone))
    conclude(session, records, result)
    if (missing := without_log(session) or before_log(session, until)) is not None:
        session.remarks.append(missing)
    return result


def _names_before(session: Session) -> dict[bytes, str]:
    """Names by topic id of topics whose creation is not in the log: from the first snapshot after the log's start."""

    def names(listing: Listing) -> dict[bytes, str]:
        end = first_snapshot_end(listing) if log_start(listing) else None
        return {} if end is None else topic_names(session.reshape(point=str(end - 1)).image)

    return with_listing(session, names)


def _bounds(session: Session, args: LogArguments) -> tuple[Since, int | None]:
    """The start point, and the offset of the last record (``None``: no end); a point shown by the session limits it."""
    ends = [] if args.until is None else [_offset(session, args.until)]
    ends += [] if session.until is None else [session.until]
    return _since(session, args.since), min(ends) if ends else None


class _Search:
    """The conditions of one call of ``log``; :meth:`rows` reads the records and yields those that meet all of them."""

    def __init__(self, session: Session, args: LogArguments) -> None:
        self._session = session
        self._place = place_of(session, args.path, "log", "ask for the directory around it")
        self._types = frozenset(args.type or ())
        self._grep: Callable[[str], object] | None = args.grep.search if args.grep else None
        self._where: Callable[[Row], bool] | None = args.where
        self._noop = args.noop or NO_OP in self._types
        self._newest_first, self._count = args.newest_first, args.count
        self._since, self._until = _bounds(session, args)

    def rows(self, result: Rows, *, named: bool) -> Iterator[Row]:
        """Rows of matching records; ``named``: find the path that each touches, which only text output shows."""
        session = self._session
        # Of the last ones, paths and changes are found only after it is known which those are.
        is_end_first = named and self._newest_first and self._place is None and self._count is not None
        records, matches = self._matching(named=named and not is_end_first)
        if is_end_first:
            last = deque((record.offset for record, _ in matches if self._is_meant(record)), self._count)
            matches = self._matching(named=True, first=last[0])[1] if last else iter(())
        if self._newest_first:
            rows = reversed(deque(self._rows(matches), self._count))
            self._finish(records, result)
        else:
            rows = self._rows(matches)
        number = -1
        for number, row in enumerate(rows):
            if number == self._count:
                return
            yield row
        if not self._newest_first:
            self._finish(records, result)
        if number < 0 and self._count != 0:
            self._demand_path()
            session.remarks += self._why_nothing(records)

    def _demand_path(self) -> None:
        """Check that the path exists or once existed, as no record was found for it.

        Raises:
            NoSuchPathError: there is nothing now, and no record of the whole log ever touched it.
        """
        session, place = self._session, self._place
        if place is None:
            return
        with suppress(DataError):  # without an image or the whole log, nothing proves that the path never existed
            if tree_node(session.root, place) is not None:
                return
            concern = PathRecordFilter(place)
            records = log_records(
                session.source,
                until=session.until,
                wanted=concern,
                select=concern.select,
                progress=session.progress,
            )
            past = with_paths(session, records, 0, concern)
            if not any(is_under(change.path, place) for _, touched in past for change in touched):
                resolve(session.root, place)

    def _why_nothing(self, records: DecodedRecords) -> list[str]:
        """A sentence for an answer without a record, so that it is not taken for one that was not given."""
        since, until = self._since, self._until
        if (missing := without_log(self._session)) is not None:
            return [missing]
        if (before := before_log(self._session, until)) is not None:
            return [before]
        if since.last_ms is not None:
            return []  # said already: no record is newer than the point of --since
        if until is not None and since.offset > until:
            last = "--until" if until != self._session.until else "the point in time that is shown"
            return [f"--since (offset {since.offset}) is after {last} (offset {until}): no record is between them"]
        if ended := notes_on_start(records, f"--since (offset {since.offset})"):
            return ended
        is_chosen = self._noop or self._types or self._place is not None or self._grep or self._where
        return ["no record matches" if is_chosen else "no record, or NoOps alone: --noop shows them"]

    def _finish(self, records: DecodedRecords, result: Rows) -> None:
        conclude(self._session, records, result)

    def _wanted(self) -> Wanted | None:
        if self._types:
            return only(self._types)
        return None if self._noop else _not_no_op

    def _matching(self, *, named: bool, first: int = 0) -> tuple[DecodedRecords, RecordsWithPaths]:
        """Return what reads the log, and the records that meet the conditions on type and time.

        Those before offset ``first`` may be left out.
        """
        session, start, wanted, concern = self._session, self._since.offset, self._wanted(), None
        is_partial = bool(first or self._types or self._grep or self._where)
        if self._place is not None:
            # The path of a record depends on earlier records about the same object, so these are read as well.
            wanted = concern = PathRecordFilter(self._place)
        elif first:
            wanted = _from(first)
        elif named and not is_partial:
            wanted = None
        records = log_records(
            session.source,
            start=start,
            until=self._until,
            wanted=wanted,
            select=None if concern is None else concern.select,
            progress=session.progress,
        )
        if named and is_partial and concern is None:
            return records, with_paths_of_few(session, records, start, self._is_meant)
        matches: RecordsWithPaths = ((record, []) for record in records)
        if named or concern is not None:
            matches = with_paths(session, records, start, concern, values=named)
        return records, (match for match in matches if self._is_asked_for(match[0]))

    def _is_asked_for(self, record: LogRecord) -> bool:
        name = record.decoded.name
        if (self._types and name not in self._types) or (name == NO_OP and not self._noop):
            return False
        return self._since.includes(record.offset, record.timestamp)

    def _is_meant(self, record: LogRecord) -> bool:
        """Whether a record meets every condition but the path's. It must not be used any more."""
        has_others = self._grep is not None or self._where is not None
        return self._is_asked_for(record) and (not has_others or self._row(record, None) is not None)

    def _row(self, record: LogRecord, touched: Touched | None) -> Row | None:
        """Return a record's row if it meets the conditions on rows. The record must not be used any more."""
        row = record_row_with_path(self._session, record, touched)
        is_meant = (self._grep is None or _matches(self._grep, row)) and (self._where is None or self._where(row))
        return row if is_meant else None

    def _rows(self, matches: RecordsWithPaths) -> Iterator[Row]:
        place = self._place
        for record, touched in matches:
            near = touched if place is None else [change for change in touched if is_under(change.path, place)]
            if not (near or place is None):
                continue
            row = self._row(record, next(iter(near), None))
            if row is not None:
                yield row


def _matches(grep: Callable[[str], object], row: Row) -> bool:
    """Whether a pattern occurs in any form in which a record is shown: JSON with numbers, JSON with names, or text."""
    name, data = row["type"], row["data"]
    named = readable(name, data)
    return bool(
        grep(f"{name} {one_line(data)}")
        or grep(f"{name} {one_line(named)}")
        or grep(f"{name} {names_and_values(named)}")
    )


def _from(offset: int) -> Wanted:
    return lambda raw, _: raw.offset >= offset


def _not_no_op(raw: RawRecord, control: bool) -> bool:
    value = raw.value or b""
    return control or (value[:3] != _NO_OP_HEAD and decode_value(value).name != NO_OP)


def _since(session: Session, point: str | None) -> Since:
    """Where to begin: the start of the log if no point is given, its end for ``now``."""
    if point is None:
        return Since(0)
    since = session.since(point)
    return since if since is not None else Since(session.source.load().log_end_offset or 0)


def _offset(session: Session, point: str) -> int:
    """The offset of the last record to show; ``now`` is the last record of the log."""
    offset = session.offset_of(point)
    return offset if offset is not None else (session.source.load().log_end_offset or 1) - 1


def _line(row: Row) -> str:
    return f"{row['offset']:>6} {when(row)} {summary(row)}"


COMMAND = Command(
    name="log",
    task=Task.PAST,
    summary="the records that touched a part of the tree",
    run=run,
    arguments=LogArguments,
    args=(Arg("path", "only what concerns this part of the tree", kind="path", arity="?"),),
    flags=(
        Flag(("--since",), "begin at that point", metavar="POINT", complete=complete_point, dashed=True),
        Flag(("--until",), "end with that point", metavar="POINT", complete=complete_point, dashed=True),
        TYPE_FLAG,
        Flag(("--grep",), "only records whose type or data match (Python's)", metavar="PATTERN", convert=regex),
        where_flag(LOG_FIELDS),
        Flag(("--noop",), "NoOp records as well"),
        Flag(("-r", "--newest-first", "--reverse"), "the newest first"),
        Flag(("--count",), "that many at most", metavar="N", convert=count),
        Flag(("--stat",), "what fills the log: records and bytes by type, by topic and by hour"),
        FAIL_IF_ANY,
    ),
    examples=(
        Example("log /image/topics/byName/legacy-import", "the story of a topic"),
        Example("log /image/cluster/brokers/3 --newest-first --count 2", "what happened last to a broker"),
        Example("log /image/configs --since 160 -o jsonl", "changes of configs, for a script"),
        Example("log --type UNREGISTER_BROKER", "all records of a type"),
        Example("log --where 'data.leader == 3 and offset > 100' --count 3", "by what the records hold"),
        Example("log --grep payments --until 100", "records that mention something"),
        Example("log --type UNREGISTER_BROKER --since 200 --fail-if-any", "exit code 1 if a broker was removed since"),
        Example("log --stat", "what fills the log"),
    ),
    description=(
        "The rows are those of dump, oldest first. Text also names the path that a record touches, shows Kafka's names"
        " instead of its numbers (TOPIC for resourceType 2), and shows what the record changed (`1000 -> 2000`),"
        " otherwise what it holds. The value before comes from the records before, else from the state at the first of"
        " them (with --since, the state there). NoOp records, which change nothing, are left out unless --noop is"
        " given. A path may name something that no longer exists. Records say what changed and when, never who changed"
        " it. The history starts where the log starts: what is only in a snapshot happened before that. Records of"
        " a metadata transaction are shown where they are written; they took effect at its end, if it was not"
        " aborted.\n\n"
        "--stat counts every record, NoOps and control records, too. The bytes of a batch, header and all, are shared"
        " among its records by their size, so their sum is that of the log. Other formats have a row for each type,"
        " topic and hour."
    ),
)
