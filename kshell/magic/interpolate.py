"""Replace ``{{expr}}`` in a line of a magic by the value of the Python expression, quoted as one argument.

Nothing else in a line is Python: ``$``, single braces and globs stay for kshell's grammar. Inside double quotes the
value becomes part of the quoted text; inside single quotes, and in comments, nothing is replaced.
"""

from __future__ import annotations

import ast
import datetime
import os
import re
import uuid
from collections.abc import Callable
from typing import Any

from kshell.engine.arguments import is_negative
from kshell.engine.language import quote
from kshell.errors import UsageError
from kshell.shell_words import quote as quote_for_sh

Evaluate = Callable[[str], Any]
_OPEN, _CLOSE = "{{", "}}"


def without_expressions(line: str) -> str:
    """Return a line with a word in place of every ``{{expr}}``, whose quote marks are Python's.

    A line with a mistake is returned as it is.
    """
    try:
        return interpolate(line, lambda expression: "value")
    except UsageError:
        return line


def interpolate(line: str, evaluate: Evaluate) -> str:
    """Replace every ``{{expr}}`` of a line. Raises UsageError with the column of an expression that fails."""
    return _Line(line, evaluate).replaced() if _OPEN in line else line


class _Line:
    def __init__(self, text: str, evaluate: Evaluate) -> None:
        self._text = text
        self._evaluate = evaluate
        self._at = 0
        self._mark = ""
        self._in_program = False
        self._out: list[str] = []

    def replaced(self) -> str:
        while self._at < len(self._text):
            if self._mark != "'" and self._text.startswith(_OPEN, self._at) and self._expression():
                continue
            self._step()
        return "".join(self._out)

    def _step(self) -> None:
        """Copy the next character, or a backslash with the character after it, and track quotes, pipe and comment."""
        char, before = self._text[self._at], self._text[self._at - 1 : self._at]
        if char == "#" and not self._mark and not self._in_program and (not before or before.isspace()):
            self._take(len(self._text) - self._at)
            return
        if char == "|" and not self._mark:
            self._in_program = True
        if char == "\\" and self._mark != "'":
            self._take(2)
            return
        if char in "'\"" and self._mark in ("", char):
            self._mark = "" if self._mark else char
        self._take(1)

    def _take(self, count: int) -> None:
        self._out.append(self._text[self._at : self._at + count])
        self._at += count

    def _expression(self) -> bool:
        """Replace the expression that begins here and return true; return false if the braces belong to a glob."""
        begin = self._at + len(_OPEN)
        end = self._text.find(_CLOSE, begin)
        while end >= 0:
            expression = self._text[begin:end].strip()
            # A third closing brace belongs to the expression, which would be cut short otherwise: {{d[{}]}}.
            if _is_expression(expression) and self._text[end + len(_CLOSE) : end + len(_CLOSE) + 1] != "}":
                self._out.append(self._written(expression))
                self._at = end + len(_CLOSE)
                return True
            end = self._text.find(_CLOSE, end + 1)
        if _is_glob(self._text[self._at :]):
            return False
        raise UsageError(
            "{{…}} does not hold a Python expression", column=self._at, hint="--no-interp takes the line as it is"
        )

    def _written(self, expression: str) -> str:
        try:
            value = self._evaluate(expression)
        except Exception as error:
            raise UsageError(
                f"{{{{{expression}}}}}: {type(error).__name__}: {error}", column=self._at, hint="is its cell run?"
            ) from None
        text = _text(value)
        if text is None:
            raise UsageError(
                f"{{{{{expression}}}}} is {_named(value)}: an argument is text, a number, a time or a path",
                column=self._at,
            )
        if self._in_program:
            return self._for_sh(text, expression)
        if text.startswith("-") and not is_negative(text) and self._is_word_start():
            raise UsageError(
                f"{{{{{expression}}}}} begins with a -, and would be an option: an argument is meant",
                column=self._at,
                hint="write the option itself, or what stands in front of it",
            )
        return text.replace("\\", "\\\\").replace('"', '\\"') if self._mark else quote(text)

    def _for_sh(self, text: str, expression: str) -> str:
        """Quote a value for ``sh``. Raises UsageError inside quotes or substitutions of sh, where that is unsafe."""
        program = "".join(self._out).partition("|")[2]
        if self._mark or "`" in program or "$(" in program:
            raise UsageError(
                f"{{{{{expression}}}}} stands inside quotes or a substitution of the program's",
                column=self._at,
                hint="behind a pipe it is a word of its own: | grep {{text}}",
            )
        return quote_for_sh(text)

    def _is_word_start(self) -> bool:
        prefix = re.split(r"\s", "".join(self._out))[-1]
        return not prefix.strip('"')


def _is_expression(text: str) -> bool:
    try:
        body = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        return False
    return not isinstance(body, ast.Tuple) or text.startswith("(")  # {{a,b}} is a glob


def _is_glob(text: str) -> bool:
    """Whether the text begins with a glob of alternatives such as ``{{a,b},c}``: balanced braces with a comma."""
    depth, commas = 0, False
    for char in text:
        depth += (char == "{") - (char == "}")
        commas = commas or char == ","
        if depth == 0 or char.isspace():
            break
    return depth == 0 and commas


def _text(value: object) -> str | None:
    """Convert a value to the text of an argument; ``None`` if it cannot be one (a list, ``None``)."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float | uuid.UUID):
        return str(value)
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    if isinstance(value, os.PathLike):
        path = os.fspath(value)
        return path if isinstance(path, str) else None
    item = getattr(value, "item", None)  # scalars of numpy and pandas
    return _text(item()) if callable(item) and getattr(value, "shape", None) == () else None


def _named(value: object) -> str:
    return "None" if value is None else f"of the type {type(value).__name__}"
