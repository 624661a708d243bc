"""Steps: which versions of the tables belong together, who may write, and what comes of writers that are killed."""

from __future__ import annotations

import importlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kshell.errors import CommandError, DataError, SourcePermissionError, UsageError
from kshell.spark import cli
from kshell.spark.tables import delta, log_files, steps
from kshell.spark.tables.delta import DeltaTable
from kshell.spark.tables.steps import ClusterState, StepLog, WarehouseState
from kshell.spark.tables.warehouse import Warehouse
from tests.rights import locked
from tests.spark.here import ROOT
from tests.spark.tables.small import TABLES, A, B, data_files, log_row, pairs, rows_of, step, write

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("small_catalog")]


def test_an_empty_place_is_step_0(tmp_path: Path) -> None:
    assert StepLog(str(tmp_path / "out")).load() == WarehouseState()
    assert not (tmp_path / "out").exists()


def test_a_state_comes_back_as_it_was_committed(tmp_path: Path) -> None:
    states = {
        "Ä": ClusterState({"offset": 7, "places": {"a/b": ["c", 1, 2]}}, 4, 2),
        "x": ClusterState({"places": {"/fleet/caf\udce9": ["/fleet/caf\udce9/0.log", 0]}}),  # no UTF-8
    }
    warehouse = Warehouse(None, str(tmp_path))
    with warehouse.writing():
        warehouse.begin(states)
        warehouse.commit(states, {"y": {"/fleet/y": "permission denied"}})
    found = StepLog(str(tmp_path)).load()
    assert (found.clusters, found.failed) == (states, {"y": {"/fleet/y": "permission denied"}})
    assert found.versions.keys() == {*TABLES, "progress"}, "tables without rows are there, too"
    with warehouse.writing():
        step(warehouse, [(A, 1)])
    found = StepLog(str(tmp_path)).load()
    assert found.step == 2 and found.clusters.keys() == {*states, A} and found.rows == {"log": 1}
    assert StepLog(str(tmp_path)).load(1).clusters == states
    with pytest.raises(UsageError, match="there is no step 9") as raised:
        StepLog(str(tmp_path)).load(9)
    assert raised.value.hint == "there are 1, 2"


def test_a_reader_sees_the_step_that_it_opened(tmp_path: Path) -> None:
    writer = Warehouse(None, str(tmp_path))
    with writer.writing():
        step(writer, [(A, 1)])
        reader = Warehouse(None, str(tmp_path))
        step(writer, [(A, 2)])
        assert pairs(reader) == [(A, 1)]
        assert reader.renew() and pairs(reader) == [(A, 1), (A, 2)]
        assert not reader.renew()


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    first, second = Warehouse(None, str(tmp_path)), Warehouse(None, str(tmp_path))
    said = rf"another process is writing there \(.*process {os.getpid()}\)"
    with first.writing(), pytest.raises(CommandError, match=said), second.writing():
        pass
    with first.writing():
        step(first, [(A, 1)])
    with second.writing():  # which knew nothing of it
        step(second, [(A, 2)])
    assert pairs(second) == [(A, 1), (A, 2)]


def no_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a store, or on a file system without locks."""
    import contextlib

    monkeypatch.setattr("kshell.spark.tables.warehouse.writer_lock", lambda place: contextlib.nullcontext(False))


def test_of_two_writers_without_a_lock_one_wins_and_the_other_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_lock(monkeypatch)
    first, second = Warehouse(None, str(tmp_path)), Warehouse(None, str(tmp_path))
    with first.writing():
        step(first, [(A, 1)])
    with first.writing(), second.writing():
        for warehouse, number in ((first, 2), (second, 3)):
            warehouse.begin([A])
            warehouse.append_files("log", write(warehouse, "log", [log_row(A, number)]))
        first.commit({A: ClusterState({"offset": 2})})
        with pytest.raises(CommandError, match="another writer has committed meanwhile") as raised:
            second.commit({A: ClusterState({"offset": 3})})
        assert raised.value.hint
    for reader in (first, Warehouse(None, str(tmp_path))):
        reader.renew()
        assert pairs(reader) == [(A, 1), (A, 2)]
    with second.writing():
        step(second, [(A, 3)])
    assert pairs(second) == [(A, 1), (A, 2), (A, 3)]


def test_a_writer_that_is_committing_is_not_disturbed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_lock(monkeypatch)
    warehouse, other = Warehouse(None, str(tmp_path)), Warehouse(None, str(tmp_path))
    with warehouse.writing():
        step(warehouse, [(A, 1)])
        warehouse.begin([A])
        warehouse.log.begin(warehouse.step, "run")
        with pytest.raises(CommandError, match=r"began step 2 \d+ s ago"), other.writing():
            pass
        monkeypatch.setattr(steps, "_LEASE_MS", -1)  # minutes later
        with other.writing():
            step(other, [(A, 2)])
        with pytest.raises(CommandError, match="another writer has committed"):
            warehouse.commit({A: ClusterState({"offset": 3})})
    assert pairs(Warehouse(None, str(tmp_path))) == [(A, 1), (A, 2)]


class Killed(BaseException):
    """As a signal that nothing catches."""


def second_step(warehouse: Warehouse) -> None:
    """More rows of one cluster, and another one from scratch, in three tables."""
    warehouse.begin([A, B])
    warehouse.remove([B])
    for name in ("log", "new"):
        rows = [log_row(A, 2), log_row(B, 7)] if name == "log" else [{"clusterId": A, "n": 2}, {"clusterId": B, "n": 7}]
        warehouse.append_files(name, write(warehouse, name, rows))
    warehouse.commit({A: ClusterState({"offset": 2}), B: ClusterState({"offset": 7})})


def test_a_step_that_is_killed_anywhere_does_not_count_or_counts_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {"log": [(A, 1), (B, 1)], "new": []}
    after = {"log": [(A, 1), (A, 2), (B, 7)], "new": [(A, 2), (B, 7)]}
    monkeypatch.setattr("kshell.spark.tables.warehouse._THREADS", 1)
    seen = []
    for calls in range(40):
        place = tmp_path / str(calls)
        warehouse = Warehouse(None, str(place))
        with warehouse.writing():
            step(warehouse, [(A, 1), (B, 1)])
        with monkeypatch.context() as patch:
            dies_at(patch, calls)
            try:
                with warehouse.writing():
                    second_step(warehouse)
            except Killed:
                pass
            else:
                break
        again = Warehouse(None, str(place))
        found = {name: pairs(again, name) for name in before}
        assert found in (before, after)
        seen.append(found == after)
        with again.writing():
            assert {name: pairs(again, name) for name in before} == found
            if found == before:
                second_step(again)
        assert {name: pairs(again, name) for name in before} == after
    assert len(seen) == 10 and seen == [False] * 9 + [True]


def dies_at(patch: pytest.MonkeyPatch, calls: int) -> None:
    """The writer dies before a commit of a table (of even numbers), or right after it (odd ones)."""
    left, real = [calls // 2], DeltaTable.commit

    def commit(table: DeltaTable, number: int, **options: Any) -> int:
        if left[0] == 0:
            if calls % 2:
                real(table, number, **options)
            raise Killed
        left[0] -= 1
        return real(table, number, **options)

    patch.setattr(DeltaTable, "commit", commit)
    patch.setattr("kshell.spark.tables.data_files.DataFileWriter.remove", lambda *_: None)


WRITER = """
import random, sys
sys.path.insert(0, {root!r})
from kshell.spark.tables import catalog
from kshell.spark.tables.steps import ClusterState
from kshell.spark.tables.warehouse import Warehouse
from tests.spark.tables.small import TABLES, log_row, write
catalog.tables = lambda: TABLES
warehouse = Warehouse(None, sys.argv[1])
with warehouse.writing():
    while (number := len(warehouse.state.clusters)) < int(sys.argv[2]):
        cluster = f"cluster-{{number:03}}"
        warehouse.begin([cluster])
        warehouse.append_files("log", write(warehouse, "log", [log_row(cluster, n) for n in range(20)]))
        warehouse.append_files("new", write(warehouse, "new", [dict(clusterId=cluster, n=n) for n in range(20)]))
        old = [dict(clusterId=cluster, n=n, isCurrent=bool(n % 2)) for n in range(20)]
        warehouse.append_files("old", write(warehouse, "old", old))
        warehouse.commit({{cluster: ClusterState({{"offset": number}})}})
        print(number, flush=True)
