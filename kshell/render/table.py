"""Tables of the format ``text``: aligned columns, at most as wide as the terminal.

If the columns do not fit, the layout (:func:`_layout`) moves sentences below their rows, leaves out the columns that
can be spared, and cuts values, in this order. A last line says what was left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from types import MappingProxyType
from typing import NamedTuple

from kshell import escape
from kshell.engine.result import Column, Row
from kshell.render.cells import GAP, are_numbers, blanks, cell, cells, clip, clip_inside
from kshell.render.color import paint, style_of
from kshell.render.options import RenderOptions
from kshell.render.wrapping import wrapped

SEEN_FIRST = 1000
"""The number of rows that are read before the first is printed; they decide the widths. Later values may be wider."""

ASIDE = 3
"""Columns with at least this ``spare`` are put after the others at a terminal: ids after states."""

_EXACT = re.compile(r"[\w-]{22}|\d{4}-\d\d-\d\dT[\d:.]+Z", re.ASCII)
"""Matches Kafka's UUIDs, and times."""
_FREE_IDS = frozenset(("clientId", "transactionalId"))
"""Ids that clients choose: unlike other ids they may have any length, so they may be cut."""

COMFORTABLE = 40
"""A column that is wider is cut to this width before columns with a ``spare`` are left out for it."""

READABLE, READABLE_NAME = 12, 20
"""The widths at which a cut column, and a cut name, are still readable."""

SENTENCE = 30
"""If the last column has sentences and at least this width, they are broken within it, else put below their row."""

NARROWEST = 8
"""A column is never cut to less than this, or than its name."""


class _Column(NamedTuple):
    name: str
    width: int
    right: bool
    limit: int | None
    """The width to which values are cut; ``None``: values are not cut."""
    is_name: bool = False
    """Whether values are cut in their middle, because names that begin alike differ at the end."""
    tone: Callable[[object], str] | None = None


class _Layout(NamedTuple):
    columns: list[_Column]
    prose: list[str]
    """Names of columns whose sentences are put below their row, because there is no room in the line."""
    breaks: bool = False
    """Whether the sentences of the last column are broken into lines within the column."""
    unusual: Mapping[str, str] = MappingProxyType({})
    """Name of a left-out column -> its usual value; any other value is put below its row."""


def table(
    rows: Iterable[Row],
    columns: Sequence[Column],
    options: RenderOptions,
    *,
    header: bool | None = None,
    seen_first: int = SEEN_FIRST,
    of: int | None = None,
) -> Iterator[str]:
    """Render a header line, one line per row, and a last line that says what was left out for lack of room.

    Args:
        rows: read once, as a stream after the first ``seen_first`` rows.
        columns: the columns to show if there is room; their names are keys of the rows.
        options: the width, and whether there are colours.
        header: whether there is a header line; ``None`` leaves that to the options.
        seen_first: how many rows decide the widths.
        of: the number of columns including those that only ``wide`` shows; ``None`` for no last line.
    """
    rest = iter(rows)
    first = list(islice(rest, seen_first))
    layout = _layout(first, columns, options)
    if options.header if header is None else header:
        yield _line([(escape.terminal(column.name), "bold") for column in layout.columns], layout.columns, options)[0]
    count, is_cut = 0, False
    indent = " " * (_total(layout.columns) - layout.columns[-1].width) if layout.breaks else ""
    for row in chain(first, rest):
        values = [(row.get(column.name), column.tone) for column in layout.columns]
        texts = [(cell(value), (tone and tone(value)) or style_of(value)) for value, tone in values]
        more: list[str] = []
        if layout.breaks:
            sentence, style = texts[-1]
            begin, *more = wrapped(sentence, layout.columns[-1].width)
            texts[-1] = (begin, style)
        line, cuts = _line(texts, layout.columns, options)
        count, is_cut = count + 1, is_cut or cuts
        yield line
        for part in more:
            yield indent + paint(part, texts[-1][1], options.color) + "\n"
        unusual = [name for name, usual in layout.unusual.items() if row.get(name) != usual]
        yield from _prose(row, [*unusual, *layout.prose], options)
    visible = len(layout.columns) + len(layout.prose)
    if of is not None and (visible < len(columns) or is_cut):
        yield paint(_left_out(count, visible, of, is_cut=is_cut), "dim", options.color) + "\n"


def without_spare(rows: Sequence[Row], columns: Sequence[Column], width: int) -> list[Column]:
    """Return the columns for a table that scrolls sideways, without those to ``spare`` that do not fit ``width``.

    Columns without a ``spare`` always stay, as the user can scroll to them.
    """
    near = [column for column in columns if column.spare < ASIDE]  # the others are last at a terminal
    fitting = {column.name for column in _layout(list(rows[:SEEN_FIRST]), near, RenderOptions(width=width)).columns}
    return [column for column in near if column.spare <= 0 or column.name in fitting]


def _left_out(rows: int, visible: int, of: int, *, is_cut: bool) -> str:
    parts = [f"{rows:,} row{'' if rows == 1 else 's'}"]
    if visible < of:
        parts.append(f"{visible} of {of} columns")
    if is_cut:
        parts.append("values cut")
    return f"{', '.join(parts)}: -o wide shows all"


