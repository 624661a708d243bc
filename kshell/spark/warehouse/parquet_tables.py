"""Tables as directories of Parquet: ``silver/topics/isCurrent=true/clusterId=X/batch=12/…``.

Every step writes directories of its own, and readers are given the directories that count.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from kshell.errors import DataError
from kshell.sources import remote
from kshell.sources.files import is_remote
from kshell.spark.schemas import spark_schema
from kshell.spark.warehouse.catalog import BATCH, CLUSTER, TableSpec
from kshell.spark.warehouse.commits import ALL, CLOSED, CURRENT, EVERY, Commits
from kshell.spark.warehouse.parts import CODEC, Part, prepare, reveal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ESCAPED = re.compile(r"[\x01-\x1f\x7f\"#%'*/:=?\\{\[\]^]")
"""As Spark writes the values of partition columns (ExternalCatalogUtils.escapePathName)."""
WRITING = {
    "compression": CODEC,
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",  # no _SUCCESS beside the data
}
_MANY = 8
"""Clusters in one write from which on rows are brought together before, so that each has few files."""
_SET = "written"


class Written(NamedTuple):
    """What a write has put into a table: rows, and the clusters that have any, by part."""

    rows: int
    clusters: Mapping[str, frozenset[str]]


def empty(spark: SparkSession, spec: TableSpec) -> DataFrame:
    """No rows, with the table's columns."""
    functions = _functions()
    fields = spark_schema(spec.fields).fields
    columns = [functions.lit(None).cast(one.dataType).alias(one.name) for one in fields]
    frame: DataFrame = spark.range(0).select(*columns)
    return frame


def part_of(spec: TableSpec) -> str:
    """In SQL, the part of its table that a row belongs to."""
    return f"if({spec.closes} = {spec.told(CURRENT)}, '{CURRENT}', '{CLOSED}')" if spec.closes else f"'{ALL}'"


def observed(spec: TableSpec, frame: DataFrame) -> tuple[DataFrame, Callable[[], Written]]:
    """The frame, and what to ask once it was written."""
    functions, sql = _functions(), importlib.import_module("pyspark.sql")
    seen = sql.Observation()
    pair = functions.struct(functions.expr(part_of(spec)).alias("part"), functions.col(CLUSTER).alias("cluster"))
    watched = frame.observe(
        seen, functions.count(functions.lit(1)).alias("rows"), functions.collect_set(pair).alias(_SET)
    )

    def told() -> Written:
        found = seen.get
        clusters: dict[str, set[str]] = {}
        for one in found[_SET] or ():
            clusters.setdefault(one["part"], set()).add(one["cluster"])
        return Written(found["rows"], {part: frozenset(names) for part, names in clusters.items()})

    return watched, told


