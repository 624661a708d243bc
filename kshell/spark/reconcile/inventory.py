"""List which batches each copy of a cluster's log has after the checkpoint, without comparing the copies yet.

The checkpoint, :class:`Checkpoint`, says how far the cluster's tables are. Planning reads batch headers only, from
the last batch that is in the tables. If one copy is new or no longer has that batch, if the size of a segment changed
(except that the last one grew), or if damage that was reported is no longer there, all copies are planned from their
beginning.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from kshell.errors import CorruptDataError, DataError, IncompleteLogError, UsageError
from kshell.protocol.batches import Batch
from kshell.protocol.verify import Torn
from kshell.sources.copies.agreement import DIVERGED, NOT_COMPARED
from kshell.sources.copies.logs import Copy
from kshell.sources.directory.files import Segment, SnapshotFile, permission
from kshell.sources.directory.log import Progress
from kshell.sources.directory.sidecar_files import leader_epochs
from kshell.spark.files.plan import UNREAD, FileFinding, FilePlan, Runs
from kshell.spark.files.read import read
from kshell.spark.files.scan import CopyOrigin, LogCopy, identity
from kshell.spark.reconcile.logs import (
    NO_LIMIT,
    BadBatches,
    LogPart,
    good_batch_at,
    in_every_copy,
    log_of,
    without_batches,
)
from kshell.spark.schemas import Row
from kshell.spark.stream.directory_walk import ResumedBoundaries
from kshell.spark.stream.resume import Start

_MOST_FAULTS = 100
"""Findings of a copy that are counted at most: of copies with many, it does not matter which has more."""
Evidence = Mapping[str, Any]
"""Why a copy of another history is excluded: see :attr:`Checkpoint.excluded`."""


def by_cluster(copies: Iterable[LogCopy], default: str | None = None) -> dict[str, list[LogCopy]]:
    """Group copies by cluster id.

    Args:
        copies: the copies that listing the sources gave.
        default: the cluster id of copies without ``meta.properties``; if it is ``None``, each such copy counts as a
            cluster of its own.
    """
    clusters: dict[str, list[LogCopy]] = {}
    for copy in copies:
        clusters.setdefault(cluster_of(copy.path, copy.origin, default), []).append(copy)
    return clusters


def cluster_of(path: str, origin: CopyOrigin, default: str | None = None) -> str:
    """Return the cluster id of a copy, as in :func:`by_cluster`; an unknown one is made from the path."""
    digest = hashlib.sha256(os.fsencode(identity(path))).hexdigest()
    return origin.cluster_id or default or f"unknown-{digest[:8]}"


# --- how far the tables are -------------------------------------------------------------------------------------------


class SegmentHead(NamedTuple):
    """The sums in a segment's row of ``files`` over the bytes that planning does not read again."""

    first_offset: int | None = None
    first_epoch: int | None = None
    records: int = 0
    good_bytes: int = 0
    findings: tuple[FileFinding, ...] = ()


class Position(NamedTuple):
    """The last batch of a copy that is in the tables."""

    path: str
    """The segment with the batch."""
    byte: int
    """The batch's first byte in the segment."""
    offset: int
    """Its base offset."""
    head: SegmentHead
    """The sums over the segment before the batch."""
    crc: int


class ReportedFinding(NamedTuple):
    """A finding that has a row in ``quarantine`` already; its :func:`signature` shows whether it is still there."""

    path: str
    position: int
    kind: str
    reason: str
    signature: int | None


class StateRange(NamedTuple):
    """Offsets (``end`` exclusive) with a known state, and the times of the first and last one in ms since 1970."""

    first: int
    end: int
    first_ms: int
    last_ms: int