"""


def whole(warehouse: Warehouse) -> int:
    """Asserts that every table has all rows of every cluster of the step, and none besides; gives how many clusters."""
    clusters = sorted(warehouse.state.clusters)
    wanted = [(cluster, n) for cluster in clusters for n in range(20)]
    for name in ("log", "new", "old"):
        assert pairs(warehouse, name) == wanted, name
    return len(clusters)


def killed_at_random(place: Path, kills: int, chosen: random.Random) -> int:
    """Writers of three tables, each killed at a random moment; gives how many were killed between tables."""
    target, between = 10_000, 0
    for _ in range(kills):
        program = [sys.executable, "-c", WRITER.format(root=str(ROOT)), str(place), str(target)]
        with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(chosen.uniform(0, 0.6))
            process.send_signal(signal.SIGKILL)
        reader = Warehouse(None, str(place))
        whole(reader)
        between += reader.log.interrupted is not None
    return between


@pytest.mark.parametrize("kills", [8, pytest.param(50, marks=[pytest.mark.soak, pytest.mark.long])])
def test_writers_killed_at_random_moments_lose_and_double_nothing(tmp_path: Path, kills: int) -> None:
    killed_at_random(tmp_path, kills, random.Random(3))
    warehouse = Warehouse(None, str(tmp_path))
    with warehouse.writing():
        done = whole(warehouse)
        step(warehouse, [("last", n) for n in range(20)])
    assert done >= kills
    killed = data_files(tmp_path)
    with warehouse.writing():
        warehouse.vacuum(0)
    assert len(data_files(tmp_path)) < len(killed)
    assert pairs(warehouse) == sorted(
        [(f"cluster-{c:03}", n) for c in range(done) for n in range(20)] + [("last", n) for n in range(20)]
    )


def test_small_files_become_one(tmp_path: Path) -> None:
    warehouse = Warehouse(None, str(tmp_path))
    with warehouse.writing():
        for number in range(12):
            step(warehouse, [(A, number)])
        assert len(warehouse.files("log")) <= 5
        assert pairs(warehouse) == [(A, number) for number in range(12)]
        assert rows_of(warehouse, "log")[3]["features"] == [("kraft.version", {"min": 0, "max": 11})]
        assert warehouse.optimize(128 << 20) == ["log"]
        assert len(warehouse.files("log")) == 1 and warehouse.optimize(128 << 20) == []
    assert pairs(Warehouse(None, str(tmp_path))) == [(A, number) for number in range(12)]


def test_a_file_that_was_merged_may_be_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Longer than the files that a step merges."""
    warehouse = Warehouse(None, str(tmp_path))
    with warehouse.writing():
        step(warehouse, [(A, 0)])
        (file,) = warehouse.files("log")
        monkeypatch.setattr("kshell.spark.tables.warehouse._SMALL_FILE", file.size + 100)
        monkeypatch.setattr("kshell.spark.tables.data_files.GROUP_BYTES", 1)
        for number in range(1, 5):
            step(warehouse, [(A, number)])
        (merged,) = warehouse.files("log")
        assert merged.size > 2 * file.size


