"""The formats ``text`` and ``wide``, for users at a terminal, and for programs that read lines from a pipe."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from kshell import escape
from kshell.engine.result import Branch, Column, Drawing, Nothing, Report, Row, Rows, Text, Tree, Value
from kshell.render.cells import GAP, blanks, cell, cells, is_scalar
from kshell.render.color import paint, style_of
from kshell.render.options import Renderers, RenderOptions, nothing

# --- objects: aligned ``key  value`` lines; nested ones indented, lists of objects as tables --------------------------


INDENT = "  "
_SHORT = 3
"""A nested object of at most so many scalars stays on one line: ``metadata.version  min=1, max=29``."""


def value_lines(value: Any, options: RenderOptions) -> Iterator[str]:
    """Render any value: an object or a list of objects on several lines, everything else on one."""
    if isinstance(value, Mapping) and value:
        yield from object_lines(value, options)
    elif _is_nested(value, depth=0):
        yield from _list_lines(value, options)
    else:
        yield paint(cell(value, ", "), style_of(value), options.color) + "\n"


def object_lines(value: Mapping[str, Any], options: RenderOptions, depth: int = 0) -> Iterator[str]:
    """Render an object as ``key  value`` lines with aligned values."""
    inline = [cells(escape.terminal(str(key))) for key, item in value.items() if not _is_nested(item, depth)]
    width = max(inline, default=0)
    for key, item in value.items():
        name = escape.terminal(str(key))
        if not _is_nested(item, depth):
            lead = paint(name, "bold", options.color) + blanks(name, width) + "  "
            for line in _lines(cell(item, ", "), options, width + 2):
                yield f"{lead}{paint(line, style_of(item), options.color)}\n"
                lead = " " * (width + 2)
            continue
        yield paint(name, "bold", options.color) + "\n"
        inner = _indented(options)
        lines = object_lines(item, inner, depth + 1) if isinstance(item, Mapping) else _list_lines(item, inner)
        yield from _behind(INDENT, lines)


def _indented(options: RenderOptions) -> RenderOptions:
    """Return the options with the width that remains after :data:`INDENT`."""
    return options if options.width is None else options._replace(width=options.width - len(INDENT))


def _lines(text: str, options: RenderOptions, used: int = 0, *, hanging: str = "", data: bool = False) -> Iterable[str]:
    """Break a text that begins after ``used`` columns into as many lines as the terminal's width requires.

    ``hanging`` and ``data`` are those of :func:`kshell.render.wrapping.wrapped`.
    """
    if options.wide or options.width is None or used + cells(text) <= options.width:
        return (text,)
    from kshell.render.wrapping import wrapped  # late: most values are short

    return wrapped(text, options.width - used, hanging=hanging, data=data)


def _behind(indent: str, lines: Iterable[str]) -> Iterator[str]:
    """Put an indent before all lines but empty ones."""
    return (indent + line if line != "\n" else line for line in lines)


def _is_nested(value: Any, depth: int) -> bool:
    if is_scalar(value) or not value:
        return False
    if isinstance(value, Mapping):
        return not (depth > 0 and len(value) <= _SHORT and all(map(is_scalar, value.values())))
    return not all(map(is_scalar, value))


def _list_lines(value: Any, options: RenderOptions) -> Iterator[str]:
    """Render a list of objects as a table, or below each other if that is too wide; any other list line by line."""
    if all(isinstance(item, Mapping) and item for item in value):
        names = list(dict.fromkeys(str(key) for item in value for key in item))
        if all(name.isprintable() for name in names):
            from kshell.render.table import table  # late: few values are lists of objects

            # A user who looks at one thing wants all of it, so this table is not cut to fit, unlike one of many things.
            columns, unlimited = [Column(name) for name in names], options._replace(width=None)
            plain = table(value, columns, unlimited._replace(color=False), header=True)
            if options.wide or options.width is None or all(cells(line[:-1]) <= options.width for line in plain):
                yield from table(value, columns, unlimited, header=True)
                return
            between = ""
            for item in value:
                yield from (line for line in (between, *object_lines(item, options)) if line)
                between = "\n"
            return
    yield from (cell(item, ", ") + "\n" for item in value)


# --- results ----------------------------------------------------------------------------------------------------------


def text(result: Text, options: RenderOptions) -> Iterator[str]:
    """Render a text: Markdown without its marks and broken to the terminal's width, a drawing in that width."""
    if isinstance(result, Drawing):
        yield from _drawing(result, options)
    elif result.markdown:
        from kshell.render.prose import to_terminal

        yield from to_terminal(result.text, options)
    elif result.text:
        yield from (escape.terminal(line) + "\n" for line in result.text.removesuffix("\n").split("\n"))


