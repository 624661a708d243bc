"""Columns of text whose values are known: declared with the column, used by conditions and by completion."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from kshell.errors import did_you_mean

_CODES = range(-128, 1024)
"""Numbers of values that this kshell does not know, where a pattern is tried on them."""
_NUMBER = "{}"


class Enumeration(str):
    """The column type ``string``, with the values that the column can have; wherever types are compared, a ``string``.

    ``newer`` are the names of values that a later Kafka may add, with ``{}`` for the number that stands in them:
    ``UNKNOWN({})``.
    """

    newer: tuple[str, ...]

    def __new__(cls, values: Iterable[str] | Callable[[], Iterable[str]], newer: tuple[str, ...] = ()) -> Enumeration:
        """``values``: or a function that gives them, where those who declare them are better imported late."""
        enumeration = super().__new__(cls, "string")
        enumeration._values = values if callable(values) else tuple(values)
        enumeration.newer = newer
        return enumeration

    _values: tuple[str, ...] | Callable[[], Iterable[str]]

    def __reduce__(self) -> tuple[type[Enumeration], tuple[tuple[str, ...], tuple[str, ...]]]:
        return Enumeration, (self.values, self.newer)

    @property
    def values(self) -> tuple[str, ...]:
        """The values that are known by name."""
        return tuple(dict.fromkeys(self._values())) if callable(self._values) else self._values

    def has(self, text: str) -> bool:
        """Whether the column can have that value."""
        return text in self.values or any(
            re.fullmatch(re.escape(name).replace(re.escape(_NUMBER), r"-?\d+"), text) for name in self.newer
        )

    def any(self, test: Callable[[str], object]) -> bool:
        """Whether the test is true of a value that the column can have."""
        return any(map(test, self._samples()))

    def _samples(self) -> Iterator[str]:
        yield from self.values
        for name in self.newer:
            yield from (name.format(code) for code in _CODES) if _NUMBER in name else (name,)

    def proposal(self, text: str) -> str:
        """The hint for a value that the column cannot have: those that may be meant, else those there are."""
        folded = {_folded(value): value for value in self.values}
        if _folded(text) in folded:
            return f"did you mean {folded[_folded(text)]}?"
        values = f"values: {', '.join(self.values)}"
        return did_you_mean(_folded(text), folded, write=folded.__getitem__) or values


def _folded(text: str) -> str:
    """Without what people mix up: upper and lower case, and what stands between words."""
    return re.sub(r"[-_. ]", "", text).lower()
