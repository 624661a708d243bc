"""Picture of the pipeline's ``broker_states``: the state of each broker over time (fenced, unfenced and so on)."""

from __future__ import annotations

from kshell.engine.result import Row
from kshell.plots import intervals, panels, theme, times
from kshell.plots.intervals import Lane, LaneInterval, Style
from kshell.plots.picture import Drawn, NothingToDraw, number, picture
from kshell.tree.image import format_duration

_STYLES = {
    "unfenced": Style("unfenced", theme.BLUE, "", 2),
    "registered": Style("registered, not yet unfenced", theme.SKY, "....", 3),
    "controlled-shutdown": Style("controlled shutdown", theme.YELLOW, "\\\\\\\\", 4),
    "unregistered": Style("unregistered", theme.INK, "", 2),
    "fenced": Style("fenced", theme.TROUBLE, theme.TROUBLE_HATCH, 5),
}
_OTHER_STATE = Style("another state", theme.PURPLE)


@picture("brokers over time", needs=("broker", "state", "fromMs", "toMs"))
def draw(rows: list[Row]) -> Drawn:
    """Draw rows that are the states of brokers, one lane per broker. Raises NothingToDraw if no row has a time."""
    states_by_broker: dict[str, list[tuple[Row, float, float | None]]] = {}
    for row in rows:
        start = number(row["fromMs"])
        if start is not None:
            states_by_broker.setdefault(_name(row), []).append((row, start, number(row["toMs"])))
    if not states_by_broker:
        raise NothingToDraw("no row says when it begins")
    last = max(_end(*state) for states in states_by_broker.values() for state in states)
    bad = [(_fenced(states), float(len(states))) for states in states_by_broker.values()]
    names = list(states_by_broker)
    selected = [names[index] for index in panels.worst_indexes(bad, intervals.MOST)]
    lanes = [
        Lane(
            name, [LaneInterval(start, end, _STYLES.get(str(row["state"]), _OTHER_STATE)) for row, start, end in states]
        )
        for name, states in states_by_broker.items()
        if name in selected
    ]
    facts = _facts(states_by_broker, last)
    note = f"{len(selected)} of {len(names):,} brokers: those longest fenced" if len(selected) < len(names) else ""
    title = "Brokers over time"
    figure = intervals.draw(panels.Heading(title, facts, note), lanes, last, "state:")
    return Drawn(figure, f"{title}. {'; '.join(facts)}.")


def _name(row: Row) -> str:
    return f"broker {row['broker']}"


def _end(row: Row, start: float, end: float | None) -> float:
    return start + (number(row.get("durationMs")) or 0) if end is None else end


def _fenced(states: list[tuple[Row, float, float | None]]) -> float:
    return sum(_end(row, start, end) - start + 1 for row, start, end in states if row["state"] == "fenced")


def _facts(states_by_broker: dict[str, list[tuple[Row, float, float | None]]], last: float) -> list[str]:
    start = min(start for states in states_by_broker.values() for _, start, _ in states)
    facts = [theme.counted(len(states_by_broker), "broker"), times.between(start, last)]
    now = [name for name, states in states_by_broker.items() if states[-1][0]["state"] == "fenced"]
    fencings = sum(row["state"] == "fenced" for states in states_by_broker.values() for row, _, _ in states)
    if fencings:
        facts.append(f"fenced {theme.counted(fencings, 'time')}")
        name = max(states_by_broker, key=lambda name: _fenced(states_by_broker[name]))
        facts.append(f"longest: {name}, {format_duration(_fenced(states_by_broker[name]))} in all")
    facts.append(
        f"fenced at the end: {', '.join(now[:5])}{'…' if len(now) > 5 else ''}" if now else "none fenced at the end"
    )
    return facts
