"""Convert results to plain values (the types of JSON), for exact formats such as ``json``, and for `support-bundle`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from kshell.engine.result import Branch, Report, Result, Row, Rows, Section, Text, Tree, Value

if TYPE_CHECKING:
    from kshell.json_text import JsonObject

T = TypeVar("T")
LEFT_OUT = "…"
"""The key (or last path segment) under which a tree says how many children a limit cut off."""


def columns(rows: Rows) -> tuple[str, ...]:
    """Return the names of all columns. A ``group`` column, which ``text`` shows as headings, is added first."""
    names = tuple(column.name for column in rows.columns)
    return names if rows.group is None or rows.group in names else (rows.group, *names)


def objects(rows: Rows) -> Iterator[Any]:
    """Yield each row as an object with all columns (missing: ``None``), or only the value of the ``bare`` column."""
    if rows.bare is not None:
        bare = rows.bare
        return (row.get(bare) for row in rows)
    names = columns(rows)
    return ({name: row.get(name) for name in names} for row in rows)


class FirstRows(NamedTuple, Generic[T]):
    """The first of many rows.

    Attributes:
        left_out: the number of further rows; a lower bound if counting was given up.
        is_counted: whether all further rows were counted.
    """

    rows: list[T]
    left_out: int
    is_counted: bool


def first_rows(
    rows: Iterable[T],
    limit: int,
    *,
    fits: Callable[[T], bool] | None = None,
    most_counted: int | None = None,
    seconds: float | None = None,
) -> FirstRows[T]:
    """Take the first rows of an answer, and read the further ones only to count them.

    Args:
        limit: the most rows to return.
        fits: whether there is still room for a row; it is called for each. The first row is always taken.
        most_counted: the most further rows to count; ``None`` for no limit.
        seconds: the longest time to count; ``None`` for no limit.
    """
    waiting, first, left_out = iter(rows), list[T](), 0
    for row in waiting:
        has_room = len(first) < limit and (fits is None or fits(row) or not first)
        if not has_room:
            left_out = 1
            break
        first.append(row)
    end = None if seconds is None else time.monotonic() + seconds
    for _ in waiting:
        left_out += 1
        if left_out == most_counted or (end is not None and time.monotonic() > end):
            return FirstRows(first, left_out, False)
    return FirstRows(first, left_out, True)


def trees(root: Branch) -> list[Branch]:
    """Return the trees of a result: its root, or the root's children if the root has no name (several paths)."""
    return [root] if root.name or root.children is None else root.children


def tree(branch: Branch) -> object:
    """Return a branch without its own name: the value of a leaf, or an object name -> branch."""
    if branch.children is None and not branch.left_out:
        return branch.value
    below = {child.name: tree(child) for child in branch.children or ()}
    if branch.left_out:
        below.setdefault(LEFT_OUT, branch.left_out)
    return below


def leaves(root: Branch) -> Iterator[Row]:
    """Yield the leaves of a tree as rows with ``path`` and ``value``; a path starts with the name of its root."""
    for branch in trees(root):
        yield from _leaves(branch, branch.name)


def _leaves(branch: Branch, path: str) -> Iterator[Row]:
    if branch.children is None and not branch.left_out:
        yield {"path": path, "value": branch.value}
        return
    for child in branch.children or ():
        yield from _leaves(child, f"{path.rstrip('/')}/{child.name}")
    if branch.left_out:
        yield {"path": f"{path.rstrip('/')}/{LEFT_OUT}", "value": branch.left_out}


def report(result: Report) -> JsonObject:
    """Return a report as an object: section key -> body. The items of a section with key ``""`` are put in directly."""
    out: JsonObject = {}
    for section in result.sections:
        body = list(objects(section.body)) if isinstance(section.body, Rows) else dict(section.body)
        if section.key or isinstance(body, list):
            out[section.key] = body
        else:
            out |= body
    return out


def items(section: Section) -> Iterator[tuple[str, object]]:
    """Yield a section's values with their keys; in a section with rows a key is ``<number of the row>.<column>``."""
    if not isinstance(section.body, Rows):
        yield from ((str(key), value) for key, value in section.body.items())
        return
    for number, item in enumerate(objects(section.body)):
        if isinstance(item, Mapping):
            yield from ((f"{number}.{key}", value) for key, value in item.items())
        else:
            yield str(number), item


def flat(sections: Iterable[Section]) -> Iterator[Row]:
    """Yield every value of a report as a row with ``section``, ``key`` and ``value``."""
    for section in sections:
        for key, value in items(section):
            yield {"section": section.key, "key": key, "value": value}


def value(result: Result) -> Any:
    """Convert any result to one value, ``None`` if it has none. Rows become a list, so they must fit in memory."""
    if isinstance(result, Text):
        return result.text
    if isinstance(result, Value):
        return result.value
    if isinstance(result, Tree):
        return tree(result.root)
    if isinstance(result, Report):
        return report(result)
    if isinstance(result, Rows):
        return list(objects(result))
    return None
