"""The format ``html``: fragments without scripts for pages and notebooks, which suit light and dark pages.

The parts of the module are values, tables, rows with a page layout, trees, and the functions for each kind of result.
Styles are in :mod:`.html_style`. Notebooks show the same fragments with a limit.
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
    StyledText,
    Text,
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
"""The most characters of a cell that are kept on one line."""
_SHORT = 30
"""A text of so many characters stays on one line. A longer one may be broken, so that it does not widen the table."""
_WORD = re.compile(r"\S+")
_OPEN_DEPTH = 2
"""Objects that are nested deeper than this are folded."""
_KEY_FIELDS = (("leader", "isr"), ("fenced", "rack"), ("host", "port"))
"""The most important fields of a partition, a broker and an endpoint; an object that has them is summarized by them."""
_SUMMARY_FIELDS = 3
"""The number of fields in the summary of any other object."""


def on_one_line(value: object) -> str:
    """Write a value on one line, escaped for HTML."""
    return escape.html(cell(value, ", "))


def td(value: object, numeric: bool | None = None, tone: str = "") -> str:
    """Return a table cell with a value.

    Args:
        numeric: whether its column has numbers, which are aligned to the right; ``None``: decided by the value.
        tone: the row's tone if this cell must show it: in front of its value, or alone if that is the tone's name.
    """
    if tone:
        mark = badge(tone) if value == tone else f"{badge(tone)} {on_one_line(value)}"
        return f'<td style="{LEFT}">{mark}</td>'
    if value is None:
        return f'<td style="{RIGHT if numeric else LEFT};{DIM}">-</td>'
    if is_number(value):
        return f'<td style="{LEFT if numeric is False else RIGHT}">{value!r}</td>'
    if isinstance(value, list) and value and all(isinstance(item, Difference) for item in value):
        return f'<td style="{LEFT}">{"".join(map(_difference, value))}</td>'
    text = cell(value, ", ")
    escaped = escape.html(text)
    if len(text) <= _SHORT:
        return f'<td style="{LEFT}">{escaped}</td>'
    if _is_deep(value) and len(text) > LONG:
        return f'<td style="{LEFT}">{folded(value)}</td>'
    if " " in text:
        return f'<td style="{WRAPPED}">{_WORD.sub(_unbroken, escaped)}</td>'
    if len(text) <= LONG:
        return f'<td style="{LEFT}">{escaped}</td>'
    return f'<td style="{CLIPPED}" title="{escaped}">{escaped}</td>'


def _unbroken(match: re.Match[str]) -> str:
    """Keep a word with hyphens on one line, because it is often an option or a program to copy."""
    is_option = "-" in match[0] and len(match[0]) <= LONG
    return f'<span style="white-space:nowrap">{match[0]}</span>' if is_option else match[0]


def _is_deep(value: Any) -> bool:
    """Whether a list or object holds further lists or objects, so that its single line would be JSON."""
    if is_scalar(value):
        return False
    return not all(map(is_scalar, value.values() if isinstance(value, Mapping) else value))


def _difference(change: Difference) -> str:
    name = f"{escape.html(change.name)}: " if change.name else ""
    old, new = _piece("del", OLD, change.old), _piece("ins", NEW, change.new)
    return f'<div style="max-width:44em;white-space:normal;overflow-wrap:anywhere">{name}{old} → {new}</div>'


def _piece(tag: str, style: str, value: object) -> str:
    """Return the old or the new value of a difference in full; a long object is folded."""
    text = cell(value, ", ")
    if _is_deep(value) and len(text) > LONG:
        return f'<{tag} style="{style};display:inline-block">{folded(value)}</{tag}>'
    no_wrap = ";white-space:nowrap" if len(text) <= LONG else ""
    return f'<{tag} style="{style}{no_wrap}">{escape.html(text)}</{tag}>'


def folded(value: object) -> str:
    """Return an object or list that is folded behind its summary."""
    return f"<details>{SUMMARY}{summary(value)}</summary>{nested(value, _OPEN_DEPTH)}</details>"


def summary(value: Any, name: str = "") -> str:
    """Summarize an object by its most important fields, a list by its first element and its length, on one line.

    ``name``: the name of the object, which is not repeated.
    """
    if not isinstance(value, Mapping):
        more = f"{ELLIPSIS} ({len(value):,})" if len(value) > 1 else ""
        return f"{summary(value[0])} {more}" if isinstance(value[0], Mapping) else dim(_start(cell(value, ", ")))
    flat = [key for key, item in value.items() if _is_flat(item) and item is not None and str(item) != name]
    keys = next((keys for keys in _KEY_FIELDS if set(keys) <= set(flat)), flat[:_SUMMARY_FIELDS])
    if not keys:
        return dim(_start(cell(value, ", ")))
    return dim(" · ".join(f"{escape.html(str(key))} {_start(cell(value[key], ', '))}" for key in keys))


def _is_flat(value: Any) -> bool:
    return is_scalar(value) or (not isinstance(value, Mapping) and all(map(is_scalar, value)))


def _start(text: str) -> str:
    return escape.html(text if len(text) <= LONG else text[: LONG - 1] + ELLIPSIS)


def nested(value: Any, depth: int = 0) -> str:
    """Return a value at full size: an object as a table of its fields, a list of objects as a table, else one line."""
    if isinstance(value, Mapping) and value:
        return "".join(fields(value, depth))
    if not is_scalar(value) and value and all(isinstance(item, Mapping) and item for item in value):
        return "".join(_grid(value))
    return on_one_line(value)


def fields(item: Mapping[str, object], depth: int = 0, caption: str = "") -> Iterator[str]:
    """Render an object as a table with a row for each field; nested objects are tables inside, deeper ones are folded.

    ``caption`` is HTML, and so need not be escaped.
    """
    yield f"{TABLE}{caption}<tbody>\n"
    for key, value in item.items():
        head = f'{ROW}<th scope="row" style="{LEFT}">{escape.html(str(key))}</th>'
        yield f"{head}{_field(value, depth)}</tr>\n"
    yield "</tbody></table>\n"


def _field(value: object, depth: int) -> str:
    if _is_flat(value) or not value or len(cell(value, ", ")) <= LONG:
        return td(value, False)
    inner = nested(value, depth + 1) if depth < _OPEN_DEPTH else folded(value)
    return f'<td style="{LEFT}">{inner}</td>'


def _grid(items: Sequence[Row]) -> Iterator[str]:
    """Render a list of objects as a table of all their keys."""
    names = list(dict.fromkeys(str(key) for item in items for key in item))
    heads = "".join(f'<th scope="col" style="{LEFT}">{escape.html(name)}</th>' for name in names)
    yield f"{TABLE}<thead>{ROW}{heads}</tr></thead><tbody>\n"
    for item in items:
        yield f"{ROW}{''.join(td(item.get(name)) for name in names)}</tr>\n"
    yield "</tbody></table>\n"


# --- rows: a table that scrolls sideways, and shows what it is sorted by and what was left out ------------------------


WIDTH = 100
"""The assumed width of a table in a notebook, in characters; a wider table scrolls."""
_SEEN_FIRST = 50
"""The number of rows by which a column without a type counts as numeric."""
NUMBERS = frozenset(("int16", "int32", "int64", "float64"))


def table(rows: Rows, options: RenderOptions, title: str = "") -> Iterator[str]:
    """Render rows as a table, row by row; with a limit, only the columns of :func:`visible_columns`.

    ``title`` is HTML. If reading the rows raises, the table is closed before the error is passed on.
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
    limited = LimitedRows(rows, options.limit)
    try:
        for row in limited:
            yield _line(rows, row, columns, numeric)
    except (KeyboardInterrupt, KshellError):
        yield "</tbody></table></div>\n"  # rows without an end are ended in this way
        raise
    yield "</tbody></table></div>\n"
    notes = [limited.note, f"{spared} more column{'' if spared == 1 else 's'} in .df" if spared else ""]
    if any(notes):
        yield note("; ".join(filter(None, notes)))


