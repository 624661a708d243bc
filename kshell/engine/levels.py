"""The names at one level of the tree, fast enough to be asked for at every key: sorted once as long as the image stays.

Nothing here ever loads an image: before it is there, only the names of ``/`` are known.
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
"""Levels whose names are remembered."""


class Level:
    """One directory of the tree and its children's names."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._names: list[str] | None = None

    def starting(self, prefix: str, limit: int) -> tuple[list[str], int]:
        """The names that start with ``prefix``, in the tree's order: at most ``limit``, and how many there are."""
        if self._names is None:
            self._names = sorted(self._directory.segments())
        low = bisect_left(self._names, prefix)
        high = bisect_left(self._names, _after(prefix), low) if prefix else len(self._names)
        return sorted(self._names[low : min(high, low + limit)], key=sort_key), high - low

    def child(self, name: str) -> Node | None:
        """The node of that name."""
        return self._directory.child(name)


def _after(prefix: str) -> str:
    """The least text that sorts after everything that starts with ``prefix``."""
    stem = prefix.rstrip("\U0010ffff")
    return stem[:-1] + chr(ord(stem[-1]) + 1) if stem else prefix + "\U0010ffff"


class _Levels:
    """What is remembered for one session: the levels under one root, the last used at the end."""

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
    """The directory at ``segments``; ``None`` where there is none, or none can be known before the image is loaded."""
    if not session.is_loaded:
        return None
    levels = _remembered.get(session)
    if levels is None or levels.root is not session.root:
        levels = _remembered[session] = _Levels(session.root)
    return levels.at(segments)


def node_at(session: Session, segments: Segments) -> Node | None:
    """The node at ``segments``, or ``None``; as quick as a look into a table, once its level was asked for."""
    if not segments:
        return session.root
    level = level_at(session, segments[:-1])
    return level.child(segments[-1]) if level else None


def top_names(session: Session) -> Sequence[str]:
    """The names in ``/``, which are known without reading anything."""
    return session.root.segments()
