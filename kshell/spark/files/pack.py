"""Distribute the planned files of a batch read over Spark partitions, as slices: pieces of files of bounded size.

Large files are split over several partitions, small files share one. Order is kept: read one after another, the
partitions have the records of each log in the order of their offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from kshell.errors import SourceError
from kshell.sources.directory.files import VANISHES, SnapshotFile
from kshell.spark.files.plan import UNREAD, Boundaries, FileFinding, FilePlan, Run, snapshot_plan
from kshell.spark.files.scan import CopyOrigin, LogCopy, files_of, find, read_stable
from kshell.spark.options import Options
from kshell.spark.schemas import FILES

_PER_FILE = 1 << 14
"""Opening a file costs about as much as reading this many bytes."""
_LEAST = 1 << 20
"""Bytes below which a partition of its own does not pay."""
_Item = TypeVar("_Item")


class Slice(NamedTuple):
    """A piece of a file that one task reads: the runs in ``file``, and the plan's findings to report with it."""

    origin: CopyOrigin
    file: FilePlan

    def cost(self) -> int:
        """Return the bytes to read, plus the cost of opening the file in bytes."""
        return _PER_FILE + sum(run.end - run.start for run in self.file.runs)

    def records(self) -> int:
        """Return the number of records to decode, by the offsets in the batch headers."""
        return sum(run.after - run.first for run in self.file.runs if not run.repeats)


def partitions(options: Options) -> list[tuple[Slice, ...]]:
    """Plan a batch read: return the slices of each Spark partition. Raises UsageError, SourceError."""
    clusters = options.narrowing.clusters
    copies = [copy for copy in find(options.paths) if clusters is None or copy.origin.cluster_id in clusters]
    target = aim(sum(_PER_FILE + size for _, size in files_of(copies, options.snapshots)), options)
    files = ((copy.origin, file) for copy in copies for file in plans(copy, options.snapshots, target))
    return pack((piece for origin, file in files for piece in file_slices(origin, file, options, target)), target)


def aim(total: int, options: Options) -> int:
    """Return the target cost of a partition in bytes: ``total`` spread over the cores, within the limits."""
    most = options.slice_bytes
    return max(min(most, total // options.parallelism), min(_LEAST, most))


def pack(pieces: Iterable[Slice], target: int) -> list[tuple[Slice, ...]]:
    """Group consecutive slices into partitions that cost about ``target`` bytes each."""
    return list(_grouped(pieces, Slice.cost, target))


def _grouped(items: Iterable[_Item], cost_of: Callable[[_Item], int], target: int) -> Iterator[tuple[_Item, ...]]:
    """Group consecutive items into groups that cost about ``target`` each."""
    group: list[_Item] = []
    cost = 0
    for item in items:
        if group and cost + cost_of(item) > target + target // 4:
            yield tuple(group)
            group, cost = [], 0
        group.append(item)
        cost += cost_of(item)
    if group:
        yield tuple(group)


def file_slices(origin: CopyOrigin, file: FilePlan, options: Options, target: int) -> Iterator[Slice]:
    """Return the slices of one file, each of about ``target`` bytes; its findings are in the first one."""
    runs = [run for run in file.runs if _may_hold(options, file, run)]
    if options.view == FILES:
        yield Slice(origin, file)
        return
    if file.findings or not runs:
        yield Slice(origin, file._replace(runs=()))
    for part in parts(runs, target):
        yield Slice(origin, file._replace(runs=part, findings=()))


def parts(runs: Iterable[Run], target: int) -> Iterator[tuple[Run, ...]]:
    """Group consecutive runs into parts of about ``target`` bytes; around damage, runs are short."""
    return _grouped(runs, lambda run: run.end - run.start, target)


def _may_hold(options: Options, file: FilePlan, run: Run) -> bool:
    """Whether a run may have records of the requested offsets and times."""
    since, until = options.narrowing.since, options.narrowing.until
    if file.is_snapshot:
        return True  # offsets and times in a snapshot are not those of the log
    if since.time_ms is not None and run.last_ms < since.time_ms:
        return False
    return (since.offset is None or run.after > since.offset) and (until.offset is None or run.first <= until.offset)


def plans(copy: LogCopy, snapshots: str, piece_bytes: int) -> list[FilePlan]:
    """Plan the files of a directory, snapshots first; a file that keeps vanishing becomes a finding."""

    def plan(copies: Sequence[LogCopy]) -> tuple[list[FilePlan], bool]:
        (copy,) = copies
        files = [snapshot_of(file, piece_bytes) for file in copy.snapshots(snapshots)]
        if snapshots != "only" and copy.listing.segments:
            files += Boundaries(copy.listing, piece_bytes).files()
        return files, any(file.findings for file in files)

    try:
        return read_stable([copy], plan)
    except FileNotFoundError as error:
        finding = FileFinding(-1, UNREAD, VANISHES)
        return [FilePlan(str(error.filename), 0, False, (), (finding,))]


def snapshot_of(file: SnapshotFile, piece_bytes: int) -> FilePlan:
    """Plan a snapshot; if it cannot be read, that is a finding. Raises FileNotFoundError: the caller lists again."""
    try:
        return snapshot_plan(file, piece_bytes)
    except SourceError as error:
        return FilePlan(file.path, file.size, True, (), (FileFinding(-1, UNREAD, error.message),))
