"""What commands return. A command never prints: a renderer turns a result into text, JSON, a table, a page.

Five kinds: :class:`Text`, :class:`Value`, :class:`Rows`, :class:`Tree`, :class:`Report`. Values in them are plain (what
JSON knows), redacted, and not yet escaped: escaping belongs to the format.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Row = Mapping[str, Any]


@dataclass
class Result:
    """Base of the kinds. ``exit_code`` is the command's own (a predicate's finding: 1)."""

    exit_code: int = field(default=0, kw_only=True)


@dataclass
class Nothing(Result):
    """A command that only does something (``cd``)."""


@dataclass
class Text(Result):
    """Words for people: help, man, pwd. ``json`` gives one string; ``man`` and ``help`` are Markdown."""

    text: str
    markdown: bool = False


@dataclass
class Value(Result):
    """One leaf: its path, its type (``partition``, ``config``, …) and its plain value."""

    path: str
    type: str
    value: Any


@dataclass(frozen=True)
class Column:
    """A column: its key in the rows, in Kafka's lowerCamelCase; shown in ``wide`` only where ``wide`` is set."""

    name: str
    wide: bool = False


@dataclass
class Rows(Result):
    """Rows of one shape, perhaps made while they are read (``dump`` of a long log).

    ``style`` only matters to ``text``: ``table`` is a table; ``names`` prints the column ``name`` alone, in columns as
    ``ls`` does (``one_per_line``: one a line); ``lines`` prints each row's column ``line_column`` as a line
    (``find``, ``grep``). ``group``: a column whose changes start a new block with a heading (``ls`` of several
    directories). Rows may hold more keys than there are columns; only columns are shown, in their order.
    """

    columns: tuple[Column, ...]
    rows: Iterable[Row]
    style: str = "table"
    line_column: str = ""
    one_per_line: bool = False
    group: str | None = None
    bare: str | None = None
    """With ``json`` and ``jsonl``: a column that stands for the whole row (``ls``: names)."""

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)


@dataclass
class Branch:
    """A node of a :class:`Tree`: its name, and either a leaf's value or children."""

    name: str
    value: Any = None
    children: list[Branch] | None = None
    left_out: int = 0
    """Children that a limit cut off."""


@dataclass
class Tree(Result):
    """A part of the tree. ``json`` gives nested objects: name -> value, or name -> object."""

    root: Branch
    values: bool = False
    """Whether ``text`` shows leaves' values (``cat DIR``) or only names (``tree``)."""


@dataclass
class Section:
    """A titled part of a :class:`Report`: an object (``item`` -> value) or rows."""

    key: str
    title: str
    body: Mapping[str, Any] | Rows


@dataclass
class Report(Result):
    """A page about one thing (``info``, ``stat``). ``json`` gives one object: section key -> body.

    A report with a single section of key ``""`` is that section's object.
    """

    sections: list[Section]
