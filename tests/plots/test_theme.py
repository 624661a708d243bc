"""Colours that everybody can tell apart, words that can be read, names that fit."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from kshell.plots import theme
from tests.plots.answers import HOSTILE

# Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation of Color Vision Deficiency" (2009),
# severity 1.0, on linear RGB.
SIGHT = {
    "all colours": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "no red": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "no green": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "no blue": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)


def linear(color: str) -> np.ndarray:
    values = np.array([int(color[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    """CIE L*a*b* of linear RGB, white point D65."""
    ratio = TO_XYZ @ np.clip(rgb, 0, 1) / TO_XYZ.sum(axis=1)
    bent = np.where(ratio > (6 / 29) ** 3, np.cbrt(ratio), ratio / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * bent[1] - 16, 500 * (bent[0] - bent[1]), 200 * (bent[1] - bent[2])])


def contrast(one: str, other: str) -> float:
    """By WCAG 2."""
    lights = sorted(float(TO_XYZ[1] @ linear(color)) + 0.05 for color in (one, other))
    return lights[1] / lights[0]


@pytest.mark.parametrize("sight", SIGHT)
def test_colours_differ_for_everybody(sight: str) -> None:
    seen = {color: lab(np.array(SIGHT[sight]) @ linear(color)) for color in (*theme.SERIES, theme.TROUBLE)}
    for one, other in itertools.combinations(seen, 2):
        assert np.linalg.norm(seen[one] - seen[other]) > 11, (one, other)


@pytest.mark.parametrize("page", ["#FFFFFF", "#111111"])
def test_ink_can_be_read_on_both_pages(page: str) -> None:
    # 4.5 on one of them means less than 4.2 on the other.
    assert contrast(theme.INK, page) >= 4.3


@pytest.mark.parametrize("color", [*theme.SERIES, theme.TROUBLE])
def test_words_on_colours_can_be_read(color: str) -> None:
    assert contrast(theme.on(color), color) >= 4.5


def test_names_that_fit() -> None:
    assert theme.drawable_name("orders-0") == "orders-0"
    assert theme.short_name("a" * 200 + "-17", 20).endswith("-17")
    assert len(theme.short_name("a" * 200, 20)) == 20
    assert (
        theme.short_name(HOSTILE, 500) == "\\x1b[31m$\\frac{1$\\n\\u202e<img src=x onerror=alert(1)>\U0001f986 \u673a"
    )
    assert theme.drawable_name("\u673a\U0001f986\xe9\u03b1", 500) == "\\u673a\\U0001f986\xe9\u03b1"


@pytest.mark.parametrize("tail", [0, theme.TAIL])
def test_words_are_cut_where_there_is_no_room(tail: float) -> None:
    words = "a-very-long-topic-name-that-goes-on-and-on-and-on-17"
    cut = theme.fitting(words, 120, tail=tail)
    assert theme.width_of(cut) <= 120 < theme.width_of(words)
    assert "…" in cut
    assert cut.endswith("17") == bool(tail)
    assert theme.fitting(words, 1000, tail=tail) == words


def test_widths_are_what_is_drawn() -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    with theme.own_settings():
        figure, _ = theme.page("title", [], 100)
        theme.write(figure, 10, 10, "PARTITION_CHANGE_RECORD and more", weight="bold")
        canvas: Any = FigureCanvasAgg(figure)
        drawn = figure.texts[-1].get_window_extent(canvas.get_renderer()).width
    told = theme.width_of("PARTITION_CHANGE_RECORD and more", weight="bold")
    assert drawn <= told <= drawn * 1.1


def test_numbers() -> None:
    assert [theme.compact(value) for value in (0, 1, 1.5, 18.0004, 1234567.8)] == ["0", "1", "1.5", "18", "1,234,568"]
    assert theme.counted(1, "change of leader", "changes of leader") == "1 change of leader"
    assert theme.counted(2000, "partition") == "2,000 partitions"
