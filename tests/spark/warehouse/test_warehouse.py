"""A warehouse of Parquet: what steps write and what counts of it, whatever a step was killed at."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kshell.commands.base import arrow_tables
from kshell.commands.base.tables import Field
from kshell.errors import CommandError, DataError, UsageError
from kshell.spark.verbs.base.opened import Opened
from kshell.spark.tables import catalog
from kshell.spark.tables.warehouse import Warehouse
from kshell.spark.tables.catalog import TableSpec
from kshell.spark.tables.steps import ClusterState
from kshell.spark.warehouse.parquet_tables import ParquetTables, escaped
from kshell.spark.warehouse.parts import Part, write_part
from kshell.spark.warehouse.storage import LocalStorage
from tests.notebooks import sparks

pytestmark = [pytest.mark.spark, pytest.mark.slow]

_COLUMNS = (Field("clusterId", "string", "the cluster"), Field("n", "int64", "a number"))
LOG = TableSpec("log", "bronze", "appended", _COLUMNS, by_cluster=False)
NEW = TableSpec("new", "bronze", "replaced", _COLUMNS)
OLD = TableSpec("old", "silver", "versions", (*_COLUMNS, Field("isCurrent", "boolean", "lasts")), has_versions=True)
ALL = TableSpec("all", "gold", "of the fleet", _COLUMNS, by_cluster=False, is_fleet=True)
TABLES = {spec.name: spec for spec in (LOG, NEW, OLD, ALL)}
A, B, ODD = "a", "b", "x: /=%?[1]{2}*'"
Content = dict[str, list[tuple[Any, ...]]]


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session on this machine alone."""
    with sparks.session(tmp_path_factory.mktemp("spark")) as session:
        yield session


@pytest.fixture(autouse=True)
def own_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """A catalog of four tables, one of each kind."""
    monkeypatch.setattr(catalog, "tables", lambda: TABLES)


def rows(spark: Any, *values: tuple[Any, ...]) -> Any:
    """A frame of (clusterId, n) or (clusterId, n, isCurrent)."""
    names = "clusterId string, n long" + (", isCurrent boolean" if len(values[0]) == 3 else "")
    return spark.createDataFrame(list(values), names)


def content(warehouse: Warehouse) -> Content:
    """All rows of all tables, sorted."""
    return {name: sorted(map(tuple, warehouse.read(name).collect())) for name in TABLES}


def first(warehouse: Warehouse) -> None:
    """A step with two clusters, and one whose name is no name of a directory."""
    spark = warehouse.spark
    warehouse.begin()
    warehouse.append("log", rows(spark, (A, 1), (B, 1), (ODD, 1)))
    warehouse.replace("new", rows(spark, (A, 1), (B, 1), (ODD, 1)), [A, B, ODD])
    warehouse.extend("old", rows(spark, (A, 1, False), (A, 2, True), (B, 1, True), (ODD, 1, True)), [A, B, ODD])
    warehouse.replace("all", rows(spark, (A, 1)), [A, B, ODD])
    warehouse.commit({name: ClusterState({"offset": 1}) for name in (A, B, ODD)})


def second(warehouse: Warehouse) -> None:
    """More of one cluster; another one begins anew."""
    spark = warehouse.spark
    warehouse.begin()
    warehouse.reset([B])
    warehouse.append("log", rows(spark, (A, 2), (B, 7)))
    warehouse.replace("new", rows(spark, (B, 7)), [A, B])
    warehouse.extend("old", rows(spark, (A, 2, False), (A, 3, True), (B, 7, True)), [A, B])
    warehouse.replace("all", rows(spark, (B, 7)), [A, B])
    warehouse.commit({A: ClusterState({"offset": 2}), B: ClusterState({"offset": 7}, 3, 1)})


AFTER: Content = {
    "log": [(A, 1), (A, 2), (B, 7), (ODD, 1)],
    "new": [(B, 7), (ODD, 1)],
    "old": [(A, 1, False), (A, 2, False), (A, 3, True), (B, 7, True), (ODD, 1, True)],
    "all": [(B, 7)],
}


def files(place: Path) -> list[str]:
    """Directories that hold data, and everything that is not data, below a place."""
    data = {str(path.parent.relative_to(place)) for path in place.rglob("*.parquet")}
    others = {
        str(path.relative_to(place))
        for path in place.rglob("*")
        if path.is_file() and path.suffix not in (".parquet", ".crc")
    }
    return sorted(data | others)


def test_two_steps_and_a_cluster_that_begins_anew(spark: Any, tmp_path: Path) -> None:
    warehouse = Warehouse(spark, str(tmp_path))
    with warehouse.writing():
        first(warehouse)
        second(warehouse)
    assert content(warehouse) == content(Warehouse(spark, str(tmp_path))) == AFTER
    assert Warehouse(None, str(tmp_path)).state.clusters[B] == ClusterState({"offset": 7}, 3, 1)
    plain = spark.read.parquet(str(tmp_path / "silver/old")).selectExpr("clusterId", "n", "isCurrent = 'true'")
    assert sorted(map(tuple, plain.collect())) == AFTER["old"]
    for name in ("bronze/log", "bronze/new", "gold/all"):
        plain = spark.read.parquet(str(tmp_path / name)).select("clusterId", "n")
        assert sorted(map(tuple, plain.collect())) == AFTER[name.partition("/")[2]]


