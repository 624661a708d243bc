"""One Delta table: which files a version has, and commits that succeed only on top of exactly that version.

``deltalake`` (delta-rs) reads and writes the transaction log; the files' contents are the part of :mod:`.data_files`.
Use: :meth:`DeltaTable.open` a version, ``add`` and ``drop`` files, then ``commit`` them as the next version. Source:
the Delta transaction protocol (PROTOCOL.md of delta-io/delta): add and remove actions, optimistic concurrency.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import re
import time
import urllib.parse
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any, NamedTuple

from kshell.errors import CommandError, DataError, KshellError, UsageError
from kshell.extras import require
from kshell.sources import remote
from kshell.spark.schemas import Row, schema_json, spark_columns, sql_type
from kshell.spark.tables import log_files
from kshell.spark.tables.data_files import OTHER_COLUMNS, DataFile, DataFileWriter, file_system
from kshell.spark.tables.expectations import Expectations
from kshell.tables.declaration import Field

STEP = "kshell.step"
"""The key, in the metadata of a commit, of the pipeline step that made the commit."""
SAME_ROWS = "kshell.sameRowsAs"
"""The key, in the metadata of a commit, of an earlier version whose rows the commit has restored or put together."""
NO_TABLE = -1
"""The version number before a table's first version: the table does not exist."""
RETAINED_HOURS = 48
"""Hours that files stay after a version has dropped them: for readers, for ``history`` and for ``restore``."""
LOG_HOURS = 168
"""Hours that the log of a table goes back; an earlier version cannot be read, even if its files are there."""
_PROPERTIES = {
    "delta.checkpointInterval": "20",
    "delta.deletedFileRetentionDuration": f"interval {RETAINED_HOURS} hours",
    "delta.logRetentionDuration": f"interval {LOG_HOURS} hours",
}
_REQUESTS = {"timeout": "30s", "retry_timeout": "60s", "max_retries": "5"}
"""Limits for a store that does not answer: by default delta-rs would try for three minutes."""
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_RUST_CALLS = re.compile(r"\s+0: <unknown>.*", re.DOTALL)
_STORES = {"s3a": "s3", "s3n": "s3", "gcs": "gs"}
"""Schemes that delta-rs knows by another name."""


class Commit(NamedTuple):
    """A version of a table, as the Delta log describes it. ``details`` is the whole entry of its history."""

    version: int
    time_ms: int
    operation: str
    step: int | None
    """The step of the pipeline that made the version; ``None``: another program made it."""
    details: Mapping[str, Any]


