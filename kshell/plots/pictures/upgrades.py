"""Picture of the pipeline's ``upgrades``: finalized feature levels over time, one lane per feature or cluster."""

from __future__ import annotations

from collections.abc import Sequence

from kshell.engine.result import Row
from kshell.plots import intervals, panels, theme, times
from kshell.plots.intervals import Lane, LaneInterval, Style
from kshell.plots.picture import Drawn, NothingToDraw, number, picture

_COLORS = (theme.BLUE, theme.SKY, theme.GREEN, theme.ORANGE, theme.PURPLE, theme.YELLOW)
_BEGINNINGS = ("found", "first")
"""Changes that only say a level for the first time."""


@picture("feature levels over time", needs=("clusterId", "feature", "offset", "ms", "change", "newLevel"))
def draw(rows: list[Row]) -> Drawn:
    """Draw rows that are changes; ``lastMs``, if there, is the time up to which a cluster's log is known."""
    timed = [(row, at) for row in rows if (at := number(row["ms"])) is not None]
    if not timed:
        raise NothingToDraw("no row has a time")
    last = max([at for _, at in timed] + [end for row, _ in timed if (end := number(row.get("lastMs"))) is not None])
    by_cluster = len({row["clusterId"] for row, _ in timed}) > 1
    lanes: dict[str, list[tuple[Row, float]]] = {}
    for row, at in sorted(timed, key=lambda change: (change[1], number(change[0]["offset"]) or 0)):
        feature = f" · {row['feature']}" if len({change["feature"] for change, _ in timed}) > 1 else ""
        lanes.setdefault(f"{row['clusterId']}{feature}" if by_cluster else str(row["feature"]), []).append((row, at))
    names = sorted(lanes)
    counts = [(float(len(lanes[name])),) for name in names]
    selected = [names[index] for index in panels.worst_indexes(counts, intervals.MOST)]
    levels = sorted({_level_name(row) for name in selected for row, _ in lanes[name]}, key=_order)
    chosen_lanes = [Lane(name, _intervals(lanes[name], levels)) for name in selected]
    changes = sum(row["change"] not in _BEGINNINGS for row, _ in timed)
    facts = [
        f"{theme.counted(len(lanes), 'cluster' if by_cluster else 'feature')}",
        theme.counted(changes, "change"),
        times.between(min(at for _, at in timed), last),
    ]
    note = f"{len(selected)} of {len(lanes):,}: those that changed most often" if len(selected) < len(lanes) else ""
    title = "Feature levels over time"
    figure = intervals.draw(panels.Heading(title, facts, note), chosen_lanes, last)
    return Drawn(figure, f"{title}. {'; '.join(facts)}.")


def _intervals(changes: Sequence[tuple[Row, float]], levels: Sequence[str]) -> list[LaneInterval]:
    ends = [at for _, at in changes[1:]]
    return [
        LaneInterval(
            at, end, Style(_level_name(row), _COLORS[levels.index(_level_name(row)) % len(_COLORS)]), _level_name(row)
        )
        for (row, at), end in zip(changes, [*ends, None], strict=True)
        if row["change"] != "removed"
    ]


def _level_name(row: Row) -> str:
    return str(row.get("newName") or row["newLevel"])


def _order(level: str) -> tuple[int, str]:
    return (int(level), "") if level.isdigit() else (1 << 31, level)
