"""Draw results as pictures with matplotlib: a result comes in, a :class:`Plot` goes out.

A picture is one decorated function in a module of :mod:`kshell.plots.pictures`. The other modules draw the parts: bars
side by side (``panels``), bars over time (``strips``), states over time (``intervals``), and a common ``theme``.

The columns of a result decide which picture it gets, whatever command or SQL query made them. If several pictures fit,
the one that needs the most columns is drawn.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from kshell.discovery import module_names
from kshell.engine.result import Column, Report, Result, Row, Rows
from kshell.errors import UsageError
from kshell.extras import require
from kshell.plots.picture import DECLARED, NothingToDraw, Picture, Plot
from kshell.plots.theme import own_settings

__all__ = ["Picture", "Plot", "declared_pictures", "draw", "draw_rows", "picture_of"]


@cache
def declared_pictures() -> tuple[Picture, ...]:
    """Import and return all pictures, those that need the most columns first."""
    package = importlib.import_module(f"{__name__}.pictures")
    for name in module_names(package.__path__):
        importlib.import_module(f"{package.__name__}.{name}")
    return tuple(sorted(DECLARED.values(), key=lambda picture: (-len(picture.needs), picture.name)))


def picture_of(answer: Result) -> Picture | None:
    """Return the picture for a result, or ``None``. Does not import matplotlib."""
    match = _match(answer)
    return match[0] if match else None


def draw(answer: Result, *, interactive: bool = False) -> Plot:
    """Draw a result, whose rows are read into memory. ``interactive``: make a Vega-Lite chart as well.

    Raises UsageError if there is no such picture for the result, its rows hold nothing to draw, or matplotlib is
    missing.
    """
    match = _match(answer)
    if match is None:
        commands = dict.fromkeys(command for picture in declared_pictures() for command in picture.commands)
        raise UsageError("there is no picture of this answer", hint=f"these have one: {', '.join(commands)}")
    picture, part = match
    if interactive and picture.spec is None:
        raise UsageError(f"{picture.name}: there is no interactive picture", hint="timeline has one; plot() draws this")
    rows = _rows(part)
    try:
        if not rows:
            raise NothingToDraw("the answer has no rows")
        require("plot", "notebook", "matplotlib")
        with own_settings():
            return Plot(*picture.draw(rows), picture.spec(rows) if interactive and picture.spec else None)
    except NothingToDraw as nothing:
        raise UsageError(f"nothing to draw for {picture.name}: {nothing}", hint=nothing.hint) from None


def draw_rows(rows: Sequence[Row]) -> Plot:
    """Draw rows that are not from a command, such as those of a pipeline's table. Raises as :func:`draw` does."""
    return draw(Rows(tuple(map(Column, rows[0] if rows else ())), rows))


def _match(answer: Result) -> tuple[Picture, Rows | Mapping[str, object]] | None:
    """Return the picture for a result, and the part of the result that it shows; ``None`` if no picture fits."""
    for part in _parts(answer):
        names = {column.name for column in part.columns} if isinstance(part, Rows) else set(part)
        for picture in declared_pictures():
            if names.issuperset(picture.needs) and (not picture.any_of or not names.isdisjoint(picture.any_of)):
                return picture, part
    return None


def _parts(answer: Result) -> Iterator[Rows | Mapping[str, object]]:
    if isinstance(answer, Rows):
        yield answer
    elif isinstance(answer, Report):
        yield from (section.body for section in answer.sections)


def _rows(part: Rows | Mapping[str, object]) -> list[Row]:
    """Read the rows of a part into memory; an object is one row."""
    if not isinstance(part, Rows):
        return [part]
    rows = list(part.rows)
    part.rows = rows
    return rows
