"""Plan what a step reads: slices of the merged log, snapshots to begin states with, and whether to start from scratch.

:func:`must_restart` says whether the tables' rows of the cluster are still valid, :func:`make_plan` plans what comes
after the checkpoint, :func:`slices` cuts the plan for tasks. After a gap, a state can only begin with a snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from kshell.errors import CorruptDataError, MissingCodecError, SourceError
from kshell.protocol.batches import iter_records
from kshell.protocol.primitives import DecodeError
from kshell.sources.directory.files import SnapshotFile
from kshell.sources.directory.snapshot import SnapshotReader
from kshell.sources.points import Point
from kshell.spark.files.pack import Slice
from kshell.spark.files.pack import parts as runs_of_about
from kshell.spark.files.plan import UNREAD, FileFinding, FilePlan, damaged, snapshot_plan
from kshell.spark.reconcile.comparison import Comparison
from kshell.spark.reconcile.inventory import Checkpoint
from kshell.spark.reconcile.logs import BadBatches, Log, LogPart, OffsetRange

_NOW = Point()


class ReplayRange(NamedTuple):
    """A range of the log over which the cluster's state is replayed.

    Replay begins with the snapshot at path ``base``. If that is ``None``, it continues the state before ``since``,
    which is empty at the beginning of a log. The records from offset ``since`` to before ``to`` are then applied.
    """

    base: str | None
    since: int
    to: int


class Request(NamedTuple):
    """What to reconcile.

    Attributes:
        cluster_id: the cluster.
        piece_bytes: the approximate size of a slice.
        checkpoint: how far the cluster's tables are; ``None`` if they have nothing of it.
        since: without a checkpoint: begin at the newest snapshot at or before this point that the log continues.
        until: read no log record at or after this offset.
        bad: batches that an earlier read found to be damaged; they count as missing.
    """

    cluster_id: str
    piece_bytes: int
    checkpoint: Checkpoint | None = None
    since: Point = _NOW
    until: int | None = None
    bad: BadBatches = ()

    def from_scratch(self) -> Request:
        """Return the request without a checkpoint, and with ``until`` raised to where the tables were."""
        assert self.checkpoint is not None, "there are no tables to begin again"
        before = self.checkpoint
        until = None if self.until is None else max(self.until, before.offset, before.state_end or 0)
        return self._replace(checkpoint=None, until=until)


# --- snapshots --------------------------------------------------------------------------------------------------------


class Snapshot(NamedTuple):
    """A complete snapshot of copy number ``copy``. ``end``: its end offset; ``last_ms``: its time in ms since 1970."""

    copy: int
    plan: FilePlan
    end: int
    epoch: int
    last_ms: int


class _Candidate(NamedTuple):
    """A snapshot file that was not read yet; ``end`` is -1 if its name has no end offset."""

    copy: int
    file: SnapshotFile
    end: int


class SnapshotCandidates:
    """The snapshots of the copies that count, each read and verified only when it is needed.

    ``findings`` gets (index of the copy, plan) for each snapshot that turned out to be incomplete or damaged.
    """

    def __init__(self, comparison: Comparison, request: Request) -> None:
        self.findings: list[tuple[int, FilePlan]] = []
        self._piece_bytes = request.piece_bytes
        self._is_lone_file = is_lone_file(comparison)
        self._checked: dict[str, Snapshot | None] = {}
        candidates = [
            _Candidate(index, file, -1 if file.end_offset is None else file.end_offset)
            for index in sorted(comparison.limits)
            for file in comparison.inventory.copies[index].listing.snapshots
        ]
        candidates_in_range = [
            candidate for candidate in candidates if request.until is None or candidate.end <= request.until
        ]
        self._candidates = sorted(
            candidates_in_range, key=lambda candidate: (candidate.end, -(candidate.file.epoch or 0), candidate.copy)
        )

    @property
    def ends(self) -> list[int]:
        """The end offsets of all candidates, each once, in ascending order; -1 for a name without one."""
        return list(dict.fromkeys(candidate.end for candidate in self._candidates))

    def oldest(self, low: int, high: int) -> Snapshot | None:
        """Return the oldest complete snapshot that ends between two offsets (both inclusive)."""
        checked = (self._check(candidate) for candidate in self._candidates if low <= candidate.end <= high)
        return next((snapshot for snapshot in checked if snapshot is not None), None)

    def newest(self, point: Point, fits: Callable[[int], bool]) -> Snapshot | None:
        """Return the newest complete snapshot at or before a point whose end offset ``fits`` accepts."""
        for candidate in reversed(self._candidates):
            if fits(candidate.end) and (point.offset is None or candidate.end <= point.offset):
                snapshot = self._check(candidate)
                if snapshot is not None and (point.time_ms is None or 0 <= snapshot.last_ms <= point.time_ms):
                    return snapshot
        return None

    def plan_of(self, file: SnapshotFile) -> FilePlan | None:
        """Return the plan of a snapshot that was read and is complete; ``None`` for any other."""
        snapshot = self._checked.get(file.path)
        return None if snapshot is None else snapshot.plan

    def _check(self, candidate: _Candidate) -> Snapshot | None:
        if candidate.file.path not in self._checked:
            self._checked[candidate.file.path] = self._read(candidate)
        return self._checked[candidate.file.path]

    def _read(self, candidate: _Candidate) -> Snapshot | None:
        """Read a whole snapshot; ``None`` if it is damaged. Raises FileNotFoundError: the caller lists again."""
        file, reader = candidate.file, SnapshotReader(candidate.file)
        try:
            # The records of a bootstrap snapshot are in the log, too, and count there, as in the shell.
            plan = snapshot_plan(file, self._piece_bytes, control_only=file.is_bootstrap and not self._is_lone_file)
            epoch = 0
            for batch in reader:
                epoch = batch.epoch
                for _ in iter_records(batch):
                    pass
        except CorruptDataError as error:
            finding = damaged(error)
        except DecodeError as error:
            finding = FileFinding(-1, "file", f"the snapshot is malformed: {error.reason}")
        except (MissingCodecError, SourceError) as error:
            finding = FileFinding(-1, UNREAD, error.message)
        else:
            end = reader.records if candidate.end < 0 else candidate.end
            epoch = epoch if file.epoch is None else file.epoch
            return Snapshot(candidate.copy, plan._replace(is_proven=True), end, epoch, reader.timestamp)
        self.findings.append((candidate.copy, FilePlan(file.path, file.size, True, (), (finding,))))
        return None


def is_lone_file(comparison: Comparison) -> bool:
    """Whether the only copy is a single file, not a directory: its state begins with the file's first record."""
    copies = comparison.inventory.copies
    return len(copies) == 1 and copies[0].listing.directory is None


