"""Results into text: a format has one function for each kind of result, in the module that it declares.

:func:`render` gives chunks, each ending in a newline, made while they are asked for: rows of a long log stream through
every format but the few lines that a table needs to see first. What is printed is escaped in one place, :mod:`.escape`.

Only ``text`` is for people. It shows the columns that are not ``wide``, and cuts where a terminal is too narrow; every
other format has all columns (with the column that ``text`` shows as headings first) and is never cut. But for pages:
``html`` follows what rows have for it (``Rows.page``), and both it and ``markdown`` keep to a limit, and say so.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator

from kshell.engine.formats import FORMATS
from kshell.engine.result import Result
from kshell.errors import UsageError
from kshell.render.options import Renderer, Renderers, RenderOptions


def renderers(fmt: str) -> Renderers:
    """The functions of a format, by kind of result; its module is imported now.

    Raises:
        UsageError: a format that does not exist.
    """
    if fmt not in FORMATS:
        raise UsageError(f"{fmt}: no such format", hint=f"formats: {', '.join(FORMATS)}")
    formats: dict[str, Renderers] = importlib.import_module(f"{__name__}.{FORMATS[fmt].module}").FORMATS
    return formats[fmt]


def render(
    result: Result,
    fmt: str,
    *,
    header: bool = True,
    width: int | None = 80,
    color: bool = False,
    limit: int | None = None,
) -> Iterator[str]:
    """Chunks of text, each ending in a newline; without ``color`` they hold no control character but that newline.

    ``width`` counts a terminal's columns; ``None`` means that the output is no terminal: nothing is cut, and names
    stand one a line. ``limit``: rows of a table and nodes of a tree that a page shows. (``csv`` may hold newlines and
    tabs inside quotes.) The parts of a ``Many`` are for the front end to render one by one. Raises UsageError for a
    format that does not exist; what the rows raise comes through.
    """
    if result.for_people is not None and fmt in FORMATS and FORMATS[fmt].module == "text":
        result = result.for_people
    function = _function(renderers(fmt), type(result))
    return function(result, RenderOptions(header=header, width=width, color=color, wide=fmt == "wide", limit=limit))


def _function(functions: Renderers, kind: type[Result]) -> Renderer:
    """A subclass of a kind is rendered as that kind."""
    for base in kind.__mro__:
        if base in functions:
            return functions[base]
    raise TypeError(f"{kind.__name__} is no kind of result")
