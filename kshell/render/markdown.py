"""The format ``markdown``: GitHub's tables and lists, for issues and runbooks. Values are as in ``text``, never cut."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kshell import escape
from kshell.engine import plain
from kshell.engine.result import Branch, Nothing, Report, Row, Rows, Text, Tree, Value
from kshell.render.cells import cell
from kshell.render.limits import LimitedRows, cut
from kshell.render.options import Renderers, RenderOptions, nothing

_STEP = "  "


def text(result: Text, options: RenderOptions) -> Iterator[str]:
    """Render a text: Markdown unchanged, any other text in a code block whose fence is longer than any in the text."""
    lines = [escape.terminal(line) for line in result.text.removesuffix("\n").split("\n")]
    fence = "" if result.markdown else "`" * max([3, *(len(run) + 1 for run in re.findall("`+", result.text))])
    if not result.text:
        return
    yield from (line + "\n" for line in ([fence, *lines, fence] if fence else lines))


def value(result: Value, options: RenderOptions) -> Iterator[str]:
    """Render a single value as a table: the fields of an object, or the path and its value."""
    if isinstance(result.value, Mapping) and result.value:
        return _fields(result.value, options)
    return _table(("path", "value"), [{"path": result.path, "value": result.value}], options)


def rows(result: Rows, options: RenderOptions) -> Iterator[str]:
    """Render rows as a table of all columns, up to the limit."""
    limited = LimitedRows(result, options.limit)
    yield from _table(plain.columns(result), limited, options)
    yield from _note(limited.note, options)


def tree(result: Tree, options: RenderOptions) -> Iterator[str]:
    """Render a tree as nested lists, up to the limit."""
    roots, left_out = cut(plain.trees(result.root), options.limit)
    for root in roots:
        yield from _branch(root, "", result.values)
    yield from _note(left_out, options)


def report(result: Report, options: RenderOptions) -> Iterator[str]:
    """Render a heading and a table for each section."""
    between = ""
    for section in result.sections:
        if between or section.title:
            yield between + (f"## {escape.markdown(section.title)}\n\n" if section.title else "")
        yield from rows(section.body, options) if isinstance(section.body, Rows) else _fields(section.body, options)
        between = "\n"


def _note(text: str, options: RenderOptions) -> Iterator[str]:
    """Render the note that says what the limit left out."""
    if text and options.limit is not None:
        yield f"\n{escape.markdown(text)}\n"


def _fields(item: Mapping[str, object], options: RenderOptions) -> Iterator[str]:
    return _table(("key", "value"), ({"key": str(key), "value": below} for key, below in item.items()), options)


def _table(names: Sequence[str], body: Iterable[Row], options: RenderOptions) -> Iterator[str]:
    """Render a table. Markdown requires a header line: if none is wanted, its cells are empty."""
    yield _line(escape.markdown(name) if options.header else "" for name in names)
    yield _line("---" for _ in names)
    for row in body:
        yield _line(_cell(row.get(name)) for name in names)


def _line(fields: Iterable[str]) -> str:
    return f"| {' | '.join(fields)} |\n"


def _cell(item: object) -> str:
    return escape.markdown(cell(item, ", "))


def _branch(branch: Branch, indent: str, values: bool) -> Iterator[str]:
    name = escape.markdown(branch.name, line_start=True)
    if branch.children is None and not branch.left_out:
        yield from _leaf(name, branch.value, indent) if values else [f"{indent}- {name}\n"]
        return
    below = indent + _STEP if name else indent
    if name:
        yield f"{indent}- {name}\n"
    for child in branch.children or ():
        yield from _branch(child, below, values)
    if branch.left_out:
        yield f"{below}- … {branch.left_out} more\n"


def _leaf(name: str, item: object, indent: str) -> Iterator[str]:
    if not isinstance(item, Mapping) or not item:
        yield f"{indent}- {name}: {_cell(item)}\n"
        return
    yield f"{indent}- {name}\n"
    for key, below in item.items():
        yield from _leaf(escape.markdown(str(key), line_start=True), below, indent + _STEP)


FORMATS: dict[str, Renderers] = {
    "markdown": {Text: text, Value: value, Rows: rows, Tree: tree, Report: report, Nothing: nothing}
}
