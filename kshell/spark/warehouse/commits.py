"""What counts in a warehouse: the commits of its steps, and that only one process writes at a time. Free of Spark.

A step is one file, written last and as a whole: ``_kshell/state/00000012.json``. It names the batches (directories, or
rows by number) that make up every table. What it does not name does not count, whoever wrote it: a step that was
killed leaves such batches behind, and the next writer removes them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

from kshell.errors import CommandError, DataError, UsageError
from kshell.spark.warehouse.storage import Storage, location, storage_of
from kshell.spark.warehouse.writer_lock import WriterLock

FOLDER = "_kshell"
"""Below the warehouse; Spark, DuckDB and others pass over names that begin so."""
ALL, CLOSED, CURRENT = "all", "closed", "current"
"""The parts of a table: versions that have ended, those that have not; of other tables there is one part."""
EVERY = ""
"""In place of a cluster: batches of tables to which steps append hold rows of several."""
_STATE, _UNDERWAY = "state", "underway"
_LAYOUT = 5
_KEPT = 2
"""Commits that stay, of which the last one counts."""

Batches = dict[str, list[int]]
"""Cluster -> the steps whose rows of it count."""
Parts = dict[str, dict[str, Batches]]
"""Table -> part -> batches."""


class ClusterState(NamedTuple):
    """How far the tables of one cluster are."""

    reached: Mapping[str, Any]
    """As ``truth`` has it (``Reached``), by name."""
    held: int | None = None
    """The offset at which a metadata transaction began that is still open; its records come again in the next step."""
    held_step: int = 0
    """The step that wrote the first of those records."""
    settled_ms: int | None = None
    """The begin of a day: rows of gold that no record of that day or later can change are final; ``None``: none are."""


class State(NamedTuple):
    """One commit. ``step`` 0: nothing was ever written."""

    step: int = 0
    format: str = ""
    clusters: Mapping[str, ClusterState] = {}
    parts: Mapping[str, Mapping[str, Mapping[str, list[int]]]] = {}
    rows: Mapping[str, int] = {}
    """Table -> the rows that its last step wrote."""
    failed: Mapping[str, Mapping[str, str]] = {}
    """Cluster -> path of a copy that could not be read when it was last looked at -> why."""

    def text(self) -> str:
        """As JSON, whose order is always the same."""
        made: dict[str, Any] = {"layout": _LAYOUT, **self._asdict()}
        made["clusters"] = {name: one._asdict() for name, one in self.clusters.items()}
        made["parts"] = _each(_ranges, self.parts)
        return json.dumps(made, sort_keys=True, separators=(",", ":"))


def parsed(path: str, text: bytes) -> State:
    """The commit in a file. Raises DataError for what is no commit, UsageError for one of a newer kshell."""
    try:
        made = json.loads(text)
        layout = made.pop("layout")
        if layout == _LAYOUT:
            clusters = {name: ClusterState(**one) for name, one in made.pop("clusters").items()}
            return State(**made)._replace(clusters=clusters, parts=_each(_steps, made["parts"]))
    except (ValueError, TypeError, KeyError, AttributeError):
        raise DataError(f"{path}: not the state of a warehouse", hint="a new --out begins anew") from None
    raise UsageError(f"{path}: of another kshell (layout {layout}, not {_LAYOUT})", hint="use that one, or a new --out")


class Commits:
    """The commits below one place. Raises UsageError for a place that is not understood."""

    def __init__(self, out: str) -> None:
        self.place = location(out)
        self.storage: Storage = storage_of(out)
        self._folder = self.storage.join(self.place, FOLDER)
        self._states = self.storage.join(self._folder, _STATE)
        self._mark = self.storage.join(self._folder, _UNDERWAY)
        self.lock = WriterLock(self.storage, self._folder)

    def latest(self) -> State:
        """The commit that counts. Raises DataError, CommandError."""
        for _ in range(3):  # a writer may remove the one that was the newest when it was listed
            names = [name for name in self.storage.names(self._states) if name.endswith(".json")]
            if not names:
                if self.storage.exists(self.place) and not self.storage.names(self.place):  # so it is a file
                    raise CommandError(f"{self.place}: not a directory", hint="tables need a directory of their own")
                return State()
            path = self.storage.join(self._states, names[-1])
            text = self.storage.read(path)
            if text is not None:
                return parsed(path, text)
        raise CommandError(f"{self.place}: its state changes all the time", hint="try again")

    def is_unclean(self) -> bool:
        """Whether a writer did not come to its end: what does not count may lie around."""
        return self.storage.exists(self._mark)

    def begin(self) -> None:
        """From now on there may be things that do not count. Raises LeaseLostError."""
        self.lock.check()
        self.storage.write(self._mark, b"")

    def commit(self, state: State) -> None:
        """Makes a step count. Raises LeaseLostError, CommandError where somebody else has committed that step."""
        self.lock.check()
        try:
            path = self.storage.join(self._states, f"{state.step:08}.json")
            self.storage.write(path, state.text().encode(), exclusive=True)
        except FileExistsError:
            raise CommandError(
                f"{self.place}: another process has committed step {state.step} meanwhile",
                hint="nothing of this one counts; run it again",
            ) from None
        self.lock.committed()

    def end(self) -> None:
        """What does not count is gone, and so may be old commits."""
        for name in self.storage.names(self._states)[:-_KEPT]:
            self.storage.remove(self.storage.join(self._states, name))
        self.storage.remove(self._mark)


def copied(parts: Mapping[str, Mapping[str, Mapping[str, Iterable[int]]]]) -> Parts:
    """Parts that may be changed."""
    return _each(list, parts)


def put_instead(held: Batches, clusters: Collection[str], written: Collection[str], step: int) -> None:
    """Those clusters have the rows of a step instead of what they had; ``written``: those of them that have any."""
    assert set(written) <= set(clusters), "a step writes rows of the clusters that it is about"
    for cluster in clusters:
        held.pop(cluster, None)
    held.update({cluster: [step] for cluster in written})


def difference(
    before: Mapping[str, Mapping[str, list[int]]], after: Mapping[str, Mapping[str, list[int]]], *, by_cluster: bool
) -> dict[str, Batches]:
    """The batches that counted and do not any more; where clusters lie together, those that count for none of them."""
    gone: dict[str, Batches] = {}
    for part, batches in before.items():
        now = after.get(part, {})
        everywhere = set() if by_cluster else {step for steps in now.values() for step in steps}
        gone[part] = {
            cluster: [step for step in steps if step not in (set(now.get(cluster, ())) | everywhere)]
            for cluster, steps in batches.items()
        }
    return gone


def _each(made: Callable[[Any], list[Any]], parts: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> dict[str, Any]:
    """Parts with something else in the place of each list of steps."""
    return {
        table: {part: {cluster: made(steps) for cluster, steps in batches.items()} for part, batches in inner.items()}
        for table, inner in parts.items()
    }


def _ranges(steps: Iterable[int]) -> list[list[int]]:
    """(first, last) of steps one after another: a stream adds one to each cluster for every micro-batch."""
    made: list[list[int]] = []
    for step in steps:
        if made and step == made[-1][1] + 1:
            made[-1][1] = step
        else:
            made.append([step, step])
    return made


def _steps(ranges: Iterable[int | list[int]]) -> list[int]:
    made: list[int] = []
    for one in ranges:
        made += [one] if isinstance(one, int) else range(one[0], one[1] + 1)
    return made