def test_restore_brings_back_what_a_step_left_and_can_itself_be_undone(tmp_path: Path) -> None:
    warehouse = Warehouse(None, str(tmp_path))
    with warehouse.writing():
        for number in range(1, 21):
            step(warehouse, [(A, number), (f"c{number}", 0)])
        state = warehouse.restore(7)
        assert (state.step, len(state.clusters)) == (21, 8)
        assert state.clusters[A] == ClusterState({"offset": 7})
        assert [n for cluster, n in pairs(warehouse) if cluster == A] == [*range(1, 8)]
        warehouse.restore(20)
        assert [n for cluster, n in pairs(warehouse) if cluster == A] == [*range(1, 21)]
        warehouse.restore(7)
        step(warehouse, [(A, 77)])
    again = Warehouse(None, str(tmp_path))
    assert [n for cluster, n in pairs(again) if cluster == A] == [*range(1, 8), 77]
    with again.writing():
        again.vacuum(0)
        with pytest.raises(CommandError, match="is not there any more"):
            again.restore(3)
        assert [n for cluster, n in pairs(again) if cluster == A] == [*range(1, 8), 77]


def test_vacuum_keeps_what_counts_and_what_is_retained(tmp_path: Path) -> None:
    warehouse = Warehouse(None, str(tmp_path))
    with warehouse.writing():
        for number in range(8):
            step(warehouse, [(A, number)])
        files = data_files(tmp_path)
        assert warehouse.vacuum(48) == dict.fromkeys([*TABLES, "steps", "progress"], (0, 0))
        planned = warehouse.vacuum(0, dry_run=True)
        assert planned["log"][0] > 0 and planned["log"][1] > 0
        assert set(files) <= set(data_files(tmp_path))
        removed = warehouse.vacuum(0)
        assert removed == planned
        counting = {f"bronze/log/{file.path}" for file in warehouse.files("log")}
        assert {path for path in data_files(tmp_path) if path.startswith("bronze/log")} == counting
    assert pairs(Warehouse(None, str(tmp_path))) == [(A, number) for number in range(8)]


def test_vacuum_counts_a_file_once_that_was_dropped_twice(tmp_path: Path) -> None:
    warehouse = Warehouse(None, str(tmp_path))
    with warehouse.writing():
        for number in range(8):
            step(warehouse, [(A, number)])
        warehouse.restore(3)
        warehouse.restore(8)
        warehouse.restore(3)
        planned = warehouse.vacuum(0, dry_run=True)["log"]
        log = tmp_path / "bronze/log"
        sizes = {path: path.stat().st_size for path in log.glob("*.parquet")}
        assert warehouse.vacuum(0)["log"] == planned
    gone = [size for path, size in sizes.items() if not path.exists()]
    assert planned == (len(gone), sum(gone))


def aged(place: Path, days: int) -> None:
    """Shifts all times in the tables' logs and of the files into the past; the rows of ``_kshell/steps`` stay."""
    shift = days * 86_400_000
    names = ("timestamp", "deletionTimestamp", "modificationTime", "createdTime")
    for path in place.rglob("*"):
        if path.suffix == ".json" and path.parent.name == "_delta_log":
            actions = [json.loads(line) for line in path.read_text().splitlines()]
            for action in (action for entry in actions for action in entry.values()):
                action |= {name: action[name] - shift for name in names if isinstance(action.get(name), int)}
            path.write_text("".join(json.dumps(entry) + "\n" for entry in actions))
        if path.is_file():
            os.utime(path, (time.time() - days * 86_400,) * 2)


def test_vacuum_retains_longer_than_the_logs_of_tables_know_of(tmp_path: Path) -> None:
    """A checkpoint forgets files that were dropped more than 48 hours ago."""
    warehouse = Warehouse(None, str(tmp_path))
    with warehouse.writing():
        for number in range(8):
            step(warehouse, [(A, number)])
    aged(tmp_path, 3)
    warehouse = Warehouse(None, str(tmp_path))
    with warehouse.writing():
        for number in range(8, 32):
            step(warehouse, [(A, number)])
        assert list((tmp_path / "bronze/log/_delta_log").glob("*.checkpoint.parquet"))
        assert {name for name, (files, _) in warehouse.vacuum(72, dry_run=True).items() if files} == {"steps"}
        warehouse.vacuum(72)
        for number in (3, 32):
            warehouse.restore(number)
            assert pairs(warehouse) == [(A, at) for at in range(number)]


def test_the_versions_of_a_period_are_those_of_its_steps_and_of_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse = Warehouse(None, str(tmp_path))
    now = time.time()
    with warehouse.writing():
        for number in range(6):
            with monkeypatch.context() as patch:
                patch.setattr("kshell.spark.tables.steps.time.time", lambda hours=(6 - number) * 10: now - hours * 3600)
                step(warehouse, [(A, number)])
    log = StepLog(str(tmp_path))
    log.load()
    assert [log.versions_of(hours)["log"] for hours in (0, 5, 15, 25, 61, 1000)] == [
        {5}, {5}, {4, 5}, {3, 4, 5}, {0, 1, 2, 3, 4, 5}, {0, 1, 2, 3, 4, 5}
    ]  # fmt: skip
    assert log.versions_of(15)["progress"] == {4, 5}


def test_a_version_that_the_log_of_its_table_lost_is_not_called_a_missing_table(tmp_path: Path) -> None:
    warehouse = Warehouse(None, str(tmp_path))
    with warehouse.writing():
        for number in range(3):
            step(warehouse, [(A, number)])
        deltalake().DeltaTable(str(tmp_path / "bronze/log")).create_checkpoint()
        for path in (tmp_path / "bronze/log/_delta_log").glob("*00[01].json"):
            path.unlink()
        with pytest.raises(
            CommandError, match=r"step 1 cannot be restored: .*bronze/log: its version 0 cannot"
        ) as raised:
            warehouse.restore(1)
        warehouse.vacuum(72)  # not hindered by a step that cannot be read
    assert "7 days" in str(raised.value.hint)


