"""From a line to an answer: aliases, arguments, the session to run on, and what every front end does around a command.

A front end makes a call of a line or of words, and gives it to its :class:`Engine`: deadline, the end of progress, and
notes that are told once are the same everywhere.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, Protocol

from kshell.engine import registry
from kshell.engine.arguments import parse
from kshell.engine.declaration import Command
from kshell.engine.language import Line, LineCommand, Word, parse_line, parts
from kshell.engine.predicates import FAIL_IF_ANY
from kshell.engine.result import Result
from kshell.engine.session import Session
from kshell.errors import EXIT_INTERRUPTED, EXIT_OK, DeadlineError, UsageError

_ALARM_INTERVAL: Final = 1.0  # seconds


class Typed(str):
    """A word's literal text that still knows its pattern: a path argument may hold a glob, any other may not."""

    __slots__ = ("pattern",)
    pattern: str

    @classmethod
    def of(cls, shell_word: Word) -> Typed:
        typed = cls(shell_word.text)
        typed.pattern = shell_word.pattern
        return typed


class Shape(NamedTuple):
    """The options of one answer; ``None`` where the front end's own setting counts."""

    output: str | None = None
    color: str | None = None
    no_header: bool = False
    timeout: float | None = None
    width: int | None = None
    timezone: str | None = None


class Call(NamedTuple):
    """A line that was understood: the command, its arguments, the session to run it on, and where the answer goes."""

    command: Command
    arguments: Any
    session: Session
    shape: Shape
    line: Line

    def run(self) -> Result:
        """Runs the command. What the command before it remarked and met is forgotten. Raises KshellError."""
        self.session.remarks.clear()
        self.session.found_damage.clear()
        if getattr(self.arguments, "help", False):
            return registry.get("help").run(self.session, parse(registry.get("help"), [self.command.name]))
        result = self.command.run(self.session, self.arguments)
        result.asks_state = self.command.asks_state or bool(getattr(self.arguments, FAIL_IF_ANY.dest, False))
        return result


def prepare(session: Session, text: str) -> Call | None:
    """A line of the command language; ``None`` when it is empty or only a comment. Raises UsageError."""
    query = _query(text)
    line = Line([Word("sql", "sql", 0), Word(query, query, 0, quoted=True)]) if query else parse_line(text)
    return _call(session, line) if line.words else None


def commands(text: str) -> list[LineCommand]:
    """The commands of a line. A query is one command, whatever is in it."""
    if _query(text):
        return [LineCommand(text, 0, if_done=False)]
    return [part for part in parts(text) if part.text.strip()]


def run_commands(text: str, run: Callable[[str], int]) -> int:
    """Run the commands of a line, and return the highest exit code. One that is interrupted is the last.

    ``a; b`` runs both, ``a && b`` runs ``b`` only if what ran before it ended with 0.
    """
    highest = code = EXIT_OK
    for part in commands(text):
        if code == EXIT_INTERRUPTED:
            break
        if not (part.if_done and code):
            code = run(part.text)
            highest = max(highest, code)
    return highest


_QUERIES = ("select", "with")


def _query(text: str) -> str:
    """The text, if it is a query in SQL that somebody typed without ``sql``; else nothing."""
    first, *rest = text.split(None, 1) or [""]
    return text.strip().rstrip("; ") if rest and first.lower() in _QUERIES else ""


def prepare_line(session: Session, line: Line, *, point: str | None = None) -> Call:
    """A line that was parsed. ``point`` is the moment it is asked for where the line itself says none."""
    return _call(session, line, point)


def prepare_words(session: Session, tokens: list[str]) -> Call:
    """A command whose words the operating system's shell has split; pipes and redirections are its business.

    A word of a line that was parsed (:class:`Typed`) keeps its pattern.
    """
    return _call(session, Line([Word(token, getattr(token, "pattern", token), 0) for token in tokens]))


def _call(session: Session, line: Line, point: str | None = None) -> Call:
    shell_words = _named(session, _unalias(session, line.words))
    command = registry.get(shell_words[0].text)
    arguments = parse(command, [Typed.of(shell_word) for shell_word in shell_words[1:]])
    for arg in command.args:
        if arg.kind == "path":
            setattr(arguments, arg.name, _patterns(getattr(arguments, arg.name)))
    return Call(command, arguments, _session(session, arguments, point), _shape(arguments, session.settings), line)