class DeltaTable:
    """A Delta table with one version open. ``files``: the files, by path, that the next commit makes the new version.

    Args:
        place: the table's directory, a local path or a URI; it need not exist yet.
        name, summary: name and description in the table's metadata.
        fields: the declared columns.
        partition_by: the boolean column that the table is partitioned by, if any.
        expect: the expectations that new rows are checked against.
    """

    def __init__(
        self,
        place: str,
        name: str,
        summary: str,
        fields: Sequence[Field],
        partition_by: str | None = None,
        expect: Expectations = (),
    ) -> None:
        self.place, self.name, self.summary, self.fields = place, name, summary, tuple(fields)
        self.partition_by, self.expect = partition_by, expect
        self.version = NO_TABLE
        self.files: dict[str, DataFile] = {}
        self.appended: set[str] = set()
        """Paths of files that were added to the open version and contain only new rows."""
        self._base: dict[str, DataFile] = {}
        self._written: set[str] = set()
        self._added_columns: list[Field] = []
        self._delta: Any = None
        self._uri = _uri(place)

    @property
    def writer(self) -> DataFileWriter:
        """A writer of data files for this table, here or in tasks."""
        return DataFileWriter(self.place, self.fields, self.partition_by, self.expect)

    @property
    def has_changed(self) -> bool:
        """Whether there is anything to commit."""
        return self.files.keys() != self._base.keys()

    def open(self, version: int | None = None) -> None:
        """Open a version; ``None``: the newest one; ``NO_TABLE``: none, as if the table did not exist.

        Raises DataError if the version is missing or the log cannot be read, and UsageError if the table has other
        columns than the declared ones.
        """
        self._delta = None if version == NO_TABLE else self._load(version)
        if version is not None and version != NO_TABLE:
            log_files.check_entries(self.place, version)
        self.version = NO_TABLE if self._delta is None else self._delta.version()
        self._base = {} if self._delta is None else {file.path: file for file in self._listed()}
        self._added_columns = [] if self._delta is None else self._columns_to_add()
        self.reset()

    def reset(self) -> None:
        """Forget all changes since the open version that were not committed."""
        self.files, self.appended, self._written = dict(self._base), set(), set()

    def written_files(self) -> list[DataFile]:
        """Return the files that were added but not committed; nobody else uses them, so they may be deleted."""
        return [file for path, file in self.files.items() if path in self._written]

    def rows(self, files: Mapping[str, DataFile] | None = None) -> list[Row]:
        """Return the rows of ``files`` or of others that a version has, for small tables. Raises DataError."""
        rows: list[Row] = self.writer.rows_of((self.files if files is None else files).values()).to_pylist()
        return rows

    def add(self, files: Iterable[DataFile], *, appended: bool = False) -> None:
        """Add files to the next version. ``appended``: their rows are new, not rewritten from other files."""
        for file in files:
            self.files[file.path] = file
            self._written.add(file.path)
            if appended:
                self.appended.add(file.path)

    def drop(self, files: Iterable[DataFile]) -> None:
        """Leave files out of the next version."""
        for file in files:
            del self.files[file.path]
            self.appended.discard(file.path)

    def files_at(self, version: int) -> dict[str, DataFile]:
        """Return the files of another version. Raises DataError if the log no longer has that version."""
        earlier = DeltaTable(self.place, self.name, self.summary, self.fields, self.partition_by)
        earlier.open(version)
        return earlier.files

    def files_of(self, step: int, version: int) -> dict[str, DataFile]:
        """As :meth:`files_at`, for a version that was the newest one at the end of ``step``.

        Raises DataError if a later step has made it: after entries of the log were lost, their numbers came again.
        """
        made_by = next((commit.step for commit in self.commits() if commit.version == version), None)
        if made_by is not None and made_by > step:
            raise DataError(f"{self.place}: its version {version} was lost, and step {made_by} made another one of it")
        return self.files_at(version)

    def commit(self, step: int, *, same_rows_as: int | None = None) -> int:
        """Commit ``files`` as the next version, in one transaction; return its number.

        ``same_rows_as`` notes the version, the open one or an earlier one, whose rows this commit has. Raises
        CommandError if somebody else has committed since the version was opened; the table is then unchanged.
        """
        lake, transaction = _libraries()
        now, changes_rows = int(time.time() * 1000), same_rows_as != self.version
        added = [
            transaction.AddAction(file.path, file.size, self._values(file), now, changes_rows, file.statistics())
            for file in self._added()
        ]
        removed = [
            transaction.RemoveAction(file.path, changes_rows, now, file.size, self._values(file))
            for path, file in self._base.items()
            if path not in self.files
        ]
        metadata = {STEP: str(step)} | ({} if same_rows_as is None else {SAME_ROWS: str(same_rows_as)})
        properties = lake.CommitProperties(custom_metadata=metadata, max_commit_retries=0)
        columns = [self.partition_by] if self.partition_by else []
        declared = lake.Schema.from_json(schema_json(self.fields))
        try:
            if self._delta is None:
                assert not removed
                if not remote.is_remote(self.place):
                    os.makedirs(self.place, exist_ok=True)
                transaction.create_table_with_add_actions(
                    self._uri,
                    declared,
                    added,
                    mode="error",
                    partition_by=columns,
                    name=self.name,
                    description=self.summary,
                    configuration=_PROPERTIES,
                    storage_options=storage_options(self.place),
                    commit_properties=properties,
                )
                self._delta = self._load(None)
            else:
                if self._added_columns:
                    more = lake.Schema.from_json(schema_json(self._added_columns))
                    self._delta.alter.add_columns(more.fields, commit_properties=properties)
                    self.version, self._added_columns = self._delta.version(), []
                self._delta.create_write_transaction(
                    [*added, *removed], "append", declared, partition_by=columns, commit_properties=properties
                )
                self._delta.update_incremental()
        except (lake.exceptions.DeltaError, OSError) as error:
            # The error may have come after the commit: a checkpoint that was not written, a response that was lost.
            if not self._has_committed():
                raise self._commit_failure(error) from error
        expected = self.version + 1
        if self._delta is None or self._delta.version() != expected:  # another writer committed right after this one
            self._delta = self._load(expected)
        self.version, self._base, self.appended, self._written = expected, dict(self.files), set(), set()
        return expected

    def _added(self) -> list[DataFile]:
        """Return the files of the next version that the open version does not have."""
        return [file for path, file in self.files.items() if path not in self._base]

    def _has_committed(self) -> bool:
        """Whether the version after the open one exists and has all files that were to be added."""
        added = {file.path for file in self._added()}
        try:
            return bool(added) and self.files_at(self.version + 1).keys() >= added
        except KshellError:
            return False

    def commits(self) -> list[Commit]:
        """Return the versions that the log describes, the newest first. Raises DataError."""
        while (newest := self._load(None)) is not None:
            try:
                entries = newest.history()
            except Exception as error:
                raise self._unreadable(error) from error
            # delta-rs numbers entries back from the open version, which is wrong if others committed meanwhile.
            if self._load(None).version() == newest.version():
                return [_commit(entry) for entry in entries]
        return []

    def vacuum(
        self, hours: int, retained: Collection[int] = (), *, step: int = 0, dry_run: bool = False
    ) -> tuple[int, int]:
        """Delete files that neither the open version nor one of the last ``hours`` has; return (number, bytes).

        Of more than :data:`RETAINED_HOURS` the table's log does not know when files were dropped: ``retained`` are the
        versions whose files must stay, as far as the log goes back; each of them is read.
        """
        if self._delta is None:  # a dry run looks at tables that may be missing
            return 0, 0
        lake, _ = _libraries()
        oldest = log_files.oldest_version(self.place) if retained else 0
        versions = sorted({self.version, *(version for version in retained if version >= oldest)})

        def run(*, dry_run: bool) -> list[str]:
            paths: list[str] = self._delta.vacuum(
                hours,
                dry_run=dry_run,
                enforce_retention_duration=False,
                commit_properties=lake.CommitProperties(custom_metadata={STEP: str(step)}),
                full=True,
                keep_versions=versions,
            )
            return [*dict.fromkeys(paths)]  # delta-rs lists a file once for each version that has dropped it

        try:
            removed = run(dry_run=True)
            size = self._bytes(removed)
            if removed and not dry_run:
                run(dry_run=False)
        except (lake.exceptions.DeltaError, OSError) as error:
            raise self._commit_failure(error) from error
        if not dry_run:
            self.open()
        return len(removed), size

    def _bytes(self, paths: Sequence[str]) -> int:
        system, root = file_system(self.place)
        infos = system.get_file_info([f"{root}/{urllib.parse.unquote(path)}" for path in paths]) if paths else []
        return sum(info.size or 0 for info in infos)

    def follow(self, pinned: int) -> None:
        """Open, for reading, the newest version if it has the same rows as version ``pinned``, else ``pinned`` itself.

        The files of ``pinned`` may be deleted already if another program has compacted and vacuumed the table.
        """
        self._open_after(pinned)
        if self.version != pinned and (
            pinned == NO_TABLE or not self._keep_rows_of(pinned, self._commits_after(pinned))
        ):
            self.open(pinned)

    def adopt(self, pinned: int, last_step: int, step: int) -> None:
        """Open the newest version for writing, and undo what a killed step has committed after version ``pinned``.

        What any program did without changing a row is kept. ``last_step`` was completed last; ``step`` is the
        writer's, which undoes. Raises CommandError if another program has written rows, and DataError if files of
        ``pinned`` are missing.
        """
        log_files.remove_empty_entries(self.place, pinned)
        self._open_after(pinned)
        if self.version == pinned:
            return
        later = self._commits_after(pinned)
        if pinned != NO_TABLE and self._keep_rows_of(pinned, later):
            return
        for commit in later:
            if commit.step is None and (pinned == NO_TABLE or log_files.changes_rows(self.place, commit.version)):
                undo = f"`kshell-pipeline restore {last_step}` drops those rows, which belong in other tables"
                raise CommandError(
                    f"{self.place}: version {commit.version} was written by another program ({commit.operation})",
                    hint=undo if last_step else "remove that directory, and run again",
                )
        self.files = self.files_at(pinned) if pinned != NO_TABLE else {}
        if (loss := self.writer.loss(self._added())) is not None:
            raise loss
        if self.has_changed:
            self.commit(step, same_rows_as=pinned)

    def take_over(self, pinned: int, *, dry_run: bool = False) -> None:
        """Open the newest version for writing, whoever made it; empty entries after version ``pinned`` go.

        Raises DataError if that is not possible; a ``dry_run`` removes nothing, and only raises.
        """
        removed = log_files.remove_empty_entries(self.place, pinned, dry_run=dry_run)
        self.open()
        if self.version != NO_TABLE:
            log_files.check_entries(self.place, self.version - (removed if dry_run else 0))

    def _open_after(self, pinned: int) -> None:
        """Open the newest version. Raises DataError if the log lacks version ``pinned``, or an entry before it."""
        self.open()
        if self.version < pinned:
            self.open(pinned)
        if pinned != NO_TABLE:
            log_files.check_entries(self.place, pinned)

    def _commits_after(self, pinned: int) -> list[Commit]:
        """Return the commits after a version up to the open one, the newest first."""
        return [commit for commit in self.commits() if pinned < commit.version <= self.version]

    def _keep_rows_of(self, pinned: int, later: Sequence[Commit]) -> bool:
        """Whether the last of the commits after version ``pinned``, newest first, has the same rows as that version."""
        same = later[0].version if later else pinned
        for commit in later:
            if commit.version == same and SAME_ROWS in commit.details:
                same = int(commit.details[SAME_ROWS])
            elif commit.version == same and not log_files.changes_rows(self.place, same):
                same -= 1
        return same == pinned

    def _load(self, version: int | None) -> Any:
        """Return the table object of delta-rs; ``None`` if the table does not exist."""
        lake, _ = _libraries()
        try:
            return lake.DeltaTable(self._uri, version=version, storage_options=storage_options(self.place))
        except lake.exceptions.TableNotFoundError:
            if version is None:
                return None
            if self._load(None) is not None:
                raise DataError(
                    f"{self.place}: its version {version} cannot be read any more",
                    hint=f"the logs of tables go back {LOG_HOURS // 24} days",
                ) from None
            raise self.damaged(f"is not there, and the tables have its version {version}") from None
        except Exception as error:  # delta-rs raises DeltaError, OSError and bare exceptions
            newest = self._load(None) if version is not None else None
            if newest is not None and version is not None and newest.version() < version:
                raise DataError(
                    f"{self.place}: its version {version} is not there any more, the newest is {newest.version()}",
                    hint=log_files.HINT,
                ) from None
            raise self._unreadable(error) from error

    def _listed(self) -> Iterator[DataFile]:
        arrow = importlib.import_module("pyarrow")
        table = arrow.table(self._delta.get_add_actions(flatten=True))
        for row in table.to_pylist():
            least, greatest, nulls = (
                {name[len(kind) :]: value for name, value in row.items() if name.startswith(kind) and value is not None}
                for kind in ("min.", "max.", "null_count.")
            )
            partition = row.get(f"partition.{self.partition_by}")
            partition_value = None if partition is None else str(partition).lower()
            path = urllib.parse.unquote(row["path"])
            yield DataFile(path, row["size_bytes"], row["num_records"], partition_value, least, greatest, nulls)

    def _columns_to_add(self) -> list[Field]:
        """Return the declared columns that the table does not have yet. Raises UsageError for one of another type.

        Columns of others are ignored, as readers do not need them; :meth:`DataFileWriter.merge` refuses to drop values.
        """
        columns = json.loads(self._delta.schema().to_json())["fields"]
        there = {column["name"]: sql_type(column["type"]) for column in columns}
        for name, kind in spark_columns(self.fields):
            if there.get(name, kind) != kind:
                raise UsageError(
                    f"{self.place}: column {name} ({there[name]}) is not one that this release of kshell makes",
                    hint=OTHER_COLUMNS,
                )
        return [field for field in self.fields if field.name not in there]

    def _values(self, file: DataFile) -> dict[str, str | None]:
        return {self.partition_by: file.partition} if self.partition_by else {}

    def _commit_failure(self, error: BaseException) -> KshellError:
        """Return the error for a commit that failed."""
        try:
            newest = self._load(None)
        except KshellError:
            newest = None
        hint = "this step is not committed; run it again"
        if newest is not None and newest.version() > self.version:
            return CommandError(f"{self.place}: another writer has committed meanwhile", hint=hint)
        with contextlib.suppress(OSError):  # nothing can be said of files that cannot be read
            if (damage := log_files.damage(self.place)) is not None:
                return DataError(damage, hint=log_files.HINT)
        return CommandError(f"{self.place}: {_reason(error)}", hint=f"{hint} when the cause is gone")

    def _unreadable(self, error: BaseException) -> KshellError:
        return self.damaged(f"not a table that can be read: {_reason(error)}", error)

    def damaged(self, reason: str, error: BaseException | None = None) -> KshellError:
        """Return the error for a damaged log: it names the file or, if every file is whole, gives ``reason``.

        ``error`` is that of delta-rs; if the store has failed, and not the log, the returned one is no DataError.
        """
        damage = None
        try:
            with contextlib.suppress(FileNotFoundError):
                damage = log_files.damage(self.place)
        except OSError as failure:  # the files cannot be read
            return remote.failure(f"{self.place}/_delta_log", failure)
        if damage is None and isinstance(error, OSError):
            return remote.failure(f"{self.place}/_delta_log", OSError(_reason(error)))
        return DataError(damage or f"{self.place}: {reason}", hint=log_files.HINT)


