"""Values for people: one line each, escaped, and how wide they are on a terminal."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable, Mapping
from typing import Any

from kshell import escape

ELLIPSIS = "…"
GAP = "  "
"""Between two columns."""


def is_scalar(value: Any) -> bool:
    """Whether the value is neither a list nor an object."""
    return not isinstance(value, Mapping | list | tuple)


def scalar(value: Any) -> str:
    """``null`` reads ``-``, an empty string ``""``; numbers as Python writes them (``50.0``)."""
    if isinstance(value, str):
        return escape.terminal(value) if value else '""'
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)


def cell(value: Any, comma: str = ",") -> str:
    """A value on one line: lists ``1,2,3``, objects ``min=1,max=3``; what is nested deeper reads as compact JSON."""
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
    """The columns that an escaped text takes on a terminal: East Asian wide characters take two, marks none."""
    if text.isascii():
        return len(text)
    from wcwidth import wcswidth  # late: most names are ASCII

    return max(0, wcswidth(text))


def blanks(text: str, width: int) -> str:
    """What is missing from the text to a width, in blanks; nothing when it is wider."""
    return " " * (width - cells(text))


def clip(text: str, width: int) -> str:
    """The text, or as much of it as leaves room for ``…`` within a width."""
    if cells(text) <= width:
        return text
    end = bisect.bisect_right(range(len(text)), width - 1, key=lambda end: cells(text[:end])) - 1
    return text[: max(end, 0)] + ELLIPSIS


def clip_inside(text: str, width: int) -> str:
    """The text, or its beginning and its end with ``…`` between them, within a width: the end of a name may matter."""
    size = cells(text)
    if size <= width:
        return text
    tail = (width - cells(ELLIPSIS)) // 2
    start = bisect.bisect_left(range(len(text)), size - tail, key=lambda start: cells(text[:start]))
    while start < len(text) and cells(text[start]) == 0:  # a mark would go with the dots
        start += 1
    end = text[start:]
    return clip(text, width - cells(end)) + end


def is_number(value: Any) -> bool:
    """Whether people read it as a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def are_numbers(values: Iterable[Any]) -> bool:
    """Whether all values that are known are numbers, and there are some."""
    known = [value for value in values if value is not None]
    return bool(known) and all(map(is_number, known))


_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


def rows_of(text: str, columns: int) -> int:
    """Rows of the terminal that the text takes, long lines wrapped."""
    lines = _ESCAPES.sub("", text).split("\n")
    if lines[-1] == "":
        lines.pop()
    return sum(1 + max(len(line) - 1, 0) // max(columns, 1) for line in lines)
