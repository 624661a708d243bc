"""The copies of a cluster's log, what each of them has, and how far the tables are; nothing is compared yet.

Planning reads headers only, from where the tables are. A copy goes back to its beginning if another one is new, or if
damage that was reported is no longer there.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from kshell.errors import CorruptDataError, DataError, IncompleteLogError, UsageError
from kshell.protocol.batches import Batch
from kshell.protocol.verify import Torn
from kshell.sources.copies.logs import Copy
from kshell.sources.directory.files import Segment, SnapshotFile
from kshell.sources.directory.log import Progress
from kshell.sources.directory.sidecar_files import leader_epochs
from kshell.spark.files.plan import FileFinding, FilePlan, Runs
from kshell.spark.files.read import read
from kshell.spark.files.scan import CopyOrigin, LogCopy, identity
from kshell.spark.reconcile.logs import (
    NO_LIMIT,
    BadBatches,
    good_batch_at,
    in_every_copy,
    log_of,
    without_batches,
)
from kshell.spark.stream.directory_walk import Onward
from kshell.spark.stream.resume import Start

Row = dict[str, Any]


def by_cluster(copies: Iterable[LogCopy], default: str | None = None) -> dict[str, list[LogCopy]]:
    """Cluster id -> its copies, in their order.

    Args:
        copies: what listing the sources gave.
        default: the cluster of copies without ``meta.properties``; without it each is a cluster of its own.
    """
    clusters: dict[str, list[LogCopy]] = {}
    for copy in copies:
        clusters.setdefault(cluster_of(copy.path, copy.origin, default), []).append(copy)
    return clusters


def cluster_of(path: str, origin: CopyOrigin, default: str | None = None) -> str:
    """The cluster of a copy; see :func:`by_cluster`."""
    digest = hashlib.sha256(os.fsencode(identity(path))).hexdigest()
    return origin.cluster_id or default or f"unknown-{digest[:8]}"


# --- how far the tables are -------------------------------------------------------------------------------------------


class SegmentHead(NamedTuple):
    """What a row of ``files`` says of a segment before a byte, so that planning need not read that part again."""

    first_offset: int | None = None
    first_epoch: int | None = None
    records: int = 0
    good_bytes: int = 0
    findings: tuple[FileFinding, ...] = ()


class Position(NamedTuple):
    """The last batch of a copy that is in the tables: its segment, first byte, base offset and CRC."""

    path: str
    byte: int
    offset: int
    head: SegmentHead
    crc: int


class ReportedFinding(NamedTuple):
    """A finding that is in ``quarantine`` already; its :func:`signature` shows whether it is still there."""

    path: str
    position: int
    kind: str
    reason: str
    signature: int | None


class StateRange(NamedTuple):
    """Offsets (``end`` exclusive) whose states are known, and the times of the first and the last one in ms."""

    first: int
    end: int
    first_ms: int
    last_ms: int


class Checkpoint(NamedTuple):
    """How far the tables of a cluster are; :meth:`_asdict` may go through JSON, and :meth:`from_json` reads it."""

    offset: int = 0
    """The next offset of the log: what is below it was read, or is known to be missing."""
    epoch: int = -1
    """Of the batch that ends there."""
    crc: int | None = None
    """The CRC of the batch that ends there; ``None``: no batch does."""
    state_end: int | None = None
    """The end of the last replay range: before ``offset`` after damage that no snapshot bridges yet, after it where a
    snapshot is ahead of the log. ``None``: no state is known."""
    state_ranges: Sequence[StateRange] = ()
    """What states are known of; the first one may be that of a snapshot, which ends there."""
    log_start: int | None = None
    """The first offset of the log that was read; ``None``: there was no log."""
    first_ms: int | None = None
    """The time of the first batch that was read, in milliseconds since 1970."""
    last_ms: int | None = None
    """The time of the last one."""
    positions: Mapping[str, Position | None] = {}
    """By path of a copy."""
    copy_rows: Mapping[str, Row] = {}
    """Rows of ``copies`` by path, of copies that are not excluded."""
    excluded: Mapping[str, Mapping[str, Any]] = {}
    """By path, copies of another history: the row in ``copies``; the batch that shows it (``file``, ``position``,
    ``crc``); and ``until``: once the tables go beyond that offset the two can be compared; or null."""
    findings: Mapping[str, Sequence[ReportedFinding]] = {}
    """By path of a copy."""
    gaps: Sequence[tuple[int, int]] = ()
    """Offsets (first, after) that no copy had, and that were passed over."""
    voters: Sequence[tuple[int, str | None]] = ()
    """(id, directory id) of the voters by the newest record that names them, where copies were compared."""
    committed: int | None = None
    """The offset below which all records are proven to be committed."""
    quorum_state: tuple[int | None, int | None, tuple[int, ...]] = (None, None, ())
    """The leader, its epoch and the voters by the files ``quorum-state``."""

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Checkpoint:
        """A checkpoint as :meth:`_asdict` and JSON leave it. Raises UsageError for one of another release."""
        if values.keys() != set(cls._fields):
            raise UsageError(
                "the tables are of another release of kshell",
                hint="use that release, or make the tables again: `kshell-pipeline run` with a new --out",
            )
        positions = {path: _position(value) for path, value in values["positions"].items()}
        findings = {path: [ReportedFinding(*value) for value in listed] for path, listed in values["findings"].items()}
        leader, epoch, voters = values["quorum_state"]
        return cls(**values)._replace(
            state_ranges=tuple(StateRange(*value) for value in values["state_ranges"]),
            positions=positions,
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
    """A copy is the same as the tables from offset ``since`` to before ``to``, where its new part begins.

    ``since`` is ``None`` where nothing was compared; ``row`` is the copy's row in ``copies`` then.
    """

    since: int | None
    to: int
    row: Mapping[str, Any]


class Inventory(NamedTuple):
    """The copies of a cluster and the plans of their files.

    ``plans`` and ``previous`` are by index of the copy; ``excluded`` copies (by path) belong to another history and
    have none. ``start``: the checkpoint after which plans begin; ``None``: they begin at the beginning.
    """

    copies: tuple[LogCopy, ...]
    plans: Mapping[int, list[FilePlan]]
    previous: Mapping[int, PreviousComparison]
    excluded: Mapping[str, Mapping[str, Any]]
    start: Checkpoint | None


def take_inventory(copies: Sequence[LogCopy], checkpoint: Checkpoint | None, cut: int, bad: BadBatches) -> Inventory:
    """Plan the segments of every copy from where the tables are.

    Args:
        copies: at least one, in the order of their paths.
        checkpoint: how far the tables are; ``None``: plan everything.
        cut: bytes of a run.
        bad: batches to leave out, because a reader found them to be damaged.

    Raises:
        FileNotFoundError: a file is not what it was when it was listed; list again.
        SourceError: a file cannot be read.
    """
    excluded = _still_excluded(copies, checkpoint) if checkpoint is not None else {}
    indexes = [index for index, copy in enumerate(copies) if copy.path not in excluded]
    start = checkpoint
    if start is not None and not all(_continues(copies[index], start) for index in indexes):
        start = None
    plans = {}
    for index in indexes:
        position = None if start is None else start.positions.get(copies[index].path)
        plans[index] = plan_segments(copies[index], position, None if start is None else start.offset, cut)
    plans = _without_bad(plans, bad)
    previous: dict[int, PreviousComparison] = {}
    if len(indexes) > 1 and start is not None:
        previous = _previous(copies, plans, start)
        if wider := _widened(copies, plans, previous, cut):
            plans = _without_bad(plans | wider, bad)
    return Inventory(tuple(copies), plans, previous, excluded, start)


def plan_segments(copy: LogCopy, position: Position | None, offset: int | None, cut: int) -> list[FilePlan]:
    """Plan a copy's segments from a batch on or, if it is gone, from the segment with the offset before ``offset``."""
    listing = copy.listing
    if not listing.segments:
        return []
    start = _start_at(copy, position)
    if start is None:
        bases = [segment.base_offset for segment in listing.segments]
        before = [index for index, base in enumerate(bases) if offset and base is not None and base < offset]
        start = Start(listing.segments[before[-1] if before else 0 :])
    return [*Onward(listing, start, cut).files()]


