"""What differs between two images: paths of the tree, the rows of ``diff``, its counts, and its JSON patch.

Parts that both images share (the same objects) are skipped without being decoded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from kshell.engine.result import Row
from kshell.engine.walk import nested, walk
from kshell.metadata.delta import Touch
from kshell.metadata.families.topics import NAMES, TOPICS
from kshell.metadata.image import Image, Keys, Table, families, keys_of_both
from kshell.metadata.names import encode_name, sort_key
from kshell.metadata.partial import MISSING, NOT_AVAILABLE
from kshell.metadata.partitions import Topic
from kshell.metadata.redaction import REDACTED
from kshell.protocol.primitives import Uuid
from kshell.tables.declaration import Field
from kshell.tables.enumeration import Enumeration
from kshell.tables.leaf_types import LEAF_TYPE
from kshell.tree.image import image_directory
from kshell.tree.node import Directory, Leaf, Node, StaticDirectory
from kshell.tree.paths import TOPICS_BY_ID, TOPICS_BY_NAME, Segments, is_under, join, paths
from kshell.tree.paths import walk as node_at

if TYPE_CHECKING:
    from kshell.engine.session import Session
    from kshell.json_text import JsonObject

_TOPICS: Segments = ("image", "topics")
PROVENANCE: Segments = ("image", "provenance")


def changed_places(old: Image, new: Image, place: Segments = ()) -> list[Segments]:
    """Return the paths that differ, in the tree's order: leaves, and topics that only one of the images has.

    Args:
        place: only paths below it, or above it. Subtrees that one source does not report (:func:`unknown_subtrees`) are
            left out.
    """
    differing: list[Segments] = [PROVENANCE] if old.provenance != new.provenance else []
    for family in families().values():
        if is_under(("image", *family.path), place):
            for keys in _changed_keys(old[family.name], new[family.name]):
                differing += paths(Touch(family.name, keys))
    if is_under(_TOPICS, place):
        differing += _changed_topics(old, new)
    hidden = unknown_subtrees(old, new)
    listed = [path for path in differing if is_under(path, place) and not any(path[: len(at)] == at for at in hidden)]
    return sorted(listed, key=lambda path: [sort_key(segment) for segment in path])


def unknown_subtrees(old: Image, new: Image) -> list[Segments]:
    """Return the paths of the subtrees that at least one of the two sources does not report."""
    return sorted({("image", *path) for image in (old, new) for path in image[MISSING]})


def _changed_keys(old: Table, new: Table) -> Iterator[Keys]:
    """Yield the keys of the entries that differ between two tables of a family; of a two-level table, both keys."""
    if old is new:
        return
    for key in keys_of_both(old, new):
        mine, theirs = old.get(key), new.get(key)
        if mine is theirs:
            continue
        if isinstance(mine or theirs, Mapping):
            yield from ((key, *below) for below in _changed_keys(mine or {}, theirs or {}))
        elif mine != theirs:
            yield (key,)


def _changed_topics(old: Image, new: Image) -> Iterator[Segments]:
    before, after = old[TOPICS], new[TOPICS]
    by_id: dict[Uuid, list[str]] = {}
    """Topic id -> the names of the leaves that differ, for topics that both images have."""
    for topic_id in keys_of_both(before, after):
        mine, theirs = before.get(topic_id), after.get(topic_id)
        if mine is None or theirs is None:
            yield (*TOPICS_BY_ID, str(topic_id))
        elif not mine.is_same(theirs):
            by_id[topic_id] = _below(mine, theirs)
            yield from ((*TOPICS_BY_ID, str(topic_id), name) for name in by_id[topic_id])
    if old[NAMES] is new[NAMES] and not by_id:
        return
    for name in keys_of_both(old[NAMES], new[NAMES]):
        was, now = old[NAMES].get(name), new[NAMES].get(name)
        path = (*TOPICS_BY_NAME, encode_name(name))
        if was is None or now is None:
            yield path
        elif was == now:
            yield from ((*path, below) for below in by_id.get(was, ()))
        else:
            yield from ((*path, below) for below in _below(before[was], after[now]))


def _below(old: Topic, new: Topic) -> list[str]:
    """Return the names of a topic's leaves that differ: partition numbers, ``id``, ``name``."""
    facts = [segment for segment, same in (("id", old.id == new.id), ("name", old.name == new.name)) if not same]
    return [*map(str, old.differing(new)), *facts]


_EPOCHS = frozenset(("epoch", "leaderEpoch", "partitionEpoch"))
ADDED, REMOVED, CHANGED = "added", "removed", "changed"
CHANGE = Enumeration((ADDED, REMOVED, CHANGED))
FIELDS = (
    Field("path", "string", "of the leaf"),
    Field("type", LEAF_TYPE, "of the leaf"),
    Field("change", CHANGE, "added, removed or changed"),
    Field("fields", ["string"], "which of its fields changed"),
    Field("old", "json", "its value before"),
    Field("new", "json", "its value after"),
)


class Change(NamedTuple):
    """A leaf that differs: its type, whether it was added, removed or changed, its value before and after.

    ``fields`` are the fields that differ, for a changed leaf whose value has fields; else empty.
    """

    path: Segments
    type: str
    change: str
    fields: list[str]
    old: Any
    new: Any

    def row(self) -> Row:
        """Return the change as a row with the columns :data:`FIELDS`."""
        return self._asdict() | {"path": join(self.path)}


