"""Paths: turn what a user typed into segments, segments into nodes, and what a record changes into paths."""

from __future__ import annotations

from kshell.errors import NoSuchPathError, NotADirectoryNodeError, UsageError, did_you_mean
from kshell.metadata.delta import Touch
from kshell.metadata.families.quorum import KRAFT_VERSION, QUORUM
from kshell.metadata.families.topics import NAMES, TOPICS
from kshell.metadata.image import families
from kshell.metadata.metadata_version import FEATURE
from kshell.metadata.names import encode_name
from kshell.tree.node import Directory, Node

Segments = tuple[str, ...]
HOME: Segments = ("image",)
"""The path that ``~`` means."""


def join(segments: Segments) -> str:
    """``("image", "topics")`` -> ``"/image/topics"``."""
    return "/" + "/".join(segments)


def split(path: str, cwd: Segments = ()) -> Segments:
    """The absolute segments of a path: relative paths start at ``cwd``; ``.``, ``..`` and ``~`` are resolved."""
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
    """The node at ``segments``. Raises NoSuchPathError, which proposes paths or names that exist."""
    node: Node = root
    for depth, segment in enumerate(segments):
        if not isinstance(node, Directory):
            raise NotADirectoryNodeError(f"{join(segments[:depth])}: not a directory")
        below = node.child(segment)
        if below is None:
            elsewhere = _elsewhere(root, segments[depth:])
            near = f"did you mean {' or '.join(map(join, elsewhere))}?" if elsewhere else _near(root, node, segment)
            hint = near or f"`ls {join(segments[:depth])}` lists what is there"
            raise NoSuchPathError(f"{join(segments[: depth + 1])}: no such path", hint=hint)
        node = below
    return node


TOPICS_BY_NAME: Segments = ("image", "topics", "byName")
TOPICS_BY_ID: Segments = ("image", "topics", "byId")
_PLACES: tuple[tuple[Segments, str], ...] = (
    (HOME, ""),
    (TOPICS_BY_NAME, ""),
    (TOPICS_BY_ID, ""),
    (("image", "configs"), ""),
    (("image", "configs"), "TOPIC:"),
    (("image", "scram", "SCRAM-SHA-256"), ""),
    (("image", "scram", "SCRAM-SHA-512"), ""),
)
"""Directories of names that users know, each with the prefix that the names have there."""
NODE_PLACES = {"broker": ("image", "cluster", "brokers"), "controller": ("image", "cluster", "controllers")}
"""The word before a node's id, as in ``broker-3`` -> the directory of these nodes."""


def _elsewhere(root: Directory, rest: Segments) -> list[Segments]:
    """The paths at which the first name of ``rest`` exists elsewhere, with the names after it if they exist, too."""
    name, below = rest[0], rest[1:]
    places = [(*place, f"{before}{name}") for place, before in _PLACES]
    places += [
        (*place, name.removeprefix(f"{kind}-")) for kind, place in NODE_PLACES.items() if name.startswith(f"{kind}-")
    ]
    existing = [place for place in places if walk(root, place) is not None]
    return [(*place, *below) for place in existing if walk(root, (*place, *below)) is not None] or existing


def _near(root: Directory, node: Directory, segment: str) -> str | None:
    """A hint with names of similar spelling, from the directory, else from the topics."""
    hint = did_you_mean(segment, node.segments(), limit=3)
    topics = walk(root, TOPICS_BY_NAME)
    if hint is not None or not isinstance(topics, Directory):
        return hint
    return did_you_mean(segment, topics.segments(), limit=3, write=lambda name: join((*TOPICS_BY_NAME, name)))


def below_home(root: Directory, place: Segments, command: str) -> Segments:
    """Return ``place`` if it is ``/image`` or below it.

    Raises:
        NoSuchPathError: the path does not exist; similar ones are proposed.
        UsageError: the path is in another part of the tree, for which the command has no answer.
    """
    if place[:1] != HOME:
        resolve(root, place)
        hint = f"`log {join(place)}` has the records that changed it" if place[:1] == ("quorum",) else None
        raise UsageError(f"{join(place)}: {command} knows what is below {join(HOME)}", hint=hint)
    return place


def paths(touch: Touch) -> list[Segments]:
    """The paths at which a touch (the change of one key) is visible, the most used one first; perhaps none."""
    if touch.family == TOPICS:
        if len(touch.keys) < 2:
            return []  # the table's own entry: the touch with the topic's name says more
        topic_id, name, *partition = touch.keys
        below = tuple(map(str, partition))
        return [
            (*TOPICS_BY_NAME, encode_name(name), *below),
            (*TOPICS_BY_ID, str(topic_id), *below),
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
    """Whether a change at ``path`` concerns ``place``: one of them is the other or above it (a deleted topic)."""
    shorter = min(len(path), len(place))
    return path[:shorter] == place[:shorter]
