"""The immutable metadata image: one table a family, and the provenance of the whole.

A table maps keys to entries, or (a family with two levels) keys to tables of entries. A new image shares every table
that did not change with the one before it (Kafka's ``MetadataImage``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from kshell.metadata.records import load_families
from kshell.metadata.values import Provenance, plain

Table = Mapping[Any, Any]


class Family(NamedTuple):
    """Where a table's values live in the tree.

    ``path`` is below ``/image``; ``levels`` turns each key on the way to an entry into a path segment that is already
    encoded; ``leaf`` names the values' type; ``plain`` gives their JSON form.
    """

    name: str
    path: tuple[str, ...]
    levels: tuple[Callable[[Any], str], ...]
    leaf: str
    plain: Callable[[Any], Any] = plain
    config_key: Callable[[tuple[Any, ...]], tuple[str, str]] | None = None
    """Of a family of configs: an entry's keys -> (resource type, config name), which decide about redaction."""
    secret: tuple[str, ...] = ()
    """Names of the JSON fields that are secret."""
    constant: tuple[str, ...] = ()
    """First-level segments that exist even when they are empty."""


_FAMILIES: dict[str, Family] = {}


def family(declared: Family) -> Family:
    """Declare a family of the image."""
    if _FAMILIES.setdefault(declared.name, declared) is not declared:
        raise ValueError(f"the family {declared.name} is declared twice")
    return declared


def families() -> dict[str, Family]:
    """Every declared family, by name."""
    load_families()
    return _FAMILIES


class Image:
    """A state of the metadata at one offset. Never changes; :class:`~kshell.metadata.delta.Delta` makes the next."""

    __slots__ = ("provenance", "tables")

    def __init__(self, tables: Mapping[str, Table], provenance: Provenance) -> None:
        self.tables = tables
        self.provenance = provenance

    def __getitem__(self, name: str) -> Table:
        return self.tables.get(name, {})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Image):
            return NotImplemented
        mine = {name: dict(table) for name, table in self.tables.items() if table}
        theirs = {name: dict(table) for name, table in other.tables.items() if table}
        return mine == theirs

    __hash__ = None  # type: ignore[assignment]  # compared by content, never a key

    def __repr__(self) -> str:
        return f"Image(offset={self.provenance.offset}, tables={sorted(self.tables)})"


EMPTY = Image({}, Provenance(-1, -1, -1))


def keys_of_both(mine: Mapping[Any, Any], theirs: Mapping[Any, Any]) -> Iterable[Any]:
    """Every key once: mine, then those that only theirs has."""
    yield from mine
    yield from (key for key in theirs if key not in mine)
