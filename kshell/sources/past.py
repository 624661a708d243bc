"""Show a source at any offset: its log is replayed once and every state is recorded, so no offset needs another replay.

A log that has grown is replayed only from its previous end. What the log alone cannot answer (damage in its middle,
offsets before its start) is left to :meth:`.Source.load`, which starts from the snapshots.
"""

from __future__ import annotations

import os
from array import array
from functools import partial
from typing import NamedTuple

from kshell.errors import CorruptDataError, DataError, IncompleteLogError, MissingCodecError
from kshell.metadata.history import History, Recorder
from kshell.metadata.replay import Problems, Replayer
from kshell.protocol.batches import Batch
from kshell.protocol.primitives import DecodeError
from kshell.protocol.verify import Torn
from kshell.sources.directory import checkpoints
from kshell.sources.directory.files import SKIP, Listing
from kshell.sources.directory.log import LogReader, Progress
from kshell.sources.directory.snapshot import SnapshotFacts
from kshell.sources.directory.source import add_notes, before_the_log, read_unchanged, without_collector
from kshell.sources.source import Loaded, Source


class PastUpTo(NamedTuple):
    """The history of a log, as far as a question about its states up to some offset needs it.

    Attributes:
        history: every state up to that offset, and maybe of later ones.
        damage: the damaged or missing parts of the log up to that offset.
        begins_after_damage: whether it begins with a snapshot because the log before it is damaged or incomplete.
    """

    history: History
    damage: list[DataError]
    begins_after_damage: bool


class Past:
    """The recorded history of a source. The first call reads the log, later calls only what was appended since.

    Methods return ``None`` where the log alone cannot answer; the caller then uses :meth:`.Source.load`.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._recorded: _Recorded | None = None
        self._earlier: _Recorded | None = None
        """The log up to some damage, if an offset before that damage was asked about."""
        self._spared: int | None = None
        """The offset for which :meth:`skips_log_for` said that the log need not be replayed."""

    def skips_log_for(self, offset: int) -> bool:
        """Whether to load the state at ``offset`` from a snapshot instead of replaying the log; remembers the offset.

        True for the first offset asked for, if a snapshot inside the log ends at or before it: then less is read.
        A user who asks for a second offset will probably ask for more, so then the log is replayed.
        """
        if self._recorded is not None or self._spared not in (None, offset):
            return False
        listing = self._source.listing(full_log=True)
        start = listing.segments[0].base_offset if listing.segments else None
        if start is None or not checkpoints.inside(listing, start, offset + 1):
            return False
        self._spared = offset
        return True

    def at(self, offset: int, progress: Progress | None = None) -> Loaded | None:
        """The state with every record up to ``offset``; ``None`` where the log does not show it. Raises KshellError."""
        recorded = self._recorded
        if recorded is None or offset >= recorded.history.log.end:
            recorded = self.recorded(progress)
        return None if recorded is None else recorded.loaded(offset)

    def newest(self, progress: Progress | None = None) -> Loaded | None:
        """The newest state, as the source itself loads it; ``None`` where the log alone does not show it."""
        recorded = self.recorded(progress)
        return None if recorded is None else recorded.newest()

    def history(self, progress: Progress | None = None) -> tuple[History, SnapshotFacts | None] | None:
        """The history of the log up to now, and the snapshot that it begins with, if any. Raises KshellError."""
        recorded = self.recorded(progress)
        return None if recorded is None else (recorded.history, recorded.facts)

    @property
    def is_recorded(self) -> bool:
        """Whether the log was replayed already."""
        return self._recorded is not None

    @property
    def damage(self) -> list[DataError]:
        """The damaged or missing parts of the log, as far as the replay met them."""
        recorded = self._recorded
        return [] if recorded is None else recorded.bridged + recorded.stepped_over + recorded.damage

    def up_to(self, until: int | None, progress: Progress | None = None) -> PastUpTo | None:
        """The history for questions about the states up to ``until`` (``None``: now). Raises KshellError.

        After damage, :meth:`history` begins with the next snapshot. For an earlier ``until`` this one ends before it.
        """
        recorded = self.recorded(progress)
        if recorded is None:
            return None
        if until is not None and recorded.bridged and until < recorded.history.log.start - 1:
            try:
                recorded = self._before(until, recorded.listing, progress)
            except (DataError, FileNotFoundError):
                return None
        if not recorded.joined:
            return None
        met = recorded.damage if until is None or until >= recorded.history.log.end else []
        damage = recorded.bridged + recorded.stepped_over + met
        return PastUpTo(recorded.history, damage, bool(recorded.bridged))

    def _before(self, until: int, listing: Listing, progress: Progress | None) -> _Recorded:
        """Record the log without the snapshots after ``until``, so that the replay does not go on behind damage."""
        snapshots = tuple(file for file in listing.snapshots if (file.end_offset or 0) <= until + 1)
        reduced = listing._replace(snapshots=snapshots)
        if self._earlier is None or self._earlier.listing != reduced:
            self._earlier = None  # released first, as in recorded()
            self._earlier = _Recorded(reduced, progress)
        return self._earlier

    def offset_by(self, time_ms: int, progress: Progress | None = None) -> int | None:
        """The offset of the last record written at or before ``time_ms``; ``None`` if the log's times do not ascend."""
        recorded = self.recorded(progress)
        if recorded is None or recorded.damage:
            return None
        return recorded.history.log.offset_by(time_ms)

    def recorded(self, progress: Progress | None = None) -> _Recorded | None:
        """The recorded log, brought up to date; ``None`` if the log alone does not show its states."""

        def read(listing: Listing) -> _Recorded | None:
            if listing.on_corruption == SKIP:
                return None  # batches are left out: each state is loaded by itself
            recorded, self._recorded = self._recorded, None  # a reading that is interrupted leaves half of it
            if recorded is None or not recorded.extend(listing, progress):
                recorded = None  # released first: two of them would need twice the memory
                recorded = _Recorded(listing, progress)
            return recorded

        list_files = partial(self._source.listing, full_log=True)
        try:
            recorded = read_unchanged(list_files, read, lambda recorded: recorded is not None and recorded.damage)
        except (DataError, FileNotFoundError):
            return None
        self._recorded = recorded
        return recorded if recorded is not None and recorded.joined else None


