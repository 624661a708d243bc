"""What a section of a report declares, and what it says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from kshell.engine.result import Row
from kshell.metadata.health import check as health

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
        """In a fleet, things are told by cluster; in a cluster, by broker."""
        return "clusterId" if self.is_fleet else "broker"


class Column(NamedTuple):
    """A column of a table: its key in the rows, its heading, and how values read (:mod:`.cells`)."""

    name: str
    title: str
    kind: str = "text"


class Table(NamedTuple):
    """``of``: how many rows there are in all, of which ``rows`` are some."""

    caption: str
    columns: tuple[Column, ...]
    rows: Sequence[Row]
    of: int = 0


class Drawing(NamedTuple):
    """Rows that have a picture (:mod:`kshell.plots`), and what is to be said below it."""

    rows: Sequence[Row]
    note: str = ""


class Attention(NamedTuple):
    """Something that a person should look at: ``figure`` counts or measures it, ``where`` says in what.

    ``fact`` is the check of ``health`` that finds the same; what no check finds has none.
    """

    level: str
    figure: str
    words: str
    where: str = ""
    fact: str | None = None

    @classmethod
    def of(cls, fact: str, figure: str, words: str, where: str = "") -> Attention:
        """One that is as bad as ``health`` says."""
        return cls(health.level_of(fact), figure, words, where, fact)


class Told(NamedTuple):
    """What a section says. ``lead``: its most important sentence, also where there is nothing to show."""

    lead: str
    drawings: tuple[Drawing, ...] = ()
    tables: tuple[Table, ...] = ()
    attention: tuple[Attention, ...] = ()


class Section(NamedTuple):
    """``asks``: SQL by name; ``{topics}`` in it is the table of that name. Answers have few rows, whatever there is.

    ``about`` says what is counted, and ``sources`` the tables where the rest can be found.
    """

    name: str
    title: str
    place: int
    about: str
    sources: tuple[str, ...]
    asks: Callable[[Scope], Mapping[str, str]]
    tell: Callable[[Scope, Answers], Told]
