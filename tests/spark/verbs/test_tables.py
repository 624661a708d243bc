"""``tables``, ``query`` and ``run`` as far as they need no session, and what every verb refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kshell.errors import SourceError
from kshell.spark import cli
from kshell.spark.steps.cluster_changes import change_of
from kshell.spark.steps.planning import clusters, reconcile_all
from kshell.spark.tables import catalog
from kshell.spark.tables.steps import ClusterState, WarehouseState
from kshell.spark.verbs import query
from tests.builders import FIXTURES, batch, value, write_log
from tests.spark.files.test_scan import refusing
from tests.spark.warehouses import committed


def call(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """(exit code, standard output, standard error)"""
    code = cli.main(list(words))
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session would be an error."""

    def running(*args: object, **options: object) -> object:
        raise AssertionError("no session is needed for this")

    monkeypatch.setattr("kshell.spark.session.running", running)


def test_columns_of_every_table(capsys: pytest.CaptureFixture[str], without_spark: None) -> None:
    code, out, _ = call(capsys, "tables", "--schema", "-o", "json")
    found = [(row["table"], row["column"]) for row in json.loads(out)]
    assert code == 0
    assert found == [(name, field.name) for name, spec in catalog.tables().items() for field in spec.fields]
    code, out, _ = call(capsys, "tables", "records", "--schema", "-o", "json")
    assert {row["table"] for row in json.loads(out)} == {"records"}


def test_every_table_is_of_a_cluster_and_of_a_layer() -> None:
    for name, spec in catalog.tables().items():
        assert spec.name == name
        assert spec.layer in catalog.LAYERS
        assert spec.fields[0].name == "clusterId"
        assert len({field.name for field in spec.fields}) == len(spec.fields)
        assert all(field.doc for field in spec.fields)
    assert set(catalog.current_views().values()) == {n for n, s in catalog.tables().items() if s.layer == "silver"}


def test_tables_of_an_empty_place(capsys: pytest.CaptureFixture[str], tmp_path: Path, without_spark: None) -> None:
    """A path that is wrong is not an empty fleet."""
    for place in (tmp_path, tmp_path / "nowhere"):
        code, out, said = call(capsys, "tables", "--out", str(place), "-o", "json")
        assert (code, out) == (2, "")
        assert f"{place}: there are no tables" in said


@pytest.mark.parametrize("sql", ["SELECT 'x' AS insert", "SELECT insert FROM topics -- insert into"])
def test_a_column_may_be_called_insert(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, without_spark: None, sql: str
) -> None:
    code, _, said = call(capsys, "query", sql, "--out", str(tmp_path))
    assert code == 2 and f"{tmp_path}: there are no tables" in said


@pytest.mark.parametrize(
    "sql",
    [
        "WITH a AS (SELECT 1) INSERT INTO topics SELECT * FROM a",
        "WITH a AS (SELECT 1) INSERT WITH SCHEMA EVOLUTION INTO topics SELECT * FROM a",
        "FROM topics INSERT/**/OVERWRITE x SELECT *",
    ],
)
def test_only_reading_is_allowed(capsys: pytest.CaptureFixture[str], tmp_path: Path, sql: str) -> None:
    code, _, said = call(capsys, "query", sql, "--out", str(tmp_path))
    assert code == 2 and "only SELECT is allowed" in said