class Checkpoint(NamedTuple):
    """The checkpoint: how far a cluster's tables are. It is stored as JSON: :meth:`_asdict`, :meth:`from_json`."""

    offset: int = 0
    """The next offset of the log to read: everything below it was read, or is known to be missing."""
    epoch: int = -1
    """The epoch of the batch that ends at ``offset``; -1 if no batch does."""
    crc: int | None = None
    """The CRC of that batch; ``None`` if no batch does."""
    state_end: int | None = None
    """The end of the last replay range. It is less than ``offset`` after damage that no snapshot bridges yet, and more
    if a snapshot is ahead of the log. ``None``: no state is known."""
    state_ranges: Sequence[StateRange] = ()
    """All offset ranges with a known state. A range that begins with a snapshot begins at the snapshot's end offset."""
    log_start: int | None = None
    """The first offset of the log that was read; ``None``: there was no log."""
    first_ms: int | None = None
    """The time of the first batch that was read, in milliseconds since 1970."""
    last_ms: int | None = None
    """The time of the last batch that was read."""
    positions: Mapping[str, Position | None] = {}
    """Path of a copy -> its last batch that is in the tables; ``None``: it has none."""
    segment_sizes: Mapping[str, list[tuple[int, int]]] = {}
    """Path of a copy -> (base offset, size) of its segments that begin before ``offset``."""
    copy_rows: Mapping[str, Row] = {}
    """Path of a copy that is not excluded -> its row of ``copies``."""
    excluded: Mapping[str, Evidence] = {}
    """Path of a copy of another history -> why it is excluded: its ``row`` of ``copies``; the batch that proves it
    (``file``, ``position``, ``crc``); ``until``, the offset beyond which the tables must be before the copy can be
    compared at all, or null if the proof is final while that batch is there; and ``size``, the bytes of its log, which
    count for one that was not compared."""
    findings: Mapping[str, Sequence[ReportedFinding]] = {}
    """Path of a copy -> its findings that are in ``quarantine`` already."""
    gaps: Sequence[tuple[int, int]] = ()
    """Ranges of offsets (first, after) that no copy had, and that were skipped."""
    voters: Sequence[tuple[int, str | None]] = ()
    """(id, directory id) of the voters by the newest record that names them, as of the last comparison of copies."""
    committed: int | None = None
    """The offset below which all records are proven to be committed."""
    quorum_state: tuple[int | None, int | None, tuple[int, ...]] = (None, None, ())
    """The leader, its epoch and the voters by the newest file ``quorum-state``."""

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Checkpoint:
        """Read a checkpoint that :meth:`_asdict` gave and JSON stored. Raises UsageError for other fields."""
        if values.keys() != set(cls._fields):
            raise UsageError(
                "the tables are of another release of kshell",
                hint="use that release, or make the tables again: `kshell-pipeline run` with a new --out",
            )
        positions = {path: _position(value) for path, value in values["positions"].items()}
        findings = {path: [ReportedFinding(*value) for value in listed] for path, listed in values["findings"].items()}
        sizes = {path: [(base, size) for base, size in listed] for path, listed in values["segment_sizes"].items()}
        leader, epoch, voters = values["quorum_state"]
        return cls(**values)._replace(
            state_ranges=tuple(StateRange(*value) for value in values["state_ranges"]),
            positions=positions,
            segment_sizes=sizes,
            findings=findings,
            gaps=tuple((first, after) for first, after in values["gaps"]),
            voters=tuple((voter, directory) for voter, directory in values["voters"]),
            quorum_state=(leader, epoch, tuple(voters)),
        )


def _position(value: Sequence[Any] | None) -> Position | None:
    if value is None:
        return None
    path, byte, offset, head, crc = value
    findings = tuple(FileFinding(*finding) for finding in head[-1])
    return Position(path, byte, offset, SegmentHead(*head)._replace(findings=findings), crc)


# --- what the copies have ---------------------------------------------------------------------------------------------


class PreviousComparison(NamedTuple):
    """What an earlier comparison showed: the copy has the records of the tables from ``since`` to before ``to``.

    At ``to`` the part of the copy begins that is not in the tables yet. ``since`` is ``None`` if nothing was compared.
    ``row`` is the copy's row of ``copies`` at that time, ``start`` is where the copy begins now.
    """

    since: int | None
    to: int
    row: Row
    start: int | None


