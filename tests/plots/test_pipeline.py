"""Pictures of the pipeline's tables: found by their columns, with the numbers of their rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kshell.engine.result import Row
from kshell.errors import UsageError
from kshell.plots import draw_rows
from kshell.plots.picture import Plot
from kshell.plots.pictures.availability import percent
from tests.plots.answers import HOSTILE, NOW, figure, texts

DAY = 86_400_000
DAYS = [f"2026-01-{day:02}" for day in range(1, 32)]


def stretch(start: int, end: int | None, **more: Any) -> Row:
    """Days from :data:`NOW`; what lasts does so for a day."""
    to = None if end is None else NOW + end * DAY
    return {"fromMs": NOW + start * DAY, "toMs": to, "durationMs": DAY if end is None else (end - start) * DAY, **more}


def change(offset: int, cluster: str, name: str | None, level: int, kind: str = "upgrade") -> Row:
    return {"clusterId": cluster, "feature": "metadata.version", "offset": offset, "ms": NOW + offset * DAY,
            "change": kind, "newLevel": level, "newName": name, "lastMs": NOW + 30 * DAY}  # fmt: skip


def month(name: str, month: str, share: float | None) -> Row:
    return {"month": month, "scope": "topic", "name": name, "availability": share}


def reassignment(topic: str, start: int, end: int | None, outcome: str | None) -> Row:
    return stretch(start, end, topic=topic, partition=0, outcome=outcome, adding=[4], removing=[1])


CASES: dict[str, tuple[Sequence[Row], str]] = {
    "growth": (
        [{"day": day, "type": "NO_OP_RECORD", "records": place} for place, day in enumerate(DAYS)],
        "Records a day. 465 records; 2026-01-01 to 2026-01-31 UTC; most at once: NO_OP_RECORD, 30 records on"
        " 2026-01-31.",
    ),
    "churn": (
        [{"day": DAYS[0], "broker": 1, "gained": 2}, {"day": DAYS[9], "broker": 2, "gained": 3}],
        "Changes of leader a day. 5 changes of leader; 2026-01-01 to 2026-01-10 UTC; most at once: to broker 2, 3"
        " changes of leader on 2026-01-10.",
    ),
    "one day": (
        [{"day": DAYS[0], "clusterId": "a", "gained": 2}, {"day": DAYS[0], "clusterId": "b", "gained": 0}],
        "Changes of leader a day. 2 changes of leader; 2026-01-01 UTC; most at once: a, 2 changes of leader on"
        " 2026-01-01.",
    ),
    "evenness": (
        [{"day": day, "clusterId": "a", "mostToMean": 1 + place / 10} for place, day in enumerate(DAYS)],
        "Busiest broker, to the mean. 2026-01-01 to 2026-01-31 UTC; most: a, 4.00 on 2026-01-31.",
    ),
    "elections": (
        [{"day": DAYS[0], "topic": "orders", "elections": 1}, {"day": DAYS[1], "topic": "orders", "elections": 1}],
        "Unclean elections a day. 2 unclean elections; 2026-01-01 to 2026-01-02 UTC; most at once: orders, 1 unclean"
        " election on 2026-01-01.",
    ),
    "availability": (
        [month("a", "2026-01", 1.0), month("a", "2026-02", 0.99994), month("b", "2026-01", 0.5), month("b", "x", None)],
        "Time with a leader, by month. worst: topic b, 50.000 % in 2026-01.",
    ),
    "episodes": (
        [{"lasted": "under 1 s", "episodes": 7, "leaderless": 0}, {"lasted": "a day", "episodes": 2, "leaderless": 1}],
        "How long partitions lacked in-sync replicas. 9 episodes; in 1 of them the partition had no leader for a while;"
        " most often under 1 s: 7.",
    ),
    "sessions": (
        [stretch(0, 3, broker=1, state="unfenced"), stretch(3, None, broker=1, state="fenced"),
         stretch(0, 4, broker=2, state="unfenced")],
        "Brokers over time. 2 brokers; 2027-01-15 08:00:00.000 to 2027-01-19 08:00:00.000 UTC; fenced 1 time; longest:"
        " broker 1, 1 day in all; fenced at the end: broker 1.",
    ),
    "reassignments": (
        [reassignment("a", 0, 2, "completed"), reassignment("b", 1, None, None)],
        "Reassignments over time. 2 reassignments; 1 completed; 1 under way; longest: a-0, 2 days.",
    ),
    "upgrades": (
        [change(0, "a", "3.9-IV0", 21, "first"), change(4, "a", "4.0-IV3", 25), change(2, "b", None, 9)],
        "Feature levels over time. 2 clusters; 2 changes; 2027-01-15 08:00:00.000 to 2027-02-14 08:00:00.000 UTC.",
    ),
    "fleet": (
        [{"clusterId": "a", "brokers": 3, "partitions": 1000, "underReplicated": 2, "offline": 1}],
        "Clusters. 1 cluster; 1,000 partitions; 2 under-replicated; 1 offline.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_pictures_say_what_they_show(name: str) -> None:
    rows, alt = CASES[name]
    plot = draw_rows(rows)
    assert plot.alt == alt
    assert plot.png().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", CASES)
def test_names_are_text_and_nothing_else(name: str) -> None:
    named = ("type", "clusterId", "topic", "name", "feature", "newName", "state", "lasted", "outcome")
    rows = [{key: HOSTILE if key in named else value for key, value in row.items()} for row in CASES[name][0]]
    plot = draw_rows(rows)
    assert ("".join(texts(plot)) + plot.alt).isprintable()
    assert plot.to_html().count("<") == 1
    assert plot.png().startswith(b"\x89PNG")  # letters that the font does not have would warn, and so fail


def heights(plot: Plot) -> list[float]:
    """Of the bars of the first line."""
    bars = figure(plot).axes[0].collections[0]
    return [max(path.vertices[:, 1]) - min(path.vertices[:, 1]) for path in bars.get_paths()]


def test_a_bar_grows_as_the_square_root() -> None:
    plot = draw_rows(
        [{"day": day, "broker": 1, "gained": count} for day, count in zip(DAYS, (100, 25, 0), strict=False)]
    )
    assert heights(plot) == pytest.approx([0.82, 0.41])


def test_years_are_drawn_by_weeks_and_days_stay_counted() -> None:
    rows = [{"day": f"{2023 + place // 336}-{place // 28 % 12 + 1:02}-{place % 28 + 1:02}", "broker": 1, "gained": 1}
            for place in range(1000)]  # fmt: skip
    plot = draw_rows(rows)
    assert len(heights(plot)) < 140
    assert plot.alt.startswith("Changes of leader a day. 1,000 changes of leader; 2023-01-01 to 2025-12-")
    assert "in the 14 days from" in plot.alt


def drawn_names(plot: Plot) -> set[str]:
    return {*texts(plot), *(label.get_text() for axes in figure(plot).axes for label in axes.get_yticklabels())}


def test_of_many_clusters_those_that_changed_most_often_are_drawn() -> None:
    names = [f"c{number:02}" for number in range(35)]
    rows = [change(offset, name, None, offset) for name in names for offset in range(3 if name > "c20" else 1)]
    plot = draw_rows(rows)
    assert "30 of 35: those that changed most often" in texts(plot)
    assert {name for name in names if name in drawn_names(plot)} == {*names[:16], *names[21:]}


def test_of_many_brokers_those_longest_fenced_are_drawn() -> None:
    rows = [stretch(0, 3 + broker, broker=broker, state="fenced") for broker in range(100, 135)]
    plot = draw_rows(rows)
    assert "30 of 35 brokers: those longest fenced" in texts(plot)
    assert {f"broker {broker}" for broker in range(100, 135)} & drawn_names(plot) == {
        f"broker {broker}" for broker in range(105, 135)
    }


def test_changes_in_any_order_begin_with_the_earliest() -> None:
    rows, alt = CASES["upgrades"]
    assert draw_rows([rows[1], rows[0], rows[2]]).alt == alt


def test_many_lines() -> None:
    rows = [{"day": day, "clusterId": f"c{number}", "gained": number} for number in range(100) for day in DAYS[:2]]
    plot = draw_rows(rows)
    assert "20 of 100 clusters: those with the most" in texts(plot)
    assert "c80" in texts(plot) and "c79" not in texts(plot)


def test_what_has_no_day_is_left_out_and_said() -> None:
    rows = [{"day": day, "type": "A", "records": 5} for day in (None, *DAYS[:2])]
    assert "1 row without a day left out" in texts(draw_rows(rows))


def test_months_have_a_colour_for_how_bad_they_were() -> None:
    rows = [month("a", f"2026-{at:02}", share) for at, share in enumerate((1.0, 0.99999, 0.9995, 0.995, 0.9, 0.0), 1)]
    said = texts(draw_rows(rows))
    assert {"100 %", "99.999 %", "99.950 %", "99.500 %", "90.000 %", "0 %"} <= set(said)
    assert {"below 99.99 %", "below 99.9 %", "below 99 %"} <= set(said)


def test_almost_all_is_not_all() -> None:
    assert (percent(1.0), percent(0.99999999), percent(0.0)) == ("100 %", "99.999 %", "0 %")


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [{"day": None, "type": "A", "records": 5}],
        [{"day": DAYS[0], "broker": 1, "gained": 0}],
        [month("a", "2026-01", None)],
        [{"lasted": "under 1 s", "episodes": 0, "leaderless": 0}],
        [{"broker": 1, "state": "fenced", "fromMs": None, "toMs": None}],
    ],
)
def test_nothing_to_draw(rows: Sequence[Row]) -> None:
    with pytest.raises(UsageError):
        draw_rows(rows)
