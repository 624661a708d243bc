"""The data files of a table: Parquet that Spark tasks, or the driver, write and read with Arrow. Free of Spark.

A file has a unique name, and belongs to its table only once a commit of the Delta log names it. So files of a task that
failed, was killed, or ran twice do no harm; ``kshell-pipeline vacuum`` removes them. The same code writes local files
and objects of a store, so Spark needs no connector for the store.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import math
import os
import secrets
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from kshell.errors import CommandError, DataError, KshellError, UsageError
from kshell.sources import remote
from kshell.spark.schemas import Row
from kshell.spark.tables.expectations import Breach, ExpectationCheck, Expectations
from kshell.tables.arrow import batches, schema
from kshell.tables.declaration import Field

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow.fs import FileSystem

CLUSTER = "clusterId"
CODEC = "zstd"
"""For records it needs less than half the bytes of snappy (Spark's default) in the same time."""
GROUP_BYTES = 32 << 20
"""About the size of a row group, in bytes of Arrow: the writer's buffer, and the unit that readers skip or share."""
FILE_BYTES = 128 << 20
"""Bytes of a file after which the next rows go into a new one; a change of few rows rewrites no more than one file."""
_PLAIN = ("json", "binary", "int64")
"""Types of columns without a dictionary: values hardly repeat, or are as short as a dictionary's indices."""
_LONGEST = 64
"""Characters of a text column's minimum and maximum in the statistics; longer ones are cut so that they stay bounds."""
WRITE_HINT = (
    "make room if it is full; tasks write there, too: --out must be one place for them and the driver (a mount, a URI)"
)
"""The hint of errors about tasks that cannot write."""


OTHER_COLUMNS = (
    "another release or another program made it: use that release, or make the tables again with `kshell-pipeline run`"
    " and a new --out"
)
"""The hint of errors about columns that are not as declared."""
_REPAIR = "the table's log names it: put it back, or make the tables again in another --out"


def _lost(path: str) -> DataError:
    """Return the error for a file that a table's log names, but that is missing."""
    return DataError(f"{path}: is not there any more", hint=_REPAIR)


class DataFile(NamedTuple):
    """A data file with its statistics, as the Delta log has it, so that readers can skip it without opening it."""

    path: str
    """Relative to the table's directory; ``isCurrent=true/part-….parquet`` if the table is partitioned."""
    size: int
    """The file's size in bytes."""
    rows: int
    partition: str | None
    """The value of the partition column, ``true`` or ``false``; ``None`` if the table has no such column."""
    least: Mapping[str, Any]
    """Column -> a lower bound of its values."""
    greatest: Mapping[str, Any]
    """Column -> an upper bound of its values."""
    nulls: Mapping[str, int]
    """Column -> how many of its values are null."""
    breaches: tuple[Breach, ...] = ()
    """The expectations that new rows broke when the file was written; rewritten rows are not checked again."""

    def statistics(self) -> str:
        """Return the statistics as JSON, as the Delta protocol has them (Per-file Statistics)."""
        values: dict[str, Any] = {"numRecords": self.rows}
        if self.nulls:
            values |= {"minValues": dict(self.least), "maxValues": dict(self.greatest), "nullCount": dict(self.nulls)}
        return json.dumps(values, separators=(",", ":"))

    def may_hold(self, clusters: Collection[str]) -> bool:
        """Whether the file may contain rows of any of these clusters, by the bounds of ``clusterId``."""
        first, last = self.least.get(CLUSTER), self.greatest.get(CLUSTER)
        return first is None or last is None or any(first <= cluster <= last for cluster in clusters)


class DataFileWriter(NamedTuple):
    """Writes and reads the data files of one table. It is pickled for tasks, so it has plain values only."""

    table: str
    """The table's directory, a local path or a URI."""
    fields: tuple[Field, ...]
    partition_by: str | None = None
    """The boolean column that the table is partitioned by: each value is a directory; ``None``: not partitioned."""
    expect: Expectations = ()
    """The expectations that rows are checked against while they are written."""

    def write(self, batches: Iterable[pa.RecordBatch], file_bytes: int | None = None) -> list[DataFile]:
        """Write ``pyarrow.RecordBatch`` objects as new files, and return these; without rows there is no file.

        The batches must have exactly the table's columns, in their order. Strings may be dictionary-encoded. A file
        ends with the row group that reaches ``file_bytes``; ``None``: :data:`FILE_BYTES`.
        Raises CommandError if the table's directory cannot be written to. After any error no file is left.
        """
        file_bytes = FILE_BYTES if file_bytes is None else file_bytes
        arrow, files, written = importlib.import_module("pyarrow"), dict[str | None, _OpenFile](), list[DataFile]()
        try:
            for rows in _groups(arrow, batches):
                for partition, part in self._partitions(rows):
                    if partition not in files:
                        files[partition] = _OpenFile(self, partition, part.schema)
                    files[partition].append(part)
                    if files[partition].size() >= file_bytes:
                        written.append(files[partition].close())
                        del files[partition]
            for partition in [*files]:
                written.append(files[partition].close())
                del files[partition]
        except BaseException as error:
            for file in files.values():
                file.discard()
            self.remove(written)
            if isinstance(error, OSError):
                raise CommandError(f"{self.table}: {remote.reason(error)}", hint=WRITE_HINT) from None
            raise
        return written

    def write_rows(self, rows: Iterable[Row]) -> list[DataFile]:
        """Write rows as :meth:`write` does; they may lack columns, which are then null."""
        return self.write(batches(importlib.import_module("pyarrow"), self.fields, rows))

    def write_frame(self, batches: Iterable[pa.RecordBatch]) -> list[DataFile]:
        """Write batches from Spark, in whose Arrow schema nested types have other field names; see :meth:`write`."""
        arrow = importlib.import_module("pyarrow")
        declared = schema(arrow, self.fields)
        return self.write(
            part for batch in batches for part in arrow.Table.from_batches([batch]).cast(declared).to_batches()
        )

    def without(self, file: DataFile, clusters: Collection[str]) -> list[DataFile] | None:
        """Rewrite a file without the rows of some clusters; return the new files, or ``None`` if it has no such row.

        Raises DataError for a file that is missing or cannot be read, UsageError if values of other columns would go.
        """
        arrow, compute = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.compute")
        unwanted = arrow.array(sorted(clusters), arrow.string())
        with self._opened(file) as parquet:
            there = compute.unique(parquet.read(columns=[CLUSTER]).column(CLUSTER))
            if not compute.any(compute.is_in(there, value_set=unwanted)).as_py():
                return None

            def remaining_rows() -> Iterator[pa.RecordBatch]:
                for rows in self._read(parquet, file, rewrites=True):
                    is_unwanted = compute.is_in(rows.column(CLUSTER), value_set=unwanted)
                    yield from rows.filter(compute.invert(is_unwanted)).to_batches()

            return self._replace(expect=()).write(remaining_rows())

    def merge(self, files: Sequence[DataFile], file_bytes: int | None = None) -> list[DataFile]:
        """Rewrite the rows of several files into as few as :meth:`write` makes. Raises as :meth:`without`."""

        rewriting = self._replace(expect=())  # these rows were checked when they were new
        rows = self.read(files, rewrites=True)
        return rewriting.write((batch for group in rows for batch in group.to_batches()), file_bytes)

    def read(self, files: Iterable[DataFile], *, rewrites: bool = False) -> Iterator[pa.Table]:
        """Read files as ``pyarrow.Table`` objects with the declared columns, one per row group. Raises DataError.

        With ``rewrites``, values in other columns are a UsageError, as they would be lost.
        """
        for file in files:
            with self._opened(file) as parquet:
                yield from self._read(parquet, file, rewrites=rewrites)

    def rows_of(self, files: Iterable[DataFile], clusters: Collection[str] | None = None) -> pa.Table:
        """Read all rows of files, or the rows of some clusters, as one ``pyarrow.Table``. Raises DataError."""
        arrow, compute = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.compute")
        parts = [*self.read(files)]
        rows = arrow.concat_tables(parts) if parts else schema(arrow, self.fields).empty_table()
        if clusters is None:
            return rows
        return rows.filter(compute.is_in(rows.column(CLUSTER), value_set=arrow.array(clusters, arrow.string())))

    def remove(self, files: Iterable[DataFile]) -> None:
        """Delete files that no commit has named. Errors are ignored, since a leftover file does no harm."""
        system, root = file_system(self.table)
        for file in files:
            with contextlib.suppress(OSError):
                system.delete_file(f"{root}/{file.path}")

    def loss(self, files: Sequence[DataFile]) -> DataError | None:
        """Return an error for the first file that is missing or has another size, if any. Raises CommandError."""
        system, root = file_system(self.table)
        try:
            infos = system.get_file_info([f"{root}/{file.path}" for file in files])
        except OSError as error:
            raise CommandError(f"{self.table}: {remote.reason(error)}") from None
        for file, info in zip(files, infos, strict=True):
            path = f"{self.table}/{file.path}"
            if info.size is None:
                return _lost(path)
            if info.size != file.size:
                return DataError(f"{path}: has {info.size:,} bytes instead of {file.size:,}", hint=_REPAIR)
        return None

    @contextlib.contextmanager
    def _opened(self, file: DataFile) -> Iterator[pq.ParquetFile]:
        parquet = importlib.import_module("pyarrow.parquet")
        system, root = file_system(self.table)
        path = f"{self.table}/{file.path}"
        try:
            with system.open_input_file(f"{root}/{file.path}") as opened, parquet.ParquetFile(opened) as parquet_file:
                yield parquet_file
        except FileNotFoundError:
            raise _lost(path) from None
        except (OSError, importlib.import_module("pyarrow").ArrowException) as error:
            raise self._failure(file, error) from None

    def _failure(self, file: DataFile, error: Exception) -> KshellError:
        """Return the error for a file that could not be read: DataError only if all of it is there, and is damaged."""
        arrow, parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
        system, root = file_system(self.table)
        path = f"{self.table}/{file.path}"
        try:
            with system.open_input_stream(f"{root}/{file.path}") as stream:
                content = arrow.py_buffer(stream.read())
        except OSError as failure:
            return remote.failure(path, failure)
        try:
            parquet.read_table(arrow.BufferReader(content))
        except (OSError, arrow.ArrowException):
            return DataError(f"{path}: {remote.reason(error)}", hint=_REPAIR)
        return remote.failure(path, OSError(remote.reason(error)))  # a disk or a store that has failed for a moment

    def _read(self, parquet: pq.ParquetFile, file: DataFile, *, rewrites: bool) -> Iterator[pa.Table]:
        """Read row groups with the declared columns; a column that was added after the file was written is null."""
        arrow = importlib.import_module("pyarrow")
        declared = schema(arrow, self.fields)
        names = set(parquet.schema_arrow.names)
        for number in range(parquet.num_row_groups):
            rows = parquet.read_row_group(number)
            for name in sorted(names - {*declared.names}) if rewrites else ():
                if rows.column(name).null_count < rows.num_rows:
                    raise UsageError(
                        f"{self.table}: column {name} is not one that this release of kshell makes", hint=OTHER_COLUMNS
                    )
            columns = []
            for field in declared:
                if field.name in names:
                    columns.append(rows.column(field.name).cast(field.type))
                elif field.name == self.partition_by:
                    columns.append(arrow.repeat(arrow.scalar(file.partition == "true"), rows.num_rows))
                else:
                    columns.append(arrow.nulls(rows.num_rows, field.type))
            yield arrow.Table.from_arrays(columns, schema=declared)

    def _partitions(self, rows: pa.Table) -> Iterator[tuple[str | None, pa.Table]]:
        """Split rows by the partition column, which the files themselves do not have."""
        if self.partition_by is None:
            yield None, rows
            return
        compute = importlib.import_module("pyarrow.compute")
        column = rows.column(self.partition_by)
        assert not column.null_count, self.partition_by
        rest = rows.drop_columns([self.partition_by])
        for partition, mask in (("true", column), ("false", compute.invert(column))):
            part = rest.filter(mask)
            if part.num_rows:
                yield partition, part


class _OpenFile:
    """A data file that is being written: :meth:`append` rows, then :meth:`close` or :meth:`discard` it."""

    def __init__(self, writer: DataFileWriter, partition: str | None, arrow_schema: pa.Schema) -> None:
        folder = "" if partition is None else f"{writer.partition_by}={partition}/"
        self._path = f"{folder}part-{secrets.token_hex(12)}.{CODEC}.parquet"
        self._partition = partition
        self._check = ExpectationCheck(writer.expect, partition)
        self._system, root = file_system(writer.table)
        self._whole = f"{root}/{self._path}"
        if not remote.is_remote(writer.table):
            os.makedirs(os.path.dirname(self._whole), exist_ok=True)
        self._sink = self._system.open_output_stream(self._whole)
        self._footers: list[pq.FileMetaData] = []
        self._writer: Any = None
        parquet = importlib.import_module("pyarrow.parquet")
        nested = any(not isinstance(field.type, str) for field in writer.fields)
        coded = [field.name for field in writer.fields if field.type not in _PLAIN]
        try:
            self._writer = parquet.ParquetWriter(
                self._sink,
                arrow_schema,
                compression=CODEC,
                use_dictionary=nested or coded,
                store_schema=False,
                metadata_collector=self._footers,
            )
        except BaseException:
            self.discard()
            raise

    def append(self, rows: pa.Table) -> None:
        self._writer.write_table(rows)
        self._check.add(rows)

    def size(self) -> int:
        return int(self._sink.tell())

    def close(self) -> DataFile:
        """Finish the file and return it with its statistics."""
        self._writer.close()
        size = self._sink.tell()
        self._sink.close()
        file = _described(self._path, size, self._partition, self._footers[0])
        return file._replace(breaches=self._check.breaches())

    def discard(self) -> None:
        for opened in (self._writer, self._sink):
            with contextlib.suppress(Exception):  # closing may be what failed, or opening may have failed before
                opened.close()
        with contextlib.suppress(OSError):
            self._system.delete_file(self._whole)


def _described(path: str, size: int, partition: str | None, footer: pq.FileMetaData) -> DataFile:
    """Make the statistics of a file from its Parquet footer: rows, and bounds of columns neither nested nor binary.

    Either all of these columns have bounds or none has: if only some had, readers that use pyarrow's datasets would
    take a missing bound for one that no value fulfils, and skip the file.
    """
    return DataFile(path, size, footer.num_rows, partition, *(_bounds(footer) or ({}, {}, {})))


def _bounds(footer: pq.FileMetaData) -> tuple[dict[str, Any], dict[str, Any], dict[str, int]] | None:
    """Return minimum, maximum and number of nulls by column; ``None`` if any column has values but no bounds."""
    least: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    columns = [footer.schema.column(number) for number in range(len(footer.schema))]
    binary = {
        leaf.path for leaf in columns if leaf.physical_type == "BYTE_ARRAY" and leaf.logical_type.type != "STRING"
    }
    for group in (footer.row_group(number) for number in range(footer.num_row_groups)):
        for column in (group.column(number) for number in range(group.num_columns)):
            name, statistics = column.path_in_schema, column.statistics
            if "." in name or name in binary:
                continue
            if statistics is None or not statistics.has_null_count:
                return None
            nulls[name] = nulls.get(name, 0) + statistics.null_count
            if statistics.null_count == group.num_rows:
                continue
            if not statistics.has_min_max or not (_is_bound(statistics.min) and _is_bound(statistics.max)):
                return None
            least[name] = min(least.get(name, statistics.min), statistics.min)
            greatest[name] = max(greatest.get(name, statistics.max), statistics.max)
    least = {name: value[:_LONGEST] if isinstance(value, str) else value for name, value in least.items()}
    greatest = {name: _at_least(value) if isinstance(value, str) else value for name, value in greatest.items()}
    return None if None in greatest.values() else (least, greatest, nulls)


def _is_bound(value: object) -> bool:
    return isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))


def _at_least(text: str) -> str | None:
    """Shorten a text to an upper bound of all texts with the same beginning; ``None`` if there is no such bound."""
    if len(text) <= _LONGEST:
        return text
    for end in range(_LONGEST, 0, -1):
        following = ord(text[end - 1]) + 1
        following = 0xE000 if 0xD800 <= following < 0xE000 else following  # skip surrogates
        if following <= sys.maxunicode:
            return text[: end - 1] + chr(following)
    return None


def file_system(place: str) -> tuple[FileSystem, str]:
    """Return the ``pyarrow.fs.FileSystem`` of a local path or a URI, and the path within it."""
    if remote.is_remote(place):
        return remote.system(place)
    return importlib.import_module("pyarrow.fs").LocalFileSystem(), place


def _groups(arrow: ModuleType, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Combine consecutive batches into tables of about ``GROUP_BYTES``."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if batch.num_rows:
            waiting.append(batch)
            size += batch.nbytes
        if size >= GROUP_BYTES:
            yield arrow.Table.from_batches(waiting).unify_dictionaries()
            waiting, size = [], 0
    if waiting:
        yield arrow.Table.from_batches(waiting).unify_dictionaries()
