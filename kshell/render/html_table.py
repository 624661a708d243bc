"""Rows on a page: a table that scrolls sideways, says what it is sorted by, and what was left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kshell import escape
from kshell.engine.result import Column, Row, Rows
from kshell.errors import KshellError
from kshell.render import plain
from kshell.render.html_cells import is_number, td
from kshell.render.html_style import CAPTION, DIM, LEFT, RIGHT, ROW, SCROLL, TABLE, TONES, dim
from kshell.render.limits import Shown
from kshell.render.look import Look

_SEEN_FIRST = 50
"""Rows that tell whether a column without a type has numbers, where they are at hand."""
_NUMBERS = frozenset(("int16", "int32", "int64", "float64"))


def table(rows: Rows, look: Look, title: str = "") -> Iterator[str]:
    """The columns of :func:`columns_of`, a line a row as they come. ``title`` is markup.

    With a limit, columns that only ``wide`` has are left out, too. What the rows raise comes through after the end of
    the table.
    """
    columns = columns_of(rows)
    spared = 0 if look.limit is None else sum(column.wide for column in columns)
    if spared:
        columns = [column for column in columns if not column.wide]
    numeric = [_is_numeric(column, rows) for column in columns]
    head = ""
    if look.header:
        heads = (_head(column, rows, right is True) for column, right in zip(columns, numeric, strict=True))
        head = f"<thead>{ROW}{''.join(heads)}</tr></thead>"
    yield f"{SCROLL}{TABLE}{caption(rows, title)}{head}<tbody>\n"
    shown = Shown(rows, look.limit)
    try:
        for row in shown:
            yield _line(rows, row, columns, numeric)
    except (KeyboardInterrupt, KshellError):
        yield "</tbody></table></div>\n"  # rows that come for ever are ended so
        raise
    yield "</tbody></table></div>\n"
    said = [shown.note, f"{spared} more column{'' if spared == 1 else 's'} in .df" if spared else ""]
    if any(said):
        yield note("; ".join(filter(None, said)))


def note(text: str) -> str:
    """A line below a table or a tree."""
    return f'<div style="{DIM};margin:0 0 0.5em 0">{escape.html(text)}</div>\n'


def columns_of(rows: Rows) -> Sequence[Column]:
    """Those that the rows have for pages, else all."""
    if rows.page is not None:
        return rows.page.columns
    known = {column.name: column for column in rows.columns}
    return [known.get(name, Column(name)) for name in plain.columns(rows)]


def caption(rows: Rows, title: str) -> str:
    """The title, and how many rows have which tone, the worst first."""
    told = tally(rows)
    words = "&emsp;".join(part for part in (title, dim(told) if told else "") if part)
    return f"{CAPTION}{words}</caption>" if words else ""


def tally(rows: Rows) -> str:
    """``2 critical, 5 error``; nothing for rows that have no tone or are made while they are read."""
    if rows.tone is None or not isinstance(rows.rows, Sequence):
        return ""
    found = [rows.tone(row) for row in rows.rows]
    return ", ".join(f"{found.count(tone):,} {tone}" for tone in TONES if tone in found)


def _head(column: Column, rows: Rows, right: bool) -> str:
    """A column's name; an arrow where the line sorted by it, told to screen readers for the first such column."""
    order = dict(rows.order or ())
    arrow = sort = ""
    if column.name in order:
        falling = order[column.name]
        arrow = f' <span aria-hidden="true">{"▼" if falling else "▲"}</span>'
        first = next(iter(order)) == column.name
        sort = f' aria-sort="{"descending" if falling else "ascending"}"' if first else ""
    return f'<th scope="col"{sort} style="{RIGHT if right else LEFT}">{escape.html(column.name)}{arrow}</th>'


def _is_numeric(column: Column, rows: Rows) -> bool | None:
    """Whether a column has numbers; ``None`` where that is not known before they come."""
    if column.type is not None:
        return isinstance(column.type, str) and column.type in _NUMBERS
    if not isinstance(rows.rows, Sequence):
        return None
    known = [on_page(rows, row).get(column.name) for row in rows.rows[:_SEEN_FIRST]]
    known = [value for value in known if value is not None]
    return bool(known) and all(map(is_number, known))


def on_page(rows: Rows, row: Row) -> Row:
    """The row with the columns that pages show."""
    return row if rows.page is None or rows.page.row is None else rows.page.row(row)


def _line(rows: Rows, row: Row, columns: Sequence[Column], numeric: Sequence[bool | None]) -> str:
    tone = rows.tone(row) if rows.tone else ""
    look = TONES.get(tone)
    shown = on_page(rows, row)
    values: list[Any] = [shown.get(column.name) for column in columns]
    marked = -1 if look is None or not values else values.index(tone) if tone in values else 0
    cells = "".join(td(value, numeric[place], tone if place == marked else "") for place, value in enumerate(values))
    start = ROW if look is None or not look.row else ROW.replace('">', f';background-color:{look.row}">')
    return f"{start}{cells}</tr>\n"
