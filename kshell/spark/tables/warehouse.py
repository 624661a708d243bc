"""A warehouse: the Delta tables of a fleet below one place, written in steps that count as a whole or not at all.

::

    warehouse = Warehouse(spark, "/data/tables")
    with warehouse.writing():
        warehouse.begin(["4L6g3nShT-eMCtK--X86sw"])
        warehouse.append("records", frame)
        warehouse.commit({"4L6g3nShT-eMCtK--X86sw": ClusterState(reached)})

Between ``begin`` and ``commit``, ``read`` gives what the step has written as well. The rows of all clusters lie
together, in files that say which clusters they may hold; a change of some clusters' rows rewrites those that hold them.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pickle
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar, cast

from kshell.errors import CommandError, DataError, UsageError
from kshell.sources import remote
from kshell.spark.failures import of_task
from kshell.spark.schemas import spark_columns, spark_schema
from kshell.spark.steps.executor_work import PICKLED, collected, pickled, spread
from kshell.spark.tables import catalog
from kshell.spark.tables.catalog import BREACHES, CLOSED, CURRENT, TableSpec
from kshell.spark.tables.data_files import CLUSTER, SHARED, DataFile, DataFileWriter, lost_file
from kshell.spark.tables.delta import NO_TABLE, RETAINED_HOURS, DeltaTable
from kshell.spark.tables.expectations import Breach, Unique, breach_rows, by_cluster, identity, repeated
from kshell.spark.tables.steps import OPTIMIZE, VACUUM, ClusterState, StepLog, WarehouseState, writer_lock
from kshell.tables.arrow import batches
from kshell.tables.declaration import Field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SMALL_FILE = 1 << 20
_MOST_SMALL_FILES = 4
"""Files below so many bytes that a part of a table may have; when there are more, a commit makes one of them."""
_MOST_REPEATED = 10_000
"""Keys that are in several files of a step: more are not counted."""
_FEW_ROWS = 20_000
"""Rows up to which the driver reads files itself and Spark gets a local relation: no job and no Python worker."""
_THREADS = 8
"""Tables that are committed at once: each is a few requests, in a store of some ten milliseconds."""
_UNSUITABLE = re.compile(r"%[0-9A-Fa-f]{2}|[\\\x00-\x1f\ud800-\udfff]|/_delta_log(?=/|$)")
"""What delta-rs takes for something else in a path."""
_FOR_SPARK = {"s3": "s3a", "s3n": "s3a", "gcs": "gs"}
"""What Hadoop calls the stores that have another name there."""
T = TypeVar("T")


class Warehouse:
    """The tables below a place.

    Args:
        spark: a session, or what gives one once it is needed; ``None`` where no rows are read or written.
        out: a local path or a URI. Nothing is made there before a step is written.

    Raises UsageError for tables of an older kshell, DataError for a log of steps that cannot be read.
    """

    def __init__(self, spark: SparkSession | Callable[[], SparkSession] | None, out: str) -> None:
        self.place = location(out)
        self.log = StepLog(self.place)
        self.state = self.log.load()
        self.step = 0
        """The number of the step that was begun; 0: none."""
        self.action = "run"
        """What its steps are called in the log of steps."""
        self._session = spark
        self._tables: dict[str, DeltaTable] = {}
        self._rows: dict[str, int] = {}
        self._breaches: dict[str, list[Breach]] = {}
        self.breaches: list[dict[str, Any]] = []
        """Rows of ``breaches`` that the last committed step has written."""
        self._local: dict[tuple[str, ...], DataFrame] = {}
        """Frames of few rows, by table, clusters and files: what a step reads often is loaded once."""
        self._clusters = self._known_clusters()
        """Those whose rows may be in the tables."""
        self._is_writer = False
        self._writes_here = False
        """Whether rows are few in this step, so that the driver collects and writes them itself."""

    @property
    def spark(self) -> SparkSession:
        """The session, made now if it was not yet."""
        assert self._session is not None, "only a session can read and write rows"
        if not hasattr(self._session, "sql"):
            self._session = self._session()
        return cast("SparkSession", self._session)

    def no_tables(self) -> CommandError:
        """What to raise where some are needed, and no step was ever committed."""
        return CommandError(f"{self.place}: there are no tables", hint="`kshell-pipeline run` makes them")

    # --- reading ---

    def read(self, name: str, clusters: Collection[str] | None = None, part: str | None = None) -> DataFrame:
        """A table's rows: of some clusters, of one part (``current``: versions that have not ended). UsageError for a
        name that there is none of."""
        return self._frame(catalog.table(name), self.files(name, part), clusters)

    def read_appended(self, name: str) -> DataFrame:
        """Read the rows that the step has appended."""
        table = self.table(name)
        return self._frame(catalog.table(name), [table.files[path] for path in sorted(table.appended)], None)

    def read_before(self, name: str, clusters: Collection[str], column: str, least: int) -> DataFrame:
        """Read the rows of some clusters from the steps before, whose ``column`` is at least ``least``."""
        table = self.table(name)
        files = [file for path, file in table.files.items() if path not in table.appended]
        files = [file for file in files if file.greatest.get(column, least) >= least]
        frame = self._frame(catalog.table(name), files, clusters)
        return frame.where(frame[column] >= least)

    def files(self, name: str, part: str | None = None) -> list[DataFile]:
        """The files of a table, or of a part of it."""
        spec = catalog.table(name)
        files = self.table(name).files.values()
        return [file for file in files if part is None or not spec.closes or file.partition == spec.partition_of(part)]

    def tables(self) -> list[str]:
        """The names of the tables that there are, in the order of the catalog."""
        return [name for name in catalog.tables() if name in self.state.versions]

    def table(self, name: str) -> DeltaTable:
        """A table, opened at the version that counts; by the only writer, so that it can commit."""
        table = self._tables.get(name)
        if table is None:
            table = self._new_table(catalog.table(name))
            version = self.state.versions.get(name, NO_TABLE)
            if self._is_writer:
                table.adopt(version, self.state.step)
            else:
                table.follow(version)
            self._tables[name] = table
        return table

    def renew(self) -> bool:
        """Reads the state again, between steps; whether another step counts now."""
        before, self.state = self.state.step, self.log.load()
        self._tables = {}
        self.abandon()
        return self.state.step != before

    def _new_table(self, spec: TableSpec) -> DeltaTable:
        return DeltaTable(f"{self.place}/{spec.path}", spec.name, spec.summary, spec.fields, spec.closes, spec.expect)

    def _frame(self, spec: TableSpec, files: Sequence[DataFile], clusters: Collection[str] | None) -> DataFrame:
        if clusters is not None:
            files = [file for file in files if file.may_hold(clusters)]
            clusters = None if self._clusters <= set(clusters) else sorted(clusters)
        if sum(file.rows for file in files) <= _FEW_ROWS:
            return self._local_frame(spec, files, clusters)
        schema, root = spark_schema(spec.fields), f"{self.place}/{spec.path}"
        if remote.is_remote(self.place):
            # Tasks read a store as they write it; Spark's own reader would need a connector on its class path.
            work = _Reading(DataFileWriter(root, spec.fields, spec.closes))
            frame = spread(self.spark, [pickle.dumps(file) for file in files], work, schema)
        else:
            base = for_spark(root)
            paths = [f"{base}/{file.path}" for file in files]
            try:
                frame = self.spark.read.load(paths, "parquet", schema, basePath=base, __globPaths__="false")
            except Exception as error:
                missing = self._new_table(spec).writer.missing(files)
                if missing is None:
                    raise
                raise lost_file(f"{root}/{missing.path}") from error
            if frame.columns != schema.names:  # the column of directories comes last
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
        """The same rows, computed now and once: a plan that stands on them does not contain theirs."""
        if not self._writes_here:
            return frame.localCheckpoint()
        return self.spark.createDataFrame(_computed(frame))

    # --- writing ---

    @contextlib.contextmanager
    def writing(self, *, undoes: bool = True) -> Iterator[None]:
        """As the only writer. What a killed one left is undone at once, with ``undoes``; else table by table, as they
        are opened. Raises CommandError where another one writes."""
        with writer_lock(self.place) as is_alone:
            self.state = self.log.load()
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
        """Begins a step, and returns its number.

        Args:
            clusters: those that it is about, which may be new.
            few: whether all rows that it computes fit the driver, which then writes them itself: no job for workers.
        """
        assert self._is_writer, "a step is for the only writer"
        self.abandon()
        self.step = self.log.next_step
        self._clusters = {*self._known_clusters(), *clusters}
        self._writes_here = few
        return self.step

    def abandon(self) -> None:
        """Forgets a step that was not committed, and removes the files that it wrote."""
        for table in self._tables.values():
            table.writer.remove(table.written_files())
            table.reset()
        self._rows, self._breaches, self._local, self.step = {}, {}, {}, 0
        self._clusters = self._known_clusters()

    def _known_clusters(self) -> set[str]:
        return {*self.state.clusters, *self.state.failed}

    def writer(self, name: str) -> DataFileWriter:
        """What writes files of a table, in tasks too; :meth:`append_files` makes them count."""
        return self.table(name).writer

    def append(self, name: str, frame: DataFrame) -> int:
        """Rows more. Gives how many."""
        return self.append_files(name, self._written(name, frame))

    def append_files(self, name: str, files: Iterable[DataFile]) -> int:
        """The same of files that were written with :meth:`writer`. Raises CommandError where one is not here."""
        table, files = self._own(name), list(files)
        missing = table.writer.missing(files)
        if missing is not None:
            raise CommandError(f"{table.place}/{missing.path}: a task wrote it, and it is not here", hint=SHARED)
        table.add(files, appended=True)
        self._breaches[name] = self._breaches_in(name, files)
        self._rows[name] = self._rows.get(name, 0) + sum(file.rows for file in files)
        return self._rows[name]

    def retract(self, name: str) -> None:
        """What the step has appended to a table does not count; it may append again."""
        table = self._own(name)
        files = [table.files[path] for path in table.appended]
        table.drop(files)
        table.writer.remove(files)
        self._rows.pop(name, None)
        self._breaches.pop(name, None)

    def replace(self, name: str, frame: DataFrame, clusters: Collection[str]) -> int:
        """All rows of those clusters, of which some may have none; of a fleet's table, all rows. Gives how many."""
        table, before = self._own(name), list(self.table(name).files.values())
        rows = self.append(name, frame)
        if catalog.table(name).is_fleet:
            table.drop(before)
        else:
            self._remove(table, before, clusters)
        table.appended.clear()
        return rows

    def extend(self, name: str, frame: DataFrame, clusters: Collection[str], from_scratch: Collection[str] = ()) -> int:
        """Rows that have ended, or are final, are more rows; the others are all that those clusters have. How many.

        ``from_scratch``: clusters whose rows of the first kind do not count any more, but for these.
        """
        table, current, closed = self._own(name), self.files(name, CURRENT), self.files(name, CLOSED)
        rows = self.append(name, frame)
        self._remove(table, current, clusters)
        self._remove(table, closed, from_scratch)
        table.appended.clear()
        return rows

    def remove(self, clusters: Collection[str]) -> None:
        """Nothing of those clusters counts any more, in any table."""
        for name in catalog.tables():
            table = self._own(name)
            self._remove(table, list(table.files.values()), clusters)

    def commit(
        self,
        clusters: Mapping[str, ClusterState],
        failed: Mapping[str, Mapping[str, str]] | None = None,
    ) -> WarehouseState:
        """Makes the step count, with the new states of the clusters that it was about.

        ``failed``: as in a state, of all clusters; ``None``: as it was. Raises CommandError where another writer has
        committed meanwhile: then nothing of the step counts.
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
        """What is broken in new files: within each its writer has looked, keys of several files are counted here."""
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
        """Keys that several rows of some files have; few rows are counted here, without a job of Spark's."""
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

    def _append_breaches(self) -> list[dict[str, Any]]:
        """Write what of the step's rows breaks expectations, unless the table has it already; return those rows."""
        if not any(self._breaches.values()):
            return []
        arrow, table = importlib.import_module("pyarrow"), self._own(BREACHES)
        rows = breach_rows(self.step, self._breaches, {name: spec.expect for name, spec in catalog.tables().items()})
        there = [row for part in table.writer.read(table.files.values()) for row in part.to_pylist()]
        reported = {identity(row) for row in there}
        new = [row for row in rows if identity(row) not in reported]
        self.append_files(BREACHES, table.writer.write(batches(arrow, table.fields, new)))
        return new

    def _committed(self, state: WarehouseState, action: str) -> WarehouseState:
        for table in self._tables.values():
            if table.has_changed:
                _tidy(table)
        missing = [name for name in catalog.tables() if name not in state.versions]  # they exist, without rows too
        names = dict.fromkeys([*missing, *(name for name, table in self._tables.items() if table.has_changed)])
        try:
            self.log.begin(self.step, action)
            self._in_parallel(lambda name: self.table(name).commit(self.step), names)
            self.state = self.log.complete(self.step, action, self._with_versions(state))
        except BaseException:
            # Nobody knows what of it came about, so none of its files are removed here; whoever writes next looks.
            self._tables = {}
            raise
        self.abandon()
        return self.state

    def _with_versions(self, state: WarehouseState) -> WarehouseState:
        """The state, at the versions of the tables that are open."""
        return state._replace(
            versions={**state.versions, **{name: table.version for name, table in self._tables.items()}}
        )

    def _in_parallel(self, work: Callable[[str], T], names: Iterable[str]) -> dict[str, T]:
        names = list(names)
        with ThreadPoolExecutor(_THREADS, "kshell commit") as pool:
            return dict(zip(names, pool.map(work, names), strict=True))

    def _written(self, name: str, frame: DataFrame) -> list[DataFile]:
        """The rows of a frame as files: written by its tasks, or here where all that there is is little."""
        spec, writer = catalog.table(name), self.writer(name)
        catalog.check_types(spec, frame)
        names = [field.name for field in spec.fields]
        if self._writes_here:
            return writer.write_frame(_computed(frame).select(names).to_batches())
        selected = frame if frame.columns == names else frame.select(*names)
        written = collected(selected.mapInArrow(_Writing(writer), PICKLED))
        return [file for files in written for file in files]

    def _remove(self, table: DeltaTable, files: Iterable[DataFile], clusters: Collection[str]) -> None:
        """Rows of some clusters are not in some files any more."""
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
        """Makes the tables what a step left, as a new step. Raises UsageError for a step that there is none of,
        CommandError where files of it were removed by :meth:`vacuum`."""
        hint = "`vacuum` removes what no step of the time that it retains has; `history` lists the steps"
        try:
            wanted = self.log.load(step)
            self.begin(wanted.clusters)
            for spec in catalog.tables().values():
                table = self._tables[spec.name] = self._new_table(spec)
                table.open()  # whoever wrote it last: others' rows go, too
                files = table.files_at(wanted.versions[spec.name]) if spec.name in wanted.versions else {}
                missing = table.writer.missing([file for path, file in files.items() if path not in table.files])
                if missing is not None:
                    raise lost_file(f"{table.place}/{missing.path}")
                table.files = files
        except DataError as error:
            raise CommandError(f"step {step} cannot be restored: {error.message}", hint=hint) from error
        return self._committed(wanted._replace(versions=self.state.versions), f"restore {step}")

    def optimize(self, target_bytes: int) -> list[str]:
        """Puts small files together, as a step; gives the tables of which some were. Their rows stay what they are."""
        wanted = [name for name in self.tables() if self._has_several(name, target_bytes)]
        if not wanted:
            return []
        self.begin()
        self.log.begin(self.step, OPTIMIZE)
        for name in wanted:
            self.table(name).compact(self.step, target_bytes)
        self._kept_up(OPTIMIZE)
        return wanted

    def _has_several(self, name: str, target_bytes: int) -> bool:
        parts: dict[str | None, int] = {}
        for file in self.table(name).files.values():
            parts[file.partition] = parts.get(file.partition, 0) + (file.size < target_bytes)
        return any(count > 1 for count in parts.values())

    def vacuum(self, hours: int = RETAINED_HOURS, *, dry_run: bool = False) -> dict[str, tuple[int, int]]:
        """Removes files that no version of the last ``hours`` has, nor the step that counts, as a step.

        Gives (files, bytes) by table. With ``dry_run`` nothing is removed, and no step is made.
        """

        def vacuumed(*, dry_run: bool) -> dict[str, tuple[int, int]]:
            removed = self._in_parallel(lambda name: self.table(name).vacuum(hours, dry_run=dry_run), self.tables())
            return removed | self.log.vacuum(hours, dry_run=dry_run)

        if not self.state.step:
            raise self.no_tables()
        removed = vacuumed(dry_run=True)
        if dry_run or not any(files for files, _ in removed.values()):
            return removed
        self.begin()
        self.log.begin(self.step, VACUUM)
        removed = vacuumed(dry_run=False)
        self._kept_up(VACUUM)
        return removed

    def _kept_up(self, action: str) -> None:
        """Makes a step of versions that upkeep has made."""
        self.state = self.log.complete(self.step, action, self._with_versions(self.state))
        self.abandon()


