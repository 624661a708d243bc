"""Make results independent of their source: read their rows into memory, and remove what cannot be pickled."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from kshell.engine.result import Drawing, Many, Report, Result, Row, Rows, Section

_WIDTH = 80
_LINE = "\0line"
"""The key under which a row stores its finished line; no column can have that name."""


def materialized(answer: Result) -> Result:
    """Read all rows of a result into lists, in place, and return it (a ``Many`` without its parts)."""
    if isinstance(answer, Many):
        return Many((), answer.keep_going, exit_code=answer.exit_code)  # each part is a result of its own
    for rows in _rows_of(answer):
        rows.rows = list(rows.rows)
    if answer.readable is not None:
        materialized(answer.readable)
    return answer


def _rows_of(answer: Result) -> Iterator[Rows]:
    if isinstance(answer, Rows):
        yield answer
    elif isinstance(answer, Report):
        yield from (section.body for section in answer.sections if isinstance(section.body, Rows))


def portable(answer: Result) -> Result:
    """Return a copy of a result that can be pickled: the functions that draw it are replaced by their output."""
    if isinstance(answer, Drawing):
        return Drawing(partial(_drawn, answer.draw(_WIDTH)), exit_code=answer.exit_code)
    copy: Result = _copy(answer)
    if isinstance(copy, Rows):
        _make_lines(copy)
    elif isinstance(copy, Report):
        copy.sections = [Section(str(s.key), s.title, _body(s.body)) for s in copy.sections]
    if copy.readable is not None:
        copy.readable = portable(copy.readable)
    return copy


def _drawn(lines: list[list[str]], width: int) -> list[list[str]]:
    """Return lines that are drawn already, whatever the width; stands in for ``Drawing.draw``."""
    return lines


def _body(body: Row | Rows) -> Any:
    return portable(body) if isinstance(body, Rows) else dict(body)


def _copy(answer: Result) -> Result:
    copy = answer.__class__.__new__(answer.__class__)
    copy.__dict__.update(answer.__dict__)
    return copy


def _make_lines(rows: Rows) -> None:
    """Store in each row the text that ``rows.line`` makes of it, and remove that function."""
    line = rows.line
    if line is None:
        rows.rows = [dict(row) for row in rows.rows]
        return

    def with_line(row: Row) -> Row:
        return {**row, _LINE: line(row)}

    rows.rows, rows.line, rows.line_column = [with_line(row) for row in rows.rows], None, _LINE
