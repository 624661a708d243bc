"""Regular expressions that a condition may hold: Python's, without those that can take for ever on a short text."""

from __future__ import annotations

import re
import warnings

from kshell.tables.where_tokens import ExpressionError, Token

LONGEST = 500
"""Characters of a pattern."""
_MANY = 10
_QUANTIFIER = re.compile(r"(?:[*+?]|\{(\d*)(,?)(\d*)\})[?+]?", re.ASCII)
_ZERO_WIDTH = ("(?=", "(?!", "(?<=", "(?<!", "(?#")


def pattern(token: Token, text: str) -> re.Pattern[str]:
    """The pattern in a token of the expression ``text``, compiled. Raises ExpressionError at the place of the fault."""
    found: str = token.value
    if len(found) > LONGEST:
        raise ExpressionError(f"a pattern of more than {LONGEST} characters", text, token.at)
    if repeats_without_end(found):
        raise ExpressionError(
            "a repetition of nothing but repetitions takes for ever on some texts", text, token.at, hint="(a+)* is a*"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what may mean something else in a later Python
            return re.compile(found)
    except (re.error, OverflowError, RecursionError) as error:
        # Escapes make the text longer than what it means: then only its beginning is known.
        plain = token.kind == "string" and text[token.at + 1 : token.end - 1] == found
        inside = getattr(error, "pos", None) or 0
        column = token.at + 1 + inside if plain else token.at
        raise ExpressionError(f"not a regular expression: {error}", text, column) from None


class _Group:
    """What stands between two parentheses, up to here: of this alternative, and of those before it."""

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
    """Whether a group of which every part may vary in length is itself repeated: ``(a+)+``, ``(\\w+\\s*)*``."""
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
    """Behind ``(``, ``(?:``, ``(?P<name>``, ``(?=`` and the like."""
    found = re.compile(r"\((?:\?(?:P<\w*>|<[=!]|[:=!>#]|[a-zA-Z-]*:?))?").match(text, at)
    return found.end() if found else at + 1


def _atom(text: str, at: int) -> tuple[bool, int]:
    """(whether it has no width, the place behind it) of one character, escape or class."""
    if text[at] == "\\":
        return text[at + 1 : at + 2] in ("b", "B", "A", "Z"), at + 2
    if text[at] == "[":
        found = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL).match(text, at)
        return False, found.end() if found else len(text)
    return text[at] in "^$", at + 1


def _quantifier(text: str, at: int) -> tuple[bool, bool, int]:
    """(varies, repeats without end or often, the place behind it) of the quantifier at a place, if one is there."""
    found = _QUANTIFIER.match(text, at)
    if found is None:
        return False, False, at
    if found[0][0] != "{":
        return True, found[0][0] != "?", found.end()
    if not found[2]:
        return False, len(found[1]) > 1, found.end()
    most = int(found[3][:9]) if found[3] else None
    return most is None or found[1] != found[3], most is None or most >= _MANY, found.end()
