"""Topics that come and go, without decoding their records: jobs make and remove them by the thousand."""

from __future__ import annotations

from functools import cache

from kshell.metadata.delta import Delta
from kshell.metadata.families.configs import CONFIGS, TOPIC_CONFIG
from kshell.metadata.families.topics import REMOVE_TOPIC, TOPIC, TOPICS, create, remove
from kshell.metadata.latest_records import LatestRecords, RecordFiler
from kshell.metadata.partition_changes import PartitionChanges
from kshell.metadata.partitions import Topic
from kshell.metadata.record_log import RecordLog
from kshell.metadata.recorded_topics import Addresses, RecordedTopic, TopicRecords
from kshell.protocol.key_reader import KeyReader, key_reader
from kshell.protocol.primitives import Buffer, Uuid, write_uvarint

Filed = dict[bytes, Addresses]
"""A short way to the addresses of a topic's partitions, by the topic's id."""


def topic_filers(
    log: RecordLog, changes: PartitionChanges, filed: Filed, latest: LatestRecords
) -> dict[bytes, RecordFiler]:
    """The first bytes of a value -> what makes or removes topics of records that begin so."""
    made, removed = _key_readers()
    filers: dict[bytes, RecordFiler] = {}
    filers |= {head: _TopicFiler(read, log, changes, filed) for head, read in made.items()}
    filers |= {head: _RemovalFiler(read, filed, latest) for head, read in removed.items()}
    return filers


def remove_topic(topic_id: Uuid, delta: Delta, filed: Filed, latest: LatestRecords) -> None:
    """A topic goes, and what waits of its configs. Raises ReplayError for one that is not there."""
    topic: Topic | None = delta.peek(TOPICS).get(topic_id)
    if topic is not None:
        filed.pop(topic_id, None)
        name = topic.name.encode("utf-8", "surrogateescape")
        latest.forget(CONFIGS.name, bytes((TOPIC_CONFIG,)) + write_uvarint(len(name) + 1) + name)
    remove(delta, topic_id)


class _TopicFiler:
    """Makes topics."""

    def __init__(self, read: KeyReader, log: RecordLog, changes: PartitionChanges, filed: Filed) -> None:
        self._read = read
        self._log = log
        self._changes = changes
        self._filed = filed

    def file(self, region: Buffer, start: int, end: int, address: int, delta: Delta) -> bool:
        """Whether it is a topic that is not there yet."""
        found = self._read(region, start, end)
        if found is None:
            return False
        name, topic_id = found[0][1:].decode("utf-8", "surrogateescape"), Uuid(found[1])
        if topic_id in delta.peek(TOPICS):
            return False
        origin, records = self._log.origin(address), TopicRecords(self._log, self._changes, None)
        create(delta, name, topic_id, origin)
        delta.table(TOPICS)[topic_id] = RecordedTopic(name, topic_id, origin, records)
        self._filed[topic_id] = records.addresses
        return True


class _RemovalFiler:
    """Removes topics."""

    def __init__(self, read: KeyReader, filed: Filed, latest: LatestRecords) -> None:
        self._read = read
        self._filed = filed
        self._latest = latest

    def file(self, region: Buffer, start: int, end: int, address: int, delta: Delta) -> bool:
        """Whether the topic is there."""
        found = self._read(region, start, end)
        topic_id = None if found is None else Uuid(found[1])
        if topic_id is None or topic_id not in delta.peek(TOPICS):
            return False
        remove_topic(topic_id, delta, self._filed, self._latest)
        return True


@cache
def _key_readers() -> tuple[dict[bytes, KeyReader], dict[bytes, KeyReader]]:
    """What reads the records that make topics, their name first, and those that remove them, by their heads."""
    made = {
        head: key_reader(TOPIC.schema, version, ("name", "topicId"), False, first_part=1)
        for version, head in TOPIC.heads()
    }
    removed = {
        head: key_reader(REMOVE_TOPIC.schema, version, ("topicId",), True) for version, head in REMOVE_TOPIC.heads()
    }
    return made, removed
