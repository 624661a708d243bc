"""Tables: what row commands, ``sql`` and ``export`` share. Each is declared once, in a module of
:mod:`kshell.tables.state`.

A declaration has all there is to know of a table: the kinds of ``--where``, the columns of the answers, the schemas of
Arrow, Parquet, DuckDB and SQLite, and the reference derive from it. Schemas only grow: fields keep name and type.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Union

from kshell.discovery import module_names
from kshell.engine.result import Column, Row
from kshell.errors import SourceError
from kshell.metadata.image import EMPTY, Image
from kshell.metadata.partial import MISSING
from kshell.tables.enumeration import Enumeration
from kshell.tables.existing import NameOf

if TYPE_CHECKING:
    from kshell.engine.session import Session
    from kshell.tables.row_counts import Counts
    from kshell.tables.where_kinds import FieldType

Type = Union[str, Sequence["Type"], Mapping[str, "Type"]]  # noqa: UP007  # names itself
"""``int16``, ``int32``, ``int64``, ``float64``, ``string``, ``boolean``; an :class:`.Enumeration` is a ``string`` of
which the values are known; ``["int32"]`` for a list of it; an object's fields by name; ``{"*": type}`` for an object
whose keys are data; ``json`` for what differs from row to row (a record's data, a leaf's value), which is JSON text in
columnar formats. Every value may be null."""

OTHER_FIELDS = "*"
_TOLD_EVERY = 1000
_PLAIN: dict[str, type] = {"float64": float, "string": str, "boolean": bool, "json": object}
_INTEGER_BITS = {"int16": 16, "int32": 32, "int64": 64}


class Field(NamedTuple):
    """A column: its name in Kafka's lowerCamelCase, its type, what it says; the rest as for a Column."""

    name: str
    type: Type
    doc: str
    wide: bool = False
    spare: int = 0
    prose: bool = False
    tone: Callable[[Any], str] | None = None
    usual: str | None = None


Wanted = frozenset[str] | None
"""Names of the fields that an answer needs; ``None`` for all. Others may be left out of the rows."""


class Table(NamedTuple):
    """``rows`` gives the rows of an image, in the table's own order. ``parts`` names the parts of the image that they
    are made of, the one they cannot do without first. ``counts`` says what of a log's records changes which rows: how
    many of them fulfil a condition, at every offset; ``None`` for a table of many states.
    """

    name: str
    summary: str
    fields: tuple[Field, ...]
    rows: Callable[[Session, Image, Wanted], Iterable[Row]]
    parts: tuple[str, ...]
    counts: Counts | None = None


_TABLES: dict[str, Table] = {}


def table(declared: Table) -> Table:
    """Declares a table of state."""
    if declared.counts is None:
        raise ValueError(f"the table {declared.name} does not say how its rows are counted over time")
    if _TABLES.setdefault(declared.name, declared) is not declared:
        raise ValueError(f"the table {declared.name} is declared twice")
    return declared


def tables() -> dict[str, Table]:
    """Every declared table, by name, sorted."""
    package = importlib.import_module("kshell.tables.state")
    for name in module_names(package.__path__):
        importlib.import_module(f"{package.__name__}.{name}")
    return dict(sorted(_TABLES.items()))


def columns(fields: Iterable[Field]) -> tuple[Column, ...]:
    """The columns of an answer with those fields."""
    return tuple(
        Column(field.name, field.wide, field.type, field.spare, field.prose, field.tone, field.usual)
        for field in fields
    )


def where_type(declared: Type) -> FieldType:
    """A type as conditions (``--where``) know it."""
    if isinstance(declared, str):
        from kshell.tables.where_kinds import Kind  # late: most lines have no condition

        if isinstance(declared, Enumeration):
            return Kind("string", values=declared)
        what = declared.what if isinstance(declared, NameOf) else ""
        if declared in _INTEGER_BITS:
            return Kind("number", bits=_INTEGER_BITS[declared], what=what)
        return Kind("string", what=what) if what else _PLAIN[declared]
    if isinstance(declared, Mapping):
        return {name: where_type(below) for name, below in declared.items()}
    return [where_type(declared[0])]


def type_text(declared: Type) -> str:
    """A type for people: ``int32``, ``[string]``, ``{min: int16, max: int16}``."""
    if isinstance(declared, str):
        return declared
    if isinstance(declared, Mapping):
        return "{" + ", ".join(f"{name}: {type_text(below)}" for name, below in declared.items()) + "}"
    return f"[{type_text(declared[0])}]"


def load_for(session: Session, wanted: Sequence[Table]) -> None:
    """Brokers are asked once for all of several tables, which are then of about the same moment."""
    if session.source.kind == "brokers" and len(wanted) > 1:
        session.loaded  # noqa: B018  # a property that asks


def told_rows(session: Session, table: Table, rows: Iterable[Row]) -> Iterator[Row]:
    """The rows, with progress: a large cluster's take a while before anything can be shown."""
    progress = session.progress
    for number, row in enumerate(rows, 1):
        if progress is not None and number % _TOLD_EVERY == 0:
            progress(0, 0, f"{table.name}: {number:,} rows")
        yield row


def image_for(session: Session, name: str, parts: Sequence[str]) -> Image:
    """The image, or of brokers that nobody has asked for everything, only those parts of it.

    Without parts it is empty, and nothing is loaded: the table finds its rows elsewhere.

    Raises SourceError where the source does not tell the first of them; ``name`` is what needs it.
    """
    if not parts:
        return EMPTY
    if session.source.kind == "brokers" and not session.is_loaded:
        from kshell.sources.brokers.source import BrokerSource

        assert isinstance(session.source, BrokerSource)
        image, notes = session.source.image(*parts)
        session.remarks += notes
    else:
        image = session.image
    for path, sentence in image[MISSING].items():
        if path[-1:] == tuple(parts[:1]):
            raise SourceError(f"{name}: {sentence}", hint="the controllers (-q), or a copy of their log (-d), have it")
    return image
