"""Brokers, racks, topics, partitions and the quorum: bars beside their numbers."""

from __future__ import annotations

from typing import Any

import pytest

from kshell.errors import UsageError
from kshell.plots import draw, panels, theme
from kshell.plots.picture import Plot
from tests.plots.answers import answer, figure, quorum, replica, rows, texts

SKEW = "broker rack fenced leaders replicas outOfSync leaderSkew replicaSkew"


def widths(plot: Plot, panel: int) -> list[float]:
    """Of the bars of one panel, from the top; hatches left out."""
    bars: list[Any] = list(figure(plot).axes[panel].patches)
    return [bar.get_width() for bar in bars if bar.get_facecolor()[3]]


def titles(plot: Plot) -> list[str]:
    """Of the figure and its panels."""
    return [text.get_text() for text in figure(plot).texts if text.get_weight() == "bold"]


def names(plot: Plot) -> list[str]:
    """What stands at the left of the bars."""
    return [text.get_text() for text in figure(plot).texts if text.get_ha() == "right"]


def test_brokers() -> None:
    plot = draw(answer("skew"))
    assert titles(plot) == ["Leaders and replicas by broker", "leads", "holds"]
    assert names(plot) == ["1 · rack-b", "2 · rack-c", "3 · rack-a · fenced"]
    assert widths(plot, 0) == [22, 14]
    assert widths(plot, 1) == [29, 31, 35, 35]  # the last: what is out of sync, over its bar
    assert {"22", "14", "0", "35 · 35 out of sync", "even share: 18", "even share: 31.7"} <= set(texts(plot))
    assert plot.alt == (
        "Leaders and replicas by broker. 3 brokers. 36 partitions led, 95 replicas, 35 of them out of sync."
        " broker 1 leads the most, 22; broker 2 the least, 14; broker 3 is fenced."
    )


def test_brokers_without_skews_are_compared_with_a_mean() -> None:
    plot = draw(answer("brokers --load"))
    assert "mean: 18" in texts(plot)  # of the two that are not fenced
    assert widths(plot, 0) == [22, 14]


def test_a_line_keeps_out_of_the_way_of_numbers() -> None:
    plot = draw(rows(SKEW, (1, None, False, 98, 10, 0, 0.98, 1.0), (2, None, False, 200, 10, 0, 2.0, 1.0)))
    assert [list(line.get_ydata()) for line in figure(plot).axes[0].lines] == [[1, 2]]


def test_many_brokers() -> None:
    made = [(at, None, False, 100 if at != 77 else 300, 100, 0, 1.0, 1.0) for at in range(100)]
    plot = draw(rows(SKEW, *made))
    assert len(names(plot)) == panels.MOST
    assert "77" in names(plot)
    assert "40 of 100 brokers: those that are furthest from an even share of leaders" in texts(plot)
    assert "broker 77 leads the most, 300" in plot.alt


def test_racks() -> None:
    plot = draw(answer("skew --rack"))
    assert names(plot) == ["rack-a · 1 broker", "rack-b · 1 broker", "rack-c · 1 broker"]
    assert titles(plot) == ["Leaders and replicas by rack", "leads", "holds"]
    assert plot.alt.endswith("no partition with several replicas has all of them in one rack.")


def test_partitions_that_one_rack_would_take_along() -> None:
    plot = draw(rows("rack leaders replicas soleRack", ("a", 3, 4, 1), (None, 2, 2, 0)))
    assert titles(plot)[-1] == "in no other rack"
    assert names(plot) == ["a", "(no rack)"]
    assert "1 partition has all its replicas in one rack" in plot.alt


def test_topics() -> None:
    plot = draw(answer("topics"))
    assert titles(plot)[1:] == ["all partitions", "under-replicated", "under min ISR", "offline"]
    assert sum(widths(plot, 0)) == 37
    assert sum(widths(plot, 1)) == 35
    assert len({axes.get_xlim() for axes in figure(plot).axes}) == 1, "panels of one unit have one scale"
    assert "12 topics, 37 partitions; 1 offline; 1 under min ISR; 35 under-replicated." in plot.alt
    assert plot.alt.endswith("Partitions are offline in legacy-import.")


def test_many_topics() -> None:
    made = [(f"t{at}", 5, int(at == 60), int(at == 70)) for at in range(100)]
    plot = draw(rows("name partitions underReplicated offline", *made))
    assert {"t60", "t70"} <= set(names(plot))
    assert "40 of 100 topics: those with the most trouble, then the largest" in texts(plot)


def test_what_is_not_zero_can_be_seen() -> None:
    plot = draw(rows("name partitions underReplicated offline", ("big", 100_000, 0, 0), ("small", 1, 0, 1)))
    axes = figure(plot).axes[2]
    (bar, trouble) = widths(plot, 2)
    pixels = bar / axes.get_xlim()[1] * axes.get_window_extent().width
    assert bar == trouble
    assert pixels == pytest.approx(3, abs=0.1)


def test_partitions() -> None:
    plot = draw(answer("partitions"))
    assert titles(plot)[1:] == ["online", "under-replicated", "offline"]
    assert [sum(widths(plot, panel)) for panel in range(2)] == [2, 34]
    assert "37 partitions, 1 offline, 34 under-replicated, 2 online" in plot.alt


def test_a_running_quorum() -> None:
    voters = [replica(3002, 1840, 62_000), replica(3000, 0), replica(3001, 0, 300)]
    plot = draw(quorum(voters, [replica(2, 12, 800), replica(1, None, None)]))
    assert names(plot) == ["3000 · leader", "3001 · voter", "3002 · voter", "1 · observer", "2 · observer"]
    assert widths(plot, 0)[0] == 1840
    assert {"1,840", "unknown", "62 s ago", "0.3 s ago", "0 s ago"} <= set(texts(plot))
    assert plot.alt == (
        "Lag of the metadata quorum. node 3000 leads in epoch 7; high watermark 123,456;"
        " voter 3002 lags the most, by 1,840 offsets; the lag of 1 is unknown."
    )


def test_a_quorum_where_nobody_lags_and_brokers_that_tell_no_observers() -> None:
    plot = draw(quorum([replica(3000, 0, None)]))
    assert "nobody lags" in plot.alt
    assert len(figure(plot).axes) == 1


def test_all_voters_stay_when_there_are_many_observers() -> None:
    plot = draw(quorum([replica(3000, 0), replica(3001, 0)], [replica(at, at) for at in range(100)]))
    assert {"3000 · leader", "3001 · voter", "99 · observer"} <= set(names(plot))
    assert "1 · observer" not in names(plot)


def test_a_directory_knows_no_lag() -> None:
    with pytest.raises(UsageError, match="no lag is known") as caught:
        draw(answer("quorum"))
    assert "-q" in (caught.value.hint or "")


def test_the_part_in_trouble_is_hatched() -> None:
    plot = draw(rows(SKEW, (1, None, False, 9, 10, 4, 1.0, 1.0)))
    bars: list[Any] = list(figure(plot).axes[1].patches)
    (hatch,) = [bar for bar in bars if bar.get_hatch()]
    assert (hatch.get_x(), hatch.get_width(), hatch.get_hatch()) == (6, 4, theme.TROUBLE_HATCH)
