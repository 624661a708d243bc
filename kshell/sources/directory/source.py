"""A metadata directory (or one file of it) as a source: load the newest complete snapshot, replay the log after it.

The directory may belong to a running server: files appear, grow and vanish while they are read. So what looks like
damage counts only if the directory did not change meanwhile.
"""

from __future__ import annotations

import contextlib
import gc
import os
import time
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from typing import TypeVar

from kshell.errors import (
    CorruptDataError,
    DataError,
    IncompleteLogError,
    MissingCodecError,
    OutOfReachError,
    SourceNotFoundError,
)
from kshell.metadata.replay import Replayer
from kshell.protocol.primitives import DecodeError
from kshell.protocol.verify import USUAL
from kshell.sources.directory.files import (
    METADATA_DIRECTORY,
    SKIP,
    STOP,
    VANISHES,
    Listing,
    SnapshotFile,
    locate,
    scan,
)
from kshell.sources.directory.log import FileBatch, LogReader, Progress
from kshell.sources.directory.sidecar_files import EPOCHS, bootstrap_file, leader_epochs, topic_of
from kshell.sources.directory.snapshot import SnapshotFacts, load_snapshot
from kshell.sources.source import Loaded, Source

ATTEMPTS = 6
"""How often a directory is read if it changes while it is read, ``PAUSE`` seconds apart."""
PAUSE = 0.05
_POLL = 0.25
"""Seconds between two listings of a directory that is followed."""


_Files = TypeVar("_Files")
_T = TypeVar("_T")


def read_unchanged(
    list_files: Callable[[], _Files],
    read: Callable[[_Files], _T],
    looks_damaged: Callable[[_T], object] = lambda _: False,
    first: _Files | None = None,
) -> _T:
    """Call ``read`` with a listing; list and call again if files changed meanwhile: a server may be writing to them.

    What looks like damage, in the result or as a DataError, is believed only of files that did not change. ``first`` is
    the listing for the first attempt, if there is one already. Raises FileNotFoundError if files vanish in every
    attempt.
    """
    for attempt in range(ATTEMPTS):
        last_try = attempt == ATTEMPTS - 1
        listing = list_files() if attempt or first is None else first
        try:
            result = read(listing)
            if last_try or not looks_damaged(result) or list_files() == listing:
                return result
            del result  # before the next attempt: two of them may need twice the memory
        except (FileNotFoundError, SourceNotFoundError):
            if last_try:
                raise
        except DataError:
            if last_try or list_files() == listing:
                raise
        time.sleep(PAUSE)
    raise AssertionError("the last attempt returns or raises")


def read_listed(list_files: Callable[[], Listing], read: Callable[[Listing], _T]) -> _T:
    """Call ``read`` with a listing; list and call again if a listed file was removed before it could be read.

    Raises:
        CorruptDataError: files vanish again and again.
    """
    for attempt in range(ATTEMPTS):
        listing = list_files()
        try:
            return read(listing)
        except FileNotFoundError as error:
            if error.filename not in {file.path for files in (listing.segments, listing.snapshots) for file in files}:
                raise
            if attempt == ATTEMPTS - 1:
                raise CorruptDataError(str(error.filename), 0, VANISHES) from None
        time.sleep(PAUSE)
    raise AssertionError("the last attempt returns or raises")


class DirectorySource(Source):
    """Reads ``path``: a metadata directory, a log directory around one, or one ``.log`` or ``.checkpoint`` file."""

    kind = "directory"

    def __init__(self, path: str, *, name: str | None = None, on_corruption: str = STOP) -> None:
        self.path = locate(path)
        topic = topic_of(self.path if os.path.isdir(self.path) else os.path.dirname(self.path) or os.curdir)
        if topic is not None:
            raise SourceNotFoundError(
                f"{path}: has the records of a topic ({topic}), and no metadata",
                hint=f"the metadata log is in the directory {METADATA_DIRECTORY} of metadata.log.dir, else of the first"
                " of log.dirs",
            )
        self.on_corruption = on_corruption
        self.name = name or path
        self.is_sample = name is not None
        """Whether this is the built-in sample; its age is not shown, because it is old on purpose."""

    def listing(self, *, full_log: bool = False) -> Listing:
        """The files as they are now."""
        return scan(self.path)._replace(on_corruption=self.on_corruption)

    def follow(self, start: int | None = None) -> Iterator[FileBatch | None]:
        """Follow the files as they grow. On a follower, records after the newest snapshot may still be truncated."""
        from kshell.sources.directory.records import BatchWalk  # imported late: that module imports this one

        if start is None:
            end = self.load().log_end_offset
            start = 0 if end is None else end
        while True:
            walk = BatchWalk(self, start)
            for file_batch in walk:
                start = file_batch.batch.last_offset + 1
                yield file_batch
            if walk.damage:
                raise walk.damage[0]
            yield None
            time.sleep(_POLL)

    def load(self, *, until: int | None = None, progress: Progress | None = None, from_oldest: bool = False) -> Loaded:
        """Load the image at the end of the log, or with every record up to offset ``until``.

        ``from_oldest`` replays as much of the log as there is, instead of starting at the newest snapshot: the image is
        the same, but more of its values know the record that wrote them. Raises SourceError, DataError.
        """
        load = partial(load_listing, until=until, progress=progress, from_oldest=from_oldest)
        try:
            return read_unchanged(self.listing, load, lambda loaded: loaded.damage)
        except FileNotFoundError as error:
            raise CorruptDataError(str(error.filename), 0, VANISHES) from None


