"""Tables for a terminal: aligned columns, two blanks between them, as wide as the terminal allows."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple

from kshell.engine.result import Row
from kshell.render.cells import GAP, blanks, cell, cells, clip
from kshell.render.color import paint, style_of
from kshell.render.options import RenderOptions

SEEN_FIRST = 1000
"""Rows that are read before the first is printed: they decide the widths; wider values further down stand out."""

_EXACT = re.compile(r"[\w-]{22}|\d{4}-\d\d-\d\dT[\d:.]+Z", re.ASCII)
"""Kafka's UUIDs, and times."""

READABLE = 20
"""A column that may be cut still says something at this width."""

NARROWEST = 8
"""A column is never cut to less than this, or than its name."""


class _Column(NamedTuple):
    name: str
    width: int
    right: bool
    limit: int | None
    """The width that values are cut to when a line does not fit otherwise; ``None``: never."""


def table(
    rows: Iterable[Row],
    names: Sequence[str],
    options: RenderOptions,
    *,
    header: bool | None = None,
    seen_first: int = SEEN_FIRST,
    spare: Collection[str] = (),
) -> Iterator[str]:
    """A header line (unless ``header``, or else the options, says no) and a line a row. ``names`` are keys of the rows.

    Those that are ``spare``, too, are left out, the last ones first, until the table fits.
    """
    rest = iter(rows)
    first = list(islice(rest, seen_first))
    layout = _layout(first, names, options, spare)
    if options.header if header is None else header:
        yield _line([(column.name, "bold") for column in layout], layout, options)
    for row in chain(first, rest):
        values = [row.get(column.name) for column in layout]
        yield _line([(cell(value), style_of(value)) for value in values], layout, options)


def _layout(rows: list[Row], names: Sequence[str], options: RenderOptions, spare: Collection[str]) -> list[_Column]:
    layout = []
    for name in names:
        values = [row.get(name) for row in rows]
        width = max([cells(name), *(cells(cell(value)) for value in values)])
        layout.append(_Column(name, width, _is_numeric(values), None))
    room = None if options.wide or options.width is None else options.width
    if room is None or not layout:
        return layout
    flexible = {name for name in names if _may_be_cut(name, [row.get(name) for row in rows])}
    for column in [column for column in reversed(layout) if column.name in spare]:
        if _least(layout, flexible) > room:
            layout.remove(column)
    return _shrink(layout, flexible, room - len(GAP) * (len(layout) - 1))


def _least(layout: list[_Column], flexible: set[str]) -> int:
    """What a line needs where what may be cut is cut, and can still be read."""
    widths = [min(one.width, max(READABLE, cells(one.name))) if one.name in flexible else one.width for one in layout]
    return sum(widths) + len(GAP) * (len(layout) - 1)


def _is_numeric(values: list[Any]) -> bool:
    known = [value for value in values if value is not None]
    return bool(known) and all(isinstance(value, int | float) and not isinstance(value, bool) for value in known)


def _may_be_cut(name: str, values: list[Any]) -> bool:
    """Words and objects may lose their end; ids, times, numbers and lists of them would become wrong ones."""
    if name == "id" or name.endswith("Id"):
        return False
    parts = [part for value in values for part in (value if isinstance(value, list | tuple) else [value])]
    return not all(map(_is_exact, parts))


def _is_exact(value: Any) -> bool:
    if isinstance(value, str):
        return _EXACT.fullmatch(value) is not None
    return not isinstance(value, Mapping | list | tuple)


def _shrink(layout: list[_Column], flexible: set[str], room: int) -> list[_Column]:
    """The widest columns that may be cut get narrower, all to the same width, until the table fits or none can.

    The first one, which says what a row is about, is cut only where that does not do.
    """

    def cut(cap: int, keep: str | None) -> list[_Column]:
        out = []
        for column in layout:
            may = column.name in flexible and column.name != keep
            limit = max(cap, NARROWEST, cells(column.name)) if may else None
            width = column.width if limit is None else min(column.width, limit)
            out.append(_Column(column.name, width, column.right, limit))
        return out

    for keep in (layout[0].name, None):
        for cap in range(max(room, NARROWEST), NARROWEST - 1, -1):
            narrow = cut(cap, keep)
            if sum(column.width for column in narrow) <= room:
                return narrow
    return cut(NARROWEST, None)


def _line(texts: list[tuple[str, str]], layout: list[_Column], options: RenderOptions) -> str:
    limited = [column.limit is not None for column in layout]
    if any(limited) and _length(texts, layout) > (options.width or 0):
        texts = [
            (clip(text, max(column.limit, column.width)) if column.limit is not None else text, style)
            for (text, style), column in zip(texts, layout, strict=True)
        ]
    out = []
    for number, ((text, style), column) in enumerate(zip(texts, layout, strict=True), 1):
        missing, shown = blanks(text, column.width), paint(text, style, options.color)
        # No blanks at a line's end: they would wrap on a narrow terminal.
        out.append(missing + shown if column.right else shown if number == len(layout) else shown + missing)
    return GAP.join(out) + "\n"


def _length(texts: list[tuple[str, str]], layout: list[_Column]) -> int:
    used = sum(max(cells(text), column.width) for (text, _), column in zip(texts, layout, strict=True))
    return used + len(GAP) * (len(layout) - 1)
