"""The log of steps: which versions of a warehouse's tables belong together, and each cluster's checkpoint. No Spark.

A step of the pipeline commits many Delta tables, one after the other. Two more, small ones make it one transaction:

* ``_kshell/steps`` gets a row ``begin`` before the first table is committed, and a row ``done``, with the version of
  every table, after the last. A step without ``done`` was killed or is still being committed; it does not count.
* ``_kshell/progress`` has a row per cluster, with the checkpoint for the next step; its version is in ``done``, too.

Readers take the last row ``done`` and open each table at the version in it, so they see whole steps only. Both rows are
written by compare-and-swap: of two writers one succeeds, on a local disk and in a store alike.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform
import secrets
import time
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from kshell.errors import CommandError, DataError, KshellError, UsageError
from kshell.sources import remote
from kshell.spark.schemas import Row
from kshell.spark.tables import log_files
from kshell.spark.tables.data_files import file_system
from kshell.spark.tables.delta import NO_TABLE, DeltaTable
from kshell.tables.declaration import OTHER_FIELDS, Field

FOLDER = "_kshell"
"""The directory of these two tables in a warehouse; Spark, DuckDB and others ignore names that begin with ``_``."""
BEGIN_PHASE, DONE_PHASE = "begin", "done"
OPTIMIZE, VACUUM = "optimize", "vacuum"
UPKEEP = (OPTIMIZE, VACUUM)
"""The actions that make new versions of tables without changing a row."""
_LEASE_MS = 300_000
"""How long after ``begin`` a writer in a store counts as alive, in ms; on a local disk a file lock shows it."""
_MOST_ROWS = 2_000
"""Rows that ``steps`` keeps at most: older steps cannot be restored."""
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
    """The checkpoint: a ``Checkpoint`` of kshell.spark.reconcile, as JSON values."""
    held: int | None = None
    """The offset at which a metadata transaction began that is still open; the next step reads its records again."""
    settled_ms: int | None = None
    """The start of a day, in ms since 1970: rows of gold that records from then on cannot change are final; ``None``:
    no row is final."""


class WarehouseState(NamedTuple):
    """The state of all tables after a completed step. ``step`` is its number; 0: nothing was ever written."""

    step: int = 0
    clusters: Mapping[str, ClusterState] = {}
    failed: Mapping[str, Mapping[str, str]] = {}
    """Cluster -> path of a copy that could not be read when it was last tried -> the reason."""
    versions: Mapping[str, int] = {}
    """Table -> the version of its Delta table that belongs to the step."""
    rows: Mapping[str, int] = {}
    """Table -> how many rows the last step that changed it has written."""


class StepLog:
    """The log of steps at ``place``. A writer calls ``load``, ``begin``, commits its tables, and calls ``complete``."""

    def __init__(self, place: str) -> None:
        self.place = place
        self._steps = DeltaTable(f"{place}/{FOLDER}/steps", "steps", "the steps of kshell-pipeline", STEP_FIELDS)
        self._progress = DeltaTable(
            f"{place}/{FOLDER}/progress", "progress", "how far each cluster is", _PROGRESS_FIELDS
        )
        self._writer = f"{platform.node()}:{os.getpid()}:{secrets.token_hex(6)}"
        self._rows: list[Row] = []
        self._pinned = NO_TABLE
        """The version of ``progress`` from which the next step goes on."""

    def rows(self) -> list[Row]:
        """All rows of ``steps``, in their order, as of the last :meth:`load`."""
        return list(self._rows)

    def load(self, step: int | None = None, *, checkpoints: bool = True) -> WarehouseState:
        """Return the state after the last completed step, or after a given one; ``clusters`` only with ``checkpoints``.

        Raises UsageError for a step that is not in the log and for tables of an older kshell, and DataError for a log
        that cannot be read.
        """
        self._steps.open()
        self._rows = [
            row | {name: None if row[name] is None else dict(row[name]) for name in ("versions", "rows")}
            for row in self._steps.rows()
        ]
        order = [(row["step"], row["phase"] == DONE_PHASE) for row in self._rows]
        if order != sorted(set(order)):  # an entry was lost that replaced rows by newer ones
            raise self._steps.damaged("rows of an earlier version are among the last ones")
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
        self._pinned = last["versions"]["progress"]
        clusters: dict[str, ClusterState] = {}
        failed: dict[str, Mapping[str, str]] = {}
        for row in self._checkpoints(last, is_last=step is None) if checkpoints else ():
            if row["state"] is not None:
                clusters[row["clusterId"]] = ClusterState(**json.loads(row["state"]))
            if row["unreadable"] is not None:
                failed[row["clusterId"]] = json.loads(row["unreadable"])
        return WarehouseState(last["step"], clusters, failed, last["versions"], last["rows"] or {})

    def _checkpoints(self, done: Row, *, is_last: bool) -> list[Row]:
        """Read the rows of ``progress`` after a step. Raises DataError; its hint names the step to restore, if any."""
        progress, version = self._progress, done["versions"]["progress"]
        try:
            files = progress.files_at(version) if is_last else progress.files_of(done["step"], version)
            return progress.rows(files)
        except DataError as error:
            before = [row for row in self._rows if row["phase"] == DONE_PHASE and row["step"] < done["step"]]
            if not before:
                raise
            earlier, version = before[-1]["step"], before[-1]["versions"]["progress"]
            try:
                progress.rows(progress.files_of(earlier, version))
                progress.take_over(version, dry_run=True)
            except KshellError:
                raise error from None
            hint = f"put it back, or go back to the step before it: `kshell-pipeline restore {earlier}`"
            raise DataError(error.message, hint=hint) from error

    def last_change(self, table: str) -> int | None:
        """Return the last step in the log that changed rows of a table; ``None`` if no step did."""
        step, before = None, None
        for row in self._rows:
            if row["phase"] == DONE_PHASE and row["versions"].get(table) != before:
                before = row["versions"].get(table)
                step = step if row["action"] in UPKEEP else row["step"]
        return step

    @property
    def next_step(self) -> int:
        """The number of the next step; the numbers of killed steps are not used again."""
        return max((row["step"] for row in self._rows), default=0) + 1

    @property
    def interrupted(self) -> Row | None:
        """The row ``begin`` of a step that was begun but not completed, if it is the last row."""
        return self._rows[-1] if self._rows and self._rows[-1]["phase"] == BEGIN_PHASE else None

    def tidy(self) -> None:
        """Remove what a power failure left of rows that were being written. Only for the writer, before it loads."""
        log_files.remove_empty_entries(self._steps.place, NO_TABLE)

    def check_alone(self, *, is_alone: bool) -> None:
        """Raise CommandError if another writer may be committing. ``is_alone``: a lock proves that there is none."""
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
        """Log that a step begins to commit tables. Raises CommandError if another writer has begun a step meanwhile.

        Raises DataError, before anything is committed, if ``progress`` is damaged after the state that was loaded last.
        """
        self._progress.take_over(self._pinned)
        self._log(step, BEGIN_PHASE, action, None, None)

    def complete(self, step: int, action: str, state: WarehouseState) -> WarehouseState:
        """Complete a step: store ``state``, which has the new versions of the tables, and return it with its number."""
        progress = self._progress
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
        self._pinned = progress.version
        versions = {**state.versions, "progress": progress.version}
        self._log(step, DONE_PHASE, action, versions, state.rows)
        return state._replace(step=step, versions=versions)

    def versions_of(self, hours: int) -> dict[str, set[int]]:
        """Return, by table, the versions of the steps that were the newest one at some time of the last ``hours``."""
        since = int(time.time() * 1000) - hours * 3_600_000
        done = [row for row in self._rows if row["phase"] == DONE_PHASE]
        first = next((at for at, row in enumerate(done) if row["timeMs"] >= since), len(done))
        versions: dict[str, set[int]] = {}
        for row in done[max(0, first - 1) :]:
            for name, version in row["versions"].items():
                versions.setdefault(name, set()).add(version)
        return versions

    def vacuum(
        self, hours: int, retained: Collection[int] = (), *, step: int, dry_run: bool
    ) -> dict[str, tuple[int, int]]:
        """Delete old files of the two tables; return (files, bytes) by table. ``retained`` is for ``progress``."""
        self._progress.open()
        before_begin = self._steps.version - (not dry_run)  # of which a dry run does not know that it will be replaced
        return {
            self._steps.name: self._steps.vacuum(hours, {before_begin}, step=step, dry_run=dry_run),
            self._progress.name: self._progress.vacuum(hours, retained, step=step, dry_run=dry_run),
        }

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
        table.drop(list(table.files.values()))
        table.add(table.writer.write_rows(rows))
        table.commit(step)

    def _check_place(self) -> None:
        """Raise UsageError if the place has tables of an older kshell, CommandError if it is a file, SourceError."""
        system, root = file_system(self.place)
        try:
            here, state = system.get_file_info([root, f"{root}/{FOLDER}/state"])
        except OSError as error:
            raise remote.failure(f"{self.place}/{FOLDER}", error) from None
        if here.type.name == "File":
            raise CommandError(f"{self.place}: not a directory", hint="tables need a directory of their own")
        if state.type.name == "Directory":
            raise UsageError(
                f"{self.place}: tables of an older kshell, in a layout of its own",
                hint="make them again: `kshell-pipeline run` with a new --out; the old directory can go then",
            )


@contextlib.contextmanager
def writer_lock(place: str) -> Iterator[bool]:
    """Hold the lock of a warehouse's only writer on this machine; the value says whether there is such a lock.

    In a store there is none, and compare-and-swap of commits decides. The kernel frees the lock however the process
    ends. Raises CommandError if another process has it.
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
        hint = "tables need a directory in which you may write"
        raise CommandError(f"{path}: {remote.reason(error)}", hint=hint) from None
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
        with contextlib.suppress(OSError):  # who the writer is, for error messages of others: the disk may be full
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"{platform.node()}, process {os.getpid()}".encode())
        yield True
    finally:
        os.close(descriptor)
