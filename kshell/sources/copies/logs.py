"""Copies of one cluster's metadata log, from several nodes: read side by side, to see where two of them part.

Nodes take batches over as they are, so two logs are the same where their batches have the same bytes. All logs are read
once, together, batch by batch; of each no more is in memory than the segment that is being read.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from kshell.errors import CorruptDataError, DataError, IncompleteLogError
from kshell.protocol.batches import Batch, iter_records, read_header
from kshell.protocol.control import KRAFT_VOTERS, LEADER_CHANGE, decode_control, holds
from kshell.protocol.primitives import ZERO_UUID, DecodeError
from kshell.protocol.verify import Torn
from kshell.sources.directory.files import Listing, SnapshotFile
from kshell.sources.directory.log import Progress
from kshell.sources.directory.records import BatchWalk
from kshell.sources.directory.sidecar_files import meta_properties, node_id, quorum_state
from kshell.sources.directory.snapshot import SnapshotReader
from kshell.sources.directory.source import DirectorySource, missing_end

_ABSENT, _INSIDE = -1, -2
"""Instead of a group: the copy has nothing at the offset; its next batch begins inside one that another copy has."""


class Copy:
    """One copy: what lies beside its files, and what reading them brought (:func:`read_together`).

    ``start``, ``log_end``: the offsets of the log's first record and after its last; ``None`` where it has none.
    ``epochs``: (epoch, its first offset) along the log; offsets that are missing count to the epoch before them.
    ``runs``: offsets (the second exclusive) that follow each other without a gap.
    ``voters``: id -> directory id, as the last control record that names them says. ``snapshots``: those that are
    whole. Raises SourceError where nothing can be read.
    """

    def __init__(self, path: str, listing: Listing | None = None) -> None:
        self.path = path
        self.source = DirectorySource(path)
        listing = self.source.listing() if listing is None else listing
        self.notes: list[str] = [*listing.unreadable]
        """What is wrong with the small files beside the log."""
        meta, state = meta_properties(listing, self.notes), quorum_state(listing, self.notes)
        self.cluster_id = meta.get("cluster.id") or state.get("clusterId") or None
        self.node_id = node_id(meta)
        self.directory_id = meta.get("directory.id")
        self.stated_epoch: int | None = state.get("leaderEpoch")
        """The epoch that ``quorum-state`` knows: perhaps a later one than that of the last record."""
        self.size = sum(segment.size for segment in listing.segments)
        self.start: int | None = None
        self.log_end: int | None = None
        self.epochs: list[tuple[int, int]] = []
        self.runs: list[tuple[int, int]] = []
        self.voters: dict[int, str | None] = {}
        self.snapshots: list[SnapshotFile] = []
        self.damage: list[DataError] = []
        self.torn: tuple[str, Torn] | None = None
        self._file = path
        """Where the batch that is read is, as far as that is known."""
        for file in listing.snapshots:
            self.verify(file)

    @property
    def oldest(self) -> int | None:
        """The offset of the log's first record, also where only its end was read."""
        return self.start

    @property
    def faults(self) -> int:
        """How much of it is damaged."""
        return len(self.damage)

    @property
    def newest(self) -> SnapshotFile | None:
        """The newest snapshot that is complete and whose name has its offset and epoch."""
        return next((file for file in reversed(self.snapshots) if file.end_offset is not None), None)

    @property
    def end(self) -> int | None:
        """The offset after the last record, be it of the log or only of a snapshot."""
        ends = [end for end in (self.log_end, self.newest.end_offset if self.newest else None) if end is not None]
        return max(ends, default=None)

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record; -1 where there is none."""
        newest, end = self.newest, self.end
        if self.log_end is None or self.log_end != end:
            return newest.epoch if newest is not None and newest.epoch is not None else -1
        return self.epochs[-1][0]

    def epoch_at(self, offset: int) -> int | None:
        """The epoch of the record at an offset, where the log or a snapshot's name has it."""
        if self.start is not None and self.log_end is not None and self.start <= offset < self.log_end:
            return self.epochs[bisect_right(self.epochs, offset, key=lambda line: line[1]) - 1][0]
        return next((file.epoch for file in self.snapshots if file.end_offset == offset + 1), None)

    def epochs_from(self, offset: int) -> set[int]:
        """The epochs of the log's records from an offset on."""
        first = max(bisect_right(self.epochs, offset, key=lambda line: line[1]) - 1, 0)
        return {epoch for epoch, _ in self.epochs[first:]}

    def batches(self, progress: Progress | None) -> Iterator[Batch]:
        """The log's batches that are whole; damage is stepped over, and collected."""
        walk = BatchWalk(self.source, progress=progress)
        yield from self.noted(self._located(walk))
        self.damage += walk.damage
        self.torn = walk.torn
        reason = None if walk.damage else missing_end(self.source, walk.listing, self.log_end, self.newest)
        if reason is not None:
            self.damage.append(IncompleteLogError(f"{walk.listing.segments[-1].path}: {reason}"))

    def _located(self, walk: BatchWalk) -> Iterator[Batch]:
        for self._file, batch in walk:
            yield batch

    def noted(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """The batches as they are; what they say of epochs and voters is known afterwards, and where the log ends."""
        batch, epoch, first, end = None, None, -1, -1
        for batch in batches:
            if batch.base_offset != end:
                if first >= 0:
                    self.runs.append((first, end))
                first = batch.base_offset
            end = batch.last_offset + 1
            if batch.epoch != epoch:
                epoch = batch.epoch
                self.epochs.append((epoch, batch.base_offset))
            if batch.is_control:
                try:
                    self._note_voters(batch)
                except (DecodeError, IndexError) as error:
                    self.damage.append(CorruptDataError(self._file, batch.position, str(error)))
            yield batch
        if batch is not None:
            self.start, self.log_end = self.epochs[0][1], end
            self.runs.append((first, end))

    def verify(self, file: SnapshotFile) -> None:
        """Add the complete ones; what is wrong with others is damage."""
        try:
            for batch in SnapshotReader(file):
                if batch.is_control:
                    self._note_voters(batch)
        except CorruptDataError as error:
            self.damage.append(error.with_traceback(None))
        except (DecodeError, IndexError) as error:
            self.damage.append(CorruptDataError(file.path, batch.position, str(error)))
        except FileNotFoundError:
            pass  # deleted while we look: a running server does that
        else:
            self.snapshots.append(file)

    def _note_voters(self, batch: Batch) -> None:
        if not (holds(batch, LEADER_CHANGE) or holds(batch, KRAFT_VOTERS)):
            return
        for record in iter_records(batch):
            try:
                voters = decode_control(record.key, record.value)[2].get("voters")
            except DecodeError:
                continue  # of a later version: who votes stays as it was
            if voters is not None:
                self.voters = {voter["voterId"]: _directory(voter.get("voterDirectoryId")) for voter in voters}


def twins(copies: Sequence[Copy]) -> Iterator[str]:
    """A sentence for each copy that was given twice, perhaps under two names."""
    for place, copy in enumerate(copies):
        real = os.path.realpath(copy.source.path)
        twin = next((earlier for earlier in copies[:place] if os.path.realpath(earlier.source.path) == real), None)
        if twin is not None:
            yield f"{twin.path} and {copy.path} are the same files"


class Parting(NamedTuple):
    """Where two logs part: the first offset that differs, and the batch of either, with no more than its own bytes."""

    offset: int
    first: Batch
    second: Batch


class Pair:
    """Two logs: both have the same batches from ``since`` to ``to`` (exclusive); ``None`` where no offset is shared."""

    def __init__(self) -> None:
        self.since: int | None = None
        self.to: int | None = None
        self.parting: Parting | None = None


def read_together(copies: Sequence[Copy], progress: Progress | None = None) -> dict[tuple[int, int], Pair]:
    """Read all logs to their ends; every two of them by their places in ``copies``, the lower one first.

    Raises SourceError, and DataError where a file vanishes again and again; other damage is in the copies afterwards.
    """
    pairs = {places: Pair() for places in combinations(range(len(copies)), 2)}
    readers = [copy.batches(report) for copy, report in zip(copies, _shares(copies, progress), strict=True)]
    current = [next(reader, None) for reader in readers]
    last = list(current)
    together = [0] * len(copies)
    groups = [_ABSENT] * len(copies)
    while any(current):
        before, groups = groups, together if _are_same(current) else _groups(current)
        if groups is not before and (groups != before or _INSIDE in groups):
            _close(pairs, before, last)
            _compare(pairs, groups, current)
        if groups is together:
            last, current = current, [next(reader, None) for reader in readers]
            continue
        for place, group in enumerate(groups):
            if group >= 0:
                last[place], current[place] = current[place], next(readers[place], None)
    _close(pairs, groups, last)
    return pairs


def _are_same(current: list[Batch | None]) -> bool:
    """Whether all copies have the same batch: by far the most frequent case."""
    first = current[0]
    return first is not None and all(_same(first, batch) for batch in current[1:])


def _groups(current: list[Batch | None]) -> list[int]:
    """For each copy the first that has the same batch at the lowest offset that is due; or why it is in no group."""
    at = min(batch.base_offset for batch in current if batch is not None)
    groups: list[int] = []
    end = at
    for place, batch in enumerate(current):
        if batch is None or batch.base_offset != at:
            groups.append(_ABSENT)
            continue
        end = max(end, batch.last_offset)
        groups.append(
            next(
                (earlier for earlier in range(place) if groups[earlier] == earlier and _same(batch, current[earlier])),
                place,
            )
        )
    for place, batch in enumerate(current):
        if batch is not None and at < batch.base_offset <= end:
            groups[place] = _INSIDE
    return groups


def _same(mine: Batch, theirs: Batch | None) -> bool:
    """Whether the bytes are the same. The CRC is compared first, because it is at hand."""
    return (
        theirs is not None
        and mine.crc == theirs.crc
        and mine.buf[mine.at : mine.after] == theirs.buf[theirs.at : theirs.after]
    )


def _close(pairs: dict[tuple[int, int], Pair], groups: list[int], last: list[Batch | None]) -> None:
    """How far those got that were in the same group; ``last`` are the batches that were compared last."""
    for (first, second), pair in pairs.items():
        batch = last[first]
        if groups[first] == groups[second] >= 0 and pair.parting is None and batch is not None:
            pair.to = batch.last_offset + 1


def _compare(pairs: dict[tuple[int, int], Pair], groups: list[int], current: list[Batch | None]) -> None:
    """What is to be said of two copies the first time that they have the same offset, and when they part."""
    for (first, second), pair in pairs.items():
        mine, theirs = current[first], current[second]
        if pair.parting is not None or mine is None or theirs is None or max(groups[first], groups[second]) < 0:
            continue
        if groups[first] == groups[second]:
            if pair.since is None:
                pair.since = mine.base_offset
            continue
        shared = max(mine.base_offset, theirs.base_offset)
        if _ABSENT not in (groups[first], groups[second]) and shared <= min(mine.last_offset, theirs.last_offset):
            pair.parting = Parting(shared, _alone(mine), _alone(theirs))


def _alone(batch: Batch) -> Batch:
    """The batch without the segment around it."""
    return read_header(batch.raw(), 0)


def _shares(copies: Sequence[Copy], progress: Progress | None) -> Iterator[Progress | None]:
    """One progress for each log; each reports the sum over all logs."""
    total = sum(copy.size for copy in copies)
    bytes_by_copy = [0] * len(copies)

    def share(place: int) -> Progress:
        def tell(bytes_done: int, _: int, path: str) -> None:
            bytes_by_copy[place] = bytes_done
            if progress is not None:
                progress(sum(bytes_by_copy), total, path)

        return tell

    return (None if progress is None else share(place) for place in range(len(copies)))


def _directory(directory_id: object) -> str | None:
    return None if directory_id is None or directory_id == ZERO_UUID else str(directory_id)
