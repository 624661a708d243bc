"""Nodes of the tree. A node is a view: it is made when a path leads to it, and has no state but a cached index.

Values are already plain (what ``json`` knows) and already redacted: nothing above this module can show a secret.
Segments are already encoded (:mod:`kshell.metadata.names`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kshell.metadata.names import sort_key
from kshell.metadata.values import Origin

Plain = Any
"""What JSON knows: ``None``, ``bool``, ``int``, ``float``, ``str``, ``list``, ``dict``."""


class Node(ABC):
    """A leaf or a directory of the tree."""

    is_directory: bool


class Leaf(Node):
    """A typed value. ``type`` names it (``partition``, ``config``, …); ``origin`` is the record that last wrote it."""

    is_directory = False

    def __init__(
        self, kind: str, value: Callable[[], Plain], origin: Callable[[], Origin | None] | None = None
    ) -> None:
        self.type = kind
        self._value = value
        self._origin = origin

    def value(self) -> Plain:
        """The value, plain and redacted."""
        return self._value()

    def origin(self) -> Origin | None:
        """The record that last wrote the value; ``None`` where no single record did."""
        return self._origin() if self._origin else None


class Directory(Node):
    """A node with children."""

    is_directory = True
    type = "directory"

    @abstractmethod
    def segments(self) -> list[str]:
        """The children's names, sorted: numbers as numbers, and before the rest."""

    @abstractmethod
    def child(self, segment: str) -> Node | None:
        """The child with exactly that name."""

    def children(self, *, values: bool) -> Iterator[tuple[str, Node]]:
        """Yield (name, node) of every child, in the order of :meth:`segments`.

        With ``values``, those of all leaves will be asked for: then they may be decoded together, which is faster.
        """
        for segment in self.segments():
            child = self.child(segment)
            if child is not None:
                yield segment, child

    def origin(self) -> Origin | None:
        """The record that created the directory itself, if one did (a topic's)."""
        return None


class StaticDirectory(Directory):
    """A directory whose children are known by name and made on demand."""

    def __init__(self, children: Mapping[str, Callable[[], Node]], *, origin: Origin | None = None) -> None:
        self._children = children
        self._origin = origin

    def segments(self) -> list[str]:
        return sorted(self._children, key=sort_key)

    def child(self, segment: str) -> Node | None:
        make = self._children.get(segment)
        return make() if make else None

    def origin(self) -> Origin | None:
        return self._origin


class IndexedDirectory(Directory):
    """A directory over the keys of an image table; the index from segment to key is built when first needed."""

    def __init__(
        self, keys: Callable[[], list[Any]], segment: Callable[[Any], str], make: Callable[[Any], Node | None]
    ) -> None:
        self._keys = keys
        self._segment = segment
        self._make = make
        self._index: dict[str, Any] | None = None

    def _by_segment(self) -> dict[str, Any]:
        if self._index is None:
            self._index = {self._segment(key): key for key in self._keys()}
        return self._index

    def segments(self) -> list[str]:
        return sorted(self._by_segment(), key=sort_key)

    def child(self, segment: str) -> Node | None:
        index = self._by_segment()
        return self._make(index[segment]) if segment in index else None


def leaf(kind: str, value: Plain) -> Callable[[], Leaf]:
    """A function that makes a leaf with this value."""
    return lambda: Leaf(kind, lambda: value)
