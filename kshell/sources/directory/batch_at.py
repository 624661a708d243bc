"""Find the batch that contains an offset, and its bytes, even if it is damaged: ``explain`` shows them one by one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kshell.errors import CorruptDataError, DataError
from kshell.protocol.batches import HEADER_SIZE, MAX_BATCH, Batch, read_header
from kshell.protocol.primitives import Buffer
from kshell.protocol.windows import Windowed
from kshell.sources.directory.files import Listing, SnapshotFile
from kshell.sources.directory.log import LogReader, opened
from kshell.sources.directory.snapshot import SnapshotReader

MOST_BYTES = 1 << 16
"""The most bytes that are shown where there is no whole batch."""


class BatchAt(NamedTuple):
    """A batch, or the bytes where it should be."""

    file: str
    position: int
    batch: Batch | None
    """``None`` if there is not even a batch header."""
    raw: Buffer
    start: int
    """The position in the file at which ``raw`` begins."""
    end: int
    """The position in the file after the batch, or after the part of it that is there."""
    fault: str | None
    """What is wrong with the batch; ``None`` if it is undamaged."""


def in_log(listing: Listing, offset: int) -> BatchAt | None:
    """Find the log's batch that contains ``offset``, or the bytes in its place if it is damaged; else ``None``.

    Raises:
        FileNotFoundError: a running server deleted a segment; list again.
        SourceError: a segment cannot be read.
    """
    reader = LogReader(listing, offset, resume=True)
    batch_at: BatchAt | None = None
    for path, batch in reader:
        if batch.base_offset <= offset <= batch.last_offset:
            return _undamaged(path, batch)
        if batch.base_offset > offset:
            batch_at = _damaged(reader.damage, path, batch.position)
            break
    else:
        torn = reader.torn
        if torn is not None:
            batch_at = BatchAt(torn[0], torn[1].position, None, b"", 0, -1, torn[1].reason)
        else:
            batch_at = _damaged(reader.damage, "", -1)
    if batch_at is None:
        return None
    segment = next(segment for segment in listing.segments if segment.path == batch_at.file)
    with opened(segment) as source:
        return _bytes_of(batch_at, source)


def in_snapshot(file: SnapshotFile, offset: int) -> BatchAt | None:
    """As :func:`in_log`, for a snapshot, whose offsets count within the file."""
    reader = SnapshotReader(file)
    try:
        for batch in reader:
            if batch.base_offset <= offset <= batch.last_offset:
                return _undamaged(file.path, batch)
    except CorruptDataError as error:
        error.with_traceback(None)  # the traceback would keep the window in memory
        with opened(file) as source:
            if error.position >= source.size:
                return None
            return _bytes_of(BatchAt(file.path, error.position, None, b"", 0, -1, error.reason), source)
    return None


def _undamaged(path: str, batch: Batch) -> BatchAt:
    # The bytes are copied, because those of a mapped file are gone once it is closed.
    raw = batch.raw()
    own = read_header(raw, 0, batch.position)
    return BatchAt(path, batch.position, own, raw, batch.position, batch.end, None)


def _damaged(damage: Iterable[DataError], path: str, following: int) -> BatchAt | None:
    """The last damage, without its bytes. ``path``, ``following``: file and position of the whole batch after it."""
    faults = [error for error in damage if isinstance(error, CorruptDataError)]
    if not faults:
        return None
    last = faults[-1]
    end = following if path == last.file and following > last.position else -1
    return BatchAt(last.file, last.position, None, b"", 0, end, last.reason)


def _bytes_of(damaged: BatchAt, source: Windowed) -> BatchAt:
    """Read the bytes of a damaged place: to the end that its header claims, the next whole batch, or the file's end."""
    limit = source.size if damaged.end < 0 else damaged.end
    raw = _read(source, damaged.position, min(limit, damaged.position + MOST_BYTES))
    batch = read_header(raw, 0, damaged.position) if len(raw) >= HEADER_SIZE else None
    if batch is not None and HEADER_SIZE <= batch.size <= min(limit - damaged.position, MAX_BATCH):
        raw = _read(source, damaged.position, batch.end)
    return damaged._replace(batch=batch, raw=raw, start=damaged.position, end=damaged.position + len(raw))


def _read(source: Windowed, start: int, end: int) -> bytes:
    """The bytes of a file from ``start`` to ``end``, fewer if the file ends before."""
    window = source.window(start, end - start)
    return bytes(window.buf[start - window.start : end - window.start])
