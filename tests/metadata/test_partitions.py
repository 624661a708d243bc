"""Topics whose partitions wait as bytes."""

from __future__ import annotations

from typing import Any

import pytest

from kshell.metadata.partitions import Partition, Topic
from kshell.metadata.records import Undecoded
from kshell.metadata.replay import Replayer
from kshell.protocol.batches import write_batch
from kshell.protocol.framing import Framer
from kshell.protocol.primitives import write_varint
from tests.builders import TIME, batches, parsed, replayed, snapshot, uuid, value

ID = uuid(1)
TOPIC = value("TOPIC", name="t", topicId=ID)


def partition(number: int, **data: Any) -> bytes:
    return value("PARTITION", partitionId=number, topicId=ID, **({"replicas": [1], "isr": [1]} | data))


def framed(one: bytes, delta: int) -> bytes:
    """A record with an offset delta of its own."""
    record = b"\x00\x00" + write_varint(delta) + b"\x01" + write_varint(len(one)) + one + b"\x00"
    return write_varint(len(record)) + record


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


def test_a_partition_that_cannot_be_decoded_is_listed_once_when_it_is_looked_at() -> None:
    topic, replayer = topic_of(TOPIC, partition(0), partition(1)[:-1], partition(2, leaderRecoveryState=9))
    assert topic.partition_ids() == [0, 1, 2]
    assert replayer.problems == []
    for _ in range(2):
        assert len(list(topic.copy().partitions())) == 3
        assert [(problem.origin.offset, problem.unknown) for problem in replayer.problems] == [(3, False), (4, False)]
    broken, refused = replayer.problems
    assert broken.undecoded is not None
    assert refused.undecoded is None  # as in a log: decoded, and refused
    assert refused.reason == "leader recovery state 9 is not known"


@pytest.mark.parametrize("patience", [1, 32, None])
def test_offsets_that_jump_inside_a_run_are_listed_when_the_topic_is_opened(patience: int | None) -> None:
    records = [TOPIC, *(partition(number) for number in range(60))]
    deltas = [*range(50), 51, *range(51, 61)]
    body = b"".join(framed(one, delta) for one, delta in zip(records, deltas, strict=True))
    raw = write_batch([(None, b"")] * 61, base_offset=1, epoch=1, timestamp=TIME, compressed=body)
    replayer = Replayer(framer=Framer(patience))
    replayer.snapshot_batch(parsed(raw), "s.checkpoint")
    topic = replayer.image()["topics"][ID]
    assert replayer.problems == []
    assert topic.partition_ids() == topic.copy().partition_ids() == list(range(60))
    assert [(problem.origin.offset, problem.reason) for problem in replayer.problems] == [
        (52, "the record claims offset 52, 51 was expected"),
        (52, "the record claims offset 52, 53 was expected"),
    ]


def test_a_scan_of_partitions_that_are_alike_tells_them_apart() -> None:
    """Records that differ only in their number are decoded once; each that is broken stays bytes of its own."""
    alike = [partition(number, leader=2) for number in (3, 0, 7)]
    other, broken = partition(5, leader=1), [partition(number, leaderRecoveryState=9) for number in (1, 2)]
    topic, replayer = topic_of(TOPIC, *alike, other, *broken)
    told = topic.scan()
    assert [number for number, _ in told] == [0, 1, 2, 3, 5, 7]
    assert told == [(number, entry.value) for number, entry in topic.partitions()]
    assert [found.raw for _, found in told if isinstance(found, Undecoded)] == broken
    assert {problem.origin.offset for problem in replayer.problems} == {6, 7}


def test_a_scan_sorts_partitions_that_come_out_of_order() -> None:
    order = [5, 200, 3, 70_000, 0]
    topic, _ = topic_of(TOPIC, *(partition(number, leader=number) for number in order))
    assert [(number, found.leader) for number, found in scanned(topic)] == [
        (number, number) for number in sorted(order)
    ]
    assert topic.numbers() == sorted(order)
    assert topic.count() == 5


def test_a_scan_takes_the_later_of_two_records_of_one_partition() -> None:
    topic, _ = topic_of(TOPIC, partition(0, leader=1), partition(1), partition(0, leader=2))
    assert [(number, found.leader) for number, found in scanned(topic)] == [(0, 2), (1, -1)]
    assert topic.numbers() == [0, 1]


def test_a_scan_decodes_no_record_that_a_change_replaced() -> None:
    topic, replayer = topic_of(TOPIC, partition(0), partition(1)[:-1], partition(2))
    changed = topic.copy()
    entry = topic.partition(0)
    assert entry is not None
    assert isinstance(entry.value, Partition)
    changed.put(1, type(entry)(entry.value._replace(leader=9), entry.origin))
    assert [(number, found.leader) for number, found in scanned(changed)] == [(0, -1), (1, 9), (2, -1)]
    assert replayer.problems == []
    changed.put(5, type(entry)(entry.value, entry.origin))
    assert changed.numbers() == [0, 1, 2, 5]


def test_a_scan_lists_offsets_that_jump_once() -> None:
    records = [TOPIC, *(partition(number) for number in range(60))]
    deltas = [*range(50), 51, *range(51, 61)]
    body = b"".join(framed(one, delta) for one, delta in zip(records, deltas, strict=True))
    raw = write_batch([(None, b"")] * 61, base_offset=1, epoch=1, timestamp=TIME, compressed=body)
    replayer = Replayer()
    replayer.snapshot_batch(parsed(raw), "s.checkpoint")
    topic = replayer.image()["topics"][ID]
    assert topic.count() == len(topic.scan()) == 60
    assert [problem.origin.offset for problem in replayer.problems] == [52, 52]


def scanned(topic: Topic) -> list[tuple[int, Partition]]:
    """What a scan gives of a topic of which every partition can be decoded."""
    return [(number, found) for number, found in topic.scan() if isinstance(found, Partition)]