class ParquetTables:
    """The tables below a place. ``spark`` gives the session when it is needed."""

    def __init__(self, spark: Callable[[], SparkSession], commits: Commits) -> None:
        self._spark = spark
        self._place = commits.place
        self._storage = commits.storage

    def read(self, spec: TableSpec, kept: Mapping[str, Mapping[str, Iterable[int]]]) -> DataFrame:
        """The rows of those batches."""
        spark, places = self._spark(), [self._storage.for_spark(path) for path in self.places(spec, kept)]
        if not places:
            return empty(spark, spec)
        reader = spark.read.schema(spark_schema(spec.fields)).option("__globPaths__", "false")
        try:
            frame = reader.option("basePath", self._storage.for_spark(self._root(spec))).parquet(*places)
        except Exception as error:
            missing = next((path for path in self.places(spec, kept) if not self._storage.exists(path)), None)
            if missing is None:
                raise
            hint = "a step may have replaced it: read again; else restore it, or make the tables anew in another --out"
            raise DataError(f"{missing}: is not there, and the tables have it", hint=hint) from error
        return frame.select(*[field.name for field in spec.fields])

    def write(self, spec: TableSpec, frame: DataFrame, step: int, clusters: int) -> Written:
        """Writes the rows as a step's; about so many clusters have some. A lone directory is replaced."""
        functions = _functions()
        root = self._storage.for_spark(self._root(spec))
        if spec.split_by and clusters > _MANY:
            frame = frame.hint("rebalance", *[functions.col(name) for name in spec.split_by])
        frame, told = observed(spec, frame)
        if not spec.split_by:
            frame.write.mode("overwrite").options(**WRITING).parquet(f"{root}/{BATCH}={step}")
        else:
            numbered = frame.withColumn(BATCH, functions.lit(step))
            writer = numbered.write.mode("append").options(**WRITING).partitionBy(*spec.split_by, BATCH)
            writer.parquet(root)
        return told()

    @property
    def takes_files(self) -> bool:
        """Whether tasks may write files themselves: how to get into a store, its connector for Spark is told."""
        return not is_remote(self._place)

    def take(self, spec: TableSpec, step: int, write: Callable[[str], Iterable[Part]]) -> Written:
        """A step's rows, which ``write`` puts as files into the folder that it is given. A lone directory is replaced.

        Raises CommandError.
        """
        assert self.takes_files and not spec.split_by
        [folder] = self.places(spec, {ALL: {EVERY: [step]}})
        self._storage.remove(folder)
        hidden = prepare(folder)
        parts = [part for part in write(hidden) if part.rows]
        reveal(hidden, parts)
        if not parts:
            self._storage.remove(folder)
        clusters = frozenset[str]().union(*(part.clusters for part in parts))
        return Written(sum(part.rows for part in parts), {ALL: clusters})

    def remove(self, spec: TableSpec, gone: Mapping[str, Mapping[str, Iterable[int]]]) -> None:
        """Removes batches that nobody reads any more."""
        for path in self.places(spec, gone):
            self._storage.remove(path)
            above = path.rpartition("/")[0]
            if spec.split_by and not self._storage.names(above):
                self._storage.remove(above)

    def sweep(self, spec: TableSpec, kept: Mapping[str, Mapping[str, Iterable[int]]]) -> None:
        """Removes everything of a table that is not among those batches: a writer was killed."""
        wanted = set(self.places(spec, kept))
        above = {path[: at.start()] for path in wanted for at in re.finditer("/", path)}

        def clean(folder: str) -> None:
            for name in self._storage.names(folder):
                path = self._storage.join(folder, name)
                if path in above:
                    clean(path)
                elif path not in wanted:
                    self._storage.remove(path)

        clean(self._root(spec))

    def places(self, spec: TableSpec, kept: Mapping[str, Mapping[str, Iterable[int]]]) -> list[str]:
        """The directories of those batches, each once."""
        return list(dict.fromkeys(self._places(spec, kept)))

    def size(self, spec: TableSpec, kept: Mapping[str, Mapping[str, Iterable[int]]]) -> list[tuple[str, int]]:
        """(path, bytes) of the files that count."""
        return [file for path in self.places(spec, kept) for file in self._storage.files(path)]

    def rows(
        self, spec: TableSpec, kept: Mapping[str, Mapping[str, Iterable[int]]], files: Iterable[tuple[str, int]]
    ) -> int:
        """How many rows those files (what ``size`` gave) have, by their footers."""
        parquet: Any = importlib.import_module("pyarrow.parquet")
        total = 0
        for path, _ in files:
            if is_remote(path):
                system, inner = remote.system(path)
                total += parquet.read_metadata(inner, filesystem=system).num_rows
            else:
                total += parquet.read_metadata(path).num_rows
        return total

    def _places(self, spec: TableSpec, kept: Mapping[str, Mapping[str, Iterable[int]]]) -> Iterator[str]:
        for part, batches in kept.items():
            for cluster, steps in batches.items():
                for step in steps:
                    yield self._storage.join(self._root(spec), *_folders(spec, part, cluster), f"{BATCH}={step}")

    def _root(self, spec: TableSpec) -> str:
        return self._storage.join(self._place, *spec.path.split("/"))


def _folders(spec: TableSpec, part: str, cluster: str) -> list[str]:
    if not spec.split_by:
        return []
    assert cluster != EVERY
    folders = [f"{spec.closes}={spec.told(part)}"] if spec.closes else []
    return [*folders, f"{CLUSTER}={escaped(cluster)}"]


def escaped(value: str) -> str:
    """The value of a partition column as a directory's name has it."""
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", value)


def _functions() -> Any:
    return importlib.import_module("pyspark.sql.functions")