def _prose(row: Row, names: list[str], options: RenderOptions) -> Iterator[str]:
    """Render these columns of a row below it, each value with the name of its column."""
    sentences = [(escape.terminal(name), cell(row.get(name))) for name in names if row.get(name) not in (None, "")]
    width = max((cells(name) for name, _ in sentences), default=0)
    for name, sentence in sentences:
        lead = f"  {paint(name, 'bold', options.color)}{blanks(name, width)}  "
        hanging = " " * (width + 4)
        for line in wrapped(sentence, (options.width or 0) - len(hanging)):
            yield f"{lead}{line}\n"
            lead = hanging


def _layout(rows: list[Row], columns: Sequence[Column], options: RenderOptions) -> _Layout:
    layout = [_measured(rows, column) for column in columns]
    room = None if options.wide or options.width is None else options.width
    if room is None or not layout or _total(layout) <= room:
        return _Layout(layout, [])
    prose = [column.name for column in columns if column.prose]
    fixed = [column for column in layout if column.name not in prose]
    remaining = room - _total(fixed) - len(GAP)
    if prose == [layout[-1].name] and remaining >= SENTENCE:
        return _Layout([*fixed, layout[-1]._replace(width=remaining)], [], breaks=True)
    layout = fixed
    names = {column.name for column in columns if column.spare < 0} or {layout[0].name}
    flexible = {column.name for column in layout if _may_be_cut(column.name, [row.get(column.name) for row in rows])}
    dispensable = [column for column in reversed(columns) if column.name not in (*names, *prose)]
    for column in sorted(dispensable, key=lambda column: column.spare, reverse=True):
        # A column with a spare goes before a value is cut much, or a name at all; any other only if nothing else helps.
        least = (
            _least(layout, flexible - names, COMFORTABLE) if column.spare else _least(layout, flexible, READABLE, names)
        )
        if len(layout) == 1 or least <= room:
            continue
        layout = [rest for rest in layout if rest.name != column.name]
    # What the rows are about stays whole if there is room next to the remaining columns.
    subject = {next((column.name for column in layout if column.name in names), "")}
    if _least(layout, flexible - subject, READABLE, names) > room:
        subject = set()
    placed = {column.name for column in layout}
    unusual = {c.name: c.usual for c in columns if c.usual is not None and c.name not in placed}
    shrunk = _shrink(layout, flexible, names, subject, room - len(GAP) * (len(layout) - 1))
    return _Layout(shrunk, prose, unusual=unusual)


def _title_width(name: str) -> int:
    return cells(escape.terminal(name))


def _measured(rows: list[Row], column: Column) -> _Column:
    values = [row.get(column.name) for row in rows]
    width = max([_title_width(column.name), *(cells(cell(value)) for value in values)])
    return _Column(column.name, width, are_numbers(values), None, tone=column.tone)


def _total(layout: list[_Column]) -> int:
    return sum(column.width for column in layout) + len(GAP) * (len(layout) - 1)


def _least(layout: list[_Column], flexible: set[str], width: int, names: Collection[str] = ()) -> int:
    """Return the width of a line if all flexible columns are cut to ``width``, names to ``READABLE_NAME``."""
    return _total(
        [
            column._replace(
                width=min(
                    column.width,
                    max(READABLE_NAME if column.name in names else width, _title_width(column.name)),
                )
            )
            if column.name in flexible
            else column
            for column in layout
        ]
    )


def _may_be_cut(name: str, values: list[object]) -> bool:
    """Whether values may be cut: words and objects may; ids, times, numbers and lists of them would become wrong."""
    if name == "id" or (name.endswith("Id") and name not in _FREE_IDS):
        return False
    parts = [part for value in values for part in (value if isinstance(value, list | tuple) else [value])]
    return not all(map(_is_exact, parts))


def _is_exact(value: object) -> bool:
    if isinstance(value, str):
        return _EXACT.fullmatch(value) is not None
    return not isinstance(value, Mapping | list | tuple)


def _shrink(layout: list[_Column], flexible: set[str], names: set[str], uncut: set[str], room: int) -> list[_Column]:
    """Narrow the widest flexible columns, all to the same width, until the table fits ``room`` or none can be narrower.

    Names are narrowed only if narrowing the other columns is not enough, and then all but the ``uncut`` ones.
    """

    def cut(cap: int, keep: set[str]) -> list[_Column]:
        out = []
        for column in layout:
            may = column.name in flexible and column.name not in keep
            limit = max(cap, NARROWEST, _title_width(column.name)) if may else None
            width = column.width if limit is None else min(column.width, limit)
            out.append(column._replace(width=width, limit=limit, is_name=column.name in names))
        return out

    for keep in (names, uncut):
        for cap in range(max(room, NARROWEST), NARROWEST - 1, -1):
            narrow = cut(cap, keep)
            if sum(column.width for column in narrow) <= room:
                return narrow
    return cut(NARROWEST, set())


def _line(texts: list[tuple[str, str]], layout: list[_Column], options: RenderOptions) -> tuple[str, bool]:
    """Format (text, style) pairs as a line; return it, and whether a value in it was cut."""
    is_cut = False
    if any(column.limit is not None for column in layout):
        clipped = [
            ((clip_inside if column.is_name else clip)(text, column.width) if column.limit is not None else text, style)
            for (text, style), column in zip(texts, layout, strict=True)
        ]
        is_cut = clipped != texts
        texts = clipped
    out = []
    for number, ((text, style), column) in enumerate(zip(texts, layout, strict=True), 1):
        missing, painted = blanks(text, column.width), paint(text, style, options.color)
        # No blanks at a line's end: they would wrap on a narrow terminal.
        out.append(missing + painted if column.right else painted if number == len(layout) else painted + missing)
    return GAP.join(out) + "\n", is_cut
