"""A replicated metadata log as its leader has it: batches, epochs, snapshots, high watermark (KIP-595, KIP-630)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from kshell.protocol.batches import read_header
from tests import builders

SnapshotId = tuple[int, int]
"""(end offset, epoch)."""


class Entry(NamedTuple):
    """One batch."""

    base: int
    end: int
    epoch: int
    raw: bytes


class Log:
    """Not locked: the quorum that holds it is. ``high_watermark`` is the offset after the last committed record."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.snapshots: dict[SnapshotId, bytes] = {}
        self.start = 0
        self.high_watermark = 0

    @classmethod
    def of_directory(cls, directory: Path) -> Log:
        """What a ``__cluster_metadata-0`` directory holds, all of it committed; a torn tail is left out."""
        log = cls()
        for path in sorted(directory.glob("*.checkpoint")):
            end, _, epoch = path.stem.partition("-")
            if int(end):
                log.snapshots[int(end), int(epoch)] = path.read_bytes()
        for path in sorted(directory.glob("*.log")):
            raw = path.read_bytes()
            position = 0
            while len(raw) - position > 61 and read_header(raw, position).end <= len(raw):
                batch = read_header(raw, position)
                log.put(raw[position : batch.end])
                position = batch.end
        log.start = log.entries[0].base if log.entries else max(log.snapshots)[0]
        log.high_watermark = log.end
        return log

    @property
    def end(self) -> int:
        """The offset after the last record."""
        return self.entries[-1].end if self.entries else self.start

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record."""
        if self.entries:
            return self.entries[-1].epoch
        return max(self.snapshots)[1] if self.snapshots else 0

    def put(self, raw: bytes) -> None:
        """Takes one batch as it is."""
        batch = read_header(raw, 0)
        self.entries.append(Entry(batch.base_offset, batch.last_offset + 1, batch.epoch, raw))

    def append(self, values: Iterable[bytes], epoch: int) -> None:
        """One batch of records."""
        self.put(builders.batch(values, self.end, epoch))

    def truncate(self, offset: int) -> None:
        """Drops the batches from ``offset`` on."""
        self.entries = [entry for entry in self.entries if entry.end <= offset]

    def delete_before(self, snapshot: SnapshotId) -> None:
        """Drops the log that a snapshot holds, and older snapshots, as Kafka does after a while."""
        self.entries = [entry for entry in self.entries if entry.base >= snapshot[0]]
        self.snapshots = {known: raw for known, raw in self.snapshots.items() if known >= snapshot}
        self.start = snapshot[0]

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Batches from the one that holds ``offset`` on: the first whole, the last perhaps cut."""
        first = bisect_right([entry.end for entry in self.entries], offset)
        raw = b"".join(entry.raw for entry in self.entries[first:])
        return raw[: max(max_bytes, len(self.entries[first].raw))] if raw else b""

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """(the greatest epoch here that is not above ``epoch``, the offset after its last record)."""
        if epoch >= self.last_epoch:
            return (epoch if epoch == self.last_epoch else self.last_epoch), self.end
        found = min(self.snapshots, default=(self.start, 0))
        best, end = found[1], found[0]
        for entry in self.entries:
            if entry.epoch <= epoch:
                best, end = entry.epoch, entry.end
        return best, end

    def judge(self, offset: int, epoch: int, *, prefers_snapshot: bool) -> tuple[str, int, int]:
        """What a leader makes of a position (``ReplicatedLog.validateOffsetAndEpoch``).

        ``("valid", 0, 0)``, ``("snapshot", end offset, epoch)`` or ``("diverging", epoch, end offset)``.
        ``prefers_snapshot``: who begins gets one, though the log is whole (``KafkaRaftClient``, since 3.9).
        """
        if prefers_snapshot and offset == 0 and self.snapshots:
            return "snapshot", *max(self.snapshots)
        if self.start == 0 and offset == 0:
            return "valid", 0, 0
        earliest = min(self.snapshots, default=None)
        if earliest is not None and (
            offset < self.start or (offset == self.start and epoch != earliest[1]) or epoch < earliest[1]
        ):
            return "snapshot", *max(self.snapshots)
        known, end = self.end_of_epoch(epoch)
        if known != epoch or end < offset:
            return "diverging", known, end
        return "valid", 0, 0
