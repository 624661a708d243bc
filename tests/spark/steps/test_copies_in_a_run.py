"""``run`` on the nodes of one cluster, some of which are not as they should be, held against the shell on a good one;
and on more clusters than the driver plans by itself."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import kshell
from kshell.sources.directory.files import METADATA_DIRECTORY
from kshell.spark import cli
from kshell.spark.steps import planning
from kshell.spark.tables import catalog
from kshell.spark.tables.warehouse import Warehouse
from kshell.spark.views.named import named
from tests.builders import FIXTURES, batches, copy_of
from tests.made_logs import log
from tests.spark.reading import dumped
from tests.spark.reconcile.nodes import node
from tests.spark.silver.replaying import listed, told

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("without_gold")]
CLUSTER = FIXTURES / "4.3.1"
GOOD = CLUSTER / "broker-0"
MANY = 34
STRANGER = FIXTURES / "4.3.1-more/controller-3000"


class Run(NamedTuple):
    """How one ended, and what it said."""

    code: int
    summary: dict[str, Any]
    quarantine: list[dict[str, Any]]
    copies: list[dict[str, Any]]


def run(capsys: pytest.CaptureFixture[str], source: Path, out: Path) -> Run:
    """Of all directories below ``source``."""
    code = cli.main(["run", "--source", str(source / "*"), "--out", str(out), "-o", "json"])
    said, err = capsys.readouterr()
    assert not err
    answer = json.loads(said)
    return Run(code, answer["summary"], answer.get("quarantine", []), answer.get("copies", []))


def cut(directory: Path, part: float) -> None:
    """The copy as it was when its log was shorter: that part of its bytes, and no snapshot of what follows."""
    (segment,) = directory.glob("*/*.log")
    whole = batches(segment.read_bytes())
    kept = [one for one in whole if one.end <= segment.stat().st_size * part]
    segment.write_bytes(segment.read_bytes()[: kept[-1].end])
    for snapshot in directory.glob("*/*.checkpoint"):
        if int(snapshot.name[:20]) > kept[-1].last_offset:
            snapshot.unlink()


def damage(directory: Path, place: int) -> tuple[Path, int]:
    """Turns a bit in a record of that batch; gives file and byte of the batch."""
    (segment,) = directory.glob("*/*.log")
    raw = bytearray(segment.read_bytes())
    hurt = batches(bytes(raw))[place]
    raw[hurt.end - 1] ^= 1
    segment.write_bytes(raw)
    return segment, hurt.position


def fleet(folder: Path, names: tuple[str, str, str, str, str]) -> dict[str, Path]:
    """The nodes of one cluster under those names, the good broker first, and another cluster's under its id, last."""
    nodes = [GOOD, *sorted(CLUSTER.glob("controller-*")), STRANGER]
    made = {}
    for name, one in zip(names, nodes, strict=True):
        copy = copy_of(one, folder / "copying").parent
        folder.joinpath("fleet").mkdir(exist_ok=True)
        made[one.name if one != STRANGER else "stranger"] = copy.rename(folder / "fleet" / name)
    shutil.copyfile(CLUSTER / "controller-3000/meta.properties", made["stranger"] / "meta.properties")
    return made


def same_records(spark: Any, out: Path, good: Path) -> None:
    """Those of that directory, each once."""
    warehouse = Warehouse(spark, str(out))
    rows = warehouse.read("records").where("not isSnapshot").select(
        "offset", "epoch", "timestampMs", "type", "version", "data"
    )  # fmt: skip
    assert sorted(map(tuple, rows.collect())) == [row[:6] for row in dumped(good)[0]]


def same_tables(spark: Any, out: Path, good: Path) -> None:
    """The current ones are the shell's on that directory."""
    warehouse = Warehouse(spark, str(out))
    shell = kshell.open(str(good))._shell
    for view, table in catalog.current_views().items():
        found = [list(row.values())[1:] for row in named(warehouse, view).toArrow().to_pylist()]
        assert listed(found) == told(shell, table), table