def test_others_may_tidy_up_but_not_write_rows(tmp_path: Path) -> None:
    warehouse = Warehouse(None, str(tmp_path))
    with warehouse.writing():
        for number in range(3):
            step(warehouse, [(A, number)])
    place = str(tmp_path / "bronze/log")
    deltalake().DeltaTable(place).optimize.compact()
    deltalake().DeltaTable(place).vacuum(0, dry_run=False, enforce_retention_duration=False)
    assert pairs(Warehouse(None, str(tmp_path))) == [(A, number) for number in range(3)], "though old files are gone"
    with warehouse.writing():
        step(warehouse, [(A, 3)])
    assert pairs(warehouse) == [(A, number) for number in range(4)]
    rows = deltalake().DeltaTable(place).to_pyarrow_table().slice(0, 1)
    deltalake().write_deltalake(place, rows, mode="append")
    assert pairs(Warehouse(None, str(tmp_path))) == [(A, number) for number in range(4)], "readers have the step"
    with warehouse.writing(), pytest.raises(CommandError, match="was written by another program") as raised:
        step(warehouse, [(A, 4)])
    assert "restore" in str(raised.value.hint)
    with warehouse.writing():
        warehouse.restore(4)
        step(warehouse, [(A, 4)])
    assert pairs(warehouse) == [(A, number) for number in range(5)]


def test_what_others_change_besides_rows_stops_nobody(tmp_path: Path) -> None:
    warehouse = Warehouse(None, str(tmp_path))
    with warehouse.writing():
        step(warehouse, [(A, 1)])
    table = deltalake().DeltaTable(str(tmp_path / "bronze/log"))
    table.alter.set_table_description("of the fleet")
    table.alter.set_column_metadata("n", {"comment": "a number"})
    table.alter.add_constraint({"positive": "n > 0"})
    table.alter.drop_constraint("positive")
    assert Warehouse(None, str(tmp_path)).table("log").version == 4
    with warehouse.writing():
        step(warehouse, [(A, 2)])
    assert pairs(Warehouse(None, str(tmp_path))) == [(A, 1), (A, 2)]
    table.update_incremental()
    table.delete("n = 1")
    table.alter.set_table_description("again")
    assert pairs(Warehouse(None, str(tmp_path))) == [(A, 1), (A, 2)]
    with warehouse.writing(), pytest.raises(CommandError, match=r"version 6 was written by another .* \(DELETE\)"):
        step(warehouse, [(A, 3)])


def test_a_table_that_another_program_made_is_not_written_to(tmp_path: Path) -> None:
    lake, place = deltalake(), str(tmp_path / "bronze/log")
    lake.DeltaTable.create(place, lake.Schema([lake.Field("clusterId", "string")]))
    warehouse = Warehouse(None, str(tmp_path))
    with warehouse.writing(), pytest.raises(CommandError, match="version 0 was written by another program"):
        step(warehouse, [(A, 1)])


def test_tables_of_an_older_kshell_are_refused(tmp_path: Path) -> None:
    (tmp_path / "_kshell/state").mkdir(parents=True)
    (tmp_path / "_kshell/state/00000007.json").write_text('{"layout":5}')
    with pytest.raises(UsageError, match="tables of an older kshell") as raised:
        Warehouse(None, str(tmp_path))
    assert "--out" in str(raised.value.hint)


def test_a_file_in_place_of_the_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(CommandError, match="file: not a directory"):
        Warehouse(None, str(tmp_path / "file"))


def test_a_place_that_may_not_be_written_to(tmp_path: Path) -> None:
    warehouse = Warehouse(None, str(tmp_path / "out"))
    with locked(tmp_path), pytest.raises(CommandError, match="Permission denied") as refused, warehouse.writing():
        pass
    assert refused.value.hint == "tables need a directory in which you may write"


@pytest.mark.parametrize("table", ["_kshell/steps", "_kshell/progress", "bronze/log"])
@pytest.mark.parametrize("damage", ["log", "data", "gone"])
def test_what_is_damaged_is_named(tmp_path: Path, table: str, damage: str) -> None:
    warehouse = Warehouse(None, str(tmp_path))
    with warehouse.writing():
        step(warehouse, [(A, 1)])
    place = tmp_path / table
    if damage == "log":
        place = place / "_delta_log/00000000000000000000.json"
        place.write_bytes(place.read_bytes() + b"{]\n")
    else:
        for path in place.glob("*.parquet"):
            path.unlink() if damage == "gone" else path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(DataError) as raised:
        pairs(Warehouse(None, str(tmp_path)))
    assert str(place) in raised.value.message
    assert raised.value.hint


@pytest.mark.parametrize(
    "steps_made, name", [(6, "00000000000000000004.json"), (22, "00000000000000000019.checkpoint")]
)
@pytest.mark.parametrize("damage", ["cut", "empty", "overwritten"])
def test_a_damaged_file_of_a_log_is_named(tmp_path: Path, steps_made: int, name: str, damage: str) -> None:
    warehouse = Warehouse(None, str(tmp_path))
    with warehouse.writing():
        for number in range(steps_made):
            step(warehouse, [(A, number)])
    [path] = (tmp_path / "bronze/log/_delta_log").glob(f"{name}*")
    content = path.read_bytes()
    middle = len(content) // 2
    overwritten = content[:middle] + bytes(middle - 8) + content[-8:]
    path.write_bytes({"cut": content[:20], "empty": b"", "overwritten": overwritten}[damage])
    with pytest.raises(DataError) as raised:
        pairs(Warehouse(None, str(tmp_path)))
    assert raised.value.message.startswith(f"{path}: ")
    assert "restore its _delta_log" in str(raised.value.hint)


def test_an_empty_entry_that_no_step_has_is_passed_over(tmp_path: Path) -> None:
    warehouse = Warehouse(None, str(tmp_path))
    with warehouse.writing():
        step(warehouse, [(A, 1)])
    for table in ("bronze/log", "_kshell/steps"):
        log = tmp_path / table / "_delta_log"
        (log / f"{len(list(log.glob('*.json'))):020}.json").touch()
    assert pairs(Warehouse(None, str(tmp_path))) == [(A, 1)]
    again = Warehouse(None, str(tmp_path))
    with again.writing():
        step(again, [(A, 2)])
    assert pairs(Warehouse(None, str(tmp_path))) == [(A, 1), (A, 2)]


