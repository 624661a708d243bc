"""What steps write into a warehouse of Delta or Iceberg is what they write into one of Parquet.

The jars do not come with Spark: ``KSHELL_TEST_DELTA`` and ``KSHELL_TEST_ICEBERG`` name directories with those of each.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kshell.errors import UsageError
from kshell.spark import formats, session
from kshell.spark.tables import catalog
from kshell.spark.tables.warehouse import Warehouse
from kshell.spark.warehouse.row_tables import RowTables, condition_of, literal, quoted
from kshell.spark.warehouse.storage import LocalStorage
from tests.notebooks import sparks
from tests.spark.warehouse.test_warehouse import AFTER, ODD, TABLES, A, B, Killed, content, first, rows, second

_EXTENSIONS = "spark.sql.extensions"
_OFTEN = (2, 7)
"""A write of which nobody knows, and the first removal after the commit."""
_KILLED_AT = [left if left in _OFTEN else pytest.param(left, marks=pytest.mark.soak) for left in range(12)]


def lacking(name: str) -> str:
    """Why a format cannot be tried here, or nothing."""
    if missing := sparks.missing():
        return missing
    release = formats.installed()
    if release not in formats.FORMATS[name].packages:
        return f"{formats.FORMATS[name].known}; this is {release}"
    return "" if jars(name) else f"KSHELL_TEST_{name.upper()} names no directory of jars"


def jars(name: str) -> list[str]:
    """The jars of a format."""
    folder = os.environ.get(f"KSHELL_TEST_{name.upper()}", "")
    return sorted(glob.glob(os.path.join(glob.escape(folder), "*.jar"))) if folder else []


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One session for all formats that can be tried: a process has one JVM, which is given jars when it starts."""
    found = [name for name in formats.FORMATS if not lacking(name)]
    settings = {
        "spark.sql.shuffle.partitions": "1",
        "spark.jars": ",".join(jar for name in found for jar in jars(name)),
    }
    for name in found:
        extensions = [settings[_EXTENSIONS]] if _EXTENSIONS in settings else []
        settings |= formats.format_settings(name, "/nowhere")
        settings[_EXTENSIONS] = ",".join([*extensions, settings[_EXTENSIONS]])
    folder = str(tmp_path_factory.mktemp("spark"))
    made = session.local("local[1]", warehouse=folder, settings=settings, brief=True)
    try:
        yield made
    finally:
        made.stop()


@pytest.fixture(params=list(formats.FORMATS))
def made(request: pytest.FixtureRequest) -> tuple[str, Any]:
    """A format, and a session for it."""
    name = request.param
    if reason := lacking(name):
        pytest.skip(reason)
    return name, request.getfixturevalue("spark")


@pytest.fixture
def own_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """A catalog of four tables, one of each kind."""
    monkeypatch.setattr(catalog, "tables", lambda: TABLES)


