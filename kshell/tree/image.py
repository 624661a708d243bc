"""``/image``: every family of the image at the place that its declaration names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kshell.metadata.families.producer_ids import NEXT
from kshell.metadata.image import Family, Image, families
from kshell.metadata.metadata_version import FEATURE, version_name
from kshell.metadata.partial import MISSING
from kshell.metadata.redaction import Redaction
from kshell.metadata.values import Entry
from kshell.tree.node import Directory, IndexedDirectory, Leaf, Node, Plain, StaticDirectory
from kshell.tree.topics import topics

Makers = dict[str, Callable[[], Node]]


def image_directory(image: Image, redaction: Redaction) -> Directory:
    """``/image`` as the Java shell lays it out; sentences stand where the source cannot know a subtree."""
    root: dict[str, Any] = {
        "provenance": lambda: Leaf("provenance", lambda: provenance(image)),
        "topics": lambda: topics(image, redaction),
    }
    for family in families().values():
        _place(root, family.path, _maker(image, family, redaction))
    whole = StaticDirectory(_makers(root))
    if not image[MISSING]:
        return whole
    from kshell.tree.partial import partial_directory  # late: only what brokers tell is partial

    return partial_directory(whole, image, redaction)


def _maker(image: Image, family: Family, redaction: Redaction) -> Callable[[], Node]:
    special = {"features": _features, "producerIds": _producer_ids}.get(family.name)
    if special is not None:
        return lambda: special(image, redaction)
    return lambda: FamilyDirectory(image[family.name], family, redaction, ())


def _place(root: dict[str, Any], path: tuple[str, ...], maker: Callable[[], Node]) -> None:
    for segment in path[:-1]:
        root = root.setdefault(segment, {})
    root[path[-1]] = maker


def _makers(tree: dict[str, Any]) -> Makers:
    def directory(below: dict[str, Any]) -> Callable[[], Node]:
        return lambda: StaticDirectory(_makers(below))

    return {name: directory(below) if isinstance(below, dict) else below for name, below in tree.items()}


class FamilyDirectory(IndexedDirectory):
    """A family's table, or the table below one of its keys."""

    def __init__(self, table: Mapping[Any, Any], family: Family, redaction: Redaction, keys: tuple[Any, ...]) -> None:
        self._table = table
        self._family = family
        self._redaction = redaction
        self._above = keys
        constant = {} if keys else {name: name for name in family.constant}
        super().__init__(lambda: [*table, *(name for name in constant if name not in table)], self._name, self._node)

    def _name(self, key: Any) -> str:
        return self._family.levels[len(self._above)](key)

    def _node(self, key: Any) -> Node | None:
        keys = (*self._above, key)
        if len(keys) < len(self._family.levels):
            return FamilyDirectory(self._table.get(key, {}), self._family, self._redaction, keys)
        entry: Entry[Any] = self._table[key]
        return Leaf(self._family.leaf, lambda: self._shown(keys, entry), lambda: entry.origin)

    def _shown(self, keys: tuple[Any, ...], entry: Entry[Any]) -> Plain:
        family = self._family
        if family.config_key is not None:
            return self._redaction.config(*family.config_key(keys), entry.value)
        return self._redaction.fields(family.plain(entry.value), family.secret)


def _features(image: Image, redaction: Redaction) -> Directory:
    """metadata.version goes by its name and is always there; other features by their level."""
    table: Mapping[str, Entry[int]] = image["features"]
    family = families()["features"]
    version = table.get(FEATURE)
    children: Makers = {
        "metadataVersion": lambda: Leaf(
            "feature",
            lambda: version_name(version.value) if version else None,
            lambda: version.origin if version else None,
        )
    }
    for name, entry in table.items():
        if name != FEATURE:
            children[family.levels[0](name)] = _entry_leaf(family.leaf, entry)
    return StaticDirectory(children)


def _entry_leaf(kind: str, entry: Entry[Any]) -> Callable[[], Node]:
    return lambda: Leaf(kind, lambda: entry.value, lambda: entry.origin)


def _producer_ids(image: Image, redaction: Redaction) -> Directory:
    """-1 while none was handed out, as Kafka has it."""
    entry = image["producerIds"].get(NEXT)
    kind = families()["producerIds"].leaf
    empty: Makers = {NEXT: lambda: Leaf(kind, lambda: -1)}
    return StaticDirectory({NEXT: _entry_leaf(kind, entry)} if entry else empty)


def provenance(image: Image) -> dict[str, Plain]:
    """The last record in the image; the time in ISO-8601, UTC, and in epoch milliseconds."""
    last = image.provenance
    return {"offset": last.offset, "epoch": last.epoch, "time": iso(last.timestamp), "timeMs": last.timestamp}


def iso(timestamp: int) -> str | None:
    """Epoch milliseconds as ISO-8601 in UTC; ``None`` for Kafka's -1 ("no timestamp") and for nonsense."""
    if timestamp < 0:
        return None
    import datetime  # late: most commands show no time

    try:
        moment = datetime.datetime.fromtimestamp(timestamp // 1000, datetime.UTC)
    except (OverflowError, ValueError, OSError):
        return None
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{timestamp % 1000:03d}Z"
