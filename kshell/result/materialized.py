"""Answers that stay: rows are read once, and nothing in them points back to what they were read from."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from kshell.engine.result import Drawing, Many, Report, Result, Row, Rows, Section

_WIDTH = 80
_LINE = "\0line"
"""Key of a row's line once it is made; no column can have that name."""


def materialized(answer: Result) -> Result:
    """The answer with its rows read. Raises what reading them raises."""
    if isinstance(answer, Many):
        return Many((), answer.keep_going, exit_code=answer.exit_code)  # each part is a result of its own
    for rows in _rows_of(answer):
        rows.rows = list(rows.rows)
    if answer.for_people is not None:
        materialized(answer.for_people)
    return answer


def _rows_of(answer: Result) -> Iterator[Rows]:
    if isinstance(answer, Rows):
        yield answer
    elif isinstance(answer, Report):
        yield from (section.body for section in answer.sections if isinstance(section.body, Rows))


def portable(answer: Result) -> Result:
    """The same answer without the functions that draw it: one that another process can be given."""
    if isinstance(answer, Drawing):
        return Drawing(partial(_drawn, answer.draw(_WIDTH)), exit_code=answer.exit_code)
    made: Result = _copy(answer)
    if isinstance(made, Rows):
        _make_lines(made)
    elif isinstance(made, Report):
        made.sections = [Section(str(s.key), s.title, _body(s.body)) for s in made.sections]
    if made.for_people is not None:
        made.for_people = portable(made.for_people)
    return made


def _drawn(lines: list[list[str]], width: int) -> list[list[str]]:
    """What was drawn for another width."""
    return lines


def _body(body: Any) -> Any:
    return portable(body) if isinstance(body, Rows) else dict(body)


def _copy(answer: Result) -> Any:
    made = answer.__class__.__new__(answer.__class__)
    made.__dict__.update(answer.__dict__)
    return made


def _make_lines(rows: Rows) -> None:
    """What ``line`` makes of each row, kept in the row."""
    line = rows.line
    if line is None:
        rows.rows = [dict(row) for row in rows.rows]
        return

    def with_line(row: Row) -> Row:
        return {**row, _LINE: line(row)}

    rows.rows, rows.line, rows.line_column = [with_line(row) for row in rows.rows], None, _LINE
