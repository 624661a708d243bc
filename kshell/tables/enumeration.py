"""Text columns with known values: declared with the column, used by conditions (``--where``) and completion."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from kshell.errors import did_you_mean

_CODES = range(-128, 1024)
"""Numbers that stand for values of newer Kafka releases when a test is tried on all possible values."""
_NUMBER = "{}"


class Enumeration(str):
    """The column type ``string`` with the values that the column can have. It equals the plain ``"string"``.

    ``newer`` are patterns for values that a later Kafka may add, with ``{}`` for a number: ``UNKNOWN({})``.
    """

    newer: tuple[str, ...]

    def __new__(cls, values: Iterable[str] | Callable[[], Iterable[str]], newer: tuple[str, ...] = ()) -> Enumeration:
        """``values`` may be a function that gives them, if the module that declares them is better imported late."""
        enumeration = super().__new__(cls, "string")
        enumeration._values = values if callable(values) else tuple(values)
        enumeration.newer = newer
        return enumeration

    _values: tuple[str, ...] | Callable[[], Iterable[str]]

    def __reduce__(self) -> tuple[type[Enumeration], tuple[tuple[str, ...], tuple[str, ...]]]:
        return Enumeration, (self.values, self.newer)

    @property
    def values(self) -> tuple[str, ...]:
        """The values with a name of their own, in order."""
        return tuple(dict.fromkeys(self._values())) if callable(self._values) else self._values

    def has(self, text: str) -> bool:
        """Whether the column can have the value ``text``."""
        return text in self.values or any(
            re.fullmatch(re.escape(name).replace(re.escape(_NUMBER), r"-?\d+"), text) for name in self.newer
        )

    def any(self, test: Callable[[str], object]) -> bool:
        """Whether the test is true for at least one value that the column can have."""
        return any(map(test, self._samples()))

    def _samples(self) -> Iterator[str]:
        yield from self.values
        for name in self.newer:
            yield from (name.format(code) for code in _CODES) if _NUMBER in name else (name,)

    def proposal(self, text: str) -> str:
        """Return the hint for a value that the column cannot have: values that may be meant, else all of them."""
        folded = {_folded(value): value for value in self.values}
        if _folded(text) in folded:
            return f"did you mean {folded[_folded(text)]}?"
        values = f"values: {', '.join(self.values)}"
        return did_you_mean(_folded(text), folded, write=folded.__getitem__) or values


def _folded(text: str) -> str:
    """Return a value without what is easily mistyped: upper and lower case, and separators of words."""
    return re.sub(r"[-_. ]", "", text).lower()
