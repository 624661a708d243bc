"""From a line to a result: aliases, the command's arguments, the options that shape the answer."""

from __future__ import annotations

from typing import Any, NamedTuple

from kshell.engine import registry
from kshell.engine.arguments import parse
from kshell.engine.declaration import Command
from kshell.engine.language import Line, Word, parse_line
from kshell.engine.result import Result
from kshell.engine.session import Session
from kshell.errors import UsageError


class Typed(str):
    """A word's literal text that still knows its pattern: a path argument may hold a glob, any other may not."""

    __slots__ = ("pattern",)
    pattern: str

    @classmethod
    def of(cls, word: Word) -> Typed:
        typed = cls(word.text)
        typed.pattern = word.pattern
        return typed


class Shape(NamedTuple):
    """The options of one answer; ``None`` where the front end's own setting counts."""

    output: str | None = None
    color: str | None = None
    no_header: bool = False
    timeout: float | None = None
    width: int | None = None


class Call(NamedTuple):
    """A line that was understood: the command, its arguments, the session to run it on, and where the answer goes."""

    command: Command
    arguments: Any
    session: Session
    shape: Shape
    line: Line

    def run(self) -> Result:
        """Runs the command. The remarks that the command before it left are forgotten. Raises KshellError."""
        self.session.remarks.clear()
        if getattr(self.arguments, "help", False):
            return registry.get("help").run(self.session, parse(registry.get("help"), [self.command.name]))
        return self.command.run(self.session, self.arguments)


def prepare(session: Session, text: str) -> Call | None:
    """A line of the command language; ``None`` when it is empty or only a comment. Raises UsageError."""
    line = parse_line(text)
    return _call(session, line) if line.words else None


def prepare_line(session: Session, line: Line, *, point: str | None = None) -> Call:
    """A line that was parsed. ``point`` is the moment it is asked for where the line itself says none."""
    return _call(session, line, point)


def prepare_words(session: Session, words: list[str]) -> Call:
    """A command whose words the operating system's shell has split; pipes and redirections are its business.

    A word of a line that was parsed (:class:`Typed`) keeps its pattern.
    """
    return _call(session, Line([Word(word, getattr(word, "pattern", word), 0) for word in words]))


def _call(session: Session, line: Line, point: str | None = None) -> Call:
    words = _unalias(session, line.words)
    command = registry.get(words[0].text)
    found = parse(command, [Typed.of(word) for word in words[1:]])
    for arg in command.args:
        if arg.kind == "path":
            setattr(found, arg.name, _patterns(getattr(found, arg.name)))
    return Call(command, found, _session(session, found, point), _shape(found, session.settings), line)


def _unalias(session: Session, words: list[Word]) -> list[Word]:
    """An alias stands for words; it is not looked up again in its own meaning, so it may wrap a command's name."""
    seen: set[str] = set()
    while not words[0].quoted and words[0].text in session.aliases and words[0].text not in seen:
        seen.add(words[0].text)
        meaning = parse_line(session.aliases[words[0].text])
        if meaning.target or meaning.program or not meaning.words:
            raise UsageError(f"the alias {words[0].text} is not a command with arguments")
        words = [*meaning.words, *words[1:]]
    return words


def _patterns(value: Any) -> Any:
    if isinstance(value, list):
        return [_patterns(one) for one in value]
    return value.pattern if isinstance(value, Typed) else value


def _session(session: Session, found: Any, point: str | None) -> Session:
    show = True if getattr(found, "show_secrets", False) else None
    point = getattr(found, "as_of", None) or point
    if show is None and point is None:
        return session
    return session.reshape(show_secrets=show, point=point)


def _shape(found: Any, settings: dict[str, Any]) -> Shape:
    """What the line says, else what the session's settings (``set``) say."""
    return Shape(
        output=getattr(found, "output", None) or settings.get("output"),
        color=getattr(found, "color", None) or settings.get("color"),
        no_header=bool(getattr(found, "no_header", False)) or not settings.get("header", True),
        timeout=getattr(found, "timeout", None) or settings.get("timeout"),
        width=settings.get("width"),
    )
