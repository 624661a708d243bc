"""Tables whose rows say in columns which batch they are of: what formats with transactions of their own have in common.

The rule is that of the directories (``parquet_tables``): a step writes rows under a number of its own, readers take
the batches that count, and what does not count is deleted after the commit or by the next writer.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from kshell.errors import UsageError
from kshell.spark.schemas import spark_schema
from kshell.spark.warehouse.catalog import BATCH, CLUSTER, TableSpec
from kshell.spark.warehouse.commits import ALL, CLOSED, CURRENT, Commits
from kshell.spark.warehouse.parquet_tables import Written, empty, part_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Kept = Mapping[str, Mapping[str, Iterable[int]]]
"""Part -> cluster -> batches."""


class RowTables(ABC):
    """The tables below a place, in one format. ``spark`` gives the session when it is needed.

    Every method raises UsageError where the session lacks the format.
    """

    takes_files = False
    """Whether tasks may write files themselves: their transactions are the formats' own."""

    def __init__(self, spark: Callable[[], SparkSession], commits: Commits) -> None:
        self._given = spark
        self._place = commits.place
        self._storage = commits.storage
        self._is_ready = False

    # --- what a format has of its own ---

    @abstractmethod
    def _prepare(self, spark: Any) -> None:
        """Makes the session know the place; raises what Spark raises where the format is not there."""

    @abstractmethod
    def _hint(self) -> str:
        """What a session lacks that cannot be prepared."""

    @abstractmethod
    def _is_there(self, spec: TableSpec) -> bool:
        """Whether the table was ever written."""

    @abstractmethod
    def _name(self, spec: TableSpec) -> str:
        """The table in SQL."""

    @abstractmethod
    def _create(self, spec: TableSpec, rows: DataFrame) -> None:
        """A new table, split by ``_split_by``, without rows; ``rows`` has its columns."""

    @abstractmethod
    def _put(self, spec: TableSpec, rows: DataFrame, instead_of: str) -> None:
        """Adds rows in the place of those of a condition (none if empty), in one transaction."""

    @abstractmethod
    def _files(self, spec: TableSpec, kept: Kept) -> DataFrame:
        """The columns ``path`` and ``size`` (bytes), a row a file with rows of those batches."""

    # --- what they share ---

    def read(self, spec: TableSpec, kept: Kept) -> DataFrame:
        """The rows of those batches."""
        spark, condition = self._session(), condition_of(spec, kept)
        if not condition or not self._is_there(spec):
            return empty(cast("SparkSession", spark), spec)
        frame: DataFrame = spark.table(self._name(spec)).where(condition)
        # A format may have stored a wider type (Iceberg has no 16-bit numbers).
        fields = spark_schema(spec.fields).fields
        return frame.select(*[frame[field.name].cast(field.dataType).alias(field.name) for field in fields])

    def write(self, spec: TableSpec, frame: DataFrame, step: int, clusters: int) -> Written:
        """Writes the rows as a step's, instead of what a lone batch of that number had; about so many clusters."""
        functions = importlib.import_module("pyspark.sql.functions")
        spark = self._session()
        rows = frame.withColumn(BATCH, functions.lit(step))
        if not self._is_there(spec):
            self._create(spec, empty(spark, spec).withColumn(BATCH, functions.lit(step)))
        if spec.split_by and clusters > 1:
            rows = rows.hint("rebalance", *[functions.col(name) for name in spec.split_by])
        batch = f"{BATCH} = {step}"
        self._put(spec, rows, "" if spec.split_by else batch)
        # Asked of the table, because formats run queries of their own in a write, which no observation sees.
        counted = spark.table(self._name(spec)).where(batch).selectExpr(f"{part_of(spec)} AS part", CLUSTER)
        seen: dict[str, set[str]] = defaultdict(set)
        total = 0
        for name, cluster, count in counted.groupBy("part", CLUSTER).count().collect():
            seen[name].add(cluster)
            total += count
        return Written(total, {name: frozenset(names) for name, names in seen.items()})

    def remove(self, spec: TableSpec, gone: Kept) -> None:
        """Deletes the rows of batches that nobody reads any more."""
        condition = condition_of(spec, gone)
        spark = self._session() if condition else None
        if spark is not None and self._is_there(spec):
            spark.sql(f"DELETE FROM {self._name(spec)} WHERE {condition}")

    def sweep(self, spec: TableSpec, kept: Kept) -> None:
        """Deletes the rows of a table that are not of those batches: a writer was killed."""
        spark = self._session()
        if not self._is_there(spec):
            return
        wanted = set(_keys(spec, kept))
        columns = [*spec.split_by, BATCH]
        gone: dict[str, dict[str, list[int]]] = {}
        for row in spark.table(self._name(spec)).select(*columns).distinct().collect():
            part = (CURRENT if row[spec.closes] is spec.has_versions else CLOSED) if spec.closes else ALL
            key = (part, row[CLUSTER] if spec.split_by else "", row[BATCH])
            if key not in wanted:
                gone.setdefault(part, {}).setdefault(key[1], []).append(key[2])
        self.remove(spec, gone)

    def size(self, spec: TableSpec, kept: Kept) -> list[tuple[str, int]]:
        """(path, bytes) of the files that count, sorted."""
        if not condition_of(spec, kept):
            return []
        self._session()
        return sorted((path, size) for path, size in self._files(spec, kept).collect()) if self._is_there(spec) else []

    def rows(self, spec: TableSpec, kept: Kept, files: Iterable[tuple[str, int]]) -> int:
        """How many rows those batches have; ``files`` is for formats that count in files."""
        return self.read(spec, kept).count() if list(files) else 0

    def _session(self) -> Any:
        spark: Any = self._given()
        if not self._is_ready:
            try:
                self._prepare(spark)
            except Exception as error:  # of the JVM, by name only: whatever it is, nothing can be read or written
                raise UsageError(f"Spark {spark.version}: this session lacks the format", hint=self._hint()) from error
            self._is_ready = True
        return spark

    def _root(self, spec: TableSpec) -> str:
        return self._storage.join(self._place, *spec.path.split("/"))