class Inventory(NamedTuple):
    """The copies of a cluster, and the plans of their files.

    Attributes:
        plans: index of a copy -> the plans of its segments.
        previous: index of a copy -> what earlier comparisons showed of it.
        excluded: path of a copy of another history, which has no plans -> the evidence, as in the checkpoint.
        start: the checkpoint from which the plans go on; ``None``: they begin at the start of each copy.
    """

    copies: tuple[LogCopy, ...]
    plans: Mapping[int, list[FilePlan]]
    previous: Mapping[int, PreviousComparison]
    excluded: Mapping[str, Evidence]
    start: Checkpoint | None


def take_inventory(
    copies: Sequence[LogCopy],
    checkpoint: Checkpoint | None,
    piece_bytes: int,
    bad: BadBatches,
    *,
    whole: bool = False,
) -> Inventory:
    """Plan the segments of every copy from the checkpoint on.

    Args:
        copies: at least one, in the order of their paths.
        checkpoint: how far the tables are; ``None``: plan everything.
        piece_bytes: the approximate size of a run of batches.
        bad: batches to leave out, because a reader found them to be damaged.
        whole: plan all copies from their beginning, excluded ones, too: some may be comparable now.

    Raises:
        FileNotFoundError: a file changed since it was listed; the caller lists the copies again.
        SourceError: a file cannot be read.
    """
    excluded = _still_excluded(copies, checkpoint) if checkpoint is not None and not whole else {}
    indexes = [index for index, copy in enumerate(copies) if copy.path not in excluded]
    start = None if whole else checkpoint
    if start is not None and not all(_continues(copies[index], start) for index in indexes):
        start = None
    plans = {}
    for index in indexes:
        position = None if start is None else start.positions.get(copies[index].path)
        plans[index] = plan_segments(copies[index], position, None if start is None else start.offset, piece_bytes)
    if start is None and checkpoint is not None:
        bad = [*bad, *(known for index in indexes for known in _known_bad(copies[index], plans[index], checkpoint))]
    plans = _without_bad(plans, bad)
    previous: dict[int, PreviousComparison] = {}
    if len(indexes) > 1 and start is not None:
        previous = _previous(copies, plans, start)
        if any(index not in previous and _begins_before(start.offset, index, plans[index]) for index in indexes):
            return take_inventory(copies, checkpoint, piece_bytes, bad, whole=True)
        if wider := _widened(copies, plans, previous, piece_bytes):
            plans = _without_bad(plans | wider, bad)
    return Inventory(tuple(copies), plans, previous, excluded, start)


def plan_segments(copy: LogCopy, position: Position | None, offset: int | None, piece_bytes: int) -> list[FilePlan]:
    """Plan a copy's segments from the batch at ``position``; if it is gone, from the segment before ``offset``."""
    listing = copy.listing
    if not listing.segments:
        return []
    start = _start_at(copy, position)
    if start is None:
        bases = [segment.base_offset for segment in listing.segments]
        before = [index for index, base in enumerate(bases) if offset and base is not None and base < offset]
        start = Start(listing.segments[before[-1] if before else 0 :])
    files = [*ResumedBoundaries(listing, start, piece_bytes).files()]
    for refusal, file in ((permission(file.path), file) for file in files):
        if FileFinding(-1, UNREAD, refusal.message) in file.findings:
            raise refusal  # without this file, the copy would look like one that lacks records
    return files


def _start_at(copy: LogCopy, position: Position | None) -> Start | None:
    """Return a start at the batch at ``position``; ``None`` if the copy no longer has that batch there."""
    for index, segment in enumerate(copy.listing.segments):
        if position is not None and segment.path == position.path and segment.size > position.byte:
            batch = good_batch_at(segment.path, segment.size, position.byte)
            if batch is not None and (batch.first, batch.crc) == (position.offset, position.crc):
                # A control batch may open an epoch, and only the batches after it prove that epoch.
                segments, is_proven = copy.listing.segments[index:], not batch.is_control
                return Start(segments, position.byte, -1, position.offset, 0, is_proven=is_proven)
    return None


