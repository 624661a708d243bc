"""Picture of ``quorum``: how far voters and observers are behind the leader of the metadata quorum."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kshell.engine.result import Row
from kshell.plots import panels, theme
from kshell.plots.picture import Drawn, NothingToDraw, number, picture


class _Replica(NamedTuple):
    """A replica: its lag in offsets, and the seconds since it last caught up; ``None`` for what is not reported."""

    id: str
    role: str
    lag: float | None
    behind: float | None


@picture(
    "lag of the quorum", needs=("leaderId", "leaderEpoch", "highWatermark", "voters", "observers"), commands=("quorum",)
)
def draw(rows: list[Row]) -> Drawn:
    """Draw a single row, the quorum. Raises NothingToDraw if no lag is known."""
    replicas = _replicas(rows[0])
    if not any(replica.lag is not None for replica in replicas):
        raise NothingToDraw("no lag is known: only a running quorum reports it", "open the quorum (-q) and ask again")
    bad = [(-1.0 if replica.role == "observer" else 0.0, replica.lag or 0) for replica in replicas]
    selected = [replicas[place] for place in panels.worst_indexes(bad)]
    title = "Lag of the metadata quorum"
    facts = _facts(rows[0], replicas)
    note = (
        f"{len(selected)} of {len(replicas):,} replicas: the voters, and the observers that lag the most"
        if len(selected) < len(replicas)
        else ""
    )
    drawn = [
        panels.Panel(
            "behind the leader's log", "offsets", [panels.Bar(replica.lag) for replica in selected], theme.BLUE
        )
    ]
    if any(replica.behind is not None for replica in selected):
        bars = [panels.Bar(replica.behind, more="" if replica.behind is None else "s ago") for replica in selected]
        drawn.append(panels.Panel("last caught up", "seconds before the leader answered", bars, theme.SKY))
    figure = panels.draw(
        panels.Heading(title, facts, note), [f"{replica.id} · {replica.role}" for replica in selected], drawn
    )
    return Drawn(figure, f"{title}. {'; '.join(facts)}.")


def _replicas(quorum: Row) -> list[_Replica]:
    leader = quorum["leaderId"]
    voters, observers = _listed(quorum["voters"]), _listed(quorum["observers"])
    now = next((number(node.get("lastFetchTimestamp")) for node in voters if node.get("id") == leader), None)
    if now is None:
        times = (number(node.get("lastFetchTimestamp")) for node in (*voters, *observers))
        now = max((time for time in times if time is not None), default=None)
    members = [_replica(node, "leader" if node.get("id") == leader else "voter", now) for node in voters]
    return [*members, *(_replica(node, "observer", now) for node in observers)]


def _listed(replicas: Iterable[object] | None) -> list[Row]:
    """Return voters or observers sorted by id, as the command lists them; none if they were not reported."""
    listed: Iterable[object] = replicas or ()
    nodes = [node for node in listed if isinstance(node, Mapping)]
    return sorted(nodes, key=lambda node: number(node.get("id")) or 0)


def _replica(node: Row, role: str, now: float | None) -> _Replica:
    caught = number(node.get("lastCaughtUpTimestamp"))
    behind = None if caught is None or now is None else max(0.0, now - caught) / 1000
    return _Replica(theme.short_name(node.get("id"), 12), role, number(node.get("lag")), behind)


def _facts(quorum: Row, replicas: list[_Replica]) -> list[str]:
    facts = [
        f"node {theme.short_name(quorum['leaderId'], 12)} leads in epoch {theme.short_name(quorum['leaderEpoch'], 12)}"
    ]
    high = number(quorum["highWatermark"])
    if high is not None:
        facts.append(f"high watermark {high:,.0f}")
    slowest = max(replicas, key=lambda replica: replica.lag or 0)
    if not slowest.lag:
        facts.append("nobody lags")
    else:
        facts.append(f"{slowest.role} {slowest.id} lags the most, by {theme.counted(int(slowest.lag), 'offset')}")
    silent = [replica for replica in replicas if replica.lag is None]
    return [*facts, f"the lag of {len(silent)} is unknown"] if silent else facts
