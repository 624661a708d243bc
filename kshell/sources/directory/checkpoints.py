"""Snapshots in the middle of a log: which ones a replay passes, and whether each agrees with the log before it.

One rule holds for every front end: the state as of an offset is the newest snapshot that ends there or before, and the
log after it, because that is what the node itself showed then.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from kshell.errors import DataError, MissingCodecError
from kshell.metadata.checkpoint import LogCheckpoint, PassedCheckpoint
from kshell.metadata.image import Image
from kshell.metadata.replay import Replayer
from kshell.protocol.framing import Framer
from kshell.protocol.primitives import DecodeError
from kshell.sources.directory.files import Listing, SnapshotFile
from kshell.sources.directory.log import LogReader, Progress
from kshell.sources.directory.snapshot import SnapshotFacts, load_snapshot
from kshell.sources.directory.source import before_the_log, without_collector


def inside(listing: Listing, start: int, end: int | None = None) -> list[SnapshotFile]:
    """The snapshots that end after offset ``start`` and not after ``end``, oldest first."""
    return [
        file
        for file in listing.snapshots
        if file.end_offset is not None and file.end_offset > start and (end is None or file.end_offset <= end)
    ]


def to_pass(listing: Listing, start: int, facts: list[SnapshotFacts] | None = None) -> Iterator[LogCheckpoint]:
    """The snapshots that a replay from offset ``start`` passes; ``facts`` collects the facts of each loaded one."""
    return _checkpoints(inside(listing, start), facts)


def _checkpoints(files: list[SnapshotFile], facts: list[SnapshotFacts] | None = None) -> Iterator[LogCheckpoint]:
    framer = Framer()  # shared, because the records of all snapshots have the same form
    return (_checkpoint(file, framer, facts) for file in files)


def _checkpoint(file: SnapshotFile, framer: Framer, facts: list[SnapshotFacts] | None) -> LogCheckpoint:
    """A snapshot that is loaded only when the replay reaches it."""

    def load() -> Image | None:
        replayer = Replayer(framer=framer)
        try:
            read = load_snapshot(file, replayer, None)
        except (DataError, FileNotFoundError):  # a running server deletes old snapshots
            return None
        if facts is not None:
            facts.append(read)
        return replayer.image()

    return LogCheckpoint(file.end_offset or 0, os.path.basename(file.path), load)


def image_of(file: SnapshotFile) -> Image:
    """Load the image of a snapshot alone. Raises DataError."""
    replayer = Replayer()
    load_snapshot(file, replayer, None)
    return replayer.image()


def log_before(listing: Listing) -> int:
    """The bytes of log before the newest snapshot, which :func:`compare` replays; 0 if there is nothing to compare."""
    start = listing.segments[0].base_offset if listing.segments else None
    if start is None or listing.directory is None or not inside(listing, start):
        return 0
    end = listing.snapshots[-1].end_offset or 0
    return sum(segment.size for segment in listing.segments if (segment.base_offset or 0) < end)


def compare(
    listing: Listing, until: int | None = None, progress: Progress | None = None, *, newest_alone: bool = False
) -> list[PassedCheckpoint]:
    """Compare each snapshot with a replay of the log before it, as far as the log is undamaged.

    Replays the log from its start up to the newest snapshot that ends at ``until`` or before. The replay takes over
    each snapshot that it passes, so a difference is found once. With ``newest_alone`` only the newest snapshot is
    compared: it has every difference that still exists there. Snapshots that a running server has removed since they
    were listed are not compared. Raises DataError if nothing can be replayed.
    """
    with without_collector():
        try:
            base, facts, _, joined = before_the_log(listing, progress)
        except FileNotFoundError:
            return []
        start = facts.end_offset if facts else 0
        files = inside(listing, start, None if until is None else until + 1)
        files = files[-1:] if newest_alone else files
        return _passed(listing, base, start, files, progress) if joined and files else []


def compare_between(
    listing: Listing, image: Image, transaction: int | None, until: int | None
) -> list[PassedCheckpoint]:
    """Compare the snapshots that end after an image's last record, by replaying the log from the image on.

    Args:
        listing: the files that the image was loaded from.
        image: the state with which the replay begins.
        transaction: the offset at which a metadata transaction begins that is open in the image, if there is one.
        until: the last offset; ``None`` for the log's end.
    """
    start = image.provenance.offset + 1
    files = inside(listing, start, None if until is None else until + 1)
    begin = start if transaction is None else transaction
    first = listing.segments[0].base_offset if listing.segments else None
    if listing.directory is None or first is None or first > begin or not files:
        return []
    with without_collector():
        return _passed(listing, Replayer(image), begin, files, None)


def _passed(
    listing: Listing, replayer: Replayer, start: int, files: list[SnapshotFile], progress: Progress | None
) -> list[PassedCheckpoint]:
    """Replay from ``start`` as far as the log is undamaged and still there; compare the snapshots that are passed."""
    replayer.expect(_checkpoints(files))
    position = start
    reader = LogReader(listing, start, until=(files[-1].end_offset or 0) - 1, progress=progress)
    with contextlib.suppress(FileNotFoundError):
        for file, batch in reader:
            if reader.damage:
                break
            if batch.last_offset >= position:
                try:
                    replayer.log_batch(batch, os.path.basename(file), position)
                except (DecodeError, MissingCodecError):
                    break
                position = batch.last_offset + 1
    replayer.pass_due_checkpoints(position)
    return replayer.checkpoints
