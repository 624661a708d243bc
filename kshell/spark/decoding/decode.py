"""Decode slices of files into Arrow record batches of one view. Runs on the executors; free of Spark.

:class:`View` is the entry. Everything in the bytes becomes a row or a finding. Values are redacted
(:mod:`kshell.metadata.redaction`) before any of them gets into a column.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING

from kshell.errors import MissingCodecError, UnreadError
from kshell.history.records import only
from kshell.metadata.records import Decoded, decode_record
from kshell.metadata.redaction import Redaction
from kshell.protocol.batches import Batch, RawRecord, iter_records
from kshell.protocol.primitives import DecodeError
from kshell.sources.directory.records import Wanted
from kshell.spark.files.pack import Slice
from kshell.spark.files.plan import UNREAD, FileFinding, FilePlan
from kshell.spark.files.read import PositionedBatch, file_row, read
from kshell.spark.files.scan import spelled
from kshell.spark.options import Narrowing
from kshell.spark.schemas import FILES, QUARANTINE, RECORDS, Row, column_name
from kshell.tables import arrow as arrow_tables
from kshell.tables.arrow import INT16, INT64
from kshell.tables.declaration import Field

if TYPE_CHECKING:
    import pyarrow as pa

Event = tuple[PositionedBatch, RawRecord, Decoded] | FileFinding


@dataclass
class View:
    """Makes the rows of one view, with the requested columns and records: call :meth:`batches`.

    ``is_whole``: every record must be read. A file that cannot be read raises UnreadError, in the view ``records`` a
    codec that is not installed MissingCodecError; otherwise both are findings. ``dictionaries``: as in
    :class:`~kshell.spark.decoding.bronze.Records`, for the view ``records``.
    """

    name: str
    fields: Sequence[Field]
    narrowing: Narrowing
    _: KW_ONLY
    show_secrets: bool = False
    is_whole: bool = False
    dictionaries: bool = False
    finding_count: int = field(default=0, init=False)
    """How many findings the view ``records``, which has no rows for them, has met so far."""

    def batches(self, slices: Iterable[Slice]) -> Iterator[pa.RecordBatch]:
        """Return the rows of slices as ``pyarrow.RecordBatch`` objects of some ten thousand rows each."""
        pyarrow = importlib.import_module("pyarrow")
        if self.name == RECORDS:
            yield from self._records(slices)
            return
        rows = {FILES: self._files, QUARANTINE: self._quarantine}.get(self.name, self._typed)
        columns = (row for piece in slices for row in rows(piece))
        yield from arrow_tables.batches(pyarrow, self.fields, columns)

    def _events(self, piece: Slice, types: frozenset[str] | None) -> Iterator[Event]:
        """Return the wanted records, decoded, and the findings of a slice, in the order of the file."""
        log = not piece.file.is_snapshot
        wanted = None if types is None else only(types)
        for placed in read(piece.file):
            if isinstance(placed, FileFinding):
                yield placed
                continue
            if placed.repeats:
                continue
            try:
                for raw, decoded in records(placed.batch, self.narrowing, wanted, log=log):
                    yield placed, raw, decoded
            except DecodeError as error:
                yield FileFinding(placed.position, "batch", error.reason)
            except MissingCodecError as error:
                yield FileFinding(placed.position, UNREAD, error.message)

    def _records(self, slices: Iterable[Slice]) -> Iterator[pa.RecordBatch]:
        from kshell.spark.decoding.bronze import Records  # late: it needs numpy

        collected = Records(
            self.fields,
            self.narrowing,
            Redaction(show_secrets=self.show_secrets),
            is_whole=self.is_whole,
            dictionaries=self.dictionaries,
        )
        for piece in slices:
            source = _texts(piece)
            self._demand(piece.file, piece.file.findings)
            for placed in read(piece.file):
                if isinstance(placed, FileFinding):
                    self._demand(piece.file, [placed])
                    self.finding_count += 1
                elif not placed.repeats:
                    collected.add(placed.batch, (*source, placed.position, placed.batch.epoch))
                if collected.is_full:
                    yield from collected.record_batches()
        yield from collected.record_batches()
        self.finding_count += collected.broken

    def _demand(self, file: FilePlan, findings: Iterable[FileFinding]) -> None:
        """With ``is_whole``, raise UnreadError for a finding of kind UNREAD."""
        for finding in findings:
            if self.is_whole and finding.kind == UNREAD:
                message = finding.reason if file.path in finding.reason else f"{file.path}: {finding.reason}"
                raise UnreadError(message, hint="read again; the view quarantine has what cannot be read as rows")

    def _typed(self, piece: Slice) -> Iterator[Row]:
        types = frozenset((self.name,))
        if self.narrowing.types is not None and self.name not in self.narrowing.types:
            return
        source, redaction = _source(piece), Redaction(show_secrets=self.show_secrets)
        self._demand(piece.file, piece.file.findings)
        for event in self._events(piece, types):
            if isinstance(event, FileFinding):
                self._demand(piece.file, [event])
            elif event[2].data is not None:
                placed, raw, decoded = event
                data = redaction.record(decoded)
                yield source | _context(placed, raw, decoded) | {column_name(key): data[key] for key in data}

    def _quarantine(self, piece: Slice) -> Iterator[Row]:
        source, redaction = _source(piece), Redaction(show_secrets=self.show_secrets)
        for finding in piece.file.findings:
            yield source | finding.columns()
        for event in self._events(piece, self.narrowing.types):
            if isinstance(event, FileFinding):
                yield source | event.columns()
            elif event[2].undecoded is not None:
                placed, raw, decoded = event
                row = source | _context(placed, raw, decoded)
                reason = decoded.undecoded.reason if decoded.undecoded else ""
                yield row | {"kind": "record", "reason": reason, "raw": redaction.raw(decoded)}

    def _files(self, piece: Slice) -> Iterator[Row]:
        yield _source(piece) | file_row(piece.file)


def records(
    batch: Batch, narrowing: Narrowing, wanted: Wanted | None, *, log: bool
) -> Iterator[tuple[RawRecord, Decoded]]:
    """Decode the wanted records of a batch, of any form, one by one: a view of one type has no faster way.

    ``log``: the batch is of a log, so its offsets and times count for that. Raises DecodeError or MissingCodecError,
    after the records before the fault.
    """
    control = batch.is_control
    for raw in iter_records(batch):
        if (not log or _is_within(raw, narrowing)) and (wanted is None or wanted(raw, control)):
            yield raw, decode_record(raw, control=control)


def _is_within(raw: RawRecord, narrowing: Narrowing) -> bool:
    """Whether a record of the log has an offset and a time between ``since`` and ``until`` (both inclusive)."""
    since, until = narrowing.since, narrowing.until
    return (
        (since.offset is None or raw.offset >= since.offset)
        and (until.offset is None or raw.offset <= until.offset)
        and (since.time_ms is None or raw.timestamp >= since.time_ms)
        and (until.time_ms is None or raw.timestamp <= until.time_ms)
    )


def _texts(piece: Slice) -> tuple[str | None, int | None, str, bool]:
    """Return the values that all records of a slice share; bytes of a path that are not UTF-8 become question marks."""
    return piece.origin.cluster_id, piece.origin.node_id, spelled(piece.file.path), piece.file.is_snapshot


def _source(piece: Slice) -> Row:
    return {
        "clusterId": piece.origin.cluster_id,
        "nodeId": piece.origin.node_id,
        "file": piece.file.path,
        "isSnapshot": piece.file.is_snapshot,
    }


def _context(placed: PositionedBatch, raw: RawRecord, decoded: Decoded) -> Row:
    """Return the columns with a record's position and type. Numbers out of range, which only damage has, are null."""
    return {
        "position": placed.position,
        "offset": raw.offset if raw.offset in INT64 else None,
        "epoch": placed.batch.epoch,
        "timestampMs": raw.timestamp if raw.timestamp in INT64 else None,
        "type": decoded.name,
        "version": decoded.version if decoded.version in INT16 else None,
    }
