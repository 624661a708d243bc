"""``/image/topics``: the same topics by name and by id; partitions are decoded one by one."""

from __future__ import annotations

import re
from collections.abc import Callable

from kshell.metadata.families.topics import NAMES, TOPICS
from kshell.metadata.image import Image
from kshell.metadata.names import decode_name, encode_name, sort_key
from kshell.metadata.partitions import Partition, Topic
from kshell.metadata.records import Undecoded
from kshell.metadata.redaction import Redaction
from kshell.metadata.values import Entry, Origin, plain
from kshell.protocol.primitives import Uuid
from kshell.tree.node import Directory, Leaf, Node, Plain, StaticDirectory

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
        return Leaf("partition", lambda: self._value(number), lambda: self._entry(number).origin)

    def _entry(self, number: int) -> Entry[Partition] | Entry[Undecoded]:
        entry = self._topic.partition(number)
        if entry is None:
            raise AssertionError("an image's topic keeps its partitions")
        return entry

    def _value(self, number: int) -> Plain:
        held = self._topic.value(number)
        return self._redaction.undecoded(held.raw, held.reason) if isinstance(held, Undecoded) else plain(held)


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
    """``/image/topics``."""
    views: dict[str, Callable[[], Node]] = {
        "byName": lambda: ByName(image, redaction),
        "byId": lambda: ById(image, redaction),
    }
    return StaticDirectory(views)