def test_maps_with_keys_that_are_lists() -> None:
    arrow = pytest.importorskip("pyarrow")
    kind = arrow.map_(arrow.list_(arrow.int64()), arrow.string())
    table = arrow.table({"m": arrow.array([[([1, 2], "x")], None], kind), "n": arrow.array([1, 2])})
    assert list(query._rows(["m", "n"], table)) == [{"m": [[[1, 2], "x"]], "n": 1}, {"m": None, "n": 2}]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("tables",), 2, "no --out\n"),
        (("tables", "record", "--schema"), 2, "record: no such table\ndid you mean records"),
        (("run", "--out", "OUT"), 2, "no --source\n"),
        (("run", "--source", "/nowhere"), 2, "no --out\n"),
        (("run", "--source", "/nowhere", "--out", "OUT"), 3, "/nowhere: no such file or directory\n"),
        (("run", "--source", "/nowhere", "--out", "OUT", "--master", "local[0]"), 2, "local[0]: no master"),
        (("run", "--source", "/nowhere", "--out", "OUT", "--format", "delta"), 2, "run: there is no option --format"),
        (("query", "--out", "OUT", "DROP TABLE topics"), 2, "query: only SELECT is allowed\n"),
        (("query", "--out", "OUT", "SELECT 1"), 2, "OUT: there are no tables\n"),
        (("report", "--out", "OUT"), 2, "OUT: there are no tables\n"),
        (("tables", "--out", __file__), 2, f"{__file__}: not a directory\n"),
        (("query", "--out", __file__, "SELECT 1"), 2, f"{__file__}: not a directory\n"),
        (("run", "--source", str(FIXTURES / "*/*"), "--out", __file__), 2, f"{__file__}: not a directory\n"),
        (("compact", "--out", "OUT"), 2, "compact: no such verb\n"),
        *(
            ((verb, *words, "--out", "OUT"), 2, "OUT: there are no tables\n")
            for verb, *words in (("optimize",), ("history",), ("history", "topics"), ("restore", "1"), ("vacuum",))
        ),
        (("optimize", "--out", __file__), 2, f"{__file__}: not a directory\n"),
        (("optimize",), 2, "no --out\n"),
        (("optimize", "--out", "OUT", "--target", "0"), 2, "optimize: --target: '0' is not a number of megabytes\n"),
        (("restore", "last", "--out", "OUT"), 2, "last: no number of a step\n"),
        (("vacuum", "--out", "OUT", "--retain", "7"), 2, "vacuum: --retain: '7' is not a duration"),
    ],
)
def test_what_is_refused(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    without_spark: None,
    words: tuple[str, ...],
    code: int,
    said: str,
) -> None:
    place = str(tmp_path / "out")
    found = call(capsys, *(place if word == "OUT" else word for word in words))
    assert found[:2] == (code, "")
    assert found[2].startswith(f"kshell-pipeline: {said.replace('OUT', place)}")
    assert not (tmp_path / "out").exists()


def test_where_nothing_can_be_read_that_is_the_error(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, without_spark: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_log(tmp_path / "in" / "a" / "__cluster_metadata-0", batch([value("NO_OP")]))
    words = ("run", "--source", str(tmp_path / "in" / "*"), "--out", str(tmp_path / "out"))
    with monkeypatch.context() as patch:
        refusing(patch, "a")
        code, out, err = call(capsys, *words)
        assert (code, out) == (3, "") and "a/__cluster_metadata-0: permission denied" in err
        assert not (tmp_path / "out").exists()

    def plan(*given: object) -> object:
        raise SourceError("cannot be planned")

    monkeypatch.setattr("kshell.spark.steps.planning.reconcile", plan)
    assert call(capsys, *words) == (3, "", "kshell-pipeline: cannot be planned\n")


def test_a_second_run_with_nothing_new_starts_no_session(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, without_spark: None
) -> None:
    source = str(FIXTURES / "*" / "*")  # several copies of most clusters
    found = reconcile_all(clusters([source]), WarehouseState())
    assert all(change_of(one, WarehouseState()) for one in found)
    states = {one.cluster_id: ClusterState(one.checkpoint._asdict()) for one in found}
    committed(tmp_path, states)
    code, out, err = call(capsys, "run", "--source", source, "--out", str(tmp_path), "-o", "json")
    assert (code, err) == (0, "")
    assert json.loads(out)["summary"] | {"seconds": 0} == {
        "out": str(tmp_path), "step": None, "clusters": len(found), "changedClusters": 0, "restartedClusters": 0,
        "bytesRead": 0, "seconds": 0,
    }  # fmt: skip


@pytest.mark.parametrize("verb", ["run", "stream", "report"])
def test_a_cluster_id_that_is_not_utf_8(
    verb: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, without_spark: None
) -> None:
    words = [verb, "--out", str(tmp_path / "out"), "--cluster", "a\udcff"]  # as Python has the byte FF of a line
    code, out, err = call(capsys, *words)
    assert (code, out) == (2, "")
    assert err.startswith(f"kshell-pipeline: {verb}: --cluster: 'a\\udcff' is not text in UTF-8; write a cluster's id")
    assert not (tmp_path / "out").exists()


def test_a_name_that_is_not_utf_8(capsys: pytest.CaptureFixture[str], tmp_path: Path, without_spark: None) -> None:
    code, _, err = call(capsys, "report", "--out", str(tmp_path), "--name", "a=\udcff")
    assert code == 2 and "is not text in UTF-8" in err
