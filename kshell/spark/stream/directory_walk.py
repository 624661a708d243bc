"""One directory of a stream: find how far it can be read now, and plan what lies between two positions. Free of Spark.

:func:`find_readable_end` gives the end position of the next micro-batch, :func:`plan_between` the file plans from one
position to another. The rules are those of a batch read (:mod:`kshell.spark.files.plan`), except that reading begins in
the middle. The result of :func:`plan_between` depends only on the files up to the second position, so that a repeated
micro-batch has the same rows. A torn tail is left for a later micro-batch; damage is reported once.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from operator import itemgetter
from typing import NamedTuple

from kshell.errors import SourceError
from kshell.sources.directory.files import VANISHES, Listing, Segment, SnapshotFile
from kshell.sources.directory.ranges import open_file
from kshell.sources.directory.source import read_unchanged
from kshell.spark.files.pack import snapshot_of
from kshell.spark.files.plan import ANY_TIME, Boundaries, FileFinding, FilePlan, Headers, Runs
from kshell.spark.options import UNLIMITED
from kshell.spark.stream.positions import StreamPosition, base_of, name_of, upto
from kshell.spark.stream.resume import Start, resume

_PATIENCE = 60.0
"""Seconds since its last change after which an incomplete snapshot counts as damaged, no longer as being copied."""


class _Enough(Exception):
    """Ends the walk: the limit of bytes for this micro-batch is reached."""


class _Reaching(Runs):
    """Notes only the last batch, and raises :class:`_Enough` once the batches exceed ``remaining`` bytes."""

    def __init__(self, delivered_end: int, remaining: int) -> None:
        super().__init__(1, delivered_end)
        self.remaining = remaining
        self.last: tuple[int, int, int] | None = None
        """The last batch: its first byte, the byte after it, the offset after it."""

    def add(self, start: int, end: int, first: int, after: int, last_ms: int = ANY_TIME) -> None:
        self.last = start, end, after
        if after > self.delivered_end:
            self.delivered_end = after
            self.remaining -= end - start
            if self.remaining <= 0:
                raise _Enough


class ResumedBoundaries(Boundaries):
    """Plans the files of a log from a start position on, until the batch that reaches ``limit`` bytes."""

    def __init__(self, listing: Listing, start: Start, piece_bytes: int, limit: int | None = None) -> None:
        super().__init__(listing._replace(segments=start.segments), piece_bytes)
        self._begin, self._next, self._delivered_end = start.begin, start.offset, start.delivered_end
        self._is_damaged = start.is_damaged
        self._limit = limit
        self.reaching: _Reaching | None = None
        if start.is_proven:
            self._epochs.prove_first()
        if start.at >= 0:
            self._prime(start.segments[0], start.at, start.begin)

    def _prime(self, segment: Segment, at: int, end: int) -> None:
        """Read the batch before the start, so that the epoch of the next batch is checked against its epoch."""
        with closing(open_file(segment.path)) as file:
            headers = Headers(file, segment)
            batch = headers.header(at)
            self._epochs.fault(headers.batch(at, end) or batch if batch.is_control else batch)

    def _add(self, segment: Segment, runs: Runs, *, is_last: bool) -> None:
        self.path = segment.path
        super()._add(segment, runs, is_last=is_last)

    def _by_headers(self, segment: Segment, runs: Runs) -> int | None:
        if not self._is_damaged:
            return super()._by_headers(segment, runs)
        self._is_damaged = False
        begin, self._begin = self._begin, 0
        return begin

    def _runs(self) -> Runs:
        if self._limit is None:
            return super()._runs()
        remaining = self._limit if self.reaching is None else self.reaching.remaining
        self.reaching = _Reaching(self._delivered_end, remaining)
        return self.reaching


class ReadableEnd(NamedTuple):
    """The position up to which a directory can be read now, and the bytes of log and snapshots up to there."""

    place: StreamPosition
    used: int


def find_readable_end(
    list_now: Callable[[], Listing], place: StreamPosition, snapshots: str, limit: int = UNLIMITED
) -> ReadableEnd:
    """Find how far a directory can be read after ``place``: at most about ``limit`` bytes. Raises SourceError.

    Apparent damage is believed only if the directory did not change meanwhile.
    """
    read = partial(_find_readable_end, place=place, snapshots=snapshots, limit=limit)
    try:
        return read_unchanged(list_now, read, itemgetter(1))[0]
    except FileNotFoundError as error:
        raise SourceError(f"{error.filename}: {VANISHES}") from None


def _find_readable_end(listing: Listing, place: StreamPosition, snapshots: str, limit: int) -> tuple[ReadableEnd, bool]:
    """Find the end in one listing; the flag says whether anything looks like damage or truncation."""
    last = listing.segments[-1] if listing.segments and snapshots != "only" else None
    is_idle = last is None or (base_of(last) == place.segment and last.size == place.size and not place.is_new)
    start = Start(()) if is_idle else resume(listing, place)
    name, used = _newest(listing, place, start, snapshots)
    place = place._replace(snapshot=name)
    if is_idle or (used >= limit and used):
        return ReadableEnd(place, used), False
    walk, looks_damaged = ResumedBoundaries(listing, start, 1, limit - used), start.finding is not None
    if start.finding is not None:
        place = _behind(start.segments[0], StreamPosition(snapshot=name), start.at, start.begin, start.delivered_end)
    try:
        for segment, plan in zip(start.segments, walk.files(), strict=True):
            place = _after(segment, plan, place, walk.reaching)
            looks_damaged = looks_damaged or any(finding.kind != "torn" for finding in plan.findings)
    except _Enough:
        segment = next(candidate for candidate in start.segments if candidate.path == walk.path)
        place = _after(segment, None, place, walk.reaching)
    return ReadableEnd(place, limit - (walk.reaching.remaining if walk.reaching else limit)), looks_damaged


def _after(
    segment: Segment, plan: FilePlan | None, place: StreamPosition, reaching: _Reaching | None
) -> StreamPosition:
    """Return the position after walking a segment; ``plan`` is ``None`` if the walk stopped at the limit."""
    base = base_of(segment)
    if place.segment != base or place.is_new:
        place = place._replace(segment=base, at=-1, position=0, size=0, seen=0)
    if reaching is not None and reaching.last is not None:
        place = _behind(segment, place, *reaching.last)
    damage = [finding.position for finding in plan.findings if finding.kind != "torn"] if plan else []
    reported_end = max([place.seen, place.position, *(at + 1 for at in damage)])
    return place._replace(size=segment.size if reported_end > place.position else place.position, seen=reported_end)


def _behind(segment: Segment, place: StreamPosition, at: int, position: int, offset: int) -> StreamPosition:
    """Return the position after the batch that begins at byte ``at``; -1: before the first batch of the segment."""
    place = place._replace(segment=base_of(segment), at=at, position=position, offset=offset)
    if at < 0:
        return place
    with closing(open_file(segment.path)) as file:
        header = Headers(file, segment).header(at)
    return place._replace(epoch=header.epoch, crc=header.crc)


def _newest(listing: Listing, place: StreamPosition, start: Start, snapshots: str) -> tuple[str, int]:
    """Return the newest snapshot that this micro-batch delivers, or the earlier one, and the bytes of the new ones."""
    waiting = [file for file in listing.snapshots if name_of(file) > place.snapshot]
    if snapshots == "none":
        waiting = []
    elif snapshots == "auto" and start.gap is not None:
        waiting = [] if place.snapshot >= f"{start.gap[1]:020}" else _instead(waiting, start.gap[1])
    elif snapshots == "auto":
        waiting = [] if listing.segments else waiting[-1:]
    name, used = place.snapshot, 0
    for file in waiting:
        if not _is_ready(file):
            break
        name, used = name_of(file), used + file.size
    return name, used


def _instead(snapshots: list[SnapshotFile], offset: int) -> list[SnapshotFile]:
    """Return the snapshot in place of missed records: the oldest that ends at ``offset`` or later, else the newest."""
    joining = [file for file in snapshots if (file.end_offset or 0) >= offset]
    return joining[:1] or snapshots[-1:]


def _is_ready(file: SnapshotFile) -> bool:
    """Whether a snapshot can be delivered now. Kafka renames a complete one; a tool that copies it may still write."""
    return not _snapshot(file, UNLIMITED).findings or time.time() - file.changed / 1e9 > _PATIENCE


def _snapshot(file: SnapshotFile, piece_bytes: int) -> FilePlan:
    """Plan a snapshot; one that was deleted becomes a finding."""
    try:
        return snapshot_of(file, piece_bytes)
    except FileNotFoundError:
        return FilePlan(
            file.path, file.size, True, (), (FileFinding(-1, "file", "the snapshot was deleted meanwhile"),)
        )


# --- what is between two places --------------------------------------------------------------------------------------


def plan_between(
    list_now: Callable[[], Listing], before: StreamPosition, after: StreamPosition, snapshots: str, piece_bytes: int
) -> list[FilePlan]:
    """Plan what lies between two positions, of which :func:`find_readable_end` gave the second. Raises SourceError."""

    def plan(listing: Listing) -> list[FilePlan]:
        return [
            *_snapshots(listing, before, after, snapshots, piece_bytes),
            *_log(listing, before, after, snapshots, piece_bytes),
        ]

    try:
        return read_unchanged(list_now, plan)
    except FileNotFoundError as error:
        raise SourceError(f"{error.filename}: {VANISHES}") from None


def _snapshots(
    listing: Listing, before: StreamPosition, after: StreamPosition, snapshots: str, piece_bytes: int
) -> Iterator[FilePlan]:
    if after.snapshot == before.snapshot:
        return
    wanted = [file for file in listing.snapshots if before.snapshot < name_of(file) <= after.snapshot]
    if snapshots == "auto":
        wanted = wanted[-1:]
    if not wanted or name_of(wanted[-1]) != after.snapshot:
        wanted = wanted if snapshots != "auto" else []
        path = os.path.join(listing.directory or "", after.snapshot)
        yield FilePlan(path, 0, True, (), (FileFinding(-1, "file", "the snapshot was deleted before it was read"),))
    yield from (_snapshot(file, piece_bytes) for file in wanted)


def _log(
    listing: Listing, before: StreamPosition, after: StreamPosition, snapshots: str, piece_bytes: int
) -> list[FilePlan]:
    if after._replace(snapshot="") == before._replace(snapshot=""):
        return []
    listing = listing._replace(segments=upto(listing.segments, after.segment, after.size))
    start = resume(listing, before)
    plans = []
    for index, plan in enumerate(ResumedBoundaries(listing, start, piece_bytes).files()):
        base = base_of(start.segments[index])
        was_there = index == 0 and base == before.segment and start.finding is None and not before.is_new
        plans.append(plan._replace(findings=tuple(_new(plan, before.seen if was_there else -1, base, after))))
    if start.finding is not None:
        plans[0] = plans[0]._replace(findings=(start.finding, *plans[0].findings))
    missing = _missing(listing, after, max([start.delivered_end, *(run.after for plan in plans for run in plan.runs)]))
    if missing is not None:
        plans.append(missing)
        if snapshots in ("auto", "all"):
            plans += [_snapshot(file, piece_bytes) for file in _instead(list(listing.snapshots), after.offset)[:1]]
    return plans


def _new(plan: FilePlan, reported_end: int, base: int, after: StreamPosition) -> Iterator[FileFinding]:
    """Return the findings of a segment that this micro-batch reports: none from before its start or after its end."""
    for finding in plan.findings:
        is_later = base == after.segment and finding.position >= after.seen
        if finding.kind != "torn" and not is_later and finding.position >= reported_end:
            yield finding


def _missing(listing: Listing, after: StreamPosition, delivered_end: int) -> FilePlan | None:
    """Return a finding for records that belong to a micro-batch, by its end position, but were deleted meanwhile."""
    last = listing.segments[-1] if listing.segments else None
    if after.at < 0 or (base_of(last) == after.segment and last is not None and last.size >= after.position):
        return None
    path = os.path.join(listing.directory or "", f"{max(after.segment, 0):020}.log")
    deleted = f"offsets {delivered_end} to {after.offset - 1} were" if delivered_end < after.offset else "the end was"
    return FilePlan(path, 0, False, (), (FileFinding(-1, "gap", f"{deleted} deleted before being read"),))
