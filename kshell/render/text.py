"""``text`` and ``wide``: for people at a terminal, and for the lines that other programs read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from kshell import escape
from kshell.engine.result import Branch, Drawing, Nothing, Report, Row, Rows, Text, Tree, Value
from kshell.render.cells import GAP, cell, cells
from kshell.render.color import paint, style_of
from kshell.render.look import Look, Renderers, nothing
from kshell.render.objects import INDENT, object_lines, value_lines


def text(result: Text, look: Look) -> Iterator[str]:
    """The words; Markdown loses its marks and is broken to the terminal's width; a drawing is drawn to it."""
    if isinstance(result, Drawing):
        yield from _drawing(result, look)
    elif result.markdown:
        from kshell.render.prose import to_terminal

        yield from to_terminal(result.text, look)
    elif result.text:
        yield from (escape.terminal(line) + "\n" for line in result.text.removesuffix("\n").split("\n"))


def _drawing(result: Drawing, look: Look) -> Iterator[str]:
    """80 columns where there is no terminal."""
    for parts in result.draw(look.width or 80):
        yield "".join(paint(escape.terminal(part), style_of(part), look.color) for part in parts).rstrip() + "\n"


def value(result: Value, look: Look) -> Iterator[str]:
    """A string as it is, an empty one as an empty line; ``-`` for null; an object as aligned lines."""
    return iter(["\n"]) if result.value == "" else value_lines(result.value, look)


# --- rows ------------------------------------------------------------------------------------------------------------


def rows(result: Rows, look: Look) -> Iterator[str]:
    """By style; a block with a heading for every run of rows with the same ``group``."""
    if result.group is None:
        yield from _block(result, iter(result), look)
        return
    group, between = result.group, ""
    for key, block in groupby(result, key=lambda row: row.get(group)):
        heading = "" if key in (None, "") else paint(cell(key), "bold", look.color) + ":\n"
        if between or heading:
            yield between + heading
        yield from _block(result, block, look)
        between = "\n"


def _block(result: Rows, block: Iterator[Row], look: Look) -> Iterator[str]:
    if result.style == "values":
        return _values(block, look)
    if result.style == "lines" and not look.wide:
        line, column = result.line, result.line_column
        return (_as_line(row.get(column) if line is None else line(row)) for row in block)
    if result.style == "names" and not look.wide:
        if look.width is None or result.one_per_line or result.live:
            return (_name(row, look)[1] + "\n" for row in block)
        return _in_columns([_name(row, look) for row in block], look.width)
    from kshell.render.table import SEEN_FIRST, table

    columns = [column for column in result.columns if look.wide or not column.wide]
    spare = {column.name for column in columns if column.spare}
    names = [column.name for column in columns]
    return table(block, names, look, seen_first=1 if result.live else SEEN_FIRST, spare=spare)


def _as_line(line: Any) -> str:
    return (escape.terminal(line) if isinstance(line, str) else cell(line)) + "\n"


def _values(block: Iterator[Row], look: Look) -> Iterator[str]:
    """Each row's value below its path."""
    between = ""
    for row in block:
        yield f"{between}{paint(escape.terminal(row['path']), 'bold', look.color)}:\n"
        yield from value(Value(row["path"], "", row["value"]), look)
        between = "\n"


def _name(row: Row, look: Look) -> tuple[int, str]:
    """(width, name). Directories are marked for eyes only: at a pipe the names alone can be used as they are."""
    name = cell(row.get("name"))
    if row.get("type") != "directory":
        return cells(name), name
    mark = "" if look.width is None else "/"
    return cells(name) + len(mark), paint(name, "directory", look.color) + mark


def _in_columns(names: list[tuple[int, str]], width: int) -> Iterator[str]:
    """Down, then across, in as few lines as fit."""
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
    """(lines, the columns' widths) of the arrangement with the fewest lines; one column when nothing fits."""
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


# --- trees and reports -----------------------------------------------------------------------------------------------


def tree(result: Tree, look: Look) -> Iterator[str]:
    """Branches drawn as ``tree`` does; with values, an object's keys stand below its name."""
    from kshell.render.plain import trees

    for root in trees(result.root):
        yield from _branch(root, "", "", result.values, look)


def _branch(branch: Branch, lead: str, below: str, values: bool, look: Look) -> Iterator[str]:
    """``lead`` is drawn before the branch's own line, ``below`` before every line further down."""
    name = escape.terminal(branch.name)
    if branch.children is None and not branch.left_out:
        yield from _leaf(name, branch.value, lead, below, look) if values else [f"{lead}{name}\n"]
        return
    yield f"{lead}{paint(name, 'directory', look.color)}\n"
    children = branch.children or []
    for number, child in enumerate(children, 1):
        last = number == len(children) and not branch.left_out
        yield from _branch(
            child, below + ("└── " if last else "├── "), below + ("    " if last else "│   "), values, look
        )
    if branch.left_out:
        yield f"{below}└── {paint(f'… {branch.left_out} more', 'dim', look.color)}\n"


def _leaf(name: str, value: Any, lead: str, below: str, look: Look) -> Iterator[str]:
    if not isinstance(value, Mapping) or not value:
        yield f"{lead}{name}  {paint(cell(value, ', '), style_of(value), look.color)}\n"
        return
    yield f"{lead}{name}\n"
    yield from (below + line for line in object_lines(value, look))


def report(result: Report, look: Look) -> Iterator[str]:
    """Sections with their titles, what they hold indented, an empty line between them."""
    between = ""
    for section in result.sections:
        title = paint(escape.terminal(section.title), style_of(section.title) or "bold", look.color)
        indent = INDENT if title else ""
        below = look._replace(width=None if look.width is None else look.width - len(indent))
        if between or title:
            yield between + (title + "\n" if title else "")
        lines = rows(section.body, below) if isinstance(section.body, Rows) else object_lines(section.body, below)
        yield from (indent + line if line != "\n" else line for line in lines)
        between = "\n"


_KINDS: Renderers = {Text: text, Value: value, Rows: rows, Tree: tree, Report: report, Nothing: nothing}
FORMATS = {"text": _KINDS, "wide": _KINDS}
