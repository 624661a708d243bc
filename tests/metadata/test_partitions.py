"""Topics whose partitions wait as bytes."""

from __future__ import annotations

from typing import Any

from kshell.metadata.partitions import Partition, Topic
from kshell.metadata.records import Undecoded
from kshell.metadata.replay import Replayer
from tests.builders import batches, replayed, snapshot, uuid, value

ID = uuid(1)
TOPIC = value("TOPIC", name="t", topicId=ID)


def partition(number: int, **data: Any) -> bytes:
    return value("PARTITION", partitionId=number, topicId=ID, **({"replicas": [1], "isr": [1]} | data))


def topic_of(*values: bytes) -> tuple[Topic, Replayer]:
    replayer = Replayer()
    for found in batches(snapshot(values)):
        replayer.snapshot_batch(found, "s.checkpoint")
    topic = replayer.image()["topics"][ID]
    assert isinstance(topic, Topic)
    return topic, replayer


def test_partitions_come_in_the_order_of_their_numbers() -> None:
    topic, _ = topic_of(TOPIC, partition(200), partition(3), partition(70_000), partition(0))
    assert topic.partition_ids() == [0, 3, 200, 70_000]
    assert len(topic) == 4
    assert [number for number, _ in topic.partitions()] == [0, 3, 200, 70_000]
    assert topic.partition(4) is None


def test_the_later_of_two_records_of_one_partition_counts() -> None:
    topic, _ = topic_of(TOPIC, partition(0, leader=1), partition(0, leader=2))
    entry = topic.partition(0)
    assert entry is not None
    assert isinstance(entry.value, Partition)
    assert entry.value.leader == 2
    assert (entry.origin.offset, entry.origin.record_type) == (3, "PARTITION_RECORD")


def test_a_record_that_breaks_its_declaration_stays_bytes() -> None:
    whole = partition(1)
    topic, _ = topic_of(TOPIC, partition(0), whole[:-1], partition(2, leaderRecoveryState=9))
    for number in (1, 2):
        entry = topic.partition(number)
        assert entry is not None
        assert isinstance(entry.value, Undecoded)
        assert entry.value.malformed
        assert entry.value.reason
    assert isinstance(dict(topic.partitions())[0].value, Partition)


def test_a_copy_and_its_source_do_not_share_changes() -> None:
    topic, replayer = topic_of(TOPIC, partition(0))
    twin = topic.copy()
    entry = topic.partition(0)
    assert entry is not None
    assert isinstance(entry.value, Partition)
    twin.put(5, type(entry)(entry.value, entry.origin))
    assert topic.partition_ids() == [0]
    assert twin.partition_ids() == [0, 5]
    assert topic != twin
    assert replayer.problems == []


def test_topics_are_equal_by_content_however_they_are_kept() -> None:
    waiting, _ = topic_of(TOPIC, partition(0), partition(1))
    image, _ = replayed(TOPIC, partition(0), partition(1))
    assert waiting == image["topics"][ID]
    other, _ = replayed(TOPIC, partition(0), partition(1, leader=7))
    assert waiting != other["topics"][ID]
    assert waiting != "t"
