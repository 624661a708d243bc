"""The grammar of ``--where``: splits a text into tokens and parses them into nodes. Fields are not known here.

::

    condition  = all-of { "or" all-of }
    all-of     = term { "and" term }
    term       = "not" term | value [ comparison ]
    comparison = ("==" | "=" | "!=" | "<" | "<=" | ">" | ">=" | ["not"] "in") value | ("~" | "!~") text
    value      = number | text | true | false | null | "[" [ value { "," value } ] "]" | field
               | "len" "(" value ")" | ("any" | "all") "(" value "," condition ")" | "(" condition ")"
    field      = name { "." name | "[" (text | number) "]" }
    text       = '…' | "…" | a word
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from kshell.errors import UsageError

LONGEST = 4000
"""The most characters of an expression."""
KEYWORDS = ("and", "or", "not", "in", "true", "false", "null")
CONSTANTS = {"true": True, "false": False, "null": None}
_TOKEN = re.compile(
    r"(?P<mark>==|!=|!~|<=|>=|[=<>~()\[\],])|(?P<quote>['\"])|(?P<word>[\w.+\-:/%@$]+)",
)
NUMBER_TEXT = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?", re.ASCII)
_FOREIGN_WORDS = {
    "like": "~ searches for a regular expression: name ~ '^orders'",
    "matches": "~ searches for a regular expression: name ~ '^orders'",
    "contains": "in asks for a part or an element: 'orders' in name, 3 in isr",
    "is": "null is compared as a value: rack == null, rack != null",
    "eq": "== compares: name == orders",
}
"""Words of SQL and other languages that users may write in place of a comparison -> the hint."""
_FOREIGN = {"&&": "and", "||": "or", "!": "not", "&": "and", "|": "or"}


class ExpressionError(UsageError):
    """An expression is not understood; ``column`` (0-based) counts in the expression ``text``, not in the line."""

    def __init__(self, message: str, text: str, column: int, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint, column=column)
        self.text = text


class WhereToken(NamedTuple):
    """A token of ``kind`` number, string, word, keyword, mark or end: its meaning, and its place in the text."""

    kind: str
    value: Any
    at: int
    end: int


def tokens(text: str) -> list[WhereToken]:
    """Return the tokens of an expression, with one of kind ``end`` after them. Raises ExpressionError."""
    if len(text) > LONGEST:
        raise ExpressionError(f"longer than {LONGEST} characters", text[:LONGEST], LONGEST)
    scanned: list[WhereToken] = []
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        match = _TOKEN.match(text, at)
        if match is None:
            raise _unexpected(text, at)
        token = _string(text, at) if match["quote"] else _token(text, match)
        scanned.append(token)
        at = token.end
    scanned.append(WhereToken("end", None, at, at))
    return scanned


def _unexpected(text: str, at: int) -> ExpressionError:
    instead = _FOREIGN.get(text[at : at + 2]) or _FOREIGN.get(text[at])
    hint = f"write {instead}" if instead else "put text with such characters in quotes"
    return ExpressionError("this means nothing in a condition", text, at, hint=hint)


def _token(text: str, match: re.Match[str]) -> WhereToken:
    lexeme, at, end = match[0], match.start(), match.end()
    if match["mark"]:
        return WhereToken("mark", "==" if lexeme == "=" else lexeme, at, end)
    if lexeme.lower() in KEYWORDS:
        return WhereToken("keyword", lexeme.lower(), at, end)
    if NUMBER_TEXT.fullmatch(lexeme):
        return WhereToken("number", _number(text, lexeme, at), at, end)
    return WhereToken("word", lexeme, at, end)


def _number(text: str, lexeme: str, at: int) -> int | float:
    """Return the value of a number; whole numbers are exact at any size."""
    if lexeme.lstrip("+-").isdigit():
        if len(lexeme) > 100:
            raise ExpressionError("a number of more than 100 digits", text, at)
        return int(lexeme)
    value = float(lexeme)
    if value in (float("inf"), float("-inf")):
        raise ExpressionError("the number is too large", text, at)
    return value


def _string(text: str, start: int) -> WhereToken:
    """Return the token of a quoted text; a backslash escapes the quote mark and a backslash, and otherwise stays."""
    mark, at = text[start], start + 1
    out: list[str] = []
    while at < len(text):
        char = text[at]
        at += 1
        if char == mark:
            return WhereToken("string", "".join(out), start, at)
        if char == "\\" and text[at : at + 1] in (mark, "\\") and at < len(text):
            char = text[at]
            at += 1
        out.append(char)
    raise ExpressionError(f"the quote {mark} is not closed", text, start)


DEEPEST = 40
"""The most conditions or lists inside one another."""
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
FUNCTIONS = ("len", "any", "all")


class Literal(NamedTuple):
    """A number, a text in quotes, true, false or null."""

    value: Any
    at: int
    end: int


class Path(NamedTuple):
    """A field: steps that are dotted names (``str``), keys in brackets (``(str,)``) or positions in a list (``int``).

    A single step may also be text without quotes; the checker decides.
    """

    steps: tuple[str | tuple[str] | int, ...]
    at: int
    end: int


class Items(NamedTuple):
    """A list of values in brackets: ``[1, 2]``."""

    items: list[Node]
    at: int
    end: int


class Binary(NamedTuple):
    """A comparison, ``in``, ``~`` or ``!~``; for ``~`` and ``!~``, ``right`` is the token with the pattern."""

    operator: str
    left: Node
    right: Any
    at: int
    end: int


class Negation(NamedTuple):
    """``not`` before a condition."""

    part: Node
    at: int
    end: int


class Junction(NamedTuple):
    """Several conditions joined by ``and`` or by ``or``."""

    operator: str
    parts: list[Node]
    at: int
    end: int


class Function(NamedTuple):
    """``len(LIST)``, ``any(LIST, CONDITION)``, ``all(LIST, CONDITION)``."""

    name: str
    argument: Node
    body: Node | None
    at: int
    end: int


Node = Literal | Path | Items | Binary | Negation | Junction | Function


def parse(text: str) -> Node:
    """Parse an expression into a node. Raises ExpressionError with the column of the fault."""
    return _Parser(text).whole_condition()


class _Parser:
    """A recursive-descent parser: one method per rule of the grammar; each takes tokens from ``at`` on."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokens(text)
        self.at = 0
        self.depth = 0

    @property
    def next(self) -> WhereToken:
        return self.tokens[self.at]

    def take(self) -> WhereToken:
        token = self.next
        if token.kind != "end":
            self.at += 1
        return token

    def is_next(self, *values: str) -> bool:
        """Whether the next token is one of these marks or keywords; quoted text is neither."""
        return self.next.kind in ("mark", "keyword") and self.next.value in values

    def fault(self, message: str, token: WhereToken, hint: str | None = None) -> ExpressionError:
        return ExpressionError(message, self.text, token.at, hint=hint)

    def expect(self, mark: str, after: str) -> WhereToken:
        if not self.is_next(mark):
            raise self.fault(f"{mark} is missing {after}", self.next)
        return self.take()

    def whole_condition(self) -> Node:
        if self.next.kind == "end":
            raise self.fault("there is no condition", self.next, hint="for example: partitions > 3")
        node = self.condition()
        if self.next.kind != "end":
            hint = None
            if self.is_next(*COMPARISONS):
                hint = "one comparison at a time: 1 < partitions and partitions < 9"
            elif self.next.kind == "word":
                hint = _FOREIGN_WORDS.get(self.next.value.lower())
            raise self.fault("only `and` or `or` can follow here", self.next, hint)
        return node

    def condition(self) -> Node:
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.fault(f"more than {DEEPEST} conditions nested in one another", self.next)
        node = self.joined("or")
        self.depth -= 1
        return node

    def joined(self, operator: str) -> Node:
        parts = [self.part(operator)]
        while self.is_next(operator):
            self.take()
            parts.append(self.part(operator))
        return parts[0] if len(parts) == 1 else Junction(operator, parts, parts[0].at, parts[-1].end)

    def part(self, operator: str) -> Node:
        return self.joined("and") if operator == "or" else self.negation()

    def negation(self) -> Node:
        if not self.is_next("not"):
            return self.comparison()
        # Two in a row cancel out; a loop, so that any number of them needs no recursion.
        begin, negated = self.next.at, False
        while self.is_next("not"):
            self.take()
            negated = not negated
        part = self.comparison()
        return Negation(part if negated else Negation(part, begin, part.end), begin, part.end)

    def comparison(self) -> Node:
        left = self.value()
        if self.is_next(*COMPARISONS):
            operator = str(self.take().value)
            right = self.value()
            return Binary(operator, left, right, left.at, right.end)
        if self.is_next("~", "!~"):
            operator = str(self.take().value)
            token = self.take()
            if token.kind not in ("string", "word"):
                raise self.fault("a regular expression is missing", token, hint="in quotes: name ~ '^orders'")
            return Binary(operator, left, token, left.at, token.end)
        return self.membership(left)

    def membership(self, left: Node) -> Node:
        negated = self.is_next("not")
        if negated:
            self.take()
        elif not self.is_next("in"):
            return left
        self.expect("in", "after not")
        right = self.value()
        node = Binary("in", left, right, left.at, right.end)
        return Negation(node, left.at, right.end) if negated else node

    def value(self) -> Node:
        token = self.take()
        if token.kind in ("number", "string"):
            return Literal(token.value, token.at, token.end)
        if token.kind == "keyword" and token.value in CONSTANTS:
            return Literal(CONSTANTS[token.value], token.at, token.end)
        if token.kind == "word":
            return self.function(token) if token.value in FUNCTIONS and self.is_next("(") else self.path(token)
        if token.kind == "mark" and token.value == "(":
            node = self.condition()
            self.expect(")", "after the condition")
            return node
        if token.kind == "mark" and token.value == "[":
            return self.items(token)
        raise self.fault("a field or a value is missing", token)

    def items(self, opening: WhereToken) -> Node:
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.fault(f"more than {DEEPEST} lists nested in one another", opening)
        elements: list[Node] = []
        while not self.is_next("]"):
            if elements:
                self.expect(",", "between values, or ] after them")
            elements.append(self.value())
        self.depth -= 1
        return Items(elements, opening.at, self.take().end)

    def function(self, name: WhereToken) -> Node:
        self.take()
        argument = self.value()
        body = None
        if name.value != "len":
            self.expect(",", f"between the list and the condition of {name.value}")
            body = self.condition()
        end = self.expect(")", f"after {name.value}(…").end
        return Function(name.value, argument, body, name.at, end)

    def path(self, first: WhereToken) -> Node:
        """Parse a field. Keys belong to it if no blank precedes them: ``supportedFeatures["metadata.version"].max``."""
        steps: list[str | tuple[str] | int] = [first.value]
        end = first.end
        while self.next.at == end and (self.is_next("[") or self.goes_on()):
            if self.next.kind == "word":
                steps.append(self.take().value[1:])
                end = self.tokens[self.at - 1].end
                continue
            self.take()
            key = self.take()
            if key.kind == "string":
                steps.append((key.value,))
            elif key.kind == "number" and isinstance(key.value, int):
                steps.append(key.value)
            else:
                raise self.fault("a key in quotes or a whole number is missing", key)
            end = self.expect("]", "after the key").end
        return Path(tuple(steps), first.at, end)

    def goes_on(self) -> bool:
        name = self.next.value
        return self.next.kind == "word" and len(name) > 1 and name[0] == "."
