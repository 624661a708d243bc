"""Turn results into text: each format has one function per kind of result, in the module that the format names.

:func:`render` yields chunks of text on demand, so rows of a long log stream through every format; only a table reads
some rows first, to know the widths. All output is escaped in one place, :mod:`kshell.escape`.

Only ``text`` leaves out the ``wide`` columns and cuts values where a terminal is too narrow. All other formats have all
columns and are complete, except that ``html`` may use another layout (``Rows.page``), and that ``html`` and
``markdown`` obey a limit and say what they left out.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator

from kshell.engine.formats import FORMATS
from kshell.engine.result import Result
from kshell.errors import UsageError
from kshell.render.options import Renderer, Renderers, RenderOptions


def renderers(fmt: str) -> Renderers:
    """Import the module of a format and return its functions, by kind of result.

    Raises:
        UsageError: the format does not exist.
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
    """Render a result; yields chunks, each ending in a newline, without other control characters unless ``color``.

    ``width``: columns of the terminal; ``None`` without a terminal: nothing is cut, and names are one per line.
    ``limit``: the most rows and nodes that ``html`` and ``markdown`` show. (``csv`` may hold newlines and tabs in
    quotes.) The front end renders the parts of a ``Many``. Raises UsageError if the format does not exist, and what
    reading the rows raises.
    """
    if result.readable is not None and fmt in FORMATS and FORMATS[fmt].module == "text":
        result = result.readable
    function = _function(renderers(fmt), type(result))
    return function(result, RenderOptions(header=header, width=width, color=color, wide=fmt == "wide", limit=limit))


def _function(functions: Renderers, kind: type[Result]) -> Renderer:
    """Return the function for a kind of result or, if it has none, for its nearest base class."""
    for base in kind.__mro__:
        if base in functions:
            return functions[base]
    raise TypeError(f"{kind.__name__} is no kind of result")
