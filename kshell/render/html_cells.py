"""Values on a page: cells of tables, objects as tables of their fields, what is long folded or clipped."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kshell import escape
from kshell.engine.result import Difference
from kshell.render.cells import ELLIPSIS, cell, is_scalar
from kshell.render.html_style import (
    CLIPPED,
    DIM,
    LEFT,
    NEW,
    OLD,
    RIGHT,
    ROW,
    SUMMARY,
    TABLE,
    WRAPPED,
    badge,
    dim,
)

LONG = 60
"""Characters of a cell that fit on a line."""
_SHORT = 30
"""Words of so many characters stay on one line, longer ones if there is room: they must not push others off a page."""
_WORD = re.compile(r"\S+")
_OPEN_DEPTH = 2
"""Objects in objects so deep are folded."""
_TELLING = (("leader", "isr"), ("fenced", "rack"), ("host", "port"))
"""Fields that tell most of an object that has them all: a partition's, a broker's, an endpoint's."""
_MOST = 3


def words(value: Any) -> str:
    """A value on one line, escaped for a page."""
    return escape.html(cell(value, ", "))


def is_number(value: Any) -> bool:
    """Whether people read it as a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def td(value: Any, numeric: bool | None = None, tone: str = "") -> str:
    """A cell of a row.

    ``numeric``: whether its column has numbers; ``None``: it stands as its own value would. ``tone``: the cell has to
    carry the row's tone, or is its name.
    """
    if tone:
        mark = badge(tone) if value == tone else f"{badge(tone)} {words(value)}"
        return f'<td style="{LEFT}">{mark}</td>'
    if value is None:
        return f'<td style="{RIGHT if numeric else LEFT};{DIM}">-</td>'
    if is_number(value):
        return f'<td style="{LEFT if numeric is False else RIGHT}">{value!r}</td>'
    if isinstance(value, list) and value and all(isinstance(item, Difference) for item in value):
        return f'<td style="{LEFT}">{"".join(map(_difference, value))}</td>'
    text = cell(value, ", ")
    shown = escape.html(text)
    if len(text) <= _SHORT:
        return f'<td style="{LEFT}">{shown}</td>'
    if _is_deep(value) and len(text) > LONG:
        return f'<td style="{LEFT}">{folded(value)}</td>'
    if " " in text:
        return f'<td style="{WRAPPED}">{_WORD.sub(_kept, shown)}</td>'
    if len(text) <= LONG:
        return f'<td style="{LEFT}">{shown}</td>'
    return f'<td style="{CLIPPED}" title="{shown}">{shown}</td>'


def _kept(word: re.Match[str]) -> str:
    """A word that lines break nowhere, if it has hyphens: they are often those of an option or a program."""
    is_kept = "-" in word[0] and len(word[0]) <= LONG
    return f'<span style="white-space:nowrap">{word[0]}</span>' if is_kept else word[0]


def _is_deep(value: Any) -> bool:
    """Whether lists or objects are in the value: then it reads as JSON on a line."""
    if is_scalar(value):
        return False
    return not all(map(is_scalar, value.values() if isinstance(value, Mapping) else value))


def _difference(one: Difference) -> str:
    name = f"{escape.html(one.name)}: " if one.name else ""
    old, new = _piece("del", OLD, one.old), _piece("ins", NEW, one.new)
    return f'<div style="max-width:44em;white-space:normal;overflow-wrap:anywhere">{name}{old} → {new}</div>'


def _piece(tag: str, style: str, value: Any) -> str:
    """One side of a difference: whole, an object folded where it is long."""
    text = cell(value, ", ")
    if _is_deep(value) and len(text) > LONG:
        return f'<{tag} style="{style};display:inline-block">{folded(value)}</{tag}>'
    whole = ";white-space:nowrap" if len(text) <= LONG else ""
    return f'<{tag} style="{style}{whole}">{escape.html(text)}</{tag}>'


def folded(value: Any) -> str:
    """An object, or a list of them, behind one line about it."""
    return f"<details>{SUMMARY}{summary(value)}</summary>{nested(value, _OPEN_DEPTH)}</details>"


def summary(value: Any, name: str = "") -> str:
    """An object of a name in one line: the fields that tell most of it; a list by its length and its first element."""
    if not isinstance(value, Mapping):
        more = f"{ELLIPSIS} ({len(value):,})" if len(value) > 1 else ""
        return f"{summary(value[0])} {more}" if isinstance(value[0], Mapping) else dim(_start(cell(value, ", ")))
    flat = [key for key, item in value.items() if _is_flat(item) and item is not None and str(item) != name]
    told = next((keys for keys in _TELLING if set(keys) <= set(flat)), flat[:_MOST])
    if not told:
        return dim(_start(cell(value, ", ")))
    return dim(" · ".join(f"{escape.html(str(key))} {_start(cell(value[key], ', '))}" for key in told))


def _is_flat(value: Any) -> bool:
    return is_scalar(value) or (not isinstance(value, Mapping) and all(map(is_scalar, value)))


def _start(text: str) -> str:
    return escape.html(text if len(text) <= LONG else text[: LONG - 1] + ELLIPSIS)


def nested(value: Any, depth: int = 0) -> str:
    """A value with room: an object's fields, a table of a list of objects, else a line."""
    if isinstance(value, Mapping) and value:
        return "".join(fields(value, depth))
    if not is_scalar(value) and value and all(isinstance(item, Mapping) and item for item in value):
        return "".join(_grid(value))
    return words(value)


def fields(item: Mapping[str, Any], depth: int = 0, caption: str = "") -> Iterator[str]:
    """An object as a table: a row for each field, nested objects inside, the deeper ones folded.

    ``caption`` is markup.
    """
    yield f"{TABLE}{caption}<tbody>\n"
    for key, value in item.items():
        head = f'{ROW}<th scope="row" style="{LEFT}">{escape.html(str(key))}</th>'
        yield f"{head}{_field(value, depth)}</tr>\n"
    yield "</tbody></table>\n"


def _field(value: Any, depth: int) -> str:
    if _is_flat(value) or not value or len(cell(value, ", ")) <= LONG:
        return td(value, False)
    inner = nested(value, depth + 1) if depth < _OPEN_DEPTH else folded(value)
    return f'<td style="{LEFT}">{inner}</td>'


def _grid(items: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A list of objects as a table of all their keys."""
    names = list(dict.fromkeys(str(key) for item in items for key in item))
    heads = "".join(f'<th scope="col" style="{LEFT}">{escape.html(name)}</th>' for name in names)
    yield f"{TABLE}<thead>{ROW}{heads}</tr></thead><tbody>\n"
    for item in items:
        yield f"{ROW}{''.join(td(item.get(name)) for name in names)}</tr>\n"
    yield "</tbody></table>\n"
