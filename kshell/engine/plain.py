"""Results as plain values (what JSON knows): what exact formats print, and what `support-bundle` stores."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from kshell.engine.result import Branch, Report, Result, Row, Rows, Section, Text, Tree, Value

T = TypeVar("T")
LEFT_OUT = "…"
"""The key (or last path segment) under which a tree says how many children a limit cut off."""


def columns(rows: Rows) -> tuple[str, ...]:
    """All columns' names; first the one that only ``text`` shows as headings, which would be lost otherwise."""
    names = tuple(column.name for column in rows.columns)
    return names if rows.group is None or rows.group in names else (rows.group, *names)


def objects(rows: Rows) -> Iterator[Any]:
    """Each row as an object of the columns, ``null`` where a row lacks one; or as its ``bare`` column's value."""
    if rows.bare is not None:
        bare = rows.bare
        return (row.get(bare) for row in rows)
    names = columns(rows)
    return ({name: row.get(name) for name in names} for row in rows)


class FirstRows(NamedTuple, Generic[T]):
    """The first of many rows.

    Attributes:
        left_out: how many rows there are beyond those; at least, where counting was given up.
        is_counted: whether all of them were counted.
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
    """The first rows of an answer, for what has room for so many; the others are read, too, to be counted.

    Args:
        limit: the most rows.
        fits: whether there is room for one more row. The first row always fits.
        most_counted: the most rows beyond those that are counted.
        seconds: the longest that counting may take.
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
    """The root; or, where it has no name and only holds several trees, those."""
    return [root] if root.name or root.children is None else root.children


def tree(branch: Branch) -> Any:
    """A branch without its own name: its value, or an object name -> branch."""
    if branch.children is None and not branch.left_out:
        return branch.value
    below = {child.name: tree(child) for child in branch.children or ()}
    if branch.left_out:
        below.setdefault(LEFT_OUT, branch.left_out)
    return below


def leaves(root: Branch) -> Iterator[Row]:
    """The leaves of a tree as rows ``path``, ``value``; paths start with the root's own name."""
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


def report(result: Report) -> dict[str, Any]:
    """Section key -> body; the section of key ``""`` is part of the object itself."""
    out: dict[str, Any] = {}
    for section in result.sections:
        body = list(objects(section.body)) if isinstance(section.body, Rows) else dict(section.body)
        if section.key or isinstance(body, list):
            out[section.key] = body
        else:
            out |= body
    return out


def items(section: Section) -> Iterator[tuple[str, Any]]:
    """A section's values with their keys; a row's are ``<number of the row>.<column>``."""
    if not isinstance(section.body, Rows):
        yield from ((str(key), value) for key, value in section.body.items())
        return
    for number, item in enumerate(objects(section.body)):
        if isinstance(item, Mapping):
            yield from ((f"{number}.{key}", value) for key, value in item.items())
        else:
            yield str(number), item


def flat(sections: Iterable[Section]) -> Iterator[Row]:
    """Every value of a report as a row ``section``, ``key``, ``value``."""
    for section in sections:
        for key, value in items(section):
            yield {"section": section.key, "key": key, "value": value}


def value(result: Result) -> Any:
    """Any result as one value. Rows become a list: only for answers that fit in memory."""
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