def _unalias(session: Session, shell_words: list[Word]) -> list[Word]:
    """An alias stands for words; it is not looked up again in its own meaning, so it may wrap a command's name."""
    expanded: set[str] = set()
    while not shell_words[0].quoted and shell_words[0].text in session.aliases and shell_words[0].text not in expanded:
        expanded.add(shell_words[0].text)
        meaning = parse_line(session.aliases[shell_words[0].text])
        if meaning.target or meaning.program or not meaning.words:
            raise UsageError(f"the alias {shell_words[0].text} is not a command with arguments")
        shell_words = [*meaning.words, *shell_words[1:]]
    return shell_words


def _named(session: Session, shell_words: list[Word]) -> list[Word]:
    """A path where a command should be is shown: the directory is listed, the value printed."""
    path = shell_words[0]
    if not path.text.startswith("/") or (len(shell_words) > 1 and not shell_words[1].text.startswith("-")):
        return shell_words
    hits = session.find(path.pattern)
    name = "ls" if hits[0][1].is_directory else "cat"
    return [Word(name, name, path.column), *shell_words]


def _patterns(value: Any) -> Any:
    if isinstance(value, list):
        return [_patterns(element) for element in value]
    return value.pattern if isinstance(value, Typed) else value


def _session(session: Session, arguments: Any, point: str | None) -> Session:
    show = True if getattr(arguments, "show_secrets", False) else None
    asked = getattr(arguments, "as_of", None)
    point = point if asked is None else asked
    zone = getattr(arguments, "tz", None)
    if show is None and point is None and zone is None:
        return session
    return session.reshape(show_secrets=show, point=point, zone=zone)


def _shape(arguments: Any, settings: dict[str, Any]) -> Shape:
    """What the line says, else what the session's settings (``set``) say."""
    return Shape(
        output=getattr(arguments, "output", None) or settings.get("output"),
        color=getattr(arguments, "color", None) or settings.get("color"),
        no_header=bool(getattr(arguments, "no_header", False)) or not settings.get("header", True),
        timeout=getattr(arguments, "timeout", None) or settings.get("timeout"),
        width=settings.get("width"),
        timezone=getattr(arguments, "tz", None) or settings.get("timezone"),
    )


class FrontEnd(Protocol):
    """What an :class:`Engine` needs of the place where answers are shown."""

    def answer(self, call: Call) -> int:
        """Run the call, show its answer, and return the exit code. Raises KshellError."""

    def finish(self) -> None:
        """The answer is complete, or there is none: progress goes away, and paging ends."""

    def tell(self, label: str, sentences: list[str]) -> None:
        """Show sentences about the data; ``label`` is ``error`` or ``note``."""


class Engine:
    """Runs calls for one front end, and tells once what is wrong with the data and what the user should know of it."""

    def __init__(self, session: Session, front_end: FrontEnd, ask: Callable[[str], bool] | None) -> None:
        """``ask`` asks the user a yes-or-no question; ``None`` where there is no user."""
        self._front_end = front_end
        self._told: set[str] = set()
        session.announce = lambda: self.announce(session)
        session.ask = ask

    def run(self, call: Call) -> int:
        """Run one call and return its exit code. Raises KshellError, and whatever the front end raises."""
        try:
            with time_limit(call):
                return self._front_end.answer(call)
        finally:
            self._front_end.finish()
            self.announce(call.session)

    def announce(self, session: Session) -> None:
        """Tell what has not been told yet."""
        for label, sentences in (("error", session.problems()), ("note", session.notes())):
            news = [sentence for sentence in sentences if sentence not in self._told]
            self._told.update(news)
            if news:
                self._front_end.tell(label, list(dict.fromkeys(news)))


@contextlib.contextmanager
def time_limit(call: Call) -> Iterator[None]:
    """The call's ``--timeout``; where it was spent on a source that does not answer, the error says so."""
    try:
        with deadline(call.shape.timeout):
            yield
    except DeadlineError as error:
        raise call.session.why(error) from None


@contextlib.contextmanager
def deadline(seconds: float | None) -> Iterator[None]:
    """Ends what runs inside after ``seconds`` with a DeadlineError; ``None`` waits for ever."""
    if seconds is None:
        yield
        return
    import signal
    import weakref
    from types import FrameType

    raised: list[weakref.ref[DeadlineError]] = []

    def expired(number: int, frame: FrameType | None) -> None:
        if raised and raised[-1]() is not None:
            return
        error = DeadlineError(f"gave up after {seconds:g} s", hint="--timeout sets how long a command may take")
        raised.append(weakref.ref(error))
        try:
            raise error
        finally:
            del error  # its traceback holds this frame: without the name nothing but whoever handles it keeps it

    before = signal.signal(signal.SIGALRM, expired)
    # Python drops what is raised inside a finalizer or a callback of its own: then it is raised again, a second later.
    signal.setitimer(signal.ITIMER_REAL, seconds, _ALARM_INTERVAL)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
