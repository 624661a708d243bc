"""A warehouse: the Delta tables of a fleet of clusters in one place, changed in steps that are committed as a whole.

::

    warehouse = Warehouse(spark, "/data/tables")
    with warehouse.writing():
        warehouse.begin(["4L6g3nShT-eMCtK--X86sw"])
        warehouse.append("records", frame)
        warehouse.commit({"4L6g3nShT-eMCtK--X86sw": ClusterState(reached)})

Between ``begin`` and ``commit``, ``read`` also returns rows that the step has written. A file can have rows of many
clusters, and its statistics say of which; replacing the rows of some clusters rewrites the files that have any of them.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, TypeVar, cast

from kshell.errors import CommandError, DataError, UsageError
from kshell.sources import remote
from kshell.spark.failures import of_task
from kshell.spark.schemas import Row, spark_columns, spark_schema
from kshell.spark.session import with_settings
from kshell.spark.steps.executor_work import PICKLED, collected, pickled, spread
from kshell.spark.tables import catalog, log_files
from kshell.spark.tables.catalog import BREACHES, CLOSED, CURRENT, TableSpec
from kshell.spark.tables.data_files import CLUSTER, WRITE_HINT, DataFile, DataFileWriter
from kshell.spark.tables.delta import LOG_HOURS, NO_TABLE, RETAINED_HOURS, DeltaTable
from kshell.spark.tables.expectations import Breach, Unique, breach_rows, by_cluster, identity, repeated
from kshell.spark.tables.steps import OPTIMIZE, VACUUM, ClusterState, StepLog, WarehouseState, writer_lock
from kshell.tables.declaration import Field

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


_SMALL_FILE = 1 << 20
_MOST_SMALL_FILES = 4
"""How many files smaller than ``_SMALL_FILE`` a part of a table may have; if it has more, a commit merges them."""
_MOST_REPEATED = 10_000
"""Repeated keys of a step that are counted at most."""
_FEW_ROWS = 20_000
"""Rows up to which the driver reads files itself and Spark gets a local relation: no job and no Python worker."""
_THREADS = 8
"""Tables that are committed in parallel: each takes a few requests, of some ten milliseconds in a store."""
_UNSUITABLE = re.compile(r"%[0-9A-Fa-f]{2}|[\\\x00-\x1f\ud800-\udfff]|/_delta_log(?=/|$)")
"""What delta-rs misunderstands in a path."""
_UNSUITABLE_URI = re.compile(f"{_UNSUITABLE.pattern}|[?#]")
"""As well, what would end the path of a URI: all tables would be one, at a place that is not in ``--out``."""
_FOR_SPARK = {"s3": "s3a", "s3n": "s3a", "gcs": "gs"}
"""Schemes of stores that have another name in Hadoop."""
T = TypeVar("T")


class Warehouse:
    """The tables of a fleet in one place; see the module for how they are written.

    Args:
        spark: a session, or a function that returns one when it is needed; ``None`` if no rows are read or written.
        out: the directory of the tables, a local path or a URI. It is created by the first step.
        checkpoints: whether the states of the clusters are needed; without them, lost ones do no harm.

    Raises UsageError for tables of an older kshell, DataError for a log of steps that cannot be read.
    """

    def __init__(
        self, spark: SparkSession | Callable[[], SparkSession] | None, out: str, *, checkpoints: bool = True
    ) -> None:
        self.place = location(out)
        self.log = StepLog(self.place)
        self._needs_checkpoints = checkpoints
        self.state = self.log.load(checkpoints=checkpoints)
        self.step = 0
        """The number of the step that was begun; 0 outside a step."""
        self.action = "run"
        """The action that the log of steps names for steps of this writer."""
        self._session = spark
        self._tables: dict[str, DeltaTable] = {}
        self._rows: dict[str, int] = {}
        self._breaches: dict[str, list[Breach]] = {}
        self.breaches: list[Row] = []
        """Rows of ``breaches`` that the last committed step has written."""
        self._local: dict[tuple[str, ...], DataFrame] = {}
        """Small frames by table, files and clusters, so that what a step reads often is loaded once."""
        self._clusters = self._known_clusters()
        """The clusters whose rows may be in the tables."""
        self._is_writer = False
        self._writes_here = False
        """Whether this step has few rows, so that the driver collects and writes them itself."""
        self.settings_for_few_rows: Mapping[str, str] = {}
        """Settings that the session gets while a step with few rows is written; none for a session of somebody else."""

    @property
    def spark(self) -> SparkSession:
        """The Spark session, started at the first use."""
        assert self._session is not None, "only a session can read and write rows"
        if not hasattr(self._session, "sql"):
            self._session = self._session()
        return cast("SparkSession", self._session)

    def no_tables(self) -> CommandError:
        """Return the error to raise if tables are needed but no step was ever committed."""
        return CommandError(f"{self.place}: there are no tables", hint="`kshell-pipeline run` makes them")

    # --- reading ---

    def read(self, name: str, clusters: Collection[str] | None = None, part: str | None = None) -> DataFrame:
        """Read a table; if given, only some clusters or one part (``CURRENT``, ``CLOSED``). Raises UsageError."""
        return self._frame(catalog.table(name), self.files(name, part), clusters)

    def read_appended(self, name: str) -> DataFrame:
        """Read the rows that the present step has appended to a table."""
        table = self.table(name)
        return self._frame(catalog.table(name), [table.files[path] for path in sorted(table.appended)], None)

    def read_before(self, name: str, clusters: Collection[str], column: str, least: int) -> DataFrame:
        """Read rows of some clusters that earlier steps wrote and whose ``column`` is at least ``least``."""
        table = self.table(name)
        files = [file for path, file in table.files.items() if path not in table.appended]
        files = [file for file in files if file.greatest.get(column, least) >= least]
        frame = self._frame(catalog.table(name), files, clusters)
        return frame.where(frame[column] >= least)

    def files(self, name: str, part: str | None = None) -> list[DataFile]:
        """Return the data files of a table, or of a part of it."""
        spec = catalog.table(name)
        files = self.table(name).files.values()
        return [
            file
            for file in files
            if part is None or not spec.partition_column or file.partition == spec.partition_of(part)
        ]

    def row_count(self, without: Collection[str] = ()) -> int:
        """Return how many rows all tables have together, but for those named."""
        names = [name for name in self.tables() if name not in without]
        return sum(
            file.rows for table in self._in_parallel(self.table, names).values() for file in table.files.values()
        )

    def tables(self) -> list[str]:
        """Return the names of the tables that exist, in the order of the catalog."""
        return [name for name in catalog.tables() if name in self.state.versions]

    def table(self, name: str) -> DeltaTable:
        """Return a table, opened at the version of the last completed step; for the writer it can be committed, too."""
        table = self._tables.get(name)
        if table is None:
            table = self._new_table(catalog.table(name))
            version = self.state.versions.get(name, NO_TABLE)
            if self._is_writer:
                table.adopt(version, self.state.step, self.step or self.log.next_step)
            else:
                table.follow(version)
            self._tables[name] = table
        return table

    def renew(self) -> bool:
        """Load the newest completed step, while this object writes none; return whether it is newer than before."""
        before, self.state = self.state.step, self.log.load()
        self._tables = {}
        self.abandon()
        return self.state.step != before

    def _new_table(self, spec: TableSpec) -> DeltaTable:
        return DeltaTable(
            f"{self.place}/{spec.path}", spec.name, spec.summary, spec.fields, spec.partition_column, spec.expect
        )

    def _frame(self, spec: TableSpec, files: Sequence[DataFile], clusters: Collection[str] | None) -> DataFrame:
        """Return the rows of files, of all or some clusters; how they are read depends on their number and place."""
        if clusters is not None:
            files = [file for file in files if file.may_hold(clusters)]
            clusters = None if self._clusters <= set(clusters) else sorted(clusters)
        if sum(file.rows for file in files) <= _FEW_ROWS:
            return self._local_frame(spec, files, clusters)
        schema, root = spark_schema(spec.fields), f"{self.place}/{spec.path}"
        if remote.is_remote(self.place):
            # Tasks read a store as they write it; Spark's own reader would need a connector on its class path.
            work = partial(_read, DataFileWriter(root, spec.fields, spec.partition_column))
            frame = spread(self.spark, [pickle.dumps(file) for file in files], work, schema)
        else:
            base = for_spark(root)
            paths = [f"{base}/{file.path}" for file in files]
            try:
                frame = self.spark.read.load(paths, "parquet", schema, basePath=base, __globPaths__="false")
            except Exception as error:
                loss = self._new_table(spec).writer.loss(files)
                if loss is None:
                    raise
                raise loss from error
            if frame.columns != schema.names:  # Spark puts the partition column last
                frame = frame.select(*schema.names)
        return frame if clusters is None else frame.where(frame[CLUSTER].isin(clusters))

    def _local_frame(self, spec: TableSpec, files: Sequence[DataFile], clusters: Sequence[str] | None) -> DataFrame:
        """Read the rows of a few small files on the driver."""
        key = (spec.name, *(file.path for file in files), "of", *(clusters or ()))
        if key not in self._local:
            rows = self._new_table(spec).writer.rows_of(files, clusters)
            self._local[key] = (
                self.spark.createDataFrame(rows, spark_schema(spec.fields))
                if rows.num_rows
                else empty(self.spark, spec.fields)
            )
        return self._local[key]

    def materialized(self, frame: DataFrame) -> DataFrame:
        """Compute a frame now and return its rows as a new frame: plans that use it do not contain the old plan."""
        if not self._writes_here:
            return frame.localCheckpoint()
        return self.spark.createDataFrame(_computed(frame))

    # --- writing ---

    @contextlib.contextmanager
    def writing(self, *, undoes: bool = True) -> Iterator[None]:
        """Be the only writer within the ``with`` block. Raises CommandError if another process is writing.

        With ``undoes``, all tables are first restored if a killed step has changed them; else each when it is opened.
        """
        with writer_lock(self.place) as is_alone:
            if is_alone:
                self.log.tidy()
            self.state = self.log.load(checkpoints=self._needs_checkpoints)
            self.log.check_alone(is_alone=is_alone)
            self._tables, self._is_writer = {}, True
            try:
                if undoes and self.log.interrupted is not None:
                    self._in_parallel(self.table, catalog.tables())
                yield
            finally:
                self.abandon()
                self._tables, self._is_writer = {}, False

    def begin(self, clusters: Collection[str] = (), *, few: bool = False) -> int:
        """Begin a step, and return its number.

        Args:
            clusters: the clusters that the step changes; they may be new.
            few: whether the step's rows are so few that the driver writes them itself, without Spark tasks.
        """
        assert self._is_writer, "a step is for the only writer"
        self.abandon()
        self.step = self.log.next_step
        self._clusters = {*self._known_clusters(), *clusters}
        self._writes_here = few
        return self.step

    def settings_for_step(self) -> contextlib.AbstractContextManager[None]:
        """Return a block within which the session suits the size of the step that was begun."""
        if not (self._writes_here and self.settings_for_few_rows):
            return contextlib.nullcontext()
        return with_settings(self.spark, self.settings_for_few_rows)

    def abandon(self) -> None:
        """Forget a step that was not committed, and delete the files that it wrote."""
        for table in self._tables.values():
            table.writer.remove(table.written_files())
            table.reset()
        self._rows, self._breaches, self._local, self.step = {}, {}, {}, 0
        self._clusters = self._known_clusters()

    def _known_clusters(self) -> set[str]:
        return {*self.state.clusters, *self.state.failed}

    def writer(self, name: str) -> DataFileWriter:
        """Return a writer of a table's files, also for tasks; :meth:`append_files` adds the files to the table."""
        return self.table(name).writer

    def append(self, name: str, frame: DataFrame) -> int:
        """Append rows to a table; return how many rows the step has appended to it."""
        return self.append_files(name, self._written(name, frame))

    def append_files(self, name: str, files: Iterable[DataFile]) -> int:
        """Append files that :meth:`writer` wrote; return as :meth:`append`. Raises CommandError for a missing file."""
        table, files = self._own(name), list(files)
        loss = table.writer.loss(files)
        if loss is not None:
            raise CommandError(f"{loss.message}; a task has just written it", hint=WRITE_HINT)
        table.add(files, appended=True)
        self._breaches[name] = self._breaches_in(name, files)
        self._rows[name] = self._rows.get(name, 0) + sum(file.rows for file in files)
        return self._rows[name]

    def retract(self, name: str) -> None:
        """Remove the rows that the step has appended to a table, so that it can append again."""
        table = self._own(name)
        files = [table.files[path] for path in table.appended]
        table.drop(files)
        table.writer.remove(files)
        self._rows.pop(name, None)
        self._breaches.pop(name, None)

    def replace(self, name: str, frame: DataFrame, clusters: Collection[str]) -> int:
        """Replace all rows of some clusters, or all rows of a table with ``is_fleet``; return how many are new."""
        table, before = self._own(name), list(self.table(name).files.values())
        rows = self.append(name, frame)
        if catalog.table(name).is_fleet:
            table.drop(before)
        else:
            self._remove(table, before, clusters)
        table.appended.clear()
        return rows

    def extend(self, name: str, frame: DataFrame, clusters: Collection[str], from_scratch: Collection[str] = ()) -> int:
        """Append closed rows (ended or final), and replace the current rows of some clusters; return how many rows.

        ``frame`` has the new closed rows, and all current rows of the clusters. ``from_scratch``: clusters whose
        earlier closed rows are deleted, too.
        """
        table, current, closed = self._own(name), self.files(name, CURRENT), self.files(name, CLOSED)
        rows = self.append(name, frame)
        self._remove(table, current, clusters)
        self._remove(table, closed, from_scratch)
        table.appended.clear()
        return rows

    def remove(self, clusters: Collection[str]) -> None:
        """Delete all rows of some clusters from every table."""
        for name in catalog.tables():
            table = self._own(name)
            self._remove(table, list(table.files.values()), clusters)

    def commit(
        self,
        clusters: Mapping[str, ClusterState],
        failed: Mapping[str, Mapping[str, str]] | None = None,
    ) -> WarehouseState:
        """Commit the step, with the new states of the clusters that it changed.

        ``failed`` replaces that of the state, for all clusters; ``None``: unchanged. Raises CommandError if another
        writer has committed meanwhile; then nothing of the step is committed.
        """
        before = self.state
        breaches = self._append_breaches()
        new_state = before._replace(
            clusters={**before.clusters, **clusters},
            failed=before.failed if failed is None else failed,
            rows={**before.rows, **self._rows},
        )
        state = self._committed(new_state, self.action)
        self.breaches = breaches
        return state

    def _breaches_in(self, name: str, files: Sequence[DataFile]) -> list[Breach]:
        """Return the breaches in new files. Each file was checked by its writer; keys across files are counted here."""
        breaches = [breach for file in files for breach in file.breaches]
        for expectation in catalog.table(name).expect:
            if not isinstance(expectation, Unique):
                continue
            new = [file for file in files if file.partition == "true" or not expectation.current]
            if len(new) > 1:
                breaches = [breach for breach in breaches if breach.expectation != expectation.name]
                breaches += self._repeated_keys(name, new, expectation)
        return breaches

    def _repeated_keys(self, name: str, files: Sequence[DataFile], expectation: Unique) -> list[Breach]:
        """Find keys that several rows of some files have; few rows are counted on the driver, without a Spark job."""
        columns = list(expectation.columns)
        if self._session is None or sum(file.rows for file in files) <= _FEW_ROWS:
            keys = repeated(self.writer(name).rows_of(files).select(columns))
            return [Breach(expectation.name, *broken) for broken in by_cluster(keys)]
        counts = self._frame(catalog.table(name), files, None).groupBy(*columns).count()
        rows = counts.where("count > 1").limit(_MOST_REPEATED).collect()
        return [
            Breach(expectation.name, row[CLUSTER], row["count"] - 1, {column: row[column] for column in columns})
            for row in rows
        ]

    def _append_breaches(self) -> list[Row]:
        """Write the step's new rows of ``breaches``, without those that an equal earlier row reports; return them."""
        if not any(self._breaches.values()):
            return []
        table = self._own(BREACHES)
        rows = breach_rows(self.step, self._breaches, {name: spec.expect for name, spec in catalog.tables().items()})
        reported = {identity(row) for row in table.rows()}
        new = [row for row in rows if identity(row) not in reported]
        self.append_files(BREACHES, table.writer.write_rows(new))
        return new

    def _committed(self, state: WarehouseState, action: str) -> WarehouseState:
        """Commit every changed table between the rows ``begin`` and ``done`` of the log of steps."""
        for table in self._tables.values():
            if table.has_changed:
                _merge_small_files(table, _SMALL_FILE, most=_MOST_SMALL_FILES)
        missing = [name for name in catalog.tables() if name not in state.versions]  # created even without rows
        names = dict.fromkeys([*missing, *(name for name, table in self._tables.items() if table.has_changed)])

        def commit(name: str) -> int:
            table = self.table(name)
            return table.commit(self.step, same_rows_as=table.version if action == OPTIMIZE else None)

        try:
            self.log.begin(self.step, action)
            self._in_parallel(commit, names)
            self.state = self.log.complete(self.step, action, self._with_versions(state))
        except BaseException:
            # Some commits may have succeeded, so no file is deleted here; the next writer restores the tables.
            self._tables = {}
            raise
        self.abandon()
        return self.state

    def _with_versions(self, state: WarehouseState) -> WarehouseState:
        """Return the state with the versions of the tables that are open."""
        return state._replace(
            versions={**state.versions, **{name: table.version for name, table in self._tables.items()}}
        )

    def _in_parallel(self, work: Callable[[str], T], names: Iterable[str]) -> dict[str, T]:
        names = list(names)
        with ThreadPoolExecutor(_THREADS, "kshell commit") as pool:
            return dict(zip(names, pool.map(work, names), strict=True))

    def _written(self, name: str, frame: DataFrame) -> list[DataFile]:
        """Write the rows of a frame as files: in its tasks, or on the driver if the step has few rows."""
        spec, writer = catalog.table(name), self.writer(name)
        catalog.check_types(spec, frame)
        names = [field.name for field in spec.fields]
        if self._writes_here:
            return writer.write_frame(_computed(frame).select(names).to_batches())
        selected = frame if frame.columns == names else frame.select(*names)
        written = collected(selected.mapInArrow(partial(_write, writer), PICKLED))
        return [file for files in written for file in files]

    def _remove(self, table: DeltaTable, files: Iterable[DataFile], clusters: Collection[str]) -> None:
        """Rewrite those files that have rows of some clusters, without these rows."""
        for file in files:
            if file.may_hold(clusters) and (rest := table.writer.without(file, clusters)) is not None:
                is_appended = file.path in table.appended
                table.drop([file])
                table.add(rest, appended=is_appended)

    def _own(self, name: str) -> DeltaTable:
        assert self.step, "rows are written within a step"
        return self.table(name)

    # --- upkeep ---

    def restore(self, step: int) -> WarehouseState:
        """Restore all tables as they were after a step, as a new step.

        Raises UsageError for an unknown step, and CommandError if :meth:`vacuum` has deleted files of it.
        """
        hint = (
            f"`vacuum` removes what no step of the time that it retains has, and the logs of tables go back"
            f" {LOG_HOURS // 24} days; `history` lists the steps"
        )
        try:
            wanted = self.log.load(step)
            self.begin(wanted.clusters)
            for spec in catalog.tables().values():
                table = self._tables[spec.name] = self._new_table(spec)
                table.take_over(self.state.versions.get(spec.name, NO_TABLE))
                files = table.files_of(step, wanted.versions[spec.name]) if spec.name in wanted.versions else {}
                loss = table.writer.loss(list(files.values()))
                if loss is not None:
                    raise loss
                table.files = files
        except DataError as error:
            hint = log_files.HINT if error.hint == log_files.HINT else hint
            raise CommandError(f"step {step} cannot be restored: {error.message}", hint=hint) from error
        return self._committed(wanted._replace(versions=self.state.versions), f"restore {step}")

    def optimize(self, target_bytes: int) -> list[str]:
        """Combine small files, as a step that changes no row; return the names of the tables with changed files."""
        self.begin()
        for name in self.tables():
            _merge_small_files(self.table(name), target_bytes, most=1, file_bytes=target_bytes)
        changed = [name for name in self.tables() if self.table(name).has_changed]
        if changed:
            self._committed(self.state, OPTIMIZE)
        return changed

    def vacuum(self, hours: int = RETAINED_HOURS, *, dry_run: bool = False) -> dict[str, tuple[int, int]]:
        """Delete, as a step, files that neither the last completed step nor any version of the last ``hours`` has.

        Returns (files, bytes) by table. With ``dry_run`` nothing is deleted, and no step is made.
        """

        retained = self.log.versions_of(hours) if hours > RETAINED_HOURS else {}

        def vacuumed(*, dry_run: bool) -> dict[str, tuple[int, int]]:
            removed = self._in_parallel(
                lambda name: self.table(name).vacuum(hours, retained.get(name, ()), step=self.step, dry_run=dry_run),
                self.tables(),
            )
            return removed | self.log.vacuum(hours, retained.get("progress", ()), step=self.step, dry_run=dry_run)

        removed = vacuumed(dry_run=True)
        if dry_run or not any(files for files, _ in removed.values()):
            return removed
        self.begin()
        self.log.begin(self.step, VACUUM)
        removed = vacuumed(dry_run=False)
        self.state = self.log.complete(self.step, VACUUM, self._with_versions(self.state))
        self.abandon()
        return removed