class _Recorded:
    """The log of one listing, replayed from its start, or from the next snapshot after missing or damaged offsets."""

    def __init__(self, listing: Listing, progress: Progress | None) -> None:
        self.listing = listing
        with without_collector():
            self._begin(progress, None)
            self.bridged: list[DataError] = []
            """The damage before the snapshot from which the replay was started again."""
            end = -1
            while end < self.history.log.end < self._newest():
                end = self.history.log.end
                self.bridged += self.damage
                self._begin(progress, self._last_before(end))

    def _newest(self) -> int:
        """The end offset of the newest snapshot; 0 if there is none."""
        return self.listing.snapshots[-1].end_offset or 0 if self.listing.snapshots else 0

    def _last_before(self, end: int) -> int:
        """The offset after which to look for a snapshot to continue from, when the replay ended early, at ``end``."""
        if any(not isinstance(error, IncompleteLogError) for error in self.damage):
            return end  # a batch is damaged: the next ones may be whole
        bases = (segment.base_offset or 0 for segment in self.listing.segments)
        return min((base for base in bases if base > end), default=self._newest()) - 1

    def _begin(self, progress: Progress | None, after: int | None) -> None:
        """Replay from scratch: from the log's start, or from the oldest snapshot that ends after offset ``after``."""
        # Damage ends the replay; only damage before the snapshot's end is stepped over.
        base, self.facts, self.damage, self.joined = before_the_log(self.listing, progress, after)
        self.stepped_over: list[DataError] = []
        self.torn: tuple[str, Torn] | None = None
        self.notes: list[str] = [*self.listing.unreadable]
        self._base: Replayer = base
        self._recorder = Recorder(base.image(), self.facts.end_offset if self.facts else 0)
        self._passed: list[SnapshotFacts] = []
        """The snapshots in the middle of the log that the replay has passed."""
        self._recorder.expect(checkpoints.to_pass(self.listing, self.history.log.start, self._passed))
        if self.joined:
            self._read(progress)

    @property
    def history(self) -> History:
        """Every state that the log's records produced."""
        return self._recorder.history

    def extend(self, listing: Listing, progress: Progress | None) -> bool:
        """Replay what was appended since; return ``False`` if the log has to be recorded from scratch instead."""
        if listing == self.listing:
            return True
        starts = [segment.base_offset or 0 for segment in listing.segments]
        if not self.joined or self.damage or not starts or starts[0] > self.history.log.end:
            return False
        end = self.history.log.end
        if set(checkpoints.inside(listing, self.history.log.start, end)).difference(self.listing.snapshots):
            return False  # a new snapshot lies inside the part that was already replayed
        self.listing = listing
        self._recorder.expect(checkpoints.to_pass(listing, end, self._passed))
        with without_collector():
            return self._read(progress)

    def _read(self, progress: Progress | None) -> bool:
        """Replay what comes after the recorded end; return ``False`` if the last recorded batch is no longer there.

        Records that were not committed may be replaced: a new leader's epoch begins before them (KIP-595).
        """
        log = self.history.log
        end, last = log.end, log.last_batch
        reader = LogReader(self.listing, end if last is None else last[0], progress=progress)
        before: int | None = None
        for file, batch in reader:
            if last is not None:
                if batch.last_offset < last[0]:
                    continue
                if (batch.base_offset, batch.crc, batch.epoch) != last:
                    return False
                last = None
            if batch.last_offset >= end:
                before = len(reader.damage) if before is None else before
                if not self._take(batch, file, end, reader):
                    break
        if last is not None:
            return False
        self.torn, self.notes = reader.torn, reader.notes
        self._recorder.pass_due_checkpoints(self.history.log.end)
        self.stepped_over += reader.damage[: before or 0]
        self.damage += reader.damage[before or 0 :]
        return True

    def _take(self, batch: Batch, file: str, start: int, reader: LogReader) -> bool:
        """Record one batch; return ``False``, and note the damage, if it cannot be decoded."""
        try:
            self._recorder.log_batch(batch, os.path.basename(file), start)
        except DecodeError as error:
            reader.damage.append(CorruptDataError(file, batch.position, str(error)))
            return False
        except MissingCodecError as error:
            reader.damage.append(error.at(file, batch.position))
            return False
        return True

    def newest(self) -> Loaded | None:
        """:meth:`loaded` at the log's end; ``None`` where :meth:`.Source.load` would start from another snapshot."""
        log = self.history.log
        if self.damage or self.stepped_over or not self.joined or checkpoints.inside(self.listing, log.start):
            return None
        loaded = self.loaded(log.end - 1)
        if loaded is None or (self.facts is not None and loaded.problems):
            return None  # problems of a snapshot are found when its values are decoded, and must be added to the log's
        last = max(log.max_timestamp, loaded.image.provenance.timestamp)
        return loaded._replace(until=None, last_timestamp=last, torn=self.torn)

    def loaded(self, offset: int) -> Loaded | None:
        """The state as of ``offset``, as :meth:`.Source.load` returns it; ``None`` where the log does not show it."""
        history = self.history
        log = history.log
        if offset < log.start or (offset >= log.end and self.damage) or (self.damage and not self.joined):
            return None
        end = min(offset + 1, log.end)
        image = history.at(offset)
        passed = next((facts for facts in reversed(self._passed) if facts.end_offset - 1 <= offset), None)
        problems = history.problems_between(0 if passed is None else passed.end_offset, offset)
        loaded = Loaded(
            image=image,
            listing=self.listing,
            snapshot=self.facts if passed is None else passed,
            log_end_offset=end if end > log.start else None,
            last_timestamp=log.timestamp(end - 1) if end > log.start else image.provenance.timestamp,
            problems=_merged(self._base.problems, problems) if passed is None else problems,
            torn=self.torn if offset >= log.end else None,
            open_transaction=log.open_transaction(offset),
            damage=list(self.stepped_over),
            notes=list(self.notes),
            until=offset,
        )
        add_notes(loaded)
        return loaded


def _merged(before: Problems, after: Problems) -> Problems:
    if not after:
        return before  # the same object: it grows when partitions of the snapshot are decoded later
    kinds = before.unlisted.keys() | after.unlisted.keys()
    unlisted = {kind: before.unlisted.get(kind, array("q")) + after.unlisted.get(kind, array("q")) for kind in kinds}
    return Problems([*before, *after], unlisted)
