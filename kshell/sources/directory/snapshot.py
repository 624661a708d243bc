"""Read one snapshot file: verify its batches, its header and its footer, and load it into a replayer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from kshell.errors import CorruptDataError, MissingCodecError
from kshell.metadata.replay import Replayer
from kshell.protocol.batches import Batch, iter_records
from kshell.protocol.control import SNAPSHOT_FOOTER, SNAPSHOT_HEADER, control_number, decode_control, holds
from kshell.protocol.primitives import DecodeError
from kshell.protocol.verify import Chain, FixedEpoch
from kshell.protocol.windows import Windowed
from kshell.sources.directory.files import BOOTSTRAP, SnapshotFile
from kshell.sources.directory.log import Progress, opened

_HEADER_TYPE = 3
MOST_LATE_MS = 60_000
"""How many milliseconds a snapshot's time may be after that of the log's last batch in it: a busy controller of Kafka
3.3.2 wrote a snapshot that was 109 ms late, though a replay of the log gave the same values.
"""
DISAGREE = "the snapshot and the log disagree: either of them may be wrong, or they are not of one cluster"


class SnapshotFacts(NamedTuple):
    """What is known of a snapshot after reading it.

    ``timestamp``: time of the last log record that it contains, in epoch milliseconds, -1 if unknown. ``records``: all
    in the file. ``note``: a sentence for the user if the file's name and its batches disagree.
    """

    path: str
    end_offset: int
    epoch: int
    timestamp: int
    records: int
    note: str | None


def ends_inside(file: SnapshotFile) -> str:
    """Say that a snapshot ends inside a batch of the log, which contradicts it."""
    return f"offset {file.end_offset} is inside a batch of the log, and Kafka takes snapshots between two"


def disagreement(file: SnapshotFile, timestamp: int, epoch: int, log_timestamp: int) -> str | None:
    """Say how the log's batch that ends where a snapshot ends contradicts it; ``None`` if it does not.

    Args:
        file: the snapshot.
        timestamp: what its header says; epoch milliseconds, -1 if it says no time.
        epoch: that of the batch.
        log_timestamp: the latest time in the batch, in epoch milliseconds.
    """
    late = 0 if timestamp == -1 else timestamp - log_timestamp
    differing = [
        text
        for text, differs in (
            (f"epoch {epoch}, not {file.epoch}", epoch != file.epoch),
            (f"time {log_timestamp}, not {timestamp}", not 0 <= late <= MOST_LATE_MS),
        )
        if differs
    ]
    if not differing:
        return None
    return f"the log's batch that ends at offset {file.end_offset} has {' and '.join(differing)}"


class SnapshotReader:
    """Iterates over a snapshot's verified batches. Raises CorruptDataError for damage and a missing header or footer.

    ``batches`` and ``records`` count what was read; call :meth:`facts` after the iteration.
    """

    def __init__(self, file: SnapshotFile, *, progress: Progress | None = None) -> None:
        self.file = file
        self.timestamp = -1
        self.batches = 0
        self.records = 0
        self._epoch_check = FixedEpoch(file.epoch)
        self._progress = progress

    def __iter__(self) -> Iterator[Batch]:
        with opened(self.file) as source:
            yield from self._batches(source)

    def _batches(self, source: Windowed) -> Iterator[Batch]:
        path = self.file.path
        chain = Chain(self._epoch_check, 0)
        last: Batch | None = None
        for batch in chain.walk(source, path):
            if last is None:
                self._header(batch)
            elif holds(last, SNAPSHOT_FOOTER):
                raise CorruptDataError(path, batch.position, "a batch follows the snapshot's footer")
            last = batch
            self.batches += 1
            self.records += batch.records
            yield batch
            if self._progress:
                self._progress(batch.end, source.size, path)
        if chain.torn is not None:
            raise CorruptDataError(path, chain.torn.position, f"the snapshot is truncated: {chain.torn.reason}")
        if last is None or not holds(last, SNAPSHOT_FOOTER):
            raise CorruptDataError(path, source.size, "the snapshot has no footer: it was not completed")

    def _header(self, batch: Batch) -> None:
        """Check that the first batch is the snapshot's header, and take ``timestamp`` from it."""
        if not holds(batch, SNAPSHOT_HEADER):
            raise CorruptDataError(self.file.path, batch.position, "the snapshot does not begin with its header")
        try:
            for raw in iter_records(batch):
                if control_number(raw.key) == _HEADER_TYPE:
                    self.timestamp = decode_control(raw.key, raw.value)[2]["lastContainedLogTimestamp"]
        except DecodeError:
            pass  # a header of a later version: the time stays unknown

    def facts(self) -> SnapshotFacts:
        """What was read, after the iteration. A file without Kafka's form of name ends at the number of its records."""
        end = self.records if self.file.end_offset is None else self.file.end_offset
        epoch = self._epoch_check.epoch if self._epoch_check.epoch is not None else 0
        note = None
        if self.file.epoch is not None and self.file.epoch != epoch:
            note = f"{self.file.path}: its name says epoch {self.file.epoch}, its batches epoch {epoch}"
        elif self.file.end_offset is None and os.path.basename(self.file.path) != BOOTSTRAP:
            note = (
                f"{self.file.path}: its name does not say at which offset of the log it ends, so its own"
                f" {self.records} records are counted"
            )
        return SnapshotFacts(self.file.path, end, epoch, self.timestamp, self.records, note)


def load_snapshot(
    file: SnapshotFile, replayer: Replayer, progress: Progress | None, *, control_only: bool = False
) -> SnapshotFacts:
    """Load a snapshot into an empty replayer; with ``control_only`` only its control records.

    Raises:
        DataError: The snapshot is damaged; the replayer must not be used any more.
    """
    reader = SnapshotReader(file, progress=progress)
    name = os.path.basename(file.path)
    for batch in reader:
        if control_only and not batch.is_control:
            continue
        try:
            replayer.snapshot_batch(batch, name)
        except (DecodeError, IndexError) as error:
            raise CorruptDataError(file.path, batch.position, str(error)) from None
        except MissingCodecError as error:
            raise error.at(file.path, batch.position) from None
    facts = reader.facts()
    replayer.snapshot_end(facts.end_offset, file.epoch if file.epoch is not None else facts.epoch, facts.timestamp)
    return facts