def _continues(copy: LogCopy, checkpoint: Checkpoint) -> bool:
    """Whether to plan a copy from the checkpoint on: it is known, and what was read of its segments is unchanged.

    Kafka deletes a log's first segments, and appends to the last one. After any other change of a size, or if damage
    was repaired, the copies are read from their beginning.
    """
    known = checkpoint.segment_sizes.get(copy.path, [])
    now = [pair for pair in segment_sizes(copy) if known and pair[0] <= known[-1][0]]
    had_records = checkpoint.copy_rows.get(copy.path, {}).get("startOffset") is not None
    if had_records and now and now[-1][0] == known[-1][0] and known[-1][1] < now[-1][1]:
        now[-1] = known[-1]
    if now != known[len(known) - len(now) :]:
        return False
    segments = {segment.path for segment in copy.listing.segments}
    reported = [finding for finding in checkpoint.findings.get(copy.path, ()) if finding.path in segments]
    return copy.path in checkpoint.positions and len(reported) == sum(1 for _ in still_there(copy, reported))


def _known_bad(copy: LogCopy, files: Iterable[FilePlan], checkpoint: Checkpoint) -> Iterator[tuple[str, int, str]]:
    """Yield the batches that a plan takes for good, by their headers, although it is known that their CRC is wrong.

    Else the gap of a lone copy would look filled, and its tables would be made again from what the copy still has.
    """
    reported = {
        (finding.path, finding.position): finding.reason
        for finding in still_there(copy, checkpoint.findings.get(copy.path, ()))
        if finding.kind == "batch" and finding.signature is None
    }
    paths = {path for path, _ in reported}
    for file in files:
        for run in file.runs if file.path in paths else ():
            for batch in LogPart(-1, file.path, file.size, run).batches():
                if (reason := reported.get((file.path, batch.position))) is not None:
                    yield file.path, batch.position, reason


def _without_bad(plans: Mapping[int, list[FilePlan]], bad: BadBatches) -> dict[int, list[FilePlan]]:
    """Remove the batches in ``bad``, and the same batches of other copies, from the plans."""
    if bad and len(plans) > 1:
        bad = in_every_copy([file for files in plans.values() for file in files], bad)
    return {index: [without_batches(file, bad) for file in files] for index, files in plans.items()}


def _still_excluded(copies: Sequence[LogCopy], checkpoint: Checkpoint) -> dict[str, Evidence]:
    """Return copies that were excluded and still have the proof; none if a copy is new and may be of their history."""
    if any(copy.path not in checkpoint.positions and copy.path not in checkpoint.excluded for copy in copies):
        return {}
    excluded = {}
    for copy in copies:
        evidence = checkpoint.excluded.get(copy.path)
        if evidence is None or (evidence["until"] is not None and checkpoint.offset > evidence["until"]):
            continue  # not excluded, or excluded only until the tables reach its offsets: compare it now
        if evidence["row"]["state"] == NOT_COMPARED and evidence.get("size") != log_size(copy):
            continue  # it may have offsets in common with the others by now
        size = file_sizes(copy).get(evidence["file"])
        batch = None if size is None else good_batch_at(evidence["file"], size, evidence["position"])
        if batch is not None and batch.crc == evidence["crc"]:
            excluded[copy.path] = evidence
    return excluded


def _previous(
    copies: Sequence[LogCopy], plans: Mapping[int, list[FilePlan]], checkpoint: Checkpoint
) -> dict[int, PreviousComparison]:
    """Return the earlier comparison of each copy whose plan begins with its last batch that is in the tables."""
    previous = {}
    for index, files in plans.items():
        path = copies[index].path
        position = checkpoint.positions.get(path)
        if position and files and files[0].runs and (files[0].path, files[0].runs[0].start) == position[:2]:
            batch = good_batch_at(files[0].path, files[0].size, position.byte)
            if batch is not None and (batch.first, batch.crc) == (position.offset, position.crc):
                row = checkpoint.copy_rows.get(path, {})
                start, since = start_offset(copies[index], batch.first, checkpoint), row.get("sameFrom")
                if since is not None and start is not None:
                    # Whatever peer it was compared with: a copy that did not diverge has what the tables have.
                    since = max(start, since) if row["state"] == DIVERGED else start
                previous[index] = PreviousComparison(since, batch.after, row, start)
    return previous


