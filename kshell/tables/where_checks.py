"""Turns the nodes of a ``--where`` expression into one function of a row: kinds are checked once, not for each row.

:class:`Checker` does so; the functions before it are what its result calls. Values are plain (as in JSON), of any kind,
perhaps null. Evaluation never fails: values that cannot be compared are neither equal nor less. Patterns are Python's,
except those that can take forever on a short text, and have a time limit.
"""

from __future__ import annotations

import operator
import re
import threading
import warnings
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any, NamedTuple, NoReturn

from kshell.errors import CommandError, did_you_mean
from kshell.tables.existing import NameMeant
from kshell.tables.where_grammar import (
    NUMBER_TEXT,
    Binary,
    ExpressionError,
    Function,
    Items,
    Junction,
    Literal,
    Negation,
    Node,
    Path,
    WhereToken,
)
from kshell.tables.where_kinds import ANY, BOOLEAN, NUMBER, OTHER_FIELDS, STRING, Kind, kind_of_value

Step = str | tuple[str] | int
"""One step of a field: a dotted name, a key in brackets, a position in a list."""


def names_of(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Return the steps of a field with dotted names split into one step per name."""
    split_names: list[Step] = []
    for step in steps:
        split_names.extend(step.split(".") if isinstance(step, str) else [step])
    return tuple(split_names)


def keys_at(names: tuple[Step, ...], at: int) -> list[tuple[str, int]]:
    """Return the keys that may begin at position ``at`` of the names, each with the position after it, longest first.

    Keys may contain dots: ``metadata.version.max`` gives that, ``metadata.version`` and ``metadata``.
    """
    first = names[at]
    if isinstance(first, tuple):
        return [(first[0], at + 1)]
    keys: list[tuple[str, int]] = []
    key = ""
    for end in range(at, len(names)):
        name = names[end]
        if not isinstance(name, str):
            break
        key = f"{key}.{name}" if keys else name
        keys.append((key, end + 1))
    return keys[::-1]


def place_of(name: Step) -> int | None:
    """Return the position in a list that a step means; ``None`` if it cannot mean one."""
    if isinstance(name, int):
        return name
    return int(name) if isinstance(name, str) and name.isascii() and name.isdigit() and len(name) < 10 else None


def follow(value: object, names: tuple[Step, ...]) -> Any:
    """Return the value that some steps lead to from ``value``; ``None`` if there is none."""
    at = 0
    while at < len(names):
        if isinstance(value, Mapping):
            match = next(((key, end) for key, end in keys_at(names, at) if key in value), None)
            if match is None:
                return None
            value, at = value[match[0]], match[1]
            continue
        place = place_of(names[at])
        if place is None or not isinstance(value, list | tuple) or not -len(value) <= place < len(value):
            return None
        value, at = value[place], at + 1
    return value


def field_or(scope: Scope, names: tuple[Step, ...], text: str | None) -> Any:
    """Return the field of the innermost value in the scope that has it; ``text`` if none has it."""
    for value in scope:
        if isinstance(value, Mapping) and any(key in value for key, _ in keys_at(names, 0)):
            return follow(value, names)
    return text


def getter(depth: int, names: tuple[Step, ...]) -> Get:
    """Return a function that gets a field of the value at a depth of the scope, 0 for the innermost."""
    if len(names) == 1 and isinstance(names[0], str):
        name = names[0]

        def get(scope: Scope) -> Any:
            value = scope[depth]
            return value.get(name) if isinstance(value, Mapping) else None

        return get
    return lambda scope: follow(scope[depth], names)


def same(first: object, second: object) -> bool:
    """Whether two values are equal as in JSON: ``1`` equals ``1.0`` but not ``true``."""
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        return len(first) == len(second) and all(map(same, first, second))
    return isinstance(first, bool) == isinstance(second, bool) and bool(first == second)


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def test(first: object, second: object) -> bool:
        return _have_order(first, second) and compare(first, second)

    return test


def _have_order(first: object, second: object) -> bool:
    if isinstance(first, str) and isinstance(second, str):
        return True
    numbers = isinstance(first, int | float) and isinstance(second, int | float)
    return numbers and not isinstance(first, bool) and not isinstance(second, bool)


COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": same,
    "!=": lambda first, second: not same(first, second),
    "<": _ordered(operator.lt),
    "<=": _ordered(operator.le),
    ">": _ordered(operator.gt),
    ">=": _ordered(operator.ge),
}


def contains(container: object, item: object) -> bool:
    """Whether a list has an element, an object a key, or a text a part."""
    if isinstance(container, list | tuple):
        return any(same(item, element) for element in container)
    return isinstance(item, str) and isinstance(container, Mapping | str) and item in container


def length(value: object) -> int | None:
    """Return the length of a list, object or text; ``None`` for any other value."""
    return len(value) if isinstance(value, list | tuple | Mapping | str) else None


LONGEST = 500
"""The most characters of a pattern."""
_MANY = 10
_QUANTIFIER = re.compile(r"(?:[*+?]|\{(\d*)(,?)(\d*)\})[?+]?", re.ASCII)
_ZERO_WIDTH = ("(?=", "(?!", "(?<=", "(?<!", "(?#")


def pattern(token: WhereToken, text: str) -> re.Pattern[str]:
    """Compile the pattern in a token of the expression ``text``. Raises ExpressionError at the place of the fault."""
    expression: str = token.value
    if len(expression) > LONGEST:
        raise ExpressionError(f"a pattern of more than {LONGEST} characters", text, token.at)
    if repeats_without_end(expression):
        raise ExpressionError(
            "a repetition of nothing but repetitions takes for ever on some texts", text, token.at, hint="(a+)* is a*"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about patterns whose meaning may change in a later Python
            return re.compile(expression)
    except (re.error, OverflowError, RecursionError) as error:
        # If the quoted text has escapes, positions in the pattern are not those in the expression: point at its start.
        plain = token.kind == "string" and text[token.at + 1 : token.end - 1] == expression
        inside = getattr(error, "pos", None) or 0
        column = token.at + 1 + inside if plain else token.at
        raise ExpressionError(f"not a regular expression: {error}", text, column) from None


class _Group:
    """A group of a pattern so far. It is ``risky`` if every part of an alternative may vary in length."""

    def __init__(self, zero_width: bool) -> None:
        self.zero_width = zero_width
        self.fixed = self.varies = self.risky = False

    def end_alternative(self) -> None:
        self.risky = self.risky or (self.varies and not self.fixed)
        self.fixed = self.varies = False

    def add(self, *, varies: bool) -> None:
        self.varies = self.varies or varies
        self.fixed = self.fixed or not varies


def repeats_without_end(text: str) -> bool:
    """Whether a pattern repeats a group whose every part may vary in length: ``(a+)+``, ``(\\w+\\s*)*``."""
    groups = [_Group(False)]
    at = 0
    while at < len(text):
        char = text[at]
        if char == "(":
            groups.append(_Group(text.startswith(_ZERO_WIDTH, at)))
            at = _after_opening(text, at)
        elif char == "|":
            groups[-1].end_alternative()
            at += 1
        elif char == ")" and len(groups) > 1:
            inner = groups.pop()
            inner.end_alternative()
            varies, many, at = _quantifier(text, at + 1)
            if inner.risky and many:
                return True
            if not inner.zero_width:
                groups[-1].add(varies=varies or inner.risky)
        else:
            zero_width, at = _atom(text, at)
            varies, _, at = _quantifier(text, at)
            if not zero_width:
                groups[-1].add(varies=varies)
    return False


def _after_opening(text: str, at: int) -> int:
    """Return the position after an opening: ``(``, ``(?:``, ``(?P<name>``, ``(?=`` and the like."""
    group = re.compile(r"\((?:\?(?:P<\w*>|<[=!]|[:=!>#]|[a-zA-Z-]*:?))?").match(text, at)
    return group.end() if group else at + 1


def _atom(text: str, at: int) -> tuple[bool, int]:
    """Read one character, escape or class: return whether it has no width, and the position after it."""
    if text[at] == "\\":
        return text[at + 1 : at + 2] in ("b", "B", "A", "Z"), at + 2
    if text[at] == "[":
        char_class = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL).match(text, at)
        return False, char_class.end() if char_class else len(text)
    return text[at] in "^$", at + 1


def _quantifier(text: str, at: int) -> tuple[bool, bool, int]:
    """Read a quantifier, if any: return whether the length varies, whether it repeats often, the next position."""
    quantifier = _QUANTIFIER.match(text, at)
    if quantifier is None:
        return False, False, at
    if quantifier[0][0] != "{":
        return True, quantifier[0][0] != "?", quantifier.end()
    if not quantifier[2]:
        return False, len(quantifier[1]) > 1, quantifier.end()
    most = int(quantifier[3][:9]) if quantifier[3] else None
    return most is None or quantifier[1] != quantifier[3], most is None or most >= _MANY, quantifier.end()


SECONDS = 1.0
"""Seconds of processor time that a search in one text may take."""
_REPETITION = re.compile(r"[*+?{]")
Search = Callable[[str], object]


class _RangError(Exception):
    """The time limit of a search was reached."""


def bounded(pattern: re.Pattern[str], *, full_match: bool = False) -> Search:
    """Return the pattern's search (``full_match``: its full match) with a time limit. The search raises CommandError.

    A pattern with at most one repetition and no group cannot take long and has no limit. Outside the main thread there
    is no limit either: signals reach only that thread.
    """
    try_one = pattern.fullmatch if full_match else pattern.search
    repetitions = len(_REPETITION.findall(pattern.pattern))
    if not repetitions or (repetitions == 1 and "(" not in pattern.pattern):
        return try_one
    import signal

    if not hasattr(signal, "setitimer"):
        return try_one

    def ring(number: int, frame: FrameType | None) -> NoReturn:
        raise _RangError

    def search(text: str) -> object:
        if threading.current_thread() is not threading.main_thread():
            return try_one(text)
        before = signal.signal(signal.SIGVTALRM, ring)
        try:
            signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
            return try_one(text)
        except _RangError:
            raise CommandError(
                f"the pattern {pattern.pattern} takes more than {SECONDS:g} s on a text of {len(text)} characters",
                hint="repetitions that can share a text in many ways take for ever: .*.*x is .*x, (a|aa)* is a*",
            ) from None
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.signal(signal.SIGVTALRM, before)

    return search


Scope = tuple[Any, ...]
Get = Callable[[Scope], Any]
Test = Callable[[Scope], bool]
_NAMED = 12
"""The most fields that a hint lists."""


class CheckedNode(NamedTuple):
    """A checked node: the kind of its value, the function that gets the value from a scope, the value if constant."""

    kind: Kind
    get: Get
    constant: Any = None


class Checker:
    """Checks the nodes of one expression and compiles them: call :meth:`condition` with the top node.

    A scope has values, innermost first: the elements of ``any`` and ``all`` around a node, then the row (of kind
    ``row``).
    """

    def __init__(self, text: str, row: Kind) -> None:
        self.text = text
        self.kinds: tuple[Kind, ...] = (row,)
        self.named: list[NameMeant] = []
        """Constants that are compared with names of things: the caller can check whether such things exist."""

    def fault(self, message: str, node: Node, hint: str | None = None) -> ExpressionError:
        return ExpressionError(message, self.text, node.at, hint=hint)

    def source_of(self, node: Node) -> str:
        """Return the text of a node in the expression."""
        return self.text[node.at : node.end]

    # --- conditions --------------------------------------------------------------------------------------------------

    def condition(self, node: Node) -> Test:
        """Compile a node that must be true or false. Raises ExpressionError."""
        if isinstance(node, Junction):
            return self._junction(node)
        if isinstance(node, Negation):
            part = self.condition(node.part)
            return lambda scope: not part(scope)
        if isinstance(node, Binary):
            return self._binary(node)
        if isinstance(node, Function) and node.body is not None:
            return self._quantified(node, node.body)
        value = self.value(node)
        if not value.kind.may_be("boolean"):
            hint = (
                f"compare it, and quote the whole condition: '{self.source_of(node)} == …'"
                if isinstance(node, Path | Function)
                else None
            )
            raise self.fault(f"{self.source_of(node)} is {value.kind.description}, not a condition", node, hint)
        get = value.get
        return lambda scope: get(scope) is True

    def _junction(self, node: Junction) -> Test:
        parts = [self.condition(part) for part in node.parts]
        every = node.operator == "and"

        def test(scope: Scope) -> bool:
            # all() and any() stop at the first part that decides.
            return all(part(scope) for part in parts) if every else any(part(scope) for part in parts)

        return test

    def _binary(self, node: Binary) -> Test:
        if node.operator in ("~", "!~"):
            return self._match(node)
        if node.operator == "in":
            return self._membership(node)
        left = self.value(node.left)
        right = self.value(node.right, against=left.kind, of=node.left)
        self._comparable(node, left.kind, right.kind)
        if node.operator in ("==", "!="):
            self._check_possible(node.left, left.kind, node.right, right)
            self._check_possible(node.right, right.kind, node.left, left)
        compare, get_left, get_right = COMPARE[node.operator], left.get, right.get
        return lambda scope: compare(get_left(scope), get_right(scope))

    def _check_possible(self, field: Node, kind: Kind, node: Node, value: CheckedNode) -> None:
        """Refuse a constant that a field can never have: such a condition would never, or always, be true.

        Raises ExpressionError, which proposes what may be meant.
        """
        if kind.kind_name and value.constant is not None:
            self.named.append(NameMeant(kind.kind_name, value.constant))
        refusal = None if value.constant is None else kind.refusal(value.constant)
        if refusal is not None:
            raise self.fault(f"no value of {self.source_of(field)} is {self.source_of(node)}", node, refusal)

    def _comparable(self, node: Binary, left: Kind, right: Kind) -> None:
        """Refuse to compare kinds that do not fit, or to order values without an order, by raising ExpressionError."""
        if not (left.may_be(right.name) or right.may_be(left.name)):
            raise self.fault(
                f"{self.source_of(node.left)} is {left.description}, and {self.source_of(node.right)} is"
                f" {right.description}: they cannot be compared",
                node.right,
                self._quotes(node.right, left) or self._quotes(node.left, right) or self._element(node, left),
            )
        if node.operator in ("==", "!="):
            return
        for part, kind in ((node.left, left), (node.right, right)):
            if not kind.may_be("number", "string"):
                hint = f"len({self.source_of(part)}) counts" if kind.name == "list" else "== and != compare such values"
                raise self.fault(f"{self.source_of(part)} is {kind.description}, which has no order", part, hint)

    def _element(self, node: Binary, left: Kind) -> str | None:
        """Return a hint for a list that is compared with what may be one of its elements."""
        if left.name != "list" or node.operator != "==":
            return None
        return f"`{self.source_of(node.right)} in {self.source_of(node.left)}` looks for an element"

    def _quotes(self, node: Node, wanted: Kind) -> str | None:
        """Return a hint if quotes make the difference: versions and config values look like numbers, but are text."""
        if not isinstance(node, Literal) or isinstance(node.value, bool):
            return None
        if wanted.name == "string" and isinstance(node.value, int | float):
            return f"put text that looks like a number in quotes: '{self.source_of(node)}'"
        is_number = isinstance(node.value, str) and NUMBER_TEXT.fullmatch(node.value)
        return f"write a number without quotes: {node.value}" if wanted.name == "number" and is_number else None

    def _match(self, node: Binary) -> Test:
        left = self.value(node.left)
        if not left.kind.may_be("string"):
            raise self.fault(f"{self.source_of(node.left)} is {left.kind.description}: ~ searches in text", node.left)
        compiled = pattern(node.right, self.text)
        search, values = bounded(compiled), left.kind.values
        if values is not None and not values.any(search):
            message = f"no value of {self.source_of(node.left)} matches {compiled.pattern}"
            raise ExpressionError(message, self.text, node.right.at, hint=f"values: {', '.join(values.values)}")
        get, wanted = left.get, node.operator == "~"

        def test(scope: Scope) -> bool:
            text = get(scope)
            return (isinstance(text, str) and search(text) is not None) == wanted

        return test

    def _membership(self, node: Binary) -> Test:
        if isinstance(node.right, Items):
            left = self.value(node.left)
            right = self.items(node.right, left.kind, of=node.left)
            if not (left.kind.may_be(right.kind.element.name) or right.kind.element.may_be()):
                raise self._never_in(node, left.kind, right.kind.element, node.right)
        else:
            right = self.value(node.right)
            if not right.kind.may_be("list", "object", "string"):
                raise self.fault(
                    f"{self.source_of(node.right)} is {right.kind.description}, and `in` cannot search that", node.right
                )
            inside = {"list": right.kind.element, "object": STRING, "string": STRING}
            element = inside.get(right.kind.name, ANY)
            left = self.value(node.left, against=element)
            if not (left.kind.may_be(element.name) or element.may_be()):
                raise self._never_in(node, left.kind, element, node.left)
            self._check_part(node, left, right)
            self._check_possible(node.right, element, node.left, left)
        get_left, get_right = left.get, right.get
        return lambda scope: contains(get_right(scope), get_left(scope))

    def _check_part(self, node: Binary, left: CheckedNode, right: CheckedNode) -> None:
        """Refuse ``in`` between texts that can never be true: one side is a constant, the other has known values."""
        if right.kind.values is not None and isinstance(left.constant, str):
            part, values, field = left.constant, right.kind.values, node.right
            if not values.any(lambda text: part in text):
                message = f"no value of {self.source_of(field)} has {self.source_of(node.left)} in it"
                raise self.fault(message, node.left, values.proposal(part))
        if left.kind.values is not None and isinstance(right.constant, str):
            constant, values = right.constant, left.kind.values
            if not values.any(lambda text: text in constant):
                message = f"no value of {self.source_of(node.left)} is in {self.source_of(node.right)}"
                raise self.fault(message, node.right, values.proposal(constant))

    def _never_in(self, node: Binary, left: Kind, element: Kind, at: Node) -> ExpressionError:
        subject = f"{self.source_of(node.left)} is {left.description}"
        return self.fault(f"{subject}, and what {self.source_of(node.right)} holds is {element.description}", at)

    def _quantified(self, node: Function, body: Node) -> Test:
        argument = self.value(node.argument)
        if not argument.kind.may_be("list"):
            raise self.fault(
                f"{self.source_of(node.argument)} is {argument.kind.description}, not a list", node.argument
            )
        outer, self.kinds = self.kinds, (argument.kind.element, *self.kinds)
        test = self.condition(body)
        self.kinds = outer
        get, every = argument.get, node.name == "all"

        def quantified(scope: Scope) -> bool:
            elements = get(scope)
            if not isinstance(elements, list | tuple):
                return False
            results = (test((element, *scope)) for element in elements)
            return all(results) if every else any(results)

        return quantified

    # --- values ------------------------------------------------------------------------------------------------------

    def value(self, node: Node, against: Kind | None = None, of: Node | None = None) -> CheckedNode:
        """Compile a node that has a value. ``against`` is the kind that it is compared with, that of node ``of``:
        then a word may be text."""
        if isinstance(node, Literal):
            constant = node.value
            return CheckedNode(kind_of_value(constant), lambda scope: constant, constant)
        if isinstance(node, Path):
            return self._path(node, against)
        if isinstance(node, Items):
            return self.items(node, against.element if against is not None and against.name == "list" else ANY, of=of)
        if isinstance(node, Function) and node.body is None:
            return self._length(node)
        return CheckedNode(BOOLEAN, self.condition(node))

    def items(self, node: Items, against: Kind, of: Node | None = None) -> CheckedNode:
        """Compile a bracketed list whose elements are compared with the kind ``against``, that of the field ``of``."""
        values = [self.value(item, against=against) for item in node.items]
        kinds = {value.kind.name: value.kind for value in values if value.kind.name != "null"}
        for item, value in zip(node.items, values, strict=True):
            if not against.may_be(value.kind.name) and not value.kind.may_be():
                message = f"{self.source_of(item)} is {value.kind.description}, and {against.description} is needed"
                raise self.fault(message, item, self._quotes(item, against))
            if of is not None:
                self._check_possible(of, against, item, value)
        element = next(iter(kinds.values())) if len(kinds) == 1 else ANY
        getters = [value.get for value in values]
        return CheckedNode(Kind("list", of=element), lambda scope: [get(scope) for get in getters])

    def _length(self, node: Function) -> CheckedNode:
        argument = self.value(node.argument)
        if not argument.kind.may_be("list", "object", "string"):
            raise self.fault(
                f"{self.source_of(node.argument)} is {argument.kind.description}, which has no length", node.argument
            )
        get = argument.get
        return CheckedNode(NUMBER, lambda scope: length(get(scope)))

    # --- fields ------------------------------------------------------------------------------------------------------

    def _path(self, node: Path, against: Kind | None) -> CheckedNode:
        names = names_of(node.steps)
        if names[0] == "it":
            return CheckedNode(self._below(node, self.kinds[0], names, 1), lambda scope: follow(scope[0], names[1:]))
        text = self._as_text(node, against)
        for depth, kind in enumerate(self.kinds):
            if _has(kind, names):
                return CheckedNode(self._below(node, kind, names, 0), getter(depth, names))
            if kind.is_open:
                # Only a row shows which of the values has the field, and whether the name is a field at all.
                return CheckedNode(ANY, lambda scope: field_or(scope, names, text))
        if text is None:
            raise self._unknown(node, names)
        return CheckedNode(STRING, lambda scope: text, text)

    def _as_text(self, node: Path, against: Kind | None) -> str | None:
        """Return a field's single word as text without quotes, where text is expected; else ``None``."""
        expected = against.element if against is not None and against.name == "list" else against
        if len(node.steps) > 1 or expected is None or not expected.may_be("string"):
            return None
        return str(node.steps[0])

    def _below(self, node: Path, kind: Kind, names: tuple[Step, ...], at: int) -> Kind:
        """Return the kind of a field below a kind. Raises ExpressionError if there can be no such field."""
        while at < len(names) and not kind.may_be():
            if kind.name == "object":
                fields = kind.fields or {OTHER_FIELDS: ANY}
                match = next(((key, end) for key, end in keys_at(names, at) if key in fields), None)
                if match is None and not kind.is_open:
                    raise self._no_field(node, ".".join(map(_name_text, names[: at + 1])), kind)
                if match is None and not isinstance(names[at], tuple):
                    # The object's keys are data and may contain dots, so it is not known where this key ends. Below a
                    # key with a plain value there is nothing, so then all that follows is the key.
                    value = fields[OTHER_FIELDS]
                    return ANY if value.may_be() or value.name in ("object", "list") else value
                kind, at = (fields[match[0]], match[1]) if match else (fields[OTHER_FIELDS], at + 1)
            elif kind.name == "list" and place_of(names[at]) is not None:
                kind, at = kind.element, at + 1
            else:
                prefix = ".".join(map(_name_text, names[:at]))
                hint = f"any({prefix}, …) and all({prefix}, …) look into it" if kind.name == "list" else None
                raise self.fault(f"{prefix} is {kind.description}: it has no {_name_text(names[at])}", node, hint)
        return ANY if kind.may_be() else kind

    def _no_field(self, node: Path, name: str, kind: Kind) -> ExpressionError:
        names = kind.named()
        listed = ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")
        hints = did_you_mean(name.rpartition(".")[2], names), f"fields: {listed or 'none'}"
        return self.fault(f"there is no field {name}", node, " ".join(filter(None, hints)))

    def _unknown(self, node: Path, names: tuple[Step, ...]) -> ExpressionError:
        kind = next(kind for kind in self.kinds if kind.name == "object")
        return self._no_field(node, _name_text(names[0]), kind)


def _has(kind: Kind, names: tuple[Step, ...]) -> bool:
    """Whether an object declares a field of that name."""
    return kind.name == "object" and any(
        key in (kind.fields or {}) and key != OTHER_FIELDS for key, _ in keys_at(names, 0)
    )


def _name_text(name: Step) -> str:
    return name[0] if isinstance(name, tuple) else str(name)
