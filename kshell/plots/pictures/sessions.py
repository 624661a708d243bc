"""What each broker was over time, one lane per broker: the pipeline's ``broker_states``."""

from __future__ import annotations

from kshell.engine.result import Row
from kshell.plots import intervals, panels, theme, times
from kshell.plots.intervals import Lane, Stretch, Style
from kshell.plots.picture import Drawn, NothingToDraw, number, picture

_STYLES = {
    "unfenced": Style("unfenced", theme.BLUE, "", 2),
    "registered": Style("registered, not yet unfenced", theme.SKY, "....", 3),
    "controlled-shutdown": Style("controlled shutdown", theme.YELLOW, "\\\\\\\\", 4),
    "unregistered": Style("unregistered", theme.INK, "", 2),
    "fenced": Style("fenced", theme.TROUBLE, theme.TROUBLE_HATCH, 5),
}
_OTHER = Style("another state", theme.PURPLE)


@picture("brokers over time", needs=("broker", "state", "fromMs", "toMs"))
def draw(rows: list[Row]) -> Drawn:
    """One row per stretch of time. Raises UsageError where none has a time."""
    found: dict[str, list[tuple[Row, float, float | None]]] = {}
    for row in rows:
        start = number(row["fromMs"])
        if start is not None:
            found.setdefault(_name(row), []).append((row, start, number(row["toMs"])))
    if not found:
        raise NothingToDraw("no row says when it begins")
    last = max(_end(*state) for told in found.values() for state in told)
    bad = [(_fenced(told), float(len(told))) for told in found.values()]
    names = list(found)
    kept = [names[place] for place in panels.worst(len(names), bad)][: intervals.MOST]
    lanes = [
        Lane(name, [Stretch(start, end, _STYLES.get(str(row["state"]), _OTHER)) for row, start, end in told])
        for name, told in found.items()
        if name in kept
    ]
    facts = _facts(found, last)
    note = f"{len(kept)} of {len(names):,} brokers: those longest fenced" if len(kept) < len(names) else ""
    title = "Brokers over time"
    figure = intervals.draw(panels.Heading(title, facts, note), lanes, last, "state:")
    return Drawn(figure, f"{title}. {'; '.join(facts)}.")


def _name(row: Row) -> str:
    return f"broker {row['broker']}"


def _end(row: Row, start: float, end: float | None) -> float:
    return start + (number(row.get("durationMs")) or 0) if end is None else end


def _fenced(told: list[tuple[Row, float, float | None]]) -> float:
    return sum(_end(row, start, end) - start + 1 for row, start, end in told if row["state"] == "fenced")


def _facts(found: dict[str, list[tuple[Row, float, float | None]]], last: float) -> list[str]:
    start = min(start for told in found.values() for _, start, _ in told)
    facts = [theme.counted(len(found), "broker"), times.between(start, last)]
    now = [name for name, told in found.items() if told[-1][0]["state"] == "fenced"]
    fencings = sum(row["state"] == "fenced" for told in found.values() for row, _, _ in told)
    if fencings:
        facts.append(f"fenced {theme.counted(fencings, 'time')}")
        name = max(found, key=lambda name: _fenced(found[name]))
        facts.append(f"longest: {name}, {times.lasting(_fenced(found[name]))} in all")
    facts.append(
        f"fenced at the end: {', '.join(now[:5])}{'…' if len(now) > 5 else ''}" if now else "none fenced at the end"
    )
    return facts
