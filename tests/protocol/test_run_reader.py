"""Runs of partition records taken apart at once give what going from record to record gives, or are left alone."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import example, given
from hypothesis import strategies as st

from kshell.protocol.framing import iter_values
from kshell.protocol.primitives import write_varint
from kshell.protocol.readers import HEAD, KEY, RunReader
from tests.builders import uuid
from tests.protocol.test_framing import partition

TOPIC = uuid(1)
SHAPES = st.tuples(st.sampled_from((0, 1, 3, 40, 2100)), st.integers(0, 3), st.integers(0, 1))
LARGEST_DELTA = 1 << 20
"""Of offset deltas whose varints have up to three bytes: those of the records that a batch of Kafka's may have."""
FIRST_DELTAS = (0, 40, 63, 64, 8180, 8192, 1_048_570, 1_048_576)


def values(shapes: Iterable[tuple[int, int, int]], version: int = 2) -> list[bytes]:
    return [
        partition(number, TOPIC, version, replicas=replicas, isr=isr, elr=elr)
        for number, (replicas, isr, elr) in enumerate(shapes)
    ]


def framed(value: bytes, delta: int, time_delta: int = 0) -> bytes:
    record = b"\0" + write_varint(time_delta) + write_varint(delta) + b"\x01" + write_varint(len(value)) + value + b"\0"
    return write_varint(len(record)) + record


def run_of(values: Iterable[bytes], first: int = 0) -> bytes:
    return b"".join(framed(value, delta) for delta, value in enumerate(values, first))


def state_of(value: bytes) -> bytes:
    return value[:HEAD] + bytes(KEY) + value[HEAD + KEY :]


def reader(most: int = 1000) -> RunReader[bytes]:
    return RunReader(lambda value: value, most, patience=0)


def partitions(made: RunReader[bytes], run: bytes) -> list[tuple[int, bytes]] | None:
    """(number, state) of each record; the run is read from the middle of a buffer."""
    read = made.partitions(b"\xff" + run + b"\xff", 1, 1 + len(run))
    return None if read is None else list(zip(*read, strict=True))


@given(
    st.integers(0, 2),
    st.lists(st.tuples(SHAPES, st.integers(1, 9)), min_size=1, max_size=4),
    st.sampled_from(FIRST_DELTAS),
)
@example(2, [((3, 3, 0), 9), ((3, 2, 1), 1)] * 20, 30)
@example(2, [((3, 3, 0), 200)], 0)
@example(1, [((1, 1, 0), 200)], 8100)
def test_runs_give_what_records_give(version: int, blocks: list[tuple[tuple[int, int, int], int]], first: int) -> None:
    records = values((shape for shape, count in blocks for _ in range(count)), version)
    run = run_of(records, first)
    expected = [(number, state_of(value)) for number, value in enumerate(records)]
    assert [(delta, value) for delta, value in iter_values(run, 0, len(run))] == list(enumerate(records, first))
    made = reader()
    are_left = first + len(records) > LARGEST_DELTA
    for _ in range(2):  # the lengths are learned, then known
        assert partitions(made, run) == (None if are_left else expected)
        assert made.numbers(run, 0, len(run)) == (None if are_left else tuple(range(len(records))))


def test_records_of_equal_size_in_different_layouts_are_told_apart() -> None:
    """One byte more of the offset delta, one less of the state: as many bytes, the fields elsewhere."""
    made = reader()
    plain = b"\x01\x03\x00" + bytes(KEY)
    for first, size in ((60, 31), (64, 30), (60, 31)):
        records = [plain + bytes([number]) * size for number in range(3)]
        run = run_of(records, first)
        assert len(run) == 3 * len(framed(records[0], first))
        assert partitions(made, run) == [(0, state_of(value)) for value in records]


def test_equal_states_are_one_object() -> None:
    records = values([(3, 3, 0)] * 5)
    run = run_of(records)
    found = partitions(reader(), run)
    assert found is not None
    assert len({id(state) for _, state in found}) == 1


def test_no_more_states_are_remembered_than_allowed() -> None:
    made = reader(most=4)
    records = [b"\x01\x03\x00" + bytes(KEY) + bytes([number]) * 9 for number in range(50)]
    run = run_of(records)
    for _ in range(2):
        assert partitions(made, run) == [(0, state_of(value)) for value in records]
    assert all(len(states) <= 4 for states in made._states.values())


def test_what_needs_a_look_of_its_own_is_left_to_the_caller() -> None:
    records = values([(3, 3, 0)] * 9)
    jump = b"".join(framed(value, delta + (delta > 4)) for delta, value in enumerate(records))
    back = b"".join(framed(value, min(delta, 5)) for delta, value in enumerate(records))
    late = b"".join(framed(value, delta, 300 * (delta == 6)) for delta, value in enumerate(records))
    negative = b"".join(framed(value, delta - 3) for delta, value in enumerate(records))
    made = reader()
    for run in (jump, back, late, negative):
        assert [value for _, value in iter_values(run, 0, len(run))] == records
        assert partitions(made, run) is None
        assert made.numbers(run, 0, len(run)) is None
    assert RunReader(lambda _: None, 10, patience=0).partitions(run_of(records), 0, len(run_of(records))) is None


def test_a_number_alone_decodes_nothing() -> None:
    run = run_of(values([(3, 3, 0)] * 3))
    assert RunReader(lambda _: None, 10, patience=0).numbers(run, 0, len(run)) == (0, 1, 2)


def test_versions_of_one_size_are_not_taken_for_each_other() -> None:
    """Versions 1 and 2 of a partition without replicas have as many bytes."""
    run = run_of([*values([(0, 0, 0)] * 2, 1), *values([(0, 0, 0)] * 2, 2)])
    made = reader()
    for _ in range(2):
        assert partitions(made, run) is None
    for version in (1, 2, 1):
        records = values([(0, 0, 0)] * 2, version)
        assert partitions(made, run_of(records)) == [(number, state_of(value)) for number, value in enumerate(records)]


def test_sources_of_two_versions_are_read_in_turns() -> None:
    """As by ``diff`` of snapshots before and after an upgrade: a version must not displace what is known of another."""
    runs = [run_of(values([(3, 3, 0)] * 10, version)) for version in (1, 2)]
    made = RunReader(lambda value: value, 1000, patience=15)
    read = [made.numbers(run, 0, len(run)) is not None for _ in range(4) for run in runs]
    assert read == [False, False, True, True, True, True, True, True]


def test_records_are_left_to_the_caller_until_a_pattern_pays() -> None:
    run = run_of(values([(3, 3, 0)] * 10))
    made = RunReader(lambda value: value, 1000, patience=25)
    assert [made.numbers(run, 0, len(run)) is not None for _ in range(5)] == [False, False, True, True, True]


def test_more_lengths_than_are_noted_are_read_or_left_and_never_read_wrong() -> None:
    """A reader begins anew when it has met too many lengths, so that those of an odd file do not stay for ever."""
    plain = b"\x01\x03\x02" + bytes(KEY)
    made = reader()
    for size in range(1, 200):
        records = [plain + bytes([size]) * size] * 3
        assert partitions(made, run_of(records, size)) == [(0, state_of(value)) for value in records]
    assert all(len(lengths) <= 64 for lengths in made._lengths.values())
    many = [plain + bytes(size) for size in range(1, 200)]
    for _ in range(2):
        assert partitions(made, run_of(many)) is None
    assert partitions(made, run_of(many[:3])) == [(0, state_of(value)) for value in many[:3]]
