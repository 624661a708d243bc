"""The format ``record``: one field per line with all columns of a row, like psql's expanded display."""

from __future__ import annotations

from collections.abc import Iterator

from kshell.engine import plain
from kshell.engine.result import Nothing, Report, Rows, Text, Tree, Value
from kshell.render import text
from kshell.render.color import paint
from kshell.render.options import Renderers, RenderOptions, nothing

_RULE = 20
"""The number of dashes after a record's number."""


def rows(result: Rows, options: RenderOptions) -> Iterator[str]:
    """Render each row below a line with its number, with aligned field names and long values broken between words."""
    for number, row in enumerate(plain.objects(result), 1):
        if options.header:
            yield paint(f"-[ {number} ]{'-' * _RULE}", "dim", options.color) + "\n"
        yield from text.object_lines(row, options) if isinstance(row, dict) else text.value_lines(row, options)


def report(result: Report, options: RenderOptions) -> Iterator[str]:
    """Render sections as ``text`` does, but their rows as records."""
    return text.report(result, options, rows=rows)


FORMATS: dict[str, Renderers] = {
    "record": {Text: text.text, Value: text.value, Rows: rows, Tree: text.tree, Report: report, Nothing: nothing}
}
