"""Read copies of one cluster's metadata log, from several nodes, side by side: where do two of them begin to differ?

Nodes store the leader's batches unchanged, so two logs are the same where their batches have the same bytes. All logs
are read at the same time, once, batch by batch; of each log only the segment that is being read is in memory.
"""

from __future__ import annotations

import contextlib
import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from kshell.errors import CorruptDataError, DataError, IncompleteLogError, SourceError
from kshell.protocol.batches import Batch, iter_records, read_header
from kshell.protocol.control import KRAFT_VOTERS, LEADER_CHANGE, decode_control, holds
from kshell.protocol.primitives import ZERO_UUID, DecodeError, Uuid
from kshell.protocol.verify import Torn
from kshell.sources.directory.files import Listing, SnapshotFile, is_remote, local_path, open_read
from kshell.sources.directory.log import Progress
from kshell.sources.directory.records import BatchWalk
from kshell.sources.directory.sidecar_files import EPOCHS, leader_epochs, meta_properties, node_id, quorum_state
from kshell.sources.directory.snapshot import DISAGREE, SnapshotReader, disagreement, ends_inside
from kshell.sources.directory.source import DirectorySource, missing_end

_ABSENT, _INSIDE = -1, -2
"""Values in place of a group: the copy has no batch at the offset; its next batch begins inside one of another copy."""


class Refutation(NamedTuple):
    """How a log contradicts a snapshot: a phrase. ``has_one_epoch``: the batch there has the snapshot's epoch."""

    text: str
    has_one_epoch: bool