# --- whether the tables must begin again ------------------------------------------------------------------------------


def must_restart(
    comparison: Comparison, snapshots: SnapshotCandidates, checkpoint: Checkpoint, until: int | None
) -> bool:
    """Whether the tables' rows of a cluster must be replaced by a new read of its whole log.

    That is so if the log has other records than those in the tables, or if a part that was missing, or had no known
    state, can be read by now. ``until``: the offset at which this step ends.
    """
    log, offset, state_end = comparison.log, checkpoint.offset, checkpoint.state_end or 0
    if not _log_has_checkpoint(log, checkpoint):
        return True
    if state_end < offset and snapshots.oldest(state_end + 1, offset - 1) is not None:
        return True  # a snapshot now gives a state within the records that were read without one
    if state_end > offset:  # a snapshot was ahead of the log; if files are being copied, the log may follow only now
        new = log.between(offset, until).parts
        if new and new[0].run.first == offset:
            return True
    gaps = checkpoint.gaps  # records in one of them: it was repaired, or another copy has them
    return any(part.run.first < after and part.run.after > first for first, after in gaps for part in log.parts)


def _log_has_checkpoint(log: Log, checkpoint: Checkpoint) -> bool:
    """Whether the log agrees with the batch that the tables end with.

    If the log has that offset, it must have that batch. If it ends before, it is only behind, unless its last epoch is
    later than that of the tables: then a new leader has truncated records that the tables have. If it begins after
    that offset, its first epoch must not be earlier.
    """
    if not log.parts:
        return True
    part = log.part_with(checkpoint.offset - 1)
    if part is not None:
        batch = part.batch_with_offset(checkpoint.offset - 1)
        return (batch.after, batch.epoch, batch.crc) == (checkpoint.offset, checkpoint.epoch, checkpoint.crc)
    last = log.parts[-1]
    if last.run.after < checkpoint.offset:
        return last.last_batch().epoch <= checkpoint.epoch
    later = next(part for part in log.parts if part.run.first >= checkpoint.offset)
    return later.first_batch().epoch >= checkpoint.epoch


# --- what to read -----------------------------------------------------------------------------------------------------


class ReadPlan(NamedTuple):
    """The part of the log to read, the ranges to replay, and the snapshots with which replay ranges begin (``bases``).

    ``expected``: the offset at which the log should begin, after the checkpoint or the first snapshot; ``None`` if any
    offset will do.
    """

    log: Log
    ranges: tuple[ReplayRange, ...]
    bases: tuple[Snapshot, ...]
    expected: int | None


