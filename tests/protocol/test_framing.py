"""Framing with patterns gives what framing by hand gives, whatever the records look like."""

from __future__ import annotations

import struct
import time
from collections.abc import Sequence
from typing import Any

import pytest
from crc32c import crc32c
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from kshell.protocol import framing
from kshell.protocol.batches import HEADER_SIZE, Batch, iter_records, pack
from kshell.protocol.framing import Framer, KeyedRecord, PartitionRun, RecordBounds, TopicRun, iter_values, span
from kshell.protocol.primitives import DecodeError, Uuid, write_varint
from tests.builders import TIME, batch, parsed, uuid, value

Found = list[tuple[int, bytes]]


def partition(number: int, topic: Uuid, version: int = 0, *, replicas: int = 3, isr: int = 3, elr: int = 0) -> bytes:
    """A PartitionRecord's value; its shape follows from the sizes."""
    data: dict[str, object] = {"replicas": list(range(replicas)), "isr": list(range(isr))}
    if version >= 1:
        data["directories"] = [uuid(index + 1) for index in range(replicas)]
    if version >= 2 and elr:
        data["eligibleLeaderReplicas"] = list(range(elr))
    return value("PARTITION", version, partitionId=number, topicId=topic, **data)


def framed(framer: Framer, found: Batch) -> Found:
    """(delta, value) of every record, runs taken apart; checks what a run claims on the way."""
    buf, start, end = found.region()
    out: Found = []
    at = start
    for part in framer.frame(buf, start, end):
        assert not isinstance(part, KeyedRecord)
        if isinstance(part, TopicRun):
            topic = span(buf, at, end)
            assert topic.end == part.start
            name = part.name.decode("utf-8", "surrogateescape")
            assert buf[topic.value : topic.value_end] == value("TOPIC", name=name, topicId=Uuid(part.topic_id))
            assert topic.delta == part.delta
            out.append((topic.delta, bytes(buf[topic.value : topic.value_end])))
        else:
            assert part.start == at
        if not isinstance(part, RecordBounds):
            inside = list(iter_values(buf, part.start, part.end))
            assert inside or isinstance(part, TopicRun)
            assert all(one[7:23] == part.topic_id for _, one in inside)
            out += inside
        else:
            out.append((part.delta, bytes(buf[part.value : part.value_end])))
        at = part.end
    assert at == end
    return out


def expected(found: Batch) -> Found:
    return [(record.offset - found.base_offset, record.value or b"") for record in iter_records(found)]


TOPICS = st.sampled_from(
    [uuid(1), uuid(2), Uuid(b"\x00" * 16), Uuid(b"\x01\x03\x02" * 5 + b"\x80"), Uuid(b"\xff" * 16)]
)
PARTITIONS: SearchStrategy[bytes] = st.builds(
    partition,
    st.integers(-1, 2**31 - 1),
    TOPICS,
    st.integers(0, 2),
    replicas=st.integers(0, 40),
    isr=st.integers(0, 4),
    elr=st.integers(0, 2),
)
# Values that begin like partitions, or hold whole framed records.
ODD: SearchStrategy[bytes] = st.one_of(
    st.binary(max_size=40),
    st.binary(max_size=200).map(lambda rest: b"\x01\x03\x00" + rest),
    st.binary(max_size=200).map(lambda rest: b"\x01\x03\x03" + rest),
    st.sampled_from(
        [b"", b"\x01", b"\x01\x03", b"\x01\x03\x02", b"\x01\x03\x02" + bytes(19), b"\x01\x03\x02" + bytes(20)]
    ),
    st.lists(PARTITIONS, min_size=1, max_size=3).map(lambda inner: pack([(None, one) for one in inner])),
    st.builds(lambda name, topic: value("TOPIC", name=name, topicId=topic), st.text(max_size=300), TOPICS),
)


@settings(max_examples=200)
@given(st.lists(st.lists(PARTITIONS | ODD, min_size=1, max_size=40), min_size=1, max_size=3))
def test_patterns_find_what_walking_by_hand_finds(groups: list[list[bytes]]) -> None:
    framer = Framer(1)
    for group in groups:
        found = parsed(batch(group))
        assert framed(framer, found) == expected(found)


NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=130)


@settings(max_examples=150)
@example([("a" * 126, 3, 0)], 0)
@example([("a" * 127, 3, 0)], 0)
@given(st.lists(st.tuples(NAMES, st.integers(0, 5), st.integers(0, 1)), min_size=1, max_size=30), st.integers(0, 3))
def test_topics_with_their_partitions(topics: list[tuple[str, int, int]], strays: int) -> None:
    values = [partition(number, uuid(1)) for number in range(3)]  # something to compile the patterns for
    for index, (name, partitions, odd) in enumerate(topics):
        values.append(value("TOPIC", name=name, topicId=uuid(index + 2)))
        values += [b"\x01\x04\x00 odd"] * odd
        values += [partition(number, uuid(index + 2)) for number in range(partitions)]
        values += [partition(number, uuid(99)) for number in range(strays)]
    found = parsed(batch(values * 3))
    kinds = {type(part) for part in Framer(1).frame(*found.region())}
    # Longer names are framed by hand: their length has two bytes.
    assert (TopicRun in kinds) == any(len(name.encode()) <= 126 for name, _, _ in topics)
    assert framed(Framer(1), found) == expected(found)


