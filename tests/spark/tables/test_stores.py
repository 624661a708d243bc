"""Tables in an object store: the same steps, rows and refusals as on a local disk, without a connector of Spark's."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kshell.errors import CommandError, DataError, SourceError
from kshell.spark.tables import delta, steps
from kshell.spark.tables.data_files import file_system
from kshell.spark.tables.steps import ClusterState
from kshell.spark.tables.warehouse import Warehouse
from tests.spark import stores
from tests.spark.here import need_spark, process
from tests.spark.tables.small import ODD, A, B, log_row, pairs, rows_of, step, write

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("small_catalog")]


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """A URI below which nothing is."""
    with stores.separate_store():
        yield f"s3://{stores.BUCKET}"


def test_steps_are_those_of_a_local_disk(bucket: str, tmp_path: Path) -> None:
    here, there = Warehouse(None, str(tmp_path)), Warehouse(None, f"{bucket}/steps/")
    for warehouse in (here, there):
        with warehouse.writing():
            step(warehouse, [(A, 1), (ODD, 1)])
            step(warehouse, [(A, 2), (B, 2)])
            warehouse.begin([A])
            warehouse.remove([ODD])
            warehouse.commit({})
            for number in range(5):
                step(warehouse, [(B, number)])
            warehouse.optimize(128 << 20)
            warehouse.restore(4)
    assert rows_of(here, "log") == rows_of(there, "log")
    assert rows_of(Warehouse(None, f"{bucket}/steps"), "log") == rows_of(here, "log")
    assert there.state.clusters == here.state.clusters
    with there.writing():
        assert there.vacuum(0)["log"][0] > 0
    assert rows_of(Warehouse(None, f"s3a://{stores.BUCKET}/steps"), "log") == rows_of(here, "log")


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize("damage", ["cut", "empty"])
def test_a_damaged_entry_of_a_log_is_named(bucket: str, version: int, damage: str) -> None:
    """As a copy of a damaged disk has it."""
    place = f"{bucket}/{damage}-{version}"
    warehouse = Warehouse(None, place)
    with warehouse.writing():
        for number in range(3):
            step(warehouse, [(A, number)])
    name = f"bronze/log/_delta_log/{version:020}.json"
    system, root = file_system(place)
    with system.open_input_stream(f"{root}/{name}") as file:
        content = file.read()
    with system.open_output_stream(f"{root}/{name}") as file:
        file.write(content[: len(content) // 2] if damage == "cut" else b"")
    with pytest.raises(DataError) as raised:
        pairs(Warehouse(None, place))
    assert raised.value.message.startswith(f"{place}/{name}: ") and "restore its _delta_log" in str(raised.value.hint)
    again = Warehouse(None, place)
    with pytest.raises(DataError, match=name), again.writing():
        step(again, [(A, 9)])


def test_of_two_writers_one_wins_and_the_other_says_so(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place = f"{bucket}/two"
    first, second, third = (Warehouse(None, place) for _ in range(3))
    with first.writing(), second.writing():
        for warehouse, number in ((first, 1), (second, 2)):  # both make the tables
            warehouse.begin([A])
            warehouse.append_files("log", write(warehouse, "log", [log_row(A, number)]))
        first.commit({A: ClusterState({"offset": 1})})
        with pytest.raises(CommandError, match="another writer has committed meanwhile"):
            second.commit({A: ClusterState({"offset": 2})})
    assert pairs(Warehouse(None, place)) == [(A, 1)]
    with second.writing():
        step(second, [(A, 2)])
        second.begin([A])
        second.log.begin(second.step, "run")  # and it is killed, or still at work
    with pytest.raises(CommandError, match="another process is writing there"), third.writing():
        pass
    monkeypatch.setattr(steps, "_LEASE_MS", -1)
    with third.writing():
        step(third, [(A, 3)])
    assert pairs(Warehouse(None, place)) == [(A, 1), (A, 2), (A, 3)]


def test_a_store_that_does_not_answer_is_no_damaged_table(bucket: str) -> None:
    """pyarrow finds all files whole, so nothing is to be repaired; only delta-rs does not get there."""
    place = f"{bucket}/silent"
    warehouse = Warehouse(None, place)
    with warehouse.writing():
        step(warehouse, [(A, 1)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delta, "_REQUESTS", {"timeout": "1s", "retry_timeout": "1s", "max_retries": "0"})
        patch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
        with pytest.raises(SourceError, match=r"_kshell/steps/_delta_log: .*127\.0\.0\.1:9") as raised:
            Warehouse(None, place)
    assert raised.value.hint is None, "nothing to repair"
    assert pairs(Warehouse(None, place)) == [(A, 1)]


SPARK_PROGRAM = """
import json, sys
from kshell.spark import session
from kshell.spark.tables import catalog, warehouse as module
from kshell.spark.tables.warehouse import Warehouse
from tests.spark.tables.small import A, B, TABLES, pairs, step
module._FEW_ROWS = 0  # else the driver would read so few
catalog.tables = lambda: TABLES
with session.running("local[1]", brief=True) as spark:
    warehouse = Warehouse(spark, sys.argv[1])
    with warehouse.writing():
        step(warehouse, [(A, 1), (B, 1)])
        warehouse.begin([A, B])
        frame = warehouse.read("log").select("clusterId", "n")
        warehouse.replace("new", frame, [A, B])
        warehouse.extend("old", frame.selectExpr("clusterId", "n", f"clusterId = '{A}' AS isCurrent"), [A, B])
        warehouse.commit({})
    print(json.dumps(sorted(map(list, warehouse.read("old").collect()))))
"""


@pytest.mark.spark
def test_spark_reads_and_writes_a_store_by_its_tasks(bucket: str, tmp_path: Path) -> None:
    """In a process of its own: workers that run already would not have the variables of this store."""
    need_spark()
    names = [name for name in os.environ if name.startswith("AWS_")]
    variables = {name: os.environ[name] for name in names}
    done = process("-c", SPARK_PROGRAM, f"{bucket}/spark", home=tmp_path, path=None, timeout=300, **variables)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [[A, 1, True], [B, 1, False]]
    assert pairs(Warehouse(None, f"{bucket}/spark"), "new") == [(A, 1), (B, 1)]


def test_no_key_of_the_store_is_shown(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(Exception) as raised:
        Warehouse(None, f"{bucket}/nowhere")
    assert stores.SECRET not in str(raised.value) and stores.KEY not in str(raised.value)