def start_offset(copy: LogCopy, first: int | None, checkpoint: Checkpoint | None) -> int | None:
    """Return the offset of a copy's first record; ``None`` if it has no log.

    If the plan begins at the checkpoint, this is the base offset in the first segment's name. An offset that was
    reported before stays if it lies in that segment, or after it because the segment is damaged.

    Args:
        copy: the copy.
        first: the first offset of its plan.
        checkpoint: where the plan begins; ``None``: it begins at the start of the copy.
    """
    base = copy.listing.segments[0].base_offset if copy.listing.segments else None
    if checkpoint is None or base is None or (first is None and len(copy.listing.segments) == 1):
        return first
    if copy.path not in checkpoint.copy_rows:
        return base
    reported: int | None = checkpoint.copy_rows[copy.path]["startOffset"]
    if reported is None:
        return first
    return max(base, reported)


def _begins_before(offset: int, index: int, files: Sequence[FilePlan]) -> bool:
    """Whether the plans of a copy have records before an offset."""
    parts = log_of(index, files).parts
    return bool(parts) and parts[0].run.first < offset


def _widened(
    copies: Sequence[LogCopy],
    plans: Mapping[int, list[FilePlan]],
    previous: Mapping[int, PreviousComparison],
    piece_bytes: int,
) -> dict[int, list[FilePlan]]:
    """Plan the copy that is ahead from an earlier offset, if another copy's new records need it for the comparison.

    That is so if all new records of the other copy lie before the planned part. Returns the new plans of the copy that
    is ahead, by its index; empty if the present plans will do.
    """
    logs = {index: log for index, files in plans.items() if (log := log_of(index, files)).parts}
    if not logs:
        return {}
    last = {index: log.parts[-1].last_batch() for index, log in logs.items()}
    ahead = max(last, key=lambda index: (last[index].epoch, last[index].after))
    first = logs[ahead].parts[0].run.first
    news = [
        compared.to
        for index, compared in previous.items()
        if index in last
        and compared.to < last[index].after <= first
        and compared.row.get("endOffset") != last[index].after
    ]
    return {ahead: plan_segments(copies[ahead], None, min(news), piece_bytes)} if news else {}


# --- findings that were reported --------------------------------------------------------------------------------------


def signature(copy: LogCopy, path: str, position: int) -> int | None:
    """Return a number that changes when a finding is repaired.

    Returns:
        The CRC of the batch at the finding's byte; ``None`` if no good batch begins there; the size of a file that ends
        there or before. If the position is -1: the size of a snapshot, or the base offset of the segment before that
        segment.
    """
    size = file_sizes(copy).get(path)
    if size is None:
        return None
    if position < 0:
        segments = copy.listing.segments
        index = next((index for index, segment in enumerate(segments) if segment.path == path), None)
        if index is None:
            return size
        return segments[index - 1].base_offset if index else None
    if position >= size:
        return size
    batch = good_batch_at(path, size, position)
    return None if batch is None else batch.crc


def still_there(copy: LogCopy, reported: Iterable[ReportedFinding]) -> Iterator[ReportedFinding]:
    """Return the reported findings whose file still exists, and whose signature is unchanged."""
    sizes = file_sizes(copy)
    for finding in reported:
        if finding.path in sizes and signature(copy, finding.path, finding.position) == finding.signature:
            yield finding


def segment_sizes(copy: LogCopy) -> list[tuple[int, int]]:
    """Return (base offset, size) of a copy's segments."""
    return [(segment.base_offset, segment.size) for segment in copy.listing.segments if segment.base_offset is not None]


def log_size(copy: LogCopy) -> int:
    """Return the size of a copy's log in bytes."""
    return sum(segment.size for segment in copy.listing.segments)