def _drawing(result: Drawing, options: RenderOptions) -> Iterator[str]:
    """Draw for the width of the terminal, or 80 columns without a terminal."""
    for parts in result.draw(options.width or 80):
        yield "".join(paint(escape.terminal(part), style_of(part), options.color) for part in parts).rstrip() + "\n"


def value(result: Value, options: RenderOptions) -> Iterator[str]:
    """Render a single value: a string unchanged, ``-`` for null, an object as aligned lines."""
    return iter(["\n"]) if result.value == "" else value_lines(result.value, options)


# --- rows -----------------------------------------------------------------------------------------------------------


def rows(result: Rows, options: RenderOptions) -> Iterator[str]:
    """Render rows in their style, with a heading before each block of adjacent rows with the same ``group``."""
    if result.group is None:
        yield from _block(result, iter(result), options)
        return
    group, between = result.group, ""
    for key, block in groupby(result, key=lambda row: row.get(group)):
        heading = "" if key in (None, "") else paint(cell(key), "bold", options.color) + ":\n"
        if between or heading:
            yield between + heading
        yield from _block(result, block, options)
        between = "\n"


def _block(result: Rows, block: Iterator[Row], options: RenderOptions) -> Iterator[str]:
    if result.style == "values":
        return _values(block, options)
    if result.style == "prose" and not options.wide:
        return (line + "\n" for row in block for line in _sentence(row[result.line_column], options))
    if result.style == "lines" and not options.wide:
        line, column = result.line, result.line_column
        values: Iterable[object] = (row.get(column) if line is None else line(row) for row in block)
        if result.multiline:
            return (f"{_with_tabs(part)}\n" for data in values for part in str(data).split("\n"))
        return (text + "\n" for data in values for text in _broken(_as_line(data), result.hanging, options))
    if result.style == "names" and not options.wide:
        if options.width is None or result.one_per_line or result.live:
            return (_name(row, options)[1] + "\n" for row in block)
        return _in_columns([_name(row, options) for row in block], options.width)
    from kshell.render.table import ASIDE, SEEN_FIRST, table

    columns = [column for column in result.columns if options.wide or not column.wide]
    if options.width is not None:
        columns.sort(key=lambda column: column.spare >= ASIDE)  # a stable sort; without a width the order stays
    if result.live:
        return table(block, columns, options, seen_first=1)
    return table(block, columns, options, seen_first=SEEN_FIRST, of=len(result.columns))


def _sentence(text: str, options: RenderOptions) -> Iterable[str]:
    """Break a sentence into lines that keep its indentation, the blanks at its beginning."""
    indent = text[: len(text) - len(text.lstrip())]
    hanging = len(indent) + len(INDENT)
    lines = _lines(escape.terminal(text.lstrip()), options, hanging)
    return (indent + (INDENT if number else "") + line for number, line in enumerate(lines))


def _with_tabs(line: str) -> str:
    """Escape a line that may be pasted: a tab stays one."""
    return "\t".join(map(escape.terminal, line.split("\t")))


def _as_line(line: object) -> str:
    return escape.terminal(line) if isinstance(line, str) else cell(line)


def _broken(line: str, hanging: int | None, options: RenderOptions) -> Iterable[str]:
    """Break a line of data to the terminal's width; with ``hanging`` ``None``, keep it as one line."""
    return (line,) if hanging is None else _lines(line, options, hanging=" " * hanging, data=True)


def _values(block: Iterator[Row], options: RenderOptions) -> Iterator[str]:
    """Render the value of each row below its path."""
    between = ""
    for row in block:
        yield f"{between}{paint(escape.terminal(row['path']), 'bold', options.color)}:\n"
        yield from value(Value(row["path"], "", row["value"]), options)
        between = "\n"