def written(folder: str, *values: tuple[str, int]) -> list[Part]:
    """Those rows as a file of their own, and a file that nobody tells of."""
    arrow = pytest.importorskip("pyarrow")
    made = [{"clusterId": cluster, "n": n} for cluster, n in values]
    every = [write_part(folder, _COLUMNS, arrow_tables.batches(arrow, _COLUMNS, made)) for _ in range(2)]
    return every[:1]


def test_files_that_tasks_have_written(spark: Any, tmp_path: Path) -> None:
    warehouse = Warehouse(spark, str(tmp_path))
    with warehouse.writing():
        first(warehouse)
        warehouse.begin()
        assert warehouse.append_files("log", lambda folder: written(folder, (B, 7))) == 1
        warehouse.retract("log")
        assert warehouse.append_files("log", lambda folder: written(folder, (A, 2), (A, 3))) == 2
        assert sorted(map(tuple, warehouse.read_batches("log", [2], [A, B]).collect())) == [(A, 2), (A, 3)]
        warehouse.commit({A: ClusterState({"offset": 3})})
        assert warehouse.state.rows["log"] == 2
        assert content(warehouse)["log"] == [(A, 1), (A, 2), (A, 3), (B, 1), (ODD, 1)]
        warehouse.begin()
        assert warehouse.append_files("log", lambda folder: []) == 0
        warehouse.commit({A: ClusterState({"offset": 4})})
    assert content(Warehouse(spark, str(tmp_path)))["log"] == [(A, 1), (A, 2), (A, 3), (B, 1), (ODD, 1)]
    assert {path.name for path in (tmp_path / "bronze/log").iterdir()} == {"batch=1", "batch=2"}
    [file] = (tmp_path / "bronze/log/batch=2").iterdir()
    assert file.name.startswith("part-")


def test_a_writer_killed_while_tasks_write(spark: Any, tmp_path: Path) -> None:
    warehouse = Warehouse(spark, str(tmp_path))
    with warehouse.writing():
        first(warehouse)
    before = files(tmp_path)

    def killed(folder: str) -> list[Part]:
        written(folder, (A, 77))
        raise KeyboardInterrupt

    with warehouse.writing(), pytest.raises(KeyboardInterrupt):
        warehouse.begin()
        warehouse.append_files("log", killed)
    assert files(tmp_path) != before
    with Warehouse(spark, str(tmp_path)).writing():
        pass
    assert files(tmp_path) == before


def test_a_reader_whose_tables_are_replaced_reads_the_newest(spark: Any, tmp_path: Path) -> None:
    writer = Warehouse(spark, str(tmp_path))
    with writer.writing():
        first(writer)
        reader = Opened()
        reader.warehouse = Warehouse(spark, str(tmp_path))
        steps = [second]

        def between() -> Content:
            frames = {name: reader.warehouse.read(name) for name in TABLES}
            if steps:
                steps.pop()(writer)
            return {name: sorted(map(tuple, frame.collect())) for name, frame in frames.items()}

        assert reader.steadily(between) == AFTER and not steps
        shutil.rmtree(tmp_path / "bronze")
        with pytest.raises(DataError, match=r"bronze.*is not there"):
            reader.steadily(between)


def test_reading_some_of_it(spark: Any, tmp_path: Path) -> None:
    warehouse = Warehouse(spark, str(tmp_path))
    assert content(warehouse) == {name: [] for name in TABLES}
    with warehouse.writing():
        first(warehouse)
        second(warehouse)
    for name in ("log", "new", "old", "all"):
        assert sorted(map(tuple, warehouse.read(name, [ODD]).collect())) == [r for r in AFTER[name] if r[0] == ODD]
    assert sorted(map(tuple, warehouse.read("old", part="current").collect())) == [r for r in AFTER["old"] if r[2]]
    assert sorted(map(tuple, warehouse.read_batches("log", [3], [A, B]).collect())) == [(A, 2), (B, 7)]
    assert warehouse.read_batches("log", [3], [ODD]).collect() == []
    with pytest.raises(UsageError, match="olds: no such table"):
        warehouse.read("olds")


class Killed(BaseException):
    """As a signal that nothing catches."""


