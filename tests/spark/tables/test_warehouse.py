"""A warehouse: what the frames of a step write, and what readers see of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kshell.errors import CommandError, DataError, UsageError
from kshell.spark.tables import warehouse as warehouse_module
from kshell.spark.tables.data_files import DataFileWriter
from kshell.spark.tables.steps import ClusterState
from kshell.spark.tables.warehouse import Warehouse
from tests.notebooks import sparks
from tests.spark.tables.small import ODD, TABLES, A, B, Content, log_row, write

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("small_catalog")]


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session on this machine alone."""
    with sparks.session(tmp_path_factory.mktemp("spark")) as session:
        yield session


@pytest.fixture(autouse=True, params=["tasks", "driver"])
def reader_and_writer(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are the same whether tasks read and write them or, because they are few, the driver."""
    if request.param == "tasks":
        monkeypatch.setattr(warehouse_module, "_FEW_ROWS", 0)
    else:
        monkeypatch.setattr(Warehouse.begin, "__kwdefaults__", {"few": True})


def rows(spark: Any, *values: tuple[Any, ...]) -> Any:
    """A frame of (clusterId, n) or (clusterId, n, isCurrent)."""
    names = "clusterId string, n long" + (", isCurrent boolean" if len(values[0]) == 3 else "")
    return spark.createDataFrame(list(values), names)


def append(warehouse: Warehouse, *values: tuple[str, int]) -> None:
    """Rows more in ``log``, which tasks have written as files."""
    warehouse.append_files("log", write(warehouse, "log", (log_row(*value) for value in values)))


def content(warehouse: Warehouse) -> Content:
    """All rows of all tables, sorted."""
    found = {name: warehouse.read(name) for name in TABLES}
    found["log"] = found["log"].select("clusterId", "n")
    return {name: sorted(map(tuple, frame.collect())) for name, frame in found.items()}


def first(warehouse: Warehouse) -> None:
    """A step with two clusters, and one with an odd name."""
    spark = warehouse.spark
    warehouse.begin([A, B, ODD])
    append(warehouse, (A, 1), (B, 1), (ODD, 1))
    warehouse.replace("new", rows(spark, (A, 1), (B, 1), (ODD, 1)), [A, B, ODD])
    warehouse.extend("old", rows(spark, (A, 1, False), (A, 2, True), (B, 1, True), (ODD, 1, True)), [A, B, ODD])
    warehouse.replace("all", rows(spark, (A, 1)), [A, B, ODD])
    warehouse.commit({name: ClusterState({"offset": 1}) for name in (A, B, ODD)})


def second(warehouse: Warehouse) -> None:
    """More of one cluster; another one from scratch."""
    spark = warehouse.spark
    warehouse.begin([A, B])
    warehouse.remove([B])
    append(warehouse, (A, 2), (B, 7))
    assert sorted(warehouse.read_appended("log").select("n").toArrow().column(0).to_pylist()) == [2, 7]
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


def test_two_steps_and_a_cluster_from_scratch(spark: Any, tmp_path: Path) -> None:
    warehouse = Warehouse(spark, str(tmp_path))
    assert content(warehouse) == {name: [] for name in TABLES}
    with warehouse.writing():
        first(warehouse)
        second(warehouse)
    assert content(warehouse) == content(Warehouse(spark, str(tmp_path))) == AFTER
    assert Warehouse(None, str(tmp_path)).state.clusters[B] == ClusterState({"offset": 7}, 3, 1)
    assert warehouse.state.rows == {"log": 2, "new": 1, "old": 3, "all": 1}


def test_nested_columns_come_back_as_they_were(spark: Any, tmp_path: Path) -> None:
    warehouse = Warehouse(spark, str(tmp_path))
    with warehouse.writing():
        first(warehouse)
        frame = warehouse.read("log", [A])
        warehouse.begin([B])
        warehouse.replace("log", frame.withColumn("clusterId", frame["clusterId"].substr(9, 1)), [B])
        assert warehouse.read("log", [""]).drop("data").collect()[0].asDict(recursive=True) == {
            "clusterId": "",
            "n": 1,
            "replicas": [1, 2],
            "listeners": [{"name": "PLAINTEXT", "port": 1}],
            "features": {"kraft.version": {"min": 0, "max": 1}},
            "raw": b"\x01",
            "ratio": 0.25,
            "flag": False,
        }


def test_reading_some_of_it(spark: Any, tmp_path: Path) -> None:
    warehouse = Warehouse(spark, str(tmp_path))
    with warehouse.writing():
        first(warehouse)
        second(warehouse)
    for name in TABLES:
        found = warehouse.read(name, [ODD]).select(*("clusterId", "n", *(["isCurrent"] if name == "old" else [])))
        assert sorted(map(tuple, found.collect())) == [row for row in AFTER[name] if row[0] == ODD]
    current = warehouse.read("old", part="current")
    assert sorted(map(tuple, current.collect())) == [row for row in AFTER["old"] if row[2]]
    with warehouse.writing():
        warehouse.begin([A])
        append(warehouse, (A, 9))
        before = warehouse.read_before("log", [A], "n", 2).select("clusterId", "n")
        assert [tuple(row) for row in before.collect()] == [(A, 2)], "without what the step has appended"
        assert warehouse.read("log", [A]).count() == 3
    with pytest.raises(UsageError, match="olds: no such table"):
        warehouse.read("olds")


def test_rows_of_a_step_that_was_given_up_do_not_count_and_leave_no_file(spark: Any, tmp_path: Path) -> None:
    warehouse = Warehouse(spark, str(tmp_path))
    with warehouse.writing():
        first(warehouse)
        before = sorted(tmp_path.rglob("*.parquet"))
        warehouse.begin([A])
        append(warehouse, (A, 77))
        warehouse.retract("log")
        append(warehouse, (A, 78))
        warehouse.replace("new", rows(spark, (A, 78)), [A])
        warehouse.abandon()
        assert sorted(tmp_path.rglob("*.parquet")) == before
        second(warehouse)
    assert content(warehouse) == AFTER


def test_a_reader_keeps_its_step_while_others_are_written(spark: Any, tmp_path: Path) -> None:
    writer = Warehouse(spark, str(tmp_path))
    with writer.writing():
        first(writer)
        reader = Warehouse(spark, str(tmp_path))
        frames = {name: reader.read(name) for name in TABLES}
        before = content(reader)
        second(writer)
        writer.vacuum()
        assert content(reader) == before
        assert sorted(frames["new"].collect()) == before["new"]
        assert reader.renew() and content(reader) == AFTER


def test_a_file_that_is_gone_is_named(spark: Any, tmp_path: Path) -> None:
    warehouse = Warehouse(spark, str(tmp_path))
    with warehouse.writing():
        first(warehouse)
    [path] = (tmp_path / "bronze/log").glob("*.parquet")
    path.unlink()
    with pytest.raises(DataError, match=path.name):
        Warehouse(spark, str(tmp_path)).read("log")


def test_rows_that_are_not_as_declared_are_a_fault(spark: Any, tmp_path: Path) -> None:
    warehouse = Warehouse(spark, str(tmp_path))
    with warehouse.writing():
        warehouse.begin()
        with pytest.raises(AssertionError, match=r"new\.n is int, not bigint"):
            warehouse.append("new", spark.sql("select 'a' as clusterId, 1 as n"))


def test_tasks_that_cannot_write_are_named_with_what_to_do(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse = Warehouse(spark, str(tmp_path))
    elsewhere = DataFileWriter("/proc/no/such/place", TABLES["new"].fields)
    with warehouse.writing():
        warehouse.begin([A])
        monkeypatch.setattr(warehouse, "writer", lambda name: elsewhere)
        with pytest.raises(CommandError, match="/proc/no/such/place: ") as raised:
            warehouse.append("new", rows(spark, (A, 1)))
    assert "--out" in str(raised.value.hint)