def states(spark: Any, out: Path) -> dict[str, str]:
    """Name of the node's directory -> state of the copy."""
    rows = Warehouse(spark, str(out)).read("copies").select("copy", "state").collect()
    return {Path(row.copy).parent.name: row.state for row in rows}


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(("d", "a", "b", "c", "e"), marks=[pytest.mark.soak, pytest.mark.long]),
        pytest.param(("b", "e", "d", "c", "a"), marks=[pytest.mark.soak, pytest.mark.long]),
    ],
    ids=["stranger last", "stranger first"],
)
def test_three_controllers_and_a_broker_with_faults(
    spark: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path, names: tuple[str, str, str, str, str]
) -> None:
    nodes, out = fleet(tmp_path, names), tmp_path / "out"
    place = len(batches(next(nodes["controller-3002"].glob("*/*.log")).read_bytes())) // 2
    for name in ("broker-0", "controller-3002"):
        cut(nodes[name], 0.8)
    cut(nodes["controller-3001"], 0.3)
    hurt = damage(nodes["controller-3002"], place)
    good = copy_of(nodes["broker-0"], tmp_path / "good").parent

    first = run(capsys, tmp_path / "fleet", out)
    assert first.code == 4 and first.summary["changedClusters"] == first.summary["clusters"] == 1
    same_records(spark, out, good)
    told_of = states(spark, out)
    assert told_of.pop(nodes["controller-3001"].name) == "behind"
    assert told_of.pop(nodes["controller-3002"].name) == "damaged"
    assert told_of.pop(nodes["stranger"].name) == "other-cluster"
    assert set(told_of.values()) <= {"reference", "same", "behind"} and "reference" in told_of.values()
    warehouse = Warehouse(spark, str(out))
    found = [(row.kind, row.file, row.position) for row in warehouse.read("quarantine").collect()]
    assert found == [("batch", str(hurt[0]), hurt[1])]
    files = {row.file for row in warehouse.read("files").where("isDamaged").collect()}
    assert files == {str(hurt[0])}
    assert not list(warehouse.read("records").where(f"file LIKE '%/{nodes['stranger'].name}/%'").head(1))

    # Grown; one stays behind, one is mended, one is gone.
    before = states(spark, out)
    for name in ("broker-0", "controller-3002"):
        for fresh in (CLUSTER / name / METADATA_DIRECTORY).iterdir():
            shutil.copyfile(fresh, nodes[name] / METADATA_DIRECTORY / fresh.name)
    shutil.rmtree(nodes["controller-3000"])
    second = run(capsys, tmp_path / "fleet", out)
    assert second.code == 0 and not second.summary["restartedClusters"]
    same_records(spark, out, GOOD)
    same_tables(spark, out, GOOD)
    grown = states(spark, out)
    assert grown[nodes["controller-3002"].name] in ("reference", "same", "behind")
    assert nodes["controller-3000"].name not in grown
    kept = [nodes[name].name for name in ("controller-3001", "stranger")]
    assert [grown[name] for name in kept] == [before[name] for name in kept]
    assert run(capsys, tmp_path / "fleet", out).summary["step"] is None
    assert states(spark, out) == grown


def test_a_copy_of_another_cluster_is_reason_enough_for_an_exit_code(
    spark: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Nothing else is wrong. One step reports it, as damage is reported; who is added to a known cluster is, too."""
    nodes, out = fleet(tmp_path, ("d", "a", "b", "c", "e")), tmp_path / "out"
    shutil.move(nodes["stranger"], tmp_path / "stranger")
    assert run(capsys, tmp_path / "fleet", out).code == 0
    shutil.move(tmp_path / "stranger", nodes["stranger"])
    met = run(capsys, tmp_path / "fleet", out)
    assert met.code == 4 and not met.quarantine and not met.summary["restartedClusters"]
    (row,) = [row for row in met.copies if row["state"] == "other-cluster"]
    assert row["copy"] == str(nodes["stranger"] / METADATA_DIRECTORY)
    assert "its log begins at offset 0 with another record" in row["reason"]
    assert "is known to this cluster's copies" in row["reason"] and "leave that out of --source" in row["reason"]
    again = run(capsys, tmp_path / "fleet", out)
    assert (again.code, again.summary["step"]) == (0, None)
    assert [row["state"] for row in again.copies if row["copy"] == str(nodes["stranger"] / METADATA_DIRECTORY)] == [
        "other-cluster"
    ]
    same_tables(spark, out, GOOD)


def many(folder: Path) -> str:
    """More clusters than the driver plans by itself; a glob of them. The log of c07 has topics c07-1 up to c07-4."""
    for number in range(MANY):
        name = f"c{number:02d}"
        node(folder, number, log(*[1] * (3 + number % 5), name=name), cluster=name)
    return str(folder / "*")


@pytest.mark.soak
@pytest.mark.long
def test_a_run_over_many_clusters(
    spark: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On executors, which also plan, as if it were much."""
    monkeypatch.setattr(planning, "_FEW", 0)
    monkeypatch.setattr(planning, "_LITTLE", 0)
    many(tmp_path / "fleet")
    made = run(capsys, tmp_path / "fleet", tmp_path / "out")
    assert made.code == 0 and made.summary["changedClusters"] == MANY
    found = named(Warehouse(spark, str(tmp_path / "out")), "current_topics").select("clusterId", "name").collect()
    expected = {(f"c{n:02d}", f"c{n:02d}-{at}") for n in range(MANY) for at in range(1, 3 + n % 5)}
    assert {tuple(row) for row in found} == expected and len(found) == len(expected)
    assert run(capsys, tmp_path / "fleet", tmp_path / "out").summary["step"] is None