def _reason(error: BaseException) -> str:
    """Return the message of delta-rs on one line, without the colours and calls in Rust that it adds."""
    return _RUST_CALLS.sub("", _COLOURS.sub("", remote.reason(error)))


def _commit(entry: Mapping[str, Any]) -> Commit:
    step = entry.get(STEP)
    return Commit(
        int(entry["version"]),
        int(entry.get("timestamp", 0)),
        str(entry.get("operation", "")),
        int(step) if step is not None else None,
        entry,
    )


def storage_options(place: str) -> dict[str, str] | None:
    """Return options of a store from those variables of :mod:`kshell.sources.remote` that delta-rs does not read."""
    if not remote.is_remote(place):
        return None
    options = dict(_REQUESTS)
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
    if _uri(place).startswith("s3://"):
        if endpoint.startswith("http://"):
            options["aws_allow_http"] = "true"
        if endpoint:
            options["aws_endpoint_url"] = endpoint
            options["aws_region"] = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
    return options


def _uri(place: str) -> str:
    scheme, separator, rest = place.partition("://")
    return f"{_STORES.get(scheme, scheme)}://{rest}" if separator else place


def _libraries() -> tuple[ModuleType, ModuleType]:
    """Import ``deltalake`` and its module of transactions. Raises UsageError if it is not installed."""
    lake, transaction, _ = require(
        "kshell-pipeline", "spark", "deltalake", "deltalake.transaction", "deltalake.exceptions"
    )
    return lake, transaction