def _computed(frame: DataFrame) -> pa.Table:
    """Collect a frame as a ``pyarrow.Table``. Raises CommandError if tasks fail for a known reason."""
    # Arrow refuses a null struct whose fields are not nullable; a cast to the type's text makes everything nullable.
    columns = [
        f"cast({field.name} as {field.dataType.simpleString()}) as {field.name}"
        if '"nullable":false' in field.dataType.json()
        else field.name
        for field in frame.schema.fields
    ]
    try:
        return (frame if columns == frame.columns else frame.selectExpr(*columns)).toArrow()
    except Exception as error:
        if (cause := of_task(error)) is not None:
            raise cause from error
        raise


def empty(spark: SparkSession, fields: Sequence[Field]) -> DataFrame:
    """Return a frame without rows that Spark's optimizer knows to be empty, so that it also drops joins with it."""
    columns = (f"CAST(NULL AS {kind}) AS `{name}`" for name, kind in spark_columns(fields))
    return spark.sql(f"SELECT {', '.join(columns)} WHERE false")


def location(place: str) -> str:
    """Return the directory of tables as an absolute path, or a URI, without a slash at its end. Raises UsageError."""
    place = remote.plain(place)
    is_remote = remote.is_remote(place)
    place = place.rstrip("/") if is_remote else os.path.abspath(place)
    if (unsuitable := (_UNSUITABLE_URI if is_remote else _UNSUITABLE).search(place)) is not None:
        raise UsageError(
            f"{place!r}: {unsuitable[0]!r} cannot be part of the path of a Delta table", hint="another --out"
        )
    return place


