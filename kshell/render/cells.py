"""Write values on one escaped line for the user, measure how wide they are on a terminal, and cut them."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable, Mapping
from typing import Any

from kshell import escape

ELLIPSIS = "…"
GAP = "  "
"""The blanks between two columns of a table."""


def is_scalar(value: object) -> bool:
    """Whether the value is neither a list nor an object."""
    return not isinstance(value, Mapping | list | tuple)


def scalar(value: object) -> str:
    """Write a value without parts: ``-`` for null, ``""`` for an empty string, numbers as in Python (``50.0``)."""
    if isinstance(value, str):
        return escape.terminal(value) if value else '""'
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)


def cell(value: Any, comma: str = ",") -> str:
    """Write a value on one line: a list as ``1,2,3``, an object as ``min=1,max=3``, nested ones as compact JSON."""
    if is_scalar(value):
        return scalar(value)
    if not value:
        return "{}" if isinstance(value, Mapping) else "[]"
    if isinstance(value, Mapping):
        if all(map(is_scalar, value.values())):
            return comma.join(f"{escape.terminal(str(key))}={scalar(item)}" for key, item in value.items())
    elif all(map(is_scalar, value)):
        return comma.join(map(scalar, value))
    from kshell.json_text import to_json

    return to_json(value)


def cells(text: str) -> int:
    """Return the columns that an escaped text takes on a terminal: wide characters take two, combining marks none."""
    if text.isascii():
        return len(text)
    from wcwidth import wcswidth  # late: most names are ASCII

    return max(0, wcswidth(text))


def blanks(text: str, width: int) -> str:
    """Return the blanks that pad a text to a width; empty if it is wider."""
    return " " * (width - cells(text))


def clip(text: str, width: int) -> str:
    """Cut a text to a width, with ``…`` at its end if something is missing."""
    if cells(text) <= width:
        return text
    return text[: fitting(text, width - 1)] + ELLIPSIS


def fitting(text: str, width: int) -> int:
    """Return how many characters of a text, from its beginning, take at most ``width`` columns."""
    return max(bisect.bisect_right(range(len(text) + 1), width, key=lambda end: cells(text[:end])) - 1, 0)


def clip_inside(text: str, width: int) -> str:
    """Cut a text to a width in its middle, with ``…`` there, as names often differ only at the end."""
    size = cells(text)
    if size <= width:
        return text
    tail = (width - cells(ELLIPSIS)) // 2
    start = bisect.bisect_left(range(len(text)), size - tail, key=lambda start: cells(text[:start]))
    while start < len(text) and cells(text[start]) == 0:  # a combining mark would be drawn on the dots
        start += 1
    end = text[start:]
    return clip(text, width - cells(end)) + end


def is_number(value: object) -> bool:
    """Whether a value is shown as a number; a boolean is not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def are_numbers(values: Iterable[object]) -> bool:
    """Whether all values but null are numbers, and there is at least one."""
    present = [value for value in values if value is not None]
    return bool(present) and all(map(is_number, present))


_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


def rows_of(text: str, columns: int) -> int:
    """Return how many rows of a terminal with so many columns the text takes, with long lines wrapped."""
    lines = _ESCAPES.sub("", text).split("\n")
    if lines[-1] == "":
        lines.pop()
    return sum(1 + max(cells(line) - 1, 0) // max(columns, 1) for line in lines)
