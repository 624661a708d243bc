"""Cut rows and trees to the size that a page or notebook shows (``RenderOptions.limit``), and say what was left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from kshell.engine.result import Branch, Row, Rows

_FEWEST, _PART = 3, 3
"""If the children of a directory are directories, it shows at most ``room // _PART`` of them (but ``_FEWEST``), so that
room is left for what is in them."""


class LimitedRows:
    """The first rows of a result. Iterate over it once; after that, :attr:`note` says what was left out, if anything.

    Of rows that are made while they are read, one more than the limit is read, to know whether there are more; of live
    rows none, as that would wait for the next one.
    """

    def __init__(self, rows: Rows, limit: int | None) -> None:
        self._rows = rows
        self._limit = limit
        self._total = len(rows.rows) if isinstance(rows.rows, Sequence) else None
        self.note = ""

    def __iter__(self) -> Iterator[Row]:
        limit, count = self._limit, 0
        if limit is None:
            limit = self._total
        rest = iter(self._rows)
        for row in islice(rest, limit):
            count += 1
            yield row
        if count == 0:
            self.note = "no rows"
        elif self._total is not None and count < self._total:
            self.note = f"{count:,} of {self._total:,} rows; {self._where_else()}"
        elif self._total is None and self._limit == count and (self._rows.live or next(rest, None) is not None):
            self.note = f"the first {count:,} rows; {self._where_else()}"

    def _where_else(self) -> str:
        return ".df has them all" + (", --where and --limit choose" if self._rows.order is not None else "")


# --- trees ----------------------------------------------------------------------------------------------------------


def cut(roots: list[Branch], limit: int | None) -> tuple[list[Branch], str]:
    """Cut trees to about ``limit`` nodes, and return them with a note that says what was left out (``""``: nothing).

    Small branches stay whole, large ones share what is left equally. A leaf is one node, however large its value is.
    """
    if limit is None:
        return roots, ""
    sizes: dict[int, int] = {}
    total = sum(_measure(root, sizes) for root in roots)
    if total <= limit:
        return roots, ""
    first_roots = _first_branches(roots, sizes, limit)
    note = f"{sum(map(count, first_roots)):,} of {total:,} nodes; .df has the value of every leaf"
    return first_roots + (
        [Branch("", left_out=len(roots) - len(first_roots))] if len(first_roots) < len(roots) else []
    ), note


def count(branch: Branch) -> int:
    """Return the number of nodes of a tree."""
    return 1 + sum(map(count, branch.children or ()))


def _measure(branch: Branch, sizes: dict[int, int]) -> int:
    """Return the number of nodes of a branch, and store it for every branch below by ``id()``."""
    sizes[id(branch)] = size = 1 + sum(_measure(child, sizes) for child in branch.children or ())
    return size


def _first_branches(branches: list[Branch], sizes: dict[int, int], room: int) -> list[Branch]:
    """Return the first of the branches, each cut to its share of ``room`` nodes."""
    nested = any(branch.children for branch in branches)
    some = branches[: min(room, max(_FEWEST, room // _PART))] if nested else branches[:room]
    rooms = shares([sizes[id(branch)] for branch in some], room)
    return [_smaller(branch, sizes, share) for branch, share in zip(some, rooms, strict=True)]


def _smaller(branch: Branch, sizes: dict[int, int], room: int) -> Branch:
    if sizes[id(branch)] <= room or not branch.children:
        return branch
    children = _first_branches(branch.children, sizes, room - 1)
    return branch._replace(children=children, left_out=branch.left_out + len(branch.children) - len(children))


def shares(sizes: list[int], room: int) -> list[int]:
    """Divide ``room`` among items of these sizes: small ones get what they need, the others share the rest."""
    allotted = [0] * len(sizes)
    remaining = len(sizes)
    for place in sorted(range(len(sizes)), key=sizes.__getitem__):
        allotted[place] = max(1, min(sizes[place], room // remaining))
        room -= allotted[place]
        remaining -= 1
    return allotted
