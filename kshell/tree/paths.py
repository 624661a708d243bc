"""Paths: from what a person typed to segments, and from segments to nodes."""

from __future__ import annotations

from kshell.errors import NoSuchPathError, NotADirectoryNodeError, did_you_mean
from kshell.tree.node import Directory, Node

Segments = tuple[str, ...]
HOME: Segments = ("image",)
"""What ``~`` stands for."""


def join(segments: Segments) -> str:
    """``("image", "topics")`` -> ``"/image/topics"``."""
    return "/" + "/".join(segments)


def split(path: str, cwd: Segments = ()) -> Segments:
    """The absolute segments of a path: relative ones start at ``cwd``; ``.``, ``..`` and ``~`` are taken out."""
    if path == "~" or path.startswith("~/"):
        start, path = HOME, path[1:]
    else:
        start = () if path.startswith("/") else cwd
    out = list(start)
    for part in path.split("/"):
        if part == "..":
            del out[-1:]
        elif part and part != ".":
            out.append(part)
    return tuple(out)


def walk(root: Directory, segments: Segments) -> Node | None:
    """The node at ``segments``, or ``None``."""
    node: Node = root
    for segment in segments:
        if not isinstance(node, Directory):
            return None
        below = node.child(segment)
        if below is None:
            return None
        node = below
    return node


def resolve(root: Directory, segments: Segments) -> Node:
    """The node at ``segments``. Raises NoSuchPathError, which proposes a name that is there."""
    node: Node = root
    for depth, segment in enumerate(segments):
        if not isinstance(node, Directory):
            raise NotADirectoryNodeError(f"{join(segments[:depth])}: not a directory")
        below = node.child(segment)
        if below is None:
            raise NoSuchPathError(f"{join(segments[: depth + 1])}: no such path", hint=_near(node, segment))
        node = below
    return node


def _near(node: Directory, segment: str) -> str | None:
    names = node.segments()
    if len(names) > 20_000:
        names = [name for name in names if name[:1] == segment[:1]][:20_000]
    return did_you_mean(segment, names, limit=3)
