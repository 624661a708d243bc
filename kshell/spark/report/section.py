"""What a section of a report declares (its queries, and how it describes their rows), and how values become text.

A section's queries are SQL over tables by name, and return few rows however large the tables are. Its texts are plain:
the modules that format a page escape them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from kshell.engine.result import Row
from kshell.metadata.health import check as health
from kshell.plots.pictures.availability import percent
from kshell.plots.times import moment
from kshell.render.cells import cell
from kshell.tree.image import format_duration

LEVELS = health.LEVELS
"""How severe something is, the worst first. A page uses them as CSS classes."""
Answers = Mapping[str, Sequence[Row]]
"""Name of a section's query -> the rows that it returned."""


class Scope(NamedTuple):
    """What a report is about: one cluster, or all of a warehouse (``cluster`` is ``None``)."""

    cluster: str | None = None

    @property
    def is_fleet(self) -> bool:
        """Whether the report is about all clusters of the warehouse."""
        return self.cluster is None

    def by(self, column: str) -> str:
        """Return the column by which sums are grouped: clusters in a fleet, in one cluster ``column``."""
        return "clusterId" if self.is_fleet else column


class TableColumn(NamedTuple):
    """A column of a table: its key in the rows, its heading, and the ``kind`` of its values (:func:`text_of`)."""

    name: str
    title: str
    kind: str = "text"


class SectionTable(NamedTuple):
    """A table. ``of``: how many rows there are in all, if ``rows`` are only the first of them."""

    caption: str
    columns: tuple[TableColumn, ...]
    rows: Sequence[Row]
    of: int = 0


class SectionDrawing(NamedTuple):
    """Rows to draw, and a note below the picture. :mod:`kshell.plots` chooses the picture by their columns."""

    rows: Sequence[Row]
    note: str = ""


class Attention(NamedTuple):
    """Something that a user should look at: ``figure`` counts or measures it, ``where`` names examples.

    ``fact`` is the check of ``health`` that finds the same; ``None`` if no check does.
    """

    level: str
    figure: str
    message: str
    where: str = ""
    fact: str | None = None

    @classmethod
    def of(cls, fact: str, figure: str, message: str, where: str = "") -> Attention:
        """Create one with the level that the check ``fact`` of ``health`` has."""
        return cls(health.level_of(fact), figure, message, where, fact)


class SectionContent(NamedTuple):
    """What a section says. ``lead``: its most important sentence; it is there even if there is nothing to show."""

    lead: str
    drawings: tuple[SectionDrawing, ...] = ()
    tables: tuple[SectionTable, ...] = ()
    attention: tuple[Attention, ...] = ()


class ReportSection(NamedTuple):
    """The declaration of a section. First its queries run; then ``describe`` gets their rows.

    ``queries``: name -> SQL, in which ``{topics}`` is the table of that name. ``place`` sorts the sections. ``about``
    says what is counted, ``sources`` in which tables users find all rows.
    """

    name: str
    title: str
    place: int
    about: str
    sources: tuple[str, ...]
    queries: Callable[[Scope], Mapping[str, str]]
    describe: Callable[[Scope, Answers], SectionContent]


# --- values as text ---------------------------------------------------------------------------------------------------

NUMBERS = frozenset(("count", "ratio", "share", "lasting"))
"""Kinds of columns that are aligned right."""


def text_of(kind: str, value: Any) -> str:
    """Return a value as text, by the kind of its column; ``-`` for null: not known, or it does not apply."""
    return "-" if value is None else _KINDS[kind](value)


def _text(value: Any) -> str:
    return "none" if value == [] else cell(value, ", ")


def _time(value: Any) -> str:
    """Format milliseconds since 1970, to the second."""
    return moment(value).partition(".")[0]


def _broker(value: Any) -> str:
    return "none" if value == -1 else str(value)


_KINDS: Mapping[str, Callable[[Any], str]] = {
    "text": _text,
    "count": lambda value: f"{value:,.0f}",
    "ratio": lambda value: f"{value:.2f}",
    "share": percent,
    "lasting": format_duration,
    "time": _time,
    "broker": _broker,
}
