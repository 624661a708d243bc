"""Batches inside runs, found by their headers: where one begins that holds an offset, and the part of a run from there
on. Damage needs it, and ends that lie within a run; nothing else is read twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from kshell.errors import SourceError
from kshell.protocol.batches import HEADER_SIZE, LENGTH_END, MIN_LENGTH, read_header
from kshell.protocol.verify import MAGIC
from kshell.sources.ranges import open_file
from kshell.spark.files.plan import Run

_WINDOW = 1 << 14


class At(NamedTuple):
    """A batch in a file: its bytes, its offsets (``after`` exclusive), and what its header says."""

    position: int
    end: int
    first: int
    after: int
    epoch: int
    crc: int
    first_ms: int
    last_ms: int


def batches(path: str, run: Run) -> Iterator[At]:
    """The batches of a run, by their headers. Raises FileNotFoundError (list again), SourceError."""
    file = open_file(path)
    try:
        window, base, position = b"", 0, run.start
        while position < run.end:
            at = position - base
            if at + HEADER_SIZE > len(window):
                window, base, at = file.pread(min(_WINDOW, run.end - position), position), position, 0
            batch = read_header(window, at) if len(window) >= HEADER_SIZE else None
            if batch is None or batch.magic != MAGIC or batch.size - LENGTH_END < MIN_LENGTH:
                raise FileNotFoundError(2, "the file is not what it was when it was listed", path)
            end = position + batch.size
            yield At(
                position, end, batch.base_offset, batch.last_offset + 1, batch.epoch, batch.crc,
                batch.base_timestamp, batch.max_timestamp,
            )  # fmt: skip
            position = end
    except FileNotFoundError:
        raise
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror or error}") from None
    finally:
        file.close()


def whole_at(path: str, size: int, position: int) -> At | None:
    """The batch that begins at a byte of a file, if there is a whole one with a good CRC."""
    file = open_file(path)
    try:
        head = file.pread(HEADER_SIZE, position)
        if len(head) < HEADER_SIZE:
            return None
        batch = read_header(head, 0)
        if batch.magic != MAGIC or batch.size - LENGTH_END < MIN_LENGTH or position + batch.size > size:
            return None
        raw = file.pread(batch.size, position)
        if len(raw) < batch.size or not read_header(raw, 0).crc_is_good():
            return None
    except FileNotFoundError:
        raise
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror or error}") from None
    finally:
        file.close()
    return At(
        position, position + batch.size, batch.base_offset, batch.last_offset + 1, batch.epoch, batch.crc,
        batch.base_timestamp, batch.max_timestamp,
    )  # fmt: skip


def _first(path: str, run: Run, fits: Callable[[At], bool]) -> At:
    found = next((one for one in batches(path, run) if fits(one)), None)
    if found is None:
        raise FileNotFoundError(2, "the file is not what it was when it was listed", path)
    return found


def holding(path: str, run: Run, offset: int) -> At:
    """The batch that holds an offset of the run."""
    return _first(path, run, lambda one: one.after > offset)


def last_of(path: str, run: Run) -> At:
    """The last batch of a run."""
    return _first(path, run, lambda one: one.end >= run.end)


def at_byte(path: str, run: Run, position: int) -> At:
    """The batch that holds a byte of the run."""
    return _first(path, run, lambda one: one.end > position)


def since(path: str, run: Run, offset: int, *, inside: bool = False) -> Run | None:
    """The batches that begin at or after an offset; with ``inside`` also one that only ends after it."""
    if run.first >= offset:
        return run
    if run.after <= offset:
        return None
    found = holding(path, run, offset)
    if found.first == offset or inside:
        return run._replace(start=found.position, first=found.first)
    return run._replace(start=found.end, first=found.after) if found.end < run.end else None


def until(path: str, run: Run, offset: int) -> Run | None:
    """The batches that end at or before an offset (exclusive)."""
    if run.after <= offset:
        return run
    if run.first >= offset:
        return None
    found = holding(path, run, offset)
    return run._replace(end=found.position, after=found.first) if found.position > run.start else None
