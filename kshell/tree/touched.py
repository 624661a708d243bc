"""From what a record touches to paths of the tree."""

from __future__ import annotations

from kshell.metadata.delta import Touch
from kshell.metadata.families.quorum import KRAFT_VERSION, QUORUM
from kshell.metadata.families.topics import NAMES, TOPICS
from kshell.metadata.image import families
from kshell.metadata.metadata_version import FEATURE
from kshell.metadata.names import encode_name
from kshell.tree.paths import Segments


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