@settings(max_examples=40)
@given(
    st.integers(1, 400),
    st.integers(1, 3),
    st.lists(st.tuples(st.integers(1, 5), st.integers(0, 3)), min_size=1, max_size=6),
)
def test_long_runs_over_the_edges_of_offset_deltas(count: int, topics: int, shapes: list[tuple[int, int]]) -> None:
    values = []
    for topic in range(topics):
        for number in range(count):
            replicas, elr = shapes[number % len(shapes)]
            values.append(partition(number, uuid(topic + 1), 2, replicas=replicas, isr=1, elr=elr))
    found = parsed(batch(values))
    assert framed(Framer(1), found) == expected(found)


def runs(values: Sequence[bytes], framer: Framer | None = None) -> list[int]:
    """How many records each run holds; 0 stands for a record that is no partition."""
    buf, start, end = parsed(batch(values)).region()
    parts = (framer or Framer(1)).frame(buf, start, end)
    return [len(list(iter_values(buf, p.start, p.end))) if isinstance(p, PartitionRun) else 0 for p in parts]


def test_a_run_ends_where_the_topic_does() -> None:
    a, b = uuid(1), uuid(2)
    assert runs([partition(0, a), partition(1, a), partition(0, b), partition(2, a)]) == [2, 1, 1]


def test_a_run_ends_at_another_record() -> None:
    a = uuid(1)
    assert runs([partition(0, a), value("NO_OP"), partition(1, a), partition(2, a)]) == [1, 0, 2]


def test_a_new_shape_is_learned_and_then_joins_runs() -> None:
    a, framer = uuid(1), Framer(1)
    small, large = partition(0, a, replicas=1), partition(1, a, replicas=40)
    assert runs([small, small, large, small, large], framer) == [2, 3]
    assert runs([small, large, small], framer) == [3]


def test_a_single_record_in_a_batch() -> None:
    assert runs([partition(0, uuid(1))]) == [1]
    assert runs([value("NO_OP")]) == [0]


def test_topics_that_take_turns() -> None:
    values = [partition(index, uuid(index % 3)) for index in range(300)]
    found = parsed(batch(values))
    assert framed(Framer(1), found) == expected(found)
    assert runs(values) == [1] * 300


def test_a_value_that_holds_framed_partitions_is_one_record() -> None:
    a = uuid(1)
    inner = pack([(None, partition(number, a)) for number in range(3)])
    nested = value("CONFIG", resourceType=2, resourceName="t", name="k", value=inner.decode("utf-8", "surrogateescape"))
    assert runs([partition(0, a), nested, partition(1, a), partition(2, a)]) == [1, 0, 2]


def test_partitions_of_an_unknown_version_are_no_run() -> None:
    newer = b"\x01\x03\x03" + partition(0, uuid(1))[3:]
    assert runs([newer, newer]) == [0, 0]


def test_a_record_cut_by_the_batch_end_is_damage() -> None:
    whole = pack([(None, partition(number, uuid(1))) for number in range(3)])
    size = len(whole) // 3
    for cut in range(1, len(whole)):
        if cut % size == 0:
            continue
        with pytest.raises((DecodeError, IndexError)):
            for _ in Framer().frame(whole[:cut], 0, cut):
                pass


@pytest.mark.parametrize(
    "record",
    [
        b"\x10\x00\x00\x00\x02k\x02v\x00",  # a key
        b"\x10\x00\x00\x00\x01\x01\x00\x00\x00",  # no value
        b"\x12\x00\x00\x00\x01\x02v\x02\x01\x01",  # a header
        b"\x0c\x00\x00\x00\x01\x02v\x00",  # longer than its length says
    ],
)
def test_only_plain_records_are_metadata(record: bytes) -> None:
    with pytest.raises(DecodeError):
        span(record, 0, len(record))


def test_what_a_span_says() -> None:
    raw = b"xx" + pack([(None, b"abc")])
    assert span(raw, 2, len(raw)) == RecordBounds(2, 8, 11, 12, 0, 0)


def stamped(values: Sequence[bytes], times: Sequence[int]) -> Batch:
    """A batch whose records each have a time of their own."""
    body = b""
    for index, (one, moment) in enumerate(zip(values, times, strict=True)):
        record = b"\x00" + write_varint(moment) + write_varint(index) + b"\x01" + write_varint(len(one)) + one + b"\x00"
        body += write_varint(len(record)) + record
    covered = struct.pack(">hiqqqhii", 0, len(values) - 1, TIME, TIME, -1, -1, -1, len(values)) + body
    return parsed(struct.pack(">qiibI", 0, len(covered) + 9, 1, 2, crc32c(covered)) + covered)