class TreeComparison:
    """The comparison of two sessions' images below one path; ``ignore_epochs`` leaves out epochs and the provenance."""

    def __init__(self, old: Session, new: Session, place: Segments, *, ignore_epochs: bool = False) -> None:
        self._old, self._new, self._place = old, new, place
        self._ignored = _EPOCHS if ignore_epochs else frozenset[str]()
        self._roots = _root(old), _root(new)
        self._around: tuple[Segments, list[Node | None]] = (), [None, None]

    def exists(self) -> bool:
        """Whether the path exists in at least one of the images."""
        return any(node_at(root, self._place) is not None for root in self._roots)

    def changes(self, *, repeated: bool = True) -> Iterator[Change]:
        """Yield every leaf that differs, in the tree's order; ``repeated``: also those of :func:`repeats_by_name`."""
        for path in changed_places(self._old.image, self._new.image, self._place):
            if (path == PROVENANCE and self._ignored) or (not repeated and repeats_by_name(path, self._place)):
                continue
            for change in self._at(path):
                if change.path[: len(self._place)] == self._place:
                    yield change

    def _at(self, path: Segments) -> Iterator[Change]:
        """Yield the changes at or below a path that differs."""
        old, new = self._nodes(path)
        if isinstance(old, Leaf) and isinstance(new, Leaf):
            change = self._changed(path, old, new)
            if change is not None:
                yield change
        else:
            yield from (Change(at, leaf.type, REMOVED, [], leaf.value(), None) for at, leaf in _leaves(path, old))
            yield from (Change(at, leaf.type, ADDED, [], None, leaf.value()) for at, leaf in _leaves(path, new))

    def _nodes(self, path: Segments) -> list[Node | None]:
        """Return the nodes at a path in the old and the new tree; the last parent is remembered."""
        if self._around[0] != path[:-1]:
            self._around = path[:-1], [node_at(root, path[:-1]) for root in self._roots]
        return [node.child(path[-1]) if isinstance(node, Directory) else None for node in self._around[1]]

    def _changed(self, path: Segments, old: Leaf, new: Leaf) -> Change | None:
        before, after = old.value(), new.value()
        if not (isinstance(before, dict) and isinstance(after, dict)):
            return Change(path, new.type, CHANGED, [], before, after)
        names = [*before, *(name for name in after if name not in before)]
        comparable = [name for name in names if NOT_AVAILABLE not in (before.get(name), after.get(name))]
        fields = [name for name in comparable if name not in before or name not in after or before[name] != after[name]]
        if not fields:  # only redacted values differ
            fields = [name for name in comparable if before.get(name) == REDACTED]
        fields = [name for name in fields if name not in self._ignored]
        return Change(path, new.type, CHANGED, fields, before, after) if fields else None

    def patch(self) -> list[JsonObject]:
        """Return the JSON patch (RFC 6902) that turns the old image's ``cat PATH -o json`` into the new image's."""
        operations: list[JsonObject] = []
        replaced: set[Segments] = set()
        for change in self.changes():
            if change.change != CHANGED:
                top = self._top(change.path, self._roots[change.change == REMOVED])
                if top not in replaced:
                    replaced.add(top)
                    operations.append(self._subtree(change.change, top))
            elif change.fields:
                operations += [self._field(change, name) for name in change.fields if _shows(change, name)]
            elif change.old != change.new:
                operations.append({"op": "replace", "path": self._pointer(change.path), "value": change.new})
        return operations

    def _top(self, path: Segments, without: Directory) -> Segments:
        """Return the shortest prefix of a path that does not exist in the tree ``without``."""
        for depth in range(len(self._place), len(path)):
            if node_at(without, path[:depth]) is None:
                return path[:depth]
        return path

    def _subtree(self, change: str, path: Segments) -> JsonObject:
        """Return the operation that adds or removes the subtree at a path."""
        pointer = self._pointer(path)
        if change == REMOVED:
            return {"op": "remove", "path": pointer} if pointer else {"op": "add", "path": "", "value": None}
        node = node_at(self._roots[1], path)
        return {"op": "add", "path": pointer, "value": None if node is None else nested(node)}

    def _field(self, change: Change, name: str) -> JsonObject:
        pointer = self._pointer((*change.path, name))
        if name not in change.new:
            return {"op": "remove", "path": pointer}
        return {"op": "replace" if name in change.old else "add", "path": pointer, "value": change.new[name]}

    def _pointer(self, path: Segments) -> str:
        below = path[len(self._place) :]
        return "".join(f"/{segment.replace('~', '~0').replace('/', '~1')}" for segment in below)


def _shows(change: Change, name: str) -> bool:
    """Whether the shown values of a field differ; those of a changed secret do not."""
    return name not in change.old or name not in change.new or change.old[name] != change.new[name]


def _root(session: Session) -> Directory:
    return StaticDirectory({"image": lambda: image_directory(session.image, session.redaction)})


def _leaves(path: Segments, node: Node | None) -> Iterator[tuple[Segments, Leaf]]:
    if node is not None:
        yield from ((at, leaf) for at, leaf in walk(path, node, values=True) if isinstance(leaf, Leaf))


def counts(changes: Iterator[Change]) -> list[Row]:
    """Return one row per leaf type: how many were added, removed and changed. New ids of topics are not counted."""
    table: dict[str, dict[str, int]] = {}
    for change in changes:
        if change.type == "topicId" and change.change != CHANGED:
            continue
        row = table.setdefault(change.type, {ADDED: 0, REMOVED: 0, CHANGED: 0})
        row[change.change] += 1
    return [{"type": leaf_type} | row for leaf_type, row in sorted(table.items())]


def repeats_by_name(path: Segments, place: Segments) -> bool:
    """Whether a path below ``byId`` repeats one below ``byName``: true unless ``place`` itself is below ``byId``."""
    return path[: len(TOPICS_BY_ID)] == TOPICS_BY_ID and place[: len(TOPICS_BY_ID)] != TOPICS_BY_ID
