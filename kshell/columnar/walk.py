"""Take many values through the steps of their declaration together, and split them where their shapes differ.

Steps are from :mod:`~kshell.columnar.shapes`. The result, :class:`ValueShape`, says where fields are in the bytes.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from kshell.columnar.shapes import FIXED, Array, Chars, Fixed, Maybe, Step, Steps, Tag, Tags, Until

if TYPE_CHECKING:
    from kshell.columnar.framing import Bytes, Ints, Mask

np: ModuleType = importlib.import_module("numpy")

LEAST = 24
"""With fewer values of a shape than this, decoding one by one is faster."""
_LONG = 0x80
"""Lengths from this number on take more than one byte."""
Todo = tuple[Step, "Todo"] | None
"""The steps that are left, as a linked list, so that shapes that split share their rest."""


class FixedSlot(NamedTuple):
    """Where a value of fixed size is: ``at`` bytes after base number ``base`` of its shape."""

    field: Fixed
    base: int
    at: int


class TextSlot(NamedTuple):
    """Where a text is: ``at`` bytes after base ``base``, for ``length`` bytes or, if ``None``, up to base ``until``."""

    field: Chars
    base: int
    at: int
    length: int | None
    until: int


Item = str | FixedSlot | TextSlot


class ValueShape:
    """Values that have had the same shape so far.

    ``rows``: which values they are. ``items``: what they consist of, in the order of printing. ``bases``: columns with
    a position per value, from one of which each item has a fixed distance; after a text of varying length a new base
    begins. ``at``: the distance of the next byte from the last base. ``todo``: the steps that are left.
    """

    def __init__(self, rows: Ints, bases: list[Ints], at: int, items: list[Item], todo: Todo) -> None:
        self.rows = rows
        self.bases = bases
        self.at = at
        self.items = items
        self.todo = todo

    def __len__(self) -> int:
        return len(self.rows)

    def only(self, mask: Mask) -> ValueShape:
        """Select values by a mask."""
        return ValueShape(self.rows[mask], [base[mask] for base in self.bases], self.at, list(self.items), self.todo)

    def next(self, steps: Steps) -> None:
        """Put steps before all steps that are left."""
        for step in reversed(steps):
            self.todo = (step, self.todo)


class Walk:
    """Takes values through steps. ``buf`` is a numpy array of bytes, ``ends`` the end of each value in it.

    ``undecoded_rows`` collects the rows (index arrays) of values that must be decoded one by one.
    """

    def __init__(self, buf: Bytes, ends: Ints) -> None:
        self._buf = buf
        self._ends = ends
        self.undecoded_rows: list[Ints] = []

    def shapes(self, steps: Steps, rows: Ints, starts: Ints) -> Iterator[ValueShape]:
        """Return shapes that enough values have. ``rows``: ascending indexes of values; ``starts``: first bytes."""
        first = ValueShape(rows, [starts], 0, [], None)
        first.next(steps)
        waiting = [first]
        longest = int((self._ends[rows] - starts).max()) if len(rows) else 0
        while waiting:
            shape = waiting.pop()
            if len(shape) < LEAST or shape.at > longest:
                self.undecoded_rows.append(shape.rows)
            elif shape.todo is None:
                complete = self._select(shape, shape.bases[-1] + shape.at == self._ends[shape.rows])
                if len(complete):
                    yield complete
            else:
                step, shape.todo = shape.todo
                waiting += self._walked(shape, step)

    def _walked(self, shape: ValueShape, step: Step) -> list[ValueShape]:
        """Apply one step to a shape; return the shapes into which it splits."""
        match step:
            case str():
                shape.items.append(step)
            case Fixed():
                return [self._fixed(shape, step)]
            case Chars():
                return self._chars(shape, step)
            case Array():
                return self._array(shape, step)
            case Maybe():
                return self._maybe(shape, step)
            case Tags():
                return self._tags(shape, step)
            case Tag():
                return self._tag(shape, step)
            case Until():
                return [self._until(shape, step)]
        return [shape]

    def _select(self, shape: ValueShape, mask: Mask) -> ValueShape:
        """Select values by a mask; the rows of the others count as undecoded."""
        if mask.all():
            return shape
        self.undecoded_rows.append(shape.rows[~mask])
        return shape.only(mask)

    def _byte(self, shape: ValueShape) -> Bytes:
        """Return the next byte of each value. One that has ended before shows at the last step: positions only grow."""
        return self._buf.take(shape.bases[-1] + shape.at, mode="clip")

    def _by_byte(self, shape: ValueShape) -> Iterator[tuple[int, ValueShape]]:
        """Consume the next byte, and split the values by it."""
        column = self._byte(shape)
        shape.at += 1
        if (column == column[0]).all():
            yield int(column[0]), shape
            return
        for value in np.flatnonzero(np.bincount(column, minlength=256)).tolist():
            yield value, shape.only(column == value)

    def _fixed(self, shape: ValueShape, step: Fixed) -> ValueShape:
        if step.omitted is not None:
            column = gather(self._buf, FIXED[step.type], shape.bases[-1] + shape.at)
            shape = self._select(shape, ((column != 0) if step.type == "bool" else column) != step.omitted)
        shape.items.append(FixedSlot(step, len(shape.bases) - 1, shape.at))
        shape.at += np.dtype(FIXED[step.type]).itemsize
        return shape

    def _chars(self, shape: ValueShape, step: Chars) -> list[ValueShape]:
        """Take a string: null values become a shape of their own.

        Rows of long and default ones, and of bad nulls, count as undecoded.
        """
        column = self._byte(shape)
        shape.at += 1
        is_text = (column > 0) & (column < _LONG)
        if step.lead is not None:
            is_text &= column != step.lead
        shapes = []
        if step.nullable and step.lead != 0 and not column.all():
            null = shape.only(column == 0)
            null.items.append(step.hidden or "null")
            shapes.append(null)
            is_undecoded = ~is_text & (column != 0)
        else:
            is_undecoded = ~is_text
        if is_undecoded.any():
            self.undecoded_rows.append(shape.rows[is_undecoded])
        if not is_text.all():
            shape, column = shape.only(is_text), column[is_text]
        if not len(shape):
            return shapes
        base, at = len(shape.bases) - 1, shape.at
        length = int(column[0]) - 1
        if (column == column[0]).all():
            shape.items.append(step.hidden or TextSlot(step, base, at, length, -1))
            shape.at += length
        else:
            shape.bases.append(shape.bases[-1] + (column + np.int64(at - 1)))
            shape.at = 0
            shape.items.append(step.hidden or TextSlot(step, base, at, None, base + 1))
        return [*shapes, shape]

    def _array(self, shape: ValueShape, step: Array) -> list[ValueShape]:
        shapes = []
        for lead, part in self._by_byte(shape):
            if lead == step.lead or lead >= _LONG or (lead == 0 and not step.nullable):
                self.undecoded_rows.append(part.rows)
                continue
            shapes.append(part)
            if lead == 0:
                part.items.append("null")
                continue
            part.next(("]",))
            for remaining in reversed(range(lead - 1)):
                part.next(("," if remaining else "[", *step.element))
            if lead == 1:
                part.items.append("[")
        return shapes

    def _maybe(self, shape: ValueShape, step: Maybe) -> list[ValueShape]:
        shapes = []
        for flag, part in self._by_byte(shape):
            if flag < _LONG:
                part.next(step.steps)
            elif step.omits_null:
                self.undecoded_rows.append(part.rows)
                continue
            else:
                part.items.append("null")
            shapes.append(part)
        return shapes

    def _tags(self, shape: ValueShape, step: Tags) -> list[ValueShape]:
        shapes = []
        for count, part in self._by_byte(shape):
            if count > len(step.by_tag):
                self.undecoded_rows.append(part.rows)
                continue
            if count:
                part.next((Tag(step, frozenset(), count),))
            shapes.append(part)
        return shapes

    def _tag(self, shape: ValueShape, step: Tag) -> list[ValueShape]:
        shapes = []
        for tag, tagged in self._by_byte(shape):
            if tag not in step.tags.by_tag or tag in step.previous:
                self.undecoded_rows.append(tagged.rows)
                continue
            before, below = step.tags.by_tag[tag]
            tags = step.previous | {tag}
            for size, part in self._by_byte(tagged):
                if size >= _LONG:
                    self.undecoded_rows.append(part.rows)
                    continue
                part.items.append(before if step.tags.is_first and len(tags) == 1 else f",{before}")
                if step.remaining > 1:
                    part.next((Tag(step.tags, tags, step.remaining - 1),))
                part.next((*below, Until(len(part.bases) - 1, part.at + size)))
                shapes.append(part)
        return shapes

    def _until(self, shape: ValueShape, step: Until) -> ValueShape:
        """Keep the values whose tagged field ends where its size says."""
        if step.base == len(shape.bases) - 1:
            return shape if step.at == shape.at else self._select(shape, np.zeros(len(shape), bool))
        return self._select(shape, shape.bases[step.base] + step.at == shape.bases[-1] + shape.at)


def gather(buf: Bytes, kind: str, at: Ints) -> Any:
    """Read values of a numpy type at unaligned positions; a position past the end gets the last possible value."""
    size = np.dtype(kind).itemsize
    there = max(len(buf) - size + 1, 0)
    every = np.ndarray((there,), kind, buffer=buf, strides=(1,))
    return every.take(at, mode="clip") if there else np.zeros(len(at), kind)
