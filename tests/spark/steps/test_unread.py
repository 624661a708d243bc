"""Files that are gone, or are not what they were, when they are read: no step counts that lacks what they held."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kshell.errors import UnreadError
from kshell.spark.decoding.decode import View
from kshell.spark.files.pack import partitions
from kshell.spark.options import parse
from kshell.spark.steps import taking
from kshell.spark.steps.planning import clusters
from kshell.spark.steps.step import Summary
from kshell.spark.warehouse import Warehouse, catalog
from tests.builders import FIXTURES, copy_of

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
    monkeypatch.setattr(taking, "_PAUSE", 0)


def content(warehouse: Warehouse) -> dict[str, list[str]]:
    """Every row of the tables that say what the cluster is, as text, without where it was read."""
    names = [name for name in catalog.tables() if name not in ("files", "copies", "clusters", "quarantine")]
    return {name: sorted(map(str, warehouse.read(name).drop("file", "nodeId").collect())) for name in names}


def run(warehouse: Warehouse, directory: Path, harm: Callable[[], None] | None = None) -> Summary:
    """What the verb does; ``harm``: done when all is planned, once."""
    waiting = [] if harm is None else [harm]

    def planned(*given: object) -> None:
        if waiting:
            waiting.pop()()

    with warehouse.writing():
        return taking.take(warehouse, clusters([str(directory)]), planned=planned)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.usefixtures("without_gold", "at_once")
def test_a_segment_that_goes_before_it_is_read(spark: Any, tmp_path: Path) -> None:
    directory = copy_of(ROLLED, tmp_path / "copy")
    log = segments(directory)[1]
    raw = log.read_bytes()
    whole, made, plain = (Warehouse(spark, str(tmp_path / name)) for name in ("whole", "made", "plain"))
    run(whole, directory)
    assert run(made, directory, log.unlink).step == 1
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


class Refusing:
    """A file of a store that opens it and gives nothing."""

    def __init__(self, path: str) -> None:
        self._path = path

    def pread(self, size: int, position: int) -> bytes:
        raise PermissionError(13, "Permission denied", self._path)

    def close(self) -> None:
        pass