def _start_at(copy: LogCopy, position: Position | None) -> Start | None:
    for index, segment in enumerate(copy.listing.segments):
        if position is not None and segment.path == position.path and segment.size > position.byte:
            batch = good_batch_at(segment.path, segment.size, position.byte)
            if batch is not None and (batch.first, batch.crc) == (position.offset, position.crc):
                # A batch that opens an epoch is proven only by what follows.
                segments, is_proven = copy.listing.segments[index:], not batch.is_control
                return Start(segments, position.byte, -1, position.offset, 0, is_proven=is_proven)
    return None


def _continues(copy: LogCopy, checkpoint: Checkpoint) -> bool:
    """Whether only what comes after the tables is new: the copy was there, and no damage of its log was repaired.

    (A repaired snapshot is met when it is asked for.)
    """
    segments = {segment.path for segment in copy.listing.segments}
    reported = [finding for finding in checkpoint.findings.get(copy.path, ()) if finding.path in segments]
    return copy.path in checkpoint.positions and len(reported) == sum(1 for _ in still_there(copy, reported))


def _without_bad(plans: Mapping[int, list[FilePlan]], bad: BadBatches) -> dict[int, list[FilePlan]]:
    if bad and len(plans) > 1:
        bad = in_every_copy([file for files in plans.values() for file in files], bad)
    return {index: [without_batches(file, bad) for file in files] for index, files in plans.items()}


