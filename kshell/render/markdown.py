"""``markdown``: GitHub's tables and lists, for issues and runbooks. Values read as in ``text``, with nothing cut."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kshell import escape
from kshell.engine.result import Branch, Nothing, Report, Row, Rows, Text, Tree, Value
from kshell.render import plain
from kshell.render.cells import cell
from kshell.render.limits import Shown, cut
from kshell.render.look import Look, Renderers, nothing

_STEP = "  "


def text(result: Text, look: Look) -> Iterator[str]:
    """Markdown as it is; other words in a fence that nothing in them can close."""
    lines = [escape.terminal(line) for line in result.text.removesuffix("\n").split("\n")]
    fence = "" if result.markdown else "`" * max([3, *(len(run) + 1 for run in re.findall("`+", result.text))])
    if not result.text:
        return
    yield from (line + "\n" for line in ([fence, *lines, fence] if fence else lines))


def value(result: Value, look: Look) -> Iterator[str]:
    """An object's fields, or the path and its value, as a table."""
    if isinstance(result.value, Mapping) and result.value:
        return _fields(result.value, look)
    return _table(("path", "value"), [{"path": result.path, "value": result.value}], look)


def rows(result: Rows, look: Look) -> Iterator[str]:
    """A table of all columns."""
    shown = Shown(result, look.limit)
    yield from _table(plain.columns(result), shown, look)
    yield from _note(shown.note, look)


def tree(result: Tree, look: Look) -> Iterator[str]:
    """Nested lists."""
    roots, left_out = cut(plain.trees(result.root), look.limit)
    for root in roots:
        yield from _branch(root, "", result.values)
    yield from _note(left_out, look)


def report(result: Report, look: Look) -> Iterator[str]:
    """A heading and a table for each section."""
    between = ""
    for section in result.sections:
        if between or section.title:
            yield between + (f"## {escape.markdown(section.title)}\n\n" if section.title else "")
        yield from rows(section.body, look) if isinstance(section.body, Rows) else _fields(section.body, look)
        between = "\n"


def _note(text: str, look: Look) -> Iterator[str]:
    """What a limit left out."""
    if text and look.limit is not None:
        yield f"\n{escape.markdown(text)}\n"


def _fields(item: Mapping[str, Any], look: Look) -> Iterator[str]:
    return _table(("key", "value"), ({"key": str(key), "value": below} for key, below in item.items()), look)


def _table(names: Sequence[str], body: Iterable[Row], look: Look) -> Iterator[str]:
    """Markdown knows no table without a header line: without ``header`` it is there, and empty."""
    yield _line(escape.markdown(name) if look.header else "" for name in names)
    yield _line("---" for _ in names)
    for row in body:
        yield _line(_cell(row.get(name)) for name in names)


def _line(fields: Iterable[str]) -> str:
    return f"| {' | '.join(fields)} |\n"


def _cell(item: Any) -> str:
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


def _leaf(name: str, item: Any, indent: str) -> Iterator[str]:
    if not isinstance(item, Mapping) or not item:
        yield f"{indent}- {name}: {_cell(item)}\n"
        return
    yield f"{indent}- {name}\n"
    for key, below in item.items():
        yield from _leaf(escape.markdown(str(key), line_start=True), below, indent + _STEP)


FORMATS: dict[str, Renderers] = {
    "markdown": {Text: text, Value: value, Rows: rows, Tree: tree, Report: report, Nothing: nothing}
}
