"""``--where``: conditions on the rows of an answer, typed and compiled (the grammar: :mod:`.where_grammar`).

::

    underReplicated > 0 and name ~ '^orders'
    len(isr) < len(replicas) or not 3 in isr
    any(listeners, port == 9093 and securityProtocol in [SSL, SASL_SSL])
    supportedFeatures.metadata.version.max >= 20

Names are the answer's own. A dot leads into an object, or to a place in a list (``isr.0``, ``isr[0]``, ``isr[-1]``).
A key that holds dots is found as it is, and ``["any key"]`` names every other. Inside ``any`` and ``all``, names are
first the element's, and ``it`` is the element. A word that is no field is text where text belongs: to the right of a
comparison with text, and in its lists (``state == offline``). ``in`` asks for an element of a list, a key of an object,
or a part of a text.

null is a value: ``null == null`` is true. Else what is asked of it is false: ``<``, ``~``, ``in``, ``any``, ``all``.
``!=`` is the opposite of ``==``, ``!~`` of ``~``. What lies below null is null. 64-bit numbers are exact.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from kshell.tables.existing import NameMeant
from kshell.tables.where_checks import Checker, Scope
from kshell.tables.where_grammar import COMPARISONS, FUNCTIONS, ExpressionError, WhereToken, parse, tokens
from kshell.tables.where_kinds import ANY, NUMBER, OTHER_FIELDS, STRING, FieldType, Kind, kind_of

__all__ = ["ExpressionError", "Predicate", "compile_where", "complete_where"]

_WORD = re.compile(r"\w+")

Row = Mapping[str, Any]
Fields = Mapping[str, FieldType]


class Predicate:
    """A condition on a row, to be called with it."""

    def __init__(self, text: str, test: Callable[[Scope], bool], named: tuple[NameMeant, ...] = ()) -> None:
        """``named``: the constants that are compared with names of things."""
        self.text = text
        self.words = frozenset(_WORD.findall(text))
        """Those of the text, names of fields among them."""
        self.named = named
        self._test = test

    def __call__(self, row: Row) -> bool:
        """Whether the row fulfils the condition. A field that the row lacks is null."""
        return self._test((row,))

    def __repr__(self) -> str:
        return f"Predicate({self.text!r})"


def compile_where(text: str, fields: Fields | None = None) -> Predicate:
    """The condition in ``text`` on rows with these fields; ``None``: any fields, of any kind.

    Raises ExpressionError (a UsageError) with the column in ``text``: for what is no condition, for a field that does
    not exist, for kinds that cannot be compared.
    """
    row = (
        ANY
        if fields is None
        else Kind("object", fields={name: kind_of(field_type) for name, field_type in fields.items()})
    )
    checker = Checker(text, row)
    test = checker.condition(parse(text))
    return Predicate(text, test, tuple(checker.named))


# --- completion ------------------------------------------------------------------------------------------------------

_ORDER = ("<", "<=", ">", ">=")
_AFTER = {
    "number": ("==", "!=", *_ORDER, "in"),
    "string": ("==", "!=", "~", "!~", "in", *_ORDER),
    "boolean": ("==", "!=", "and", "or"),
    "list": ("==", "!="),
    "object": ("==", "!="),
}
_ANYTHING = ("==", "!=", *_ORDER, "~", "!~", "in")
Kinds = dict[str, Kind]


def complete_where(text: str, fields: Fields | None = None) -> list[str]:
    """What an unfinished condition may become: each candidate is the whole text with its last word completed."""
    try:
        scanned = tokens(text)[:-1]
    except ExpressionError:
        return []
    unfinished = (
        scanned.pop() if scanned and scanned[-1].kind in ("word", "keyword") and scanned[-1].end == len(text) else None
    )
    typed, before = (text[unfinished.at :], text[: unfinished.at]) if unfinished else ("", text)
    glue = "" if unfinished or not before or before[-1].isspace() or before[-1] in "([" else " "
    kinds = {name: kind_of(field_type) for name, field_type in (fields or {}).items()}
    return [f"{before}{glue}{completion}" for completion in _expected(scanned, kinds) if completion.startswith(typed)]


def _expected(before: list[WhereToken], row: Kinds) -> list[str]:
    """The words that may come after those tokens."""
    kinds, function = _names_there(before, row)
    last = before[-1] if before else WhereToken("keyword", "and", 0, 0)
    if function is not None and last.value == "(":
        return [name for name in kinds if kinds[name].may_be(*(("list", "object") if function == "len" else ("list",)))]
    listed = _listed_beside(before, kinds)
    if listed is not None:
        return _values(listed, kinds)
    if _is(last, "and", "or", "not", "(", ","):
        return [
            *_fields(kinds, "boolean", "number", "string", "list", "object"),
            *(f"{name}(" for name in FUNCTIONS),
            "not",
        ]
    beside = _kind_at(before, len(before) - 2, kinds)
    if _is(last, *COMPARISONS):
        return [*_values(beside, kinds), "null", *_fields(kinds, beside.name if beside.name != "any" else "")]
    if _is(last, "in"):
        return _fields(kinds, "list", "object")
    if _is(last, "~", "!~", "["):
        return []
    if len(before) > 1 and _is(before[-2], *COMPARISONS, "~", "!~", "in"):
        return ["and", "or"]
    return [*_AFTER.get(_kind_at(before, len(before) - 1, kinds).name, _ANYTHING)]


def _values(kind: Kind, kinds: Kinds) -> list[str]:
    """The values that a kind declares, as words of a condition: in quotes where they would mean something else."""
    if kind.name == "boolean":
        return ["true", "false"]
    return [_written(value, kinds) for value in kind.values.values] if kind.values is not None else []


def _written(text: str, kinds: Kinds) -> str:
    try:
        scanned = tokens(text)
    except ExpressionError:
        return f"'{text}'"
    is_word = len(scanned) == 2 and scanned[0].kind == "word" and text not in kinds
    return text if is_word else f"'{text}'"


def _listed_beside(before: list[WhereToken], kinds: Kinds) -> Kind | None:
    """The kind of the field before ``in [`` (or ``not in [``), where the next value of that list is to come."""
    at = len(before) - 1
    while at > 0 and (_is(before[at], ",") or before[at].kind in ("word", "string", "number")):
        at -= 1
    if at < 2 or not _is(before[at], "[") or not _is(before[at - 1], "in") or not _is(before[-1], "[", ","):
        return None
    return _kind_at(before, at - (3 if _is(before[at - 2], "not") else 2), kinds)


def _is(token: WhereToken, *values: str) -> bool:
    """Whether it is one of these marks or keywords; text in quotes is none."""
    return token.kind in ("mark", "keyword") and token.value in values


def _fields(kinds: Kinds, *wanted: str) -> list[str]:
    return sorted(name for name, kind in kinds.items() if wanted == ("",) or kind.may_be(*wanted))


def _names_there(before: list[WhereToken], row: Kinds) -> tuple[Kinds, str | None]:
    """(the fields that have names behind those tokens, the function whose argument is being written)."""
    stack: list[tuple[Kinds, str | None]] = [(row, None)]
    for at, token in enumerate(before):
        kinds, function = stack[-1]
        earlier = before[at - 1] if at else token
        if _is(token, "("):
            stack.append((kinds, earlier.value if earlier.kind == "word" and earlier.value in FUNCTIONS else None))
        elif _is(token, ",") and function is not None:
            element = _kind_at(before, at - 1, kinds).element
            stack[-1] = ({**kinds, **(element.fields or {"it": element})}, None)
        elif _is(token, ")") and len(stack) > 1:
            stack.pop()
    kinds, function = stack[-1]
    return {name: kind for name, kind in kinds.items() if name != OTHER_FIELDS}, function


def _kind_at(before: list[WhereToken], at: int, kinds: Kinds) -> Kind:
    """The kind of the field that a token is; a number's, a text's; of a call, a number: ``any(…)`` needs no more."""
    token = before[at] if at >= 0 else WhereToken("end", None, 0, 0)
    if _is(token, ")"):
        return NUMBER
    return (
        kinds.get(token.value, ANY)
        if token.kind == "word"
        else {"number": NUMBER, "string": STRING}.get(token.kind, ANY)
    )
