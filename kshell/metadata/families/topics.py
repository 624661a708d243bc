"""Topics and partitions: their records, and how they change the table of topics (``TopicsDelta``, ``TopicDelta``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshell.metadata.delta import Delta
from kshell.metadata.partitions import Partition, Topic, from_record, merge
from kshell.metadata.records import ReplayError, record
from kshell.metadata.values import Entry, Origin
from kshell.protocol.primitives import Uuid

if TYPE_CHECKING:
    from kshell.protocol.decoder import Message

TOPICS = "topics"
"""Name of the table: topic id -> Topic. Its place in the tree is special; see :mod:`kshell.tree.image`."""
NAMES = "topicNames"
"""Name of the table: topic name -> topic id."""


def existing(delta: Delta, topic_id: Uuid) -> Topic:
    """Return a topic, for reading only. Raises ReplayError if it does not exist."""
    topic: Topic | None = delta.peek(TOPICS).get(topic_id)
    if topic is None:
        raise ReplayError(f"there is no topic with id {topic_id}")
    return topic


def writable(delta: Delta, topic_id: Uuid) -> Topic:
    """Return a topic that may be changed: the delta's own copy. Raises ReplayError if it does not exist."""
    topic = existing(delta, topic_id)
    if not delta.owns(TOPICS, topic_id):
        topic = delta.table(TOPICS)[topic_id] = topic.copy()
    return topic


def create(delta: Delta, name: str, topic_id: Uuid, origin: Origin) -> Topic:
    """Create a topic without partitions, and return it. Raises ReplayError if a topic of another name has the id.

    In that case Kafka's own image would keep both names, and the topic of the old name could not be removed any more.
    """
    present: Topic | None = delta.peek(TOPICS).get(topic_id)
    if present is not None and present.name != name:
        raise ReplayError(f"the topic id {topic_id} is that of topic {present.name}")
    topics = delta.table(TOPICS)
    delta.touch(TOPICS, topic_id, name)
    delta.owns(TOPICS, topic_id)
    topic = topics[topic_id] = Topic(name, topic_id, origin)
    delta.table(NAMES)[name] = topic_id
    return topic


@record(
    2,
    "TopicRecord",
    "0",
    """
  name     string
  topicId  uuid
""",
)
def topic(delta: Delta, data: Message, origin: Origin) -> None:
    """Create a topic. For topics of a snapshot, the replay mostly calls :func:`create` without decoding the record."""
    create(delta, data["name"], data["topicId"], origin)


TOPIC = topic


@record(
    3,
    "PartitionRecord",
    "0-2",
    """
  partitionId             int32                  = -1
  topicId                 uuid
  replicas                []int32
  isr                     []int32
  removingReplicas        []int32
  addingReplicas          []int32
  leader                  int32                  = -1
  leaderRecoveryState     int8            tag 0  = 0
  leaderEpoch             int32                  = -1
  partitionEpoch          int32                  = -1
  directories             []uuid     1+
  eligibleLeaderReplicas  []int32?   2+   tag 1  = null
  lastKnownElr            []int32?   2+   tag 2  = null
""",
)
def partition(delta: Delta, data: Message, origin: Origin) -> None:
    """Set all fields of a partition, which may be new."""
    value = from_record(data)
    _put(delta, writable(delta, data["topicId"]), data["partitionId"], Entry(value, origin))


@record(
    5,
    "PartitionChangeRecord",
    "0-2",
    """
  partitionId             int32                  = -1
  topicId                 uuid
  isr                     []int32?        tag 0  = null
  leader                  int32           tag 1  = -2
  replicas                []int32?        tag 2  = null
  removingReplicas        []int32?        tag 3  = null
  addingReplicas          []int32?        tag 4  = null
  leaderRecoveryState     int8            tag 5  = -1
  directories             []uuid?    1+   tag 8  = null
  eligibleLeaderReplicas  []int32?   2+   tag 6  = null
  lastKnownElr            []int32?   2+   tag 7  = null
""",
)
def partition_change(delta: Delta, data: Message, origin: Origin) -> None:
    """Change the fields of a partition that the record has. Raises ReplayError if the partition does not exist."""
    owner = writable(delta, data["topicId"])
    entry = owner.partition(data["partitionId"])
    if entry is None or not isinstance(entry.value, Partition):
        raise ReplayError(f"topic {owner.name} has no partition {data['partitionId']}")
    _put(delta, owner, data["partitionId"], Entry(merge(entry.value, data), origin))


def remove(delta: Delta, topic_id: Uuid) -> None:
    """Remove a topic together with its configs. Raises ReplayError if it does not exist."""
    topic = existing(delta, topic_id)
    drop(delta, topic)
    delta.drop("configs", ("TOPIC", topic.name))


def drop(delta: Delta, topic: Topic) -> None:
    """Remove a topic without its configs."""
    delta.touch(TOPICS, topic.id, topic.name)
    delta.drop(TOPICS, topic.id)
    if delta.peek(NAMES).get(topic.name) == topic.id:
        delta.drop(NAMES, topic.name)


@record(9, "RemoveTopicRecord", "0", "  topicId  uuid")
def remove_topic(delta: Delta, data: Message, origin: Origin) -> None:
    """Remove a topic together with its configs."""
    remove(delta, data["topicId"])


REMOVE_TOPIC = remove_topic


@record(28, "ClearElrRecord", "0", "  topicName  string")
def clear_elr(delta: Delta, data: Message, origin: Origin) -> None:
    """Empty the ELR of a topic's partitions, or of all topics' if the name is empty; skip partitions without an ELR."""
    for topic_id in topics_to_clear(delta, data):
        for number, entry in delta.peek(TOPICS)[topic_id].partitions():
            value = entry.value
            if isinstance(value, Partition) and (value.elr or value.last_known_elr):
                cleared = merge(value, {"eligibleLeaderReplicas": [], "lastKnownElr": []})
                _put(delta, writable(delta, topic_id), number, Entry(cleared, origin))


def topics_to_clear(delta: Delta, data: Message) -> list[Uuid]:
    """Return the ids of the topics that a ClearElrRecord means. Raises ReplayError if there is none of its name."""
    names, name = delta.peek(NAMES), data["topicName"]
    if name and name not in names:
        raise ReplayError(f"there is no topic named {name!r}")
    return [names[name]] if name else list(delta.peek(TOPICS))


def _put(delta: Delta, owner: Topic, number: int, entry: Entry[Partition]) -> None:
    delta.touch(TOPICS, owner.id, owner.name, number)
    owner.put(number, entry)