def stored(spark: Any, warehouse: Warehouse) -> dict[str, list[Any]]:
    """What the tables hold for those who know nothing of commits."""
    tables: Any = warehouse.tables
    found = {}
    for name, spec in TABLES.items():
        if not tables._is_there(spec):
            continue
        columns = [field.name for field in spec.fields]
        found[name] = sorted(map(tuple, spark.table(tables._name(spec)).select(*columns).collect()))
    return found


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.usefixtures("own_tables")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # py4j leaves sockets to the collector
class TestAsParquet:
    """The steps of the Parquet warehouse's tests."""

    def test_two_steps_and_a_cluster_that_begins_anew(self, made: tuple[str, Any], tmp_path: Path) -> None:
        name, spark = made
        warehouse = Warehouse(spark, str(tmp_path), name)
        assert content(warehouse) == {name: [] for name in TABLES}
        with warehouse.writing():
            first(warehouse)
            second(warehouse)
        assert warehouse.state.format == name
        again = Warehouse(spark, str(tmp_path))
        assert content(warehouse) == content(again) == stored(spark, again) == AFTER
        for table in TABLES:
            assert sorted(map(tuple, again.read(table, [ODD]).collect())) == [r for r in AFTER[table] if r[0] == ODD]
        assert sorted(map(tuple, again.read("old", part="current").collect())) == [r for r in AFTER["old"] if r[2]]
        assert sorted(map(tuple, again.read_batches("log", [3], [A, B]).collect())) == [(A, 2), (B, 7)]

    def test_rows_that_are_retracted_do_not_count(self, made: tuple[str, Any], tmp_path: Path) -> None:
        name, spark = made
        warehouse = Warehouse(spark, str(tmp_path), name)
        with warehouse.writing():
            warehouse.begin()
            warehouse.append("log", rows(spark, (A, 1), (B, 1)))
            warehouse.retract("log")
            assert content(warehouse)["log"] == []
            assert warehouse.append("log", rows(spark, (A, 5))) == 1
            warehouse.commit({})
        assert content(warehouse)["log"] == stored(spark, warehouse)["log"] == [(A, 5)]

    def test_compaction_keeps_every_row(self, made: tuple[str, Any], tmp_path: Path) -> None:
        name, spark = made
        warehouse = Warehouse(spark, str(tmp_path), name)
        with warehouse.writing():
            first(warehouse)
            second(warehouse)
            warehouse.begin()
            assert warehouse.compact("log", [2, 3]) == 4
            assert warehouse.compact("old", [1, 3]) == 2
            warehouse.commit({})
        assert content(warehouse) == stored(spark, warehouse) == AFTER
        files = warehouse.tables.size(TABLES["log"], warehouse.parts("log"))
        assert files and all(size > 0 and "batch=4" in path for path, size in files)
        assert warehouse.tables.rows(TABLES["log"], warehouse.parts("log"), files) == 4

    @pytest.mark.parametrize("left", _KILLED_AT)
    def test_a_step_that_is_killed_anywhere(self, made: tuple[str, Any], tmp_path: Path, left: int) -> None:
        name, spark = made
        warehouse = Warehouse(spark, str(tmp_path), name)
        with warehouse.writing():
            first(warehouse)
        before = content(warehouse)
        with pytest.MonkeyPatch.context() as patch:
            counted(patch, [left])
            with pytest.raises(Killed), warehouse.writing():
                second(warehouse)
        again = Warehouse(spark, str(tmp_path))
        done = again.state.step == 3
        assert content(again) == (AFTER if done else before)
        with again.writing():
            if not done:
                second(again)
        assert content(again) == stored(spark, again) == AFTER


def counted(patch: pytest.MonkeyPatch, left: list[int]) -> None:
    """After so many writes and removals, the next one is the last; of some, all was done and nobody knows."""

    def ends(owner: Any, method: str, is_done: bool) -> None:
        real = getattr(owner, method)

        def call(*args: Any, **options: Any) -> Any:
            if left[0] == 0:
                if is_done:
                    real(*args, **options)
                raise Killed
            left[0] -= 1
            return real(*args, **options)

        patch.setattr(owner, method, call)

    ends(RowTables, "write", True)
    ends(RowTables, "remove", False)
    ends(LocalStorage, "write", False)
    ends(LocalStorage, "remove", False)


@pytest.mark.parametrize("name", list(formats.FORMATS))
def test_a_spark_that_a_format_does_not_work_with(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(formats, "installed", lambda: "4.3")
    with pytest.raises(UsageError, match=f"{name}: not with Spark 4.3") as caught:
        Warehouse(None, str(tmp_path), name)
    assert "works with Spark 4.1" in str(caught.value.hint)


def test_conditions() -> None:
    kept = {"closed": {A: [1, 3], B: [3, 1], ODD: []}, "current": {A: [3]}}
    assert condition_of(TABLES["old"], kept) == (
        "(batch IN (1, 3) AND clusterId IN ('a', 'b') AND isCurrent = false)"
        " OR (batch IN (3) AND clusterId IN ('a') AND isCurrent = true)"
    )
    assert condition_of(TABLES["log"], {"all": {A: [1], B: [2, 1]}}) == "(batch IN (1, 2))"
    assert condition_of(TABLES["new"], {"all": {}}) == ""
    assert literal("a'b\\c") == "'a\\'b\\\\c'"
    assert quoted("a`b") == "`a``b`"