def note(text: str) -> str:
    """Return a dimmed line of text, for below a table or a tree."""
    return f'<div style="{DIM};margin:0 0 0.5em 0">{escape.html(text)}</div>\n'


def columns_of(rows: Rows) -> Sequence[Column]:
    """Return the columns of the rows' page layout if they have one, else all their columns."""
    if rows.page is not None:
        return rows.page.columns
    column_by_name = {column.name: column for column in rows.columns}
    return [column_by_name.get(name, Column(name)) for name in plain.columns(rows)]


def visible_columns(rows: Rows) -> Sequence[Column]:
    """Return the columns that a notebook shows: no ``wide`` ones, and none to ``spare`` for which there is no room."""
    columns = [column for column in columns_of(rows) if not column.wide]
    if rows.page is not None or not isinstance(rows.rows, Sequence):
        return columns
    return without_spare(rows.rows, columns, WIDTH)


def caption(rows: Rows, title: str) -> str:
    """Return a table's caption: the title, and the :func:`tally` of the rows."""
    counts = tally(rows)
    markup = "&emsp;".join(part for part in (title, dim(counts) if counts else "") if part)
    return f"{CAPTION}{markup}</caption>" if markup else ""


def tally(rows: Rows) -> str:
    """Count rows by tone, the worst first: ``2 critical, 5 error``; ``""`` without tones, or for rows not in memory."""
    if rows.tone is None or not isinstance(rows.rows, Sequence):
        return ""
    tones = [rows.tone(row) for row in rows.rows]
    return ", ".join(f"{tones.count(tone):,} {tone}" for tone in TONES if tone in tones)


