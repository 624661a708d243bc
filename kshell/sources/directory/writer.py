"""Write a metadata directory in Kafka's layout, from verified batches and complete snapshots.

Source: ``KafkaMetadataLog``, ``UnifiedLog``, ``LeaderEpochCheckpointFile``, ``MetaPropertiesEnsemble``. Indexes are not
written: a server builds those that are missing when it opens the log.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from kshell.errors import CorruptDataError, DataError
from kshell.protocol.batches import iter_records, write_batch
from kshell.protocol.primitives import DecodeError
from kshell.sources.directory.files import BOOTSTRAP, METADATA_DIRECTORY, Listing, SnapshotFile, open_read
from kshell.sources.directory.log import FileBatch, LogReader, Progress
from kshell.sources.directory.sidecar_files import EPOCHS, PARTITION, TOPIC_ID, bootstrap_file, property_line
from kshell.sources.directory.snapshot import SnapshotReader

MANIFEST = "manifest.json"
_PIECE = 1 << 20


class WrittenFile(NamedTuple):
    """A file that was written: its path below the directory, its bytes, and their SHA-256 in hexadecimal."""

    name: str
    size: int
    sha256: str


class MetadataWriter:
    """Writes the files of one log directory below ``folder``, which is empty and belongs to the caller.

    Write snapshots first, then the log (:meth:`log` or :meth:`segments`), then call :meth:`finish`.

    Attributes:
        files: what was written, in order.
        end: the offset after the last record of the log or of the newest snapshot.
        last_epoch: the epoch of that record; -1 before anything was written.
        log_from: where the log that was written begins because the source's is damaged before it; 0 if it is not.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.files: list[WrittenFile] = []
        self.end = 0
        self.last_epoch = -1
        self.log_from = 0
        self._epochs: list[tuple[int, int]] = []
        os.mkdir(os.path.join(folder, METADATA_DIRECTORY), 0o700)

    def write(self, name: str, pieces: Iterable[bytes]) -> None:
        """Write a file that only its owner can read, and force it to the disk. Raises OSError."""
        digest, size = hashlib.sha256(), 0
        path = os.path.join(self.folder, name)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "wb") as file:
            for piece in pieces:
                file.write(piece)
                digest.update(piece)
                size += len(piece)
            file.flush()
            os.fsync(file.fileno())
        self.files.append(WrittenFile(name, size, digest.hexdigest()))

    def properties(self, pairs: Mapping[str, str]) -> None:
        """Write ``meta.properties``."""
        lines = "".join(property_line(key, value) for key, value in pairs.items())
        self.write("meta.properties", [f"#\n{lines}".encode()])

    def snapshots(self, listing: Listing, until: int | None, progress: Progress | None) -> list[str]:
        """Write the snapshots up to offset ``until``, byte for byte; return a sentence for each that is left out."""
        notes = []
        for file in listing.snapshots:
            if until is not None and (file.end_offset or 0) > until + 1:
                continue
            try:
                self.snapshot(file, progress)
            except DataError as error:
                notes.append(f"{error.message}: the snapshot is left out")
        return notes

    def snapshot(self, file: SnapshotFile, progress: Progress | None) -> None:
        """Write a snapshot, byte for byte. Raises DataError if it is damaged or incomplete."""
        reader = SnapshotReader(file, progress=progress)
        for _ in reader:
            pass  # damage is found before anything is written
        facts = reader.facts()
        end, epoch = facts.end_offset, file.epoch if file.epoch is not None else facts.epoch
        pieces = (batch.raw() for batch in SnapshotReader(file))
        self.write(f"{METADATA_DIRECTORY}/{end:020d}-{epoch:010d}.checkpoint", pieces)
        if end >= self.end:
            self.end, self.last_epoch = end, epoch

    def log(self, listing: Listing, until: int | None, progress: Progress | None) -> list[DataError]:
        """Write the log's verified batches up to offset ``until``, in the same segments as in the source.

        If the log is damaged before the end of the newest snapshot that was written, only the log after the snapshot is
        written, so that no offset is missing. A batch that contains ``until`` is written without its later records.

        Returns:
            The damage that was found.
        """
        start = self.log_from = self.end if self.end and self._breaks_before_the_end(listing, until) else 0
        reader = LogReader(listing, start, until=until, progress=progress)
        self.segments(reader, start, until)
        return reader.damage

    def _breaks_before_the_end(self, listing: Listing, until: int | None) -> bool:
        """Whether the log is damaged before the end of the newest snapshot that was written."""
        reader = LogReader(listing, 0, until=until)
        log_end = max((batch.last_offset + 1 for _, batch in reader), default=0)
        return bool(reader.damage) and log_end <= self.end

    def segments(self, batches: Iterable[FileBatch], start: int = 0, until: int | None = None) -> None:
        """Write batches that follow each other, from offset ``start`` on; each file of the source becomes a segment.

        The batch that contains ``until`` is written without its later records.
        """
        rest = iter(batches)
        first = next((file_batch for file_batch in rest if file_batch.batch.last_offset >= start), None)
        while first is not None:
            following: list[FileBatch] = []
            name = f"{METADATA_DIRECTORY}/{first.batch.base_offset:020d}.log"
            self.write(name, self._one_segment(first, rest, following, until))
            first = following[0] if following else None

    def _one_segment(
        self, first: FileBatch, rest: Iterator[FileBatch], following: list[FileBatch], until: int | None
    ) -> Iterator[bytes]:
        """The bytes of the batches of one file; the first batch of the next one is left in ``following``."""
        current: FileBatch | None = first
        while current is not None:
            if current.file != first.file:
                following.append(current)
                return
            yield self._bytes(current, until)
            current = next(rest, None)

    def _bytes(self, file_batch: FileBatch, until: int | None) -> bytes:
        """The bytes of a batch without its records after ``until``; its epoch and its end are noted."""
        batch = file_batch.batch
        last = batch.last_offset if until is None else min(batch.last_offset, until)
        self._note(batch.epoch, batch.base_offset, last)
        return batch.raw() if last == batch.last_offset else _cut(file_batch, last)

    def _note(self, epoch: int, first: int, last: int) -> None:
        if not self._epochs or self._epochs[-1][0] != epoch:
            self._epochs.append((epoch, first))
        self.end, self.last_epoch = last + 1, epoch

    def append(self, raw: bytes, epoch: int, count: int) -> None:
        """Write ``raw``, a batch of ``count`` records, at the end of the log, as a segment of its own."""
        self.write(f"{METADATA_DIRECTORY}/{self.end:020d}.log", [raw])
        self._note(epoch, self.end, self.end + count - 1)

    def finish(self) -> None:
        """Write ``leader-epoch-checkpoint`` and ``partition.metadata``, which Kafka expects next to the log."""
        lines = [f"{epoch} {offset}" for epoch, offset in self._epochs]
        self.write(f"{METADATA_DIRECTORY}/{EPOCHS}", ["\n".join(["0", str(len(lines)), *lines, ""]).encode()])
        self.write(f"{METADATA_DIRECTORY}/{PARTITION}", [f"version: 0\ntopic_id: {TOPIC_ID}".encode()])

    def bootstrap(self, listing: Listing) -> None:
        """Copy the ``bootstrap.checkpoint`` of the source's log directory, if there is one."""
        path = bootstrap_file(listing)
        if path is not None:
            self.write(BOOTSTRAP, _bytes_of(path))

    def manifest(self, facts: Mapping[str, object]) -> None:
        """Write ``manifest.json``, the last file: a directory without it is not complete."""
        files = [file._asdict() for file in self.files]
        text = json.dumps({**facts, "files": files}, indent=2, ensure_ascii=False) + "\n"
        self.write(MANIFEST, [text.encode()])
        for folder in (os.path.join(self.folder, METADATA_DIRECTORY), self.folder):
            _sync(folder)


def _cut(file_batch: FileBatch, last: int) -> bytes:
    """A batch without its records after offset ``last``. Raises CorruptDataError."""
    path, batch = file_batch
    try:
        records = [(record.key, record.value) for record in iter_records(batch) if record.offset <= last]
    except DecodeError as error:
        raise CorruptDataError(path, batch.position, str(error)) from None
    return write_batch(
        records,
        base_offset=batch.base_offset,
        epoch=batch.epoch,
        timestamp=batch.base_timestamp,
        control=batch.is_control,
    )


def _sync(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _bytes_of(path: str) -> Iterator[bytes]:
    """The bytes of a file, in pieces. Raises OSError."""
    with open(open_read(path), "rb") as file:
        while piece := file.read(_PIECE):
            yield piece
