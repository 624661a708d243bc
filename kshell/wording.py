"""Phrases of messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def ids(numbers: Iterable[int]) -> str:
    """Return ``1,2,3``; ``none`` if there are none."""
    return ",".join(map(str, numbers)) or "none"


def all_of(names: Sequence[str]) -> str:
    """Return ``a, b and c``."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def first_of(names: Sequence[str], most: int, between: str = ", ", noun: str = "") -> str:
    """Return ``a, b, c and 4 more``: the first names, at most ``most``, and how many follow, as ``4 more NOUN``."""
    left_out = len(names) - most
    more = f" and {left_out:,} more{noun and f' {noun}'}" if left_out > 0 else ""
    return between.join(names[:most]) + more
