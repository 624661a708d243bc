"""``csv`` and ``tsv``: a header of Kafka's names, one row a record; null is an empty field, nested values are JSON.

CSV is RFC 4180's, with ``\\n`` between records as every Unix tool has it; an empty string is ``""``. TSV escapes
instead of quoting, so one row is always one line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from kshell.commands.base.result import Nothing, Report, Result, Row, Rows, Text, Tree, Value
from kshell.render import escape, plain
from kshell.render.look import Look, Renderer, Renderers, nothing
from kshell.render.plain import to_json

Line = Callable[[Sequence[Any]], str]


def _scalar(value: Any) -> str:
    """Anything but a string, as text that needs no escaping: ``""`` for null, compact JSON for what is nested."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return to_json(value) if isinstance(value, Mapping | list | tuple) else repr(value)


def _csv_line(values: Sequence[Any]) -> str:
    # A record of one empty field would be an empty line, which readers skip.
    return (",".join(map(_csv_field, values)) or '""') + "\n"


def _csv_field(value: Any) -> str:
    if value is None:
        return ""
    return escape.csv_field(escape.csv(value) if isinstance(value, str) else _scalar(value))


def _tsv_line(values: Sequence[Any]) -> str:
    return "\t".join(escape.tsv(value if isinstance(value, str) else _scalar(value)) for value in values) + "\n"


def _table(result: Result) -> tuple[tuple[str, ...], Iterable[Row]]:
    """(columns, rows) of any kind."""
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
    def function(result: Result, look: Look) -> Iterator[str]:
        names, rows = _table(result)
        if look.header:
            yield line(names)
        for row in rows:
            yield line([row.get(name) for name in names])

    return function


def _kinds(line: Line) -> Renderers:
    one = _renderer(line)
    return {Text: one, Value: one, Rows: one, Tree: one, Report: one, Nothing: nothing}


FORMATS = {"csv": _kinds(_csv_line), "tsv": _kinds(_tsv_line)}
