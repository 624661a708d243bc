"""The names of a directory, and the small text files in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kshell.sources.directory.files import Listing, scan
from kshell.sources.directory.sidecar_files import (
    bootstrap_file,
    leader_epochs,
    meta_properties,
    property_line,
    quorum_state,
)
from tests.builders import FIXTURES, batch, snapshot, value, write_epochs, write_log, write_snapshot

NODE = FIXTURES / "4.2.1-rolled/controller-3002"


def listing(path: Path) -> Listing:
    return scan(str(path))


def test_a_listing_is_in_offset_order() -> None:
    found = listing(NODE / "__cluster_metadata-0")
    bases = [segment.base_offset for segment in found.segments]
    assert bases == [0, 35, 152, 171, 274, 293, 305, 416, 435, 453, 539, 699]
    ends = [(file.end_offset, file.epoch) for file in found.snapshots]
    assert ends == [(0, 0), (108, 1), (165, 1), (240, 2), (298, 2), (450, 4), (531, 4), (687, 4)]
    assert found.segments[-1].size == 864


def test_what_stands_beside_a_recorded_log() -> None:
    found = listing(NODE / "__cluster_metadata-0")
    assert leader_epochs(found) == [(1, 0), (2, 169), (4, 303)]
    assert quorum_state(found)["leaderEpoch"] == 4
    assert meta_properties(found)["node.id"] == "3002"
    assert bootstrap_file(found) == str(NODE / "bootstrap.checkpoint")
    lone = listing(NODE / "__cluster_metadata-0" / "00000000000000000699.log")
    assert leader_epochs(lone) == leader_epochs(found)
    assert bootstrap_file(lone) is None


def test_text_files_may_be_missing_or_broken(tmp_path: Path) -> None:
    write_log(tmp_path, batch([value("NO_OP")]))
    found = listing(tmp_path)
    assert (leader_epochs(found), quorum_state(found), bootstrap_file(found)) == ([], {}, None)
    for text in ("", "0\n", "0\n1\n1 x\n", "0\n1\n1 2 3\n", "\ufffd\x00"):
        (tmp_path / "leader-epoch-checkpoint").write_text(text)
        assert leader_epochs(found) == []
    (tmp_path / "leader-epoch-checkpoint").write_bytes(b"\xff\xfe\n\n\xff")
    assert leader_epochs(found) == []
    write_epochs(tmp_path, (1, 0), (3, 9))
    assert leader_epochs(found) == [(1, 0), (3, 9)]
    for text in ("", "{", "[1]", "7", "\x00"):
        (tmp_path / "quorum-state").write_text(text)
        assert quorum_state(found) == {}


@pytest.mark.parametrize("inside", [True, False])
def test_meta_properties_stand_around_or_in_the_directory(tmp_path: Path, inside: bool) -> None:
    inner = tmp_path / "__cluster_metadata-0"
    write_snapshot(inner, snapshot([]), 1)
    text = "#\n# comment = no\n\ncluster.id=a=b\n node.id = 7 \n"
    ((inner if inside else tmp_path) / "meta.properties").write_text(text)
    assert meta_properties(listing(inner)) == {"cluster.id": "a=b", "node.id": "7"}


@pytest.mark.parametrize(
    ("line", "cluster_id"),
    [
        ("cluster.id=a\\=b\\:c", "a=b:c"),
        ("cluster.id : abc", "abc"),
        ("  cluster.id abc", "abc"),
        ("cluster.id=\\u00e9t\\u00E9 \\\\", "été \\"),
        ("cluster.id=ab\\\n   c", "abc"),
        ("! a comment\ncluster.id=ü", "ü"),
        ("cluster.id=MkU3OEVBNTcwNTJENDM2Qg==", "MkU3OEVBNTcwNTJENDM2Qg=="),
    ],
)
def test_meta_properties_are_java_properties(tmp_path: Path, line: str, cluster_id: str) -> None:
    write_log(tmp_path, batch([value("NO_OP")]))
    (tmp_path / "meta.properties").write_text(f"#\n{line}\nnode.id=7\n", encoding="utf-8")
    assert meta_properties(listing(tmp_path)) == {"cluster.id": cluster_id, "node.id": "7"}


def test_an_id_is_written_as_java_reads_it() -> None:
    """Java reads the file as ISO-8859-1."""
    assert property_line("cluster.id", "MkU3OEVBNTcwNTJENDM2Qg") == "cluster.id=MkU3OEVBNTcwNTJENDM2Qg\n"
    assert property_line("cluster.id", "é=1") == "cluster.id=\\u00e9\\=1\n"


def test_what_java_refuses_is_not_used(tmp_path: Path) -> None:
    write_log(tmp_path, batch([value("NO_OP")]))
    (tmp_path / "meta.properties").write_text("cluster.id=a\\u12\nnode.id=7\n")
    notes: list[str] = []
    assert meta_properties(listing(tmp_path), notes) == {}
    reason = "\\u without four hexadecimal digits after it: the file is not used; copy it from the node again"
    assert notes == [f"{tmp_path}/meta.properties: {reason}"]