@pytest.mark.parametrize("version", [0, 3, 5])
def test_a_log_that_lacks_a_version_says_which(tmp_path: Path, version: int) -> None:
    warehouse = Warehouse(None, str(tmp_path))
    with warehouse.writing():
        for number in range(6):
            step(warehouse, [(A, number)])
    path = tmp_path / f"bronze/log/_delta_log/{version:020}.json"
    path.unlink()
    said = "its version 5 is not there any more, the newest is 4" if version == 5 else f"{path}: is not there"
    with pytest.raises(DataError, match=said):
        pairs(Warehouse(None, str(tmp_path)))
    again = Warehouse(None, str(tmp_path))
    with again.writing(), pytest.raises(DataError, match=said):
        step(again, [(A, 6)])


def test_a_table_that_is_gone_is_not_an_empty_one(tmp_path: Path) -> None:
    warehouse = Warehouse(None, str(tmp_path))
    with warehouse.writing():
        step(warehouse, [(A, 1)])
    shutil.rmtree(tmp_path / "bronze/log")
    with pytest.raises(DataError, match="bronze/log: is not there, and the tables have its version 0"):
        pairs(Warehouse(None, str(tmp_path)))


@pytest.mark.parametrize("version", range(2, 11))
def test_an_empty_entry_of_the_steps_takes_no_step_back(tmp_path: Path, version: int) -> None:
    warehouse = Warehouse(None, str(tmp_path))
    with warehouse.writing():
        for number in range(6):
            step(warehouse, [(A, number)])
    path = tmp_path / f"_kshell/steps/_delta_log/{version:020}.json"
    path.write_bytes(b"")
    with pytest.raises(DataError, match=f"{path}: is empty"):
        pairs(Warehouse(None, str(tmp_path)))


def test_restore_refuses_a_log_with_an_empty_entry(tmp_path: Path) -> None:
    warehouse = Warehouse(None, str(tmp_path))
    with warehouse.writing():
        for number in range(6):
            step(warehouse, [(A, number)])
    path = tmp_path / "bronze/log/_delta_log/00000000000000000004.json"
    path.write_bytes(b"")
    again = Warehouse(None, str(tmp_path))
    with again.writing(), pytest.raises(CommandError, match=f"step 2 cannot be restored: {path}: is empty"):
        again.restore(2)


def test_a_failure_is_not_blamed_on_an_empty_entry_that_was_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse = Warehouse(None, str(tmp_path))
    with warehouse.writing():
        step(warehouse, [(A, 1)])
        step(warehouse, [(A, 2)])
    (tmp_path / "_kshell/steps/_delta_log/00000000000000000003.json").write_bytes(b"")
    again = Warehouse(None, str(tmp_path))
    assert again.state.step == 1
    with again.writing(), monkeypatch.context() as patch:
        step(again, [(A, 3)])
        patch.setattr(deltalake().DeltaTable, "create_write_transaction", fails(OSError("no space left")))
        with pytest.raises(CommandError, match="no space left"):
            step(again, [(A, 4)])
    assert pairs(Warehouse(None, str(tmp_path))) == [(A, 1), (A, 3)]


def test_a_table_that_cannot_be_made_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    warehouse = Warehouse(None, str(tmp_path))

    makedirs = os.makedirs

    def full(place: str, **options: bool) -> None:
        if "_kshell" not in place:
            raise OSError("no space left")
        makedirs(place, **options)

    monkeypatch.setattr(os, "makedirs", full)
    with warehouse.writing(), pytest.raises(CommandError, match="no space left"):
        step(warehouse, [(A, 1)])


def test_the_log_of_a_table_may_lack_what_a_checkpoint_has(tmp_path: Path) -> None:
    warehouse = Warehouse(None, str(tmp_path))
    with warehouse.writing():
        for number in range(22):
            step(warehouse, [(A, number)])
    log = tmp_path / "bronze/log/_delta_log"
    for version in range(12):
        (log / f"{version:020}.json").unlink()
    assert len(pairs(Warehouse(None, str(tmp_path)))) == 22
    assert log_files.damage(str(log.parent)) is None


def test_a_version_that_came_again_is_not_restored(tmp_path: Path) -> None:
    """The newest entry of a log is lost, an earlier step is restored, and its commit gets the same number."""
    warehouse = Warehouse(None, str(tmp_path))
    with warehouse.writing():
        for number in range(3):
            step(warehouse, [(A, number)])
    path = tmp_path / "bronze/log/_delta_log/00000000000000000002.json"
    path.unlink()
    again = Warehouse(None, str(tmp_path))
    with again.writing():
        again.restore(2)
        again.restore(1)
        with pytest.raises(
            CommandError, match=r"step 3 cannot be restored: .*version 2 was lost, and step 5 made another"
        ):
            again.restore(3)
    assert pairs(Warehouse(None, str(tmp_path))) == [(A, 0)]


def test_restore_looks_at_every_file(tmp_path: Path) -> None:
    warehouse = Warehouse(None, str(tmp_path))
    with warehouse.writing():
        step(warehouse, [(A, 1)])
        step(warehouse, [(B, 1)])
        lost = Path(warehouse.place, "bronze/log", next(iter(warehouse.files("log"))).path)
        lost.unlink()
        with pytest.raises(CommandError, match=f"{lost}: is not there any more"):
            warehouse.restore(2)


def test_the_lost_newest_version_of_progress_is_said(tmp_path: Path) -> None:
    warehouse = Warehouse(None, str(tmp_path))
    with warehouse.writing():
        step(warehouse, [(A, 1)])
        step(warehouse, [(A, 2)])
    (tmp_path / "_kshell/progress/_delta_log/00000000000000000001.json").unlink()
    with pytest.raises(DataError, match="progress: its version 1 is not there any more, the newest is 0"):
        Warehouse(None, str(tmp_path))


