"""The changes between one image and the next (Kafka's ``MetadataDelta``), to which records are replayed.

A delta copies a table before it first writes to it, so the image that it was made from never changes. Each record takes
effect at once: the resulting image does not depend on how the records were batched.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kshell.metadata.image import Image, Keys, MutableTable
from kshell.metadata.partitions import Topic
from kshell.metadata.values import Entry, Origin, Provenance


class Touch(NamedTuple):
    """What a record wrote or removed: the family, and the keys of a value or, in a family with two levels, a table."""

    family: str
    keys: Keys


class Delta:
    """A mutable state: made from an image, changed by records, and turned into the next image by :meth:`apply`.

    Set ``touched`` to a list to have every change noted there, and ``old`` to a dictionary to have the values from
    before the changes noted as well.
    """

    def __init__(self, image: Image) -> None:
        self.touched: list[Touch] | None = None
        self.old: dict[Touch, Any] | None = None
        self._before = image.tables
        """The tables of the image that the delta was made from."""
        self._tables: dict[str, Any] = dict(image.tables)
        self._owned: set[str] = set()
        self._owned_inner: set[tuple[str, object]] = set()

    def peek(self, family: str) -> MutableTable:
        """Return a family's table, for reading only."""
        table: MutableTable = self._tables.get(family, {})
        return table

    def table(self, family: str) -> MutableTable:
        """Return a family's table, for writing: the delta's own copy."""
        if family not in self._owned:
            self._tables[family] = dict(self._tables.get(family, ()))
            self._owned.add(family)
        table: MutableTable = self._tables[family]
        return table

    def inner(self, family: str, key: object) -> MutableTable:
        """Return the table of ``key`` in a family with two levels, for writing; an empty one is made when absent."""
        table = self.table(family)
        if (family, key) not in self._owned_inner:
            table[key] = dict(table.get(key, ()))
            self._owned_inner.add((family, key))
        inner: MutableTable = table[key]
        return inner

    def owns(self, family: str, key: object) -> bool:
        """Whether a mutable value, such as a topic, is the delta's own. If not, the caller must copy it now.

        A value whose key the image does not have counts as own, so only new values or copies may be put into a table.
        """
        if key not in self._before.get(family, ()) or (family, key) in self._owned_inner:
            return True
        self._owned_inner.add((family, key))
        return False

    def touch(self, family: str, *keys: object) -> None:
        """Note that a value is about to be changed. Methods such as :meth:`put` do it themselves."""
        if self.touched is not None:
            touch = Touch(family, keys)
            self.touched.append(touch)
            if self.old is not None and touch not in self.old:
                self.old[touch] = self.value(touch)

    def value(self, touch: Touch) -> Any:
        """Return the current value at the keys of a touch; ``None`` if there is none, or if a table is there."""
        entry: Any = self.peek(touch.family)
        for key in touch.keys:
            if isinstance(entry, Topic):  # the keys of a topic are its id, its name, and a partition's number
                entry = entry.partition(key) if isinstance(key, int) else entry
            else:
                entry = None if entry is None else entry.get(key)
        return entry.value if isinstance(entry, Entry) else None

    def put(self, family: str, key: object, value: object, origin: Origin) -> None:
        """Set the value of a key."""
        self.touch(family, key)
        self.table(family)[key] = Entry(value, origin)

    def drop(self, family: str, key: object) -> bool:
        """Remove a key; return whether it was there."""
        if key not in self.peek(family):
            return False
        self.touch(family, key)
        del self.table(family)[key]
        self._owned_inner.discard((family, key))
        return True

    def put_inner(self, family: str, key: object, name: object, value: object, origin: Origin) -> None:
        """Set the value of ``name`` in the table of ``key``, in a family with two levels."""
        self.touch(family, key, name)
        self.inner(family, key)[name] = Entry(value, origin)

    def drop_inner(self, family: str, key: object, name: object) -> bool:
        """Remove ``name`` from the table of ``key``, and the table if it is empty then; return whether it was there."""
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
        """Return the image with all changes. The delta must not be used afterwards."""
        tables, self._tables = self._tables, {}
        return Image(tables, provenance)
