"""Files that tasks write themselves: whole, or not part of a batch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kshell.commands.base import arrow_tables
from kshell.commands.base.tables import Field
from kshell.errors import CommandError
from kshell.spark.warehouse import parts
from kshell.spark.warehouse.parts import Part, prepare, reveal, write_part
from tests.rights import locked

arrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

FIELDS = (
    Field("clusterId", "string", "the cluster"),
    Field("offset", "int64", "a number"),
    Field("data", "json", "a text"),
    Field("raw", "binary", "bytes"),
)
NO_ROWS: list[dict[str, Any]] = []


def rows(first: int, count: int, cluster: str = "a") -> list[dict[str, Any]]:
    """So many rows, none like another."""
    numbers = range(first, first + count)
    return [{"clusterId": cluster, "offset": n, "data": {"n": n}, "raw": bytes([n % 256])} for n in numbers]


def batch(some: list[dict[str, Any]]) -> Any:
    """One record batch, maybe without rows."""
    found = list(arrow_tables.batches(arrow, FIELDS, some))
    made = arrow_tables.schema(arrow, FIELDS)
    return found[0] if found else arrow.record_batch([arrow.nulls(0, one.type) for one in made], schema=made)


def read(folder: Path) -> list[tuple[Any, ...]]:
    """All rows of all files that a reader of Parquet sees, sorted."""
    table = parquet.read_table(str(folder))
    return sorted(tuple(row.values()) for row in table.to_pylist())


def told(some: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Those rows as they are read."""
    return [(one["clusterId"], one["offset"], f'{{"n":{one["offset"]}}}', one["raw"]) for one in some]


def visible(place: Path) -> list[str]:
    """What any reader would take for Parquet, however it looks for it."""
    return sorted(path.name for path in place.rglob("*.parquet"))


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """Where tasks write, below the batch in ``tmp_path / "batch=1"``."""
    return prepare(str(tmp_path / "batch=1"))


def test_a_file_counts_from_when_it_is_revealed(folder: str, tmp_path: Path) -> None:
    one = write_part(folder, FIELDS, map(batch, [rows(0, 3), NO_ROWS, rows(3, 4, "b")]))
    two = write_part(folder, FIELDS, map(batch, [rows(7, 1)]))
    assert (one.rows, one.clusters) == (7, frozenset("ab"))
    assert (two.rows, two.clusters) == (1, frozenset("a"))
    assert one.name != two.name
    assert len(list(Path(folder).iterdir())) == 2
    assert visible(tmp_path) == []
    reveal(folder, [one, two])
    assert sorted(path.name for path in (tmp_path / "batch=1").iterdir()) == sorted([one.name, two.name])
    assert read(tmp_path / "batch=1") == told([*rows(0, 3), *rows(7, 1), *rows(3, 4, "b")])


def test_what_nobody_has_heard_of_is_removed(folder: str, tmp_path: Path) -> None:
    """A task that was begun twice has written twice; one that was killed, half of it."""
    kept, _ = (write_part(folder, FIELDS, [batch(rows(0, 3))]) for _ in range(2))
    Path(folder, "part-killed.zstd.parquet.part").write_bytes(b"PAR1 and no more")
    reveal(folder, [kept])
    assert [path.name for path in (tmp_path / "batch=1").iterdir()] == [kept.name]
    assert read(tmp_path / "batch=1") == told(rows(0, 3))


def test_a_task_that_comes_too_late_writes_nothing(folder: str, tmp_path: Path) -> None:
    kept = write_part(folder, FIELDS, [batch(rows(0, 3))])
    reveal(folder, [kept])
    with pytest.raises(CommandError, match="No such file") as raised:
        write_part(folder, FIELDS, [batch(rows(0, 3))])
    assert raised.value.hint is not None
    assert "--out" in raised.value.hint
    assert [path.name for path in (tmp_path / "batch=1").iterdir()] == [kept.name]


@pytest.mark.parametrize("nothing", [[], [NO_ROWS, NO_ROWS]])
def test_without_rows_there_is_no_file(nothing: list[list[dict[str, Any]]], folder: str) -> None:
    made = write_part(folder, FIELDS, map(batch, nothing))
    assert (made.rows, made.clusters) == (0, frozenset())
    assert not list(Path(folder).iterdir())


def test_neighbours_are_a_row_group(monkeypatch: pytest.MonkeyPatch, folder: str, tmp_path: Path) -> None:
    some = [batch(rows(n * 100, 100)) for n in range(10)]
    monkeypatch.setattr(parts, "_GROUP", some[0].nbytes * 3)
    made = write_part(folder, FIELDS, iter(some))
    reveal(folder, [made])
    meta = parquet.read_metadata(str(tmp_path / "batch=1" / made.name))
    assert [meta.row_group(n).num_rows for n in range(meta.num_row_groups)] == [300, 300, 300, 100]
    assert read(tmp_path / "batch=1") == told(rows(0, 1000))


def test_texts_are_not_tried_as_dictionaries(folder: str, tmp_path: Path) -> None:
    made = write_part(folder, FIELDS, [batch(rows(0, 100))], {"said": "besides"})
    reveal(folder, [made])
    meta = parquet.read_metadata(str(tmp_path / "batch=1" / made.name))
    group = meta.row_group(0)
    found = {group.column(n).path_in_schema: group.column(n) for n in range(group.num_columns)}
    assert {name for name, one in found.items() if "RLE_DICTIONARY" in one.encodings} == {"clusterId"}
    assert {one.compression for one in found.values()} == {"ZSTD"}
    assert meta.metadata == {b"said": b"besides"}


def test_files_that_the_driver_does_not_see(folder: str) -> None:
    """Executors on other machines have written into a directory of their own by that name."""
    with pytest.raises(CommandError, match=r"part-1\.parquet\.part: a task wrote it") as raised:
        reveal(folder, [Part("part-1.parquet", 1, frozenset("a"))])
    assert raised.value.hint is not None
    assert "--out" in raised.value.hint


def test_a_folder_that_may_not_be_written_to(folder: str) -> None:
    with locked(Path(folder)), pytest.raises(CommandError, match="Permission denied") as raised:
        write_part(folder, FIELDS, [batch(rows(0, 2))])
    assert raised.value.message.startswith(folder)


def test_a_batch_that_may_not_be_begun(tmp_path: Path) -> None:
    (tmp_path / "bronze").mkdir()
    with locked(tmp_path / "bronze"), pytest.raises(CommandError, match="batch=1: Permission denied"):
        prepare(str(tmp_path / "bronze/batch=1"))


def test_a_disk_that_is_full_is_not_filled_more(monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(parquet.ParquetWriter, "write_table", full)
    with pytest.raises(CommandError, match="No space left on device"):
        write_part(folder, FIELDS, [batch(rows(0, 2))])
    assert not list(Path(folder).iterdir())


@pytest.mark.parametrize("error", [ValueError("a fault"), KeyboardInterrupt("a fault")])
def test_an_error_of_who_makes_the_rows_stays_what_it_is(error: BaseException, folder: str) -> None:
    def made() -> Iterator[Any]:
        yield batch(rows(0, 2))
        raise error

    with pytest.raises(type(error), match="a fault"):
        write_part(folder, FIELDS, made())
    assert not list(Path(folder).iterdir())
