"""Decode the records of a log or a snapshot one by one, without an image: ``dump`` works even if none can be made.

Everything readable is yielded; damage is stepped over and collected. If a running server rolls or deletes segments
meanwhile, the directory is listed again, and reading continues after the last offset that was yielded.
"""

from __future__ import annotations

import os
import time
from array import array
from collections.abc import Callable, Iterator
from itertools import chain, islice
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
"""A callback: (record, whether it is a control record) -> whether to decode it."""


class LogRecord(NamedTuple):
    """A decoded record, with the epoch of its batch, the name of its file, and the batch's position in the file."""

    offset: int
    epoch: int
    timestamp: int
    decoded: Decoded
    file: str
    position: int


class BatchWalk:
    """Iterates over the verified batches with offsets from ``start`` to ``until``, while a server may write to the log.

    ``damage``, ``torn`` and ``notes`` are complete after the iteration.
    """

    def __init__(
        self, source: Source, start: int = 0, until: int | None = None, progress: Progress | None = None
    ) -> None:
        self.damage: list[DataError] = []
        self.torn: tuple[str, Torn] | None = None
        self.notes: list[str] = []
        self.read_up_to: int | None = None
        """The last offset of the newest batch that was read, also of one below ``start``; ``None`` if none was."""
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
                self.read_up_to = batch.last_offset
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
        """Accept what looks like damage, unless the directory has changed since it was listed: raises _ChangedError."""
        listing = self._source.listing(full_log=True)
        if not last_try and listing != self.listing:
            self.listing = listing
            time.sleep(PAUSE)
            raise _ChangedError


class _ChangedError(Exception):
    """The directory has changed since the walk began, so the walk starts again with the new listing."""


class DecodedRecords:
    """Iterates over the decoded records of a log (a :class:`BatchWalk`) or of a snapshot.

    ``damage``, ``torn`` and ``notes`` are complete afterwards. Malformed records are yielded like others;
    ``malformed`` counts them, ``first_malformed`` says where the first one is, and why. For speed, ``wanted`` says
    which records to decode, and ``select`` which ones to parse at all.
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
        self._to_read = self._in_files()
        self._start = start
        self._until = until
        self._wanted = wanted
        self._select = select

    def __iter__(self) -> Iterator[LogRecord]:
        return self.each(self._batch)

    def json_lines(self, texts: RecordTexts, line: Callable[[LogRecord], str]) -> Iterator[str]:
        """Yield the records as lines of JSON, all of a batch in one string where they need not be decoded.

        Args:
            texts: writes a metadata record: a row without its first three columns.
            line: writes the line of any other record.
        """
        return self.each(lambda batch, file: self._batch_lines(batch, file, texts, line))

    def each(self, read: Callable[[Batch, str], Iterator[T]]) -> Iterator[T]:
        """Yield what ``read`` yields for each batch and the path of its file; its DecodeErrors go to ``damage``."""
        for file, batch in self.batches():
            yield from self._readable(read(batch, file), batch, file)
        self.finish()

    def records_of(self, batch: Batch, file: str) -> Iterator[LogRecord]:
        """Decode the records of one of the :meth:`batches`, as the iteration does; a DecodeError goes to ``damage``."""
        return self._readable(self._batch(batch, file), batch, file)

    def unfiltered(self) -> DecodedRecords:
        """Return a reader for single ones of the :meth:`batches` that decodes every record, wanted or not."""
        return DecodedRecords(self._batches, start=self._start, until=self._until)

    def _readable(self, read: Iterator[T], batch: Batch, file: str) -> Iterator[T]:
        try:
            yield from read
        except DecodeError as error:
            self.damage.append(CorruptDataError(file, batch.position, error.reason))
        except MissingCodecError as error:
            self.damage.append(error.at(file, batch.position))

    def finish(self) -> None:
        """Complete ``damage``, ``torn`` and ``notes``, after the last of the :meth:`batches`."""
        if isinstance(self._batches, BatchWalk):
            self.damage += self._batches.damage
            self.torn, self.notes = self._batches.torn, self._batches.notes

    @property
    def end_before_start(self) -> int | None:
        """The offset of the log's last record, if it is below ``start``; ask after the last record."""
        if not isinstance(self._batches, BatchWalk) or (self._until is not None and self._until < self._start):
            return None  # a snapshot, or a walk that need not have seen the log's end
        last = self._batches.read_up_to
        return last if last is not None and last < self._start else None

    def begin(self) -> None:
        """Read as far as the first batch. Raises SourceError if not even that can be read."""
        self._to_read = chain(list(islice(self._to_read, 1)), self._to_read)

    def batches(self) -> Iterator[tuple[str, Batch]]:
        """Yield (path of its file, batch), each once, to read them in another way; then call :meth:`finish`."""
        return iter(self._to_read)

    def _in_files(self) -> Iterator[tuple[str, Batch]]:
        """Yield (path of its file, batch); damage ends a snapshot and is collected."""
        if isinstance(self._batches, BatchWalk):
            yield from self._batches
            return
        try:
            for batch in self._batches:
                yield self._batches.file.path, batch
        except CorruptDataError as error:
            self.damage.append(error.with_traceback(None))

    def note(self, decoded: Decoded, offset: int, file: str) -> None:
        """Count a record if it is malformed."""
        undecoded = decoded.undecoded
        if undecoded is not None and undecoded.malformed:
            self.malformed += 1
            if self.first_malformed is None:
                record = f"{decoded.name} v{decoded.version}"
                self.first_malformed = f"{file}: offset {offset}: {record}: {undecoded.reason}"

    def _batch(self, batch: Batch, file: str) -> Iterator[LogRecord]:
        """Decode the records of one batch that are wanted and in the range of offsets."""
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
                if decoded.undecoded is not None:
                    self.note(decoded, offset, file)
                yield LogRecord(offset, epoch, raw.timestamp, decoded, name, position)

    def _batch_lines(
        self, batch: Batch, file: str, texts: RecordTexts, line: Callable[[LogRecord], str]
    ) -> Iterator[str]:
        """The lines of one batch, as one string if the whole batch is in range and need not be decoded."""
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
        """The lines of a whole batch; ``None`` if one of its records cannot be decoded."""
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
    """Decode the log's records with offsets from ``start`` to ``until``."""
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
    """Decode a snapshot's records. Their offsets count within the file and are not the log's."""
    reader = SnapshotReader(file, progress=progress)
    return DecodedRecords(reader, start=start, until=until, wanted=wanted)