def _name(row: Row, options: RenderOptions) -> tuple[int, str]:
    """Return the width and text of a row's name. Directories get a ``/`` at a terminal; in a pipe names are exact."""
    name = cell(row.get("name"))
    if row.get("type") != "directory":
        return cells(name), name
    mark = "" if options.width is None else "/"
    return cells(name) + len(mark), paint(name, "directory", options.color) + mark


def _in_columns(names: list[tuple[int, str]], width: int) -> Iterator[str]:
    """Arrange names in columns, first down, then across, in as few lines as the width allows."""
    if not names:
        return
    height, widths = _grid([size for size, _ in names], width)
    for line in range(height):
        out, owed = "", 0
        for (size, name), column in zip(names[line::height], widths, strict=False):
            out += " " * owed + name
            owed = column + len(GAP) - size
        yield out + "\n"


def _grid(sizes: list[int], width: int) -> tuple[int, list[int]]:
    """Return the lines and the columns' widths of the arrangement with the fewest lines; at least one column."""
    most = max(1, min(len(sizes), (width + len(GAP)) // (min(sizes) + len(GAP))))
    for count in range(most, 0, -1):
        height = -(-len(sizes) // count)
        widths, used = [], -len(GAP)
        for start in range(0, len(sizes), height):
            widths.append(max(sizes[start : start + height]))
            used += widths[-1] + len(GAP)
            if used > width and count > 1:
                break
        else:
            return height, widths
    raise AssertionError("one column always fits")


# --- trees and reports ----------------------------------------------------------------------------------------------


def tree(result: Tree, options: RenderOptions) -> Iterator[str]:
    """Draw a tree as the Unix program ``tree`` does; with values, the keys of an object are below its name."""
    from kshell.engine.plain import trees

    for root in trees(result.root):
        yield from _branch(root, "", "", result.values, options)


def _branch(branch: Branch, lead: str, below: str, values: bool, options: RenderOptions) -> Iterator[str]:
    """Draw a branch; ``lead`` is the text before its own line, ``below`` that before every further line."""
    name = escape.terminal(branch.name)
    if branch.children is None and not branch.left_out:
        yield from _leaf(name, branch.value, lead, below, options) if values else [f"{lead}{name}\n"]
        return
    yield f"{lead}{paint(name, 'directory', options.color)}\n"
    children = branch.children or []
    for number, child in enumerate(children, 1):
        last = number == len(children) and not branch.left_out
        yield from _branch(
            child, below + ("└── " if last else "├── "), below + ("    " if last else "│   "), values, options
        )
    if branch.left_out:
        yield f"{below}└── {paint(f'… {branch.left_out} more', 'dim', options.color)}\n"


def _leaf(name: str, value: object, lead: str, below: str, options: RenderOptions) -> Iterator[str]:
    if not isinstance(value, Mapping) or not value:
        yield f"{lead}{name}  {paint(cell(value, ', '), style_of(value), options.color)}\n"
        return
    yield f"{lead}{name}\n"
    yield from (below + line for line in object_lines(value, options))


def report(
    result: Report,
    options: RenderOptions,
    rows: Callable[[Rows, RenderOptions], Iterator[str]] = rows,
) -> Iterator[str]:
    """Render sections: titles, indented bodies, empty lines between them; ``rows`` renders bodies that are rows."""
    between = ""
    for section in result.sections:
        style = style_of(section.title) or "bold"
        lines = _lines(escape.terminal(section.title), options, 0)
        title = "\n".join(paint(line, style, options.color) for line in lines)
        indent = INDENT if title else ""
        below = _indented(options) if indent else options
        if between or title:
            yield between + (title + "\n" if title else "")
        body = rows(section.body, below) if isinstance(section.body, Rows) else object_lines(section.body, below)
        yield from _behind(indent, body)
        between = "\n"


_KINDS: Renderers = {Text: text, Value: value, Rows: rows, Tree: tree, Report: report, Nothing: nothing}
FORMATS = {"text": _KINDS, "wide": _KINDS}
