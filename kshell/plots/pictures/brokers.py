"""Pictures of ``skew`` and ``brokers --load``: leaders and replicas per broker or rack, compared with an even share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kshell.engine.result import Row
from kshell.plots import panels, theme
from kshell.plots.picture import Drawn, number, picture


@picture(
    "leaders and replicas by broker",
    needs=("leaders", "replicas"),
    commands=("skew", "brokers --load"),
    any_of=("broker", "id"),
)
def draw_brokers(rows: list[Row]) -> Drawn:
    """Draw rows that are brokers."""
    chosen = panels.worst_indexes(_badness(rows))
    selected = [rows[place] for place in chosen]
    title = "Leaders and replicas by broker"
    facts = [*_most_and_least(rows, "leads", _name), *_trouble(rows)]
    note = (
        f"{len(selected)} of {len(rows):,} brokers: those that are furthest from an even share of leaders"
        if len(selected) < len(rows)
        else ""
    )
    figure = panels.draw(
        panels.Heading(title, facts, note), [_label(row) for row in selected], _load_panels(selected, rows)
    )
    return Drawn(figure, f"{title}. {theme.counted(len(rows), 'broker')}. {_sums(rows)} {'; '.join(facts)}.")


def _badness(rows: list[Row]) -> list[tuple[float, ...]]:
    """Return for each broker how far its number of leaders is from the mean, and its replicas out of sync."""
    counts = [number(row["leaders"]) or 0 for row in rows]
    mean = sum(counts) / len(counts)
    return [(abs(count - mean), number(row.get("outOfSync")) or 0) for count, row in zip(counts, rows, strict=True)]


def _id(row: Row) -> Any:
    return row["broker"] if "broker" in row else row["id"]


def _name(row: Row) -> str:
    return f"broker {theme.short_name(_id(row), 24)}"


def _label(row: Row) -> str:
    rack, fenced = row.get("rack"), row.get("fenced", False)
    state = "fenced" if fenced else "not registered" if fenced is None else ""
    return " · ".join(filter(None, (str(_id(row)), None if rack is None else theme.short_name(rack, 20), state)))


def _trouble(rows: list[Row]) -> list[str]:
    fenced = [_name(row) for row in rows if row.get("fenced")]
    if not fenced:
        return []
    return [f"{fenced[0]} is fenced" if len(fenced) == 1 else f"{len(fenced)} brokers are fenced"]


@picture("leaders and replicas by rack", needs=("rack", "leaders", "replicas", "soleRack"), commands=("skew --rack",))
def draw_racks(rows: list[Row]) -> Drawn:
    """Draw rows that are racks."""
    chosen = panels.worst_indexes([(number(row["soleRack"]) or 0, number(row["replicas"]) or 0) for row in rows])
    selected = [rows[place] for place in chosen]
    title = "Leaders and replicas by rack"
    alone = sum(number(row["soleRack"]) or 0 for row in rows)
    facts = [*_most_and_least(rows, "leads", _rack_name), _sole_rack_fact(alone)]
    note = (
        f"{len(selected)} of {len(rows):,} racks: those with the most that is nowhere else, then the fullest"
        if len(selected) < len(rows)
        else ""
    )
    drawn = _load_panels(selected, rows)
    if alone:
        bars = [panels.Bar(value, value or 0) for value in (number(row["soleRack"]) for row in selected)]
        drawn.append(panels.Panel("in no other rack", "partitions", bars, theme.TROUBLE))
    figure = panels.draw(panels.Heading(title, facts, note), [_rack_label(row) for row in selected], drawn)
    return Drawn(figure, f"{title}. {theme.counted(len(rows), 'rack')}. {_sums(rows)} {'; '.join(facts)}.")


def _sole_rack_fact(count: float) -> str:
    if not count:
        return "no partition with several replicas has all of them in one rack"
    has, its = ("has", "its") if count == 1 else ("have", "their")
    return f"{theme.counted(int(count), 'partition')} {has} all {its} replicas in one rack"


def _rack_name(row: Row) -> str:
    return "(no rack)" if row["rack"] is None else theme.short_name(row["rack"], 24)


def _rack_label(row: Row) -> str:
    brokers = number(row.get("brokers"))
    name = "(no rack)" if row["rack"] is None else theme.short_name(row["rack"], 24)
    return name if brokers is None else f"{name} · {theme.counted(int(brokers), 'broker')}"


def _load_panels(selected: Sequence[Row], rows: Sequence[Row]) -> list[panels.Panel]:
    """Return the panels of the ``selected`` rows; the lines to compare with are computed from all ``rows``."""
    leaders = [panels.Bar(number(row["leaders"])) for row in selected]
    replicas = [_replicas(row) for row in selected]
    active = [row for row in rows if row.get("fenced", False) is False]
    registered = [row for row in rows if row.get("fenced", False) is not None]
    return [
        panels.Panel("leads", "partitions", leaders, theme.BLUE, _share(rows, active, "leaders", "leaderSkew")),
        panels.Panel("holds", "replicas", replicas, theme.SKY, _share(rows, registered, "replicas", "replicaSkew")),
    ]


def _replicas(row: Row) -> panels.Bar:
    lost = number(row.get("outOfSync")) or 0
    return panels.Bar(number(row["replicas"]), lost, f"· {lost:,.0f} out of sync" if lost else "")


def _share(rows: Sequence[Row], sharing: Sequence[Row], name: str, skew: str) -> tuple[str, float] | None:
    """Return the (label, number) of the line that bars are compared with; ``None`` if there is no common one.

    It is the even share, computed from a count and its skew, as rows may have been left out of the result. Without
    skews it is the mean. The even share of a rack depends on its brokers: if it differs from row to row, there is none.
    """
    if skew not in rows[0]:
        counts = [number(row[name]) or 0 for row in sharing]
        return ("mean", sum(counts) / len(counts)) if len(counts) > 1 and "soleRack" not in rows[0] else None
    loads = [(number(row[name]), number(row[skew])) for row in rows]
    shares = [count / by for count, by in loads if count and by]
    # Skews are rounded to three places.
    if not shares or max(shares) - min(shares) > 0.02 * max(shares):
        return None
    return "even share", sum(shares) / len(shares)


def _most_and_least(rows: Sequence[Row], verb: str, name: Callable[[Row], str]) -> list[str]:
    """Return statements about which broker or rack leads the most, and the least among those that may lead."""
    able = [row for row in rows if row.get("fenced", False) is False and row.get("leaderSkew", 0) is not None]
    counts = [(number(row["leaders"]) or 0, row) for row in able]
    if not counts:
        return []
    most, least = max(counts, key=lambda pair: pair[0]), min(counts, key=lambda pair: pair[0])
    if most[0] == least[0]:
        return [f"all lead {most[0]:,.0f}"] if len(counts) > 1 else [f"{name(most[1])} {verb} {most[0]:,.0f}"]
    return [f"{name(most[1])} {verb} the most, {most[0]:,.0f}", f"{name(least[1])} the least, {least[0]:,.0f}"]


def _sums(rows: Sequence[Row]) -> str:
    """Return the totals of leaders and replicas as a sentence."""
    leaders, replicas, lost = (
        int(sum(number(row.get(name)) or 0 for row in rows)) for name in ("leaders", "replicas", "outOfSync")
    )
    out_of_sync = f", {lost:,} of them out of sync" if lost else ""
    return f"{theme.counted(leaders, 'partition')} led, {theme.counted(replicas, 'replica')}{out_of_sync}."
