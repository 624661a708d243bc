"""What brokers and racks carry, as panels: how many partitions they lead, how many replicas are placed on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kshell.engine.result import Row
from kshell.plots.base import look
from kshell.plots.base.panels import Bar, Panel
from kshell.plots.base.picture import number


def load_panels(kept: Sequence[Row], rows: Sequence[Row]) -> list[Panel]:
    """Panels of the rows that are drawn; what they are compared with comes from all ``rows``."""
    leaders = [Bar(number(row["leaders"])) for row in kept]
    replicas = [_replicas(row) for row in kept]
    active = [row for row in rows if row.get("fenced", False) is False]
    registered = [row for row in rows if row.get("fenced", False) is not None]
    return [
        Panel("leads", "partitions", leaders, look.BLUE, _share(rows, active, "leaders", "leaderSkew")),
        Panel("holds", "replicas", replicas, look.SKY, _share(rows, registered, "replicas", "replicaSkew")),
    ]


def _replicas(row: Row) -> Bar:
    lost = number(row.get("outOfSync")) or 0
    return Bar(number(row["replicas"]), lost, f"· {lost:,.0f} out of sync" if lost else "")


def _share(rows: Sequence[Row], sharing: Sequence[Row], name: str, skew: str) -> tuple[str, float] | None:
    """The even share, as the skews tell it; without them the mean, as rows may have been left out of the answer.

    A rack's share goes by its brokers: where it differs from row to row, there is no one line.
    """
    if skew not in rows[0]:
        counts = [number(row[name]) or 0 for row in sharing]
        return ("mean", sum(counts) / len(counts)) if len(counts) > 1 and "soleRack" not in rows[0] else None
    told = [(number(row[name]), number(row[skew])) for row in rows]
    shares = [count / by for count, by in told if count and by]
    # Skews are rounded to three places.
    if not shares or max(shares) - min(shares) > 0.02 * max(shares):
        return None
    return "even share", sum(shares) / len(shares)


def most_and_least(rows: Sequence[Row], verb: str, name: Callable[[Row], str]) -> list[str]:
    """Who leads the most, and the least of those that may lead."""
    able = [row for row in rows if row.get("fenced", False) is False and row.get("leaderSkew", 0) is not None]
    counts = [(number(row["leaders"]) or 0, row) for row in able]
    if not counts:
        return []
    most, least = max(counts, key=lambda one: one[0]), min(counts, key=lambda one: one[0])
    if most[0] == least[0]:
        return [f"all lead {most[0]:,.0f}"] if len(counts) > 1 else [f"{name(most[1])} {verb} {most[0]:,.0f}"]
    return [f"{name(most[1])} {verb} the most, {most[0]:,.0f}", f"{name(least[1])} the least, {least[0]:,.0f}"]


def sums(rows: Sequence[Row]) -> str:
    """All together, as a sentence."""
    leaders, replicas, lost = (
        int(sum(number(row.get(name)) or 0 for row in rows)) for name in ("leaders", "replicas", "outOfSync")
    )
    gone = f", {lost:,} of them out of sync" if lost else ""
    return f"{look.counted(leaders, 'partition')} led, {look.counted(replicas, 'replica')}{gone}."