def file_sizes(copy: LogCopy) -> dict[str, int]:
    """Return the size in bytes of each of a copy's segments and snapshots, by path."""
    files: tuple[Segment | SnapshotFile, ...] = (*copy.listing.segments, *copy.listing.snapshots)
    return {file.path: file.size for file in files}


# --- a copy that is compared ------------------------------------------------------------------------------------------


class PlannedCopy(Copy):
    """A copy for the comparison, which reads only what its plans say.

    After reading, ``plans`` has only batches with a good CRC. ``is_trusted`` says that the copy was compared with the
    tables before, and still has its last batch that is in them. Snapshots that end at or before the checkpoint of the
    inventory are assumed to be complete, except the newest one and those with a reported finding.
    """

    def __init__(self, inventory: Inventory, index: int, checkpoint: Checkpoint | None, piece_bytes: int) -> None:
        copy, start = inventory.copies[index], inventory.start
        self.plans = list(inventory.plans[index])
        self.leader_epochs = leader_epochs(copy.listing)
        self.listing = copy.listing
        self.previous = inventory.previous.get(index)
        self.is_trusted = checkpoint is not None and _start_at(copy, checkpoint.positions.get(copy.path)) is not None
        self._piece_bytes = piece_bytes
        reported = start.findings.get(copy.path, ()) if start is not None else ()
        faults = [*islice(still_there(copy, reported), _MOST_FAULTS)]
        self._reported = len(faults)
        self._verified_until = -1 if start is None else start.offset
        self._suspect = {fault.path for fault in faults} | {file.path for file in copy.listing.snapshots[-1:]}
        super().__init__(copy.path, copy.listing)
        newest = self.newest
        if start is not None and not (self.voters and newest is not None and (newest.end_offset or 0) > start.offset):
            self.voters = dict(start.voters)

    @property
    def oldest(self) -> int | None:
        return self.start if self.previous is None else self.previous.start

    @property
    def faults(self) -> int:
        return max(len(self.damage), self._reported)

    def verify(self, file: SnapshotFile) -> None:
        if file.path in self._suspect or file.end_offset is None or file.end_offset > self._verified_until:
            super().verify(file)
        else:
            self.snapshots.append(file)

    def batches(self, progress: Progress | None) -> Iterator[Batch]:
        yield from self.noted(self._read())
        for plan in self.plans:
            for finding in plan.findings:
                if finding.kind == "torn":
                    self.torn = plan.path, Torn(finding.position, plan.size - finding.position, finding.reason)
                else:
                    self.damage.append(finding_error(plan.path, finding))

    def _read(self) -> Iterator[Batch]:
        end = -1
        for index, plan in enumerate(self.plans):
            runs, findings = Runs(self._piece_bytes), list(plan.findings)
            for placed in read(plan):
                if isinstance(placed, FileFinding):
                    findings.append(placed)
                elif not placed.repeats and placed.batch.base_offset >= end:
                    batch, position = placed.batch, placed.position
                    end = batch.last_offset + 1
                    runs.add(position, position + batch.size, batch.base_offset, end)
                    yield batch
            self.plans[index] = plan._replace(runs=runs.finish(), findings=tuple(sorted(findings)))

    def epoch_end(self, epoch: int) -> int:
        """Return the offset by which all records up to ``epoch`` have ended; ``NO_LIMIT``: no later epoch is known."""
        starts = [start for line, start in self.leader_epochs if line > epoch]
        if starts:
            return starts[0]
        for index, (later, first) in enumerate(self.epochs):
            if later > epoch:
                ends = [run.after for plan in self.plans for run in plan.runs if run.first < first]
                return min(first, max(ends, default=first)) if index else first
        return NO_LIMIT


def finding_error(path: str, finding: FileFinding) -> DataError:
    """Return a finding as an error whose message names the file."""
    if finding.position >= 0:
        return CorruptDataError(path, finding.position, finding.reason)
    return IncompleteLogError(finding.reason if path in finding.reason else f"{path}: {finding.reason}")
