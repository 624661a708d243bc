"""The log in memory: what was appended, as segments and from any offset on."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from kshell.protocol.batches import Batch
from kshell.sources.quorum.mirror import Mirror
from tests.builders import batch, batches, uuid, value


def log(sizes: list[int], start: int = 0) -> list[Batch]:
    """Batches of so many records each, one after the other."""
    raw, offset = b"", start
    for size in sizes:
        raw += batch([value("TOPIC", name="t", topicId=uuid(offset + i)) for i in range(size)], offset)
        offset += size
    return batches(raw) if raw else []


def contents(mirror: Mirror) -> bytes:
    return b"".join(bytes(segment.data or b"") for segment in mirror.segments())


SIZES = st.lists(st.integers(1, 5), max_size=12)


CUTS = st.lists(st.integers(0, 12), max_size=5)


@given(sizes=SIZES, cuts=CUTS, start=st.integers(0, 50), position=st.integers(0, 90))
def test_batches_from_any_offset_on(sizes: list[int], cuts: list[int], start: int, position: int) -> None:
    whole = log(sizes, start)
    mirror = Mirror("m", start)
    edges = sorted({0, *(cut for cut in cuts if cut < len(whole)), len(whole)})
    for low, high in pairwise(edges):
        mirror.append(whole[low:high])
    assert (mirror.start, mirror.end) == (start, start + sum(sizes))
    wanted = [one.base_offset for one in whole if one.last_offset >= position]
    assert [one.base_offset for one in mirror.batches(position)] == wanted
    assert contents(mirror) == (bytes(whole[0].buf) if whole else b"")
    assert [one.base_offset for one in mirror.batches(position)] == wanted  # segments were joined meanwhile


def test_nothing_appended_changes_nothing() -> None:
    mirror = Mirror("m", 7)
    mirror.append([])
    assert (mirror.start, mirror.end, mirror.segments()) == (7, 7, ())


def test_the_oldest_goes_first() -> None:
    whole = log([3] * 10)
    mirror = Mirror("m", 0, most_bytes=3 * whole[0].size)
    for one in whole:
        mirror.append([one])
    assert (mirror.start, mirror.end) == (21, 30)
    assert [one.base_offset for one in mirror.batches(0)] == [21, 24, 27]


def test_one_chunk_is_kept_however_large_it_is() -> None:
    mirror = Mirror("m", 0, most_bytes=1)
    mirror.append(log([3, 3]))
    assert (mirror.start, mirror.end) == (0, 6)


def test_an_older_log_goes_before() -> None:
    older, newer = Mirror("m", 0), Mirror("m", 6)
    older.append(log([2, 4]))
    newer.append(log([3], 6))
    newer.prepend(older)
    assert (newer.start, newer.end) == (0, 9)
    assert [one.base_offset for one in newer.batches(1)] == [0, 2, 6]
    assert contents(newer) == b"".join(bytes(one.buf) for one in (log([2, 4])[0], log([3], 6)[0]))


@given(sizes=SIZES, cuts=CUTS, start=st.integers(0, 50), before=st.integers(0, 90))
def test_what_is_forgotten_is_below_the_offset(sizes: list[int], cuts: list[int], start: int, before: int) -> None:
    whole = log(sizes, start)
    mirror = Mirror("m", start)
    edges = sorted({0, *(cut for cut in cuts if cut < len(whole)), len(whole)})
    for low, high in pairwise(edges):
        mirror.append(whole[low:high])
    end = mirror.end
    mirror.forget(before)
    assert (start <= mirror.start <= max(start, before)) and mirror.end == end
    wanted = [one.base_offset for one in whole if one.base_offset >= mirror.start]
    assert [one.base_offset for one in mirror.batches(0)] == wanted
    mirror.forget(end)
    assert (mirror.start, mirror.end, mirror.segments()) == (end, end, ())
    after = log([2], end)
    mirror.append(after)
    assert (mirror.start, mirror.end, contents(mirror)) == (end, end + 2, bytes(after[0].buf))
