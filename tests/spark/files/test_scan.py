"""Which directories paths and globs mean."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from kshell.errors import SourceNotFoundError, SourcePermissionError
from kshell.sources.directory.files import METADATA_DIRECTORY, Listing
from kshell.sources.directory.files import scan as scan_of_files
from kshell.spark.files.scan import CopyOrigin, Unread, find
from tests.builders import FIXTURES, batch, node_name, recorded, value, write_log, write_snapshot
from tests.rights import locked

NODE = FIXTURES / "4.3.1/broker-0"
LOG = NODE / METADATA_DIRECTORY


def test_a_log_directory_and_the_metadata_directory_in_it_are_one() -> None:
    assert [one.path for one in find([str(NODE)])] == [str(LOG)]
    assert [one.path for one in find([str(LOG), str(NODE)])] == [str(LOG)]


def test_a_glob_finds_every_node_once() -> None:
    nodes = sorted(str(node / METADATA_DIRECTORY) for node in recorded())
    assert [one.path for one in find([f"{FIXTURES}/*/*/{METADATA_DIRECTORY}"])] == nodes
    assert sorted(one.path for one in find([f"{FIXTURES}/*/*"])) == nodes
    assert sorted(one.path for one in find([f"{FIXTURES}/**"]) if METADATA_DIRECTORY in one.path) == nodes


def test_alternatives(tmp_path: Path) -> None:
    def names(pattern: str) -> list[str]:
        return [node_name(Path(one.path).parent) for one in find([f"{FIXTURES}/{pattern}"])]

    assert names("4.3.1/{controller-3001,broker-0,none}") == ["4.3.1/broker-0", "4.3.1/controller-3001"]
    assert names("{4.{1.1,3.1},3.9.2}/broker-[01]") == [
        name for release in ("3.9.2", "4.1.1", "4.3.1") for name in names(f"{release}/broker-[01]")
    ]
    with pytest.raises(SourceNotFoundError, match="finds no metadata"):
        names("4.3.1/{none,nobody}")
    with pytest.raises(SourceNotFoundError, match="no such file"):
        names("4.3.1/{none}")
    write_log(tmp_path / "{a,b}", batch([value("NO_OP")]))
    assert [one.path for one in find([f"{tmp_path}/{{a,b}}"])] == [f"{tmp_path}/{{a,b}}"]


def test_a_lone_file() -> None:
    segment = next(LOG.glob("*.log"))
    (found,) = find([str(segment)])
    assert [one.path for one in found.listing.segments] == [str(segment)]
    assert found.origin.node_id == 0


def test_a_file_beside_its_directory_is_read_once() -> None:
    segment = next(LOG.glob("*.log"))
    assert [one.path for one in find([str(LOG), str(segment)])] == [str(LOG)]


def test_globs_of_files() -> None:
    found = find([f"{LOG}/*.checkpoint"])
    assert [one.path for one in found] == sorted(map(str, LOG.glob("*.checkpoint")))
    assert all(not one.listing.segments for one in found)


def test_the_data_of_topics_beside_it_is_not_metadata(tmp_path: Path) -> None:
    write_log(tmp_path / METADATA_DIRECTORY, batch([value("NO_OP")]))
    write_log(tmp_path / "orders-0", batch([value("NO_OP")]))
    assert [one.path for one in find([f"{tmp_path}/*"])] == [str(tmp_path / METADATA_DIRECTORY)]


def test_a_copy_under_another_name(tmp_path: Path) -> None:
    write_log(tmp_path / "copy", batch([value("NO_OP")]))
    assert [one.path for one in find([f"{tmp_path}/*"])] == [str(tmp_path / "copy")]


def test_whose_it_is(tmp_path: Path) -> None:
    meta = dict(line.split("=") for line in (NODE / "meta.properties").read_text().split() if "=" in line)
    assert find([str(NODE)])[0].origin == CopyOrigin(meta["cluster.id"], 0)
    shutil.copytree(LOG, tmp_path / "copy", copy_function=shutil.copyfile)
    assert find([str(tmp_path / "copy")])[0].origin == CopyOrigin(None, None)


@pytest.mark.parametrize("text", ["", "x", "-1", "99999999999", "٣"])
def test_a_node_id_that_is_none(tmp_path: Path, text: str) -> None:
    write_log(tmp_path, batch([value("NO_OP")]))
    (tmp_path / "meta.properties").write_text(f"cluster.id=c\nnode.id={text}\n")
    assert find([str(tmp_path)])[0].origin == CopyOrigin("c", None)


def test_nothing_there(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for path in ("nowhere", "empty", "*", "no*where"):
        with pytest.raises(SourceNotFoundError):
            find([str(tmp_path / path)])


def refusing(patch: pytest.MonkeyPatch, *names: str) -> None:
    """Directories that this user may not list, by the name of the one around them."""

    def scan(path: str) -> Listing:
        if Path(path).parent.name in names:
            raise SourcePermissionError(f"{path}: permission denied")
        return scan_of_files(path)

    patch.setattr("kshell.spark.files.scan.scan", scan)


def test_what_a_glob_finds_and_nobody_can_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "abc":
        write_log(tmp_path / name / METADATA_DIRECTORY, batch([value("NO_OP")]))
        (tmp_path / name / "meta.properties").write_text(f"cluster.id={name}\nnode.id=1\n")
    refusing(monkeypatch, "a", "c")
    unread: list[Unread] = []
    assert [Path(one.path).parent.name for one in find([f"{tmp_path}/*"], unread)] == ["b"]
    assert [(one.path, one.origin) for one in unread] == [
        (str(tmp_path / name / METADATA_DIRECTORY), CopyOrigin(name, 1)) for name in "ac"
    ]
    assert find([f"{tmp_path}/[ac]"], unread) == []
    for given in (f"{tmp_path}/*", str(tmp_path / "a")):
        with pytest.raises(SourcePermissionError, match="a/__cluster_metadata-0: permission denied"):
            find([given])
    with pytest.raises(SourcePermissionError):
        find([str(tmp_path / "a"), f"{tmp_path}/*"], unread)  # it was named
    with pytest.raises(SourceNotFoundError):
        find([f"{tmp_path}/*", str(tmp_path / "nowhere")], unread)


def test_a_directory_that_nobody_may_enter_is_of_the_cluster_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_log(tmp_path / "a" / METADATA_DIRECTORY, batch([value("NO_OP")]))
    (tmp_path / "a" / "meta.properties").write_text("cluster.id=x\nnode.id=1\n")

    def opened(path: str, *more: Any, **options: Any) -> Any:
        if f"{METADATA_DIRECTORY}/" in str(path):
            raise PermissionError(13, "Permission denied", path)
        return really(path, *more, **options)

    really = open
    refusing(monkeypatch, "a")
    monkeypatch.setattr("builtins.open", opened)
    unread: list[Unread] = []
    find([f"{tmp_path}/*"], unread)
    assert [one.origin for one in unread] == [CopyOrigin("x", 1)]


def fleet(root: Path, *nodes: str) -> None:
    """Log directories of nodes, all of one cluster."""
    for number, name in enumerate(nodes):
        write_log(root / name / METADATA_DIRECTORY, batch([value("NO_OP")]))
        (root / name / "meta.properties").write_text(f"cluster.id=x\nnode.id={number}\n")


def test_a_copy_whose_meta_properties_nobody_may_read(tmp_path: Path) -> None:
    fleet(tmp_path, "a", "b")
    meta, unread = tmp_path / "a/meta.properties", list[Unread]()
    with locked(meta):
        assert [Path(copy.path).parent.name for copy in find([f"{tmp_path}/*/{METADATA_DIRECTORY}"], unread)] == ["b"]
        with pytest.raises(SourcePermissionError, match=r"a/meta\.properties: permission denied"):
            find([str(tmp_path / "a")])
    assert [(copy.path, copy.origin, copy.error.message) for copy in unread] == [
        (f"{tmp_path}/a/{METADATA_DIRECTORY}", CopyOrigin(None, None), f"{meta}: permission denied")
    ]
    assert len(find([f"{tmp_path}/*/{METADATA_DIRECTORY}"])) == 2


@pytest.mark.parametrize(
    ("directory", "pattern", "place"),
    [
        ("one/a", f"*/*/{METADATA_DIRECTORY}", f"one/a/{METADATA_DIRECTORY}"),
        ("one/a", f"**/{METADATA_DIRECTORY}", f"one/a/{METADATA_DIRECTORY}"),
        ("one/a", f"one/{{a,b}}/{METADATA_DIRECTORY[:-1]}?", "one/a"),
        ("one/a", "*/*", "one/a"),
        ("one/a", "**", "one/a"),
        ("one", f"*/*/{METADATA_DIRECTORY}", "one"),
        ("one", f"o*/a/{METADATA_DIRECTORY}", f"one/a/{METADATA_DIRECTORY}"),
        ("one", "one/*", "one"),
        (f"one/a/{METADATA_DIRECTORY}", f"*/*/{METADATA_DIRECTORY}/*.log", f"one/a/{METADATA_DIRECTORY}"),
        (f"one/a/{METADATA_DIRECTORY}", "*/*", f"one/a/{METADATA_DIRECTORY}"),
    ],
)
@pytest.mark.parametrize("mode", [0o000, 0o600, 0o100])
def test_a_directory_on_the_way_of_a_glob_that_nobody_may_enter(
    tmp_path: Path, directory: str, pattern: str, place: str, mode: int
) -> None:
    fleet(tmp_path, "one/a", "other/b")
    refused, unread = tmp_path / directory, list[Unread]()
    everywhere = [f"{tmp_path}/{pattern}", f"{tmp_path}/other/b"]
    with locked(refused):
        refused.chmod(mode)
        paths = {copy.path for copy in find(everywhere, unread)}
    errors = {copy.path: copy.error.message for copy in unread}
    mine, rest = f"{tmp_path}/one/a/{METADATA_DIRECTORY}", f"{tmp_path}/other/b/{METADATA_DIRECTORY}"
    if mode != 0o100:
        assert paths == {rest}
        assert errors[f"{tmp_path}/{place}"] == f"{refused}: permission denied"
    else:  # it may be searched, which is enough where the glob does not list it
        assert errors or mine in paths
        assert not errors.keys() & paths and {*errors.values()} <= {f"{refused}: permission denied"}


def test_what_a_file_system_keeps_for_itself_is_no_node(tmp_path: Path) -> None:
    fleet(tmp_path, "a")
    unread: list[Unread] = []
    (tmp_path / "lost+found").mkdir()
    with locked(tmp_path / "lost+found"):
        assert len(find([f"{tmp_path}/*/{METADATA_DIRECTORY}"], unread)) == 1 and not unread


def test_which_snapshots(tmp_path: Path) -> None:
    for end in (5, 9):
        write_snapshot(tmp_path, b"", end)
    (found,) = find([str(tmp_path)])
    counts = {which: len(found.snapshots(which)) for which in ("auto", "all", "only", "none")}
    assert counts == {"auto": 1, "all": 2, "only": 2, "none": 0}
    assert found.snapshots("auto")[0].end_offset == 9
    write_log(tmp_path, b"", base_offset=9)
    assert not find([str(tmp_path)])[0].snapshots("auto")
