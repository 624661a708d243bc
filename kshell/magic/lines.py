"""A line of a cell, taken apart: ``{{…}}`` replaced, a ``;`` at its end understood, the magic's options set apart."""

from __future__ import annotations

import keyword
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import NamedTuple

from kshell.engine import registry
from kshell.engine.arguments import SHAPING, flags_of
from kshell.engine.declaration import Flag
from kshell.engine.language import Kind, Line, Word, parse_line, scan
from kshell.engine.source_flags import PROPERTIES, READING, SOURCES
from kshell.errors import UsageError, did_you_mean
from kshell.magic.interpolate import Evaluate, interpolate

OPTIONS = (
    Flag(("--context",), "run on the session of that name, else on that context of the configuration", "NAME"),
    Flag(("--into",), "keep the result under that name instead of showing it", "NAME"),
    Flag(("--keep-going",), "go on after a line that fails"),
    Flag(("--no-interp",), "take {{…}} as it is written"),
    Flag(("-l", "--list"), "the open sessions"),
    Flag(("--close",), "close a session: the one that is named, else the current one"),
    Flag(("-h", "--help"), "how %kafka is used"),
)
CONNECT_FLAGS = (
    *SOURCES,
    *PROPERTIES,
    *READING,
    Flag(("--name",), "what to call the session; by default after its source", "NAME"),
    *SHAPING,
)
_OWN = {name: flag for flag in OPTIONS for name in flag.names}
_ALONE = ("--list", "--close", "--help", "-l", "-h")
"""Only before a command: ``ls -l`` and ``topics --help`` are the commands' own."""
_LEADING = {name: flag for flag in SHAPING for name in flag.names}


class Split(NamedTuple):
    """``own``: the magic's options, an attribute each. ``shaping``: options of an answer that stand in front.

    ``command``: the words of the command, its name first; none if there is no command.
    """

    own: SimpleNamespace
    shaping: list[Word]
    command: list[Word]


def split(words: list[Word]) -> Split:
    """Takes the magic's options out of a line, wherever they stand. Raises UsageError.

    A quoted word is no option; neither is what follows ``--``, nor an option that the command has itself.
    """
    return _Splitter(words).split()


class _Splitter:
    def __init__(self, words: list[Word]) -> None:
        self._words: Iterator[Word] = iter(words)
        self.own = SimpleNamespace(**{flag.dest: None for flag in OPTIONS})
        self._shaping: list[Word] = []
        self._command: list[Word] = []
        self._flags: dict[str, Flag] = {}
        """The command's."""

    def split(self) -> Split:
        for word in self._words:
            if word.text == "--" and not word.quoted and self._command:
                self._command += [word, *self._words]
            elif self._is_own(word):
                self._take(word)
            elif self._command:
                self._keep(word, self._command, self._flags)
            elif word.text.startswith("-") and not word.quoted:
                self._lead(word)
            else:
                self._begin(word)
        return Split(self.own, self._shaping, self._command)

    def _is_own(self, word: Word) -> bool:
        name = word.text.partition("=")[0]
        if word.quoted or name not in _OWN:
            return False
        return not self._command or (name not in self._flags and name not in _ALONE)

    def _take(self, word: Word) -> None:
        name, equals, value = word.text.partition("=")
        flag = _OWN[name]
        if flag.metavar is None:
            if equals:
                raise UsageError(f"{name} takes no value", column=word.column)
            setattr(self.own, flag.dest, True)
            return
        following = None if equals else next(self._words, None)
        value = value if equals else following.text if following is not None else ""
        if not value or (not equals and value.startswith("-")):
            raise UsageError(f"{name} needs a value, {flag.metavar}", column=word.column)
        setattr(self.own, flag.dest, value)

    def _keep(self, word: Word, kept: list[Word], flags: dict[str, Flag]) -> None:
        """A word of the command; with the one that is its value, which may look like an option of ours."""
        kept.append(word)
        flag = flags.get(word.text)
        if flag is not None and flag.metavar is not None and not word.quoted:
            value = next(self._words, None)
            if value is not None:
                kept.append(value)

    def _lead(self, word: Word) -> None:
        name = word.text.partition("=")[0]
        if name not in _LEADING and word.text[:2] != "-o":
            hint = did_you_mean(name, [*_OWN, *_LEADING], "%kafka --help lists the options")
            raise UsageError(f"there is no option {name}", column=word.column, hint=hint)
        self._keep(word, self._shaping, _LEADING)

    def _begin(self, word: Word) -> None:
        self._command.append(word)
        if word.text == "connect":
            flags = list(CONNECT_FLAGS)
        elif word.text in registry.names():
            flags = flags_of(registry.get(word.text))
        else:
            flags = []  # an alias, or a mistake: the shell says which
        self._flags = {name: flag for flag in flags for name in flag.names}


class CellLine(NamedTuple):
    """A line as it was understood. ``quiet``: it ends with ``;``, and is not shown."""

    split: Split
    line: Line
    quiet: bool
    is_comment: bool = False


def parse_cell_line(text: str, evaluate: Evaluate | None) -> CellLine:
    """The line, taken apart. ``evaluate`` gives the value of an expression in ``{{…}}``; without it those stay as they
    are. Raises UsageError.
    """
    text, quiet = _without_semicolon(text)
    if evaluate is not None and not any(word.text == "--no-interp" for word in _words_of(text)):
        text = interpolate(text, evaluate)
    line = parse_line(text)
    return CellLine(split(line.words), line, quiet, is_comment=bool(text.strip()) and not line.words)


def check_name(name: str) -> None:
    """Raises UsageError for what no variable can be called."""
    if not name.isidentifier() or keyword.iskeyword(name):
        raise UsageError(f"--into {name}: no Python name", hint="letters, digits and _, as a variable has them")


def _words_of(text: str) -> list[Word]:
    try:
        return parse_line(text).words
    except UsageError:
        return []  # said by the parse that counts


def _without_semicolon(text: str) -> tuple[str, bool]:
    """IPython's way to say that an answer is not to be shown; the shell knows no such character."""
    stripped = text.rstrip()
    if not stripped.endswith(";") or stripped.endswith("\\;"):
        return text, False
    last = scan(stripped)[-1]
    return (text, False) if last.kind is Kind.COMMENT or last.open else (stripped[:-1], True)


def typed_line(text: str) -> str | None:
    """The line in which an error's column is shown; none where it was another one by then."""
    return None if "{{" in text else text


def take_option(shaping: Sequence[Word], name: str) -> tuple[str | None, list[Word]]:
    """(the value of an option, ``None`` if it has none; the other words)."""
    value: str | None = None
    others: list[Word] = []
    words = iter(shaping)
    for word in words:
        if word.text == name and (following := next(words, None)) is not None:
            value = following.text
        elif word.text.startswith(f"{name}="):
            value = word.text.partition("=")[2]
        else:
            others.append(word)
    return value, others
