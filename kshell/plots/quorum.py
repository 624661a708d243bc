"""How far voters and observers are behind the quorum's leader: ``quorum``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from kshell.engine.result import Row
from kshell.plots.base import look, panels
from kshell.plots.base.picture import Drawn, Picture, nothing_to_draw, number


class _Replica(NamedTuple):
    """``behind`` is in seconds since it was last caught up, by the leader's clock. ``None``: nobody told."""

    id: str
    role: str
    lag: float | None
    behind: float | None


def draw(rows: list[Row]) -> Drawn:
    """One row: the quorum. Raises UsageError when no lag is known."""
    replicas = _replicas(rows[0])
    if not any(one.lag is not None for one in replicas):
        raise nothing_to_draw(
            PICTURE.name, "no lag is known: only a running quorum tells it", "open the quorum (-q) and ask again"
        )
    bad = [(-1.0 if one.role == "observer" else 0.0, one.lag or 0) for one in replicas]
    kept = [replicas[place] for place in panels.worst(len(replicas), bad)]
    title = "Lag of the metadata quorum"
    facts = _facts(rows[0], replicas)
    note = (
        f"{len(kept)} of {len(replicas):,} replicas: the voters, and the observers that lag the most"
        if len(kept) < len(replicas)
        else ""
    )
    drawn = [panels.Panel("behind the leader's log", "offsets", [panels.Bar(one.lag) for one in kept], look.BLUE)]
    if any(one.behind is not None for one in kept):
        bars = [panels.Bar(one.behind, more="" if one.behind is None else "s ago") for one in kept]
        drawn.append(panels.Panel("last caught up", "seconds before the leader answered", bars, look.SKY))
    figure = panels.draw(panels.Heading(title, facts, note), [f"{one.id} · {one.role}" for one in kept], drawn)
    return Drawn(figure, f"{title}. {'; '.join(facts)}.")


def _replicas(told: Row) -> list[_Replica]:
    leader = told["leaderId"]
    voters, observers = _listed(told["voters"]), _listed(told["observers"])
    now = next((number(one.get("lastFetchTimestamp")) for one in voters if one.get("id") == leader), None)
    if now is None:
        times = (number(one.get("lastFetchTimestamp")) for one in (*voters, *observers))
        now = max((time for time in times if time is not None), default=None)
    found = [_replica(one, "leader" if one.get("id") == leader else "voter", now) for one in voters]
    return [*found, *(_replica(one, "observer", now) for one in observers)]


def _listed(replicas: Any) -> list[Mapping[str, Any]]:
    """By id, as the command lists them; brokers do not tell observers."""
    listed: Iterable[Any] = replicas or ()
    known = [one for one in listed if isinstance(one, Mapping)]
    return sorted(known, key=lambda one: number(one.get("id")) or 0)


def _replica(one: Mapping[str, Any], role: str, now: float | None) -> _Replica:
    caught = number(one.get("lastCaughtUpTimestamp"))
    behind = None if caught is None or now is None else max(0.0, now - caught) / 1000
    return _Replica(look.said(one.get("id"), 12), role, number(one.get("lag")), behind)


def _facts(told: Row, replicas: list[_Replica]) -> list[str]:
    found = [f"node {look.said(told['leaderId'], 12)} leads in epoch {look.said(told['leaderEpoch'], 12)}"]
    high = number(told["highWatermark"])
    if high is not None:
        found.append(f"high watermark {high:,.0f}")
    slowest = max(replicas, key=lambda one: one.lag or 0)
    if not slowest.lag:
        found.append("nobody lags")
    else:
        found.append(f"{slowest.role} {slowest.id} lags the most, by {look.counted(int(slowest.lag), 'offset')}")
    silent = [one for one in replicas if one.lag is None]
    return [*found, f"the lag of {len(silent)} is unknown"] if silent else found


PICTURE = Picture(
    name="lag of the quorum",
    commands=("quorum",),
    needs=("leaderId", "leaderEpoch", "highWatermark", "voters", "observers"),
    draw=draw,
)
