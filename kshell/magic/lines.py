"""Parse a line of a cell: replace ``{{…}}``, handle a ``;`` at its end, and separate the magic's options."""

from __future__ import annotations

import keyword
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import NamedTuple

from kshell.engine import registry
from kshell.engine.arguments import SHAPING, flags_of
from kshell.engine.declaration import Flag
from kshell.engine.execution import commands
from kshell.engine.language import Line, TokenKind, Word, check_quotes, parse_line, scan
from kshell.engine.source_flags import NAMING
from kshell.errors import UsageError, did_you_mean
from kshell.magic.interpolate import Evaluate, interpolate

OPTIONS = (
    Flag(("--context",), "run on the session of that name, else on that context of the configuration", "NAME"),
    Flag(("--into",), "keep the result under that name instead of showing it", "NAME"),
    Flag(("--keep-going",), "go on after a line that fails"),
    Flag(("--no-interp",), "take {{…}} as it is written"),
    Flag(("--widget",), "show a table as a widget that sorts, filters, searches, pages and copies"),
    Flag(("-l", "--list"), "the open sessions"),
    Flag(("--close",), "close a session: the one that is named, else the current one"),
    Flag(("-h", "--help"), "how %kafka is used"),
)
CONNECT_FLAGS = (
    *NAMING,
    Flag(("--name",), "what to call the session; by default after its source", "NAME"),
    *SHAPING,
)
_OWN = {name: flag for flag in OPTIONS for name in flag.names}
_ALONE = ("--list", "--close", "--help", "-l", "-h")
"""Options of the magic only before a command: in ``ls -l`` and ``topics --help`` they are those of the command."""
_LEADING = {name: flag for flag in SHAPING for name in flag.names}


class Split(NamedTuple):
    """The words of a line, separated: the magic's options (``own``), options of every command before it (``shaping``),
    and the ``command`` itself, its name first, which is empty if there is none.
    """

    own: SimpleNamespace
    shaping: list[Word]
    command: list[Word]


def split(tokens: list[Word]) -> Split:
    """Separate the options of the magic from a line; they may stand before and after the command. Raises UsageError.

    A quoted token is no option, nor is anything after ``--``. An option that the command also has is the command's.
    """
    return _Splitter(tokens).split()


class _Splitter:
    def __init__(self, tokens: list[Word]) -> None:
        self._tokens: Iterator[Word] = iter(tokens)
        self.own = SimpleNamespace(**{flag.dest: None for flag in OPTIONS})
        self._shaping: list[Word] = []
        self._command: list[Word] = []
        self._flags: dict[str, Flag] = {}
        """The options of the command, by name; empty until its name was read."""

    def split(self) -> Split:
        for token in self._tokens:
            if token.text == "--" and not token.quoted and self._command:
                self._command += [token, *self._tokens]
            elif self._is_own(token):
                self._take(token)
            elif self._command:
                self._keep(token, self._command, self._flags)
            elif token.text.startswith("-") and not token.quoted:
                self._lead(token)
            else:
                self._begin(token)
        return Split(self.own, self._shaping, self._command)

    def _is_own(self, token: Word) -> bool:
        name = token.text.partition("=")[0]
        if token.quoted or name not in _OWN:
            return False
        return not self._command or (name not in self._flags and name not in _ALONE)

    def _take(self, token: Word) -> None:
        name, equals, value = token.text.partition("=")
        flag = _OWN[name]
        if flag.metavar is None:
            if equals:
                raise UsageError(f"{name} takes no value", column=token.column)
            setattr(self.own, flag.dest, True)
            return
        following = None if equals else next(self._tokens, None)
        value = value if equals else following.text if following is not None else ""
        if not value or (not equals and value.startswith("-")):
            raise UsageError(f"{name} needs a value, {flag.metavar}", column=token.column)
        setattr(self.own, flag.dest, value)

    def _keep(self, token: Word, taken: list[Word], flags: dict[str, Flag]) -> None:
        """Append a token of the command, with the next token if that is the value of its option."""
        taken.append(token)
        flag = flags.get(token.text)
        if flag is not None and flag.metavar is not None and not token.quoted:
            value = next(self._tokens, None)
            if value is not None:
                taken.append(value)

    def _lead(self, token: Word) -> None:
        name = token.text.partition("=")[0]
        if name not in _LEADING and token.text[:2] != "-o":
            hint = did_you_mean(name, [*_OWN, *_LEADING], "%kafka --help lists the options")
            raise UsageError(f"there is no option {name}", column=token.column, hint=hint)
        self._keep(token, self._shaping, _LEADING)

    def _begin(self, token: Word) -> None:
        self._command.append(token)
        if token.text == "connect":
            flags = list(CONNECT_FLAGS)
        elif token.text in registry.names():
            flags = flags_of(registry.get(token.text))
        else:
            flags = []  # an alias, or a mistake that running the line will report
        self._flags = {name: flag for flag in flags for name in flag.names}


class CellLine(NamedTuple):
    """A parsed line of a cell; ``quiet``: it ends with ``;``, so that its result is not shown."""

    split: Split
    line: Line
    quiet: bool
    is_comment: bool = False


def parse_cell_line(text: str, evaluate: Evaluate | None) -> CellLine:
    """Parse a line. ``evaluate`` returns the value of an expression in ``{{…}}``; with ``None`` these are not replaced.

    Raises UsageError.
    """
    text, quiet = _without_semicolon(text)
    if evaluate is not None and not any(token.text == "--no-interp" for token in _tokens_of(text)):
        check_quotes(interpolate(text, lambda expression: "value"))  # before any expression is evaluated
        text = interpolate(text, evaluate)
    if len(commands(text)) > 1:
        raise UsageError("a cell has one command a line: `;` and `&&` are for the shell")
    line = parse_line(text)
    return CellLine(split(line.words), line, quiet, is_comment=bool(text.strip()) and not line.words)


def check_name(name: str) -> None:
    """Raise UsageError if ``--into`` names no valid Python variable."""
    if not name.isidentifier() or keyword.iskeyword(name):
        raise UsageError(f"--into {name}: no Python name", hint="letters, digits and _, as a variable has them")


def _tokens_of(text: str) -> list[Word]:
    try:
        return parse_line(text).words
    except UsageError:
        return []  # the parse that follows reports the error


def _without_semicolon(text: str) -> tuple[str, bool]:
    """Remove a ``;`` at the end, which in IPython means that the result is not shown; return whether there was one."""
    stripped = text.rstrip()
    if not stripped.endswith(";") or stripped.endswith("\\;"):
        return text, False
    last = scan(stripped)[-1]
    return (text, False) if last.kind is TokenKind.COMMENT or last.open else (stripped[:-1], True)


def typed_line(text: str) -> str | None:
    """Return the line for showing the column of an error; ``None`` if ``{{…}}`` was replaced, so columns differ."""
    return None if "{{" in text else text


def take_option(shaping: Sequence[Word], name: str) -> tuple[str | None, list[Word]]:
    """Take an option out of tokens; return its value (``None`` if it is not given) and the other tokens."""
    value: str | None = None
    rest: list[Word] = []
    tokens = iter(shaping)
    for token in tokens:
        if token.text == name and (following := next(tokens, None)) is not None:
            value = following.text
        elif token.text.startswith(f"{name}="):
            value = token.text.partition("=")[2]
        else:
            rest.append(token)
    return value, rest
