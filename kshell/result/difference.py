"""The difference between two results, as a result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kshell.commands.diff import diff_rows
from kshell.engine.result import Rows, Text
from kshell.errors import EXIT_FINDING, EXIT_OK, UsageError
from kshell.result.changes import changes

if TYPE_CHECKING:
    from kshell.result import Result


def difference(old: Result, new: Result) -> Result:
    """What is different in ``new``. Raises UsageError for results that are not alike."""
    from kshell.result import Result

    if not isinstance(new, Result):
        raise UsageError(f"diff compares with another result, not with {type(new).__name__}")
    before, after = _table(old), _table(new)
    if before and after and not set(before[0]) & set(after[0]):
        raise UsageError("the two results have no column in common", hint="compare answers of the same command")
    names = list(dict.fromkeys(name for row in (*before, *after) for name in row))
    found = list(changes(before, after, names))
    code = EXIT_FINDING if found else EXIT_OK
    return Result(diff_rows(found, code), secret=old.secret or new.secret)


def _table(result: Result) -> list[dict[str, Any]]:
    """Rows; of one object its fields, of words their lines."""
    answer = result.answer
    if isinstance(answer, Text):
        return [{"line": line} for line in answer.text.splitlines()]
    rows = result.rows
    if isinstance(answer, Rows) or len(rows) != 1:
        return rows
    return [{"field": name, "value": value} for name, value in rows[0].items()]
