"""The children of a directory, all at once and one by one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kshell.tree.node import Directory, Leaf, Node
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


@pytest.mark.parametrize("values", [False, True])
@pytest.mark.parametrize("directory", DIRECTORIES, ids=ident)
def test_all_at_once_they_are_what_each_is(directory: Path, values: bool) -> None:
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
    assert leaves > 20
