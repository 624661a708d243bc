"""Paths: from what a user typed to segments, from segments to nodes, and from what a record touches to paths."""

from __future__ import annotations

from kshell.errors import NoSuchPathError, NotADirectoryNodeError, did_you_mean
from kshell.metadata.delta import Touch
from kshell.metadata.families.quorum import KRAFT_VERSION, QUORUM
from kshell.metadata.families.topics import NAMES, TOPICS
from kshell.metadata.image import families
from kshell.metadata.metadata_version import FEATURE
from kshell.metadata.names import encode_name
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


def paths(touch: Touch) -> list[Segments]:
    """The places that a touch is seen at, the one that people look at first; none for what the tree does not show."""
    if touch.family == TOPICS:
        if len(touch.keys) < 2:
            return []  # the table's own entry: the touch with the topic's name tells more
        topic_id, name, *partition = touch.keys
        below = tuple(map(str, partition))
        return [
            ("image", "topics", "byName", encode_name(name), *below),
            ("image", "topics", "byId", str(topic_id), *below),
        ]
    if touch.family == NAMES:
        return []
    if touch.family == QUORUM:
        return [("quorum", *(("kraftVersion",) if touch.keys == (KRAFT_VERSION,) else ()))]
    family = families().get(touch.family)
    if family is None:
        return []
    if touch == Touch("features", (FEATURE,)):
        return [("image", *family.path, "metadataVersion")]
    keys = [level(key) for level, key in zip(family.levels, touch.keys, strict=False)]
    return [("image", *family.path, *keys)]


def is_under(path: Segments, place: Segments) -> bool:
    """Whether what happens at ``path`` concerns ``place``: it is below it, or all around it (a topic that goes)."""
    shorter = min(len(path), len(place))
    return path[:shorter] == place[:shorter]
