"""The paths that some records of a log touch, without replaying all that lies between them.

Where many records lie between two that are asked for, the state before the second one is looked up in the index of the
log (:mod:`kshell.metadata.record_log`) instead.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from kshell.errors import KshellError
from kshell.history.records import Found, TouchedPaths, first_snapshot_end, log_start, touched_paths
from kshell.protocol.batches import Batch
from kshell.sources.directory.records import DecodedRecords, LogRecord

if TYPE_CHECKING:
    from kshell.engine.session import Session

_FEW = 64
"""Records that take no longer to replay than the state after them takes to be looked up."""


def with_paths_of_few(
    session: Session, records: DecodedRecords, start: int, matches: Callable[[LogRecord], bool]
) -> Found:
    """Yield the records that match, with the paths that they touch and the values there before and after them.

    ``records`` must begin at ``start``; those that cannot match need not be wanted.
    """
    between = _Between(session, records, start)
    for file, batch in records.batches():
        offsets = {record.offset for record in records.records_of(batch, file) if matches(record)}
        if not offsets:
            between.skip(batch, file)
            continue
        for record, touched in between.replayed(batch, file):
            if record.offset in offsets:
                yield record, touched
    records.finish()


class _Between:
    """Follows a log from ``start`` on: it is given all batches, and either skips one or replays it."""

    def __init__(self, session: Session, records: DecodedRecords, start: int) -> None:
        self._session = session
        self._records = records.unfiltered()
        self._start = start
        self._paths = TouchedPaths(session, start, values=True)
        self._quorum_tracker = self._paths.tracker
        """Is given every control record: what they write is in no snapshot, so no later image may know it."""
        self._skipped: list[tuple[Batch, str]] = []
        """The batches since the last one that was replayed, as long as they are few."""
        self._is_far = False
        self._can_be_far: bool | None = None

    def skip(self, batch: Batch, file: str) -> None:
        """Skip a batch, of which no record is asked for."""
        if batch.is_control:
            deque(self._touched(batch, file), maxlen=0)
        if self._is_far or batch.is_control:
            return
        self._skipped.append((batch, file))
        if sum(batch.records for batch, _ in self._skipped) <= _FEW:
            return
        if self._can_be_far is None:
            self._can_be_far = self._is_everywhere_known()
        if self._can_be_far:
            self._is_far = True
            self._skipped.clear()
        else:
            self._catch_up()

    def replayed(self, batch: Batch, file: str) -> Found:
        """Replay a batch, and yield its records with what they touch."""
        if self._is_far:
            begin = max(batch.base_offset, self._start)
            self._paths, self._is_far = TouchedPaths(self._session, begin, values=True), False
        self._catch_up()
        yield from self._touched(batch, file)

    def _catch_up(self) -> None:
        for batch, file in self._skipped:
            deque(self._touched(batch, file), maxlen=0)
        self._skipped.clear()

    def _touched(self, batch: Batch, file: str) -> Found:
        for record in self._records.records_of(batch, file):
            if self._paths.restarts_at(record.offset):
                self._quorum_tracker = self._paths.tracker
            yield record, touched_paths(self._quorum_tracker if batch.is_control else self._paths.tracker, record)

    def _is_everywhere_known(self) -> bool:
        """Whether the state before any record can be looked up: nothing is missing before it, and nothing damaged."""
        if self._paths.restart is not None:
            return False
        source = self._session.source
        try:
            listing = source.listing()
            is_begun = log_start(listing) <= listing.first_needed_offset or first_snapshot_end(listing) is not None
            return is_begun and not source.load(until=self._session.until, from_oldest=True).damage
        except KshellError:
            return False