class Copy:
    """One copy: what its sidecar files say and, after :func:`read_together`, what its log contains.

    ``start``, ``log_end``: the offsets of the log's first record and after its last; ``None`` if it has no record.
    ``epochs``: (epoch, its first offset) in log order; missing offsets count to the epoch before them.
    ``runs``: (first, end) of the offset ranges without a gap, ``end`` exclusive.
    ``voters``: node id -> directory id, of a static quorum from ``quorum-state``, else from the last control record
    that lists voters (a later one may be in a gap). ``snapshots``: the complete ones, which the constructor verifies.
    It raises SourceError if nothing can be read.
    """

    def __init__(self, path: str, listing: Listing | None = None) -> None:
        self.path = path
        self.source = DirectorySource(path)
        listing = self.source.listing() if listing is None else listing
        self.notes: list[str] = [*listing.unreadable]
        """What is wrong with the sidecar files, or is no readable file at all; one sentence each."""
        meta, state = meta_properties(listing, self.notes), quorum_state(listing, self.notes)
        self.cluster_id = meta.get("cluster.id") or state.get("clusterId") or None
        self.node_id = node_id(meta)
        self.directory_id = checked_id(meta, path, self.notes)
        self.stated_epoch: int | None = state.get("leaderEpoch")
        """``leaderEpoch`` of ``quorum-state``, which may be later than the epoch of the last record."""
        self.knows_leader = (state.get("leaderId") or 0) >= 0 and "leaderId" in state
        """Whether ``quorum-state`` names a leader that was elected in that epoch."""
        self.last_known = next(reversed(leader_epochs(listing, self.notes)), None)
        """(epoch, its first offset) of the last line of ``leader-epoch-checkpoint``; ``None`` if there is no line."""
        self.named_end = max((file.end_offset or 0 for file in listing.snapshots), default=0)
        """Where the snapshots end by their names, damaged ones too: what was before had been committed."""
        self._static_voters = dict.fromkeys(voter["voterId"] for voter in state.get("currentVoters", ()))
        self.size = sum(segment.size for segment in listing.segments)
        self.start: int | None = None
        self.log_end: int | None = None
        self.epochs: list[tuple[int, int]] = []
        self.runs: list[tuple[int, int]] = []
        self.voters: dict[int, str | None] = {}
        self.snapshots: list[SnapshotFile] = []
        self.damage: list[DataError] = []
        self.torn: tuple[str, Torn] | None = None
        self.claims: list[tuple[SnapshotFile, int]] = []
        """Snapshots that the log may contradict, of any copy, each with its time; :func:`read_together` sets them."""
        self.refuted: dict[str, Refutation] = {}
        """Path of one of these -> how the log contradicts it."""
        self._times: dict[str, int] = {}
        """Path of a snapshot -> the time that its header says, in epoch milliseconds; -1 if none."""
        self._voters_of: dict[str, dict[int, str | None]] = {}
        """Path of a snapshot -> the voters that it names."""
        self._file = path
        """The file of the batch that is being read, for errors; the copy's path before the first batch."""
        self._read_snapshots = frozenset(file.path for file in listing.snapshots)
        for file in listing.snapshots:
            self.verify(file)

    @property
    def oldest(self) -> int | None:
        """The offset of the log's first record; a subclass may know it although it read only the log's end."""
        return self.start

    @property
    def faults(self) -> int:
        """The number of errors that reading the copy found."""
        return len(self.damage)

    @property
    def newest(self) -> SnapshotFile | None:
        """The newest complete snapshot whose file name has its end offset and epoch; ``None`` if there is none."""
        return next((file for file in reversed(self.snapshots) if file.end_offset is not None), None)

    @property
    def end(self) -> int | None:
        """The offset after the last record of the log or of the newest snapshot, whichever ends later."""
        ends = [end for end in (self.log_end, self.newest.end_offset if self.newest else None) if end is not None]
        return max(ends, default=None)

    @property
    def last_epoch(self) -> int:
        """The epoch of the record before :attr:`end`; -1 if there is none."""
        newest, end = self.newest, self.end
        if self.log_end is None or self.log_end != end:
            return newest.epoch if newest is not None and newest.epoch is not None else -1
        return self.epochs[-1][0]

    def epoch_at(self, offset: int) -> int | None:
        """The epoch of the record at ``offset``, from the log or from the name of a snapshot that ends with it."""
        if self.start is not None and self.log_end is not None and self.start <= offset < self.log_end:
            return self.epochs[bisect_right(self.epochs, offset, key=lambda line: line[1]) - 1][0]
        return next((file.epoch for file in self.snapshots if file.end_offset == offset + 1), None)

    def epochs_from(self, offset: int) -> set[int]:
        """The epochs of the log's records from ``offset`` on."""
        first = max(bisect_right(self.epochs, offset, key=lambda line: line[1]) - 1, 0)
        return {epoch for epoch, _ in self.epochs[first:]}

    def epoch_ends(self) -> dict[int, int]:
        """Epoch -> the offset after the last of its records that the log has."""
        ends: dict[int, int] = {}
        for index, (epoch, _) in enumerate(self.epochs, 1):
            after = self.epochs[index][1] if index < len(self.epochs) else self.log_end or 0
            ends[epoch] = max(min(end, after) for start, end in self.runs if start < after)
        return ends

    def claimed(self) -> list[tuple[SnapshotFile, int]]:
        """The copy's snapshots that say what was committed, each with its time in epoch milliseconds; -1: unknown."""
        return [(file, self._times.get(file.path, -1)) for file in self.snapshots if file.end_offset]

    def batches(self, progress: Progress | None) -> Iterator[Batch]:
        """Yield the log's undamaged batches. Afterwards ``damage`` and ``torn`` describe what was stepped over."""
        walk = BatchWalk(self.source, progress=progress)
        before = self.voters
        yield from self.noted(self._against_snapshots(self._located(walk)))
        self.damage += walk.damage
        log_names_voters = self.voters is not before
        for file in [file for file in self.snapshots if file.path in self.refuted]:
            # Treated as damaged, and not the log: that has more witnesses, its neighbours and the sidecar files.
            self.snapshots.remove(file)
            self.damage.append(DataError(f"{file.path}: {self.refuted[file.path].text}: {DISAGREE}"))
            del self._voters_of[file.path]
        newest = self.newest
        if self._static_voters:
            self.voters = dict(self._static_voters)
        elif not log_names_voters or (newest is not None and (newest.end_offset or 0) > (self.log_end or 0)):
            named = (voters for voters in reversed(self._voters_of.values()) if voters)
            self.voters = next(named, self.voters if log_names_voters else {})
        self.torn = walk.torn
        if not walk.damage:
            self._note_missing(walk.listing)

    def _note_missing(self, listing: Listing) -> None:
        """Add damage if the log ends before the newest snapshot or the last epoch, or begins after the snapshot."""
        reason = missing_end(self.source, listing, self.log_end, self.newest)
        if reason is not None:
            self.damage.append(IncompleteLogError(f"{listing.segments[-1].path}: {reason}"))
        if listing.directory is None or not listing.segments:
            return
        if reason is None and self.last_known is not None and self.last_known[1] > (self.end or 0):
            epoch, start = self.last_known
            ends = f"the log ends at offset {self.end or 0}, and {EPOCHS} says that epoch {epoch} begins at {start}"
            self.damage.append(IncompleteLogError(f"{listing.segments[-1].path}: {ends}: records are missing"))
        first, base = listing.segments[0].path, listing.segments[0].base_offset or 0
        # A running server has written a snapshot since this copy's were read, and deleted the log before it.
        newer = [file for file in listing.snapshots if file.path not in self._read_snapshots]
        if base > max([0, *(file.end_offset or 0 for file in (*self.snapshots, *newer))]):
            begins = f"the log starts at offset {base}, and no whole snapshot reaches it"
            self.damage.append(IncompleteLogError(f"{first}: {begins}"))

    def _located(self, walk: BatchWalk) -> Iterator[Batch]:
        for self._file, batch in walk:
            yield batch

    def _against_snapshots(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Yield the batches unchanged; add to ``refuted`` the snapshots of ``claims`` that they contradict."""
        claims = sorted(self.claims or self.claimed(), key=lambda claim: claim[0].end_offset or 0)
        position = 0
        for batch in batches:
            while position < len(claims) and (claims[position][0].end_offset or 0) <= batch.last_offset + 1:
                (file, time), position = claims[position], position + 1
                why = _refutation(file, time, batch)
                if why is not None:
                    self.refuted[file.path] = Refutation(why, has_one_epoch=batch.epoch == file.epoch)
            yield batch

    def noted(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Yield the batches unchanged. Afterwards ``epochs``, ``voters``, ``runs``, ``start``, ``log_end`` are set."""
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
        """Read a snapshot: add it to ``snapshots`` if it is complete, else add its error to ``damage``."""
        reader = SnapshotReader(file)
        before = self.voters
        try:
            for batch in reader:
                if batch.is_control:
                    self._note_voters(batch)
        except CorruptDataError as error:
            self.damage.append(error.with_traceback(None))
        except (DecodeError, IndexError) as error:
            self.damage.append(CorruptDataError(file.path, batch.position, str(error)))
        except FileNotFoundError:
            pass  # a running server has deleted it meanwhile
        else:
            self.snapshots.append(file)
            self._times[file.path] = reader.timestamp
            self._voters_of[file.path] = self.voters if self.voters is not before else {}

    def _note_voters(self, batch: Batch) -> None:
        if not (holds(batch, LEADER_CHANGE) or holds(batch, KRAFT_VOTERS)):
            return
        for record in iter_records(batch):
            try:
                voters = decode_control(record.key, record.value)[2].get("voters")
            except DecodeError:
                continue  # a record of a later version: the voters known so far stay
            if voters is not None:
                self.voters = {voter["voterId"]: _directory(voter.get("voterDirectoryId")) for voter in voters}


def _refutation(file: SnapshotFile, time: int, batch: Batch) -> str | None:
    """How the batch that has a snapshot's last record, or is the next one after it, contradicts it."""
    end = file.end_offset or 0
    if end <= batch.base_offset:
        if file.epoch is None or file.epoch <= batch.epoch:
            return None
        return f"the log's next batch, at offset {batch.base_offset}, has epoch {batch.epoch}, and an epoch never falls"
    if end == batch.last_offset + 1:
        return disagreement(file, time, batch.epoch, batch.max_timestamp)
    return ends_inside(file)


def checked_id(meta: dict[str, str], path: str, notes: list[str]) -> str | None:
    """The id of the log directory; ``None`` if ``meta.properties`` has none, or what is there is no UUID."""
    directory_id = meta.get("directory.id")
    try:
        if directory_id is not None:
            Uuid.parse(directory_id)
    except ValueError:
        notes.append(f"{path}: directory.id in meta.properties is no UUID: it is not used; copy the file again")
        return None
    return directory_id


class UnreadCopy(NamedTuple):
    """A copy that cannot be read, by its path as it was named, and why."""

    path: str
    error: SourceError

    @property
    def reason(self) -> str:
        """A phrase for the user, with what to do about it."""
        why = f"cannot be read: {self.error.message.removeprefix(f'{self.path}: ')}"
        return f"{why} ({self.error.hint})" if self.error.hint else why


def open_copies(paths: Sequence[str], least: int = 1) -> tuple[list[Copy], list[UnreadCopy]]:
    """Open the copies that can be read: one that cannot must not prevent reading the others.

    Returns:
        The copies that can be read, and those that cannot, in the order in which they were named.

    Raises:
        SourceError: fewer than ``least`` can be read; the error of the first that cannot.
    """
    copies, unread = list[Copy](), list[UnreadCopy]()
    for path in paths:
        try:
            copy = Copy(local_path(path))
            for segment in copy.source.listing(full_log=True).segments:
                if not is_remote(segment.path):  # found now: all logs are read at the same time, and all would end
                    with contextlib.suppress(FileNotFoundError):  # a running server deletes segments
                        os.close(open_read(segment.path))
            copies.append(copy)
        except SourceError as error:
            unread.append(UnreadCopy(path, error))
    if unread and len(copies) < least:
        raise unread[0].error
    return copies, unread


def twins(copies: Sequence[Copy]) -> Iterator[str]:
    """Yield a sentence for each copy that was given twice, perhaps by two paths, or that is another one's clone."""
    for index, copy in enumerate(copies):
        real = os.path.realpath(copy.source.path)
        twin = next((earlier for earlier in copies[:index] if os.path.realpath(earlier.source.path) == real), None)
        if twin is not None:
            yield f"{twin.path} and {copy.path} are the same files"
        clone = next((earlier for earlier in copies[:index] if _is_clone(copy, earlier)), None)
        if clone is not None:
            yield (
                f"{clone.path} and {copy.path} are of nodes {clone.node_id} and {copy.node_id}, and have one"
                " directory.id: if one disk was made from the other, the two prove no more than one"
            )


def _is_clone(copy: Copy, earlier: Copy) -> bool:
    """Whether the log directories of two nodes have one id, which is random."""
    has_one_id = copy.directory_id is not None and copy.directory_id == earlier.directory_id
    return has_one_id and copy.node_id != earlier.node_id


class FirstDifference(NamedTuple):
    """Where two logs begin to differ: the first such offset, and a copy of each log's batch there."""

    offset: int
    first: Batch
    second: Batch


class Pair:
    """Two logs: identical from ``since`` to ``to`` (exclusive); both are ``None`` if the logs share no offset."""

    def __init__(self) -> None:
        self.since: int | None = None
        self.to: int | None = None
        self.parting: FirstDifference | None = None


class Pairs(dict[tuple[int, int], Pair]):
    """How each two of several logs compare, by their indexes in the list of copies, the lower one first."""

    def of(self, index: int, other: int) -> Pair:
        """The pair of two logs, in any order."""
        return self[min(index, other), max(index, other)]


def read_together(copies: Sequence[Copy], progress: Progress | None = None) -> Pairs:
    """Read all logs to their ends, side by side, and compare them.

    Raises SourceError, and DataError if a file vanishes again and again; other damage is in the copies afterwards.
    """
    pairs = Pairs({indexes: Pair() for indexes in combinations(range(len(copies)), 2)})
    claims = [claim for copy in copies for claim in copy.claimed()]
    for copy in copies:
        copy.claims = claims
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
        for index, group in enumerate(groups):
            if group >= 0:
                last[index], current[index] = current[index], next(readers[index], None)
    _close(pairs, groups, last)
    return pairs


def _are_same(current: list[Batch | None]) -> bool:
    """Whether the next batch is the same in all copies: by far the most frequent case, so it is checked first."""
    first = current[0]
    return first is not None and all(_same(first, batch) for batch in current[1:])


def _groups(current: list[Batch | None]) -> list[int]:
    """For each copy, the index of the first with the same batch at the lowest offset due, or _ABSENT, or _INSIDE."""
    at = min(batch.base_offset for batch in current if batch is not None)
    groups: list[int] = []
    end = at
    for index, batch in enumerate(current):
        if batch is None or batch.base_offset != at:
            groups.append(_ABSENT)
            continue
        end = max(end, batch.last_offset)
        groups.append(
            next(
                (earlier for earlier in range(index) if groups[earlier] == earlier and _same(batch, current[earlier])),
                index,
            )
        )
    for index, batch in enumerate(current):
        if batch is not None and at < batch.base_offset <= end:
            groups[index] = _INSIDE
    return groups


def _same(mine: Batch, theirs: Batch | None) -> bool:
    """Whether two batches have the same bytes. The CRCs are compared first, because they are already parsed."""
    return (
        theirs is not None
        and mine.crc == theirs.crc
        and mine.buf[mine.at : mine.after] == theirs.buf[theirs.at : theirs.after]
    )


def _close(pairs: Pairs, groups: list[int], last: list[Batch | None]) -> None:
    """Set ``to`` of the pairs that were in one group until now; ``last`` are the batches that were compared last."""
    for (first, second), pair in pairs.items():
        batch = last[first]
        if groups[first] == groups[second] >= 0 and pair.parting is None and batch is not None:
            pair.to = batch.last_offset + 1


def _compare(pairs: Pairs, groups: list[int], current: list[Batch | None]) -> None:
    """Set ``since`` of pairs that share an offset for the first time, and ``parting`` of those that begin to differ."""
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
            pair.parting = FirstDifference(shared, _alone(mine), _alone(theirs))


def _alone(batch: Batch) -> Batch:
    """A copy of the batch, so that its segment need not stay in memory."""
    return read_header(batch.raw(), 0)


def _shares(copies: Sequence[Copy], progress: Progress | None) -> Iterator[Progress | None]:
    """One callback per log; each reports to ``progress`` the bytes that were read of all logs together."""
    total = sum(copy.size for copy in copies)
    bytes_by_copy = [0] * len(copies)

    def share(index: int) -> Progress:
        def report(bytes_done: int, _: int, path: str) -> None:
            bytes_by_copy[index] = bytes_done
            if progress is not None:
                progress(sum(bytes_by_copy), total, path)

        return report

    return (None if progress is None else share(index) for index in range(len(copies)))


def _directory(directory_id: object) -> str | None:
    return None if directory_id is None or directory_id == ZERO_UUID else str(directory_id)
