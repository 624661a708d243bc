"""Objects for a terminal: aligned ``key  value`` lines; what is nested is indented, lists of objects are tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kshell import escape
from kshell.render.cells import blanks, cell, cells, is_scalar
from kshell.render.color import paint, style_of
from kshell.render.look import Look

INDENT = "  "
_SHORT = 3
"""A nested object of so many scalars stays on one line: ``metadata.version  min=1, max=29``."""


def value_lines(value: Any, look: Look) -> Iterator[str]:
    """Any value: an object or a list of objects over several lines, everything else on one."""
    if isinstance(value, Mapping) and value:
        yield from object_lines(value, look)
    elif _is_nested(value, depth=0):
        yield from _list_lines(value, look)
    else:
        yield paint(cell(value, ", "), style_of(value), look.color) + "\n"


def object_lines(value: Mapping[str, Any], look: Look, depth: int = 0) -> Iterator[str]:
    """``key  value`` lines, the values of one object aligned."""
    inline = [cells(escape.terminal(str(key))) for key, item in value.items() if not _is_nested(item, depth)]
    width = max(inline, default=0)
    for key, item in value.items():
        name = escape.terminal(str(key))
        if not _is_nested(item, depth):
            shown = paint(cell(item, ", "), style_of(item), look.color)
            yield f"{paint(name, 'bold', look.color)}{blanks(name, width)}  {shown}\n"
            continue
        yield paint(name, "bold", look.color) + "\n"
        lines = object_lines(item, look, depth + 1) if isinstance(item, Mapping) else _list_lines(item, look)
        yield from (INDENT + line for line in lines)


def _is_nested(value: Any, depth: int) -> bool:
    if is_scalar(value) or not value:
        return False
    if isinstance(value, Mapping):
        return not (depth > 0 and len(value) <= _SHORT and all(map(is_scalar, value.values())))
    return not all(map(is_scalar, value))


def _list_lines(value: list[Any], look: Look) -> Iterator[str]:
    """A list of objects as a table of all their keys; any other list one element a line."""
    if all(isinstance(item, Mapping) and item for item in value):
        names = list(dict.fromkeys(str(key) for item in value for key in item))
        if all(name.isprintable() for name in names):
            from kshell.render.table import table  # late: few values are lists of objects

            # Whoever looks at one thing wants all of it: only tables of many things are cut to fit.
            yield from table(value, names, look._replace(width=None), header=True)
            return
    yield from (cell(item, ", ") + "\n" for item in value)