def _head(column: Column, rows: Rows, right: bool) -> str:
    """Return a column's header, with an arrow if rows are sorted by it; screen readers get the first such column."""
    order = dict(rows.order or ())
    arrow = sort = ""
    if column.name in order:
        is_descending = order[column.name]
        arrow = f' <span aria-hidden="true">{"▼" if is_descending else "▲"}</span>'
        first = next(iter(order)) == column.name
        sort = f' aria-sort="{"descending" if is_descending else "ascending"}"' if first else ""
    return f'<th scope="col"{sort} style="{RIGHT if right else LEFT}">{escape.html(column.name)}{arrow}</th>'


def _is_numeric(column: Column, rows: Rows) -> bool | None:
    """Whether a column has numbers; ``None`` if it has no type and its rows are not in memory."""
    if column.type is not None:
        return isinstance(column.type, str) and column.type in NUMBERS
    if not isinstance(rows.rows, Sequence):
        return None
    return are_numbers(on_page(rows, row).get(column.name) for row in rows.rows[:_SEEN_FIRST])


def on_page(rows: Rows, row: Row) -> Row:
    """Convert a row to the columns of the page layout, if there is one."""
    return row if rows.page is None or rows.page.row is None else rows.page.row(row)


def _line(rows: Rows, row: Row, columns: Sequence[Column], numeric: Sequence[bool | None]) -> str:
    tone = rows.tone(row) if rows.tone else ""
    options = TONES.get(tone)
    page_row = on_page(rows, row)
    values: list[object] = [page_row.get(column.name) for column in columns]
    marked = -1 if options is None or not values else values.index(tone) if tone in values else 0
    cells = "".join(td(value, numeric[place], tone if place == marked else "") for place, value in enumerate(values))
    start = ROW if options is None or not options.row else ROW.replace('">', f';background-color:{options.row}">')
    return f"{start}{cells}</tr>\n"


# --- rows with a PageLayout: without rows that repeat others, and folded into blocks ----------------------------------


_OPEN = ("critical", "error")
"""Blocks of these tones are open at first; if there are none, the first block is."""


def page(rows: Rows, options: RenderOptions, title: str = "") -> Iterator[str]:
    """Render rows in their page layout. All rows are read first, because the page begins with their number."""
    assert rows.page is not None
    every = list(rows)
    repeats = rows.page.repeats
    distinct = every if repeats is None else [row for row in every if not repeats(row)]
    if rows.page.fold and distinct:
        yield from _folded(_among(rows, distinct, rows.page), options, title)
    else:
        yield from table(_among(rows, distinct, rows.page), options, title)
    if len(distinct) < len(every):
        yield note(f"{len(every) - len(distinct):,} more rows say the same and are left out; -o json has them")


def _among(rows: Rows, selected: Sequence[Row], page: PageLayout | None) -> Rows:
    """Return a copy of the rows with only those in ``selected``."""
    return Rows(rows.columns, selected, tone=rows.tone, page=page, order=rows.order)


def _folded(rows: Rows, options: RenderOptions, title: str) -> Iterator[str]:
    fold = rows.page.fold if rows.page else ()
    blocks = [list(block) for _, block in groupby(rows, key=lambda row: [row.get(name) for name in fold])]
    tones = [rows.tone(block[0]) if rows.tone else "" for block in blocks]
    markup = " ".join(part for part in (title, dim(tally(rows))) if part)
    yield f'<div style="margin:0 0 0.3em 0">{markup}</div>\n'
    first = 0 if not set(tones) & set(_OPEN) else -1
    sizes = [len(block) for block in blocks]
    room = sizes if options.limit is None else shares(sizes, options.limit)
    for place, block in enumerate(blocks):
        opened = " open" if tones[place] in _OPEN or place == first else ""
        yield f"<details{opened}>{SUMMARY}{_summary(block, fold, tones[place])}</summary>{BELOW}\n"
        yield from _block(rows, block, options._replace(limit=None if options.limit is None else room[place]))
        yield "</div></details>\n"


