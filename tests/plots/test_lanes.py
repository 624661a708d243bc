"""Stretches of time as lanes, and what is said of them."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from kshell.plots.pictures import timeline
from kshell.plots.pictures.timeline import NOBODY, Interval, PartitionBar
from tests.plots.answers import NOW, STRETCH, rows, stretches

HELD = st.lists(
    st.tuples(st.integers(0, 50), st.sampled_from([NOBODY, 1, 2]), st.integers(0, 3)), min_size=101, max_size=300
)


def lane_of(held: list[tuple[int, int, int]]) -> tuple[PartitionBar, float, float]:
    found, start, last = timeline.lanes_of(list(rows(STRETCH, *stretches("a", 0, *held))))
    return found[0], start, last


@given(HELD)
def test_a_dense_lane_hides_no_time_without_a_leader(held: list[tuple[int, int, int]]) -> None:
    lane, start, last = lane_of(held)
    drawn = lane.binned(start, last, 40)
    width = max(last - start, 1) / 40
    for span in lane.spans:
        if span.leader == NOBODY:
            near = [one for one in drawn.spans if one.start - width <= span.start <= (one.end or last) + width]
            assert any(one.leader == NOBODY for one in near)
    for one, two in itertools.pairwise(drawn.spans):
        assert one.end is not None
        assert one.end <= two.start
    assert len(drawn.spans) <= 41
    assert drawn.spans[-1].end is None
    assert drawn.spans[-1][2:] == lane.spans[-1][2:]


def test_a_bin_has_the_smallest_isr_and_the_last_leader() -> None:
    held = [(1, 1 + at % 2, 3 - (at == 50)) for at in range(150)]
    lane, start, last = lane_of(held)
    drawn = lane.binned(start, last, 3)
    assert [one.in_sync for one in drawn.spans] == [3, 2, 3]
    assert [one.leader for one in drawn.spans] == [2, 2, 2]


def test_few_stretches_stay_as_they_are() -> None:
    lane, start, last = lane_of([(10, 1, 3), (0, 2, 3)])
    assert lane.binned(start, last, 2) is lane
    assert lane.spans == [Interval(NOW, NOW + 10, 1, 3, 3), Interval(NOW + 10, None, 2, 3, 3)]


def test_a_share_is_never_more_than_all() -> None:
    assert Interval(0, None, 1, 4, 3).share == 1
    assert Interval(0, None, 1, None, 3).share == 1
    assert Interval(0, None, 1, 0, 0).share == 0


def test_several_are_counted() -> None:
    lost = [lane_of([(10, 1, 3), (0, NOBODY, 0)])[0] for _ in range(3)]
    back = [lane_of([(10, 1, 3), (5, NOBODY, 0), (0, 1, 3)])[0] for _ in range(2)]
    assert timeline.facts_about([*lost, *back], NOW + 15) == [
        "3 partitions have no leader at the end",
        "2 partitions had none for a while",
        "the longest without: a-0, 5 ms",
        "3 of 5 not fully in sync at the end",
        "2 changes of leader",
    ]