def for_spark(place: str) -> str:
    """Return a result of :func:`location` as the URI that Spark and Hadoop use for it."""
    if not remote.is_remote(place):
        return f"file://{place}"  # without the scheme a cluster would use its own default file system
    scheme, _, rest = place.partition("://")
    return f"{_FOR_SPARK.get(scheme, scheme)}://{rest}"


def _merge_small_files(table: DeltaTable, small: int, *, most: int, file_bytes: int | None = None) -> None:
    """Merge the files below ``small`` bytes of each part of a table if there are more than ``most`` of them.

    ``file_bytes`` is the size of the new files, as for :meth:`DataFileWriter.write`.
    """
    parts: dict[str | None, list[DataFile]] = {}
    for file in table.files.values():
        if file.size < small:
            parts.setdefault(file.partition, []).append(file)
    for files in parts.values():
        if len(files) > most:
            merged = table.writer.merge(files, file_bytes)
            written = {file.path for file in table.written_files()}
            table.writer.remove(file for file in files if file.path in written)
            table.drop(files)
            table.add(merged)


def _write(writer: DataFileWriter, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write rows of a frame, in a task, as data files of a table; return these, pickled, as one row."""
    files = writer.write_frame(batches)
    if files:
        yield pickled(files)


def _read(writer: DataFileWriter, piece: bytes) -> Iterator[pa.RecordBatch]:
    """Read the rows of one data file, given pickled, in a task."""
    for rows in writer.read([pickle.loads(piece)]):
        yield from rows.to_batches()
