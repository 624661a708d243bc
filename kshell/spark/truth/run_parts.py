"""Batches inside runs, found by their headers: where one begins that holds an offset, and the part of a run from there
on. Damage needs it, and ends that lie within a run; nothing else is read twice.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

from kshell.errors import SourceError
from kshell.protocol.batches import HEADER_SIZE, Batch, read_header
from kshell.sources.directory.ranges import OpenFile, open_file
from kshell.spark.files.headers import header_at, plausible_header
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
    is_control: bool


def batches(path: str, run: Run) -> Iterator[At]:
    """The batches of a run, by their headers. Raises FileNotFoundError (list again), SourceError."""
    with _opened(path) as file:
        window, base, position = b"", 0, run.start
        while position < run.end:
            at = position - base
            if at + HEADER_SIZE > len(window):
                window, base, at = file.pread(min(_WINDOW, run.end - position), position), position, 0
            batch = plausible_header(window, at)
            if batch is None:
                raise FileNotFoundError(2, "the file is not what it was when it was listed", path)
            found = _placed(batch, position)
            yield found
            position = found.end


def whole_at(path: str, size: int, position: int) -> At | None:
    """The batch that begins at a byte of a file, if there is a whole one with a good CRC."""
    with _opened(path) as file:
        batch = header_at(file, position)
        if batch is None or position + batch.size > size:
            return None
        raw = file.pread(batch.size, position)
        if len(raw) < batch.size or not read_header(raw, 0).crc_is_good():
            return None
        return _placed(batch, position)


def _placed(batch: Batch, position: int) -> At:
    return At(
        position, position + batch.size, batch.base_offset, batch.last_offset + 1, batch.epoch, batch.crc,
        batch.base_timestamp, batch.max_timestamp, batch.is_control,
    )  # fmt: skip


@contextlib.contextmanager
def _opened(path: str) -> Iterator[OpenFile]:
    file = open_file(path)
    try:
        yield file
    except FileNotFoundError:
        raise
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror or error}") from None
    finally:
        file.close()


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
    return _hinted(path, run) or _first(path, run, lambda one: one.end >= run.end)


def at_byte(path: str, run: Run, position: int) -> At:
    """The batch that holds a byte of the run."""
    last = _hinted(path, run) if run.start <= run.last <= position else None
    return last or _first(path, run, lambda one: one.end > position)


def _hinted(path: str, run: Run) -> At | None:
    """The last batch, where the hint of the run is right."""
    if not run.start <= run.last < run.end:
        return None
    with _opened(path) as file:
        batch = header_at(file, run.last)
    if batch is None or (run.last + batch.size, batch.last_offset + 1) != (run.end, run.after):
        return None
    return _placed(batch, run.last)


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