def counted(patch: pytest.MonkeyPatch, left: list[int]) -> None:
    """After so many writes and removals, the next one is the last: half of it is done."""

    def ends(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            if left[0] == 0:
                if real is write and args[1].name == "new":
                    real(*args, **options)  # all of it was written, and nobody knows
                raise Killed
            left[0] -= 1
            return real(*args, **options)

        return call

    write = ParquetTables.write
    patch.setattr(ParquetTables, "write", ends(write))
    patch.setattr(LocalStorage, "write", ends(LocalStorage.write))
    patch.setattr(LocalStorage, "remove", ends(LocalStorage.remove))


def test_a_step_that_is_killed_anywhere_does_not_count_or_counts_as_a_whole(spark: Any, tmp_path: Path) -> None:
    undisturbed = tmp_path / "undisturbed"
    warehouse = Warehouse(spark, str(undisturbed))
    with warehouse.writing():
        first(warehouse)
        before = content(warehouse)
        shutil.copytree(undisturbed, tmp_path / "begun")
        second(warehouse)
    killed = 0
    for writes in range(40):
        place = shutil.copytree(tmp_path / "begun", tmp_path / str(writes))
        warehouse = Warehouse(spark, str(place))
        with pytest.MonkeyPatch.context() as patch:
            counted(patch, [writes])
            try:
                with warehouse.writing():
                    second(warehouse)
            except Killed:
                killed += 1
            else:
                break
        again = Warehouse(spark, str(place))
        done = again.state.step == 3
        assert content(again) == (AFTER if done else before)
        with again.writing():
            if not done:
                second(again)
        assert content(again) == AFTER
        assert files(place) == files(undisturbed)
    assert killed > 10


def test_what_was_given_up_does_not_lie_beside_what_counts(spark: Any, tmp_path: Path) -> None:
    warehouse = Warehouse(spark, str(tmp_path))
    with warehouse.writing():
        first(warehouse)
        warehouse.begin()
        warehouse.append("log", rows(spark, (A, 77)))
        warehouse.begin()
        warehouse.replace("new", rows(spark, (A, 8)), [A])
        warehouse.commit({A: ClusterState({"offset": 8})})
    plain = spark.read.parquet(str(tmp_path / "bronze/log")).select("clusterId", "n")
    assert sorted(map(tuple, plain.collect())) == sorted(map(tuple, warehouse.read("log").collect()))
    assert (A, 77) not in content(warehouse)["log"]
    assert (A, 8) in content(warehouse)["new"]


def test_what_was_retracted_before_a_cluster_begins_anew_does_not_lie_there(spark: Any, tmp_path: Path) -> None:
    warehouse = Warehouse(spark, str(tmp_path))
    with warehouse.writing():
        first(warehouse)
        warehouse.begin()
        warehouse.append("log", rows(spark, (B, 77)))
        warehouse.retract("log")
        warehouse.reset([A])
        warehouse.append("log", rows(spark, (A, 5)))
        warehouse.commit({A: ClusterState({"offset": 5}, 2)})
    plain = spark.read.parquet(str(tmp_path / "bronze/log")).select("clusterId", "n")
    assert sorted(map(tuple, plain.collect())) == content(warehouse)["log"] == [(A, 5), (B, 1), (ODD, 1)]


def test_another_writer_is_refused_and_breaks_nothing(spark: Any, tmp_path: Path) -> None:
    one, other = Warehouse(spark, str(tmp_path)), Warehouse(spark, str(tmp_path))
    with one.writing(), pytest.raises(CommandError, match="is writing there"), other.writing():
        pass
    with one.writing():
        first(one)
    with other.writing():  # which knew nothing of it
        second(other)
    assert content(other) == AFTER


def test_rows_that_are_not_as_declared_are_a_fault(spark: Any, tmp_path: Path) -> None:
    warehouse = Warehouse(spark, str(tmp_path))
    with warehouse.writing():
        warehouse.begin()
        with pytest.raises(AssertionError, match=r"log\.n is int, not bigint"):
            warehouse.append("log", spark.sql("select 'a' as clusterId, 1 as n"))


def test_a_format_is_the_warehouses(spark: Any, tmp_path: Path) -> None:
    warehouse = Warehouse(spark, str(tmp_path), "parquet")
    with warehouse.writing():
        first(warehouse)
    with pytest.raises(UsageError, match="its tables are parquet, not delta"):
        Warehouse(spark, str(tmp_path), "delta")
    with pytest.raises(UsageError, match="orc: no format of tables"):
        Warehouse(spark, str(tmp_path / "new"), "orc")


def test_compaction_keeps_every_row(spark: Any, tmp_path: Path) -> None:
    warehouse = Warehouse(spark, str(tmp_path))
    with warehouse.writing():
        first(warehouse)
        second(warehouse)
        warehouse.begin()
        assert warehouse.compact("log", [2, 3]) == 4
        assert warehouse.compact("old", [1, 3]) == 2
        warehouse.commit({})
    assert content(warehouse) == AFTER
    assert files(tmp_path / "bronze/log") == ["batch=4"]
    assert files(tmp_path / "silver/old/isCurrent=false") == ["clusterId=a/batch=4"]


@pytest.mark.parametrize(("value", "name"), [("a-Z_0.9~", "a-Z_0.9~"), ("a/b=c%", "a%2Fb%3Dc%25"), ("\x7f", "%7F")])
def test_names_of_directories(value: str, name: str) -> None:
    assert escaped(value) == name
