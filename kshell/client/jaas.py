"""``sasl.jaas.config``: one login module with its options, read as Kafka's ``JaasConfig`` reads it.

Kafka hands the text to ``java.io.StreamTokenizer``, whose rules are these: a word begins with a letter, ``_``, ``$`` or
any character from U+00A0 up, and goes on with digits, ``.`` and ``-``; a value that begins with a digit must be quoted;
``'`` and ``"`` quote up to the end of the line, with C's escapes; ``//``, ``/* */`` and a single ``/`` begin comments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kshell.client.secret import Secret

_FLAGS = ("required", "requisite", "sufficient", "optional")
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_OCTAL = "01234567"
_NUMBER = "0123456789.-"
WORD, NUMBER, END = "word", "number", "end"


class JaasError(ValueError):
    """The text is not a JAAS entry. ``column`` is the 1-based character of the fault; the message quotes no value."""

    def __init__(self, reason: str, column: int) -> None:
        super().__init__(f"character {column}: {reason}")
        self.column = column


class LoginModule(NamedTuple):
    """An entry: the class, the control flag in lower case, and the options, all of them kept as secrets."""

    name: str
    flag: str
    options: Mapping[str, Secret]

    @property
    def short_name(self) -> str:
        """The class without its package (which may be a relocated one)."""
        return self.name.rpartition(".")[2]


class Token(NamedTuple):
    """A token: its kind (``word``, ``number``, ``end`` or the one character itself), text (words only) and column."""

    kind: str
    text: str | None
    column: int


def parse(text: str) -> list[LoginModule]:
    """The entries of a JAAS text, at least one. Raises JaasError."""
    tokens = tokens_of(text)
    entries = []
    while (token := next(tokens)).kind != END:
        entries.append(_entry(token, tokens))
    if not entries:
        raise JaasError("there is no login module", 1)
    return entries


def _entry(first: Token, tokens: Iterator[Token]) -> LoginModule:
    if not first.text:
        raise JaasError("the class of a login module is expected", first.column)
    flag = next(tokens)
    if flag.text is None or flag.text.lower() not in _FLAGS:
        raise JaasError(f"one of {', '.join(_FLAGS)} is expected after the login module", flag.column)
    options: dict[str, Secret] = {}
    while (key := next(tokens)).kind != ";":
        if key.kind == END:
            raise JaasError("the entry does not end with a semicolon", key.column)
        if key.text is None:
            raise JaasError("the name of an option or a semicolon is expected", key.column)
        _equals(next(tokens))
        value = next(tokens)
        if value.text is None:
            why = "begins with a digit, dot or dash: quote it" if value.kind in (NUMBER, "-") else "is missing"
            raise JaasError(f"the option's value {why}", value.column)
        options[key.text] = Secret(value.text)
    return LoginModule(first.text, flag.text.lower(), options)


def _equals(token: Token) -> None:
    if token.kind != "=":
        raise JaasError("= is expected after an option's name", token.column)


def tokens_of(text: str) -> Iterator[Token]:
    """The tokens, the last one an ``end``."""
    at = 0
    while at < len(text):
        char = text[at]
        if char <= " ":
            at += 1
        elif char == "/":
            at = _after_comment(text, at)
        elif char in "\"'":
            value, end = _quoted(text, at)
            yield Token(WORD, value, at + 1)
            at = end
        elif char in _NUMBER:
            end = _after_number(text, at)
            yield Token(NUMBER if end > at + 1 or char != "-" else char, None, at + 1)
            at = end
        elif _begins_word(char):
            end = at + 1
            while end < len(text) and (_begins_word(text[end]) or text[end] in _NUMBER):
                end += 1
            yield Token(WORD, text[at:end], at + 1)
            at = end
        else:
            yield Token(char, None, at + 1)
            at += 1
    while True:
        yield Token(END, None, len(text) + 1)


def _begins_word(char: str) -> bool:
    return ("a" <= char.lower() <= "z" and char.isascii()) or char in "_$" or char >= "\xa0"


def _after_comment(text: str, at: int) -> int:
    if text.startswith("/*", at):
        end = text.find("*/", at + 2)
        return len(text) if end < 0 else end + 2
    # Java swallows the character after a single slash, whatever it is.
    ends = [end for terminator in "\r\n" if (end := text.find(terminator, at + 2)) >= 0]
    return min(ends, default=len(text))


def _after_number(text: str, at: int) -> int:
    end = at + 1 if text[at] == "-" else at
    if end > at and text[end : end + 1] not in (*"0123456789.",):
        return end  # a dash alone
    dots = 0
    while end < len(text) and ((text[end].isascii() and text[end].isdigit()) or (text[end] == "." and not dots)):
        dots += text[end] == "."
        end += 1
    return end


def _quoted(text: str, at: int) -> tuple[str, int]:
    """(what the quotes hold, the place after them). A line's end closes them, as in Java."""
    quote, made, at = text[at], [], at + 1
    while at < len(text) and text[at] not in (quote, "\r", "\n"):
        if text[at] != "\\":
            made.append(text[at])
            at += 1
            continue
        at += 1
        char = text[at : at + 1]
        if char and char in _OCTAL:
            most = 3 if char <= "3" else 2
            end = at + 1
            while end < at + most and text[end : end + 1] and text[end] in _OCTAL:
                end += 1
            made.append(chr(int(text[at:end], 8)))
            at = end
        else:
            made.append(_ESCAPES.get(char, char))
            at += 1
    return "".join(made), at + 1 if text[at : at + 1] == quote else at
