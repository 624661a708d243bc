"""The records of a log or of a snapshot, decoded one by one. No image is made: ``dump`` works where none can be.

Everything readable is given, damage is stepped over and collected. A running server may roll or delete segments
meanwhile: then the directory is listed again and the walk goes on after the last offset that it gave.
"""

from __future__ import annotations

import os
import time
from array import array
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

from kshell.errors import CorruptDataError, DataError, MissingCodecError
from kshell.metadata.record_text import RecordTexts
from kshell.metadata.records import Decoded, decode_record
from kshell.protocol.batches import Batch, RawRecord, Select, iter_records, plain_values
from kshell.protocol.primitives import Buffer, DecodeError
from kshell.protocol.verify import Torn
from kshell.sources.directory.files import VANISHES, Listing, SnapshotFile
from kshell.sources.directory.log import FileBatch, LogReader, Progress
from kshell.sources.directory.snapshot import SnapshotReader
from kshell.sources.directory.source import ATTEMPTS, PAUSE
from kshell.sources.source import Source

T = TypeVar("T")
Wanted = Callable[[RawRecord, bool], bool]
"""(record, whether it is a control record) -> whether to decode it."""


class LogRecord(NamedTuple):
    """A decoded record and its place: the batch's epoch and first byte, and the file's name."""

    offset: int
    epoch: int
    timestamp: int
    decoded: Decoded
    file: str
    position: int


class BatchWalk:
    """The verified batches with offsets from ``start`` to ``until``; ``damage`` and ``torn`` describe the rest."""

    def __init__(
        self, source: Source, start: int = 0, until: int | None = None, progress: Progress | None = None
    ) -> None:
        self.damage: list[DataError] = []
        self.torn: tuple[str, Torn] | None = None
        self.notes: list[str] = []
        self.listing = source.listing(full_log=True)
        self._source = source
        self._next = start
        self._until = until
        self._progress = progress

    def __iter__(self) -> Iterator[FileBatch]:
        for attempt in range(ATTEMPTS):
            reader = LogReader(self.listing, self._next, until=self._until, resume=True, progress=self._progress)
            try:
                yield from self._walk(reader, last_try=attempt == ATTEMPTS - 1)
            except _ChangedError:
                continue
            self.damage += [error for error in reader.damage if error.message not in {e.message for e in self.damage}]
            self.torn, self.notes = reader.torn, reader.notes
            return

    def _walk(self, reader: LogReader, *, last_try: bool) -> Iterator[FileBatch]:
        damage_count = 0
        try:
            for file_batch in reader:
                if len(reader.damage) > damage_count:
                    damage_count = len(reader.damage)
                    self._believe(last_try)
                batch = file_batch.batch
                if self._until is not None and batch.base_offset > self._until:
                    return
                if batch.last_offset >= self._next:
                    self._next = batch.last_offset + 1
                    yield file_batch
        except FileNotFoundError as error:
            self._believe(last_try)
            raise CorruptDataError(str(error.filename), 0, VANISHES) from None
        if len(reader.damage) > damage_count:
            self._believe(last_try)

    def _believe(self, last_try: bool) -> None:
        """What looks like damage is damage only when the directory did not change meanwhile. Raises _ChangedError."""
        listing = self._source.listing(full_log=True)
        if not last_try and listing != self.listing:
            self.listing = listing
            time.sleep(PAUSE)
            raise _ChangedError


class _ChangedError(Exception):
    """The directory is not what it was when the walk began."""


