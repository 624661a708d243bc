"""The log of a directory: verified batches over its segments, in offset order.

Segments are read into memory and not mapped: a follower may truncate the active one, and touching a mapped page that is
gone kills the process.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Iterator
from typing import NamedTuple

from kshell.errors import CorruptDataError, DataError, IncompleteLogError, SourceError
from kshell.protocol.batches import Batch
from kshell.protocol.primitives import Buffer
from kshell.protocol.verify import Chain, LeaderEpochs, Torn, find_batch
from kshell.sources.beside import leader_epochs
from kshell.sources.files import Listing, Segment, is_remote, open_read

Progress = Callable[[int, int, str], None]
"""(bytes done, bytes in all, what is being read)."""
_GIVE_BACK: int | None = getattr(mmap, "MADV_DONTNEED", None)
_PIECE = 4 << 20


class FileBatch(NamedTuple):
    """A verified batch and the path of its file."""

    file: str
    batch: Batch


def read_segment(segment: Segment) -> Buffer:
    """The bytes of a segment as they are now. Raises FileNotFoundError (list again), SourceError."""
    if segment.data is not None:
        return segment.data
    if is_remote(segment.path):
        from kshell.sources import remote

        return remote.contents(segment.path)
    descriptor = open_read(segment.path)
    try:
        with os.fdopen(descriptor, "rb", buffering=0) as file:
            return file.readall() or b""
    except OSError as error:
        raise SourceError(f"{segment.path}: {error.strerror}") from None


def read_to_release(segment: Segment) -> Buffer:
    """As :func:`read_segment`, in memory that can be given back in parts (:class:`_Released`)."""
    if segment.data is not None or _GIVE_BACK is None or not segment.size or is_remote(segment.path):
        return read_segment(segment)
    descriptor = open_read(segment.path)
    buf = mmap.mmap(-1, segment.size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    try:
        with os.fdopen(descriptor, "rb", buffering=0) as file, memoryview(buf) as view:
            done = 0
            while count := file.readinto(view[done:]):
                done += count
    except OSError as error:
        raise SourceError(f"{segment.path}: {error.strerror}") from None
    return buf if done == segment.size else buf[:done]


class _Released:
    """Gives the memory of what was read back to the system, some megabytes at a time."""

    def __init__(self, buf: Buffer) -> None:
        self._buf = buf
        self._start = self._last = 0

    def up_to(self, position: int) -> None:
        """Nobody looks any more at what is before the batch that came before the one at ``position``."""
        end = self._last & -mmap.PAGESIZE
        if isinstance(self._buf, mmap.mmap) and _GIVE_BACK is not None and end - self._start >= _PIECE:
            self._buf.madvise(_GIVE_BACK, self._start, end - self._start)
            self._start = end
        self._last = position


class LogReader:
    """Walks the batches that hold offsets from ``start`` on; collects damage and a torn tail on the way.

    Damage before ``start``, or anywhere with ``resume``, is stepped over at the next whole batch; else the walk ends
    there, because what follows is no longer known to be a state of the cluster. Nothing is looked at once the offset
    ``until`` was reached: damage after it is not met. With ``release`` the bytes of a batch are gone once the second
    one after it was asked for: for a caller who takes from each what it needs.
    """

    def __init__(
        self,
        listing: Listing,
        start: int = 0,
        *,
        until: int | None = None,
        resume: bool = False,
        progress: Progress | None = None,
        release: bool = False,
    ) -> None:
        self.path = ""
        """The segment that is being walked."""
        self.damage: list[DataError] = []
        self.torn: tuple[str, Torn] | None = None
        self._segments = _needed(listing.segments, start)
        self._start = start
        self._until = until
        self._resume = resume
        self._progress = progress
        self._release = release
        self._epochs = LeaderEpochs(leader_epochs(listing))
        self._next: int | None = None
        self._is_over = False
        """Whether a segment was left before its end."""

    def __iter__(self) -> Iterator[FileBatch]:
        total = sum(segment.size for segment in self._segments)
        done = 0
        for index, segment in enumerate(self._segments):
            if self._is_past(segment.base_offset) or not self._joins(segment):
                return
            is_last = index == len(self._segments) - 1
            self.path = segment.path
            for batch in self._segment(segment, is_last):
                yield FileBatch(segment.path, batch)
                if self._progress:
                    self._progress(done + batch.end, total, segment.path)
                if self._is_past(batch.last_offset + 1):
                    return
            done += segment.size
            if self.damage and not self._continues():
                return

    def _is_past(self, offset: int | None) -> bool:
        return self._until is not None and offset is not None and offset > self._until

    def _joins(self, segment: Segment) -> bool:
        """Whether a segment starts where the one before it ended."""
        if self._next is None or segment.base_offset in (None, self._next):
            return True
        reason = f"the segment starts at offset {segment.base_offset}, {self._next} was to come"
        self.damage.append(IncompleteLogError(f"{segment.path}: {reason}"))
        if not self._resume:
            return False
        self._next = segment.base_offset
        return True

    def _continues(self) -> bool:
        return self._resume or not self._is_over or (self._next is not None and self._next <= self._start)

    def _segment(self, segment: Segment, is_last: bool) -> Iterator[Batch]:
        buf = read_to_release(segment) if self._release else read_segment(segment)
        released = _Released(buf)
        self._is_over = False
        for batch in self._walk(buf, segment, 0, is_last=is_last):
            yield batch
            released.up_to(batch.position)

    def _walk(self, buf: Buffer, segment: Segment, start: int, *, is_last: bool) -> Iterator[Batch]:
        """The good batches from byte ``start`` on; damage is noted and stepped over."""
        position: int | None = start
        expected = segment.base_offset if self._next is None else self._next
        while position is not None:
            chain = Chain(self._epochs, expected)
            try:
                for batch in chain.walk(buf, segment.path, position):
                    self._next = batch.last_offset + 1
                    yield batch
                position = None
                if chain.torn is not None:
                    position = self._torn(chain.torn, segment, buf, is_last)
            except CorruptDataError as error:
                self.damage.append(error.with_traceback(None))
                position = self._step_over(buf, error.position)
            expected = None

    def _torn(self, torn: Torn, segment: Segment, buf: Buffer, is_last: bool) -> int | None:
        if is_last:
            self.torn = (segment.path, torn)
            return None
        self.damage.append(CorruptDataError(segment.path, torn.position, f"{torn.reason}, but another segment follows"))
        return self._step_over(buf, torn.position)

    def _step_over(self, buf: Buffer, position: int) -> int | None:
        """Where to go on after damage, or ``None`` to stop."""
        found = find_batch(buf, position + 1)
        if found is None or not (self._resume or found.base_offset <= self._start):
            self._is_over = True
            return None
        return found.position


def _needed(segments: tuple[Segment, ...], start: int) -> tuple[Segment, ...]:
    """The segments that may hold offsets from ``start`` on: the last that begins at or before it, and all later."""
    first = 0
    for index, segment in enumerate(segments):
        if segment.base_offset is not None and segment.base_offset <= start:
            first = index
    return segments[first:]
