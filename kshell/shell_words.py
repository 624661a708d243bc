"""Words of a command line that another shell (bash, zsh) is to read."""

from __future__ import annotations

import re
from collections.abc import Iterable

_SAFE = re.compile(r"[\w@%+=:,./-]+", re.ASCII)


def command_line(arguments: Iterable[str]) -> str:
    """The words, each quoted as the shell needs it."""
    return " ".join(map(quote, arguments))


def option(name: str, value: str) -> tuple[str, ...]:
    """An option with its value, as two words; as one where the value would be taken for an option."""
    return (f"{name}={value}",) if value.startswith("-") else (name, value)


def quote(argument: str) -> str:
    """A word in single quotes where it needs any; in ``$'…'`` where it holds what a terminal would not show."""
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
