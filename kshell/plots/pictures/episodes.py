"""Picture of the pipeline's ``isr_episodes``: how long partitions lacked in-sync replicas, counted by length."""

from __future__ import annotations

from kshell.engine.result import Row
from kshell.plots import panels, theme
from kshell.plots.picture import Drawn, NothingToDraw, number, picture


@picture("how long partitions lacked in-sync replicas", needs=("lasted", "episodes", "leaderless"))
def draw(rows: list[Row]) -> Drawn:
    """Draw rows that are ranges of lengths, shortest first. Raises NothingToDraw if there was no episode."""
    counts = [(str(row["lasted"]), number(row["episodes"]) or 0, number(row["leaderless"]) or 0) for row in rows]
    total = int(sum(count for _, count, _ in counts))
    leaderless = int(sum(count for _, _, count in counts))
    if not total:
        raise NothingToDraw("there was none")
    facts = [theme.counted(total, "episode")]
    facts.append(
        f"in {leaderless:,} of them the partition had no leader for a while"
        if leaderless
        else "the partition always had a leader"
    )
    most = max(counts, key=lambda count: count[1])
    facts.append(f"most often {theme.short_name(most[0], 40)}: {most[1]:,.0f}")
    bars = [panels.Bar(count, bad, f"· {bad:,.0f} without a leader" if bad else "") for _, count, bad in counts]
    title = "How long partitions lacked in-sync replicas"
    figure = panels.draw(
        panels.Heading(title, facts),
        [lasted for lasted, _, _ in counts],
        [panels.Panel("episodes", "episodes", bars, theme.ORANGE)],
    )
    return Drawn(figure, f"{title}. {'; '.join(facts)}.")
