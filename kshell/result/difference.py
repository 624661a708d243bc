"""Compare two results (``Result.diff``): rows are matched by a key, or only counted if they have no key."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kshell.commands.diff import diff_rows
from kshell.engine.result import Row, Rows, Text
from kshell.errors import EXIT_FINDING, EXIT_OK, UsageError
from kshell.history.diff import ADDED, CHANGED, REMOVED

if TYPE_CHECKING:
    from kshell.json_text import JsonObject
    from kshell.result import Result


Key = tuple[str, ...]
_IDENTITY = (
    *("topic", "partition", "resourceType", "resourceName", "kind", "id", "user", "clientId", "ip", "key", "feature"),
    *("finding", "path", "name"),
)
"""Columns that identify a row. The key includes them, even if fewer columns happen to distinguish the present rows."""
_NAMED_BY = ("key", "feature")
"""Columns next to which ``name`` describes the row: the release of a level, what a quota is called."""


def changes(old: Sequence[Row], new: Sequence[Row], names: Sequence[str]) -> Iterator[Row]:
    """Yield the changes as rows of ``diff``: path (the key), type ``row``, change, fields, old, new.

    The key is the columns that identify a row and as many others, in the order of ``names``, as make it unique among
    the rows of each side. If none is (equal rows), rows are only counted: additional equal rows are added, missing ones
    are removed.
    """
    columns = _key_columns(old, new, names)
    if columns is None:
        yield from _counted(old, new)
        return
    before = {_key(row, columns): row for row in old}
    after = {_key(row, columns): row for row in new}
    for key, row in after.items():
        if key not in before:
            yield _change(" ".join(key), ADDED, [], None, row)
        elif fields := [name for name in names if row.get(name) != before[key].get(name)]:
            yield _change(" ".join(key), CHANGED, fields, before[key], row)
    for key, row in before.items():
        if key not in after:
            yield _change(" ".join(key), REMOVED, [], row, None)


def _key_columns(old: Sequence[Row], new: Sequence[Row], names: Sequence[str]) -> Sequence[str] | None:
    """Return the columns that make a unique key; ``None`` if not even all of them do."""
    is_described = any(name in names for name in _NAMED_BY)
    identity = [name for name in names if name in _IDENTITY and not (is_described and name == "name")]
    ordered = [*identity, *(name for name in names if name not in identity)]
    for width in range(max(len(identity), 1), len(ordered) + 1):
        if all(len({_key(row, ordered[:width]) for row in rows}) == len(rows) for rows in (old, new)):
            return ordered[:width]
    return None


def _counted(old: Sequence[Row], new: Sequence[Row]) -> Iterator[Row]:
    before, after = Counter(map(_text, old)), Counter(map(_text, new))
    for text, count in (after - before).items():
        yield from [_change(text, ADDED, [], None, json.loads(text))] * count
    for text, count in (before - after).items():
        yield from [_change(text, REMOVED, [], json.loads(text), None)] * count


def _key(row: Row, names: Sequence[str]) -> Key:
    return tuple(value if isinstance(value := row.get(name), str) else _text(value) for name in names)


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=dict, sort_keys=True)


def _change(path: str, change: str, fields: list[str], old: Row | None, new: Row | None) -> JsonObject:
    return {"path": path, "type": "row", "change": change, "fields": fields, "old": _plain(old), "new": _plain(new)}


def _plain(row: Row | None) -> JsonObject | None:
    return None if row is None else dict(row)


def difference(old: Result, new: Result) -> Result:
    """Return the changes from ``old`` to ``new``. Raises UsageError if the results have no column in common."""
    from kshell.result import Result

    if not isinstance(new, Result):
        raise UsageError(f"diff compares with another result, not with {type(new).__name__}")
    before, after = _table(old), _table(new)
    if before and after and not set(before[0]) & set(after[0]):
        raise UsageError("the two results have no column in common", hint="compare answers of the same command")
    names = list(dict.fromkeys(name for row in (*before, *after) for name in row))
    differences = list(changes(before, after, names))
    code = EXIT_FINDING if differences else EXIT_OK
    return Result(diff_rows(differences, code), secret=old.secret or new.secret)


def _table(result: Result) -> list[JsonObject]:
    """Return the rows to compare: those of the result, the lines of a text, or the fields of a single object."""
    answer = result.answer
    if isinstance(answer, Text):
        return [{"line": line} for line in answer.text.splitlines()]
    rows = result.rows
    if isinstance(answer, Rows) or len(rows) != 1:
        return rows
    return [{"field": name, "value": value} for name, value in rows[0].items()]
