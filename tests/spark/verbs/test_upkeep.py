"""``history``, ``optimize``, ``restore``, ``vacuum``, and what ``tables`` says of steps: none of them needs Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kshell.spark import cli
from kshell.spark.tables import catalog
from kshell.spark.tables.warehouse import Warehouse
from tests.spark.tables.small import TABLES, A, B, data_files, pairs, step

ROWS = [(A, 1), (A, 2), (B, 3)]
"""One for each step of the fixture."""


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four small tables after three steps, each of which has added a row to ``log``; a session would be an error."""

    def running(*args: object, **options: object) -> object:
        raise AssertionError("no session is needed for this")

    monkeypatch.setattr("kshell.spark.session.running", running)
    monkeypatch.setattr(catalog, "tables", lambda: TABLES)
    warehouse = Warehouse(None, str(tmp_path / "out"))
    with warehouse.writing():
        for row in ROWS:
            step(warehouse, [row])
    return tmp_path / "out"


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, Any]]:
    """The rows that a verb gives, which must succeed."""
    assert cli.main([*words, "-o", "json"]) == 0
    printed, errors = capsys.readouterr()
    assert not errors
    rows: list[dict[str, Any]] = json.loads(printed)
    return rows


def refusal(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What a verb says that is refused with exit code 2."""
    assert cli.main([*words, "-o", "json"]) == 2
    printed, errors = capsys.readouterr()
    assert not printed
    return errors


def content(out: Path) -> list[tuple[str, int]]:
    return pairs(Warehouse(None, str(out)))


def steps(capsys: pytest.CaptureFixture[str], out: Path) -> list[tuple[Any, ...]]:
    rows = answer(capsys, "history", "--out", str(out))
    return [(row["step"], row["action"], row["state"], row["tables"]) for row in rows]


def test_history_lists_steps_and_the_tables_that_they_changed(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert steps(capsys, out) == [
        (3, "run", "done", ["log"]), (2, "run", "done", ["log"]), (1, "run", "done", sorted(TABLES)),
    ]  # fmt: skip
    rows = answer(capsys, "history", "--out", str(out))
    assert [row["changedTables"] for row in rows] == [1, 1, len(TABLES)]
    assert all(row["time"].endswith("Z") and row["timeMs"] > 1 << 40 for row in rows)


def test_history_shows_what_was_killed(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    warehouse = Warehouse(None, str(out))
    with warehouse.writing():
        warehouse.log.begin(warehouse.begin(), "run")
    assert steps(capsys, out)[0] == (4, "run", "running or killed", [])
    with warehouse.writing():
        assert step(warehouse, [(A, 9)]) == 5
    assert steps(capsys, out)[:3] == [
        (5, "run", "done", ["log"]), (4, "run", "killed", []), (3, "run", "done", ["log"]),
    ]  # fmt: skip


def test_history_of_a_table_says_which_versions_count(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    warehouse = Warehouse(None, str(out))
    with warehouse.writing():  # killed after a table was committed
        warehouse.log.begin(warehouse.begin(), "run")
        table = warehouse.table("log")
        table.drop(list(table.files.values()))
        table.commit(4)
    rows = answer(capsys, "history", "log", "--out", str(out))
    assert [(row["version"], row["step"], row["counts"]) for row in rows] == [
        (3, 4, False), (2, 3, True), (1, 2, True), (0, 1, True),
    ]  # fmt: skip
    with warehouse.writing():
        step(warehouse, [(A, 9)])
    rows = answer(capsys, "history", "log", "--out", str(out))
    counting = [(row["version"], row["counts"]) for row in rows]  # 3 was killed, and 4 undoes it
    assert counting == [(5, True), (4, False), (3, False), (2, True), (1, True), (0, True)]
    assert [row["step"] for row in rows[:4]] == [5, 5, 4, 3], "the writer of step 5 has undone step 4"
    assert content(out) == sorted([*ROWS, (A, 9)])
    assert refusal(capsys, "history", "lag", "--out", str(out)).startswith("kshell-pipeline: lag: no such table\n")


def test_a_dry_run_of_vacuum_writes_nothing_where_a_step_was_killed(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    warehouse = Warehouse(None, str(out))
    with warehouse.writing():  # killed after a table was committed
        warehouse.log.begin(warehouse.begin(), "run")
        table = warehouse.table("log")
        table.drop(list(table.files.values()))
        table.commit(4)
        before = sorted(path for path in out.rglob("*"))
        answer(capsys, "vacuum", "--out", str(out), "--retain", "0h", "--dry-run")  # nor does it wait for the lock
    assert sorted(path for path in out.rglob("*")) == before
    assert content(out) == ROWS


def test_tables_names_the_step_that_changed_each(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = {row["table"]: row for row in answer(capsys, "tables", "--out", str(out))}
    assert {name: row["step"] for name, row in rows.items()} == {"log": 3, "new": 1, "old": 1, "all": 1}
    assert (rows["log"]["rows"], rows["log"]["files"]) == (3, 3)
    sizes = [(out / path).stat().st_size for path in data_files(out) if path.startswith("bronze/log/")]
    assert rows["log"]["bytes"] == sum(sizes)


def test_optimize_puts_files_together_and_changes_no_row(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = answer(capsys, "optimize", "--out", str(out))
    assert (row["table"], row["filesBefore"], row["filesAfter"]) == ("log", 3, 1)
    assert row["bytesBefore"] > row["bytesAfter"] > 0
    assert content(out) == ROWS
    assert steps(capsys, out)[0] == (4, "optimize", "done", ["log"])
    assert answer(capsys, "optimize", "--out", str(out)) == [], "nothing to put together"
    assert len(steps(capsys, out)) == 4, "and no step"
    with Warehouse(None, str(out)).writing():
        pass
    assert content(out) == ROWS


def test_restore_brings_back_what_a_step_left(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(capsys, "restore", "1", "--out", str(out)) == [
        {"step": 4, "restored": 1, "clusters": 1, "changedTables": 1}
    ]
    assert content(out) == ROWS[:1]
    state = Warehouse(None, str(out)).state
    assert {name: one.reached for name, one in state.clusters.items()} == {A: {"offset": 1}}, (
        "the next run goes on there"
    )
    assert steps(capsys, out)[0] == (4, "restore 1", "done", ["log"])
    answer(capsys, "restore", "3", "--out", str(out))
    assert content(out) == ROWS
    assert "there is no step 9\nthere are 1, 2, 3, 4, 5" in refusal(capsys, "restore", "9", "--out", str(out))


def test_vacuum_removes_what_no_step_that_is_retained_has(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer(capsys, "optimize", "--out", str(out))
    before = data_files(out)
    answer(capsys, "vacuum", "--out", str(out))
    assert {*before} <= {*data_files(out)}, "what steps of two days have stays"
    planned = answer(capsys, "vacuum", "--out", str(out), "--retain", "0h", "--dry-run")
    assert {*before} <= {*data_files(out)}, "a dry run removes nothing"
    found = {row["table"]: row for row in planned}
    log = [path for path in before if path.startswith("bronze/log/")]
    assert found["log"]["files"] == len(log) - 1 == 3
    (kept,) = (file.path for file in Warehouse(None, str(out)).files("log"))
    sizes = [(out / path).stat().st_size for path in log if path != f"bronze/log/{kept}"]
    assert found["log"]["bytes"] == sum(sizes)
    removed = {row["table"]: row for row in answer(capsys, "vacuum", "--out", str(out), "--retain", "0h")}
    assert removed["log"] == found["log"]
    assert [path for path in data_files(out) if path.startswith("bronze/log/")] == [f"bronze/log/{kept}"]
    assert content(out) == ROWS
    assert "step 2 cannot be restored" in refusal(capsys, "restore", "2", "--out", str(out))
    assert content(out) == ROWS


@pytest.mark.parametrize("words", [("optimize",), ("restore", "1"), ("vacuum", "--retain", "0h")])
def test_not_while_another_writes(out: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    before = data_files(out)
    with Warehouse(None, str(out)).writing():
        errors = refusal(capsys, *words, "--out", str(out))
    assert errors.startswith(f"kshell-pipeline: {out}: another process is writing there")
    assert data_files(out) == before and content(out) == ROWS
