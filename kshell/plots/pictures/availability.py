"""Picture of the pipeline's ``availability``: how available topics, brokers or clusters were, by month.

A grid with one cell per thing and month, which has the percentage and, if that is low, a colour.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from kshell.engine.result import Row
from kshell.plots import panels, theme
from kshell.plots.picture import Drawn, NothingToDraw, number, picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MONTHS = 12
_KEYS = (
    (0.9999, None),
    (0.999, theme.LegendKey("below 99.99 %", theme.YELLOW)),
    (0.99, theme.LegendKey("below 99.9 %", theme.ORANGE)),
    (0.0, theme.LegendKey("below 99 %", theme.TROUBLE)),
)
"""(least share of time with a leader, colour of the cell), the highest share first."""


@picture("time with a leader, by month", needs=("month", "scope", "name", "availability"))
def draw(rows: list[Row]) -> Drawn:
    """Draw rows with one share per month and thing, of the last twelve months. Raises NothingToDraw without a share."""
    covered = [(row, share) for row in rows if (share := number(row["availability"])) is not None]
    if not covered:
        raise NothingToDraw("no time is covered")
    months = sorted({str(row["month"]) for row, _ in covered})[-_MONTHS:]
    shares: dict[str, dict[str, float]] = {}
    for row, share in covered:
        if str(row["month"]) in months:
            shares.setdefault(_name(row), {})[str(row["month"])] = share
    names = list(shares)
    bad = [tuple(1 - share for share in sorted(shares[name].values())[:1]) for name in names]
    selected = [names[place] for place in panels.worst_indexes(bad)]
    cells = [[_share_cell(shares[name].get(month)) for month in months] for name in selected]
    facts, title = _facts(shares), "Time with a leader, by month"
    note = f"{len(selected)} of {len(names):,}: those with the worst month" if len(selected) < len(names) else ""
    figure = _grid(panels.Heading(title, facts, note), selected, months, cells, "")
    return Drawn(figure, f"{title}. {'; '.join(facts)}.")


def _name(row: Row) -> str:
    return f"{row['scope']} {row['name']}"


def _share_cell(share: float | None) -> GridCell | None:
    if share is None:
        return None
    return GridCell(percent(share), next(key for least, key in _KEYS if share >= least))


def percent(share: float) -> str:
    """Format a share of 0 to 1 as ``99.980 %``, rounded down so that only 1 becomes 100 %."""
    return f"{share * 100:.0f} %" if share in (0, 1) else f"{min(int(share * 1e5) / 1e3, 99.999):.3f} %"


def _facts(shares: dict[str, dict[str, float]]) -> list[str]:
    worst, name, month = min(
        (share, name, month) for name, shares_by_month in shares.items() for month, share in shares_by_month.items()
    )
    if worst == 1:
        return ["no partition was ever without a leader"]
    return [f"worst: {theme.short_name(name, 48)}, {percent(worst)} in {month}"]


_PITCH, _HEAD, _FOOT = 27, 50, 12
_LABEL = 300.0
_WIDEST = 110.0
"""The most width of a cell, in pixels."""
_GAP = 3


class GridCell(NamedTuple):
    """A cell of the grid: its text, and the legend's entry for its colour; ``None`` for no colour, if all is well."""

    label: str
    key: theme.LegendKey | None = None


def _grid(
    heading: panels.Heading,
    names: Sequence[str],
    columns: Sequence[str],
    cells: Sequence[Sequence[GridCell | None]],
    legend: str,
) -> Figure:
    """Draw the grid. ``cells`` has one row per name, with one cell per column (``None``: nothing is known)."""
    figure, top = theme.page(heading.title, heading.facts, _HEAD + _PITCH * len(names) + _FOOT, heading.note)
    keys = sorted({cell.key for row in cells for cell in row if cell and cell.key})
    if keys:
        theme.legend(figure, theme.MARGIN, top + 10, legend, keys, "")
    labels = [theme.fitting(theme.drawable_name(name, 48), _LABEL, tail=theme.TAIL) for name in names]
    grid_left = theme.MARGIN + max(map(theme.width_of, labels)) + 12
    width = min(_WIDEST, (theme.WIDTH - theme.MARGIN - grid_left) / len(columns))
    for place, column in enumerate(columns):
        heading_text = theme.fitting(theme.drawable_name(column), width - _GAP, theme.TINY)
        theme.write(
            figure,
            grid_left + width * (place + 0.5),
            top + _HEAD - 12,
            heading_text,
            size=theme.TINY,
            ha="center",
            weight="bold",
        )
    for line, (label, row) in enumerate(zip(labels, cells, strict=True)):
        middle = top + _HEAD + _PITCH * (line + 0.5)
        theme.write(figure, grid_left - 12, middle, label, ha="right")
        for place, cell in enumerate(row):
            if cell is not None:
                _cell(figure, cell, (grid_left + width * place, middle), width - _GAP)
    return figure


def _cell(figure: Figure, cell: GridCell, at: tuple[float, float], width: float) -> None:
    """Draw a cell. ``at``: its left edge and its vertical middle, in pixels from the top left."""
    from matplotlib.patches import Rectangle

    x, middle = at
    page_height = figure.get_size_inches()[1] * figure.dpi
    if cell.key is not None:
        height = _PITCH - _GAP
        place, size = (
            (x / theme.WIDTH, 1 - (middle + height / 2) / page_height),
            (width / theme.WIDTH, height / page_height),
        )
        box = Rectangle(place, *size, facecolor=cell.key.color, edgecolor=theme.INK, linewidth=0.6)
        box.set_transform(figure.transFigure)
        figure.add_artist(box)
    color = theme.INK if cell.key is None else theme.on(cell.key.color)
    text = theme.fitting(cell.label, width - 4, theme.TINY)
    theme.write(figure, x + width / 2, middle, text, size=theme.TINY, ha="center", color=color)
