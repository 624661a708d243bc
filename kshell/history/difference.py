"""What differs between two images, as places of the tree. What both share is not looked into, let alone decoded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kshell.metadata.delta import Touch
from kshell.metadata.families.topics import NAMES, TOPICS
from kshell.metadata.image import Image, Table, families
from kshell.metadata.names import encode_name, sort_key
from kshell.metadata.partial import MISSING
from kshell.metadata.partitions import Topic
from kshell.protocol.primitives import Uuid
from kshell.tree.paths import Segments
from kshell.tree.touched import is_under, paths

_TOPICS: Segments = ("image", "topics")
PROVENANCE: Segments = ("image", "provenance")


def changed_places(old: Image, new: Image, place: Segments = ()) -> list[Segments]:
    """The leaves that differ, and the topics that are in one image only, in the tree's order.

    Below ``place`` or around it; what one of both cannot tell (:func:`untold`) is left out.
    """
    found: list[Segments] = [PROVENANCE] if old.provenance != new.provenance else []
    for family in families().values():
        if is_under(("image", *family.path), place):
            for keys in _changed_keys(old[family.name], new[family.name]):
                found += paths(Touch(family.name, keys))
    if is_under(_TOPICS, place):
        found += _changed_topics(old, new)
    hidden = untold(old, new)
    kept = [path for path in found if is_under(path, place) and not any(path[: len(at)] == at for at in hidden)]
    return sorted(kept, key=lambda path: [sort_key(segment) for segment in path])


def untold(old: Image, new: Image) -> list[Segments]:
    """The subtrees that one of both sources cannot know."""
    return sorted({("image", *path) for image in (old, new) for path in image[MISSING]})


def _changed_keys(old: Table, new: Table) -> Iterator[tuple[Any, ...]]:
    if old is new:
        return
    for key in _union(old, new):
        mine, theirs = old.get(key), new.get(key)
        if mine is theirs:
            continue
        if isinstance(mine or theirs, Mapping):
            yield from ((key, *below) for below in _changed_keys(mine or {}, theirs or {}))
        elif mine != theirs:
            yield (key,)


def _union(old: Table, new: Table) -> Iterable[Any]:
    yield from old
    yield from (key for key in new if key not in old)


def _changed_topics(old: Image, new: Image) -> Iterator[Segments]:
    before, after = old[TOPICS], new[TOPICS]
    by_id: dict[Uuid, list[str]] = {}
    """What differs below topics that are in both."""
    for topic_id in _union(before, after):
        mine, theirs = before.get(topic_id), after.get(topic_id)
        if mine is None or theirs is None:
            yield (*_TOPICS, "byId", str(topic_id))
        elif not mine.is_same(theirs):
            by_id[topic_id] = _below(mine, theirs)
            yield from ((*_TOPICS, "byId", str(topic_id), name) for name in by_id[topic_id])
    if old[NAMES] is new[NAMES] and not by_id:
        return
    for name in _union(old[NAMES], new[NAMES]):
        was, now = old[NAMES].get(name), new[NAMES].get(name)
        path = (*_TOPICS, "byName", encode_name(name))
        if was is None or now is None:
            yield path
        elif was == now:
            yield from ((*path, below) for below in by_id.get(was, ()))
        else:
            yield from ((*path, below) for below in _below(before[was], after[now]))


def _below(old: Topic, new: Topic) -> list[str]:
    facts = [segment for segment, same in (("id", old.id == new.id), ("name", old.name == new.name)) if not same]
    return [*map(str, old.differing(new)), *facts]
