"""Pictures of ``partitions`` and ``topics``: how many partitions of each topic are offline or under-replicated."""

from __future__ import annotations

from collections import Counter

from kshell.engine.result import Row
from kshell.metadata.partition_state import OFFLINE, ONLINE, UNDER_MIN_ISR, UNDER_REPLICATED
from kshell.plots import panels, theme
from kshell.plots.picture import Drawn, number, picture
from kshell.wording import first_of

_STATES = {ONLINE: theme.BLUE, UNDER_REPLICATED: theme.ORANGE, UNDER_MIN_ISR: theme.PURPLE, OFFLINE: theme.TROUBLE}
_OTHER_STATE = "another state"


@picture("partitions by topic and state", needs=("topic", "partition", "state"), commands=("partitions",))
def draw_partitions(rows: list[Row]) -> Drawn:
    """Draw rows that are partitions, counted by topic. Each partition counts once, in its worst state."""
    counts: dict[str, Counter[str]] = {}
    for row in rows:
        state = str(row["state"])
        counts.setdefault(str(row["topic"]), Counter())[state if state in _STATES else _OTHER_STATE] += 1
    topics = list(counts)
    order = (OFFLINE, UNDER_MIN_ISR, UNDER_REPLICATED, _OTHER_STATE, ONLINE)
    chosen = panels.worst_indexes([tuple(counts[topic][state] for state in order) for topic in topics])
    selected = [topics[place] for place in chosen]
    total = sum(counts.values(), Counter[str]())
    title = "Partitions by topic and state"
    facts = [theme.counted(len(rows), "partition"), *(f"{total[state]:,} {state}" for state in order if total[state])]
    note = (
        f"{len(selected)} of {len(topics):,} topics: those with the most trouble, then the largest"
        if len(selected) < len(topics)
        else ""
    )
    drawn = [
        panels.Panel(state, "partitions", _state_bars(counts, selected, state), _STATES.get(state, theme.INK))
        for state in (*_STATES, _OTHER_STATE)
        if total[state] or state in (ONLINE, OFFLINE)
    ]
    figure = panels.draw(panels.Heading(title, facts, note), selected, drawn, same_scale=True)
    return Drawn(figure, f"{title}. {theme.counted(len(topics), 'topic')}. {', '.join(facts)}.")


def _state_bars(counts: dict[str, Counter[str]], topics: list[str], state: str) -> list[panels.Bar]:
    return [panels.Bar(counts[topic][state], counts[topic][state] if state == OFFLINE else 0) for topic in topics]


_TROUBLES = (
    ("underReplicated", "under-replicated", theme.ORANGE),
    ("underMinIsr", "under min ISR", theme.PURPLE),
    ("offline", "offline", theme.TROUBLE),
)


@picture("partition states by topic", needs=("name", "partitions", "underReplicated", "offline"), commands=("topics",))
def draw_topics(rows: list[Row]) -> Drawn:
    """Draw rows that are topics. One panel per problem, because a partition may have several problems."""
    troubles = [trouble for trouble in _TROUBLES if trouble[0] in rows[0]]
    bad = [(*(_count(row, name) for name, _, _ in reversed(troubles)), _count(row, "partitions")) for row in rows]
    selected = [rows[place] for place in panels.worst_indexes(bad)]
    title = "Partitions by topic, and what is wrong with them"
    facts = _facts(rows, troubles)
    note = (
        f"{len(selected)} of {len(rows):,} topics: those with the most trouble, then the largest"
        if len(selected) < len(rows)
        else ""
    )
    drawn = [panels.Panel("all partitions", "partitions", _bars(selected, "partitions"), theme.BLUE)]
    drawn += [
        panels.Panel(trouble_name, "partitions", _bars(selected, name, name == "offline"), color)
        for name, trouble_name, color in troubles
    ]
    figure = panels.draw(
        panels.Heading(title, facts, note), [str(row["name"]) for row in selected], drawn, same_scale=True
    )
    return Drawn(figure, f"{title}. {'; '.join(facts)}.{_worst(rows)}")


def _count(row: Row, name: str) -> float:
    return number(row.get(name)) or 0


def _bars(rows: list[Row], name: str, trouble: bool = False) -> list[panels.Bar]:
    values = [number(row.get(name)) for row in rows]
    return [panels.Bar(value, (value or 0) if trouble else 0) for value in values]


def _facts(rows: list[Row], troubles: list[tuple[str, str, str]]) -> list[str]:
    facts = [f"{theme.counted(len(rows), 'topic')}, {int(sum(_count(row, 'partitions') for row in rows)):,} partitions"]
    for name, trouble_name, _ in reversed(troubles):
        count = int(sum(_count(row, name) for row in rows))
        facts.append(f"{count:,} {trouble_name}" if count else f"none {trouble_name}")
    return facts


def _worst(rows: list[Row]) -> str:
    lost = [theme.short_name(row["name"], 40) for row in rows if _count(row, "offline")]
    if not lost:
        return ""
    return f" Partitions are offline in {first_of(lost, 3)}."
