"""Quotes the words of a command line for another shell (bash, zsh)."""

from __future__ import annotations

import re
from collections.abc import Iterable

_SAFE = re.compile(r"[\w@%+=:,./-]+", re.ASCII)


def command_line(arguments: Iterable[str]) -> str:
    """Return the words as one line, each quoted if it needs quotes."""
    return " ".join(map(quote, arguments))


def option(name: str, value: str) -> tuple[str, ...]:
    """Return an option and its value as two words; as one if the value would be taken for an option."""
    return (f"{name}={value}",) if value.startswith("-") else (name, value)


def quote(argument: str) -> str:
    """Quote a word if it needs quotes: ``'…'``, or ``$'…'`` if it has characters that a terminal does not show."""
    if _SAFE.fullmatch(argument):
        return argument
    if argument.isprintable():
        return "'" + argument.replace("'", "'\"'\"'") + "'"
    return "$'" + "".join(map(_escaped, argument)) + "'"


def _escaped(char: str) -> str:
    if char in "'\\":
        return f"\\{char}"
    if char.isprintable():
        return char
    return "".join(f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogateescape"))
