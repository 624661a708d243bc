"""Files that are gone, or are not what they were, when they are read: no step counts that lacks what they held."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from kshell.errors import UnreadError
from kshell.sources.directory.files import METADATA_DIRECTORY
from kshell.sources.directory.ranges import open_file
from kshell.spark.decoding.decode import View
from kshell.spark.files.pack import partitions
from kshell.spark.options import parse
from kshell.spark.reconcile import ReconciledLog
from kshell.spark.steps import layers, step
from kshell.spark.steps.planning import clusters
from kshell.spark.steps.step import Summary
from kshell.spark.steps.unread import UnreadErrors, first
from kshell.spark.tables import catalog
from kshell.spark.tables.steps import WarehouseState
from kshell.spark.tables.warehouse import Warehouse
from tests.builders import FIXTURES, batch, copy_of, value, write_log
from tests.rights import locked
from tests.spark.damaging import spoil, undecodable

ROLLED = FIXTURES / "4.2.1-rolled/controller-3002"
Harm = Callable[[Path], None]


def unlink(log: Path) -> None:
    log.unlink()


def shorten(log: Path) -> None:
    os.truncate(log, log.stat().st_size // 2)


def replace(log: Path) -> None:
    log.write_bytes(bytes(log.stat().st_size))


def segments(directory: Path) -> list[Path]:
    found = sorted(directory.glob("*.log"))
    for one in found:
        one.chmod(0o600)
    return found


@pytest.mark.parametrize("harm", [unlink, shorten, replace])
@pytest.mark.parametrize("view", ["records", "TOPIC_RECORD"])
def test_views_of_records_are_whole_or_fail(harm: Harm, view: str, tmp_path: Path) -> None:
    directory = copy_of(ROLLED, tmp_path)
    log = segments(directory)[0]
    asked = parse({"path": str(directory), "view": view})
    planned = partitions(asked)
    made = View(asked.view, asked.fields(), asked.narrowing, is_whole=True)
    assert sum(batch.num_rows for slices in planned for batch in made.batches(slices)) > 0
    harm(log)
    with pytest.raises(UnreadError, match=log.name):
        for slices in planned:
            list(made.batches(slices))


@pytest.mark.parametrize("harm", [unlink, shorten, replace])
def test_quarantine_has_it_as_a_row(harm: Harm, tmp_path: Path) -> None:
    directory = copy_of(ROLLED, tmp_path)
    log = segments(directory)[0]
    asked = parse({"path": str(directory), "view": "quarantine"})
    planned = partitions(asked)
    harm(log)
    made = View(asked.view, asked.fields(), asked.narrowing, is_whole=True)
    rows = [row for slices in planned for batch in made.batches(slices) for row in batch.to_pylist()]
    assert {row["file"] for row in rows if row["kind"] == "unread"} == {str(log)}


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next attempt does not wait."""
    monkeypatch.setattr(step, "_PAUSE", 0)


def content(warehouse: Warehouse) -> dict[str, list[str]]:
    """Every row of the tables that say what the cluster is, as text, without where it was read."""
    names = [name for name in catalog.tables() if name not in ("files", "copies", "clusters", "quarantine")]
    return {name: sorted(map(str, warehouse.read(name).drop("file", "nodeId").collect())) for name in names}


def run(
    warehouse: Warehouse, *directories: Path, harm: Callable[[], None] | None = None, failed: UnreadErrors | None = None
) -> Summary:
    """What the verb does; ``harm``: done when all is planned, once."""
    waiting = [] if harm is None else [harm]

    def planned(found: Sequence[ReconciledLog], failed: UnreadErrors) -> None:
        if not found:
            raise first(failed)
        if waiting:
            waiting.pop()()

    with warehouse.writing():
        return step.run_step(warehouse, clusters(map(str, directories)), planned=planned, failed=failed)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.long
@pytest.mark.usefixtures("without_gold", "at_once")
def test_a_segment_that_goes_before_it_is_read(spark: Any, tmp_path: Path) -> None:
    directory = copy_of(ROLLED, tmp_path / "copy")
    log = segments(directory)[1]
    raw = log.read_bytes()
    whole, made, plain = (Warehouse(spark, str(tmp_path / name)) for name in ("whole", "made", "plain"))
    run(whole, directory)
    assert run(made, directory, harm=log.unlink).step == 1
    run(plain, directory)
    assert content(made) == content(plain)
    assert content(made) != content(whole)
    log.write_bytes(raw)
    assert run(made, directory).restarted
    assert content(made) == content(whole)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.usefixtures("without_gold", "at_once")
