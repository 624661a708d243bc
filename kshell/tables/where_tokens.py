"""The words of a ``--where`` expression, and the error that points at one of them."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from kshell.errors import UsageError

LONGEST = 4000
"""Characters of an expression."""
KEYWORDS = ("and", "or", "not", "in", "true", "false", "null")
CONSTANTS = {"true": True, "false": False, "null": None}
_TOKEN = re.compile(
    r"(?P<mark>==|!=|!~|<=|>=|[=<>~()\[\],])|(?P<quote>['\"])|(?P<word>[\w.+\-:/%@$]+)",
)
NUMBER_TEXT = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?", re.ASCII)
_FOREIGN = {"&&": "and", "||": "or", "!": "not", "&": "and", "|": "or"}


class ExpressionError(UsageError):
    """An expression is not understood: ``column`` counts in ``text``, the expression, not in the whole line."""

    def __init__(self, message: str, text: str, column: int, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint, column=column)
        self.text = text


class Token(NamedTuple):
    """``kind``: number, string, word, keyword, mark or end. ``value``: what it means; ``at``, ``end``: its place."""

    kind: str
    value: Any
    at: int
    end: int


def tokens(text: str) -> list[Token]:
    """The words of an expression, an ``end`` after them. Raises ExpressionError."""
    if len(text) > LONGEST:
        raise ExpressionError(f"longer than {LONGEST} characters", text[:LONGEST], LONGEST)
    found: list[Token] = []
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        match = _TOKEN.match(text, at)
        if match is None:
            raise _unexpected(text, at)
        token = _string(text, at) if match["quote"] else _token(text, match)
        found.append(token)
        at = token.end
    found.append(Token("end", None, at, at))
    return found


def _unexpected(text: str, at: int) -> ExpressionError:
    instead = _FOREIGN.get(text[at : at + 2]) or _FOREIGN.get(text[at])
    hint = f"write {instead}" if instead else "text with such characters stands in quotes"
    return ExpressionError("this means nothing in a condition", text, at, hint=hint)


def _token(text: str, match: re.Match[str]) -> Token:
    word, at, end = match[0], match.start(), match.end()
    if match["mark"]:
        return Token("mark", "==" if word == "=" else word, at, end)
    if word.lower() in KEYWORDS:
        return Token("keyword", word.lower(), at, end)
    if NUMBER_TEXT.fullmatch(word):
        return Token("number", _number(text, word, at), at, end)
    return Token("word", word, at, end)


def _number(text: str, word: str, at: int) -> int | float:
    """Whole numbers are exact, however large."""
    if word.lstrip("+-").isdigit():
        if len(word) > 100:
            raise ExpressionError("a number of more than 100 digits", text, at)
        return int(word)
    value = float(word)
    if value in (float("inf"), float("-inf")):
        raise ExpressionError("the number is too large", text, at)
    return value


def _string(text: str, start: int) -> Token:
    """Quoted text. Before the quote mark or a backslash, a backslash makes it stand for itself; else it stays."""
    mark, at = text[start], start + 1
    out: list[str] = []
    while at < len(text):
        char = text[at]
        at += 1
        if char == mark:
            return Token("string", "".join(out), start, at)
        if char == "\\" and text[at : at + 1] in (mark, "\\") and at < len(text):
            char = text[at]
            at += 1
        out.append(char)
    raise ExpressionError(f"the quote {mark} is not closed", text, start)
