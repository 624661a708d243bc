"""The formats ``csv`` and ``tsv``: a header line, then one line per row (written by :mod:`kshell.separated_values`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from kshell.engine import plain
from kshell.engine.result import Nothing, Report, Result, Row, Rows, Text, Tree, Value
from kshell.render.options import Renderer, Renderers, RenderOptions, nothing
from kshell.separated_values import csv_line, tsv_line

Line = Callable[[Sequence[Any]], str]


def _table(result: Result) -> tuple[tuple[str, ...], Iterable[Row]]:
    """Return any kind of result as the names of columns and rows."""
    if isinstance(result, Rows):
        return plain.columns(result), result
    if isinstance(result, Tree):
        return ("path", "value") if result.values else ("path",), plain.leaves(result.root)
    if isinstance(result, Report):
        return ("section", "key", "value"), plain.flat(result.sections)
    if isinstance(result, Value):
        row = {"path": result.path, "type": result.type, "value": result.value}
        return ("path", "type", "value"), [row]
    assert isinstance(result, Text)
    return ("text",), [{"text": result.text}]


def _renderer(line: Line) -> Renderer:
    def function(result: Result, options: RenderOptions) -> Iterator[str]:
        names, rows = _table(result)
        if options.header:
            yield line(names)
        for row in rows:
            yield line([row.get(name) for name in names])

    return function


def _kinds(line: Line) -> Renderers:
    renderer = _renderer(line)
    return {Text: renderer, Value: renderer, Rows: renderer, Tree: renderer, Report: renderer, Nothing: nothing}


FORMATS = {"csv": _kinds(csv_line), "tsv": _kinds(tsv_line)}
