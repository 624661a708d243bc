"""``/image``: the directory of an image, with every family at the path that its declaration names.

Topics are there by name and by id; their partitions are decoded one by one. If a source cannot report a subtree
(brokers report no producer ids), a leaf with a sentence takes its place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from typing import Any

from kshell.json_text import JsonObject
from kshell.metadata.families.producer_ids import NEXT
from kshell.metadata.families.topics import NAMES, TOPICS
from kshell.metadata.image import Family, Image, Keys, Table, families
from kshell.metadata.metadata_version import FEATURE, version_name
from kshell.metadata.names import decode_name, encode_name, sort_key
from kshell.metadata.partial import MISSING
from kshell.metadata.partitions import EPOCHS_FROM, Partition, Topic
from kshell.metadata.records import Undecoded
from kshell.metadata.redaction import Redaction
from kshell.metadata.values import Entry, Origin, plain
from kshell.protocol.primitives import Uuid
from kshell.tree.node import Directory, IndexedDirectory, Leaf, Node, Plain, StaticDirectory, leaf
from kshell.tree.paths import Segments

UNAVAILABLE = "unavailable"
"""The type of a leaf that says why there is no value."""
_Makers = Mapping[Segments, Callable[[], Node]]


class PartialDirectory(Directory):
    """The directory ``below``, in which the nodes of ``placed`` (path -> maker) replace others or are added."""

    def __init__(self, below: Directory, placed: _Makers) -> None:
        self._below = below
        self._placed = placed

    def segments(self) -> list[str]:
        added = {path[0] for path in self._placed if len(path) == 1}
        return sorted({*self._below.segments(), *added}, key=sort_key)

    def child(self, segment: str) -> Node | None:
        make = self._placed.get((segment,))
        if make is not None:
            return make()
        node = self._below.child(segment)
        deeper = {path[1:]: make for path, make in self._placed.items() if path[0] == segment}
        return PartialDirectory(node, deeper) if deeper and isinstance(node, Directory) else node


def partial_directory(directory: Directory, image: Image, redaction: Redaction) -> Directory:
    """The directory with the sentences of the table ``missing``; ACLs whose ids are not known are in ``byEntry``."""
    placed: dict[Segments, Callable[[], Node]] = {
        path: leaf(UNAVAILABLE, sentence) for path, sentence in image[MISSING].items()
    }
    entries = {key: entry for key, entry in image["acls"].items() if not isinstance(key, Uuid)}
    if entries:
        family = families()["acls"]
        placed[(*family.path[:-1], "byEntry")] = lambda: FamilyDirectory(entries, family, redaction, ())
    return PartialDirectory(directory, placed)


_NAME, _ID = "name", "id"
_NUMBER = re.compile(r"-?[0-9]{1,10}")


class TopicDirectory(Directory):
    """One topic: its name, its id, and its partitions by number."""

    def __init__(self, topic: Topic, redaction: Redaction) -> None:
        self._topic = topic
        self._redaction = redaction

    def segments(self) -> list[str]:
        return [*map(str, self._topic.partition_ids()), _ID, _NAME]

    def origin(self) -> Origin | None:
        return self._topic.origin

    def child(self, segment: str) -> Node | None:
        topic = self._topic
        if segment == _NAME:
            return Leaf("topicName", lambda: topic.name, lambda: topic.origin)
        if segment == _ID:
            return Leaf("topicId", lambda: str(topic.id), lambda: topic.origin)
        number = int(segment) if _NUMBER.fullmatch(segment) else None
        if number is None or str(number) != segment or number not in topic:
            return None
        # A partition is decoded when its value or origin is asked for: listing a topic decodes none.
        return Leaf("partition", lambda: self._plain(topic.value(number)), partial(self._origin_of, number))

    def children(self, *, values: bool) -> Iterator[tuple[str, Node]]:
        """Yield (name, node) of every child; with ``values``, all partitions are decoded at once."""
        if not values:
            yield from super().children(values=False)
            return
        for number, value in self._topic.scan():
            yield str(number), Leaf("partition", partial(self._plain, value), partial(self._origin_of, number))
        yield from ((segment, node) for segment in (_ID, _NAME) if (node := self.child(segment)) is not None)

    def stored(self, segment: str) -> Partition | Undecoded | None:
        """A partition's value before it is made plain, so that equal partitions can share the work."""
        return self._topic.value(int(segment)) if segment not in (_ID, _NAME) else None

    def _origin_of(self, number: int) -> Origin:
        entry = self._topic.partition(number)
        if entry is None:
            raise AssertionError("an image's topic keeps its partitions")
        return entry.origin

    def _plain(self, partition: Partition | Undecoded | None) -> Plain:
        if isinstance(partition, Undecoded):
            return self._redaction.undecoded(partition.raw, partition.reason)
        return None if partition is None else _plain_partition(partition)


def _plain_partition(partition: Partition) -> JsonObject:
    """As :func:`plain`, in a quarter of the time for partitions that differ in nothing but their epochs."""
    shared = _without_epochs(partition[:EPOCHS_FROM])
    row = {name: part[:] if type(part) is list else part for name, part in shared.items()}  # callers may change it
    row["leaderEpoch"], row["partitionEpoch"] = partition[EPOCHS_FROM:]
    return row


@lru_cache(maxsize=1 << 14)
def _without_epochs(fields: tuple[Any, ...]) -> JsonObject:
    """Return the JSON form of a partition, in which the epochs, its last fields, are zero."""
    row: JsonObject = plain(Partition._make((*fields, 0, 0)))
    return row


