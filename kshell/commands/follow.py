"""``follow``: print metadata records as they are committed, like ``tail -f``, with the path that each touches."""

from __future__ import annotations

import copy
from collections.abc import Iterator

from kshell.engine.arguments import count
from kshell.engine.declaration import Arg, Arguments, Command, Example, Flag, Task
from kshell.engine.result import Result, Row, Rows
from kshell.engine.session import Session
from kshell.errors import DataError, NodeError
from kshell.history.records import (
    COLUMNS,
    NO_OP,
    TYPE_FLAG,
    Touched,
    place_of,
    record_row_with_path,
    summary,
    touched_paths,
    when,
)
from kshell.metadata.image import EMPTY
from kshell.metadata.records import decode_record
from kshell.metadata.tracking import Tracker
from kshell.protocol.batches import iter_records
from kshell.sources.directory.log import FileBatch
from kshell.sources.directory.records import LogRecord
from kshell.sources.points import Since
from kshell.tree.paths import Segments, is_under, join, resolve, walk


class FollowArguments(Arguments):
    """Arguments and options of ``follow``."""

    path: str | None
    since: str | None
    type: list[str] | None
    count: int | None
    noop: bool


def run(session: Session, args: FollowArguments) -> Result:
    """Return rows without an end, or ``--count`` of them."""
    events = _Events(session, _place(session, args.path), frozenset(args.type or ()))
    rows = events.rows(None if args.since is None else session.since(args.since))
    if args.count is not None:
        rows = _some(rows, args.count)
    result = Rows(COLUMNS, rows, "lines", line=_line, hanging=7, live=True)
    if not args.noop:
        result.readable = Rows(COLUMNS, _without_noops(result), "lines", line=_line, hanging=7, live=True)
    return result


def _without_noops(result: Rows) -> Iterator[Row]:
    """Read the rows of the result, and yield those for users; a notebook retains them all on their way."""
    yield from (row for row in result if row["type"] != NO_OP)


def _place(session: Session, path: str | None) -> Segments | None:
    place = place_of(session, path, "follow", "follow the directory around it")
    if place is not None and walk(session.root, place) is None:
        resolve(session.root, place[:-1])  # only the last name may be missing yet
        session.remarks.append(f"{join(place)} is not there yet")
    return place


def _some(rows: Iterator[Row], most: int) -> Iterator[Row]:
    """Up to ``most`` rows. NoOp records between them are passed on, but not counted."""
    remaining = most
    for row in rows:
        if row["type"] != NO_OP:
            remaining -= 1
        if remaining < 0:
            return
        yield row
        if remaining == 0:
            return


class _Events:
    """Follows the log, and makes rows of records that touch ``place`` and are of ``types``, or of all if not given."""

    def __init__(self, session: Session, place: Segments | None, types: frozenset[str]) -> None:
        self._session = session
        self._place = place
        self._types = types
        self._tracker = Tracker(EMPTY, keeps_old=True)

    def rows(self, since: Since | None) -> Iterator[Row]:
        """Rows from a point on; ``None``: from after the point that the session shows, which mostly is now."""
        session = self._session
        start = None if since is None else since.offset
        if start is None and session.until is None:
            self._tracker = Tracker(session.image, keeps_old=True)
            start = session.loaded.log_end_offset
        else:
            start = (session.until or 0) + 1 if start is None else start
            self._knows_what_is_before(start)
        end = start
        try:
            for file_batch in session.source.follow(start):
                if file_batch is not None:
                    yield from self._batch(file_batch, since or Since(start or 0))
                    end = file_batch.batch.last_offset + 1
                elif session.announce is not None:
                    session.announce()
        except NodeError as error:
            if since is not None and end == start:
                raise
            ended = copy.copy(error)  # the source may raise it again
            ended.hint = f"{error.hint}; " if error.hint else ""
            ended.hint += f"`follow --since {end}` goes on after what was printed"
            raise ended from None

    def _knows_what_is_before(self, start: int) -> None:
        """Load the state before ``start``, from which the paths of later records are derived.

        Raises:
            DataError: it cannot be loaded, and a path was given, which cannot be matched without it.
        """
        if start <= 0:
            return
        try:
            before = self._session.source.load(until=start - 1, progress=self._session.progress).image
            self._tracker = Tracker(before, keeps_old=True)
        except DataError:
            if self._place is not None:
                raise

    def _batch(self, file_batch: FileBatch, since: Since) -> Iterator[Row]:
        file, batch = file_batch
        for raw in iter_records(batch):
            if raw.offset < since.offset:
                continue
            decoded = decode_record(raw, control=batch.is_control)
            record = LogRecord(raw.offset, batch.epoch, raw.timestamp, decoded, file, batch.position)
            touched = touched_paths(self._tracker, record)
            if since.includes(raw.offset, raw.timestamp) and self._is_wanted(decoded.name, touched):
                yield record_row_with_path(self._session, record, next(iter(touched), None))

    def _is_wanted(self, name: str, touched: list[Touched]) -> bool:
        if self._types and name not in self._types:
            return False
        place = self._place
        return place is None or any(is_under(change.path, place) for change in touched)


def _line(row: Row) -> str:
    return f"{when(row)} {row['offset']:>6} {summary(row)}"


COMMAND = Command(
    name="follow",
    task=Task.PAST,
    summary="the records that are committed, as they come",
    run=run,
    arguments=FollowArguments,
    args=(Arg("path", "only what concerns this part of the tree", kind="path", arity="?"),),
    flags=(
        Flag(("--since",), "begin at that offset or time, not now", metavar="POINT", dashed=True),
        TYPE_FLAG,
        Flag(("--count",), "end after so many records (NoOp records do not count)", metavar="N", convert=count),
        Flag(("--noop",), "show NoOp records in text, too"),
    ),
    examples=(
        Example("follow --since 0 --count 3", "the first records of the log; without --count it goes on for ever"),
        Example("follow /image/topics --since 0 --count 2 -o jsonl", "what happens to topics, for a script"),
    ),
    description=(
        "On a running quorum, prints every record once it is committed: once each, in the order of the log, through"
        " elections and reconnects. Ctrl-C ends it; so does --timeout (exit code 3). A quorum that has no leader, or"
        " cannot be reached, for default.api.timeout.ms (a minute) ends it with exit code 3, too; the hint then names"
        " the --since that goes on after what was printed. On a directory it prints what a server appends; records"
        " after the newest snapshot may not be committed yet, and a new leader may truncate them. The rows are those of"
        " dump. Text leaves out NoOp records (controllers write two per second, and they change nothing) unless --noop"
        " is given, and names the path that a record touches; other formats hold every"
        " record."
    ),
)
