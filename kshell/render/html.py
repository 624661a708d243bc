"""``html``: fragments for pages and notebooks. No script, and only what suits light and dark pages.

The style is in :mod:`.html_style`. Notebooks show the same with a limit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from kshell import escape
from kshell.engine import plain
from kshell.engine.result import (
    Branch,
    Column,
    Difference,
    Nothing,
    PageLayout,
    Report,
    Row,
    Rows,
    Section,
    Text,
    Toned,
    Tree,
    Value,
)
from kshell.errors import KshellError
from kshell.render.cells import ELLIPSIS, are_numbers, cell, is_number, is_scalar
from kshell.render.html_style import (
    BELOW,
    CAPTION,
    CLIPPED,
    DIM,
    LEFT,
    NEW,
    OLD,
    RIGHT,
    ROW,
    SCROLL,
    SUMMARY,
    TABLE,
    TONES,
    WRAPPED,
    badge,
    dim,
)
from kshell.render.limits import LimitedRows, cut, shares
from kshell.render.options import Renderers, RenderOptions, nothing
from kshell.render.table import without_spare

# --- values: cells of tables, objects as tables of their fields, long ones folded -------------------------------------


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


# --- rows: a table that scrolls sideways, says what it is sorted by, and what was left out ----------------------------


WIDTH = 100
"""Characters that fit beside each other where a notebook shows a table; a wider one scrolls."""
_SEEN_FIRST = 50
"""Rows that tell whether a column without a type has numbers, where they are at hand."""
NUMBERS = frozenset(("int16", "int32", "int64", "float64"))


def table(rows: Rows, options: RenderOptions, title: str = "") -> Iterator[str]:
    """A line a row as they come; with a limit, only the columns of :func:`visible_columns`. ``title`` is markup.

    What the rows raise comes through after the end of the table.
    """
    every = columns_of(rows)
    columns = every if options.limit is None else visible_columns(rows)
    spared = len(every) - len(columns)
    numeric = [_is_numeric(column, rows) for column in columns]
    head = ""
    if options.header:
        heads = (_head(column, rows, right is True) for column, right in zip(columns, numeric, strict=True))
        head = f"<thead>{ROW}{''.join(heads)}</tr></thead>"
    yield f"{SCROLL}{TABLE}{caption(rows, title)}{head}<tbody>\n"
    shown = LimitedRows(rows, options.limit)
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


def visible_columns(rows: Rows) -> Sequence[Column]:
    """Those of a table that is not ``wide``, without what can be spared where a notebook has no room for all."""
    columns = [column for column in columns_of(rows) if not column.wide]
    if rows.page is not None or not isinstance(rows.rows, Sequence):
        return columns
    return without_spare(rows.rows, columns, WIDTH)


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
        return isinstance(column.type, str) and column.type in NUMBERS
    if not isinstance(rows.rows, Sequence):
        return None
    return are_numbers(on_page(rows, row).get(column.name) for row in rows.rows[:_SEEN_FIRST])


def on_page(rows: Rows, row: Row) -> Row:
    """The row with the columns that pages show."""
    return row if rows.page is None or rows.page.row is None else rows.page.row(row)


def _line(rows: Rows, row: Row, columns: Sequence[Column], numeric: Sequence[bool | None]) -> str:
    tone = rows.tone(row) if rows.tone else ""
    options = TONES.get(tone)
    shown = on_page(rows, row)
    values: list[Any] = [shown.get(column.name) for column in columns]
    marked = -1 if options is None or not values else values.index(tone) if tone in values else 0
    cells = "".join(td(value, numeric[place], tone if place == marked else "") for place, value in enumerate(values))
    start = ROW if options is None or not options.row else ROW.replace('">', f';background-color:{options.row}">')
    return f"{start}{cells}</tr>\n"


# --- rows that have a Page: without doubles, and folded by what they are about ----------------------------------------


_OPEN = ("critical", "error")
"""Blocks of these tones start open; without them the first does."""


def page(rows: Rows, options: RenderOptions, title: str = "") -> Iterator[str]:
    """The rows as their page has them. They are read at once: a page says first how many there are."""
    assert rows.page is not None
    found = list(rows)
    double = rows.page.double
    kept = found if double is None else [row for row in found if not double(row)]
    if rows.page.fold and kept:
        yield from _folded(_among(rows, kept, rows.page), options, title)
    else:
        yield from table(_among(rows, kept, rows.page), options, title)
    if len(kept) < len(found):
        yield note(f"{len(found) - len(kept):,} more rows say the same; .df has them")


def _among(rows: Rows, kept: Sequence[Row], page: PageLayout | None) -> Rows:
    """Some of the rows."""
    return Rows(rows.columns, kept, tone=rows.tone, page=page, order=rows.order)


def _folded(rows: Rows, options: RenderOptions, title: str) -> Iterator[str]:
    fold = rows.page.fold if rows.page else ()
    blocks = [list(block) for _, block in groupby(rows, key=lambda row: [row.get(name) for name in fold])]
    tones = [rows.tone(block[0]) if rows.tone else "" for block in blocks]
    told = " ".join(part for part in (title, dim(tally(rows))) if part)
    yield f'<div style="margin:0 0 0.3em 0">{told}</div>\n'
    first = 0 if not set(tones) & set(_OPEN) else -1
    sizes = [len(block) for block in blocks]
    room = sizes if options.limit is None else shares(sizes, options.limit)
    for place, block in enumerate(blocks):
        opened = " open" if tones[place] in _OPEN or place == first else ""
        yield f"<details{opened}>{SUMMARY}{_summary(block, fold, tones[place])}</summary>{BELOW}\n"
        yield from _block(rows, block, options._replace(limit=None if options.limit is None else room[place]))
        yield "</div></details>\n"


def _summary(block: list[Row], fold: Sequence[str], tone: str) -> str:
    """What the block is about: the tone as a badge, the other values as they are, and how many rows."""
    values = [block[0].get(name) for name in fold]
    parts = [badge(tone) if tone in TONES and value == tone else words(value) for value in values]
    return f"{' '.join(parts)} {dim(f'({len(block):,})')}"


def _block(rows: Rows, block: list[Row], options: RenderOptions) -> Iterator[str]:
    """A table of what differs; what all its rows have in common is said once above it."""
    assert rows.page is not None
    names = [column for column in rows.page.columns if column.name not in rows.page.fold]
    common = {} if len(block) < 2 else {c.name: block[0].get(c.name) for c in names if _is_common(block, c.name)}
    for name, value in common.items():
        yield f"<div>{escape.html(name)}: {words(value)}</div>\n"
    left = tuple(column for column in names if column.name not in common) or tuple(names[:1])
    yield from table(Rows(left, block, order=rows.order, page=rows.page._replace(columns=left)), options)


def _is_common(block: list[Row], name: str) -> bool:
    value: Any = block[0].get(name)
    return all(row.get(name) == value for row in block)


# --- trees: branches that fold without a script -----------------------------------------------------------------------


_VISIBLE = 40
"""Lines that are seen at once: branches so deep that there would be more start closed."""


def tree(result: Tree, options: RenderOptions) -> Iterator[str]:
    """Every branch with how many it holds, the first levels open; objects folded behind what tells most of them."""
    roots, left_out = cut(plain.trees(result.root), options.limit)
    depth = _open_depth(roots)
    for root in roots:
        yield from _branch(root, result.values, depth)
    if left_out:
        yield note(left_out)


def _open_depth(roots: list[Branch]) -> int:
    """Levels of branches that can be open; the first always is."""
    level, seen, depth = roots, len(roots), 0
    while level:
        level = [child for branch in level for child in branch.children or ()]
        seen += len(level)
        if seen > _VISIBLE and depth:
            break
        depth += 1
    return depth


def _branch(branch: Branch, values: bool, depth: int) -> Iterator[str]:
    """``depth``: levels from here on that are open."""
    name = escape.html(branch.name)
    if branch.children is None and not branch.left_out:
        yield _leaf(branch.name, branch.value) if values else f"<div>{name}</div>\n"
        return
    children = branch.children or []
    if name:
        size = len(children) + branch.left_out
        opened = " open" if depth > 0 and children else ""
        yield f"<details{opened}>{SUMMARY}{name} {dim(f'({size:,})')}</summary>{BELOW}\n"
    for child in children:
        yield from _branch(child, values, depth - 1)
    if branch.left_out:
        yield f"<div>{dim(f'… {branch.left_out:,} more')}</div>\n"
    if name:
        yield "</div></details>\n"


def _leaf(name: str, value: Any) -> str:
    shown = escape.html(name)
    if not isinstance(value, Mapping) or not value:
        return f'<div>{shown}: <code style="overflow-wrap:anywhere">{words(value)}</code></div>\n'
    inner = "".join(fields(value))
    return f"<details>{SUMMARY}{shown} {summary(value, name)}</summary>{BELOW}\n{inner}</div></details>\n"


# --- results ----------------------------------------------------------------------------------------------------------


_HEADING = 5
"""The highest heading of a manual page: a notebook's outline lists those of four levels, outputs' as well."""


def text(result: Text, options: RenderOptions) -> Iterator[str]:
    """Words as they are laid out; Markdown as a page has it."""
    if result.markdown:
        from kshell.render.prose import to_html

        yield from to_html(result.text, _HEADING)
        return
    yield "<pre>\n"
    yield from (escape.html(line) + "\n" for line in result.text.removesuffix("\n").split("\n"))
    yield "</pre>\n"


def value(result: Value, options: RenderOptions) -> Iterator[str]:
    """An object's fields, or the path and its value, as a table."""
    if isinstance(result.value, Mapping) and result.value:
        yield from _object(
            result.value, f"{CAPTION}{escape.html(result.path)}</caption>" if result.path else "", options
        )
        return
    yield from _object({result.path: result.value}, "", options)


