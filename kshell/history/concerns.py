"""Which records can touch a place of the tree, told by their first bytes: most need not even be decoded."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from kshell.metadata.families.topics import TOPICS
from kshell.metadata.image import families
from kshell.metadata.names import decode_name
from kshell.metadata.partition_changes import PARTITION, PARTITION_CHANGE, TOPIC_ID
from kshell.metadata.records import HEAD_SIZE
from kshell.metadata.tracking import Tracker
from kshell.protocol.batches import RawRecord
from kshell.protocol.primitives import Buffer, Uuid
from kshell.tree.paths import Segments
from kshell.tree.touched import is_under

TOPIC = 2
ONE_FAMILY = {
    PARTITION: TOPICS,
    4: "configs",
    PARTITION_CHANGE: TOPICS,
    11: "scram",
    14: "clientQuotas",
    15: "producerIds",
    17: "brokers",
    18: "acls",
    19: "acls",
    20: None,
    22: "scram",
}
"""Api keys of the types that a log can be full of -> the one family that they read and write; none for NoOps."""
_TOPICS: Segments = ("image", "topics")


class Concern:
    """Whether a record must be looked at to know what touches a place. Never says no without cause.

    Must be asked about each record before the ``tracker`` that the answers are for is given it.
    """

    def __init__(self, place: Segments) -> None:
        self._needless = {key for key, family in ONE_FAMILY.items() if not _is_near(family, place)}
        self._name: str | None = None
        self._id: bytes | None = None
        self.tracker: Tracker | None = None
        if place[:2] == _TOPICS and len(place) > 3:
            self._watch(place[2], place[3])

    def _watch(self, view: str, segment: str) -> None:
        """One topic alone, by id or by name."""
        if view == "byName":
            self._name = decode_name(segment)
        else:
            try:
                self._id = bytes(Uuid.parse(segment))
            except ValueError:
                self._id = b""  # no topic has it

    def __call__(self, raw: RawRecord, control: bool) -> bool:
        value = raw.value or b""
        if control or len(value) < HEAD_SIZE or value[0] != 1 or value[2] > 0x7F:
            return True
        if value[1] in self._needless:
            return False
        if value[1] not in (PARTITION, PARTITION_CHANGE):
            return True
        topic_id = value[TOPIC_ID]
        if self._id is not None:
            return topic_id == self._id
        return self._name is None or self.tracker is None or self.tracker.topic_name(topic_id) == self._name

    def select(self, region: Buffer, values: array[int]) -> Iterator[int]:
        """The records of a batch that must be looked at, found without making them.

        Args:
            region: the records, back to back.
            values: the first byte and the end of each value, in turn.

        Returns:
            The indexes of the values' first bytes.
        """
        needless, wanted_id, name, tracker = self._needless, self._id, self._name, self.tracker
        name_of = None if tracker is None else tracker.topic_name
        bounds = iter(values)
        for index, (at, end) in enumerate(zip(bounds, bounds, strict=True)):
            if end - at >= HEAD_SIZE and region[at] == 1 and region[at + 2] <= 0x7F:
                kind = region[at + 1]
                if kind in needless:
                    continue
                if kind in (PARTITION, PARTITION_CHANGE):
                    topic_id = region[at + TOPIC_ID.start : at + TOPIC_ID.stop]
                    if wanted_id is not None:
                        if topic_id != wanted_id:
                            continue
                    elif name is not None and name_of is not None and name_of(topic_id) not in (name, None):
                        continue
                elif kind == TOPIC:
                    name_of = None  # what follows may be of the topic that is made here
            yield 2 * index


def _is_near(family: str | None, place: Segments) -> bool:
    if family is None:
        return False
    return is_under(_TOPICS if family == TOPICS else ("image", *families()[family].path), place)
