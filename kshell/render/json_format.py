"""The formats ``json`` (indented) and ``jsonl`` (one value per line). Both are exact, and stream rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kshell.engine import plain
from kshell.engine.result import Nothing, Report, Result, Rows, Text, TextRows, Tree, Value
from kshell.errors import KshellError
from kshell.json_text import to_json
from kshell.render.color import highlight
from kshell.render.options import Renderer, Renderers, RenderOptions, nothing

_INDENT = 2


def _indented(result: Result) -> Iterator[str]:
    yield to_json(plain.value(result), _INDENT) + "\n"


def _line(result: Result) -> Iterator[str]:
    yield to_json(plain.value(result)) + "\n"


def _array(rows: Rows) -> Iterator[str]:
    """Write an array while its rows are made, one row behind, to know whether a comma follows the row."""
    if rows.live:
        yield from _live_array(rows)
        return
    pending = None
    for item in plain.objects(rows):
        yield "[\n" if pending is None else pending + ",\n"
        # Newlines inside strings are escaped, so all newlines here are those between indented lines.
        pending = "  " + to_json(item, _INDENT).replace("\n", "\n  ")
    yield "[]\n" if pending is None else pending + "\n]\n"


def _live_array(rows: Rows) -> Iterator[str]:
    """Write each live row immediately, with the comma before it; close the array also after Ctrl-C or an error."""
    lead, end = "[\n  ", "[]\n"
    try:
        for item in plain.objects(rows):
            yield lead + to_json(item, _INDENT).replace("\n", "\n  ") + "\n"
            lead, end = ", ", "]\n"
    except (KeyboardInterrupt, KshellError):
        yield end
        raise
    yield end


def _lines(rows: Rows) -> Iterator[str]:
    if isinstance(rows.rows, TextRows):
        yield from rows.rows.json_lines()
        return
    for item in plain.objects(rows):
        yield to_json(item) + "\n"


def _colored(make: Callable[[Any], Iterator[str]]) -> Renderer:
    def function(result: Result, options: RenderOptions) -> Iterator[str]:
        chunks = make(result)
        return highlight(chunks, "json") if options.color else chunks

    return function


def _kinds(document: Callable[[Any], Iterator[str]], rows: Callable[[Any], Iterator[str]]) -> Renderers:
    colored = _colored(document)
    return {Text: colored, Value: colored, Rows: _colored(rows), Tree: colored, Report: colored, Nothing: nothing}


FORMATS = {"json": _kinds(_indented, _array), "jsonl": _kinds(_line, _lines)}
