"""Declared expectations: what breaks them is a row of ``breaches``, the step counts all the same."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kshell.spark.steps.step import NOTHING
from kshell.spark.tables import catalog
from kshell.spark.tables.expectations import (
    ExpectationCheck,
    Expectations,
    at_least,
    key,
    key_of,
    not_null,
    one_current,
    ordered,
    unique,
)
from kshell.spark.tables.steps import ClusterState
from kshell.spark.tables.warehouse import Warehouse
from kshell.spark.verbs.warehouse.step_summary import report
from kshell.tables import arrow as arrow_tables
from tests.notebooks import sparks
from tests.spark.reading import needs_arrow
from tests.spark.warehouses import delta_rows

pytestmark = needs_arrow


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session on this machine alone."""
    with sparks.session(tmp_path_factory.mktemp("spark")) as session:
        yield session


def broken(expectations: Expectations, *rows: tuple[Any, ...], partition: str | None = None) -> dict[str, Any]:
    """(expectation, cluster) -> rows that break it; rows are (cluster, offset, end, name), each a batch of its own."""
    arrow = importlib.import_module("pyarrow")
    check, kinds = (
        ExpectationCheck(expectations, partition),
        [arrow.string(), arrow.int64(), arrow.int64(), arrow.string()],
    )
    for row in rows:
        columns = [arrow.array([value], kind) for value, kind in zip(row, kinds, strict=True)]
        check.add(arrow.table(columns, names=["clusterId", "offset", "end", "name"]))
    return {f"{breach.expectation} in {breach.cluster_id}": breach.rows for breach in check.breaches()}


def test_nulls() -> None:
    rows = ("a", 1, None, "x"), ("a", 2, None, None), ("b", 3, None, None), (None, 4, 5, "y")
    assert broken(not_null("offset", "name", "clusterId"), *rows) == {
        "name IS NOT NULL in a": 1,
        "name IS NOT NULL in b": 1,
        "clusterId IS NOT NULL in None": 1,
    }


def test_ranges_and_orders_pass_what_is_null() -> None:
    rows = ("a", 0, 0, ""), ("a", -1, None, ""), ("a", None, -5, ""), ("a", 3, 2, ""), ("a", -2, 9, "")
    assert broken(at_least(0, "offset"), *rows) == {"offset >= 0 in a": 2}
    assert broken(at_least(-1, "offset"), *rows) == {"offset >= -1 in a": 1}
    assert broken((ordered("offset", "end"),), *rows) == {"offset <= end in a": 1}
    assert broken((ordered("offset", "end", strictly=True),), *rows) == {"offset < end in a": 2}


def test_keys_of_rows_and_of_what_is_current() -> None:
    rows = ("a", 1, 1, "x"), ("a", 2, 1, "x"), ("a", 2, 1, "x"), ("b", 2, 1, "x"), ("b", 7, 1, None), ("b", 7, 1, None)
    assert broken((unique("clusterId", "offset"),), *rows) == {
        "unique (clusterId, offset) in a": 1,
        "unique (clusterId, offset) in b": 1,
    }
    current = (one_current("clusterId", "name"),)
    assert broken(current, *rows, partition="true") == {
        "unique (clusterId, name) WHERE isCurrent in a": 2,
        "unique (clusterId, name) WHERE isCurrent in b": 1,
    }
    assert broken(current, *rows, partition="false") == {}
    assert key_of(key("clusterId", "offset")) == ("clusterId", "offset")
    assert key_of((*not_null("end"), *current)) == ("clusterId", "name") and key_of(not_null("end")) == ()


def test_every_expectation_is_about_columns_that_its_table_has() -> None:
    for spec in catalog.tables().values():
        names = {field.name for field in spec.fields}
        for expectation in spec.expect:
            assert set(expectation.columns) <= names, (spec.name, expectation)
            assert spec.partition_column not in expectation.columns, "it is a directory, not in the file"
        assert len({expectation.name for expectation in spec.expect}) == len(spec.expect), spec.name
        if spec.layer in (catalog.BRONZE, catalog.SILVER):
            assert spec.expect, spec.name


# --- in a warehouse, without Spark ------------------------------------------------------------------------------------


