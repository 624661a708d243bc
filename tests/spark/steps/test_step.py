"""Whole steps: every recorded directory in two of them, held against the shell; damage; nothing new."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import kshell
import kshell.spark
from kshell.errors import CommandError, SourceError, SourcePermissionError
from kshell.protocol.batches import write_batch
from kshell.protocol.control import CONTROL_TYPES
from kshell.sources.directory.files import METADATA_DIRECTORY, Listing
from kshell.sources.directory.files import scan as scan_of_files
from kshell.sources.directory.source import DirectorySource
from kshell.sources.points import Point, offset_at
from kshell.spark.files.scan import find, spelled
from kshell.spark.options import SLICE_BYTES
from kshell.spark.reconcile import Checkpoint, ReconciledLog, Request, reconcile
from kshell.spark.steps import ingest, planning
from kshell.spark.steps.planning import NOW, clusters, reconcile_all, replanner
from kshell.spark.steps.step import Summary, advance
from kshell.spark.steps.unread import UnreadErrors
from kshell.spark.tables import catalog
from kshell.spark.tables.catalog import CURRENT
from kshell.spark.tables.data_files import WRITE_HINT
from kshell.spark.tables.steps import WarehouseState
from kshell.spark.tables.warehouse import Warehouse
from kshell.spark.verbs.warehouse.step_summary import report
from kshell.spark.views.moment import Moment, is_known_at, moment_of
from kshell.spark.views.named import named
from tests.builders import (
    FIXTURES,
    batch,
    copy_of,
    node_name,
    recorded,
    snapshot,
    value,
    write_log,
    write_snapshot,
)
from tests.spark.damaging import spoil
from tests.spark.reading import dumped
from tests.spark.silver import made_up
from tests.spark.silver.replaying import at, by_records, listed, told
from tests.spark.warehouses import delta_columns

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("without_gold")]
EVERY = {node_name(node).replace("/", "-"): node for node in recorded()}
FEW = ("3.3.2-broker-0", "4.2.1-rolled-controller-3002", "4.4.0-controller-3000")


def one_truth(warehouse: Warehouse, name: str, node: Path, until: int | None = None) -> ReconciledLog:
    """Of a directory as a cluster of its own."""
    known = warehouse.state.clusters.get(name)
    reached = None if known is None else Checkpoint.from_json(known.reached)
    return reconcile(find([str(node)]), Request(name, SLICE_BYTES, reached, until=until))


def _config(said: int) -> bytes:
    return value("CONFIG", resourceType=2, resourceName="t", name="retention.ms", value=str(said))


def step(warehouse: Warehouse, *sources: Path) -> Summary:
    """What the verb ``run`` does."""
    copies = clusters(map(str, sources))
    found = reconcile_all(copies, warehouse.state)
    return advance(warehouse, found, replan=replanner(copies, warehouse.state, since=NOW))


@pytest.fixture
def on_executors(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver decodes nothing, however little it is."""
    monkeypatch.setattr(ingest, "_HERE", -1)


