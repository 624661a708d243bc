"""What conditions do with the values of rows: plain values (what JSON knows), of any kind, perhaps null.

Nothing here fails: what cannot be compared is not equal and not less.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

Step = str | tuple[str] | int
"""A name among dots, a key in brackets, a place in a list."""


def names_of(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps of a field with every dotted name split."""
    found: list[Step] = []
    for step in steps:
        found.extend(step.split(".") if isinstance(step, str) else [step])
    return tuple(found)


def keys_at(names: tuple[Step, ...], at: int) -> list[tuple[str, int]]:
    """The keys that the names from a place on may stand for, each with the place after it: the longest first.

    ``metadata.version.max`` -> that, ``metadata.version``, ``metadata``: keys may hold dots.
    """
    first = names[at]
    if isinstance(first, tuple):
        return [(first[0], at + 1)]
    found: list[tuple[str, int]] = []
    key = ""
    for end in range(at, len(names)):
        name = names[end]
        if not isinstance(name, str):
            break
        key = f"{key}.{name}" if found else name
        found.append((key, end + 1))
    return found[::-1]


def place_of(name: Step) -> int | None:
    """The place in a list that a step means, if it can mean one."""
    if isinstance(name, int):
        return name
    return int(name) if isinstance(name, str) and name.isascii() and name.isdigit() and len(name) < 10 else None


def follow(value: Any, names: tuple[Step, ...]) -> Any:
    """The value below a value; ``None`` where there is none."""
    at = 0
    while at < len(names):
        if isinstance(value, Mapping):
            found = next(((key, end) for key, end in keys_at(names, at) if key in value), None)
            if found is None:
                return None
            value, at = value[found[0]], found[1]
            continue
        place = place_of(names[at])
        if place is None or not isinstance(value, list | tuple) or not -len(value) <= place < len(value):
            return None
        value, at = value[place], at + 1
    return value


def field_or(scope: tuple[Any, ...], names: tuple[Step, ...], text: str | None) -> Any:
    """The field in the innermost value of a scope that has it; ``text`` when none has."""
    for value in scope:
        if isinstance(value, Mapping) and any(key in value for key, _ in keys_at(names, 0)):
            return follow(value, names)
    return text


def getter(depth: int, names: tuple[Step, ...]) -> Callable[[tuple[Any, ...]], Any]:
    """The function that gets a field of the value at a depth of the scope."""
    if len(names) == 1 and isinstance(names[0], str):
        name = names[0]

        def get(scope: tuple[Any, ...]) -> Any:
            value = scope[depth]
            return value.get(name) if isinstance(value, Mapping) else None

        return get
    return lambda scope: follow(scope[depth], names)


def same(one: Any, other: Any) -> bool:
    """Equality as JSON sees it: ``1`` is ``1.0`` and not ``true``."""
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def test(one: Any, other: Any) -> bool:
        return _have_order(one, other) and compare(one, other)

    return test


def _have_order(one: Any, other: Any) -> bool:
    if isinstance(one, str) and isinstance(other, str):
        return True
    numbers = isinstance(one, int | float) and isinstance(other, int | float)
    return numbers and not isinstance(one, bool) and not isinstance(other, bool)


COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": same,
    "!=": lambda one, other: not same(one, other),
    "<": _ordered(operator.lt),
    "<=": _ordered(operator.le),
    ">": _ordered(operator.gt),
    ">=": _ordered(operator.ge),
}


def contains(container: Any, item: Any) -> bool:
    """Whether a list has an element, an object a key, or a text a part."""
    if isinstance(container, list | tuple):
        return any(same(item, element) for element in container)
    return isinstance(item, str) and isinstance(container, Mapping | str) and item in container


def length(value: Any) -> int | None:
    """Of a list, an object or a text."""
    return len(value) if isinstance(value, list | tuple | Mapping | str) else None
