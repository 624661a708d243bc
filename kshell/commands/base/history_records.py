"""Records of the log as rows, with what they touch, and what there is to say once all were read.

``dump``, ``log`` and ``follow`` have the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kshell.commands.base.result import Result, Row
from kshell.commands.base.tables import Field, columns
from kshell.commands.base.walk import one_line
from kshell.errors import EXIT_DATA, DataError, UsageError
from kshell.metadata.image import EMPTY
from kshell.metadata.tracking import Tracker
from kshell.metadata.values import Origin, Place
from kshell.sources.records import LogRecord, Records, log_records
from kshell.tree.concerns import Concern
from kshell.tree.globs import is_glob, unescape
from kshell.tree.image import iso
from kshell.tree.paths import Segments, join, split
from kshell.tree.touched import paths

if TYPE_CHECKING:
    from kshell.session import Session

FIELDS = (
    Field("offset", "int64", "of the record"),
    Field("epoch", "int32", "the leader's, when it was written"),
    Field("timestampMs", "int64", "when, in milliseconds since 1970"),
    Field("type", "string", "the record's"),
    Field("version", "int16", "of the record's type"),
    Field("data", "json", "the record's fields, as kafka-dump-log prints them"),
)
COLUMNS = columns(FIELDS)
NO_OP = "NO_OP_RECORD"


def row_of(session: Session, record: LogRecord) -> Row:
    """A record as the row of an answer, secrets hidden."""
    decoded = record.decoded
    return {
        "offset": record.offset,
        "epoch": record.epoch,
        "timestampMs": record.timestamp,
        "type": decoded.name,
        "version": decoded.version,
        "data": session.redaction.record(decoded),
    }


def row_at(session: Session, record: LogRecord, path: Segments | None) -> Row:
    """The same with where the tree shows what the record touches, for people."""
    return {**row_of(session, record), "path": None if path is None else join(path)}


def when(row: Row) -> str:
    """A row's time for people."""
    return str(iso(row["timestampMs"]) or row["timestampMs"])


def what(row: Row) -> str:
    """A row's type, path and data for people."""
    where = f" {row['path']}" if row["path"] else ""
    return f"{row['type']}{where} {one_line(row['data'])}"


def place_of(session: Session, path: str | None, command: str, hint: str) -> Segments | None:
    """The one place of the tree that a command was asked about. Raises UsageError for a glob, with the hint."""
    if path is None:
        return None
    if is_glob(path):
        raise UsageError(f"{path}: {command} takes one path, without a glob", hint=hint)
    return split(unescape(path), session.cwd)


def with_paths(
    session: Session, records: Records, start: int, concern: Concern | None = None
) -> Iterator[tuple[LogRecord, list[Segments]]]:
    """Each record with the places of the tree that it touches. Raises DataError where what came before is not known.

    Without a ``concern``, places that only an image can tell are left out then.

    ``records`` must hold every record from ``start`` on, or every one that ``concern`` says yes to. Those before the
    oldest snapshot that the log joins are told by what that snapshot knows: their topics have names only if they are
    still there.
    """
    try:
        tracker, again_at = _tracker(session, start)
    except DataError:
        if concern is not None:
            raise
        tracker, again_at = Tracker(EMPTY), None
    if concern is not None:
        concern.tracker = tracker if again_at is None else None
    for record in records:
        if again_at is not None and record.offset >= again_at:
            tracker, again_at = _tracker(session, again_at)[0], None
            if concern is not None:
                concern.tracker = tracker
        yield record, touched_paths(tracker, record)


def touched_paths(tracker: Tracker, record: LogRecord) -> list[Segments]:
    """The places of the tree that the next record touches, the one that people look at first."""
    decoded = record.decoded
    place = Place(record.file, record.position, record.epoch, False)
    touched = tracker.touched(decoded, Origin(record.offset, record.timestamp, decoded.name, decoded.version, place))
    return [path for touch in touched for path in paths(touch)]


def _tracker(session: Session, start: int) -> tuple[Tracker, int | None]:
    """A tracker for records from ``start`` on, and where it must be made anew."""
    listing = session.source.listing(whole=True)
    first = listing.segments[0].base_offset or 0 if listing.segments else 0
    if max(start, first) <= listing.unseen:
        return Tracker(EMPTY), None
    joined = next((file.end_offset for file in listing.snapshots if file.end_offset and file.end_offset >= first), None)
    if joined is None and listing.directory is None:
        return Tracker(EMPTY), None  # a lone segment: names of what came before are not known
    begin = max(start, 0 if first <= listing.unseen else joined or first)
    before = session.reshape(point=str(begin - 1)).loaded
    tracker = Tracker(before.image)
    if before.open_transaction is not None:  # left out of the image, and yet what comes next builds on it
        for record in log_records(session.source, start=before.open_transaction, until=begin - 1):
            touched_paths(tracker, record)
    return tracker, begin if begin > max(start, first) else None


def conclude(session: Session, records: Records, result: Result) -> None:
    """After the last record: what a person should know, and damage. Raises DataError for that."""
    session.remarks[:] = []
    session.remarks += records.notes
    if records.torn is not None:
        path, torn = records.torn
        session.remarks.append(f"{path}: byte {torn.position}: torn tail ({torn.reason}); normal while a server writes")
    if records.first_malformed is not None:
        # Not raised: a format that prints only what it has whole would then show nothing.
        more = f" (and {records.malformed - 1} more malformed)" if records.malformed > 1 else ""
        session.remarks.append(records.first_malformed + more)
        result.exit_code = EXIT_DATA
    if records.damage:
        raise _all_of(records.damage)


def _all_of(damage: list[DataError]) -> DataError:
    """One error for all damage that was met."""
    if len(damage) == 1:
        return damage[0]
    return DataError("\n".join(error.message for error in damage), hint=damage[0].hint)
