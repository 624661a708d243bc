"""``html``: fragments for pages and notebooks. No script, and only what suits light and dark pages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kshell.commands.base.result import Branch, Nothing, Report, Row, Rows, Text, Tree, Value
from kshell.errors import KshellError
from kshell.render import escape, plain
from kshell.render.cells import cell
from kshell.render.look import Look, Renderers, nothing

_TABLE = '<table cellpadding="4" style="border-collapse:collapse">\n'
# Notebooks align cells to the right unless each says otherwise.
_HEAD = '<th style="text-align:left;border-bottom:1px solid #8888">'
_CELL = '<td style="text-align:left">'
_NUMBER = '<td style="text-align:right">'
_BELOW = '<div style="margin-left:1.5em">'


def text(result: Text, look: Look) -> Iterator[str]:
    """Words as they are laid out; Markdown as a page has it."""
    if result.markdown:
        from kshell.render.prose import to_html

        yield from to_html(result.text)
        return
    yield "<pre>\n"
    yield from (escape.html(line) + "\n" for line in result.text.removesuffix("\n").split("\n"))
    yield "</pre>\n"


def value(result: Value, look: Look) -> Iterator[str]:
    """An object's fields, or the path and its value, as a table."""
    if isinstance(result.value, Mapping) and result.value:
        return _fields(result.value, look)
    return _table(("path", "value"), [{"path": result.path, "value": result.value}], look)


def rows(result: Rows, look: Look) -> Iterator[str]:
    """A table of all columns."""
    return _table(plain.columns(result), result, look)


def tree(result: Tree, look: Look) -> Iterator[str]:
    """Branches that fold."""
    for root in plain.trees(result.root):
        yield from _branch(root, result.values)


def report(result: Report, look: Look) -> Iterator[str]:
    """A heading and a table for each section."""
    for section in result.sections:
        if section.title:
            yield f"<h3>{escape.html(section.title)}</h3>\n"
        yield from rows(section.body, look) if isinstance(section.body, Rows) else _fields(section.body, look)


def _fields(item: Mapping[str, Any], look: Look) -> Iterator[str]:
    return _table(("key", "value"), ({"key": str(key), "value": below} for key, below in item.items()), look)


def _table(names: Sequence[str], body: Iterable[Row], look: Look) -> Iterator[str]:
    yield _TABLE
    if look.header:
        yield f"<tr>{''.join(f'{_HEAD}{escape.html(name)}</th>' for name in names)}</tr>\n"
    try:
        for row in body:
            yield f"<tr>{''.join(_cell(row.get(name)) for name in names)}</tr>\n"
    except (KeyboardInterrupt, KshellError):
        yield "</table>\n"  # rows that come for ever are ended so
        raise
    yield "</table>\n"


def _cell(item: Any) -> str:
    number = isinstance(item, int | float) and not isinstance(item, bool)
    return f"{_NUMBER if number else _CELL}{escape.html(cell(item, ', '))}</td>"


def _branch(branch: Branch, values: bool) -> Iterator[str]:
    name = escape.html(branch.name)
    if branch.children is None and not branch.left_out:
        yield from _leaf(name, branch.value) if values else [f"<div>{name}</div>\n"]
        return
    yield from _open(name)
    for child in branch.children or ():
        yield from _branch(child, values)
    if branch.left_out:
        yield f"<div>… {branch.left_out} more</div>\n"
    yield "</div></details>\n"


def _leaf(name: str, item: Any) -> Iterator[str]:
    if not isinstance(item, Mapping) or not item:
        yield f"<div>{name}: <code>{escape.html(cell(item, ', '))}</code></div>\n"
        return
    yield from _open(name)
    for key, below in item.items():
        yield from _leaf(escape.html(str(key)), below)
    yield "</div></details>\n"


def _open(name: str) -> Iterator[str]:
    yield f"<details open><summary>{name}</summary>{_BELOW}\n"


FORMATS: dict[str, Renderers] = {
    "html": {Text: text, Value: value, Rows: rows, Tree: tree, Report: report, Nothing: nothing}
}
