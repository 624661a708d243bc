"""The children of a directory, all at once and one by one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kshell.tree.node import Directory, Leaf, Node
from tests.builders import snapshot, uuid, value
from tests.commands.shell import opened
from tests.test_fixtures import DIRECTORIES, ident


def one_by_one(directory: Directory) -> Iterator[tuple[str, Node]]:
    for segment in directory.segments():
        child = directory.child(segment)
        assert child is not None
        yield segment, child


def seen(path: str, node: Node) -> tuple[object, ...]:
    value = node.value() if isinstance(node, Leaf) else None
    return path, type(node), node.is_directory, value, node.origin() if isinstance(node, Directory | Leaf) else None


def leaves_that_agree(directory: Path, *, values: bool) -> int:
    """Compare all directories of a tree, and return the number of leaves."""
    left: list[tuple[str, Node]] = [("", opened(directory, show_secrets=True).root)]
    leaves = 0
    while left:
        path, node = left.pop()
        if not isinstance(node, Directory):
            leaves += 1
            continue
        found = [(f"{path}/{name}", child) for name, child in node.children(values=values)]
        expected = [(f"{path}/{name}", child) for name, child in one_by_one(node)]
        assert [seen(*each) for each in found] == [seen(*each) for each in expected]
        left += found
    return leaves


@pytest.mark.parametrize("values", [False, True])
@pytest.mark.parametrize("directory", DIRECTORIES, ids=ident)
def test_all_at_once_they_are_what_each_is(directory: Path, values: bool) -> None:
    assert leaves_that_agree(directory, values=values) > 20


@pytest.mark.parametrize("values", [False, True])
def test_partitions_that_are_broken_or_there_twice(tmp_path: Path, values: bool) -> None:
    known = {"topicId": uuid(1), "isr": [1], "leader": 1, "leaderEpoch": 0, "partitionEpoch": 0}
    good, other = (value("PARTITION", partitionId=at, replicas=[1], **known) for at in (0, 7))
    again = value("PARTITION", partitionId=0, replicas=[1, 2], **known)
    records = [value("TOPIC", name="t", topicId=uuid(1)), good, other, other[:-1], again]
    (tmp_path / "00000000000000000002-0000000001.checkpoint").write_bytes(snapshot(records))
    assert leaves_that_agree(tmp_path, values=values) > 5


@pytest.mark.parametrize("values", [False, True])
def test_a_value_may_be_changed_by_who_asked_for_it(tmp_path: Path, values: bool) -> None:
    """Partitions that differ in their epochs only are made plain together."""
    known = {"topicId": uuid(1), "replicas": [1, 2], "isr": [1], "leader": 1, "leaderEpoch": 0}
    made = [value("PARTITION", partitionId=at, partitionEpoch=at, **known) for at in range(3)]
    (tmp_path / "00000000000000000002-0000000001.checkpoint").write_bytes(
        snapshot([value("TOPIC", name="t", topicId=uuid(1)), *made])
    )
    topic = opened(tmp_path).find("/image/topics/byName/t")[0][1]
    assert isinstance(topic, Directory)
    for _ in range(2):
        rows = [
            node.value() for name, node in topic.children(values=values) if isinstance(node, Leaf) and name.isdigit()
        ]
        assert [row["partitionEpoch"] for row in rows] == [0, 1, 2]
        for row in rows:
            assert row["replicas"] == [1, 2]
            row["replicas"].append(3)
            row["isr"] = None
