"""Tables and their columns: declared once, in a module of :mod:`kshell.tables.state`, for commands, ``sql`` and
``export``.

All else derives from the declaration: the kinds of ``--where``, the columns of answers, the schemas of Arrow, Parquet,
DuckDB and SQLite, and the reference. Schemas only grow: a field keeps its name and type.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
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

Type = Union[str, Sequence["Type"], Mapping[str, "Type"]]  # noqa: UP007  # refers to itself
"""The type of a column: ``int16``, ``int32``, ``int64``, ``float64``, ``string`` or ``boolean``; an
:class:`.Enumeration` is a ``string`` with known values; ``["int32"]`` is a list; an object has its fields by name,
or is ``{"*": type}`` if its keys are data; ``json`` is for what differs from row to row (a record's data, a leaf's
value), and is JSON text in columnar formats. Every value may be null."""

OTHER_FIELDS = "*"
_REPORTED_EVERY = 1000
_PLAIN: dict[str, type] = {"float64": float, "string": str, "boolean": bool, "json": object}
_INTEGER_BITS = {"int16": 16, "int32": 32, "int64": 64}


class Field(NamedTuple):
    """A column of a table: its name in Kafka's lowerCamelCase, type, description; the rest as in :class:`.Column`."""

    name: str
    type: Type
    doc: str
    wide: bool = False
    spare: int = 0
    prose: bool = False
    tone: Callable[[object], str] | None = None
    usual: str | None = None


class ColumnarRows(ABC):
    """Rows that can also be made as columns of Arrow, which is faster by far where there are many."""

    @abstractmethod
    def __iter__(self) -> Iterator[Row]:
        """Yield the rows one by one."""

    @abstractmethod
    def record_batches(self, fields: Sequence[Field]) -> Iterator[Any]:
        """Yield the same rows as ``pyarrow.RecordBatch`` objects with these columns."""


FieldNames = frozenset[str] | None
"""Names of the fields that an answer needs; ``None`` for all. Other fields may be missing in the rows."""


class Table(NamedTuple):
    """A table.

    Attributes:
        rows: gives the rows of an image, in the table's own order.
        parts: the parts of the image that the rows are made of; the first is the one that they cannot do without.
        counts: how the rows that fulfil a condition are counted at every offset (:mod:`.row_counts`); ``None`` for a
            table of many states.
    """

    name: str
    summary: str
    fields: tuple[Field, ...]
    rows: Callable[[Session, Image, FieldNames], Iterable[Row]]
    parts: tuple[str, ...]
    counts: Counts | None = None


_TABLES: dict[str, Table] = {}


def table(declared: Table) -> Table:
    """Declare a table of state. Call it once per table, when its module is imported."""
    if declared.counts is None:
        raise ValueError(f"the table {declared.name} does not say how its rows are counted over time")
    if _TABLES.setdefault(declared.name, declared) is not declared:
        raise ValueError(f"the table {declared.name} is declared twice")
    return declared


def tables() -> dict[str, Table]:
    """Return every table of state, by name, sorted."""
    package = importlib.import_module("kshell.tables.state")
    for name in module_names(package.__path__):
        importlib.import_module(f"{package.__name__}.{name}")
    return dict(sorted(_TABLES.items()))


def columns(fields: Iterable[Field]) -> tuple[Column, ...]:
    """Return the columns of an answer with these fields."""
    return tuple(
        Column(field.name, field.wide, field.type, field.spare, field.prose, field.tone, field.usual)
        for field in fields
    )


def where_type(declared: Type) -> FieldType:
    """Return a column's type as conditions (``--where``) use it."""
    if isinstance(declared, str):
        from kshell.tables.where_kinds import Kind  # late: most lines have no condition

        if isinstance(declared, Enumeration):
            return Kind("string", values=declared)
        kind_name = declared.kind_name if isinstance(declared, NameOf) else ""
        if declared in _INTEGER_BITS:
            return Kind("number", bits=_INTEGER_BITS[declared], kind_name=kind_name)
        return Kind("string", kind_name=kind_name) if kind_name else _PLAIN[declared]
    if isinstance(declared, Mapping):
        return {name: where_type(below) for name, below in declared.items()}
    return [where_type(declared[0])]


def type_text(declared: Type) -> str:
    """Write a type for users: ``int32``, ``[string]``, ``{min: int16, max: int16}``."""
    if isinstance(declared, str):
        return declared
    if isinstance(declared, Mapping):
        return "{" + ", ".join(f"{name}: {type_text(below)}" for name, below in declared.items()) + "}"
    return f"[{type_text(declared[0])}]"


def ask_brokers_once(session: Session, wanted: Sequence[Table]) -> None:
    """Ask brokers once for several tables, so that all are of about the same moment."""
    if session.source.kind == "brokers" and len(wanted) > 1:
        session.loaded  # noqa: B018  # reading the property asks the brokers


def with_progress(session: Session, table: Table, rows: Iterable[Row]) -> Iterable[Row]:
    """Return the rows, to report progress as they pass: those of a large cluster take a while.

    Rows that may be made as columns are of a log, whose reader reports its own progress.
    """
    progress = session.progress
    if progress is None or isinstance(rows, ColumnarRows):
        return rows

    def reporting() -> Iterator[Row]:
        for number, row in enumerate(rows, 1):
            if number % _REPORTED_EVERY == 0:
                progress(0, 0, f"{table.name}: {number:,} rows")
            yield row

    return reporting()


def image_for(session: Session, name: str, parts: Sequence[str]) -> Image:
    """Return the session's image; from brokers that were not asked for everything yet, only the ``parts`` of it.

    Without parts it is empty and nothing is loaded: the table gets its rows elsewhere. Raises SourceError where the
    source does not report the first part; ``name`` is the table or command that needs it.
    """
    if not parts:
        return EMPTY
    if session.source.kind == "brokers" and not session.is_loaded:
        from kshell.sources.brokers.source import BrokerSource

        assert isinstance(session.source, BrokerSource)
        image, notes = session.source.image(*parts)
        session.remark(*notes)
    else:
        image = session.image
    for path, sentence in image[MISSING].items():
        if path[-1:] == tuple(parts[:1]):
            raise SourceError(f"{name}: {sentence}", hint="the controllers (-q), or a copy of their log (-d), have it")
    return image
