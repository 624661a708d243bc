"""How many partitions of each topic are in which state: ``partitions``."""

from __future__ import annotations

from collections import Counter

from kshell.engine.result import Row
from kshell.metadata.partition_state import OFFLINE, ONLINE, UNDER_MIN_ISR, UNDER_REPLICATED
from kshell.plots.base import look, panels
from kshell.plots.base.picture import Drawn, Picture

_STATES = {ONLINE: look.BLUE, UNDER_REPLICATED: look.ORANGE, UNDER_MIN_ISR: look.PURPLE, OFFLINE: look.TROUBLE}
_OTHER = "another state"


def draw(rows: list[Row]) -> Drawn:
    """A row a partition, counted by topic; each is in one state, the worst that it has."""
    counts: dict[str, Counter[str]] = {}
    for row in rows:
        state = str(row["state"])
        counts.setdefault(str(row["topic"]), Counter())[state if state in _STATES else _OTHER] += 1
    topics = list(counts)
    order = (OFFLINE, UNDER_MIN_ISR, UNDER_REPLICATED, _OTHER, ONLINE)
    chosen = panels.worst(len(topics), [tuple(counts[topic][state] for state in order) for topic in topics])
    kept = [topics[place] for place in chosen]
    total = sum(counts.values(), Counter[str]())
    title = "Partitions by topic and state"
    facts = [look.counted(len(rows), "partition"), *(f"{total[state]:,} {state}" for state in order if total[state])]
    note = (
        f"{len(kept)} of {len(topics):,} topics: those with the most trouble, then the largest"
        if len(kept) < len(topics)
        else ""
    )
    drawn = [
        panels.Panel(state, "partitions", _bars(counts, kept, state), _STATES.get(state, look.INK))
        for state in (*_STATES, _OTHER)
        if total[state] or state in (ONLINE, OFFLINE)
    ]
    figure = panels.draw(panels.Heading(title, facts, note), kept, drawn, alike=True)
    return Drawn(figure, f"{title}. {look.counted(len(topics), 'topic')}. {', '.join(facts)}.")


def _bars(counts: dict[str, Counter[str]], topics: list[str], state: str) -> list[panels.Bar]:
    return [panels.Bar(counts[topic][state], counts[topic][state] if state == OFFLINE else 0) for topic in topics]


PICTURE = Picture(
    name="partitions by topic and state",
    commands=("partitions",),
    needs=("topic", "partition", "state"),
    draw=draw,
)