def load_listing(
    listing: Listing, until: int | None, progress: Progress | None, *, from_oldest: bool = False
) -> Loaded:
    """Load an image from the listed files, once: as :meth:`DirectorySource.load`, which tries again if files change."""
    with without_collector():
        return _load(listing, until, progress, from_oldest)


@contextlib.contextmanager
def without_collector() -> Iterator[None]:
    """Turn the garbage collector off: loading makes many objects and no cycles, so collections only cost time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _load(listing: Listing, until: int | None, progress: Progress | None, from_oldest: bool) -> Loaded:
    damage: list[DataError] = []
    candidates = _before_the_log(listing) if from_oldest else listing.snapshots[::-1]
    replayer, facts = _first_complete_snapshot(candidates, listing, until, progress, damage)
    start = facts.end_offset if facts else 0
    joined = _check_start(listing, facts, until, damage)
    reader = LogReader(listing, start, until=until, progress=progress)
    skips = listing.on_corruption == SKIP
    end, last_timestamp = (
        replay_log(reader, replayer, start, until, reader.damage, reader.notes, skips=skips) if joined else (None, -1)
    )
    if until is not None:
        _check_end(listing, until, max(end or 0, facts.end_offset if facts else 0), damage + reader.damage)
    image = replayer.image()
    loaded = Loaded(
        image=image,
        listing=listing,
        snapshot=facts,
        log_end_offset=end,
        last_timestamp=max(last_timestamp, image.provenance.timestamp),
        problems=replayer.problems,
        torn=reader.torn,
        open_transaction=replayer.open_transaction,
        damage=damage + reader.damage,
        notes=reader.notes,
        until=until,
    )
    add_notes(loaded)
    return loaded


def before_the_log(
    listing: Listing, progress: Progress | None, after: int | None = None
) -> tuple[Replayer, SnapshotFacts | None, list[DataError], bool]:
    """Load the state from which the whole log can be replayed.

    With ``after`` that is the oldest complete snapshot that ends after this offset. Raises DataError.

    Returns:
        The replayer, the snapshot in it, if any, the damage, and whether the log continues where the snapshot ends.
    """
    damage: list[DataError] = []
    if after is None:
        empty = tuple(file for file in listing.snapshots if file.end_offset == 0)  # it may name the first voters
        candidates = _before_the_log(listing) or empty
    else:
        candidates = tuple(file for file in listing.snapshots if (file.end_offset or 0) > after)
    replayer, facts = _first_complete_snapshot(candidates, listing, None, progress, damage)
    return replayer, facts, damage, _check_start(listing, facts, None, damage)


def _before_the_log(listing: Listing) -> tuple[SnapshotFile, ...]:
    """The snapshots from which the whole log can be replayed, oldest first; none if the log starts at offset 0."""
    start = listing.segments[0].base_offset if listing.segments else None
    if start is not None and start <= listing.first_needed_offset:
        return ()
    return tuple(file for file in listing.snapshots if not start or (file.end_offset or 0) >= start)


def _first_complete_snapshot(
    candidates: tuple[SnapshotFile, ...],
    listing: Listing,
    until: int | None,
    progress: Progress | None,
    damage: list[DataError],
) -> tuple[Replayer, SnapshotFacts | None]:
    """Load the first complete candidate into a replayer, which stays empty if all are damaged; collect the damage."""
    for file in candidates:
        if until is not None and file.end_offset is not None and file.end_offset - 1 > until:
            continue
        replayer = Replayer(until=until)
        try:
            is_bootstrap = listing.directory is not None and file.is_bootstrap
            facts = load_snapshot(file, replayer, progress, control_only=is_bootstrap)
            return replayer, facts
        except CorruptDataError as error:
            damage.append(error.with_traceback(None))
    if damage and not listing.segments:
        raise damage[0]
    return Replayer(until=until), None


def _check_start(listing: Listing, facts: SnapshotFacts | None, until: int | None, damage: list[DataError]) -> bool:
    """Check that a snapshot covers the offsets before the log; return whether the log continues the loaded one."""
    empty = facts is None or not facts.end_offset
    if empty and until is not None and until < _oldest(listing):
        from kshell.sources.points import reach  # imported late: few users ask for removed offsets

        hint = reach(listing) or f"offsets from {_oldest(listing)} on can be shown"
        raise OutOfReachError(f"offset {until} is before everything that the source still knows", hint=hint)
    if not listing.segments:
        return True
    first = listing.segments[0]
    base = first.base_offset
    end = facts.end_offset if facts else 0
    if listing.directory is None or base is None or base <= max(end, listing.first_needed_offset):
        return True
    if facts is not None and until == end - 1:
        return True  # the snapshot alone answers
    reason = f"{first.path}: the log starts at offset {base}, and no whole snapshot reaches it"
    if empty or until is not None:
        hint = "copy the directory's .checkpoint files too; `kshell -d … dump` still prints the records there are"
        if until is not None:
            from kshell.sources.points import reach

            hint = reach(listing) or hint
        older = [error.message for error in damage]
        raise IncompleteLogError("; ".join([reason, *older]), hint=hint)
    damage.append(IncompleteLogError(f"{reason} (the newest ends at {end})"))
    return False


def _check_end(listing: Listing, until: int, end: int, damage: list[DataError]) -> None:
    """Raise IncompleteLogError if ``until`` is in a gap of the log: the state before the gap is not the state in it.

    Damage is different from a gap: there the last good state is the answer.
    """
    if until < end or any(not isinstance(error, IncompleteLogError) for error in damage):
        return
    later = [segment.base_offset for segment in listing.segments if (segment.base_offset or 0) > end]
    later += [] if later else [file.end_offset for file in listing.snapshots if (file.end_offset or 0) > end]
    following = min((offset for offset in later if offset is not None), default=None)
    if following is not None:
        from kshell.sources.points import missing, reach  # imported late: few users ask for removed offsets

        raise IncompleteLogError(f"offset {until} cannot be shown: {missing(end, following)}", hint=reach(listing))


def _oldest(listing: Listing) -> int:
    """The first offset whose state can be shown: 0 if the log begins there, else the end of the oldest snapshot."""
    if listing.segments and (listing.segments[0].base_offset or 0) <= listing.first_needed_offset:
        return 0
    ends = [file.end_offset for file in listing.snapshots if file.end_offset]
    return min(ends) - 1 if ends else 0


def replay_log(
    batches: Iterable[FileBatch],
    replayer: Replayer,
    start: int,
    until: int | None,
    damage: list[DataError],
    notes: list[str],
    *,
    skips: bool,
) -> tuple[int | None, int]:
    """Feed a log's records from ``start`` to ``until`` to the replayer.

    A batch that cannot be decoded is added to ``damage`` and ends the replay; with ``skips`` the replay goes on after
    it, and ``notes`` says so.

    Returns:
        The offset after the last record (``None`` if there was none), and the last batch's timestamp.
    """
    end: int | None = None
    timestamp = -1
    name_of = cache(os.path.basename)
    for file, batch in batches:
        if until is not None and batch.base_offset > until:
            break
        if batch.base_offset < start <= batch.last_offset:  # Kafka takes a snapshot between two batches
            notes.append(
                f"{file}: byte {batch.position}: the snapshot ends inside this batch, at offset {start}: perhaps it"
                " belongs to another log, and the answer mixes the two; `verify --deep` compares them"
            )
        try:
            if batch.last_offset >= start:
                replayer.log_batch(batch, name_of(file), start)
                replayer.release()
        except DecodeError as error:
            damage.append(CorruptDataError(file, batch.position, str(error)))
            if not skips:
                break
            notes.append(
                f"{file}: bytes {batch.position} to {batch.end - 1} are skipped: offsets {batch.base_offset} to"
                f" {batch.last_offset} are not in the answer, or not all of them"
            )
        except MissingCodecError as error:
            damage.append(error.at(file, batch.position))
            break
        end = (batch.last_offset if until is None else min(batch.last_offset, until)) + 1
        timestamp = batch.max_timestamp
    return end, timestamp


def add_notes(loaded: Loaded) -> None:
    """Add sentences for the user to ``loaded.notes``: a torn end, an open transaction, missing or no records."""
    notes = loaded.notes
    if loaded.snapshot and loaded.snapshot.note:
        notes.append(loaded.snapshot.note)
    cut_at = loaded.cut_at
    if loaded.torn:
        path, torn = loaded.torn
        notes.append(torn.note(path) + (USUAL if cut_at is None else ""))
    if loaded.open_transaction is not None:
        notes.append(f"the metadata transaction from offset {loaded.open_transaction} on has not ended: left out")
    lone = loaded.listing.segments[0] if loaded.listing.directory is None and loaded.listing.segments else None
    if lone is not None and lone.base_offset:
        notes.append(f"{lone.path}: a lone segment: what was before offset {lone.base_offset} is not known")
    if loaded.snapshot and (cut_at is not None or _is_without_log(loaded)):
        whose = os.path.basename(loaded.snapshot.path)
        finding = f"no log follows the snapshot {whose}" if cut_at is None else ends_before(cut_at, whose)
        notes.append(
            f"{finding}; newer records, if there were any, are not here: look at the other controllers' copies"
            " (`compare-logs`)"
        )
    has_bytes = any(segment.size for segment in loaded.listing.segments)
    is_empty = loaded.snapshot is None or (loaded.listing.directory is not None and not has_bytes)
    if is_empty and loaded.image.provenance.offset < 0 and not loaded.log_end_offset and not loaded.damage:
        _note_empty(loaded)


def ends_before(log_end: int, snapshot: str) -> str:
    """Say that a log ends before one of its snapshots does."""
    return f"the log ends at offset {log_end}, before the end of snapshot {snapshot}: the end of the log is missing"


def missing_end(source: Source, listing: Listing, read_end: int | None, newest: SnapshotFile | None) -> str | None:
    """Say that a log ends before its newest snapshot; ``None`` if it does not, or if a server has changed it meanwhile.

    Args:
        source: lists the files again, to see whether they changed.
        listing: the files that were read.
        read_end: the offset after the log's last record; ``None`` where there was none.
        newest: the newest snapshot that is whole.
    """
    if listing.directory is not None and listing.segments and not read_end and not (newest and newest.end_offset):
        return _emptied(listing) if source.listing(full_log=True) == listing else None
    cut_at = listing.missing_from(read_end, newest.end_offset if newest is not None else None)
    if newest is None or cut_at is None or source.listing(full_log=True) != listing:
        return None
    return ends_before(cut_at, os.path.basename(newest.path))


def _emptied(listing: Listing) -> str | None:
    """Say that an empty log has had records: ``leader-epoch-checkpoint`` gets a line with the first of each epoch."""
    epochs = leader_epochs(listing)
    if not epochs:
        return None
    epoch, start = epochs[-1]
    return f"the log is empty, and {EPOCHS} knows of epoch {epoch}, from offset {start} on: the log's records are gone"


def _is_without_log(loaded: Loaded) -> bool:
    """Whether the newest state of a directory comes from a snapshot alone, because there is no log."""
    is_end = loaded.until is None and loaded.snapshot is not None and bool(loaded.snapshot.end_offset)
    return is_end and loaded.listing.directory is not None and not loaded.listing.segments


def _note_empty(loaded: Loaded) -> None:
    """Add the note on a directory that kafka-storage has formatted, and on which no server has run yet, or that lost
    its log.

    Until 4.3 kafka-storage wrote the first records into ``bootstrap.checkpoint``, later into a snapshot of offset 0.
    """
    emptied = _emptied(loaded.listing)
    bootstrap = bootstrap_file(loaded.listing) or (loaded.snapshot.path if loaded.snapshot else None)
    text = "the metadata log is empty"
    if emptied is not None:
        text = f"{loaded.listing.directory}: {emptied}: look at the other nodes' copies (`compare-logs`)"
    elif bootstrap:
        text += f": no server has written to it yet; what the first one will write is in {bootstrap}"
    loaded.notes.append(text)


def snapshot_named(listing: Listing, name: str) -> SnapshotFile | None:
    """The snapshot whose id (``<end offset>-<epoch>``, leading zeros optional) is ``name``."""
    for file in listing.snapshots:
        if name in (f"{file.end_offset}-{file.epoch}", f"{file.end_offset:020d}-{file.epoch:010d}"):
            return file
    return None