@pytest.mark.parametrize("lost", ["entry", "content", "file"])
def test_without_the_newest_progress_history_answers_and_the_step_before_can_be_restored(
    tmp_path: Path, lost: str, capsys: pytest.CaptureFixture[str]
) -> None:
    warehouse = Warehouse(None, str(tmp_path))
    with warehouse.writing():
        for number in range(3):
            step(warehouse, [(A, number)])
        place = tmp_path / "_kshell/progress"
        newest = next(iter(DeltaTable(str(place), "progress", "", steps._PROGRESS_FIELDS).files_at(2)))
    (place / newest if lost == "file" else place / "_delta_log/00000000000000000002.json").unlink()
    if lost == "content":
        (place / "_delta_log/00000000000000000002.json").touch()
    out = ("--out", str(tmp_path))
    assert cli.main(["vacuum", *out]) == 4
    assert capsys.readouterr().err.splitlines()[1].endswith("the step before it: `kshell-pipeline restore 2`")
    for words in (["history"], ["history", "log"], ["tables"], ["restore", "2"]):
        assert cli.main([*words, *out]) == 0
    again = Warehouse(None, str(tmp_path))
    assert pairs(again) == [(A, 0), (A, 1)] and again.state.clusters == {A: ClusterState({"offset": 2})}
    capsys.readouterr()
    assert cli.main(["restore", "3", *out]) == 2, "whose number another version of progress may have now"
    assert "step 3 cannot be restored: " in capsys.readouterr().err
    with again.writing():
        step(again, [(A, 7)])
    assert pairs(Warehouse(None, str(tmp_path))) == [(A, 0), (A, 1), (A, 7)]


