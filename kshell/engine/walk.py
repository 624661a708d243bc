"""Helpers of the commands that show many nodes: walk over a part of the tree, and write a value on one line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from kshell.engine.result import Branch
from kshell.tree.node import Directory, Leaf, Node
from kshell.tree.paths import Segments


def walk(
    segments: Segments, node: Node, depth: int | None = None, *, values: bool = False
) -> Iterator[tuple[Segments, Node]]:
    """Yield a node and everything below it, depth first, in the tree's order; at most ``depth`` levels below it.

    With ``values``, those of all leaves will be asked for, so a topic's partitions are decoded together.
    """
    yield segments, node
    if not isinstance(node, Directory) or depth == 0:
        return
    below = None if depth is None else depth - 1
    for name, child in node.children(values=values):
        if isinstance(child, Directory):
            yield from walk((*segments, name), child, below, values=values)
        else:
            yield (*segments, name), child


def branch(name: str, node: Node, *, values: bool, depth: int | None = None) -> Branch:
    """Convert a node, and at most ``depth`` levels below it, to a :class:`Branch`, perhaps without values."""
    if not isinstance(node, Directory):
        return Branch(name, node.value() if values and isinstance(node, Leaf) else None)
    if depth == 0:
        return Branch(name, children=[], left_out=len(node.segments()))
    below = None if depth is None else depth - 1
    children = node.children(values=values)
    return Branch(name, children=[branch(n, child, values=values, depth=below) for n, child in children])


def nested(node: Node) -> object:
    """Return a leaf's value, or a directory as nested objects, name -> value."""
    if isinstance(node, Directory):
        return {name: nested(child) for name, child in node.children(values=True)}
    return node.value() if isinstance(node, Leaf) else None


def one_line(value: object) -> str:
    """Write a plain value on one line: a string unchanged, anything else as compact JSON."""
    if isinstance(value, str):
        return value
    return _encode()(value)


def counted(number: int, noun: str) -> str:
    """``1 record``, ``2 records``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def names_and_values(value: object) -> str:
    """Write a plain value on one line for users: an object as ``name=value, name=value``, a list as ``[1,2]``.

    Text inside an object or list is quoted if it holds blanks or punctuation. Not exact: ``5`` may be number or text.
    """
    if isinstance(value, Mapping) and value:
        return ", ".join(f"{name}={_inner(item)}" for name, item in value.items())
    return value if isinstance(value, str) else _inner(value)


_MARKS = frozenset(' ,={}"')


def _inner(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{name}={_inner(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_inner, value)) + "]"
    if isinstance(value, str) and value and _MARKS.isdisjoint(value):
        return value
    return _encode()(value)


@cache
def _encode() -> Callable[[Any], str]:
    from json import JSONEncoder  # late: most answers have none

    return JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def kind(node: Node) -> str:
    """Return the type of a node, such as ``partition`` or ``directory``."""
    return node.type if isinstance(node, Leaf | Directory) else ""
