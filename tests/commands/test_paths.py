"""ls, cd, pwd, cat, tree and find."""

from __future__ import annotations

from pathlib import Path

import pytest

from kshell.engine.session import Session
from kshell.engine.walk import walk
from kshell.errors import CommandError, NoSuchPathError, NotADirectoryNodeError, UsageError
from kshell.metadata.records import decode_known
from kshell.tables.leaf_types import leaf_types
from kshell.tree.node import Leaf
from tests import builders
from tests.commands.shell import lines, opened, root, rows, run, value, words


def test_cd_and_pwd(sample: Session) -> None:
    assert words(sample, "pwd") == "/"
    for line, place in (
        ("cd /image/topics", "/image/topics"),
        ("cd byName", "/image/topics/byName"),
        ("cd ../..", "/image"),
        ("cd -", "/image/topics/byName"),
        ("cd -", "/image"),
        ("cd ~/topics", "/image/topics"),
        ("cd", "/image"),
        ("cd /image/top*", "/image/topics"),
        ("cd ..", "/image"),
        ("cd /", "/"),
        ("cd ..", "/"),
    ):
        run(sample, line)
        assert words(sample, "pwd") == place


def test_cd_back_to_a_name_that_looks_like_a_pattern(sample: Session) -> None:
    run(sample, "cd '/image/clientQuotas/ip(10.20.0.7)'")
    run(sample, "cd /")
    run(sample, "cd -")
    assert words(sample, "pwd") == "/image/clientQuotas/ip(10.20.0.7)"


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("cd /image/provenance", NotADirectoryNodeError),
        ("cd /image/provenance/x", NotADirectoryNodeError),
        ("cd /imag", NoSuchPathError),
        ("cd /*", CommandError),
        ("cd a b", UsageError),
        ("ls /nothing*", NoSuchPathError),
        ("cat", UsageError),
        ("tree -L x", UsageError),
        ("find -regex (", UsageError),
        ("find -type partitions", UsageError),
        ("find -maxdepth -1", UsageError),
    ],
)
def test_what_is_refused(sample: Session, line: str, error: type[Exception]) -> None:
    with pytest.raises(error) as raised:
        run(sample, line)
    assert type(raised.value) is error


@pytest.mark.parametrize("line", ["blame /", "blame /quorum"])
def test_only_the_image_has_a_record_for_each_field(sample: Session, line: str) -> None:
    with pytest.raises(UsageError, match="blame knows what is below /image"):
        run(sample, line)


def test_a_near_name_is_proposed(sample: Session) -> None:
    with pytest.raises(NoSuchPathError) as raised:
        run(sample, "cat /image/topics/byNam")
    assert raised.value.hint == "did you mean byName?"
    with pytest.raises(UsageError) as refused:
        run(sample, "find -type partitions")
    assert refused.value.hint == "did you mean partition?"


@pytest.mark.parametrize(
    ("path", "proposed"),
    [
        ("orders", "/image/topics/byName/orders or /image/configs/TOPIC:orders"),
        ("orders/1", "/image/topics/byName/orders/1"),
        ("orders/99", "/image/topics/byName/orders or /image/configs/TOPIC:orders"),
        ("/image/topics/orders", "/image/topics/byName/orders or /image/configs/TOPIC:orders"),
        ("topics", "/image/topics"),
        ("TOPIC:orders", "/image/configs/TOPIC:orders"),
        ("alice", "/image/scram/SCRAM-SHA-256/alice or /image/scram/SCRAM-SHA-512/alice"),
        ("broker-3", "/image/cluster/brokers/3"),
        ("controller-3001", "/image/cluster/controllers/3001"),
        ("/image/ordres", "/image/topics/byName/orders"),
    ],
)
def test_a_name_that_lives_elsewhere_is_proposed_with_its_path(sample: Session, path: str, proposed: str) -> None:
    with pytest.raises(NoSuchPathError) as raised:
        run(sample, f"stat {path}")
    assert raised.value.hint == f"did you mean {proposed}?"
    for proposal in proposed.split(" or "):
        assert sample.find(proposal)


def test_ls(sample: Session) -> None:
    assert lines(sample, "ls /image/scram") == ["SCRAM-SHA-256", "SCRAM-SHA-512"]
    assert lines(sample, "ls /image/provenance") == ["/image/provenance"]
    assert lines(sample, "ls /image/scram/*")[:3] == ["/image/scram/SCRAM-SHA-256:", "alice", ""]
    assert [row["path"] for row in rows(sample, "ls -R /image/cluster")] == [
        "/image/cluster/brokers",
        "/image/cluster/controllers",
        *(f"/image/cluster/brokers/{number}" for number in (1, 2, 3)),
        *(f"/image/cluster/controllers/{number}" for number in (3000, 3001, 3002)),
    ]


def test_ls_long(sample: Session, cut_sample: Session) -> None:
    assert [row["offset"] for row in rows(sample, "ls -l /image/cluster/brokers")] == [23, 20, 201]
    held, _, fenced = rows(cut_sample, "ls -l /image/cluster/brokers")
    assert (fenced["offset"], fenced["record"]) == (201, "BROKER_REGISTRATION_CHANGE_RECORD")
    assert fenced["time"] == "2026-11-21T15:11:22.506Z"
    # What comes out of a snapshot has no time or offset of its own.
    assert held.get("offset") is None
    assert held.get("time") is None
    assert held["snapshot"] == "159-1"