def condition_of(spec: TableSpec, kept: Kept, prefix: str = "") -> str:
    """In SQL, which rows are of those batches; empty: none. ``prefix``: before the names of columns."""
    alike: dict[tuple[str, tuple[int, ...]], set[str]] = defaultdict(set)
    for part, cluster, batch in _grouped(spec, kept):
        alike[part, batch].add(cluster)
    made = []
    for (part, batches), clusters in sorted(alike.items()):
        conditions = [f"{prefix}{BATCH} IN ({', '.join(map(str, batches))})"]
        if spec.split_by:
            conditions.append(f"{prefix}{CLUSTER} IN ({', '.join(map(literal, sorted(clusters)))})")
        if spec.closes:
            conditions.append(f"{prefix}{spec.closes} = {spec.told(part)}")
        made.append(f"({' AND '.join(conditions)})")
    return " OR ".join(made)


def literal(text: str) -> str:
    """A text in SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def quoted(name: str) -> str:
    """A name in SQL, whatever is in it."""
    return f"`{name.replace('`', '``')}`"


def _grouped(spec: TableSpec, kept: Kept) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    """(part, cluster, batches); where clusters lie together, one with all batches and without a cluster."""
    for part, held in kept.items():
        if spec.split_by:
            for cluster, steps in held.items():
                if batches := tuple(sorted(set(steps))):
                    yield part, cluster, batches
        elif together := {step for steps in held.values() for step in steps}:
            yield part, "", tuple(sorted(together))


def _keys(spec: TableSpec, kept: Kept) -> Iterator[tuple[str, str, int]]:
    for part, cluster, batches in _grouped(spec, kept):
        for batch in batches:
            yield part, cluster, batch