def make_plan(comparison: Comparison, snapshots: SnapshotCandidates, request: Request) -> ReadPlan:
    """Plan what comes after the checkpoint or, without one, everything from ``request.since`` on."""
    checkpoint, whole_log = request.checkpoint, comparison.log
    if checkpoint is not None:
        log = whole_log.between(checkpoint.offset, request.until)
        state_end, low = checkpoint.state_end, checkpoint.offset
        if state_end is not None and state_end >= checkpoint.offset:
            low = state_end + 1
            if state_end == checkpoint.offset and state_end in whole_log.breaks:
                state_end = None
        else:
            state_end = None
        ranges, bases = _replay_ranges(log.ranges(), snapshots, low, state_end)
        return ReadPlan(log, ranges, bases, None if checkpoint.log_start is None else checkpoint.offset)
    base = None if request.since == _NOW else _snapshot_before(request.since, whole_log, snapshots)
    low = 0 if base is None else base.end
    log = whole_log.between(low, request.until, inside=True)
    lone = is_lone_file(comparison) and base is None
    ranges, bases = _replay_ranges(log.ranges(), snapshots, low, None, is_lone_file=lone)
    return ReadPlan(log, ranges, bases, None if base is None else base.end)


def _snapshot_before(point: Point, log: Log, snapshots: SnapshotCandidates) -> Snapshot | None:
    """Return the newest snapshot at or before a point whose end offset is in the log, or after the end of the log."""
    ranges = log.ranges()

    def fits(end: int) -> bool:
        is_last = not any(after > end for _, after in ranges)
        return end > 0 and (is_last or any(first <= end <= after for first, after in ranges))

    return snapshots.newest(point, fits)


def _replay_ranges(
    ranges: Sequence[OffsetRange],
    snapshots: SnapshotCandidates,
    low: int,
    state_end: int | None,
    *,
    is_lone_file: bool = False,
) -> tuple[tuple[ReplayRange, ...], tuple[Snapshot, ...]]:
    """Return the replay ranges of a log, and the snapshots that they begin with.

    Args:
        ranges: the offset ranges of the log without a gap or break.
        snapshots: the snapshots that a replay range may begin with.
        low: a replay range begins only with a snapshot that ends at this offset or later.
        state_end: the end of the known state, if the log may continue it; else ``None``.
        is_lone_file: whether the first range needs no snapshot wherever it begins.
    """
    pairs: list[tuple[ReplayRange, Snapshot | None]] = []
    for index, (first, end) in enumerate(ranges):
        if state_end is not None and first <= state_end <= end:
            if state_end < end:
                pairs.append((ReplayRange(None, state_end, end), None))
        elif low <= 0 and (first == 0 or (is_lone_file and index == 0)):
            base = snapshots.oldest(0, 0)
            pairs.append((ReplayRange(base.plan.path if base else None, first, end), base))
        elif (base := snapshots.oldest(max(first, low), end)) is not None:
            pairs.append((ReplayRange(base.plan.path, base.end, end), base))
    # A snapshot that the log neither reaches nor continues gives one state: a replay range without records.
    apart = [end for end in snapshots.ends if end >= low and not any(first <= end <= after for first, after in ranges)]
    bases = [snapshots.oldest(end, end) for end in [*(end for end in snapshots.ends if end < 0), *apart]]
    lone = [base for base in bases if base is not None]
    if len(lone) > 1 or ranges:
        lone = [base for base in lone if base.end > 0]  # one that ends at offset 0 is the bootstrap snapshot
    pairs += [(ReplayRange(base.plan.path, base.end, base.end), base) for base in lone]
    pairs.sort(key=lambda pair: (pair[0].since, pair[0].to))
    unique = []
    for (replayed, base), later in zip(pairs, [*pairs[1:], None], strict=False):
        begins_later = later is not None and later[1] == base and later[0].since == replayed.since == replayed.to
        if base is None or not begins_later:  # else the next range, which has records, begins with the same snapshot
            unique.append((replayed, base))
    return tuple(replayed for replayed, _ in unique), tuple(base for _, base in unique if base is not None)


def slices(comparison: Comparison, plan: ReadPlan, cluster_id: str, piece_bytes: int) -> Iterator[Slice]:
    """Cut a plan into slices of about ``piece_bytes`` bytes, in order, a snapshot before the log that continues it."""
    waiting = list(plan.bases)
    group: list[LogPart] = []

    def piece(index: int, file: FilePlan) -> Slice:
        return Slice(comparison.inventory.copies[index].origin._replace(cluster_id=cluster_id), file)

    def log_slice(parts: Sequence[LogPart]) -> Slice:
        first = parts[0]
        return piece(first.copy, FilePlan(first.path, first.size, False, tuple(part.run for part in parts)))

    def snapshot_slices(bases: Iterable[Snapshot]) -> Iterator[Slice]:
        for base in bases:
            for runs in runs_of_about(base.plan.runs, piece_bytes):
                yield piece(base.copy, base.plan._replace(runs=runs))

    most_bytes = piece_bytes + piece_bytes // 4
    for part in plan.log.parts:
        due = [base for base in waiting if base.end < part.run.after]
        if group and (due or group[0].path != part.path or part.run.end - group[0].run.start > most_bytes):
            yield log_slice(group)
            group = []
        yield from snapshot_slices(due)
        waiting = [base for base in waiting if base not in due]
        group.append(part)
    if group:
        yield log_slice(group)
    yield from snapshot_slices(waiting)