def test_listing_a_topic_decodes_no_partition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = builders.value("TOPIC", name="t", topicId=builders.uuid(1))
    nowhere_else = {"replicas": [7, 77, 777], "isr": [777]}  # what equals a partition that was seen is not decoded
    many = [builders.value("PARTITION", partitionId=n, topicId=builders.uuid(1), **nowhere_else) for n in range(500)]
    builders.write_snapshot(tmp_path, builders.snapshot([topic, *many]), end_offset=1000)
    session = opened(tmp_path)
    decoded: list[bytes] = []

    def spy(raw: bytes) -> object:
        decoded.append(raw)
        return decode_known(raw)

    monkeypatch.setattr("kshell.metadata.partitions.decode_known", spy)
    assert len(rows(session, "ls /image/topics/byName/t")) == 502
    assert len(rows(session, "find /image/topics/byName/t")) == 503
    assert decoded == []
    assert value(session, "cat /image/topics/byName/t/499")["leader"] == -1
    assert len(decoded) == 1


def test_cat(sample: Session) -> None:
    partition = value(sample, "cat /image/topics/byName/legacy-import/0")
    assert partition["leader"] == -1
    assert value(sample, "cat /image/features/metadataVersion") == "4.3-IV0"
    features = root(sample, "cat /image/features")
    assert features.name == "/image/features"
    assert {child.name: child.value for child in features.children or ()}["metadataVersion"] == "4.3-IV0"
    both = rows(sample, "cat /image/features/metadataVersion /image/producerIds")
    assert [row["type"] for row in both] == ["feature", "directory"]
    assert both[0]["value"] == "4.3-IV0"
    assert set(both[1]["value"]) == {"nextProducerId"}
    assert len(rows(sample, "cat /image/cluster/brokers/{1,2}")) == 2


def test_tree(sample: Session) -> None:
    upper = root(sample, "tree -L 1 /image")
    named = {child.name: child for child in upper.children or ()}
    assert named["cluster"].children == []
    assert named["cluster"].left_out == 2
    assert named["provenance"].children is None
    assert named["provenance"].value is None
    valued = root(sample, "tree --values /quorum")
    assert {child.name: child.value for child in valued.children or ()}["leaderId"] == 3000
    several = root(sample, "tree /quorum /snapshots")
    assert several.name == ""
    assert [child.name for child in several.children or ()] == ["/quorum", "/snapshots"]


def test_find(sample: Session) -> None:
    run(sample, "cd /image")
    assert lines(sample, "find cluster -maxdepth 1") == [
        "/image/cluster",
        "/image/cluster/brokers",
        "/image/cluster/controllers",
    ]
    assert lines(sample, "find provenance") == ["/image/provenance"]
    assert lines(sample, "find topics/byName -maxdepth 1 -type d -name 'o*'") == ["/image/topics/byName/orders"]
    assert lines(sample, "find cluster -name '{1,3002}'") == [
        "/image/cluster/brokers/1",
        "/image/cluster/controllers/3002",
    ]
    assert lines(sample, "find / -regex '.*/byName/o[^/]*/7'") == ["/image/topics/byName/orders/7"]
    assert rows(sample, "find cluster -type broker")[0] == {"path": "/image/cluster/brokers/1", "type": "broker"}
    assert rows(sample, "find / -maxdepth 0") == [{"path": "/", "type": "directory"}]


def test_find_with_values_is_every_leaf(sample: Session) -> None:
    found = rows(sample, "find / --values")
    assert {row["path"] for row in found} == {row["path"] for row in rows(sample, "find / -type f")}
    assert all(set(row) == {"path", "type", "value"} for row in found)
    assert "/image/features/metadataVersion: 4.3-IV0" in lines(sample, "find /image/features --values")


def test_find_streams(sample: Session) -> None:
    made: list[str] = []
    topics = sample.root.child("image")
    assert topics is not None
    result = run(sample, "find /image/topics --values")
    first = next(iter(result.rows))  # type: ignore[attr-defined]  # Rows
    made.append(first["path"])
    assert made == ["/image/topics/byId/AfPeweUkQu2n9rxRa_Ic_g/0"]


def test_every_type_of_leaf_is_known(sample: Session) -> None:
    found = {node.type for _, node in walk((), sample.root) if isinstance(node, Leaf)}
    assert found <= set(leaf_types())


@pytest.mark.parametrize("line", ["find /image/topics/byName -name 0 --values", "find /image -type broker --values"])
def test_a_value_that_is_not_asked_for_is_not_decoded(tmp_path: Path, line: str) -> None:
    """With a test, only what passes it is decoded: damage elsewhere is none of its business."""
    whole = {
        "topicId": builders.uuid(1),
        "replicas": [1],
        "isr": [1],
        "leader": 1,
        "leaderEpoch": 0,
        "partitionEpoch": 0,
    }
    values = [
        builders.value("TOPIC", name="t", topicId=builders.uuid(1)),
        builders.value("PARTITION", partitionId=0, **whole),
        builders.value("PARTITION", partitionId=1, **whole) + b"q",
    ]
    builders.write_snapshot(tmp_path, builders.snapshot(values), 10)
    session = opened(tmp_path)
    assert [row["path"] for row in rows(session, line)] == ["/image/topics/byName/t/0"] * ("-name" in line)
    assert session.exit_code() == 0
    rows(session, "find /image/topics/byName --values")
    assert session.exit_code() == 4
