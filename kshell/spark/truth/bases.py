"""Where states begin: at offset 0, or at a snapshot from which the log goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from kshell.errors import CorruptDataError, MissingCodecError, SourceError
from kshell.protocol.batches import iter_records
from kshell.protocol.primitives import DecodeError
from kshell.sources.directory.files import SnapshotFile
from kshell.sources.directory.snapshot import SnapshotReader
from kshell.sources.points import Point
from kshell.spark.files.boundaries import snapshot_plan
from kshell.spark.files.plan import UNREAD, FilePlan, Finding, damaged
from kshell.spark.truth.merge import Stretch
from kshell.spark.truth.values import Era


class Base(NamedTuple):
    """A whole snapshot of a copy (its place among all). ``end``: the offset after the last one that it contains."""

    copy: int
    plan: FilePlan
    end: int
    epoch: int
    last_ms: int


class Candidate(NamedTuple):
    """A snapshot of a copy, not looked at yet; ``end`` is -1 where its name says none."""

    copy: int
    file: SnapshotFile
    end: int


class Snapshots:
    """The snapshots of all copies, looked at when they are asked for; ``findings`` of those that are not whole.

    ``until``: those that end later are left out. ``alone``: there is one file, without a directory.
    """

    def __init__(
        self, files: Iterable[tuple[int, SnapshotFile]], cut: int, until: int | None, *, alone: bool = False
    ) -> None:
        listed = [Candidate(copy, file, -1 if file.end_offset is None else file.end_offset) for copy, file in files]
        kept = [one for one in listed if until is None or one.end <= until]
        self.candidates = sorted(kept, key=lambda one: (one.end, -(one.file.epoch or 0), one.copy))
        self.findings: list[tuple[int, FilePlan]] = []
        self._cut = cut
        self._alone = alone
        self._known: dict[str, Base | None] = {}

    def first(self, low: int, high: int) -> Base | None:
        """The oldest whole one that ends between two offsets (both inclusive)."""
        found = (self._whole(one) for one in self.candidates if low <= one.end <= high)
        return next((base for base in found if base is not None), None)

    def newest(self, point: Point, fits: Callable[[int], bool]) -> Base | None:
        """The newest whole one at or before a point of which the end fits."""
        for one in reversed(self.candidates):
            if fits(one.end) and (point.offset is None or one.end <= point.offset):
                base = self._whole(one)
                if base is not None and (point.time_ms is None or 0 <= base.last_ms <= point.time_ms):
                    return base
        return None

    def plan_of(self, file: SnapshotFile) -> FilePlan | None:
        """The plan of one that was looked at, and is whole."""
        base = self._known.get(file.path)
        return None if base is None else base.plan

    def _whole(self, one: Candidate) -> Base | None:
        if one.file.path not in self._known:
            self._known[one.file.path] = self._look(one)
        return self._known[one.file.path]

    def _look(self, one: Candidate) -> Base | None:
        """Checks all of a snapshot. Raises FileNotFoundError (list again)."""
        reader = SnapshotReader(one.file)
        try:
            # What a cluster begins with counts where the log has it, as in the shell.
            plan = snapshot_plan(one.file, self._cut, control_only=one.file.is_bootstrap and not self._alone)
            epoch = 0
            for batch in reader:
                epoch = batch.epoch
                for _ in iter_records(batch):
                    pass
        except CorruptDataError as error:
            finding = damaged(error)
        except DecodeError as error:
            finding = Finding(-1, "file", f"the snapshot is malformed: {error.reason}")
        except (MissingCodecError, SourceError) as error:
            finding = Finding(-1, UNREAD, error.message)
        else:
            end = reader.records if one.end < 0 else one.end
            name = one.file.epoch
            return Base(one.copy, plan._replace(is_proven=True), end, epoch if name is None else name, reader.timestamp)
        self.findings.append((one.copy, FilePlan(one.file.path, one.file.size, True, (), (finding,))))
        return None


class Begun(NamedTuple):
    """Eras, and the snapshots that they begin with."""

    eras: tuple[Era, ...]
    bases: tuple[Base, ...]


def eras(whole: Sequence[Stretch], snapshots: Snapshots, *, low: int, goes_on: int | None, alone: bool) -> Begun:
    """The eras of a log that is whole in these stretches.

    ``low``: only snapshots that end there or later begin one. ``goes_on``: the offset from which on states go on from
    what is known already. ``alone``: the log is one file without a directory: its states begin with its first record.
    """
    made: list[tuple[Era, Base | None]] = []
    for index, (first, end) in enumerate(whole):
        if goes_on is not None and first <= goes_on <= end:
            if goes_on < end:
                made.append((Era(None, goes_on, end), None))
        elif low <= 0 and (first == 0 or (alone and index == 0)):
            base = snapshots.first(0, 0)
            made.append((Era(base.plan.path if base else None, first, end), base))
        else:
            base = snapshots.first(max(first, low), end)
            if base is not None:
                made.append((Era(base.plan.path, base.end, end), base))
    made += _without_log(whole, snapshots, low)
    made.sort(key=lambda one: (one[0].since, one[0].to))
    made = [one for at, one in enumerate(made) if not (made[at + 1 :] and _same(one, made[at + 1]))]
    return Begun(tuple(era for era, _ in made), tuple(base for _, base in made if base is not None))


def _without_log(whole: Sequence[Stretch], snapshots: Snapshots, low: int) -> list[tuple[Era, Base | None]]:
    """Of each snapshot that no log reaches, and none goes on from, the one state."""
    found: list[tuple[Era, Base | None]] = []
    ends = dict.fromkeys(one.end for one in snapshots.candidates)
    for end in ends:
        if end < 0 or (end >= low and not any(first <= end <= after for first, after in whole)):
            base = snapshots.first(end, end)
            if base is not None:
                found.append((Era(base.plan.path, base.end, base.end), base))
    if len(found) > 1 or whole:
        found = [one for one in found if one[0].to > 0]  # the one at offset 0 is what a cluster was begun with
    return found


def _same(one: tuple[Era, Base | None], later: tuple[Era, Base | None]) -> bool:
    """Whether the later one begins with the same snapshot, and goes on."""
    return one[1] is not None and one[1] == later[1] and one[0].since == one[0].to == later[0].since