class DecodedRecords:
    """The records of a walk's or a snapshot's batches, decoded; afterwards ``damage`` and ``torn`` say the rest.

    Malformed records are given like others; ``malformed`` counts them, ``first_malformed`` tells where and why.
    ``wanted`` spares the decoding of records that nobody asked for, ``select`` a look at most of them.
    """

    def __init__(
        self,
        batches: BatchWalk | SnapshotReader,
        *,
        start: int = 0,
        until: int | None = None,
        wanted: Wanted | None = None,
        select: Select | None = None,
    ) -> None:
        self.damage: list[DataError] = []
        self.torn: tuple[str, Torn] | None = None
        self.notes: list[str] = []
        self.malformed = 0
        self.first_malformed: str | None = None
        self._batches = batches
        self._start = start
        self._until = until
        self._wanted = wanted
        self._select = select

    def __iter__(self) -> Iterator[LogRecord]:
        return self.each(self._batch)

    def json_lines(self, texts: RecordTexts, line: Callable[[LogRecord], str]) -> Iterator[str]:
        """The records as lines of JSON, those of a batch together, mostly without decoding.

        Args:
            texts: writes metadata records, all but the first three columns of a row.
            line: writes any other record.
        """
        return self.each(lambda batch, file: self._batch_lines(batch, file, texts, line))

    def each(self, read: Callable[[Batch, str], Iterator[T]]) -> Iterator[T]:
        """What ``read`` makes of each batch and the path of its file; it raises DecodeError for one that is damaged."""
        for file, batch in self._in_files():
            try:
                yield from read(batch, file)
            except DecodeError as error:
                self.damage.append(CorruptDataError(file, batch.position, error.reason))
            except MissingCodecError as error:
                self.damage.append(error.at(file, batch.position))
        if isinstance(self._batches, BatchWalk):
            self.damage += self._batches.damage
            self.torn, self.notes = self._batches.torn, self._batches.notes

    def _in_files(self) -> Iterator[tuple[str, Batch]]:
        if isinstance(self._batches, BatchWalk):
            yield from self._batches
            return
        try:
            for batch in self._batches:
                yield self._batches.file.path, batch
        except CorruptDataError as error:
            self.damage.append(error.with_traceback(None))

    def _note_malformed(self, where: str, decoded: Decoded) -> None:
        self.malformed += 1
        if self.first_malformed is None and decoded.undecoded is not None:
            self.first_malformed = f"{where}: {decoded.undecoded.reason}"

    def _batch(self, batch: Batch, file: str) -> Iterator[LogRecord]:
        name = os.path.basename(file)
        start, until, wanted = self._start, self._until, self._wanted
        control, epoch, position = batch.is_control, batch.epoch, batch.position
        for raw in iter_records(batch, self._select):
            offset = raw.offset
            if offset < start:
                continue
            if until is not None and offset > until:
                return
            if wanted is None or wanted(raw, control):
                decoded = decode_record(raw, control=control)
                if decoded.undecoded is not None and decoded.undecoded.malformed:
                    self._note_malformed(f"{file}: offset {offset}: {decoded.name} v{decoded.version}", decoded)
                yield LogRecord(offset, epoch, raw.timestamp, decoded, name, position)

    def _batch_lines(
        self, batch: Batch, file: str, texts: RecordTexts, line: Callable[[LogRecord], str]
    ) -> Iterator[str]:
        is_whole = batch.base_offset >= self._start and (self._until is None or batch.last_offset <= self._until)
        if is_whole and self._wanted is None and self._select is None and not batch.is_control:
            region, begin, end = batch.region()
            bounds = plain_values(region, begin, end, batch.records)
            lines = None if bounds is None else self._plain_lines(batch, region, bounds, texts)
            if lines is not None:
                yield lines
                return
        for record in self._batch(batch, file):
            yield line(record)

    def _plain_lines(self, batch: Batch, region: Buffer, bounds: array[int], texts: RecordTexts) -> str | None:
        """The lines of a batch; ``None`` where a record cannot be decoded."""
        lines: list[str] = []
        text_of, middle = texts.text, f',"epoch":{batch.epoch},"timestampMs":{batch.plain_timestamp},'
        ends = iter(bounds)
        for offset, (start, end) in enumerate(zip(ends, ends, strict=True), batch.base_offset):
            text = text_of(region, start, end)
            if text is None:
                return None
            lines.append(f'{{"offset":{offset}{middle}{text}\n')
        return "".join(lines)


def log_records(
    source: Source,
    *,
    start: int = 0,
    until: int | None = None,
    wanted: Wanted | None = None,
    select: Select | None = None,
    progress: Progress | None = None,
) -> DecodedRecords:
    """The log's records with offsets from ``start`` to ``until``."""
    return DecodedRecords(
        BatchWalk(source, start, until, progress), start=start, until=until, wanted=wanted, select=select
    )


def snapshot_records(
    listing: Listing,
    file: SnapshotFile,
    *,
    start: int = 0,
    until: int | None = None,
    wanted: Wanted | None = None,
    progress: Progress | None = None,
) -> DecodedRecords:
    """A snapshot's records. Their offsets count within the file and are not the log's."""
    reader = SnapshotReader(file, progress=progress)
    return DecodedRecords(reader, start=start, until=until, wanted=wanted)
