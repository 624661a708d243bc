"""Time in words and on an axis."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshell.plots import theme, times
from kshell.tree.image import format_duration
from tests.plots.answers import NOW


@pytest.mark.parametrize(
    ("length", "said"),
    [(200, "200 ms"), (1900, "1.9 s"), (300_000, "5 min"), (9_000_000, "2.5 h"), (86_400_000, "1 day"),
     (259_200_000, "3 days")],
)  # fmt: skip
def test_lengths(length: int, said: str) -> None:
    assert format_duration(length) == said


def test_between() -> None:
    assert times.between(NOW, NOW + 1500) == "2027-01-15 08:00:00.000 to 08:00:01.500 UTC"
    assert times.between(NOW, NOW + 86_400_000) == "2027-01-15 08:00:00.000 to 2027-01-16 08:00:00.000 UTC"
    assert times.between(NOW, NOW) == "2027-01-15 08:00:00.000 UTC"


@given(st.floats(1, 2**63), st.integers(2, 500))
def test_steps(length: float, most: int) -> None:
    step = times.step_of(length, most)
    assert length / step <= most
    shorter = [one for one in times.STEPS if one < step]
    assert not shorter or length / shorter[-1] > most


@pytest.mark.parametrize(
    ("length", "labels", "axis"),
    [
        (100, ["08:00:00.020"], "time in UTC, 2027-01-15"),
        (20_000, ["08:00:05"], "time in UTC, 2027-01-15"),
        (7_200_000, ["08:30"], "time in UTC, 2027-01-15"),
        (172_800_000, ["01-16 00:00", "01-17 00:00"], "time in UTC"),
        (30 * 86_400_000, ["2027-01-21"], "time in UTC"),
    ],
)
def test_ticks_are_round_and_have_their_date(length: int, labels: list[str], axis: str) -> None:
    with theme.own_settings():
        figure, top = theme.page("title", [], 100)
        axes = theme.axes_at(figure, 100, top, 700, 50)
        times.time_axis(axes, NOW, NOW + length, 700)
    found = [label.get_text() for label in axes.get_xticklabels()]
    assert set(labels) <= set(found)
    assert 2 <= len(found) <= 8
    assert axes.get_xlabel() == axis
