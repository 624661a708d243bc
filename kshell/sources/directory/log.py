"""Read the log of a directory: the verified batches of all its segments, in offset order.

Segments are read in pieces and not memory-mapped: a follower may truncate the active one, and touching a mapped page
that is gone kills the process.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from kshell.errors import CorruptDataError, DataError, IncompleteLogError
from kshell.protocol.batches import Batch
from kshell.protocol.verify import SNAPSHOT_IN_LOG, Chain, LeaderEpochs, Torn, find_batch
from kshell.protocol.windows import InMemory, Windowed
from kshell.sources.directory.files import SKIP, TAIL, Listing, Segment, SnapshotFile
from kshell.sources.directory.ranges import FileWindows
from kshell.sources.directory.sidecar_files import leader_epochs

Progress = Callable[[int, int, str], None]
"""A callback for progress: (bytes done, bytes in all, what is being read)."""


class FileBatch(NamedTuple):
    """A verified batch and the path of its file."""

    file: str
    batch: Batch


_new_file_batch = partial(tuple.__new__, FileBatch)
"""Makes a ``FileBatch`` of a tuple, faster than the class itself: it is called once per batch of a log."""


@contextlib.contextmanager
def opened(file: Segment | SnapshotFile, limit: int | None = None) -> Iterator[Windowed]:
    """Open a file's bytes as they are now, or only the first ``limit`` of a file on disk.

    Snapshots are memory-mapped, because Kafka never changes one after it has renamed it into place. Raises
    FileNotFoundError (list again), SourceError.
    """
    if file.data is not None:
        yield InMemory(file.data)
        return
    with FileWindows(file.path, limit=limit, mapped=isinstance(file, SnapshotFile)) as windows:
        yield windows


class LogReader:
    """Iterates over the batches with offsets from ``start`` on, and collects ``damage``, ``torn`` and ``notes``.

    After damage the iteration goes on at the next whole batch if the damage is before ``start``, with ``resume``, or if
    the listing asks for ``skip``. Otherwise it ends there, because what follows is not known to be a state of the
    cluster. It also ends once offset ``until`` is reached, so damage after that is not found.
    """

    def __init__(
        self,
        listing: Listing,
        start: int = 0,
        *,
        until: int | None = None,
        resume: bool = False,
        progress: Progress | None = None,
    ) -> None:
        self.path = ""
        """The segment that is being read."""
        self.damage: list[DataError] = []
        self.torn: tuple[str, Torn] | None = None
        self._segments = _segments_from(listing.segments, start)
        self._start = start
        self._until = until
        self._skips = listing.on_corruption == SKIP
        self._takes_for_torn = listing.on_corruption == TAIL
        self._resume = resume or self._skips
        self._progress = progress
        self.notes: list[str] = [*listing.unreadable]
        """Sentences for the user on files that are not used, and on bytes that are skipped."""
        self._epochs = LeaderEpochs(leader_epochs(listing, self.notes))
        self._next: int | None = None
        self._is_over = False
        """Whether the current segment was left before its end, because of damage."""

    def __iter__(self) -> Iterator[FileBatch]:
        total = sum(segment.size for segment in self._segments)
        bytes_before = 0
        until, progress = self._until, self._progress
        for index, segment in enumerate(self._segments):
            if self._is_past(segment.base_offset) or not self._joins(segment):
                return
            is_last = index == len(self._segments) - 1
            self.path = path = segment.path
            for batch in self._segment(segment, is_last):
                yield _new_file_batch((path, batch))
                if progress is not None:
                    progress(bytes_before + batch.end, total, path)
                if until is not None and batch.last_offset >= until:
                    return
            bytes_before += segment.size
            if self.damage and not self._continues():
                return

    def _is_past(self, offset: int | None) -> bool:
        return self._until is not None and offset is not None and offset > self._until

    def _joins(self, segment: Segment) -> bool:
        """Whether to read a segment: it starts where the one before it ended, or the gap may be stepped over."""
        if self._next is None or segment.base_offset in (None, self._next):
            return True
        reason = f"the segment starts at offset {segment.base_offset}, {self._next} was expected"
        self.damage.append(IncompleteLogError(f"{segment.path}: {reason}"))
        if not self._resume:
            return False
        self._next = segment.base_offset
        return True

    def _continues(self) -> bool:
        """Whether to go on with the next segment although damage was found."""
        return self._resume or not self._is_over or (self._next is not None and self._next <= self._start)

    def _segment(self, segment: Segment, is_last: bool) -> Iterator[Batch]:
        self._is_over = False
        with opened(segment) as source:
            yield from self._walk(source, segment, 0, is_last=is_last)
        if self._next is None and not source.size:
            self._next = segment.base_offset  # an empty segment ends where it starts

    def _walk(self, source: Windowed, segment: Segment, start: int, *, is_last: bool) -> Iterator[Batch]:
        """Yield the undamaged batches from byte ``start`` on; damage is collected and, where allowed, stepped over."""
        position: int | None = start
        expected = segment.base_offset if self._next is None else self._next
        while position is not None:
            chain = Chain(self._epochs, expected)
            try:
                for batch in chain.walk(source, segment.path, position):
                    self._next = chain.next_offset
                    yield batch
                position = None
                if chain.torn is not None:
                    position = self._torn(chain.torn, segment, source, is_last)
            except CorruptDataError as error:
                position = self._behind(error.with_traceback(None), source, segment, is_last)
            expected = None

    def _behind(self, error: CorruptDataError, source: Windowed, segment: Segment, is_last: bool) -> int | None:
        """The byte at which to continue after damage, or ``None`` to stop."""
        is_snapshot = error.reason == SNAPSHOT_IN_LOG  # then nothing of the file is the log's
        following = None if is_snapshot else find_batch(source, error.position + 1)
        if following is None and is_last and self._takes_for_torn and not is_snapshot:
            self.torn = (segment.path, Torn(error.position, source.size - error.position, error.reason))
            return None
        self.damage.append(error)
        if self._skips:
            self.notes.append(self._skipped(error, source, following))
        return self._resume_at(following)

    def _skipped(self, error: CorruptDataError, source: Windowed, following: Batch | None) -> str:
        """The note that bytes are left out, and which offsets they contained."""
        end = source.size if following is None else following.position
        first, last = self._next, None if following is None else following.base_offset - 1
        if first is None or last is None:
            offsets = f"the offsets from {first} on" if first is not None else "their offsets"
        else:
            offsets = f"offsets {first} to {last}"
        return f"{error.file}: bytes {error.position} to {end - 1} are skipped: {offsets} are not in the answer"

    def _torn(self, torn: Torn, segment: Segment, source: Windowed, is_last: bool) -> int | None:
        """As :meth:`_behind`, after a batch that is cut: damage, unless it is the end of the last segment."""
        if is_last:
            self.torn = (segment.path, torn)
            return None
        self.damage.append(CorruptDataError(segment.path, torn.position, f"{torn.reason}, but another segment follows"))
        return self._resume_at(find_batch(source, torn.position + 1))

    def _resume_at(self, next_batch: Batch | None) -> int | None:
        """The position of the whole batch after the damage, or ``None`` to stop."""
        if next_batch is None or not (self._resume or next_batch.base_offset <= self._start):
            self._is_over = True
            return None
        return next_batch.position


def _segments_from(segments: tuple[Segment, ...], start: int) -> tuple[Segment, ...]:
    """The segments that may contain offsets from ``start`` on: the last that begins at or before it, and all later."""
    first = 0
    for index, segment in enumerate(segments):
        if segment.base_offset is not None and segment.base_offset <= start:
            first = index
    return segments[first:]
