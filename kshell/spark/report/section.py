"""What a section of a report declares (its queries, and what it says of their answers), and how its values read.

A section asks in SQL, of tables by name, and has few rows back whatever there is. It says something in plain words:
whoever writes a page of it escapes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from kshell.engine.result import Row
from kshell.metadata.health import check as health
from kshell.plots.pictures.availability import percent
from kshell.plots.times import moment
from kshell.render.cells import cell
from kshell.tree.image import lasting

LEVELS = health.LEVELS
"""How bad something is, the worst first; a page's tones."""
Answers = Mapping[str, Sequence[Row]]
"""What was asked, by name -> the rows."""


class Scope(NamedTuple):
    """What a report is about: one cluster, or all of a warehouse (``cluster`` is ``None``)."""

    cluster: str | None = None

    @property
    def is_fleet(self) -> bool:
        """Whether it is about several."""
        return self.cluster is None

    @property
    def who(self) -> str:
        """The column that things are listed by: clusters in a fleet, brokers in a cluster."""
        return "clusterId" if self.is_fleet else "broker"


class TableColumn(NamedTuple):
    """A column of a table: its key in the rows, its heading, and how its values read (:func:`text_of`)."""

    name: str
    title: str
    kind: str = "text"


class SectionTable(NamedTuple):
    """``of``: how many rows there are in all, of which ``rows`` are some."""

    caption: str
    columns: tuple[TableColumn, ...]
    rows: Sequence[Row]
    of: int = 0


class SectionDrawing(NamedTuple):
    """Rows that have a picture (:mod:`kshell.plots`), and a note below it."""

    rows: Sequence[Row]
    note: str = ""


class Attention(NamedTuple):
    """Something that a person should look at: ``figure`` counts or measures it, ``where`` says in what.

    ``fact`` is the check of ``health`` that finds the same; what no check finds has none.
    """

    level: str
    figure: str
    message: str
    where: str = ""
    fact: str | None = None

    @classmethod
    def of(cls, fact: str, figure: str, message: str, where: str = "") -> Attention:
        """One that is as bad as ``health`` says."""
        return cls(health.level_of(fact), figure, message, where, fact)


class SectionContent(NamedTuple):
    """What a section says. ``lead``: its most important sentence, also where there is nothing to show."""

    lead: str
    drawings: tuple[SectionDrawing, ...] = ()
    tables: tuple[SectionTable, ...] = ()
    attention: tuple[Attention, ...] = ()


class ReportSection(NamedTuple):
    """``queries``: SQL by name; ``{topics}`` in it is the table of that name. Answers have few rows, whatever there is.

    ``about`` says what is counted, and ``sources`` the tables where the rest can be found.
    """

    name: str
    title: str
    place: int
    about: str
    sources: tuple[str, ...]
    queries: Callable[[Scope], Mapping[str, str]]
    describe: Callable[[Scope, Answers], SectionContent]


# --- how values read --------------------------------------------------------------------------------------------------

NUMBERS = frozenset(("count", "ratio", "share", "lasting"))
"""Kinds that stand at the right."""


def text_of(kind: str, value: Any) -> str:
    """A value of a column of that kind; ``-`` for what is not known or does not apply."""
    return "-" if value is None else _KINDS[kind](value)


def _text(value: Any) -> str:
    return "none" if value == [] else cell(value, ", ")


def _time(value: Any) -> str:
    """To the second."""
    return moment(value).partition(".")[0]


def _broker(value: Any) -> str:
    return "none" if value == -1 else str(value)


_KINDS: Mapping[str, Callable[[Any], str]] = {
    "text": _text,
    "count": lambda value: f"{value:,.0f}",
    "ratio": lambda value: f"{value:.2f}",
    "share": percent,
    "lasting": lasting,
    "time": _time,
    "broker": _broker,
}