class ByName(Directory):
    """Topics under their names."""

    def __init__(self, image: Image, redaction: Redaction) -> None:
        self._image = image
        self._redaction = redaction

    def segments(self) -> list[str]:
        return sorted(map(encode_name, self._image[NAMES]), key=sort_key)

    def child(self, segment: str) -> Node | None:
        name = decode_name(segment)
        topic_id = self._image[NAMES].get(name) if encode_name(name) == segment else None
        return None if topic_id is None else TopicDirectory(self._image[TOPICS][topic_id], self._redaction)


class ById(Directory):
    """Topics under their ids."""

    def __init__(self, image: Image, redaction: Redaction) -> None:
        self._image = image
        self._redaction = redaction

    def segments(self) -> list[str]:
        return sorted(map(str, self._image[TOPICS]), key=sort_key)

    def child(self, segment: str) -> Node | None:
        try:
            topic = self._image[TOPICS].get(Uuid.parse(segment))
        except ValueError:
            return None
        return None if topic is None or str(topic.id) != segment else TopicDirectory(topic, self._redaction)


def topics(image: Image, redaction: Redaction) -> StaticDirectory:
    """The directory ``/image/topics``."""
    views: dict[str, Callable[[], Node]] = {
        "byName": lambda: ByName(image, redaction),
        "byId": lambda: ById(image, redaction),
    }
    return StaticDirectory(views)


Makers = dict[str, Callable[[], Node]]


def image_directory(image: Image, redaction: Redaction) -> Directory:
    """``/image`` as the Java shell lays it out; a sentence replaces a subtree that the source cannot know."""
    root: dict[str, Any] = {
        "provenance": lambda: Leaf("provenance", lambda: provenance(image)),
        "topics": lambda: topics(image, redaction),
    }
    for family in families().values():
        _place(root, family.path, _maker(image, family, redaction))
    directory = StaticDirectory(_makers(root))
    if not image[MISSING]:
        return directory

    return partial_directory(directory, image, redaction)


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
    """The directory of a family's table, or, with ``keys``, of the table below these keys."""

    def __init__(self, table: Table, family: Family, redaction: Redaction, keys: Keys) -> None:
        self._table = table
        self._family = family
        self._redaction = redaction
        self._above = keys
        constant = {} if keys else {name: name for name in family.constant}
        super().__init__(lambda: [*table, *(name for name in constant if name not in table)], self._name, self._node)

    def _name(self, key: object) -> str:
        return self._family.levels[len(self._above)](key)

    def _node(self, key: object) -> Node | None:
        keys = (*self._above, key)
        if len(keys) < len(self._family.levels):
            return FamilyDirectory(self._table.get(key, {}), self._family, self._redaction, keys)
        entry: Entry[Any] = self._table[key]
        return Leaf(self._family.leaf, lambda: self._redacted(keys, entry), lambda: entry.origin)

    def _redacted(self, keys: Keys, entry: Entry[Any]) -> Plain:
        family = self._family
        if family.config_key is not None:
            return self._redaction.config(*family.config_key(keys), entry.value)
        return self._redaction.fields(family.plain(entry.value), family.secret)


def _features(image: Image, redaction: Redaction) -> Directory:
    """The directory of features: metadata.version is always there, as a version's name; others have their level."""
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
    """The directory of the next producer id, which is -1 while none was allocated, as in Kafka."""
    entry = image["producerIds"].get(NEXT)
    kind = families()["producerIds"].leaf
    empty: Makers = {NEXT: lambda: Leaf(kind, lambda: -1)}
    return StaticDirectory({NEXT: _entry_leaf(kind, entry)} if entry else empty)


def provenance(image: Image) -> dict[str, Plain]:
    """The offset, epoch and time of the last record in the image; time in ISO-8601, UTC, and in epoch milliseconds."""
    last = image.provenance
    return {"offset": last.offset, "epoch": last.epoch, "time": iso(last.timestamp), "timeMs": epoch_ms(last.timestamp)}


def epoch_ms(timestamp: int) -> int | None:
    """Epoch milliseconds as they are; ``None`` for Kafka's -1 ("no timestamp")."""
    return None if timestamp < 0 else timestamp


def iso(timestamp: int) -> str | None:
    """Epoch milliseconds as ISO-8601 in UTC; ``None`` for Kafka's -1 ("no timestamp") and for times out of range."""
    second = None if timestamp < 0 else _second(timestamp // 1000)
    return None if second is None else f"{second}.{timestamp % 1000:03d}Z"


@lru_cache(maxsize=1024)  # records are milliseconds apart: few of their times need more than the fraction
def _second(second: int) -> str | None:
    import datetime  # imported late: most commands show no time

    try:
        return f"{datetime.datetime.fromtimestamp(second, datetime.UTC):%Y-%m-%dT%H:%M:%S}"
    except (OverflowError, ValueError, OSError):
        return None


def format_duration(milliseconds: float) -> str:
    """Write a duration for users: ``200 ms``, ``1.9 s``, ``5 min``, ``2.5 h``, ``3 days``."""
    for unit, name in ((86_400_000, "days"), (3_600_000, "h"), (60_000, "min"), (1000, "s")):
        if milliseconds >= unit:
            count = f"{milliseconds / unit:,.1f}".removesuffix(".0")
            return "1 day" if (count, name) == ("1", "days") else f"{count} {name}"
    return f"{milliseconds:.0f} ms"
