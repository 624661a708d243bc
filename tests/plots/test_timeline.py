"""Leadership and ISR over time, drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kshell.errors import UsageError
from kshell.plots import draw, theme
from kshell.plots.picture import Plot
from tests.plots.answers import STRETCH, answer, figure, rows, stretches, texts


def boxes(plot: Plot, name: str) -> list[Any]:
    """(left, top, right, bottom) of the boxes of one kind; lanes count downwards from 0."""
    found = [one for one in figure(plot).axes[0].collections if one.get_gid() == name]
    return [(*path.vertices[0], *path.vertices[2]) for one in found for path in one.get_paths()]


def test_the_sample_cluster() -> None:
    plot = draw(answer("timeline --all"))
    assert "legacy-import-0 has no leader at the end; 35 of 37 not fully in sync at the end" in plot.alt
    assert plot.alt.startswith(
        "Leadership and ISR over time: 42 partitions, 2026-11-21 15:11:05.421 to 15:11:22.506 UTC"
    )
    assert "30 of 42 partitions: those longest without a leader or short of replicas" in texts(plot)
    assert "no leader" in texts(plot)
    assert len(boxes(plot, "no leader")) == 1


def test_time_without_a_leader_fills_its_lane_in_a_colour_of_its_own() -> None:
    plot = draw(rows(STRETCH, *stretches("a", 0, (1000, 1, 3), (1000, -1, 1), (1000, 2, 2), (0, 2, 3))))
    ((left, top, right, bottom),) = boxes(plot, "no leader")
    ((_, led_top, led_right, led_bottom),) = boxes(plot, "leader 1")
    assert (left, right - left) == (led_right, 1000)
    assert (top, bottom) == (led_top, led_bottom)
    collections = {one.get_gid(): one for one in figure(plot).axes[0].collections}
    assert np.allclose(collections["no leader"].get_facecolor()[0][:3], [0xD5 / 255, 0x5E / 255, 0])
    assert collections["hatch of no leader"].get_hatch() == theme.TROUBLE_HATCH
    assert theme.TROUBLE not in theme.SERIES


def test_a_moment_without_a_leader_can_be_seen_and_has_a_cross() -> None:
    plot = draw(rows(STRETCH, *stretches("a", 0, (10_000_000, 1, 3), (1, -1, 1), (10_000_000, 2, 3), (0, 1, 3))))
    axes = figure(plot).axes[0]
    ((left, _, right, _),) = boxes(plot, "no leader")
    start, end = axes.get_xlim()
    assert (right - left) / (end - start) * axes.get_window_extent().width >= 2.5
    marks = [one for one in axes.collections if one.get_gid() is None and len(one.get_offsets())]
    assert [len(one.get_offsets()) for one in marks] == [1]


def test_a_bar_is_as_high_as_its_share_of_replicas() -> None:
    plot = draw(rows(STRETCH, *stretches("a", 0, (1000, 1, 3), (1000, 2, 1), (1000, 3, 2), (0, 4, 3))))
    full, third, two = (boxes(plot, f"leader {leader}")[0] for leader in (1, 2, 3))
    high = full[3] - full[1]
    assert (third[3] - third[1]) / high == pytest.approx(1 / 3)
    assert (two[3] - two[1]) / high == pytest.approx(2 / 3)
    assert {full[3], third[3], two[3]} == {full[3]}
    assert "2 · 1 of 3 in sync" in texts(plot)


def test_what_ended_is_not_drawn_to_the_end() -> None:
    gone = ["gone", 0, 1_800_000_000_000, 1_800_000_001_000, 1, 1, [1]]
    plot = draw(rows(STRETCH, gone, *stretches("b", 0, (5000, 2, 3), (0, 3, 3))))
    assert boxes(plot, "leader 1")[0][2] == 1_800_000_001_000
    assert boxes(plot, "leader 3")[0][2] == figure(plot).axes[0].get_xlim()[1]
    assert "none was ever without a leader; all in sync at the end; 1 change of leader" in plot.alt


def test_the_worst_are_drawn_in_their_own_order() -> None:
    calm = [one for at in range(50) for one in stretches("calm", at, (1000, 1, 3), (0, 2, 3))]
    lost = list(stretches("lost", 0, (1000, 1, 3), (100, -1, 0), (0, 2, 3)))
    short = list(stretches("short", 0, (1000, 1, 3), (0, 1, 1)))
    plot = draw(rows(STRETCH, *short, *calm, *lost))
    names = [text.get_text() for text in figure(plot).texts if text.get_ha() == "right"]
    assert len(names) == 30
    assert (names[0], names[-1]) == ("short-0", "lost-0")
    assert [text.get_weight() for text in figure(plot).texts if text.get_text() == "lost-0"] == ["bold"]
    assert "lost-0 had none for a while; the longest without: lost-0, 100 ms" in plot.alt


def test_many_brokers_differ_by_hatch_and_are_named_in_the_bars() -> None:
    held = [(1000, broker, 3) for broker in range(20)]
    plot = draw(rows(STRETCH, *stretches("a", 0, *held)))
    styles = set()
    for one in figure(plot).axes[0].collections:
        if str(one.get_gid()).startswith("leader "):
            hatch = [
                h.get_hatch() for h in figure(plot).axes[0].collections if h.get_gid() == f"hatch of {one.get_gid()}"
            ]
            styles.add((tuple(one.get_facecolor()[0]), *hatch))
    assert len(styles) == 20
    assert "and 10 more" in texts(plot)
    assert {"0", "19"} <= set(texts(plot))


def test_ten_thousand_stretches_are_few_boxes() -> None:
    held = [(7, at % 5 if at % 100 else -1, 3) for at in range(10_000)]
    plot = draw(rows(STRETCH, *stretches("a", 0, *held)))
    drawn = [path for one in figure(plot).axes[0].collections for path in one.get_paths()]
    assert len(drawn) < 2000
    assert boxes(plot, "no leader")
    assert "where there are too many changes to draw, the worst of a moment is shown" in texts(plot)


def test_one_stretch() -> None:
    plot = draw(rows(STRETCH, *stretches("a", 0, (0, 1, 3))))
    assert "1 partition, 2027-01-15 08:00:00.000 UTC. none was ever without a leader" in plot.alt
    assert [label.get_text() for label in figure(plot).axes[0].get_xticklabels()] == ["08:00:00.000"]


def test_what_nobody_tells() -> None:
    plot = draw(rows(STRETCH, ["a", 0, 1000, None, 1, None, []], ["b", 0, None, None, 1, 1, [1]]))
    assert "1 partition" in plot.alt
    with pytest.raises(UsageError, match="no row says when it begins"):
        draw(rows(STRETCH, ["b", 0, None, None, 1, 1, [1]]))