def _still_excluded(copies: Sequence[LogCopy], checkpoint: Checkpoint) -> dict[str, Mapping[str, Any]]:
    """The copies that are known to be of another history. None where a copy is new: it may be of that history, too."""
    if any(copy.path not in checkpoint.positions and copy.path not in checkpoint.excluded for copy in copies):
        return {}
    excluded = {}
    for copy in copies:
        evidence = checkpoint.excluded.get(copy.path)
        if evidence is None or (evidence["until"] is not None and checkpoint.offset > evidence["until"]):
            continue  # a copy without a common offset is compared once it has one
        size = file_sizes(copy).get(evidence["file"])
        batch = None if size is None else good_batch_at(evidence["file"], size, evidence["position"])
        if batch is not None and batch.crc == evidence["crc"]:
            excluded[copy.path] = evidence
    return excluded


def _previous(
    copies: Sequence[LogCopy], plans: Mapping[int, list[FilePlan]], checkpoint: Checkpoint
) -> dict[int, PreviousComparison]:
    """By index: what is known of a copy whose plan goes on with the batch that the tables end with."""
    previous = {}
    for index, files in plans.items():
        path = copies[index].path
        position = checkpoint.positions.get(path)
        if position and files and files[0].runs and (files[0].path, files[0].runs[0].start) == position[:2]:
            batch = good_batch_at(files[0].path, files[0].size, position.byte)
            if batch is not None:
                row = checkpoint.copy_rows.get(path, {})
                previous[index] = PreviousComparison(row.get("sameFrom"), batch.after, row)
    return previous


def _widened(
    copies: Sequence[LogCopy],
    plans: Mapping[int, list[FilePlan]],
    previous: Mapping[int, PreviousComparison],
    cut: int,
) -> dict[int, list[FilePlan]]:
    """The plan of the copy that is ahead, from where a copy ended that has news and would not come near to it.

    Empty where that is not needed: a copy that did not grow is as it was, and most others meet the one that is ahead.
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
    return {ahead: plan_segments(copies[ahead], None, min(news), cut)} if news else {}


# --- findings that were reported --------------------------------------------------------------------------------------


def signature(copy: LogCopy, path: str, position: int) -> int | None:
    """What shows that a finding is still there.

    Returns:
        The CRC of the batch at its byte, ``None`` where no good one begins. For a finding without a byte: of a snapshot
        its size, of a segment where the one before it begins.
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
    batch = good_batch_at(path, size, position)
    return None if batch is None else batch.crc


def still_there(copy: LogCopy, reported: Iterable[ReportedFinding]) -> Iterator[ReportedFinding]:
    """The findings of a copy whose file is there, with the same at that byte."""
    sizes = file_sizes(copy)
    for finding in reported:
        if finding.path in sizes and signature(copy, finding.path, finding.position) == finding.signature:
            yield finding


def file_sizes(copy: LogCopy) -> dict[str, int]:
    """The bytes of a copy's files, by path."""
    files: tuple[Segment | SnapshotFile, ...] = (*copy.listing.segments, *copy.listing.snapshots)
    return {file.path: file.size for file in files}


# --- a copy that is compared ------------------------------------------------------------------------------------------


class PlannedCopy(Copy):
    """A copy whose plans say what to read of it. After reading, ``plans`` have only batches whose CRC is right.

    ``is_trusted``: the tables were made of this copy, too, and it still has what they have of it. Snapshots that end at
    or before the checkpoint of the inventory are taken for whole, except the newest one.
    """

    def __init__(self, inventory: Inventory, index: int, checkpoint: Checkpoint | None, cut: int) -> None:
        copy, start = inventory.copies[index], inventory.start
        self.plans = list(inventory.plans[index])
        self.leader_epochs = leader_epochs(copy.listing)
        self.listing = copy.listing
        self.previous = inventory.previous.get(index)
        self.is_trusted = checkpoint is not None and _start_at(copy, checkpoint.positions.get(copy.path)) is not None
        self._cut = cut
        self._verified_until = -1 if start is None else start.offset
        self._newest = copy.listing.snapshots[-1:]
        super().__init__(copy.path, copy.listing)
        newest = self.newest
        if start is not None and not (self.voters and newest is not None and (newest.end_offset or 0) > start.offset):
            self.voters = dict(start.voters)

    @property
    def oldest(self) -> int | None:
        return self.start if self.previous is None else self.previous.row.get("startOffset")

    @property
    def faults(self) -> int:
        return max(len(self.damage), 0 if self.previous is None else len(self.previous.row.get("damage", ())))

    def verify(self, file: SnapshotFile) -> None:
        if file in self._newest or file.end_offset is None or file.end_offset > self._verified_until:
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
            runs, findings = Runs(self._cut), list(plan.findings)
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
        """The offset before which its records of an epoch, and of earlier ones, end for certain."""
        starts = [start for line, start in self.leader_epochs if line > epoch]
        if starts:
            return starts[0]
        for index, (later, first) in enumerate(self.epochs):
            if later > epoch:
                ends = [run.after for plan in self.plans for run in plan.runs if run.first < first]
                return min(first, max(ends, default=first)) if index else first
        return NO_LIMIT


def finding_error(path: str, finding: FileFinding) -> DataError:
    """A finding as an error, whose message names the file."""
    if finding.position >= 0:
        return CorruptDataError(path, finding.position, finding.reason)
    return IncompleteLogError(finding.reason if path in finding.reason else f"{path}: {finding.reason}")
