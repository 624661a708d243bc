"""The immutable metadata image (Kafka's ``MetadataImage``): one table per family, and the provenance of the whole.

A table maps keys to entries (:class:`~kshell.metadata.values.Entry`) or, in a family with two levels, keys to tables of
entries. A new image shares with the previous one every table that did not change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from kshell.metadata.records import load_families
from kshell.metadata.values import Provenance, plain

Table = Mapping[Any, Any]
MutableTable = dict[Any, Any]
"""A table that is still being changed."""
Keys = tuple[Any, ...]
"""The keys of a value: one, or two in a family with two levels."""


class Family(NamedTuple):
    """A family: the name of its table in the image, and where the table's values are in the tree.

    ``path`` is below ``/image``. ``levels`` has a function for each key of a value, which returns the key as a path
    segment. ``leaf`` names the type of the values; ``plain`` returns the JSON form of one.
    """

    name: str
    path: tuple[str, ...]
    levels: tuple[Callable[[Any], str], ...]
    leaf: str
    plain: Callable[[Any], Any] = plain
    config_key: Callable[[Keys], tuple[str, str]] | None = None
    """For configs only: the keys of a value -> (resource type, config name), which decide whether it is redacted."""
    secret: tuple[str, ...] = ()
    """Names of the values' JSON fields that are secret."""
    constant: tuple[str, ...] = ()
    """Path segments of the first level that are shown even when nothing is below them."""


_FAMILIES: dict[str, Family] = {}


def family(declared: Family) -> Family:
    """Declare a family of the image, and return it. Raises ValueError if its name is declared already."""
    if _FAMILIES.setdefault(declared.name, declared) is not declared:
        raise ValueError(f"the family {declared.name} is declared twice")
    return declared


def families() -> dict[str, Family]:
    """Return every declared family, by name."""
    load_families()
    return _FAMILIES


class Image:
    """The metadata at one offset: ``image["brokers"]`` is a family's table. Images are equal if all values are equal.

    An image never changes; :class:`~kshell.metadata.delta.Delta` makes the next one.
    """

    __slots__ = ("provenance", "tables")

    def __init__(self, tables: Mapping[str, Table], provenance: Provenance) -> None:
        self.tables = tables
        self.provenance = provenance

    def __getitem__(self, name: str) -> Table:
        return self.tables.get(name, {})

    def entry(self, family: str, keys: Keys) -> Any:
        """Return what a family has at some keys; ``None`` for nothing."""
        entry: Any = self[family]
        for key in keys:
            entry = None if entry is None else entry.get(key)
        return entry

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


def keys_of_both(mine: Table, theirs: Table) -> Iterable[Any]:
    """Yield every key of two tables once: those of ``mine``, then those that only ``theirs`` has."""
    yield from mine
    yield from (key for key in theirs if key not in mine)
