"""Pictures of answers. A picture is one module here, which declares its ``PICTURE``; matplotlib draws them.

An answer has the picture whose columns it has: whatever command, or SQL, gave them. Where several fit, it is the one
that needs the most columns.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from kshell.discovery import module_names
from kshell.engine.result import Column, Report, Result, Row, Rows
from kshell.errors import UsageError
from kshell.extras import require
from kshell.plots.base.look import own_settings
from kshell.plots.base.picture import Picture, nothing_to_draw
from kshell.plots.base.plot import Plot

__all__ = ["Picture", "Plot", "draw", "draw_rows", "picture_of", "pictures"]


@cache
def pictures() -> tuple[Picture, ...]:
    """Every picture that there is, those that need the most columns first."""
    found: list[Picture] = [importlib.import_module(f"{__name__}.{name}").PICTURE for name in module_names(__path__)]
    return tuple(sorted(found, key=lambda picture: (-len(picture.needs), picture.name)))


def picture_of(answer: Result) -> Picture | None:
    """The picture that an answer has, or ``None``. Loads no plotting library."""
    found = _found(answer)
    return found[0] if found else None


def draw(answer: Result) -> Plot:
    """Draws an answer. Its rows are read, and kept, if that was not done before.

    Raises UsageError: it has no picture, there is nothing in it to draw, matplotlib is not installed.
    """
    found = _found(answer)
    if found is None:
        commands = dict.fromkeys(command for picture in pictures() for command in picture.commands)
        raise UsageError("there is no picture of this answer", hint=f"these have one: {', '.join(commands)}")
    picture, part = found
    rows = _rows(part)
    if not rows:
        raise nothing_to_draw(picture.name, "the answer has no rows")
    require("plot", "notebook", "matplotlib")
    with own_settings():
        return Plot(*picture.draw(rows))


def draw_rows(rows: Sequence[Row]) -> Plot:
    """Draws rows of elsewhere, such as those of a pipeline's table. Raises as :func:`draw` does."""
    return draw(Rows(tuple(map(Column, rows[0] if rows else ())), rows))


def _found(answer: Result) -> tuple[Picture, Rows | Mapping[str, object]] | None:
    """The picture, and the part of the answer that it shows."""
    for part in _parts(answer):
        names = {column.name for column in part.columns} if isinstance(part, Rows) else set(part)
        for picture in pictures():
            if names.issuperset(picture.needs) and (not picture.any_of or not names.isdisjoint(picture.any_of)):
                return picture, part
    return None


def _parts(answer: Result) -> Iterator[Rows | Mapping[str, object]]:
    if isinstance(answer, Rows):
        yield answer
    elif isinstance(answer, Report):
        yield from (section.body for section in answer.sections)


def _rows(part: Rows | Mapping[str, object]) -> list[Row]:
    """Rows, an object as one of them."""
    if not isinstance(part, Rows):
        return [part]
    rows = list(part.rows)
    part.rows = rows
    return rows