@pytest.mark.parametrize("damage", ["entry is cut", "all is gone", "entry before it is empty"])
def test_where_no_step_can_be_restored_none_is_named_and_nothing_committed(
    tmp_path: Path, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    warehouse = Warehouse(None, str(tmp_path))
    with warehouse.writing():
        for number in range(3):
            step(warehouse, [(A, number)])
    entries = sorted((tmp_path / "_kshell/progress/_delta_log").glob("*.json"))
    if damage == "entry is cut":
        entries[2].write_bytes(entries[2].read_bytes()[:-20])
    elif damage == "all is gone":
        shutil.rmtree(tmp_path / "_kshell/progress")
    else:
        entries[1].write_bytes(b"")
    before = sorted(tmp_path.rglob("*"))
    out = ("--out", str(tmp_path))
    assert cli.main(["vacuum", *out]) == 4
    assert "kshell-pipeline restore" not in capsys.readouterr().err
    for number in (1, 2):
        assert cli.main(["restore", str(number), *out]) != 0
    assert sorted(tmp_path.rglob("*")) == before


def test_a_dry_run_of_vacuum_passes_over_a_table_that_is_gone(tmp_path: Path) -> None:
    warehouse = Warehouse(None, str(tmp_path))
    with warehouse.writing():
        step(warehouse, [(A, 1)])
    shutil.rmtree(tmp_path / "_kshell/progress")
    planned = Warehouse(None, str(tmp_path), checkpoints=False).vacuum(0, dry_run=True)
    assert planned["progress"] == (0, 0) and planned["steps"][0]


def test_upkeep_names_what_is_damaged(tmp_path: Path) -> None:
    warehouse = Warehouse(None, str(tmp_path))
    with warehouse.writing():
        for number in range(3):
            step(warehouse, [(A, number)])
        damaged = Path(warehouse.place, "bronze/log", next(iter(warehouse.files("log"))).path)
        damaged.write_bytes(bytes(damaged.stat().st_size))
        with pytest.raises(DataError, match=f"^{damaged}: "):
            warehouse.optimize(128 << 20)


@pytest.mark.parametrize("place", ["_kshell", "_kshell/steps", "bronze", "bronze/log/_delta_log"])
def test_a_log_that_may_not_be_read_is_not_called_damaged(tmp_path: Path, place: str) -> None:
    warehouse = Warehouse(None, str(tmp_path))
    with warehouse.writing():
        step(warehouse, [(A, 1)])
    with locked(tmp_path / place), pytest.raises(SourcePermissionError) as raised:
        pairs(Warehouse(None, str(tmp_path)))
    message, hint = raised.value.message, raised.value.hint
    assert message.startswith(f"{tmp_path}/{place}") and message.endswith(": permission denied") and hint is None


def test_optimize_names_the_file_that_is_missing(tmp_path: Path) -> None:
    warehouse = Warehouse(None, str(tmp_path))
    with warehouse.writing():
        for number in range(3):
            step(warehouse, [(A, number)])
        lost = Path(warehouse.place, "bronze/log", next(iter(warehouse.files("log"))).path)
        lost.unlink()
        with pytest.raises(DataError, match=f"{lost}: is not there any more"):
            warehouse.optimize(128 << 20)


FULL = """
import resource, sys
sys.path.insert(0, {root!r})
from kshell.spark import cli
from kshell.spark.tables import catalog
from tests.spark.tables.small import TABLES
catalog.tables = lambda: TABLES
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
sys.exit(cli.main(["optimize", "--out", sys.argv[1]]))
"""


def test_optimize_without_room_is_one_error_and_leaves_nothing(tmp_path: Path) -> None:
    warehouse = Warehouse(None, str(tmp_path))
    with warehouse.writing():
        for number in range(3):
            step(warehouse, [(A, number)])
    before = data_files(tmp_path)
    program = [sys.executable, "-B", "-c", FULL.format(root=str(ROOT)), str(tmp_path)]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    first, hint = done.stderr.splitlines()
    assert first.startswith(f"kshell-pipeline: {tmp_path}/bronze/log: ") and "File too large" in first
    assert hint.startswith("make room if it is full")
    assert data_files(tmp_path) == before
    assert Warehouse(None, str(tmp_path)).log.interrupted is None


def test_a_step_goes_on_from_optimize_that_was_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    warehouse = Warehouse(None, str(tmp_path))
    with warehouse.writing():
        for number in range(3):
            step(warehouse, [(A, number)])
    with warehouse.writing(), monkeypatch.context() as patch:
        patch.setattr(StepLog, "complete", fails(Killed()))
        with pytest.raises(Killed):
            warehouse.optimize(128 << 20)
    place = str(tmp_path / "bronze/log")
    assert deltalake().DeltaTable(place).to_pyarrow_table().num_rows == 3
    deltalake().DeltaTable(place).vacuum(0, dry_run=False, enforce_retention_duration=False)
    assert pairs(Warehouse(None, str(tmp_path))) == [(A, number) for number in range(3)], "though old files are gone"
    with warehouse.writing():
        step(warehouse, [(A, 3)])
    assert pairs(warehouse) == [(A, number) for number in range(4)]


@pytest.mark.parametrize("is_compacted", [False, True])
def test_a_column_of_another_program_stops_nobody(tmp_path: Path, is_compacted: bool) -> None:
    warehouse = Warehouse(None, str(tmp_path))
    with warehouse.writing():
        step(warehouse, [(A, 1)])
        step(warehouse, [(A, 2)])
    lake, place = deltalake(), str(tmp_path / "bronze/log")
    lake.DeltaTable(place).alter.add_columns([lake.Field("note", "string")])
    if is_compacted:  # its files have the new column, too
        lake.DeltaTable(place).optimize.compact()
    assert pairs(Warehouse(None, str(tmp_path))) == [(A, 1), (A, 2)]
    with warehouse.writing():
        assert step(warehouse, [(A, 3)]) == 3
        assert warehouse.optimize(128 << 20) == ["log"]
        warehouse.vacuum(0)
        step(warehouse, [(A, 4)])
        warehouse.restore(4)
    assert pairs(Warehouse(None, str(tmp_path))) == [(A, 1), (A, 2), (A, 3)]
    with warehouse.writing():
        warehouse.begin([A])
        warehouse.remove([A])
    assert "note" in lake.DeltaTable(place).to_pyarrow_table().column_names


def test_values_of_columns_that_are_not_known_are_not_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a newer release has added them."""
    from kshell.tables.declaration import Field

    warehouse = Warehouse(None, str(tmp_path))
    with monkeypatch.context() as patch, warehouse.writing():
        more = TABLES["new"]._replace(fields=(*TABLES["new"].fields, Field("added", "string", "later")))
        patch.setitem(TABLES, "new", more)
        for number in range(2):
            warehouse.begin([A])
            warehouse.append_files("new", write(warehouse, "new", [{"clusterId": A, "n": number, "added": "x"}]))
            warehouse.commit({A: ClusterState({})})
    assert pairs(Warehouse(None, str(tmp_path)), "new") == [(A, 0), (A, 1)]
    with warehouse.writing():
        with pytest.raises(UsageError, match="bronze/new: column added is not one that this release"):
            warehouse.optimize(128 << 20)
        warehouse.begin([A])
        with pytest.raises(UsageError, match="column added is not one"):
            warehouse.remove([A])


def test_columns_that_were_added_are_null_in_older_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kshell.tables.declaration import Field

    warehouse = Warehouse(None, str(tmp_path))
    with warehouse.writing():
        step(warehouse, [(A, 1)])
    more = TABLES["new"]._replace(fields=(*TABLES["new"].fields, Field("added", "string", "later")))
    monkeypatch.setitem(TABLES, "new", more)
    with warehouse.writing():
        warehouse.begin([A])
        warehouse.append_files("new", write(warehouse, "new", [{"clusterId": A, "n": 1, "added": "x"}]))
        warehouse.commit({})
    assert rows_of(Warehouse(None, str(tmp_path)), "new") == [{"clusterId": A, "n": 1, "added": "x"}]
    assert deltalake().DeltaTable(str(tmp_path / "bronze/new")).schema().to_arrow().names == ["clusterId", "n", "added"]
    other = TABLES["new"]._replace(fields=(TABLES["new"].fields[0], Field("n", "string", "not a number")))
    monkeypatch.setitem(TABLES, "new", other)
    with pytest.raises(UsageError, match=r"column n \(bigint\) is not one that this release"):
        pairs(Warehouse(None, str(tmp_path)), "new")


def test_the_log_of_a_table_says_which_step_made_a_version(tmp_path: Path) -> None:
    warehouse = Warehouse(None, str(tmp_path))
    with warehouse.writing():
        for number in range(3):
            step(warehouse, [(A, number)])
    commits = Warehouse(None, str(tmp_path)).table("log").commits()
    assert [(commit.version, commit.step) for commit in commits] == [(2, 3), (1, 2), (0, 1)]
    [path] = (tmp_path / "bronze/log/_delta_log").glob("*2.json")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert any(line.get("commitInfo", {}).get(delta.STEP) == "3" for line in lines)
    again = Warehouse(None, str(tmp_path))
    with again.writing():
        again.optimize(128 << 20)
        again.vacuum(0)
    maintained = [(commit.operation, commit.step) for commit in again.table("log").commits()[:3]]
    assert maintained == [("VACUUM END", 5), ("VACUUM START", 5), ("WRITE", 4)]


class Interrupted(BaseException):
    """As Ctrl-C, which Python raises when a call into another library returns."""


def deltalake() -> Any:
    """The package, which has types of its own."""
    return importlib.import_module("deltalake")


@pytest.mark.parametrize("which", ["steps", "progress", "log"])
@pytest.mark.parametrize("error", [Interrupted, OSError])
def test_an_error_after_a_commit_leaves_what_it_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: str, error: type[BaseException]
) -> None:
    """An answer of a store that was lost, a checkpoint for which there is no room, a signal."""
    warehouse = Warehouse(None, str(tmp_path))
    with warehouse.writing():
        step(warehouse, [(A, 1)])
    real = deltalake().DeltaTable.create_write_transaction
    left = [2 if which == "steps" else 1]  # the second commit of steps says that the step is done

    def commits_and_fails(table: Any, *args: object, **options: object) -> None:
        real(table, *args, **options)
        if table.table_uri.rstrip("/").endswith(f"/{which}"):
            left[0] -= 1
            if not left[0]:
                raise error("no room")

    with monkeypatch.context() as patch:
        patch.setattr(deltalake().DeltaTable, "create_write_transaction", commits_and_fails)
        with warehouse.writing():
            try:
                step(warehouse, [(A, 2)])
            except Interrupted:
                assert error is Interrupted
            else:
                assert error is OSError, "it was committed, whatever went wrong later"
    done = error is OSError or which == "steps"
    assert not left[0]
    assert pairs(Warehouse(None, str(tmp_path))) == ([(A, 1), (A, 2)] if done else [(A, 1)])
    with warehouse.writing():
        step(warehouse, [(A, 3)])
    assert pairs(Warehouse(None, str(tmp_path)))[-1] == (A, 3)


def fails(error: BaseException) -> Callable[..., None]:
    """A function that raises."""

    def call(*_: object, **__: object) -> None:
        raise error

    return call


def test_a_restore_that_fails_deletes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    warehouse = Warehouse(None, str(tmp_path))
    with warehouse.writing():
        for number in range(3):
            step(warehouse, [(A, number)])
        warehouse.optimize(128 << 20)
        before = data_files(tmp_path)
        with monkeypatch.context() as patch:
            patch.setattr(StepLog, "begin", fails(CommandError("no room")))
            with pytest.raises(CommandError, match="no room"):
                warehouse.restore(1)
        assert data_files(tmp_path) == before
    assert pairs(Warehouse(None, str(tmp_path))) == [(A, number) for number in range(3)]
    with warehouse.writing():
        warehouse.restore(1)
    assert pairs(warehouse) == [(A, 0)]


def test_rows_of_a_commit_that_failed_do_not_come_with_the_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse = Warehouse(None, str(tmp_path))
    with warehouse.writing():
        step(warehouse, [(A, 1)])
        with monkeypatch.context() as patch:
            patch.setattr(StepLog, "complete", fails(CommandError("no room")))
            with pytest.raises(CommandError, match="no room"):
                step(warehouse, [(A, 2)])
        assert pairs(warehouse) == [(A, 1)]
        step(warehouse, [(A, 3)])
    assert pairs(Warehouse(None, str(tmp_path))) == [(A, 1), (A, 3)]


def test_versions_are_counted_right_while_others_commit(tmp_path: Path) -> None:
    warehouse = Warehouse(None, str(tmp_path))
    with warehouse.writing():
        for number in range(3):
            step(warehouse, [(A, number)])
        reader = Warehouse(None, str(tmp_path))
        table = reader.table("log")
        step(warehouse, [(A, 3)])
        warehouse.optimize(128 << 20)
    assert [commit.version for commit in table.commits()] == [4, 3, 2, 1, 0]
    late = Warehouse(None, str(tmp_path))
    late.state = reader.state
    assert pairs(late) == [(A, number) for number in range(3)], "a later step's rows are not taken for upkeep"


def test_what_was_undone_and_then_tidied_up_by_others_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    warehouse = Warehouse(None, str(tmp_path))
    with warehouse.writing():
        for number in range(3):
            step(warehouse, [(A, number)])
        warehouse.begin([A])
        warehouse.append_files("log", write(warehouse, "log", [log_row(A, 9)]))
        with monkeypatch.context() as patch:
            patch.setattr(StepLog, "complete", fails(Killed()))
            with pytest.raises(Killed):
                warehouse.commit({})
    with warehouse.writing():
        pass  # it undoes what was committed, and makes no step
    place = str(tmp_path / "bronze/log")
    deltalake().DeltaTable(place).optimize.compact()
    deltalake().DeltaTable(place).vacuum(0, dry_run=False, enforce_retention_duration=False)
    assert pairs(Warehouse(None, str(tmp_path))) == [(A, number) for number in range(3)]
    with warehouse.writing():
        step(warehouse, [(A, 3)])
    assert pairs(Warehouse(None, str(tmp_path))) == [(A, number) for number in range(4)]


def test_restore_drops_rows_of_another_program_after_a_kill(tmp_path: Path) -> None:
    warehouse = Warehouse(None, str(tmp_path))
    with warehouse.writing():
        step(warehouse, [(A, 1)])
        warehouse.log.begin(warehouse.begin([A]), "run")
    place = str(tmp_path / "bronze/log")
    rows = deltalake().DeltaTable(place).to_pyarrow_table()
    deltalake().write_deltalake(place, rows, mode="append")
    with pytest.raises(CommandError, match="another program"), warehouse.writing():
        pass
    with warehouse.writing(undoes=False):
        warehouse.restore(1)
    with warehouse.writing():
        step(warehouse, [(A, 2)])
    assert pairs(Warehouse(None, str(tmp_path))) == [(A, 1), (A, 2)]


@pytest.mark.parametrize("name", ["per%20cent", "back\\slash", "line\nfeed", "_delta_log", "caf\udce9"])
def test_paths_that_delta_cannot_have(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="cannot be part of the path of a Delta table"):
        Warehouse(None, f"{tmp_path}/{name}")


@pytest.mark.parametrize("name", ["a#b", "what?"])
def test_uris_that_delta_would_cut_off(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="cannot be part of the path of a Delta table"):
        Warehouse(None, f"s3://bucket/{name}/tables")
    assert not Warehouse(None, f"{tmp_path}/{name}").state.step, "in a path it is a name"
