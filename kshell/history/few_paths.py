"""The paths that some records of a log touch, without replaying all that lies between them.

Where many records lie between two that are asked for, the state before the second one is looked up in the index of the
log (:mod:`kshell.metadata.record_log`) instead.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from kshell.errors import KshellError
from kshell.history.records import RecordsWithPaths, TouchedPaths, touched_paths
from kshell.protocol.batches import Batch
from kshell.sources.directory.records import DecodedRecords, LogRecord

if TYPE_CHECKING:
    from kshell.engine.session import Session

_FEW = 64
"""Records that are replayed rather than skipped, however fast a look-up is."""
_REPLAY_SECONDS = 30e-6
"""About what it takes to replay a record: with the time of the last look-up, it says how many are worth skipping."""


def with_paths_of_few(
    session: Session, records: DecodedRecords, start: int, matches: Callable[[LogRecord], bool]
) -> RecordsWithPaths:
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
        self._skipped: list[tuple[Batch, str]] = []
        """The batches since the last one that was replayed, unless they are too many."""
        self._skipped_records = 0
        self._most_skipped = _FEW
        self._is_behind = False
        """Whether too many records were skipped, so that the next state must be looked up."""
        self._can_look_up: bool | None = None

    def skip(self, batch: Batch, file: str) -> None:
        """Skip a batch without a requested record."""
        if batch.is_control:  # what it writes is in no snapshot, so no later state may know it
            if not self._is_behind:
                self._catch_up()
            deque(self._touched(batch, file), maxlen=0)
            return
        if self._is_behind:
            return
        self._skipped.append((batch, file))
        self._skipped_records += batch.records
        if self._skipped_records <= self._most_skipped:
            return
        if self._can_look_up is None:
            self._can_look_up = self._are_states_known()
        if self._can_look_up:
            self._is_behind = True
            self._skipped.clear()
        else:
            self._catch_up()

    def replayed(self, batch: Batch, file: str) -> RecordsWithPaths:
        """Replay a batch, and yield its records with what they touch."""
        if self._is_behind:
            self._look_up(max(batch.base_offset, self._start))
        self._catch_up()
        yield from self._touched(batch, file)

    def _look_up(self, offset: int) -> None:
        began, quorum = time.perf_counter(), self._paths.tracker.quorum
        self._paths, self._is_behind = TouchedPaths(self._session, offset, values=True), False
        self._paths.tracker.quorum = quorum
        self._most_skipped = max(_FEW, int((time.perf_counter() - began) / _REPLAY_SECONDS))

    def _catch_up(self) -> None:
        for batch, file in self._skipped:
            deque(self._touched(batch, file), maxlen=0)
        self._skipped.clear()
        self._skipped_records = 0

    def _touched(self, batch: Batch, file: str) -> RecordsWithPaths:
        for record in self._records.records_of(batch, file):
            self._paths.restart_if_due(record.offset)
            yield record, touched_paths(self._paths.tracker, record)

    def _are_states_known(self) -> bool:
        """Whether the state before any record can be looked up: nothing before it is missing or damaged.

        Nor may a snapshot inside the log say something else than the records before it: those count here.
        """
        session = self._session
        if self._paths.restart is not None:
            return False
        session.travels()  # from now on, states are looked up in the recorded past instead of loaded again
        try:
            past = None if session.past is None else session.past.up_to(session.until, session.progress)
        except KshellError:
            return False
        if past is None or past.damage or past.begins_after_damage:
            return False
        return not any(checkpoint.disagreements for checkpoint in past.history.checkpoints)