def test_what_is_refused_again_and_again_ends_the_run(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = copy_of(ROLLED, tmp_path / "copy")
    warehouse = Warehouse(spark, str(tmp_path / "out"))
    with monkeypatch.context() as patch:
        patch.setattr("kshell.spark.files.read.open_file", Refusing)
        with pytest.raises(UnreadError, match="Permission denied") as raised:
            run(warehouse, directory)
    assert raised.value.exit_code == 3 and "executors" in str(raised.value.hint)
    assert warehouse.state.step == 0 and not warehouse.state.clusters
    assert run(warehouse, directory).rows["records"] > 0


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    """The directories of two clusters."""
    made = []
    for name in ("one", "other"):
        directory = copy_of(ROLLED, tmp_path / name)
        (directory.parent / "meta.properties").write_text(f"version=1\ncluster.id={name}\nnode.id=1\n")
        made.append(directory)
    return made[0], made[1]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.long
@pytest.mark.usefixtures("without_gold", "at_once")
def test_a_segment_that_goes_while_damage_of_another_cluster_is_planned_anew(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, two: tuple[Path, Path]
) -> None:
    spoil(segments(two[0])[0])
    log = segments(two[1])[1]
    real = layers.StepWriter._replan

    def replan(self: layers.StepWriter, bad: Any) -> None:
        real(self, bad)
        log.unlink(missing_ok=True)

    monkeypatch.setattr(layers.StepWriter, "_replan", replan)
    made, plain = (Warehouse(spark, str(tmp_path / name)) for name in ("made", "plain"))
    assert run(made, *two).clusters == ("one", "other")
    assert not log.exists() and run(plain, *two).is_damaged
    assert content(made) == content(plain)
    assert made.read("quarantine").where("kind = 'batch'").count() == 1


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.usefixtures("without_gold", "at_once")
@pytest.mark.soak
@pytest.mark.long
def test_a_cluster_that_is_refused_does_not_stop_the_others(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, two: tuple[Path, Path]
) -> None:
    warehouse, failed = Warehouse(spark, str(tmp_path / "out")), UnreadErrors()
    with monkeypatch.context() as patch:
        patch.setattr(
            "kshell.spark.files.read.open_file", lambda path: (Refusing if "other" in path else open_file)(path)
        )
        summary = run(warehouse, *two, failed=failed)
    assert (summary.clusters, summary.unread_code, list(failed)) == (("one",), 3, ["other"])
    rows = {row.clusterId: row for row in warehouse.read("copies").collect()}
    assert rows["other"].state == "unreadable" and "Permission denied" in rows["other"].reason
    assert rows["one"].state == "reference" and list(warehouse.state.clusters) == ["one"]
    assert run(warehouse, *two).clusters == ("other",), "the next one has it"
    assert {row.state for row in warehouse.read("copies").collect()} == {"reference"}
    counts = {row.clusterId: row["count"] for row in warehouse.read("records").groupBy("clusterId").count().collect()}
    assert counts["one"] == counts["other"] > 0


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.usefixtures("without_gold", "at_once")
def test_a_copy_of_an_unknown_cluster_is_of_its_own_once_it_can_be_read(spark: Any, tmp_path: Path) -> None:
    for name in ("controller-3000", "controller-3001"):
        copy_of(FIXTURES / "4.3.1" / name, tmp_path / "fleet")
    warehouse, source = Warehouse(spark, str(tmp_path / "out")), f"{tmp_path}/fleet/*/{METADATA_DIRECTORY}"
    meta = tmp_path / "fleet/controller-3001/meta.properties"

    def once() -> tuple[int, dict[str, str], set[str], int]:
        failed = UnreadErrors()
        copies = clusters([source], failed=failed)
        with warehouse.writing():
            summary = step.run_step(warehouse, copies, failed=failed)
        (cluster,) = warehouse.read("clusters").collect()
        rows = warehouse.read("copies").collect()
        states = {Path(row.copy).parent.name: row.state for row in rows}
        return summary.unread_code, states, {row.clusterId for row in rows} - {cluster.clusterId}, cluster.endOffset

    refused = {"controller-3000": "reference", "controller-3001": "unreadable"}
    with locked(meta):
        code, states, (unknown,), end = once()
    assert (code, states, unknown[:8], end) == (3, refused, "unknown-", 351)
    whole = {"controller-3000": "behind", "controller-3001": "reference"}
    assert once() == (0, whole, set(), 574)
    assert not warehouse.state.failed
    with locked(meta.parent):
        assert once() == (3, refused, set(), 574), "the tables know whose it is"
    assert once() == (0, whole, set(), 574)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.long
@pytest.mark.usefixtures("without_gold", "at_once")
def test_a_stream_whose_only_news_is_refused_goes_on(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, two: tuple[Path, Path]
) -> None:
    warehouse, reads = Warehouse(spark, str(tmp_path / "out")), []
    run(warehouse, two[0])
    other = clusters([str(two[1])])
    real = layers.StepWriter._written

    def written(self: layers.StepWriter) -> Any:
        reads.append(1)
        return real(self)

    monkeypatch.setattr(layers.StepWriter, "_written", written)
    with monkeypatch.context() as patch, warehouse.writing():
        patch.setattr("kshell.spark.files.read.open_file", Refusing)
        assert step.run_step(warehouse, other).unread_code == 3
        assert list(warehouse.state.failed) == ["other"] and len(reads) == 4
        assert step.run_step(warehouse, other).unread_code == 3
        assert len(reads) == 5, "what is known to be refused is tried once"
    with warehouse.writing():
        assert step.run_step(warehouse, other).clusters == ("other",)
    assert not warehouse.state.failed


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.usefixtures("without_gold", "at_once")
def test_what_nobody_can_decode_is_so_in_all_copies(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = batch([value("NO_OP")] * 3), undecodable(batch([value("NO_OP")] * 3, 3)), batch([value("NO_OP")] * 3, 6)
    copies, reads = [], list[int]()
    real = layers.StepWriter._replan

    def replan(self: layers.StepWriter, *given: Any) -> Any:
        reads.append(1)
        return real(self, *given)

    monkeypatch.setattr(layers.StepWriter, "_replan", replan)
    for number in range(6):
        directory = tmp_path / str(number) / METADATA_DIRECTORY
        write_log(directory, *parts)
        (directory.parent / "meta.properties").write_text(f"version=1\ncluster.id=one\nnode.id={number}\n")
        copies.append(directory)
    warehouse = Warehouse(spark, str(tmp_path / "out"))
    assert run(warehouse, *copies).is_damaged
    assert len(reads) == 1, "one reading more, not one for each copy"
    offsets = [row.offset for row in warehouse.read("records").collect()]
    assert sorted(offsets) == [0, 1, 2, 6, 7, 8]
    kept = warehouse.read("quarantine").where("kind = 'batch'").select("file").collect()
    assert sorted(Path(row.file).parent.parent.name for row in kept) == [str(number) for number in range(6)]
    assert run(warehouse, *copies).step == 0


@pytest.mark.usefixtures("at_once")
def test_another_file_of_a_cluster_that_was_refused_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "ab":
        write_log(tmp_path / name / METADATA_DIRECTORY, batch([value("NO_OP")] * 3))
        (tmp_path / name / "meta.properties").write_text("cluster.id=one\nnode.id=1\n")
    copies = clusters([f"{tmp_path}/?"])
    ((cluster, held),) = copies.items()
    refused, other = (one.path for one in held)
    state = WarehouseState(failed={cluster: {refused: f"{refused}: permission denied"}})
    blamed: list[str] = []

    def advance(warehouse: Any, made: Sequence[ReconciledLog], *, failed: UnreadErrors, **more: Any) -> Any:
        if made and blamed:
            raise UnreadError("gone", clusters={cluster: blamed.pop()})
        return sorted(failed.get(cluster, ()))

    monkeypatch.setattr(step, "advance", advance)
    warehouse: Any = type("Warehouse", (), {"state": state})()
    blamed[:] = [f"{other}/00000000000000000000.log: no such file"] * 3
    found: Any = step.run_step(warehouse, copies)
    assert found == [], "retention deletes files while others are refused"
    blamed[:] = [f"{refused}/00000000000000000000.log: permission denied"] * 2
    found = step.run_step(warehouse, copies)
    assert found == [refused] and len(blamed) == 1


class Refusing:
    """A file of a store that opens it and gives nothing."""

    def __init__(self, path: str) -> None:
        self._path = path

    def pread(self, size: int, position: int) -> bytes:
        raise PermissionError(13, "Permission denied", self._path)

    def close(self) -> None:
        pass
