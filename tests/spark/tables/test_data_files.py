"""Files of rows: whole or not there, described rightly, and rewritten without losing or changing a row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kshell.errors import CommandError, DataError, SourceError
from kshell.spark.tables import data_files
from kshell.spark.tables.data_files import DataFile, DataFileWriter
from kshell.tables import arrow as arrow_tables
from kshell.tables.declaration import Field
from tests.rights import locked

arrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

FIELDS = (
    Field("clusterId", "string", "the cluster"),
    Field("offset", "int64", "a number"),
    Field("data", "json", "a text"),
    Field("raw", "binary", "bytes"),
    Field("isCurrent", "boolean", "lasts"),
)
NO_ROWS: list[dict[str, Any]] = []


def rows(first: int, count: int, cluster: str = "a") -> list[dict[str, Any]]:
    """So many rows, none like another."""
    numbers = range(first, first + count)
    return [
        {"clusterId": cluster, "offset": n, "data": {"n": n}, "raw": bytes([n % 256]), "isCurrent": n % 3 == 0}
        for n in numbers
    ]


def batch(some: list[dict[str, Any]]) -> Any:
    """One record batch, maybe without rows."""
    found = list(arrow_tables.batches(arrow, FIELDS, some))
    made = arrow_tables.schema(arrow, FIELDS)
    return found[0] if found else arrow.record_batch([arrow.nulls(0, column.type) for column in made], schema=made)


def written(some: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those rows as they are read, sorted."""
    return in_order([row | {"data": f'{{"n":{row["offset"]}}}'} for row in some])


def read(writer: DataFileWriter, files: list[DataFile]) -> list[dict[str, Any]]:
    """All rows of some files, sorted."""
    return in_order([row for table in writer.read(files) for row in table.to_pylist()])


def in_order(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(found, key=lambda row: (row["clusterId"], row["offset"]))


@pytest.fixture(params=[None, "isCurrent"])
def writer(request: pytest.FixtureRequest, tmp_path: Path) -> DataFileWriter:
    """Of a table with and without partitions."""
    return DataFileWriter(str(tmp_path), FIELDS, request.param)


def test_rows_come_back_and_the_files_say_what_they_hold(writer: DataFileWriter, tmp_path: Path) -> None:
    some = [*rows(0, 3), *rows(3, 4, "b")]
    files = writer.write(map(batch, [some[:3], NO_ROWS, some[3:]]))
    assert read(writer, files) == written(some)
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.parquet")) == sorted(
        file.path for file in files
    )
    assert [file.partition for file in sorted(files, key=lambda file: str(file.partition))] == (
        ["false", "true"] if writer.partition_by else [None]
    )
    for file in files:
        held = read(writer, [file])
        assert (file.rows, file.size) == (len(held), (tmp_path / file.path).stat().st_size)
        for column in ("clusterId", "offset"):
            assert file.least[column] == min(row[column] for row in held)
            assert file.greatest[column] == max(row[column] for row in held)
        assert "raw" not in file.least and file.nulls["clusterId"] == 0
        assert file.partition in (None, str(held[0]["isCurrent"]).lower())
        assert {row["isCurrent"] for row in held} == ({file.partition == "true"} if file.partition else {True, False})


def test_texts_that_are_cut_are_bounds_still(tmp_path: Path) -> None:
    writer = DataFileWriter(str(tmp_path), FIELDS[:2])
    columns = arrow_tables.schema(arrow, FIELDS[:2])

    def described(*texts: str | None) -> DataFile:
        [file] = writer.write([arrow.record_batch([list(texts), [1] * len(texts)], schema=columns)])
        return file

    for texts in (("a", "x" * 65), ("x" * 64, "x" * 64 + "y"), ("\ud7ff" * 65,), ("\U0010ffff" * 63 + "ab",)):
        file = described(*texts)
        assert file.least["clusterId"] <= min(texts) and max(texts) <= file.greatest["clusterId"]
        assert len(file.least["clusterId"]) <= 64 and len(file.greatest["clusterId"]) <= 64
        assert all(file.may_hold([text]) for text in texts)
        file.greatest["clusterId"].encode()
    endless = described("\U0010ffff" * 65)
    assert (endless.least, endless.greatest) == ({}, {}), "there is no text above it"
    assert endless.may_hold(["anything"])
    file = described(None, None)
    assert "clusterId" not in file.least and file.nulls == {"clusterId": 2, "offset": 0}


def test_files_are_rewritten_without_some_clusters(writer: DataFileWriter) -> None:
    some = [*rows(0, 50), *rows(50, 20, "b"), *rows(70, 10, "c")]
    for file in writer.write([batch(some)]):
        rest = writer.without(file, ["b", "zz"])
        assert rest is not None
        assert read(writer, rest) == [row for row in read(writer, [file]) if row["clusterId"] != "b"]
        assert writer.without(file, ["bb"]) is None, "there is no row of it, though the bounds allow one"
        assert file.may_hold(["bb"]) and not file.may_hold(["A", "d"])
        assert writer.without(file, ["a", "b", "c"]) == []