def rows(result: Rows, options: RenderOptions) -> Iterator[str]:
    """A table of all columns, or what they have for pages."""
    return _rows(result, options, "")


def _rows(rows: Rows, options: RenderOptions, title: str) -> Iterator[str]:
    return table(rows, options, title) if rows.page is None else page(rows, options, title)


def report(result: Report, options: RenderOptions) -> Iterator[str]:
    """A table for each section, its title above: no heading, which would end up in a notebook's outline."""
    for section in result.sections:
        title = _title(section)
        if isinstance(section.body, Rows):
            yield from _rows(section.body, options, title)
        elif section.body:
            yield from _object(section.body, f"{CAPTION}{title}</caption>" if title else "", options)
        elif title:
            yield f"<p>{title}</p>\n"


def _title(section: Section) -> str:
    if not section.title:
        return ""
    words = f"<strong>{escape.html(section.title)}</strong>"
    tone = section.title.tone if isinstance(section.title, Toned) else ""
    return badge(tone, words) if tone in TONES else words


def _object(item: Mapping[str, object], caption: str, options: RenderOptions) -> Iterator[str]:
    yield SCROLL + "\n"
    yield from fields(item, caption=caption)
    yield "</div>\n"


FORMATS: dict[str, Renderers] = {
    "html": {Text: text, Value: value, Rows: rows, Tree: tree, Report: report, Nothing: nothing}
}