def _computed(frame: DataFrame) -> Any:
    """The rows of a frame as a ``pyarrow.Table``. Raises CommandError for a known reason why tasks cannot work."""
    # Arrow takes no struct that is null and whose fields must not be; as text a type says nothing of nulls.
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
    """No rows of those columns, and one that Spark's optimizer knows to be empty: what is joined with it goes, too."""
    columns = (f"CAST(NULL AS {kind}) AS `{name}`" for name, kind in spark_columns(fields))
    return spark.sql(f"SELECT {', '.join(columns)} WHERE false")


def location(place: str) -> str:
    """A place as all paths below it begin: absolute, without a slash at its end. Raises UsageError."""
    place = remote.plain(place)
    place = place.rstrip("/") if remote.is_remote(place) else os.path.abspath(place)
    if (unsuitable := _UNSUITABLE.search(place)) is not None:
        raise UsageError(
            f"{place!r}: {unsuitable[0]!r} cannot be part of the path of a Delta table", hint="another --out"
        )
    return place


def for_spark(place: str) -> str:
    """A place that :func:`location` gave, as Spark and Hadoop name it."""
    if not remote.is_remote(place):
        return f"file://{place}"  # without it a cluster takes it for a path of its own file system
    scheme, _, rest = place.partition("://")
    return f"{_FOR_SPARK.get(scheme, scheme)}://{rest}"


def _tidy(table: DeltaTable) -> None:
    """Makes one file of small ones, where there are many."""
    parts: dict[str | None, list[DataFile]] = {}
    for file in table.files.values():
        if file.size < _SMALL_FILE:
            parts.setdefault(file.partition, []).append(file)
    for files in parts.values():
        if len(files) > _MOST_SMALL_FILES:
            merged = table.writer.merge(files)
            written = {file.path for file in table.written_files()}
            table.writer.remove(file for file in files if file.path in written)
            table.drop(files)
            table.add(merged)


class _Writing:
    """Rows of a frame as files of a table: what a task does with them. It gives the files, pickled, as one row."""

    def __init__(self, writer: DataFileWriter) -> None:
        self._writer = writer

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        files = self._writer.write_frame(batches)
        if files:
            yield pickled(files)


class _Reading:
    """Reads the rows of one file in a task."""

    def __init__(self, writer: DataFileWriter) -> None:
        self._writer = writer

    def __call__(self, piece: bytes) -> Iterator[Any]:
        for rows in self._writer.read([pickle.loads(piece)]):
            yield from rows.to_batches()