@given(st.lists(st.integers(-(2**40), 2**40) | st.integers(-70, 70), min_size=1, max_size=30))
def test_records_with_times_of_their_own(times: list[int]) -> None:
    found = stamped([partition(number, uuid(1)) for number in range(len(times))], times)
    assert framed(Framer(1), found) == expected(found)


def test_as_many_shapes_as_records_cost_no_more_than_their_number() -> None:
    count = 3000
    found = stamped([partition(number, uuid(1)) for number in range(count)], range(count))
    started = time.thread_time()
    assert framed(Framer(1), found) == expected(found)
    assert time.thread_time() - started < 5


def test_the_region_of_a_batch_starts_after_its_header() -> None:
    found = parsed(batch([partition(0, uuid(1))]))
    assert found.region() == (found.buf, HEADER_SIZE, found.size)


def numbered(values: Sequence[bytes], deltas: Sequence[int]) -> bytes:
    """Records with offset deltas of their own."""
    out = b""
    for one, delta in zip(values, deltas, strict=True):
        record = b"\x00\x00" + write_varint(delta) + b"\x01" + write_varint(len(one)) + one + b"\x00"
        out += write_varint(len(record)) + record
    return out


T1 = value("TOPIC", name="one", topicId=uuid(1))
P1 = [partition(number, uuid(1)) for number in range(4)]
N = value("NO_OP")


def offsets_fit(values: Sequence[bytes], deltas: Sequence[int], last: int) -> bool:
    """Whether framing with and without patterns accepts the offsets; both must say the same."""
    said = []
    body = numbered(values, deltas)
    for patience in (1, 1000):
        framer = Framer(patience)
        warm = numbered([T1, *P1, T1, *P1], range(10))
        list(framer.frame(warm, 0, len(warm)))
        try:
            list(framer.checked(body, 0, len(body), last))
            said.append(True)
        except DecodeError:
            said.append(False)
    assert said[0] == said[1]
    return said[0]


@pytest.mark.parametrize(
    ("values", "deltas", "last"),
    [
        ([N, N, N], [0, 1, 2], 2),
        ([T1, *P1], [0, 1, 2, 3, 4], 4),
        ([N, T1, *P1, N], [0, 1, 2, 3, 4, 5, 6], 6),
        ([*P1, T1, T1], [0, 1, 2, 3, 4, 5], 5),
        ([T1, *P1[:1], T1, *P1], [0, 1, 2, 3, 4, 5, 6], 6),
    ],
)
def test_offsets_of_a_batch_follow_each_other(values: list[bytes], deltas: list[int], last: int) -> None:
    assert offsets_fit(values, deltas, last)
    assert not offsets_fit(values, deltas, last + 1)  # the header counts more than there are
    assert not offsets_fit(values, deltas, last - 1)
    assert not offsets_fit(values, [deltas[0] + 1, *deltas[1:]], last)
    assert not offsets_fit(values, [*deltas[:-1], last + 5], last)
    assert not offsets_fit(values[:-1], deltas[:-1], last)


def test_offsets_that_fall_behind_a_run_are_seen() -> None:
    assert not offsets_fit([T1, *P1, N], [0, 1, 2, 3, 4, 1], 5)
    assert not offsets_fit([N, N, N], [0, 2, 2], 2)
    assert not offsets_fit([], [], 0)


@pytest.mark.parametrize("at", range(1, 6))
def test_offsets_of_a_topics_partitions_are_left_to_who_reads_them(at: int) -> None:
    """However many records were framed before: a snapshot is not damaged alone and sound after another one."""
    deltas = list(range(7))
    deltas[at] -= 1
    assert offsets_fit([T1, *(partition(number, uuid(1)) for number in range(5)), N], deltas, 6)


def test_odd_records_are_given_as_bytes() -> None:
    odd = b"\x10\x00\x00\x02\x02k\x02v\x00"  # offset delta 1, a key
    body = numbered([N], [0]) + odd + numbered([N], [2])
    parts = list(Framer().checked(body, 0, len(body), 2))
    assert [type(part) for part in parts] == [RecordBounds, KeyedRecord, RecordBounds]
    assert isinstance(parts[1], KeyedRecord)
    assert body[parts[1].start : parts[1].end] == odd
    assert parts[1].delta == 1


def test_the_end_of_a_long_run_is_found_without_walking_it(monkeypatch: pytest.MonkeyPatch) -> None:
    walked: list[int] = []

    def walk(*place: Any) -> Any:
        walked.append(1)
        return iter_values(*place)

    monkeypatch.setattr(framing, "iter_values", walk)
    values = [T1, *(partition(number, uuid(1)) for number in range(2_000))]
    body = numbered(values, range(len(values)))
    framer = Framer()
    list(framer.frame(body, 0, len(body)))
    list(framer.checked(body, 0, len(body), len(values) - 1))
    assert not walked
    with pytest.raises(DecodeError):
        list(framer.checked(body, 0, len(body), len(values)))
    assert walked, "only where the end is not what it should be"
