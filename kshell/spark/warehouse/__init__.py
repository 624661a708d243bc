"""A warehouse: the tables of a fleet below one place, written in steps that count as a whole or not at all.

::

    warehouse = Warehouse(spark, "/data/tables")
    with warehouse.writing():
        warehouse.begin()
        warehouse.append("records", frame)
        warehouse.commit({"4L6g3nShT-eMCtK--X86sw": ClusterState(reached)})

Between ``begin`` and ``commit``, ``read`` gives what the step has written as well.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, cast

from kshell.errors import CommandError, KshellError, LeaseLostError, UsageError
from kshell.spark.formats import PARQUET, tables_of
from kshell.spark.warehouse import catalog
from kshell.spark.warehouse.catalog import CLUSTER, TableSpec
from kshell.spark.warehouse.commits import (
    ALL,
    CLOSED,
    CURRENT,
    EVERY,
    ClusterState,
    Commits,
    Parts,
    State,
    copied,
    difference,
    put_instead,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kshell.spark.warehouse.parquet_tables import ParquetTables, Written
    from kshell.spark.warehouse.parts import Part
    from kshell.spark.warehouse.row_tables import RowTables

_NONE: Mapping[str, Mapping[str, list[int]]] = {}


class Warehouse:
    """``spark``: a session, or what gives one once it is needed. ``format``: of a new warehouse; one that is there
    has its own.

    Raises UsageError for a format that is not the warehouse's, DataError for a state that cannot be read.
    """

    def __init__(
        self, spark: SparkSession | Callable[[], SparkSession] | None, out: str, format: str | None = None
    ) -> None:
        self.commits = Commits(out)
        self.place = self.commits.place
        self.state = self.commits.latest()
        self.format = self.state.format or format or PARQUET
        if format not in (None, self.format):
            raise UsageError(
                f"{self.place}: its tables are {self.format}, not {format}", hint="a format has its own --out"
            )
        self._session = spark
        self.tables: ParquetTables | RowTables = tables_of(self.format)(lambda: self.spark, self.commits)
        self._parts: Parts = copied(self.state.parts)
        self._rows: dict[str, int] = {}
        self.step = 0
        """The number of the step that was begun; 0: none."""
        self._is_littered = False
        """Whether something that was written was given up, and the writer goes on."""

    @property
    def spark(self) -> SparkSession:
        """The session, made now if it was not yet."""
        assert self._session is not None, "only a session can read and write tables"
        if not hasattr(self._session, "sql"):
            self._session = self._session()
        return cast("SparkSession", self._session)

    # --- reading ---

    def read(self, name: str, clusters: Collection[str] | None = None, part: str | None = None) -> DataFrame:
        """A table's rows: of some clusters, of one part (``current``: versions that have not ended). UsageError for a
        name that there is none of."""
        spec = catalog.table(name)
        kept = {one: held for one, held in self._parts.get(name, _NONE).items() if part in (None, one)}
        if clusters is None:
            return self.tables.read(spec, kept)
        if not spec.is_fleet:
            kept = {one: {name: held[name] for name in held if name in clusters} for one, held in kept.items()}
        frame = self.tables.read(spec, kept)
        return frame if spec.by_cluster else frame.where(frame[CLUSTER].isin(sorted(clusters)))

    def read_batches(self, name: str, steps: Collection[int], clusters: Collection[str]) -> DataFrame:
        """The rows of some clusters that certain steps have appended."""
        kept = {
            part: {
                cluster: [step for step in held[cluster] if step in steps] for cluster in held if cluster in clusters
            }
            for part, held in self._parts.get(name, _NONE).items()
        }
        frame = self.tables.read(catalog.table(name), kept)
        return frame.where(frame[CLUSTER].isin(sorted(clusters)))

    def renew(self) -> bool:
        """Reads the state again, between steps; whether another step counts now."""
        before, self.state = self.state.step, self.commits.latest()
        self.abandon()
        return self.state.step != before

    def no_tables(self) -> CommandError:
        """What to raise where some are needed, and no step was ever committed."""
        return CommandError(f"{self.place}: there are no tables", hint="`kshell-pipeline run` makes them")

    def parts(self, name: str) -> Mapping[str, Mapping[str, list[int]]]:
        """Which batches make up a table."""
        return self._parts.get(name, _NONE)

    # --- writing ---

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """As the only writer. What a killed one left is removed. Raises CommandError where another one writes,
        LeaseLostError where one took over meanwhile, in place of what then went wrong.
        """
        with self.commits.lock:
            self.state = self.commits.latest()
            self._parts = copied(self.state.parts)
            if self.commits.is_unclean():
                self._sweep()
                self.commits.end()
            try:
                yield
            except Exception as error:
                self._look_for_another(error)
                raise
            finally:
                self.abandon()

    def _look_for_another(self, error: Exception) -> None:
        """Another writer removes what does not count, so anything may go wrong here; and its numbers are others, so
        what this one's step wrote can go.
        """
        try:
            self.commits.lock.check()
        except LeaseLostError as lost:
            for name, held in self._parts.items():
                spec, counts = catalog.table(name), self.state.parts.get(name, _NONE)
                with contextlib.suppress(Exception):  # the session may be gone: then it lies there, and does not count
                    self.tables.remove(spec, difference(held, counts, by_cluster=spec.by_cluster))
            raise lost from error
        except KshellError:
            pass  # the store is not to be reached: what was raised says so

    def begin(self) -> int:
        """Begins a step; gives its number."""
        assert self.commits.lock.is_held, "a step is for the only writer"
        self._is_littered |= bool(self.step)
        self.abandon()
        self.commits.begin()
        self.step = self.state.step + 1 + self.commits.lock.passed_over
        return self.step

    def abandon(self) -> None:
        """Forgets a step that was not committed; what it wrote is removed by the next writer."""
        self._parts = copied(self.state.parts)
        self._rows = {}
        self.step = 0

    def append(self, name: str, frame: DataFrame, clusters: int = 1) -> int:
        """Rows more; about so many clusters have some. Gives how many rows the step has written."""
        spec = self._own(name)
        return self._appended(name, self.tables.write(spec, catalog.as_declared(spec, frame), self.step, clusters))

    def append_files(self, name: str, write: Callable[[str], Iterable[Part]]) -> int:
        """The same of files that ``write`` puts into a folder, where ``tables.takes_files``."""
        return self._appended(name, cast("ParquetTables", self.tables).take(self._own(name), self.step, write))

    def _appended(self, name: str, written: Written) -> int:
        held = self._parts.setdefault(name, {}).setdefault(ALL, {})
        for cluster in written.clusters.get(ALL, ()):
            held.setdefault(cluster, []).append(self.step)
        self._rows[name] = written.rows
        return written.rows

    def retract(self, name: str) -> None:
        """What the step has appended to a table does not count; it may append again."""
        for batches in self._parts.get(name, {}).get(ALL, {}).values():
            if self.step in batches:
                batches.remove(self.step)
                self._is_littered = True

    def replace(self, name: str, frame: DataFrame, clusters: Collection[str]) -> int:
        """All rows of those clusters, of which some may have none; of a fleet's table, all rows. Gives how many."""
        spec = self._own(name)
        written = self.tables.write(spec, catalog.as_declared(spec, frame), self.step, len(clusters))
        held = self._parts.setdefault(name, {}).setdefault(ALL, {})
        if spec.is_fleet:
            held.clear()
            held[EVERY] = [self.step]
        else:
            put_instead(held, clusters, written.clusters.get(ALL, ()), self.step)
        self._rows[name] = self._rows.get(name, 0) + written.rows  # other clusters may come later in a step
        return written.rows

    def extend(self, name: str, frame: DataFrame, clusters: Collection[str], anew: Collection[str] = ()) -> int:
        """Rows that have ended, or are final, are more rows; the others are all that those clusters have. How many.

        ``anew``: clusters whose rows of the first kind do not count any more, but for these.
        """
        spec = self._own(name)
        written = self.tables.write(spec, catalog.as_declared(spec, frame), self.step, len(clusters))
        held = self._parts.setdefault(name, {})
        for cluster in anew:
            held.get(CLOSED, {}).pop(cluster, None)
        for cluster in written.clusters.get(CLOSED, ()):
            held.setdefault(CLOSED, {}).setdefault(cluster, []).append(self.step)
        put_instead(held.setdefault(CURRENT, {}), clusters, written.clusters.get(CURRENT, ()), self.step)
        self._rows[name] = written.rows
        return written.rows

    def reset(self, clusters: Collection[str]) -> None:
        """Nothing of those clusters counts any more. Before anything else of the step is written.

        What lies together with their rows is written again, as a batch of its own: the step has the number after it.
        """
        moved: list[tuple[str, DataFrame]] = []
        for name, held in self._parts.items():
            spec, gone = catalog.table(name), set()
            for batches in held.values():
                gone |= {step for one in clusters for step in batches.pop(one, ())}
            if not spec.by_cluster and not spec.is_fleet and (frame := self._move(spec, gone)) is not None:
                moved.append((name, frame))
        for name, frame in moved:
            self.append(name, frame)
        self.step += bool(moved)

    def _move(self, spec: TableSpec, steps: Collection[int]) -> DataFrame | None:
        """Batches go; gives the rows of them that still count, if any, which are to be written again."""
        held = self._parts[spec.name][ALL]
        own = {cluster: [step for step in batches if step in steps] for cluster, batches in held.items()}
        others = sorted(cluster for cluster, batches in own.items() if batches)
        if not others:
            return None
        held.update({cluster: [step for step in held[cluster] if step not in steps] for cluster in others})
        frame = self.tables.read(spec, {ALL: own})
        return frame.where(frame[CLUSTER].isin(others))

    def compact(self, name: str, steps: Collection[int]) -> int:
        """Puts batches together that steps have appended; gives the rows that were written again."""
        spec = self._own(name)
        if not spec.by_cluster:
            moved = self._move(spec, steps)
            return 0 if moved is None else self.append(name, moved)
        held = self._parts[name][CLOSED]
        own = {cluster: [one for one in batches if one in steps] for cluster, batches in held.items()}
        own = {cluster: batches for cluster, batches in own.items() if len(batches) > 1}
        if not own:
            return 0
        frame = self.tables.read(spec, {CLOSED: own})
        written = self.tables.write(spec, catalog.as_declared(spec, frame), self.step, len(own))
        for cluster, gone in own.items():
            held[cluster] = [step for step in held[cluster] if step not in gone] + [self.step]
        return written.rows

    def commit(
        self, clusters: Mapping[str, ClusterState], failed: Mapping[str, Mapping[str, str]] | None = None
    ) -> State:
        """Makes the step count, with the new states of the clusters that it was about; removes what no longer does.

        ``failed``: as in a state, of all clusters; ``None``: as it was.
        """
        before = self.state
        states, rows = {**before.clusters, **clusters}, {**before.rows, **self._rows}
        unread = before.failed if failed is None else failed
        made = State(self.step, self.format, states, copied(self._parts), rows, unread)
        self.commits.commit(made)
        self.state = made
        for name, held in before.parts.items():
            spec = catalog.table(name)
            self.tables.remove(spec, difference(held, made.parts.get(name, _NONE), by_cluster=spec.by_cluster))
        if self._is_littered:
            self._sweep()
        self.commits.end()
        self.abandon()
        return made

    def _sweep(self) -> None:
        """Removes everything that does not count."""
        for spec in catalog.tables().values():
            self.tables.sweep(spec, self.state.parts.get(spec.name, _NONE))
        self._is_littered = False

    def _own(self, name: str) -> TableSpec:
        assert self.step, "rows are written within a step"
        return catalog.table(name)
