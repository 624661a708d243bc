"""info --meta-properties: the ids of several directories side by side, and what does not fit."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from kshell.engine.session import Session
from kshell.errors import EXIT_DATA, EXIT_OK, SourceNotFoundError, UsageError
from kshell.sources.choose import NoSource
from tests import builders
from tests.commands.shell import opened, rows, run

CLUSTER = builders.FIXTURES / "4.3.1"
NODES = sorted(path.parent for path in CLUSTER.glob("*/meta.properties"))


def asked(*directories: Path) -> tuple[list[dict[str, Any]], int]:
    line = f"info --meta-properties {' '.join(map(str, directories))}"
    session = Session(NoSource())
    return rows(session, line), run(session, line).exit_code


def properties(folder: Path, *, log: bool = True, **keys: str) -> Path:
    """A log directory with ``meta.properties``; ``cluster_id="x"`` becomes ``cluster.id=x``."""
    stated = {"version": "1", "cluster.id": "c", "node.id": "1"}
    stated |= {key.replace("_", "."): value for key, value in keys.items()}
    folder.mkdir(parents=True)
    (folder / "meta.properties").write_text("#\n" + "".join(f"{key}={value}\n" for key, value in stated.items()))
    if log:
        (folder / "__cluster_metadata-0").mkdir()
    return folder


def test_nodes_of_one_cluster_fit_together() -> None:
    found, code = asked(*NODES)
    assert code == EXIT_OK and not any(row["problems"] for row in found)
    assert {row["clusterId"] for row in found} == {found[0]["clusterId"]}
    assert [row["nodeId"] for row in found] == [int(node.name.partition("-")[2]) for node in NODES]
    assert len({row["directoryId"] for row in found}) == len(NODES)


def test_the_metadata_directory_stands_for_the_log_directory_around_it() -> None:
    (inner,), _ = asked(NODES[0] / "__cluster_metadata-0")
    (outer,), _ = asked(NODES[0])
    assert inner | {"directory": ""} == outer | {"directory": ""}


def test_a_node_of_another_cluster_is_named() -> None:
    found, code = asked(*NODES, builders.FIXTURES / "3.9.2" / "broker-0")
    assert code == EXIT_DATA
    assert [bool(row["problems"]) for row in found] == [False] * len(NODES) + [True]
    assert "another cluster" in found[-1]["problems"][0]


def test_a_copy_of_a_directory_has_its_directory_id(tmp_path: Path) -> None:
    copy = shutil.copytree(NODES[0], tmp_path / "copy")
    found, code = asked(NODES[0], copy)
    assert code == EXIT_DATA
    assert all("one is a copy of the other" in row["problems"][0] for row in found)


def test_a_node_id_that_is_there_twice_is_named(tmp_path: Path) -> None:
    one = properties(tmp_path / "a", directory_id="A")
    other = properties(tmp_path / "b", directory_id="B")
    found, code = asked(one, other)
    assert code == EXIT_DATA and all("node.id is that of" in row["problems"][0] for row in found)


def test_several_log_directories_of_one_node_are_fine(tmp_path: Path) -> None:
    one = properties(tmp_path / "a", directory_id="A")
    other = properties(tmp_path / "b", directory_id="B", log=False)
    assert asked(one, other)[1] == EXIT_OK


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"version": "7"}, "version is 7, not 0 or 1"),
        ({"cluster_id": ""}, "has no cluster.id"),
        ({"node_id": "x"}, "node.id is not the id of a node"),
    ],
)
def test_what_a_file_itself_lacks_is_named(tmp_path: Path, keys: dict[str, Any], problem: str) -> None:
    (row,), code = asked(properties(tmp_path / "a", **keys))
    assert code == EXIT_DATA and problem in row["problems"][0]


def test_a_directory_without_the_file_is_named(tmp_path: Path) -> None:
    (row,), code = asked(tmp_path)
    assert code == EXIT_DATA and row["problems"] == ["has no meta.properties"]


def test_keys_that_kafka_does_not_write_are_listed(tmp_path: Path) -> None:
    (row,), code = asked(properties(tmp_path / "a", my_key="1"))
    assert code == EXIT_OK and row["unknownKeys"] == ["my.key"]


def test_a_directory_that_is_not_there_is_no_directory_without_properties(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFoundError, match="typo: no such file or directory"):
        asked(NODES[0], tmp_path / "typo")


def test_without_a_directory_the_sources_own_is_shown() -> None:
    (row,) = rows(opened(NODES[0]), "info --meta-properties")
    assert row["nodeId"] == int(NODES[0].name.partition("-")[2])


def test_info_still_needs_a_source() -> None:
    with pytest.raises(UsageError, match="no source was given"):
        run(Session(NoSource()), "info")
    with pytest.raises(UsageError, match="only with --meta-properties"):
        run(opened(NODES[0]), f"info {NODES[0]}")
    with pytest.raises(UsageError, match="no directory"):
        run(Session(NoSource()), "info --meta-properties")