@pytest.mark.parametrize(
    ("names", "points"),
    [
        pytest.param(FEW, 3, id="few"),
        pytest.param(tuple(EVERY), 40, id="every", marks=[pytest.mark.soak, pytest.mark.long]),
    ],
)
@pytest.mark.usefixtures("on_executors")
def test_directories_in_two_steps_are_what_the_shell_shows(
    spark: Any, tmp_path: Path, names: tuple[str, ...], points: int, soak_count: int
) -> None:
    nodes = {name: EVERY[name] for name in names}
    warehouse = Warehouse(spark, str(tmp_path))
    dumps = {name: dumped(node)[0] for name, node in nodes.items()}
    with warehouse.writing():
        halves = {name: rows[len(rows) // 2][0] for name, rows in dumps.items()}
        advance(warehouse, [one_truth(warehouse, name, node, halves[name]) for name, node in nodes.items()])
        summary = advance(warehouse, [one_truth(warehouse, name, node) for name, node in nodes.items()])
        assert summary.step == 2
        assert not summary.is_damaged
        files = sorted(tmp_path.rglob("*.parquet"))
        assert advance(warehouse, [one_truth(warehouse, name, node) for name, node in nodes.items()]).step == 0
        assert sorted(tmp_path.rglob("*.parquet")) == files
    made: dict[str, list[tuple[Any, ...]]] = {name: [] for name in nodes}
    log = warehouse.read("records").where("not isSnapshot").select("clusterId", "offset", "type", "data")
    for row in log.orderBy("clusterId", "offset").collect():
        made[row[0]].append(tuple(row)[1:])
    for name, node in nodes.items():
        if list(node.glob("*/*.log")):
            assert made[name] == [(row[0], row[3], row[5]) for row in dumps[name]], name
    for view, table in catalog.current_views().items():
        found: dict[str, list[Any]] = {name: [] for name in nodes}
        for row in named(warehouse, view).toArrow().to_pylist():
            found[row.pop("clusterId")].append(list(row.values()))
        for name, node in nodes.items():
            assert listed(found[name]) == told(kshell.open(str(node))._shell, table), (table, name)
    control = warehouse.read("records").where(f"type in {tuple(kind.name for kind in CONTROL_TYPES.values())}")
    assert sorted(map(str, warehouse.read("control_records").collect())) == sorted(map(str, control.collect())) != []
    check_past(warehouse, nodes, points * soak_count)
    assert warehouse.read("partitions", part=CURRENT).where("not isCurrent").count() == 0
    known = kshell.spark.register_tables(spark, str(warehouse.place), as_of="0")
    assert {"records", "topics", "current_topics"} < set(known)
    assert spark.sql("SELECT count(*) FROM current_topics").first()[0] == 0  # at offset 0 there is no topic yet
    kshell.spark.register_tables(spark, str(warehouse.place))
    assert spark.sql("SELECT count(*) FROM current_topics").first()[0] > 0


def test_a_snapshot_names_no_leader_but_a_record_that_an_earlier_step_has_read_does(spark: Any, tmp_path: Path) -> None:
    node = made_up.write_late(tmp_path / "node" / METADATA_DIRECTORY)
    next(node.glob("*.checkpoint")).unlink()
    warehouse = Warehouse(spark, str(tmp_path / "out"))
    with warehouse.writing():
        step(warehouse, node)
        assert not warehouse.read("controllers").count(), "there is no state yet"
        write_log(node, batch([value("NO_OP")], 12, 3), base_offset=12)
        write_snapshot(node, snapshot([], 3), 12, 3)
        assert not step(warehouse, node).restarted
    found = warehouse.read("controllers").select("id", "isLeader", "isVoter", "validFromOffset", "isCurrent").collect()
    assert sorted(map(tuple, found)) == [(3000, True, True, 11, True), (3002, False, True, 11, True)]


def check_past(warehouse: Warehouse, nodes: Mapping[str, Path], points: int) -> None:
    """The views as of at least so many (directory, offset), any offsets, are the shell's tables there."""
    chosen, checked = random.Random(5), 0
    while checked < points:
        asked = {name: chosen.randrange(one.reached["offset"]) for name, one in warehouse.state.clusters.items()}
        clusters = warehouse.state.clusters
        then = {name: offset for name, offset in asked.items() if is_known_at(clusters[name].reached, offset)}
        moment = Moment(then, tuple(sorted(asked.keys() - then.keys())))
        shells = {name: at(nodes[name], asked[name]) for name in then}
        for view, table in catalog.current_views().items():
            found: dict[str, list[Any]] = {name: [] for name in then}
            for row in named(warehouse, view, moment).toArrow().to_pylist():
                found[row.pop("clusterId")].append(list(row.values()))
            for name, shell in shells.items():
                session = by_records(nodes[name], asked[name]) if table == "controllers" else shell
                assert listed(found[name]) == told(session, table), (table, name, asked[name])
        checked += len(then)


def test_tasks_the_driver_and_spark_write_the_same_records(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that tasks write as they decode them, those that the driver writes, and those of a frame of Spark's."""
    parquet = pytest.importorskip("pyarrow.parquet")
    node, odd = EVERY["4.2.1-rolled-controller-3002"], tmp_path / "odd"
    write_log(odd / METADATA_DIRECTORY, batch([value("NO_OP"), value("TOPIC")[:9], b"\x01\x02"] * 30))
    spoilt = copy_of(FIXTURES / "4.3.1/broker-0", tmp_path / "spoilt")
    spoil(sorted(spoilt.glob("*.log"))[-1])
    summaries = []
    for name, most in (("tasks", -1), ("driver", 1 << 30)):
        monkeypatch.setattr(ingest, "_HERE", most)
        warehouse = Warehouse(spark, str(tmp_path / name))
        with warehouse.writing():
            summaries.append(step(warehouse, node, spoilt, odd))
    by_tasks, by_driver = summaries
    assert (by_tasks.rows, by_tasks.quarantine) == (by_driver.rows, by_driver.quarantine)
    warehouse = Warehouse(spark, str(tmp_path / "frame"))
    with warehouse.writing():
        warehouse.begin()
        assert warehouse.append("records", Warehouse(spark, str(tmp_path / "tasks")).read("records")) > 500
        warehouse.commit({})
    found = []
    for name in ("tasks", "driver", "frame"):
        place = tmp_path / name / "bronze/records"
        warehouse = Warehouse(spark, str(tmp_path / name))
        rows = warehouse.read("records").orderBy("file", "position", "offset").toArrow()
        written = sorted(place / file.path for file in warehouse.files("records"))
        assert written and written == sorted(place.glob("*.parquet")), "what damage made invalid is gone"
        assert all(re.fullmatch(r"part-[0-9a-f]{24}\.zstd\.parquet", path.name) for path in written)
        columns = {parquet.read_schema(str(path)).remove_metadata() for path in written}
        found.append((rows, delta_columns(place), columns))
    tasks, driver, frame = found
    assert tasks[0].num_rows > 500
    assert tasks == driver == frame
    assert "as kafka-dump-log prints them" in str(tasks[1])


def write_to(patch: pytest.MonkeyPatch, place: str) -> None:
    """Tasks write the files of every table to another place."""
    writer = Warehouse.writer
    patch.setattr(Warehouse, "writer", lambda warehouse, name: writer(warehouse, name)._replace(table=place))


@pytest.mark.usefixtures("on_executors")
def test_what_keeps_a_task_from_writing_is_said(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    out, node = tmp_path / "out", EVERY["4.3.1-controller-3000"]
    elsewhere = str(tmp_path / "file/gone")
    with monkeypatch.context() as patch:
        write_to(patch, elsewhere)
        warehouse = Warehouse(spark, str(out))
        with warehouse.writing(), pytest.raises(CommandError, match=r"file/gone: .*[Nn]ot a directory") as raised:
            step(warehouse, node)
    assert raised.value.hint == WRITE_HINT
    assert not list(out.rglob("*.parquet")) and Warehouse(None, str(out)).state == WarehouseState()
    with warehouse.writing():
        assert step(warehouse, node).rows["records"] > 0


@pytest.mark.usefixtures("on_executors")
def test_files_that_tasks_wrote_on_another_machine_are_no_step(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The path of ``--out`` exists there, too, but is not the same place."""
    out, elsewhere = tmp_path / "out", str(tmp_path / "elsewhere/records")
    write_to(monkeypatch, elsewhere)
    warehouse = Warehouse(spark, str(out))
    with warehouse.writing(), pytest.raises(CommandError, match="any more; a task has just written it") as raised:
        step(warehouse, EVERY["4.3.1-controller-3000"])
    assert raised.value.hint == WRITE_HINT
    assert Warehouse(None, str(out)).state == WarehouseState() and not list(out.rglob("*.parquet"))


def test_as_of_a_time_is_what_the_shell_says_though_clocks_step_back(spark: Any, tmp_path: Path) -> None:
    # A clock goes from 100 to 900 and back to 500: by time, two values of the key would be valid at 700.
    times = {"one": [100, 900, 500, 1000], "two": [100, 200, 300, 400], "three": [1500, 600, 700, 800]}
    for name, clock in times.items():
        made = (write_batch([(None, _config(n))], base_offset=n, epoch=1, timestamp=ms) for n, ms in enumerate(clock))
        write_log(tmp_path / name / METADATA_DIRECTORY, *made)
    warehouse = Warehouse(spark, str(tmp_path / "out"))
    with warehouse.writing():
        advance(warehouse, [one_truth(warehouse, name, tmp_path / name) for name in times])
    for time_ms, values in {700: [0, 3, None], 900: [2, 3, None], 1000: [3, 3, None], 350: [0, 2, None]}.items():
        moment = moment_of(warehouse, Point(time_ms=time_ms))
        rows = named(warehouse, "current_configs", moment).select("clusterId", "value").collect()
        expected = [(name, str(one)) for name, one in zip(times, values, strict=True) if one is not None]
        assert sorted(map(tuple, rows)) == sorted(expected)
        for name in ("one", "two"):
            source = DirectorySource(str(tmp_path / name))
            theirs = source.load(until=offset_at(source.listing(full_log=True), time_ms)).image
            assert theirs.provenance.offset == (moment.offsets or {})[name]
    assert moment_of(warehouse, Point(offset=1)).offsets == dict.fromkeys(times, 1)


def test_executors_plan_as_the_driver_does(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    copies = clusters([str(FIXTURES / "4.*" / "*")])
    here = reconcile_all(copies, WarehouseState())
    monkeypatch.setattr("kshell.spark.steps.planning._FEW", 0)
    monkeypatch.setattr("kshell.spark.steps.planning._LITTLE", 100_000)
    words: list[str] = []
    there = reconcile_all(
        copies, WarehouseState(), spark=lambda: spark, progress=lambda done, total, what: words.append(what)
    )
    assert there == here
    assert 1 < int(words[0].split()[1]) < len(copies) == len(words) - 1 + int(words[0].split()[1])


def broken(patch: pytest.MonkeyPatch, unlisted: set[str], unplanned: set[str]) -> None:
    """Directories that cannot be listed, and clusters that cannot be planned, as long as they are in those sets."""

    def scan(path: str) -> Listing:
        if Path(path).parent.name in unlisted:
            raise SourcePermissionError(f"{path}: permission denied")
        return scan_of_files(path)

    def plan(copies: Any, request: Request, **more: Any) -> ReconciledLog:
        if request.cluster_id in unplanned:
            raise SourceError(f"{request.cluster_id}: no")
        return real_plan(copies, request, **more)

    real_plan = reconcile
    patch.setattr("kshell.spark.files.scan.scan", scan)
    patch.setattr(planning, "reconcile", plan)


@pytest.mark.parametrize("is_all", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_what_cannot_be_read_is_a_row_and_the_others_go_on(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_all: bool
) -> None:
    for cluster, name in (("x", "1"), ("x", "2"), ("y", "3"), ("z", "4")):
        write_log(tmp_path / "in" / name / "__cluster_metadata-0", batch([value("NO_OP")] * 3))
        (tmp_path / "in" / name / "meta.properties").write_text(f"cluster.id={cluster}\nnode.id={name}\n")
    unlisted, unplanned = {"2", "4"}, {"y"}
    broken(monkeypatch, unlisted, unplanned)
    warehouse = Warehouse(spark, str(tmp_path / "out"))

    def run() -> tuple[Summary, set[tuple[Any, ...]]]:
        failed: UnreadErrors = {}
        copies = clusters([str(tmp_path / "in" / "*")], None, failed)
        with warehouse.writing():
            found = reconcile_all(copies, warehouse.state, failed=failed)
            once_more = replanner(copies, warehouse.state)
            summary = advance(warehouse, found, replan=once_more, failed=failed)
        rows = warehouse.read("copies").collect()
        return summary, {(row.clusterId, Path(row.copy).parent.name, row.state) for row in rows}

    summary, rows = run()
    assert rows == {
        ("x", "1", "reference"),
        ("x", "2", "unreadable"),
        ("y", "3", "unreadable"),
        ("z", "4", "unreadable"),
    }
    assert (summary.step, summary.clusters, report("out", 3, summary).exit_code) == (1, ("x",), 3)
    assert [row["copy"].split("/")[-2] for row in summary.copies] == ["2", "3", "4"]
    assert list(warehouse.state.clusters) == ["x"], "of the others nothing is known"
    assert warehouse.read("records").count() == 3
    assert run()[0].step == 0, "nothing is new"
    assert run()[0].unread_code == 3

    unplanned.clear()
    summary, rows = run()
    assert (summary.step, summary.clusters, summary.rows["copies"]) == (2, ("y",), 1)
    assert ("y", "3", "reference") in rows and len(rows) == 4
    if not is_all:
        return
    unlisted.clear()
    before = warehouse.state.clusters["x"]
    unplanned.add("x")
    summary, rows = run()
    assert rows == {
        ("x", "1", "unreadable"),
        ("x", "2", "unreadable"),
        ("y", "3", "reference"),
        ("z", "4", "reference"),
    }
    assert warehouse.state.clusters["x"] == before, "where it was"
    unplanned.clear()
    summary, rows = run()
    assert rows == {("x", "1", "reference"), ("x", "2", "same"), ("y", "3", "reference"), ("z", "4", "reference")}
    assert (summary.unread_code, warehouse.state.failed, run()[0].step) == (0, {}, 0)
    assert warehouse.read("records").count() == 9
    unlisted.add("3")
    assert run()[1] == {(c, n, "unreadable" if n == "3" else state) for c, n, state in rows}
    unlisted.clear()
    assert run()[1] == rows, "as they were, though nothing else is new"


@pytest.mark.parametrize("name", ["copy", pytest.param("caf\udce9", id="no UTF-8")])
@pytest.mark.usefixtures("on_executors")
def test_damage_that_only_reading_shows(spark: Any, tmp_path: Path, name: str) -> None:
    node = FIXTURES / "4.3.1/broker-0"
    directory = copy_of(node, tmp_path / name)
    log = sorted(directory.glob("*.log"))[-1]
    position = spoil(log)
    warehouse = Warehouse(spark, str(tmp_path / "out"))
    with warehouse.writing():
        summary = step(warehouse, directory)
        assert summary.is_damaged
        assert step(warehouse, directory).step == 0
    kept = warehouse.read("quarantine").where("kind = 'batch'").collect()
    assert [(row.file, row.position) for row in kept] == [(spelled(str(log)), position)]
    snapshot = sorted(directory.glob("*.checkpoint"))[-1]  # states go on from it behind the damage
    kept = warehouse.read("records").select("file").distinct().collect()
    assert {row.file for row in kept} == {spelled(str(path)) for path in (log, snapshot)}
    assert warehouse.read("topics", part=CURRENT).count() > 0
    assert said(warehouse) == [row[0] for row in dumped(directory.parent)[0]]


@pytest.mark.soak
@pytest.mark.long
def test_a_lone_copy_that_moved_with_its_damage(spark: Any, tmp_path: Path) -> None:
    """By their headers its batches look as if the one that is missing had been mended."""
    directory = copy_of(FIXTURES / "4.3.1/broker-0", tmp_path / "before")
    log = sorted(directory.glob("*.log"))[-1]
    spoil(log)
    warehouse = Warehouse(spark, str(tmp_path / "out"))
    moved = tmp_path / "after"
    with warehouse.writing():
        step(warehouse, directory)
        offsets = said(warehouse)
        (tmp_path / "before").rename(moved)
        step(warehouse, moved / directory.relative_to(tmp_path / "before"))
        assert said(warehouse) == offsets
        assert step(warehouse, moved / directory.relative_to(tmp_path / "before")).step == 0


def said(warehouse: Warehouse) -> list[int]:
    rows = warehouse.read("records").where("not isSnapshot").select("offset").collect()
    return sorted(row.offset for row in rows)
