"""A command's words into typed arguments, by what the command declares."""

from __future__ import annotations

import argparse
import re
from typing import Any, NoReturn

from kshell.commands.base.spec import Command, Flag
from kshell.errors import UsageError

FORMATS = ("text", "wide", "json", "jsonl", "yaml", "csv", "tsv", "markdown", "html")
COLORS = ("auto", "always", "never")


def seconds(text: str) -> float:
    """A positive number of seconds."""
    value = float(text)
    if not value > 0:
        raise ValueError("not a positive number of seconds")
    return value


def count(text: str) -> int:
    """A whole number that is not negative: a depth, an offset."""
    if not (text.isascii() and text.isdigit()):
        raise UsageError(f"{text!r} is not a whole number of 0 or more")
    return int(text)


def regex(text: str) -> re.Pattern[str]:
    """A regular expression, compiled. Raises UsageError with the place of the fault."""
    try:
        return re.compile(text)
    except re.error as error:
        raise UsageError(f"{text!r} is not a regular expression: {error}") from None


SHAPING = (
    Flag(("-o", "--output"), "format of the answer", metavar="FORMAT", choices=FORMATS),
    Flag(("--as-of",), "the state at an offset or time, not the newest", metavar="POINT"),
    Flag(("--show-secrets",), "show values that are redacted otherwise"),
    Flag(("--color",), "colours: auto, always or never", metavar="WHEN", choices=COLORS),
    Flag(("--no-header",), "no header line in tables"),
    Flag(("--timeout",), "give up after so many seconds", metavar="SECONDS", convert=seconds),
)
"""Options that shape an answer: accepted before the command and after it."""


class Parser(argparse.ArgumentParser):
    """An argparse parser whose faults are UsageErrors."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog}: {message}", hint=f"`help {self.prog}` shows how it is used")


def add_flag(parser: argparse.ArgumentParser, flag: Flag) -> None:
    """Gives a parser one declared flag."""
    options: dict[str, Any] = {"dest": flag.dest, "default": flag.default, "help": flag.help}
    if flag.metavar is None:
        parser.add_argument(*flag.names, action="store_true", **(options | {"default": flag.default or False}))
        return
    options |= {"type": flag.convert, "metavar": flag.metavar, "choices": flag.choices or None}
    parser.add_argument(*flag.names, action="append" if flag.repeat else "store", **options)


def parser_for(command: Command) -> argparse.ArgumentParser:
    """The parser of a command: its own flags and arguments, and the shaping options."""
    parser = Parser(prog=command.name, add_help=False, allow_abbrev=False)
    taken = {name for flag in command.flags for name in flag.names}
    for flag in command.flags:
        add_flag(parser, flag)
    for flag in SHAPING:
        if not taken & set(flag.names):
            add_flag(parser, flag)
    if not taken & {"-h", "--help"}:
        parser.add_argument("-h", "--help", action="store_true", dest="help")
    for arg in command.args:
        # Counts are checked after `--help` was seen, so that `ls --help` needs no arguments.
        parser.add_argument(
            arg.name, nargs="?" if arg.arity in "1?" else "*", default=None if arg.arity in "1?" else []
        )
    return parser


def parse(command: Command, words: list[str]) -> argparse.Namespace:
    """The typed arguments in ``words``. Raises UsageError."""
    found = parser_for(command).parse_intermixed_args(join_point(words))
    if not getattr(found, "help", False):
        for arg in command.args:
            if arg.arity in "1+" and not getattr(found, arg.name):
                raise UsageError(f"{command.name}: {arg.name.upper()} is missing", hint=f"`help {command.name}`")
    return found


def join_point(words: list[str]) -> list[str]:
    """``--as-of -1h``: the time looks like a flag and is none."""
    out: list[str] = []
    for word in words:
        if out and out[-1] == "--as-of":
            out[-1] = f"--as-of={word}"
        else:
            out.append(word)
    return out
