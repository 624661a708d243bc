"""Read the planned batches of a file piece by piece and check their CRCs. Runs on the executors; free of Spark.

Damage does not end the reading: findings are returned between the batches.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kshell.errors import SourceError
from kshell.protocol.batches import HEADER_SIZE, MAX_BATCH, Batch, read_header
from kshell.protocol.verify import MAGIC
from kshell.sources.directory.files import named
from kshell.sources.directory.ranges import OpenFile, open_file
from kshell.spark.files.plan import UNREAD, FileFinding, FilePlan, Run
from kshell.spark.schemas import Row

_PIECE = 4 << 20
CRC = "the batch's CRC does not match its bytes"
_LARGEST = (1 << 63) - 1
_CHANGED = "the file is not what it was when it was listed"


class PositionedBatch(NamedTuple):
    """A good batch, and its first byte in the file (positions in ``batch`` itself are within the bytes read at once).

    ``repeats``: an earlier file had the same offsets.
    """

    position: int
    batch: Batch
    repeats: bool


def read(plan: FilePlan) -> Iterator[PositionedBatch | FileFinding]:
    """Return the batches of a file's runs, and findings. Of a snapshot nothing is returned after the first damage."""
    if not plan.runs:
        return
    try:
        file = open_file(plan.path)
    except FileNotFoundError:
        yield FileFinding(-1, UNREAD, "the file is gone since it was listed")
        return
    except SourceError as error:
        yield FileFinding(-1, UNREAD, error.message)
        return
    try:
        if plan.is_snapshot and not plan.is_proven and not _is_good(file, plan.runs[0].start):
            return  # the damage is before this piece; the reader of that piece reports it
        for run in plan.runs:
            for item in _run(file, run):
                yield item
                if plan.is_snapshot and isinstance(item, FileFinding):
                    return
    except OSError as error:
        yield FileFinding(-1, UNREAD, f"{plan.path}: {error.strerror or error}")
    finally:
        file.close()


def _run(file: OpenFile, run: Run) -> Iterator[PositionedBatch | FileFinding]:
    """Return the batches of a run; a bad CRC is a finding, and a batch that was not planned ends the run with one."""
    expected = run.first
    for position, batch in _batches(file, run.start, run.end):
        if batch is None or batch.magic != MAGIC or batch.base_offset != expected:
            yield FileFinding(position, UNREAD, _CHANGED)
            return
        expected = batch.last_offset + 1
        yield (
            PositionedBatch(position, batch, run.repeats)
            if batch.crc_is_good()
            else FileFinding(position, "batch", CRC)
        )


def _batches(file: OpenFile, start: int, end: int) -> Iterator[tuple[int, Batch | None]]:
    """Return (first byte, batch) of all batches between two bytes; ``None`` for a batch that is no longer complete."""
    window, base, position = b"", start, start
    while position < end:
        at = position - base
        batch = read_header(window, at) if len(window) - at >= HEADER_SIZE else None
        if batch is None or at + batch.size > len(window):
            size = 0 if batch is None else min(batch.size, MAX_BATCH)
            window, base, at = file.pread(min(max(_PIECE, size), end - position), position), position, 0
            batch = read_header(window, 0) if len(window) >= HEADER_SIZE else None
        is_larger = batch is not None and len(window) < batch.end <= min(MAX_BATCH, end - position)
        if batch is not None and is_larger:
            window = file.pread(batch.size, position)
            batch = read_header(window, 0) if len(window) == batch.size else None
        if batch is None or batch.size < HEADER_SIZE or batch.end > len(window):
            yield position, None
            return
        yield position, batch
        position += batch.size


def _is_good(file: OpenFile, end: int) -> bool:
    """Whether the CRC of every batch before byte ``end`` is right."""
    return all(batch is not None and batch.crc_is_good() for _, batch in _batches(file, 0, end))


# --- rows of the view files -------------------------------------------------------------------------------------------


def file_row(plan: FilePlan) -> Row:
    """Return a file's row of the view ``files``, except the columns of its origin. Reads the whole file in pieces."""
    findings, batches = list(plan.findings), _Batches()
    for placed in read(plan):
        if isinstance(placed, FileFinding):
            findings.append(placed)
        else:
            batches.add(placed.batch)
    return batches.row() | finding_columns(plan, sorted(findings))


def finding_columns(plan: FilePlan, findings: Sequence[FileFinding]) -> Row:
    """Return the columns of ``files`` for a file's name, size and findings."""
    name = named(os.path.basename(plan.path))
    return {
        "size": plan.size,
        "nameOffset": name.offset if name else None,
        "nameEpoch": name.epoch if name else None,
        "crcFailures": sum(finding.reason == CRC for finding in findings),
        "isDamaged": any(finding.kind != "torn" for finding in findings),
        "tornAt": next((finding.position for finding in findings if finding.kind == "torn"), None),
        "findings": [finding.columns() for finding in findings],
    }


class _Batches:
    """Sums over the good batches of a file: :meth:`add` each batch, then ask for the :meth:`row`."""

    def __init__(self) -> None:
        self._first: Batch | None = None
        self._last: Batch | None = None
        self._earliest, self._latest = _LARGEST, -1
        self._batches = self._records = self._bytes = 0

    def add(self, batch: Batch) -> None:
        if self._last is not None and batch.base_offset <= self._last.last_offset:
            return  # after damage, old contents of the disk can look like an earlier batch
        self._first = self._first or batch._replace(buf=b"")
        self._last = batch
        self._earliest = min(self._earliest, batch.base_timestamp)
        self._latest = max(self._latest, batch.max_timestamp)
        self._batches += 1
        self._records += batch.records
        self._bytes += batch.size

    def row(self) -> Row:
        first, last = self._first, self._last
        return {
            "firstOffset": first.base_offset if first else None,
            "lastOffset": last.last_offset if last else None,
            "firstEpoch": first.epoch if first else None,
            "lastEpoch": last.epoch if last else None,
            "firstTimestampMs": self._earliest if first else None,
            "lastTimestampMs": self._latest if first else None,
            "batches": self._batches,
            "records": self._records,
            "goodBytes": self._bytes,
        }
