"""Changes on their way from one image to the next (Kafka's ``MetadataDelta``).

A delta copies a table when it first writes to it, so the image below never changes. Each record takes effect at once:
however records are batched, the same image comes out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kshell.metadata.image import Image
from kshell.metadata.partitions import Topic
from kshell.metadata.values import Entry, Origin, Provenance


class Touch(NamedTuple):
    """What a record wrote or removed: a family's name and the keys on the way to an entry, or to a table of them."""

    family: str
    keys: tuple[Any, ...]


class Delta:
    """Mutable; made from an image, gives the next one with :meth:`apply`.

    ``touched`` collects what is changed once it is a list, and ``old`` the values from before once it is a dictionary.
    """

    def __init__(self, image: Image) -> None:
        self.touched: list[Touch] | None = None
        self.old: dict[Touch, Any] | None = None
        self._tables: dict[str, Any] = dict(image.tables)
        self._owned: set[str] = set()
        self._owned_inner: set[tuple[str, Any]] = set()

    def peek(self, family: str) -> dict[Any, Any]:
        """A family's table for reading only."""
        table: dict[Any, Any] = self._tables.get(family, {})
        return table

    def table(self, family: str) -> dict[Any, Any]:
        """A family's table for writing."""
        if family not in self._owned:
            self._tables[family] = dict(self._tables.get(family, ()))
            self._owned.add(family)
        table: dict[Any, Any] = self._tables[family]
        return table

    def inner(self, family: str, key: Any) -> dict[Any, Any]:
        """The table below ``key`` of a family with two levels, for writing; made when absent."""
        table = self.table(family)
        if (family, key) not in self._owned_inner:
            table[key] = dict(table.get(key, ()))
            self._owned_inner.add((family, key))
        inner: dict[Any, Any] = table[key]
        return inner

    def owns(self, family: str, key: Any) -> bool:
        """Whether this delta made the value below ``key``; marks it as such. For values that are not plain tables."""
        if (family, key) in self._owned_inner:
            return True
        self._owned_inner.add((family, key))
        return False

    def touch(self, family: str, *keys: Any) -> None:
        """Notes what is being changed. The methods below do it themselves."""
        if self.touched is not None:
            touch = Touch(family, keys)
            self.touched.append(touch)
            if self.old is not None and touch not in self.old:
                self.old[touch] = self.value(touch)

    def value(self, touch: Touch) -> Any:
        """The present value at the keys of a touch; ``None`` for nothing, and for a table."""
        entry: Any = self.peek(touch.family)
        for key in touch.keys:
            if isinstance(entry, Topic):  # its keys are its id, its name, and a partition
                entry = entry.partition(key) if isinstance(key, int) else entry
            else:
                entry = None if entry is None else entry.get(key)
        return entry.value if isinstance(entry, Entry) else None

    def put(self, family: str, key: Any, value: Any, origin: Origin) -> None:
        """Set one entry."""
        self.touch(family, key)
        self.table(family)[key] = Entry(value, origin)

    def drop(self, family: str, key: Any) -> bool:
        """Remove a key; return whether it was there."""
        if key not in self.peek(family):
            return False
        self.touch(family, key)
        del self.table(family)[key]
        self._owned_inner.discard((family, key))
        return True

    def put_inner(self, family: str, key: Any, name: Any, value: Any, origin: Origin) -> None:
        """Set one entry of a family with two levels."""
        self.touch(family, key, name)
        self.inner(family, key)[name] = Entry(value, origin)

    def drop_inner(self, family: str, key: Any, name: Any) -> bool:
        """Remove one entry of a family with two levels, and the table around it when it was the last."""
        if name not in self.peek(family).get(key, ()):
            return False
        self.touch(family, key, name)
        inner = self.inner(family, key)
        del inner[name]
        if not inner:
            del self.table(family)[key]
            self._owned_inner.discard((family, key))
        return True

    def apply(self, provenance: Provenance) -> Image:
        """The image with every change in it. The delta must not be used afterwards."""
        tables, self._tables = self._tables, {}
        return Image(tables, provenance)
