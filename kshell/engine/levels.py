"""Look up names and nodes of the tree for completion and highlighting, fast enough for every key press.

The sorted names of a directory are cached per session until its image changes. Nothing here loads an image: before it
is loaded, only the names in ``/`` are known.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Sequence
from weakref import WeakKeyDictionary

from kshell.engine.session import Session
from kshell.metadata.names import sort_key
from kshell.tree.node import Directory, Node
from kshell.tree.paths import Segments

_MOST_LEVELS = 32
"""The most directories per session whose names are cached."""


class Level:
    """One directory of the tree, with the sorted names of its children."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._names: list[str] | None = None

    def starting(self, prefix: str, limit: int) -> tuple[list[str], int]:
        """Return the names that start with ``prefix``, at most ``limit`` of them, and how many there are in all."""
        if self._names is None:
            self._names = sorted(self._directory.segments())
        low = bisect_left(self._names, prefix)
        high = bisect_left(self._names, _after(prefix), low) if prefix else len(self._names)
        return sorted(self._names[low : min(high, low + limit)], key=sort_key), high - low

    def child(self, name: str) -> Node | None:
        """Return the child node of that name; ``None`` if there is none."""
        return self._directory.child(name)


def _after(prefix: str) -> str:
    """Return a text that sorts after every text that starts with ``prefix``."""
    stem = prefix.rstrip("\U0010ffff")
    return stem[:-1] + chr(ord(stem[-1]) + 1) if stem else prefix + "\U0010ffff"


class _Levels:
    """The cached levels of one session, which are valid for one root, that is, for one image."""

    def __init__(self, root: Directory) -> None:
        self.root = root
        self.levels: OrderedDict[Segments, Level] = OrderedDict()

    def at(self, segments: Segments) -> Level | None:
        level = self.levels.get(segments)
        if level is None:
            directory = self._directory(segments)
            if directory is None:
                return None
            level = self.levels[segments] = Level(directory)
            if len(self.levels) > _MOST_LEVELS:
                self.levels.popitem(last=False)
        return level

    def _directory(self, segments: Segments) -> Directory | None:
        if not segments:
            return self.root
        above = self.at(segments[:-1])
        node = above.child(segments[-1]) if above else None
        return node if isinstance(node, Directory) else None


_remembered: WeakKeyDictionary[Session, _Levels] = WeakKeyDictionary()


def level_at(session: Session, segments: Segments) -> Level | None:
    """Return the directory at a path; ``None`` if it does not exist or the image is not loaded yet."""
    if not session.is_loaded:
        return None
    levels = _remembered.get(session)
    if levels is None or levels.root is not session.root:
        levels = _remembered[session] = _Levels(session.root)
    return levels.at(segments)


def node_at(session: Session, segments: Segments) -> Node | None:
    """Return the node at a path; ``None`` if it does not exist or the image is not loaded yet."""
    if not segments:
        return session.root
    level = level_at(session, segments[:-1])
    return level.child(segments[-1]) if level else None


def top_names(session: Session) -> Sequence[str]:
    """Return the names in ``/``, which are known before the image is loaded."""
    return session.root.segments()