def topic(name: str | None, identifier: str, since: int | None, until: int | None = None) -> dict[str, Any]:
    """A row of the silver table ``topics``."""
    return {
        "clusterId": "one", "name": name, "topicId": identifier, "validFromOffset": since, "validFromMs": 5,
        "validToOffset": until, "validToMs": None, "isCurrent": until is None,
    }  # fmt: skip


def written(warehouse: Warehouse, *rows: dict[str, Any]) -> int:
    """A step that appends rows to ``topics``; gives how many breaches it wrote."""
    arrow, fields = importlib.import_module("pyarrow"), catalog.table("topics").fields
    warehouse.begin(["one"])
    batches = arrow_tables.batches(arrow, fields, rows)
    warehouse.append_files("topics", warehouse.writer("topics").write(batches))
    warehouse.commit({"one": ClusterState({"offset": 1})})
    return len(warehouse.breaches)


def breaches(place: Path) -> list[dict[str, Any]]:
    return sorted(delta_rows(place / "quality/breaches"), key=lambda row: (row["step"], row["expectation"]))


def test_rows_that_break_something_are_rows_of_breaches_and_the_step_counts(tmp_path: Path) -> None:
    pytest.importorskip("deltalake")
    warehouse = Warehouse(None, str(tmp_path))
    with warehouse.writing():
        assert written(warehouse, topic("a", "A", 1, 3), topic("a", "B", 3)) == 0
        assert written(warehouse, topic("b", "C", 9, 4), topic("b", "C", 8, 8), topic("c", "D", None)) == 2
        assert len(delta_rows(tmp_path / "silver/topics")) == 5, "no row is left out"
        assert warehouse.state.step == 2
    backwards, missing = breaches(tmp_path)
    assert (backwards["table"], backwards["expectation"]) == ("topics", "validFromOffset < validToOffset")
    assert (backwards["clusterId"], backwards["step"], backwards["count"], backwards["offset"]) == ("one", 2, 2, 9)
    assert json.loads(backwards["key"]) == {"clusterId": "one", "topicId": "C"}
    assert json.loads(backwards["example"])["name"] == "b"
    assert (missing["expectation"], missing["count"]) == ("validFromOffset IS NOT NULL", 1)


def test_what_is_so_again_is_reported_once(tmp_path: Path) -> None:
    pytest.importorskip("deltalake")
    warehouse = Warehouse(None, str(tmp_path))
    with warehouse.writing():
        assert written(warehouse, topic("b", "C", 9, 4)) == 1
        assert written(warehouse, topic("b", "C", 9, 4)) == 0
        assert written(warehouse, topic("b", "C", 9, 4), topic("b", "C", 8, 4)) == 1, "there are more"
        assert written(warehouse, topic("a", "A", 1)) == 0
    assert [(row["step"], row["count"]) for row in breaches(tmp_path)] == [(1, 1), (3, 2)]


def test_rows_that_are_only_rewritten_are_not_checked_again(tmp_path: Path) -> None:
    pytest.importorskip("deltalake")
    warehouse = Warehouse(None, str(tmp_path))
    with warehouse.writing():
        written(warehouse, topic("b", "C", 9, 4), topic("c", "D", 1))
        for number in range(6):  # small files become one
            assert written(warehouse, topic("a", f"A{number}", 1, 2)) == 0
        warehouse.begin(["two"])
        warehouse.remove(["two"])
        warehouse.commit({})
        assert warehouse.breaches == []
        warehouse.begin(["one"])
        warehouse.remove(["one"])
        warehouse.commit({})
    assert breaches(tmp_path) == [], "a cluster that begins from scratch takes its breaches along"


def test_a_file_that_is_retracted_breaks_nothing(tmp_path: Path) -> None:
    pytest.importorskip("deltalake")
    warehouse = Warehouse(None, str(tmp_path))
    arrow, fields = importlib.import_module("pyarrow"), catalog.table("topics").fields
    with warehouse.writing():
        warehouse.begin(["one"])
        batches = arrow_tables.batches(arrow, fields, [topic("b", "C", 9, 4)])
        warehouse.append_files("topics", warehouse.writer("topics").write(batches))
        warehouse.retract("topics")
        warehouse.commit({"one": ClusterState({"offset": 1})})
    assert breaches(tmp_path) == [] and warehouse.breaches == []


