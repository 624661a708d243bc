"""The kinds of values in ``--where``: declared for the fields of a command's rows, or derived from existing rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Union

from kshell.tables.enumeration import Enumeration

if TYPE_CHECKING:
    from kshell.engine.result import Row

FieldType = Union["Kind", type, list[Any], Mapping[str, Any]]
"""How a command declares what a field holds: ``int``, ``float``, ``str``, ``bool``; ``object`` for anything;
``[int]`` for a list; ``{"host": str}`` for an object with such fields, where ``"*"`` stands for all others; ``list``
and ``dict`` for lists and objects of anything. Every field may be null."""

OTHER_FIELDS = "*"
"""The field of an object's kind that stands for all keys that are not named."""


class Kind(NamedTuple):
    """A kind of value: any, null, boolean, number, string, list (``of`` its elements) or object (``fields``).

    Some are declared more closely: ``values`` that a string can have, ``bits`` of a whole number, and ``kind_name``:
    what the value names (:class:`.NameOf`).
    """

    name: str
    of: Kind | None = None
    fields: Mapping[str, Kind] | None = None
    values: Enumeration | None = None
    bits: int | None = None
    kind_name: str = ""

    def refusal(self, value: object) -> str | None:
        """Return a hint why this kind cannot have a constant; ``None`` if it can. Other kinds are not checked."""
        if self.values is not None and isinstance(value, str):
            return None if self.values.has(value) else self.values.proposal(value)
        if self.bits is None or isinstance(value, bool) or not isinstance(value, int | float):
            return None
        limit = 1 << (self.bits - 1)
        if value == int(value) and -limit <= value < limit:
            return None
        return f"it is a whole number from {-limit} to {limit - 1}"

    def may_be(self, *names: str) -> bool:
        """Whether a value of this kind can be of one of the kinds named."""
        return self.name in ("any", "null", *names)

    @property
    def description(self) -> str:
        """The kind for users: ``a number``."""
        article = "an" if self.name[0] in "aeiou" else "a"
        return {"any": "anything", "null": "null"}.get(self.name, f"{article} {self.name}")

    @property
    def element(self) -> Kind:
        """The kind of a list's elements."""
        return self.of or ANY

    @property
    def is_open(self) -> bool:
        """Whether values of this kind may have fields that are not declared."""
        return self.may_be() or (self.name == "object" and (self.fields is None or OTHER_FIELDS in self.fields))

    def named(self) -> list[str]:
        """Return the declared fields of an object."""
        return [name for name in self.fields or () if name != OTHER_FIELDS]


ANY = Kind("any")
NULL = Kind("null")
BOOLEAN = Kind("boolean")
NUMBER = Kind("number")
STRING = Kind("string")
_PLAIN = {int: NUMBER, float: NUMBER, str: STRING, bool: BOOLEAN, list: Kind("list"), dict: Kind("object")}


def kind_of(declared: FieldType) -> Kind:
    """Return the kind for a command's declaration."""
    if isinstance(declared, Kind):
        return declared
    if isinstance(declared, Mapping):
        return Kind("object", fields={name: kind_of(below) for name, below in declared.items()})
    if isinstance(declared, list):
        return Kind("list", of=kind_of(declared[0]))
    return _PLAIN.get(declared, ANY)


def kind_of_value(value: Any) -> Kind:
    """Return the kind of a plain value. Objects stay open: those of other rows may have other keys."""
    if value is None:
        return NULL
    if isinstance(value, bool):
        return BOOLEAN
    if isinstance(value, int | float):
        return NUMBER
    if isinstance(value, str):
        return STRING
    if isinstance(value, Mapping):
        fields = {str(name): kind_of_value(below) for name, below in value.items()}
        return Kind("object", fields={**fields, OTHER_FIELDS: ANY})
    return Kind("list", of=_joined(map(kind_of_value, value)))


def _joined(kinds: Iterable[Kind]) -> Kind:
    joined = NULL
    for kind in kinds:
        joined = _join(joined, kind)
    return joined


def _join(first: Kind, second: Kind) -> Kind:
    """Return the kind that covers both; null adds nothing to the other."""
    if first == second or second is NULL:
        return first
    if first is NULL:
        return second
    if first.name != second.name or first.name == "any":
        return ANY
    if first.name == "list":
        return Kind("list", of=_join(first.element, second.element))
    if first.name != "object" or first.fields is None or second.fields is None:
        return Kind(first.name)
    names = dict.fromkeys((*first.fields, *second.fields))
    return Kind("object", fields={n: _join(first.fields.get(n, NULL), second.fields.get(n, NULL)) for n in names})


def fields_of(rows: Iterable[Row], names: Iterable[str] = ()) -> dict[str, Kind]:
    """Return the fields of rows, and ``names`` in any case; a field of several kinds, or always null, is anything."""
    kinds: dict[str, Kind] = dict.fromkeys(names, NULL)
    for row in rows:
        for name, value in row.items():
            kinds[name] = _join(kinds.get(name, NULL), kind_of_value(value))
    return {name: ANY if kind is NULL else kind for name, kind in kinds.items()}
