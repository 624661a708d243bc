"""A table that is seen at a glance: a box a thing and month, with its number and a colour for how bad it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from kshell.plots.base import look
from kshell.plots.base.panels import Heading

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PITCH, _HEAD, _FOOT = 27, 50, 12
_LABEL = 300.0
_WIDEST = 110.0
"""Pixels of a box."""
_GAP = 3


class Cell(NamedTuple):
    """``key`` is ``None`` for what is as it should be: words on the page alone."""

    words: str
    key: look.Key | None = None


def draw(
    heading: Heading, names: Sequence[str], columns: Sequence[str], cells: Sequence[Sequence[Cell | None]], legend: str
) -> Figure:
    """``cells``: a row a name, in it one a column (``None``: nothing is known)."""
    figure, top = look.page(heading.title, heading.facts, _HEAD + _PITCH * len(names) + _FOOT, heading.note)
    keys = sorted({cell.key for row in cells for cell in row if cell and cell.key})
    if keys:
        look.legend(figure, look.MARGIN, top + 10, legend, keys, "")
    labels = [look.fitting(look.shown(name, 48), _LABEL, tail=look.TAIL) for name in names]
    left = look.MARGIN + max(map(look.width_of, labels)) + 12
    width = min(_WIDEST, (look.WIDTH - look.MARGIN - left) / len(columns))
    for place, column in enumerate(columns):
        words = look.fitting(look.shown(column), width - _GAP, look.TINY)
        look.write(
            figure, left + width * (place + 0.5), top + _HEAD - 12, words, size=look.TINY, ha="center", weight="bold"
        )
    for line, (label, row) in enumerate(zip(labels, cells, strict=True)):
        middle = top + _HEAD + _PITCH * (line + 0.5)
        look.write(figure, left - 12, middle, label, ha="right")
        for place, cell in enumerate(row):
            if cell is not None:
                _cell(figure, cell, (left + width * place, middle), width - _GAP)
    return figure


def _cell(figure: Figure, cell: Cell, at: tuple[float, float], width: float) -> None:
    """``at``: its left and its middle, in pixels from the top left."""
    from matplotlib.patches import Rectangle

    left, middle = at
    whole = figure.get_size_inches()[1] * figure.dpi
    if cell.key is not None:
        height = _PITCH - _GAP
        place, size = (left / look.WIDTH, 1 - (middle + height / 2) / whole), (width / look.WIDTH, height / whole)
        box = Rectangle(place, *size, facecolor=cell.key.color, edgecolor=look.INK, linewidth=0.6)
        box.set_transform(figure.transFigure)
        figure.add_artist(box)
    color = look.INK if cell.key is None else look.on(cell.key.color)
    words = look.fitting(cell.words, width - 4, look.TINY)
    look.write(figure, left + width / 2, middle, words, size=look.TINY, ha="center", color=color)