def _summary(block: list[Row], fold: Sequence[str], tone: str) -> str:
    """Return the summary of a folded block: the values of its ``fold`` columns, and its number of rows."""
    values = [block[0].get(name) for name in fold]
    parts = [badge(tone) if tone in TONES and value == tone else on_one_line(value) for value in values]
    return f"{' '.join(parts)} {dim(f'({len(block):,})')}"


def _block(rows: Rows, block: list[Row], options: RenderOptions) -> Iterator[str]:
    """Render a block as a table of the columns that differ; values that all its rows share are put above it once."""
    assert rows.page is not None
    names = [column for column in rows.page.columns if column.name not in rows.page.fold]
    common = {} if len(block) < 2 else {c.name: block[0].get(c.name) for c in names if _is_common(block, c.name)}
    for name, value in common.items():
        yield f"<div>{escape.html(name)}: {on_one_line(value)}</div>\n"
    columns = tuple(column for column in names if column.name not in common) or tuple(names[:1])
    yield from table(Rows(columns, block, order=rows.order, page=rows.page._replace(columns=columns)), options)


def _is_common(block: list[Row], name: str) -> bool:
    value: Any = block[0].get(name)
    return all(row.get(name) == value for row in block)


# --- trees: branches that fold without a script -----------------------------------------------------------------------


_VISIBLE = 40
"""The most lines that are visible at first; deeper levels of branches are closed."""


def tree(result: Tree, options: RenderOptions) -> Iterator[str]:
    """Render a tree with the number of children of each branch, the first levels open, and folded objects as leaves."""
    roots, left_out = cut(plain.trees(result.root), options.limit)
    depth = _open_depth(roots)
    for root in roots:
        yield from _branch(root, result.values, depth)
    if left_out:
        yield note(left_out)


def _open_depth(roots: list[Branch]) -> int:
    """Return how many levels of branches are open at first; at least one."""
    level, visible, depth = roots, len(roots), 0
    while level:
        level = [child for branch in level for child in branch.children or ()]
        visible += len(level)
        if visible > _VISIBLE and depth:
            break
        depth += 1
    return depth


def _branch(branch: Branch, values: bool, depth: int) -> Iterator[str]:
    """Render a branch; ``depth``: how many levels are open from this one on."""
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


def _leaf(name: str, value: object) -> str:
    label = escape.html(name)
    if not isinstance(value, Mapping) or not value:
        return f'<div>{label}: <code style="overflow-wrap:anywhere">{on_one_line(value)}</code></div>\n'
    inner = "".join(fields(value))
    return f"<details>{SUMMARY}{label} {summary(value, name)}</summary>{BELOW}\n{inner}</div></details>\n"


# --- results ----------------------------------------------------------------------------------------------------------


_HEADING = 5
"""The highest level of headings in help texts: levels 1 to 4 would appear in the outline of a notebook."""


def text(result: Text, options: RenderOptions) -> Iterator[str]:
    """Render a text: Markdown as HTML, any other text preformatted."""
    if result.markdown:
        from kshell.render.prose import to_html

        yield from to_html(result.text, _HEADING)
        return
    yield "<pre>\n"
    yield from (escape.html(line) + "\n" for line in result.text.removesuffix("\n").split("\n"))
    yield "</pre>\n"


def value(result: Value, options: RenderOptions) -> Iterator[str]:
    """Render a single value as a table: the fields of an object, or the path and its value."""
    if isinstance(result.value, Mapping) and result.value:
        yield from _object(
            result.value, f"{CAPTION}{escape.html(result.path)}</caption>" if result.path else "", options
        )
        return
    yield from _object({result.path: result.value}, "", options)


def rows(result: Rows, options: RenderOptions) -> Iterator[str]:
    """Render rows as a table of all columns, or in their page layout."""
    return _rows(result, options, "")


def _rows(rows: Rows, options: RenderOptions, title: str) -> Iterator[str]:
    return table(rows, options, title) if rows.page is None else page(rows, options, title)


def report(result: Report, options: RenderOptions) -> Iterator[str]:
    """Render a table for each section. Titles are no headings, which would appear in the outline of a notebook."""
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
    markup = f"<strong>{escape.html(section.title)}</strong>"
    tone = section.title.tone if isinstance(section.title, StyledText) else ""
    return badge(tone, markup) if tone in TONES else markup


def _object(item: Mapping[str, object], caption: str, options: RenderOptions) -> Iterator[str]:
    yield SCROLL + "\n"
    yield from fields(item, caption=caption)
    yield "</div>\n"


FORMATS: dict[str, Renderers] = {
    "html": {Text: text, Value: value, Rows: rows, Tree: tree, Report: report, Nothing: nothing}
}
