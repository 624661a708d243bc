"""How available topics, brokers or clusters were, by month: the pipeline's ``availability``."""

from __future__ import annotations

from kshell.engine.result import Row
from kshell.plots.base import grid, look, panels
from kshell.plots.base.picture import Drawn, Picture, nothing_to_draw, number

_MONTHS = 12
_KEYS = (
    (0.9999, None),
    (0.999, look.Key("below 99.99 %", look.YELLOW)),
    (0.99, look.Key("below 99.9 %", look.ORANGE)),
    (0.0, look.Key("below 99 %", look.TROUBLE)),
)
"""From which share on a box has which colour."""


def draw(rows: list[Row]) -> Drawn:
    """A row a month and thing; the last twelve months. Raises UsageError where nothing is known."""
    known = [(row, share) for row in rows if (share := number(row["availability"])) is not None]
    if not known:
        raise nothing_to_draw(PICTURE.name, "no time is covered")
    months = sorted({str(row["month"]) for row, _ in known})[-_MONTHS:]
    shares: dict[str, dict[str, float]] = {}
    for row, share in known:
        if str(row["month"]) in months:
            shares.setdefault(_name(row), {})[str(row["month"])] = share
    names = list(shares)
    bad = [tuple(1 - share for share in sorted(shares[name].values())[:1]) for name in names]
    kept = [names[place] for place in panels.worst(len(names), bad)]
    cells = [[_cell(shares[name].get(month)) for month in months] for name in kept]
    facts, title = _facts(shares), "Time with a leader, by month"
    note = f"{len(kept)} of {len(names):,}: those with the worst month" if len(kept) < len(names) else ""
    figure = grid.draw(panels.Heading(title, facts, note), kept, months, cells, "")
    return Drawn(figure, f"{title}. {'; '.join(facts)}.")


def _name(row: Row) -> str:
    return f"{row['scope']} {row['name']}"


def _cell(share: float | None) -> grid.Cell | None:
    if share is None:
        return None
    return grid.Cell(percent(share), next(key for least, key in _KEYS if share >= least))


def percent(share: float) -> str:
    """``99.98 %``; what is not all of it is never rounded to 100."""
    return f"{share * 100:.0f} %" if share in (0, 1) else f"{min(int(share * 1e5) / 1e3, 99.999):.3f} %"


def _facts(shares: dict[str, dict[str, float]]) -> list[str]:
    worst, name, month = min((share, name, month) for name, held in shares.items() for month, share in held.items())
    if worst == 1:
        return ["no partition was ever without a leader"]
    return [f"worst: {look.said(name, 48)}, {percent(worst)} in {month}"]


PICTURE = Picture(
    name="time with a leader, by month",
    commands=(),
    needs=("month", "scope", "name", "availability"),
    draw=draw,
)