def test_a_key_in_several_files_and_twice_in_one_is_counted_once_for_each_repetition(tmp_path: Path) -> None:
    pytest.importorskip("deltalake")
    warehouse = Warehouse(None, str(tmp_path))
    arrow, fields = importlib.import_module("pyarrow"), catalog.table("topics").fields
    with warehouse.writing():
        warehouse.begin(["one"])
        writer, files = warehouse.writer("topics"), []
        for rows in ([topic("x", "X", 1), topic("x", "X", 2), topic("y", "Y", 1)], [topic("x", "X", 5)]):
            files += writer.write(arrow_tables.batches(arrow, fields, rows))
        assert len(files) == 2
        warehouse.append_files("topics", files)
        warehouse.commit({"one": ClusterState({"offset": 1})})
    (row,) = breaches(tmp_path)
    assert (row["expectation"], row["count"]) == ("unique (clusterId, topicId) WHERE isCurrent", 2)
    assert json.loads(row["key"]) == {"clusterId": "one", "topicId": "X"}


# --- with Spark -------------------------------------------------------------------------------------------------------


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("few_rows", [0, 20_000], ids=["by Spark", "here"])
def test_a_key_that_two_tasks_have_written(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch, few_rows: int
) -> None:
    from kshell.spark.steps.local_frames import frame_of
    from kshell.spark.tables import warehouse as warehouses

    monkeypatch.setattr(warehouses, "_FEW_ROWS", few_rows)

    fields = catalog.table("topics").fields
    same, rest = [topic("x", "X", 1), topic("x", "X", 5)], [topic("y", f"Y{at}", 1) for at in range(6)]
    frame = frame_of(spark, fields, [*same, *rest]).repartitionByRange(2, "validFromOffset")
    warehouse = Warehouse(spark, str(tmp_path))
    with warehouse.writing():
        warehouse.begin(["one"])
        warehouse.append("topics", frame)
        assert len(warehouse.files("topics")) == 2
        warehouse.commit({"one": ClusterState({"offset": 1})})
    (row,) = breaches(tmp_path)
    assert (row["expectation"], row["count"]) == ("unique (clusterId, topicId) WHERE isCurrent", 1)
    assert json.loads(row["key"]) == {"clusterId": "one", "topicId": "X"}


@pytest.mark.spark
@pytest.mark.slow
def test_a_run_whose_rows_break_a_declaration(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Real rows, and a declaration that they cannot keep; without it the same run breaks nothing."""
    from kshell.spark.steps.planning import clusters, reconcile_all
    from kshell.spark.steps.step import advance
    from tests.builders import FIXTURES

    copies = clusters([str(FIXTURES / "4.3.1" / "controller-3001")])
    for wrong in (False, True):
        if wrong:
            spec = catalog.table("topics")
            monkeypatch.setitem(catalog.tables(), "topics", spec._replace(expect=at_least(1 << 40, "validFromOffset")))
        warehouse = Warehouse(spark, str(tmp_path / str(wrong)))
        with warehouse.writing():
            summary = advance(warehouse, reconcile_all(copies, warehouse.state))
        assert (summary.step, len(summary.breaches)) == (1, int(wrong))
        found = breaches(tmp_path / str(wrong))
        assert len(found) == len(summary.breaches)
    (row,) = found
    rows = len(delta_rows(tmp_path / "True/silver/topics"))
    assert (row["table"], row["expectation"]) == ("topics", f"validFromOffset >= {1 << 40}")
    assert row["count"] == rows > 0 and row["offset"] < 1 << 40
    made = report(warehouse.place, 1, summary)
    assert made.exit_code == 0


def test_the_answer_of_a_run_says_how_to_see_them() -> None:
    rows = tuple({"table": name, "expectation": "e", "clusterId": "c", "count": 2, "step": 7} for name in "ab")
    made = report("/data/my tables", 1, NOTHING._replace(step=7, breaches=rows))
    assert made.exit_code == 0
    (section,) = [section for section in made.sections if section.key == "breaches"]
    query = "kshell-pipeline query --out '/data/my tables' 'SELECT * FROM breaches WHERE step >= 7'"
    assert section.title == f"2 breaches of expectations: {query}"
    assert not any(section.key == "breaches" for section in report("/data", 1, NOTHING).sections)
