"""``--where``: conditions on the rows of an answer, typed and compiled (the grammar is in :mod:`.where_grammar`).

A text and the declared fields come in; a :class:`Predicate` to call with each row goes out, or completions.

::

    underReplicated > 0 and name ~ '^orders'
    len(isr) < len(replicas) or not 3 in isr
    any(listeners, port == 9093 and securityProtocol in [SSL, SASL_SSL])
    supportedFeatures.metadata.version.max >= 20

Names are the fields of the row. A dot leads to a field of an object or to a position in a list (``isr.0``, ``isr[0]``,
``isr[-1]``). A key that contains dots needs no quotes; ``["any key"]`` is for all other keys. Inside ``any`` and
``all``, a name is first a field of the element, and ``it`` is the element itself. A word that is not a field is text
where text is expected: on the right of a comparison with text, and in a list of texts (``state == offline``). ``in``
looks for an element of a list, a key of an object, or a part of a text.

null is a value: ``null == null`` is true. Every other test of null is false: ``<``, ``~``, ``in``, ``any``, ``all``.
``!=`` is the opposite of ``==``, and ``!~`` of ``~``. A field of null is null. 64-bit numbers are exact.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from kshell.tables.existing import NameMeant
from kshell.tables.where_checks import Checker, Scope
from kshell.tables.where_grammar import COMPARISONS, FUNCTIONS, ExpressionError, WhereToken, parse, tokens
from kshell.tables.where_kinds import ANY, NUMBER, OTHER_FIELDS, STRING, FieldType, Kind, kind_of

if TYPE_CHECKING:
    from kshell.engine.result import Row

__all__ = ["ExpressionError", "Predicate", "compile_where", "complete_where"]

_WORD = re.compile(r"\w+")

Fields = Mapping[str, FieldType]


class Predicate:
    """A compiled condition: call it with a row."""

    def __init__(self, text: str, test: Callable[[Scope], bool], named: tuple[NameMeant, ...] = ()) -> None:
        """``named``: the constants that are compared with fields that name things, such as topics."""
        self.text = text
        self.words = frozenset(_WORD.findall(text))
        """All words of the text; the names of the fields that the condition needs are among them."""
        self.named = named
        self._test = test

    def __call__(self, row: Row) -> bool:
        """Whether the row fulfils the condition. A field that the row lacks is null."""
        return self._test((row,))

    def __repr__(self) -> str:
        return f"Predicate({self.text!r})"


def compile_where(text: str, fields: Fields | None = None) -> Predicate:
    """Compile the condition in ``text`` for rows with these fields; ``None``: any fields, of any kind.

    Raises ExpressionError (a UsageError) with the column in ``text`` for a faulty condition, for a field that does not
    exist, and for kinds that cannot be compared.
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
    """Complete an unfinished condition: each result is the whole text with its last word completed."""
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
    """Return the words that may follow these tokens."""
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
    """Return the values that a kind can have as words of a condition, in quotes where they would mean another thing."""
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
    """Return the kind of the field before ``in [`` or ``not in [`` if the next token is a value of that list."""
    at = len(before) - 1
    while at > 0 and (_is(before[at], ",") or before[at].kind in ("word", "string", "number")):
        at -= 1
    if at < 2 or not _is(before[at], "[") or not _is(before[at - 1], "in") or not _is(before[-1], "[", ","):
        return None
    return _kind_at(before, at - (3 if _is(before[at - 2], "not") else 2), kinds)


def _is(token: WhereToken, *values: str) -> bool:
    """Whether a token is one of these marks or keywords; quoted text is not."""
    return token.kind in ("mark", "keyword") and token.value in values


def _fields(kinds: Kinds, *wanted: str) -> list[str]:
    """Return the names of the fields that can be of one of these kinds; ``""`` for any."""
    return sorted(name for name, kind in kinds.items() if wanted == ("",) or kind.may_be(*wanted))


def _names_there(before: list[WhereToken], row: Kinds) -> tuple[Kinds, str | None]:
    """Return the fields that can be named after these tokens, and the function whose argument is being written."""
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
    """Return the kind of the value that ends at a token: a field, number or text; a call counts as a number."""
    token = before[at] if at >= 0 else WhereToken("end", None, 0, 0)
    if _is(token, ")"):
        return NUMBER
    return (
        kinds.get(token.value, ANY)
        if token.kind == "word"
        else {"number": NUMBER, "string": STRING}.get(token.kind, ANY)
    )
