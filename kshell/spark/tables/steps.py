"""The steps of a warehouse: which versions of its tables belong together, and how far each cluster is. Free of Spark.

A step of the pipeline commits many tables, one after the other. Two small Delta tables make one of it:

* ``_kshell/steps``: a row ``begin`` before the first table is committed, and a row ``done`` after the last, with the
  version of every table. A step without ``done`` was killed or is being committed; it does not count.
* ``_kshell/progress``: a row per cluster, from where the next step goes on. Its version is one of those.

Readers take the last ``done`` and open each table at the version that it names, so that they see whole steps. Both rows
are compare-and-swap: of two writers one succeeds, on a local disk and in a store alike.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib
import json
import os
import platform
import secrets
import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from kshell.errors import CommandError, UsageError
from kshell.sources import remote
from kshell.spark.tables.data_files import file_system
from kshell.spark.tables.delta import NO_TABLE, DeltaTable
from kshell.tables.arrow import batches
from kshell.tables.declaration import OTHER_FIELDS, Field

FOLDER = "_kshell"
"""Below the warehouse; Spark, DuckDB and others pass over names that begin so."""
BEGIN_PHASE, DONE_PHASE = "begin", "done"
OPTIMIZE, VACUUM = "optimize", "vacuum"
UPKEEP = (OPTIMIZE, VACUUM)
"""What makes new versions of tables without changing a row."""
_LEASE_MS = 300_000
"""How long a writer in a store that has begun to commit is taken for alive; on a local disk the kernel knows it."""
_MOST_ROWS = 2_000
"""Rows of ``steps`` that stay: older steps cannot be restored."""
_COUNTS = {OTHER_FIELDS: "int64"}
STEP_FIELDS = (
    Field("step", "int64", "its number: one more than any before"),
    Field("phase", "string", "begin (tables are being committed) or done (the step counts)"),
    Field("action", "string", "what made it: run, stream, optimize, vacuum, restore and the step"),
    Field("timeMs", "int64", "when, in milliseconds since 1970"),
    Field("writer", "string", "the host and process, and a token of its own"),
    Field("versions", _COUNTS, "of every table the version that counts; null at begin"),
    Field("rows", _COUNTS, "of every table the rows that the last step which changed it has written"),
)
_PROGRESS_FIELDS = (
    Field("clusterId", "string", "the cluster"),
    Field("state", "json", "how far its tables are; null where nothing of it could be read yet"),
    Field("unreadable", "json", "copies that could not be read when they were last looked at, by path, and why"),
)


class ClusterState(NamedTuple):
    """How far the tables of one cluster are."""

    reached: Mapping[str, Any]
    """A ``Checkpoint`` of kshell.spark.reconcile, as JSON has it."""
    held: int | None = None
    """The offset at which a metadata transaction began that is still open; its records come again in the next step."""
    settled_ms: int | None = None
    """The begin of a day: rows of gold that no record of that day or later can change are final; ``None``: none are."""


class WarehouseState(NamedTuple):
    """A step that counts. ``step`` 0: nothing was ever written."""

    step: int = 0
    clusters: Mapping[str, ClusterState] = {}
    failed: Mapping[str, Mapping[str, str]] = {}
    """Cluster -> path of a copy that could not be read when it was last looked at -> why."""
    versions: Mapping[str, int] = {}
    """Table -> the version that counts."""
    rows: Mapping[str, int] = {}
    """Table -> the rows that its last step wrote."""


Row = dict[str, Any]


class StepLog:
    """The steps below one place, a local path or a URI."""

    def __init__(self, place: str) -> None:
        self.place = place
        self._steps = DeltaTable(f"{place}/{FOLDER}/steps", "steps", "the steps of kshell-pipeline", STEP_FIELDS)
        self._progress = DeltaTable(
            f"{place}/{FOLDER}/progress", "progress", "how far each cluster is", _PROGRESS_FIELDS
        )
        self._writer = f"{platform.node()}:{os.getpid()}:{secrets.token_hex(6)}"
        self._rows: list[Row] = []

    def rows(self) -> list[Row]:
        """All rows of ``steps``, in their order, as of the last :meth:`load`."""
        return list(self._rows)

    def load(self, step: int | None = None) -> WarehouseState:
        """The last step that counts, or a certain one.

        Raises UsageError for a step that there is none of and for a place of an older kshell; DataError for what cannot
        be read.
        """
        self._steps.open()
        self._rows = [
            row | {name: None if row[name] is None else dict(row[name]) for name in ("versions", "rows")}
            for row in self._read(self._steps)
        ]
        completed = [row for row in self._rows if row["phase"] == DONE_PHASE and step in (None, row["step"])]
        if not completed and step is not None:
            numbers = [str(row["step"]) for row in self._rows if row["phase"] == DONE_PHASE]
            raise UsageError(
                f"{self.place}: there is no step {step}", hint=f"there are {', '.join(numbers[-20:]) or 'none'}"
            )
        if not completed:
            self._check_place()
            return WarehouseState()
        last = completed[-1]
        self._progress.open(last["versions"]["progress"])
        clusters: dict[str, ClusterState] = {}
        failed: dict[str, Mapping[str, str]] = {}
        for row in self._read(self._progress):
            if row["state"] is not None:
                clusters[row["clusterId"]] = ClusterState(**json.loads(row["state"]))
            if row["unreadable"] is not None:
                failed[row["clusterId"]] = json.loads(row["unreadable"])
        return WarehouseState(last["step"], clusters, failed, last["versions"], last["rows"] or {})

    def last_change(self, table: str) -> int | None:
        """The step that last changed rows of a table, among those that are known."""
        step, before = None, None
        for row in self._rows:
            if row["phase"] == DONE_PHASE and row["versions"].get(table) != before:
                before = row["versions"].get(table)
                step = step if row["action"] in UPKEEP else row["step"]
        return step

    @property
    def next_step(self) -> int:
        """The number of the next step: killed ones have had theirs."""
        return max((row["step"] for row in self._rows), default=0) + 1

    @property
    def interrupted(self) -> Row | None:
        """The row of a step that was begun after the last one that counts, if any."""
        return self._rows[-1] if self._rows and self._rows[-1]["phase"] == BEGIN_PHASE else None

    def check_alone(self, *, is_alone: bool) -> None:
        """Raises CommandError where another writer is committing. ``is_alone``: the caller knows that none lives."""
        row = self.interrupted
        if row is None or is_alone or row["writer"] == self._writer:
            return
        age = int(time.time() * 1000) - row["timeMs"]
        if age < _LEASE_MS:
            raise CommandError(
                f"{self.place}: another process is writing there: {row['writer']} began step {row['step']}"
                f" {max(age, 0) // 1000} s ago",
                hint=f"wait; if it was killed, try again after {_LEASE_MS // 60_000} minutes",
            )

    def begin(self, step: int, action: str) -> None:
        """From now on tables may have versions that do not count. Raises CommandError where somebody else has begun."""
        self._log(step, BEGIN_PHASE, action, None, None)

    def complete(self, step: int, action: str, state: WarehouseState) -> WarehouseState:
        """Makes the step count: from ``state``, whose versions are those of the tables. Gives it with its number."""
        progress = self._progress
        progress.adopt(state.versions.get("progress", NO_TABLE), step)
        named = sorted({*state.clusters, *state.failed})
        rows = [
            {
                "clusterId": name,
                "state": state.clusters[name]._asdict() if name in state.clusters else None,
                "unreadable": dict(state.failed[name]) if name in state.failed else None,
            }
            for name in named
        ]
        self._overwrite(progress, rows, step)
        versions = {**state.versions, "progress": progress.version}
        self._log(step, DONE_PHASE, action, versions, state.rows)
        return state._replace(step=step, versions=versions)

    def vacuum(self, hours: int, *, dry_run: bool) -> dict[str, tuple[int, int]]:
        """Removes old files of the two tables; gives (files, bytes) by table."""
        self._progress.open()
        return {table.name: table.vacuum(hours, dry_run=dry_run) for table in (self._steps, self._progress)}

    def _log(
        self, step: int, phase: str, action: str, versions: Mapping[str, int] | None, rows: Mapping[str, int] | None
    ) -> None:
        row = {
            "step": step,
            "phase": phase,
            "action": action,
            "timeMs": int(time.time() * 1000),
            "writer": self._writer,
            "versions": versions,
            "rows": rows,
        }
        log_rows = [*self._rows, row][-_MOST_ROWS:]
        self._overwrite(self._steps, log_rows, step)
        self._rows = log_rows

    def _overwrite(self, table: DeltaTable, rows: list[Row], step: int) -> None:
        arrow = importlib.import_module("pyarrow")
        table.drop(list(table.files.values()))
        table.add(table.writer.write(batches(arrow, table.fields, rows)))
        table.commit(step)

    def _read(self, table: DeltaTable) -> list[Row]:
        return [row for part in table.writer.read(table.files.values()) for row in part.to_pylist()]

    def _check_place(self) -> None:
        """Raises UsageError for tables of an older kshell, CommandError for a file."""
        system, root = file_system(self.place)
        try:
            here, state = system.get_file_info([root, f"{root}/{FOLDER}/state"])
        except OSError as error:
            raise CommandError(f"{self.place}: {remote.reason(error)}") from None
        if here.type.name == "File":
            raise CommandError(f"{self.place}: not a directory", hint="tables need a directory of their own")
        if state.type.name == "Directory":
            raise UsageError(
                f"{self.place}: tables of an older kshell, in a layout of its own",
                hint="make them again: `kshell-pipeline run` with a new --out; the old directory can go then",
            )


@contextlib.contextmanager
def writer_lock(place: str) -> Iterator[bool]:
    """As the only writer of this machine; gives whether that is known. In a store the commits themselves decide.

    The kernel frees the lock however the process ends. Raises CommandError where another process has it.
    """
    if remote.is_remote(place):
        yield False
        return
    path = os.path.join(place, FOLDER, "writer")
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except (NotADirectoryError, FileExistsError):
        raise CommandError(f"{place}: not a directory", hint="tables need a directory of their own") from None
    except OSError as error:
        raise CommandError(f"{path}: {remote.reason(error)}") from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            who = os.read(descriptor, 200).decode("utf-8", "replace").strip()
            raise CommandError(
                f"{place}: another process is writing there ({who})", hint="wait until it is done"
            ) from None
        except OSError as error:
            raise CommandError(f"{path}: cannot be locked: {remote.reason(error)}") from None
        with contextlib.suppress(OSError):  # who it is, for others to read: there may be no room
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"{platform.node()}, process {os.getpid()}".encode())
        yield True
    finally:
        os.close(descriptor)
