"""Records of the log with what they touch, and what there is to say once all were read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kshell.commands.base.result import Result
from kshell.errors import EXIT_DATA, DataError
from kshell.metadata.image import EMPTY
from kshell.metadata.tracking import Tracker
from kshell.metadata.values import Origin, Place
from kshell.sources.records import LogRecord, Records
from kshell.tree.paths import Segments
from kshell.tree.touched import paths

if TYPE_CHECKING:
    from kshell.session import Session


def with_paths(
    session: Session, records: Records, start: int, *, needed: bool
) -> Iterator[tuple[LogRecord, list[Segments]]]:
    """Each record with the places of the tree that it touches. Raises DataError where what came before is not known.

    Unless they are ``needed``: then places that only an image can tell are left out.

    ``records`` must hold every record from ``start`` on. Those before the oldest snapshot that the log joins are told
    by what that snapshot knows: their topics have names only if they are still there.
    """
    try:
        tracker, again_at = _tracker(session, start)
    except DataError:
        if needed:
            raise
        tracker, again_at = Tracker(EMPTY), None
    for record in records:
        if again_at is not None and record.offset >= again_at:
            tracker, again_at = _tracker(session, again_at)[0], None
        decoded = record.decoded
        place = Place(record.file, record.position, record.epoch, False)
        touched = tracker.touched(
            decoded, Origin(record.offset, record.timestamp, decoded.name, decoded.version, place)
        )
        yield record, [path for touch in touched for path in paths(touch)]


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
    return Tracker(session.reshape(point=str(begin - 1)).image), begin if begin > max(start, first) else None


def conclude(session: Session, records: Records, result: Result) -> None:
    """After the last record: what a person should know, and damage. Raises DataError for that."""
    session.remarks[:] = []
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
