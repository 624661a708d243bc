"""Records by type over time."""

from __future__ import annotations

from typing import Any

import pytest

from kshell.errors import UsageError
from kshell.plots import draw
from kshell.plots.picture import Plot
from tests.plots.answers import NOW, answer, figure, rows, texts

RECORD = "offset timestampMs type data"


def heights(plot: Plot, line: int) -> list[float]:
    """Of the bars of one type, from left to right."""
    bars: Any = figure(plot).axes[0].collections[line]
    return [float(path.vertices[:, 1].max() - path.vertices[:, 1].min()) for path in bars.get_paths()]


def names(plot: Plot) -> list[str]:
    """The types, from the top."""
    return [text.get_text() for text in figure(plot).texts if text.get_ha() == "right" and text.get_text().isupper()]


def test_the_sample_log() -> None:
    plot = draw(answer("dump"))
    assert names(plot)[:3] == ["CONFIG_RECORD", "PARTITION_RECORD", "PARTITION_CHANGE_RECORD"]
    assert "11 other types" in texts(plot)
    assert "Busiest: 35 PARTITION_CHANGE_RECORD in 200 ms, at 2026-11-21 15:11:22.400." in plot.alt
    assert plot.alt.startswith("Records by type over time. 207 records of 24 types; 2026-11-21 15:11:01.600 to")


def test_heights_and_numbers() -> None:
    made: list[Any] = [(at, NOW, "A", {}) for at in range(16)] + [
        (20, NOW + 60_000, "A", {}),
        (21, NOW + 30_000, "B", {}),
    ]
    plot = draw(rows(RECORD, *made))
    high, low = heights(plot, 0)
    assert low / high == pytest.approx(1 / 4)  # the root of 1 in 16
    assert heights(plot, 1) == pytest.approx([low])
    numbers = [text.get_text() for text in figure(plot).texts if text.get_ha() == "right"]
    assert numbers == ["A", "B", "records", "peak", "17", "16", "1", "1"]


def test_ten_thousand_records_are_few_bars() -> None:
    plot = draw(rows(RECORD, *((at, NOW + at * 500, "AB"[at % 2], {}) for at in range(10_000))))
    assert sum(len(heights(plot, line)) for line in range(2)) <= 2 * 141
    assert "10,000 records of 2 types" in plot.alt


def test_a_snapshot_has_one_time_and_is_counted() -> None:
    plot = draw(rows(RECORD, (1, NOW, "A", {}), (2, NOW, "B", {}), (3, NOW, "B", {})))
    assert plot.alt == (
        "Records by type. 3 records of 2 types; all at 2027-01-15 08:00:00.000 UTC. Most frequent: 2 B, 1 A."
    )
    bars: list[Any] = list(figure(plot).axes[0].patches)
    assert [bar.get_width() for bar in bars] == [2, 1]


def test_records_without_a_time() -> None:
    plot = draw(rows(RECORD, (1, NOW, "A", {}), (2, -1, "A", {}), (3, None, "A", {}), (4, NOW + 1, "A", {})))
    assert "2 records without a time left out" in texts(plot)
    with pytest.raises(UsageError, match="no record has a time"):
        draw(rows(RECORD, (2, -1, "A", {})))


def test_times_that_no_calendar_has() -> None:
    plot = draw(rows(RECORD, (1, 0, "A", {}), (2, 2**63 - 1, "A", {})))
    assert plot.png().startswith(b"\x89PNG")
    assert " ms UTC" in plot.alt
