"""``/``: the directory of the image, and of what a source reports about itself (``/quorum``, ``/log``, …)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from kshell.metadata.image import Image
from kshell.metadata.redaction import Redaction
from kshell.metadata.values import Origin
from kshell.tree.image import Makers, image_directory
from kshell.tree.node import Directory, Leaf, Node, StaticDirectory


class Fact(NamedTuple):
    """The content of a leaf outside the image: its type, its plain value, and the record that wrote it, if one did."""

    type: str
    value: object
    origin: Origin | None = None


Facts = Mapping[str, "Fact | Facts"]
"""Name -> a fact, or a directory of facts."""


def root_directory(
    image: Callable[[], Image], redaction: Redaction, facts: Mapping[str, Callable[[], Fact | Facts]]
) -> Directory:
    """The root; ``image`` is called only when a path leads into ``/image``, as the facts of the other names are."""
    children: Makers = {"image": lambda: image_directory(image(), redaction)}
    for name, make in facts.items():
        children[name] = _deferred(make)
    return StaticDirectory(children)


def _deferred(make: Callable[[], Fact | Facts]) -> Callable[[], Node]:
    def node() -> Node:
        make_node = _node(make())
        return make_node()

    return node


def facts_directory(facts: Facts) -> StaticDirectory:
    """Make a directory of nested facts."""
    return StaticDirectory({name: _node(below) for name, below in facts.items()})


def _node(below: Fact | Facts) -> Callable[[], Node]:
    if isinstance(below, Fact):
        return lambda: Leaf(below.type, lambda: below.value, lambda: below.origin)
    return lambda: facts_directory(below)