def test_files_are_merged_and_long_ones_end(writer: DataFileWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    some = rows(0, 300)
    files = [file for at in range(0, 300, 30) for file in writer.write([batch(some[at : at + 30])])]
    merged = writer.merge(files)
    assert len(merged) == (2 if writer.partition_by else 1)
    assert read(writer, merged) == written(some)
    monkeypatch.setattr(data_files, "FILE_BYTES", 1)
    monkeypatch.setattr(data_files, "GROUP_BYTES", 1)
    assert len(writer.merge(files)) == len(files), "a file ends with the row group that makes it long enough"


def test_neighbours_are_a_row_group(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    writer = DataFileWriter(str(tmp_path), FIELDS)
    some = [batch(rows(n * 100, 100)) for n in range(10)]
    monkeypatch.setattr(data_files, "GROUP_BYTES", some[0].nbytes * 3)
    [file] = writer.write(iter(some))
    meta = parquet.read_metadata(str(tmp_path / file.path))
    assert [meta.row_group(n).num_rows for n in range(meta.num_row_groups)] == [300, 300, 300, 100]
    assert read(writer, [file]) == written(rows(0, 1000))


def test_texts_are_not_tried_as_dictionaries(tmp_path: Path) -> None:
    [file] = DataFileWriter(str(tmp_path), FIELDS).write([batch(rows(0, 100))])
    group = parquet.read_metadata(str(tmp_path / file.path)).row_group(0)
    found = {group.column(n).path_in_schema: group.column(n) for n in range(group.num_columns)}
    assert {name for name, column in found.items() if "RLE_DICTIONARY" in column.encodings} == {"clusterId"}
    assert {column.compression for column in found.values()} == {"ZSTD"}


@pytest.mark.parametrize("nothing", [[], [NO_ROWS, NO_ROWS]])
def test_without_rows_there_is_no_file(
    nothing: list[list[dict[str, Any]]], writer: DataFileWriter, tmp_path: Path
) -> None:
    assert writer.write(map(batch, nothing)) == []
    assert not list(tmp_path.rglob("*.parquet"))


def test_files_that_are_missing_or_shorter(writer: DataFileWriter, tmp_path: Path) -> None:
    files = writer.write([batch(rows(0, 30))])
    assert writer.loss(files) is None
    path = tmp_path / files[-1].path
    path.write_bytes(path.read_bytes()[:-1])
    loss = writer.loss(files)
    assert (
        loss is not None and loss.message == f"{path}: has {files[-1].size - 1:,} bytes instead of {files[-1].size:,}"
    )
    with pytest.raises(DataError, match=path.name) as raised:
        read(writer, files)
    assert raised.value.hint
    path.unlink()
    with pytest.raises(DataError, match=f"{path.name}: is not there any more"):
        writer.merge(files)
    writer.remove(files)
    assert not list(tmp_path.rglob("*.parquet"))


class FailingStore:
    """A file system that fails at the first requests, then works."""

    def __init__(self, system: Any, failures: int) -> None:
        self.system, self.failures = system, failures

    def open_input_file(self, path: str) -> Any:
        """Open a file to read at any place."""
        return self._answer(self.system.open_input_file, path)

    def open_input_stream(self, path: str) -> Any:
        """Open a file to read it once."""
        return self._answer(self.system.open_input_stream, path)

    def _answer(self, call: Callable[[str], Any], path: str) -> Any:
        self.failures -= 1
        if self.failures >= 0:
            raise OSError("AWS Error SLOW_DOWN during GetObject operation")
        return call(path)


@pytest.mark.parametrize("failures", [1, 2])
def test_a_store_that_fails_is_no_damaged_file(
    failures: int, writer: DataFileWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = writer.write([batch(rows(0, 30))])
    system, root = data_files.file_system(writer.table)
    failing = FailingStore(system, failures)
    monkeypatch.setattr(data_files, "file_system", lambda place: (failing, root))
    with pytest.raises(SourceError, match="SLOW_DOWN") as raised:
        read(writer, files)
    assert raised.value.message.startswith(f"{writer.table}/") and raised.value.hint is None, "nothing to repair"
    assert len(read(writer, files)) == 30


def test_a_table_that_may_not_be_written_to(writer: DataFileWriter, tmp_path: Path) -> None:
    with locked(tmp_path), pytest.raises(CommandError, match="ermission denied") as raised:
        writer.write([batch(rows(0, 2))])
    assert raised.value.message.startswith(writer.table)
    assert "--out" in str(raised.value.hint)


def test_a_disk_that_is_full_is_not_filled_more(
    monkeypatch: pytest.MonkeyPatch, writer: DataFileWriter, tmp_path: Path
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(parquet.ParquetWriter, "write_table", full)
    with pytest.raises(CommandError, match="No space left on device"):
        writer.write([batch(rows(0, 2))])
    assert not list(tmp_path.rglob("*.parquet"))


@pytest.mark.parametrize("error", [ValueError("a fault"), KeyboardInterrupt("a fault")])
def test_an_error_of_who_makes_the_rows_stays_what_it_is(
    error: BaseException, writer: DataFileWriter, tmp_path: Path
) -> None:
    def made() -> Iterator[Any]:
        yield batch(rows(0, 2))
        raise error

    with pytest.raises(type(error), match="a fault"):
        writer.write(made())
    assert not list(tmp_path.rglob("*.parquet"))
