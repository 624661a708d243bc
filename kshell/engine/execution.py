"""Turn a line of the command language into a :class:`Call`, and run the call for a front end.

A front end calls :func:`prepare` (a line) or :func:`prepare_words` (separate words), which resolve aliases, arguments
and the session, and passes the call to its :class:`Engine`. The engine sets the deadline, ends the progress display
and reports each problem or note only once, in the same way for every front end.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from types import FrameType
from typing import Any, Final, NamedTuple, Protocol

from kshell.engine import registry
from kshell.engine.arguments import parse
from kshell.engine.declaration import Command
from kshell.engine.language import Line, LineCommand, Word, check_quotes, open_quote, parse_line, parts
from kshell.engine.predicates import FAIL_IF_ANY
from kshell.engine.result import Result
from kshell.engine.session import Session
from kshell.errors import EXIT_INTERRUPTED, EXIT_OK, DeadlineError, KshellError, UsageError

_ALARM_INTERVAL: Final = 1.0  # seconds


class PatternWord(str):
    """The literal text of a word, with its glob pattern: path arguments use the pattern, all others the text."""

    __slots__ = ("pattern",)
    pattern: str

    @classmethod
    def of(cls, shell_word: Word) -> PatternWord:
        typed = cls(shell_word.text)
        typed.pattern = shell_word.pattern
        return typed


class Shape(NamedTuple):
    """The options that shape one answer (``timeout``: seconds); ``None`` leaves the choice to the front end."""

    output: str | None = None
    color: str | None = None
    no_header: bool = False
    timeout: float | None = None
    width: int | None = None
    timezone: str | None = None


class Call(NamedTuple):
    """A parsed line: the command, its arguments, the session to run it on, and the shape of its answer.

    ``line`` is the line as typed; its redirection or pipe says where the answer goes.
    """

    command: Command
    arguments: Any
    session: Session
    shape: Shape
    line: Line

    def run(self) -> Result:
        """Run the command, and return its result, or for ``--help`` that of ``help``. Raises KshellError.

        The session's remarks and damage of the previous command are cleared first.
        """
        self.session.remarks.clear()
        self.session.found_damage.clear()
        if getattr(self.arguments, "help", False):
            return registry.get("help").run(self.session, parse(registry.get("help"), [self.command.name]))
        result = self.command.run(self.session, self.arguments)
        result.needs_records = self.command.needs_records or bool(getattr(self.arguments, FAIL_IF_ANY.dest, False))
        return result


def prepare(session: Session, text: str) -> Call | None:
    """Parse a line, or an SQL query, into a call; ``None`` for an empty line or a comment. Raises UsageError."""
    query = _query(text)
    line = Line([Word("sql", "sql", 0), Word(query, query, 0, quoted=True)]) if query else parse_line(text)
    return _call(session, line) if line.words else None


def commands(text: str) -> list[LineCommand]:
    """Split a line at ``;`` and ``&&`` into commands. An SQL query stays one command, even if it has a semicolon.

    Raises UsageError if a quote is open, or ``&&`` lacks a command on one of its sides: then none of them may run.
    """
    if is_query(text):
        return [LineCommand(text, 0, if_done=False)]
    check_quotes(text)
    line_commands = parts(text)
    for before, after in pairwise(line_commands):
        if after.if_done and not (before.text.strip() and after.text.strip()):
            raise UsageError("a command is missing next to &&", column=after.start - len("&&"))
    return [part for part in line_commands if part.text.strip()]


def logical_lines(lines: Iterable[str], plain: Callable[[str], str] = str) -> Iterator[tuple[int, str]]:
    """Yield (number, line) of a text's lines, from 1; a line whose quote is open goes on up to where that is closed.

    The parts of such a line are separated by newlines, and its number is that of the first. A quote that is never
    closed takes all lines up to the end, so that none of them runs: :func:`commands` raises its error. An SQL query
    without ``sql`` before it is always one line, and so is the program after a pipe, whose quotes are those of ``sh``.

    Args:
        lines: read no further than up to the end of the line that is asked for.
        plain: returns a line without what is no part of the grammar and may hold quote marks of its own.
    """
    numbered = enumerate(lines, 1)
    for number, text in numbered:
        continuation = [text]
        before = "" if is_query(text) else open_quote(plain(text))
        while before and (following := next(numbered, None)) is not None:
            continuation.append(following[1])
            if before[-1] in following[1]:
                before = open_quote(plain(before + following[1]))
        yield number, "\n".join(continuation)


def line_of_fault(number: int, text: str, error: BaseException) -> int:
    """Return the number of the line that has the fault, in a logical line that begins at line ``number``."""
    column = error.column if isinstance(error, UsageError) and not hasattr(error, "text") else None
    return number + text.count("\n", 0, column or 0)


def run_commands(text: str, run: Callable[[str], int], complain: Callable[[KshellError, str], None]) -> int:
    """Run the commands of a line, and return the highest exit code. An interrupted command ends the line.

    ``a; b`` runs both, ``a && b`` runs ``b`` only if the last command that ran ended with 0. ``run`` runs the text of
    one command and returns its exit code. ``complain`` gets the error of a text that is no line of commands.
    """
    try:
        line_commands = commands(text)
    except UsageError as error:
        complain(error, text)
        return error.exit_code
    highest = code = EXIT_OK
    for part in line_commands:
        if code == EXIT_INTERRUPTED:
            break
        if not (part.if_done and code):
            code = run(part.text)
            highest = max(highest, code)
    return highest


_QUERIES = ("select", "with")


def is_query(text: str) -> bool:
    """Whether the user typed an SQL query without ``sql`` before it."""
    return bool(_query(text))


def _query(text: str) -> str:
    """Return the SQL query that the user typed without ``sql`` before it; an empty string for any other text."""
    first, *rest = text.split(None, 1) or [""]
    return text.strip().rstrip("; ") if rest and first.lower() in _QUERIES else ""


def prepare_line(session: Session, line: Line, *, point: str | None = None) -> Call:
    """Make a call of a parsed line. ``point`` is the point in time to show if the line has no ``--as-of``."""
    return _call(session, line, point)


def prepare_words(session: Session, tokens: list[str]) -> Call:
    """Make a call of words that the operating system's shell has split already, without pipe and redirection.

    A :class:`PatternWord` word keeps its glob pattern; any other word is its own pattern.
    """
    return _call(session, Line([Word(token, getattr(token, "pattern", token), 0) for token in tokens]))


def _call(session: Session, line: Line, point: str | None = None) -> Call:
    shell_words = _named(session, _unalias(session, line.words))
    command = registry.get(shell_words[0].text)
    arguments = parse(command, [PatternWord.of(shell_word) for shell_word in shell_words[1:]])
    for arg in command.args:
        if arg.kind == "path":
            path = _patterns(getattr(arguments, arg.name))
            if path == "" or (isinstance(path, list) and "" in path):
                raise UsageError(f"{command.name}: an empty path", hint="/ is the root of the tree, . where you are")
            setattr(arguments, arg.name, path)
    return Call(command, arguments, _session(session, arguments, point), _shape(arguments, session.settings), line)


def _unalias(session: Session, shell_words: list[Word]) -> list[Word]:
    """Replace an alias by its words, repeatedly. No alias is expanded twice, so it may wrap a command's own name."""
    expanded: set[str] = set()
    while not shell_words[0].quoted and shell_words[0].text in session.aliases and shell_words[0].text not in expanded:
        expanded.add(shell_words[0].text)
        meaning = parse_line(session.aliases[shell_words[0].text])
        if meaning.target or meaning.program or not meaning.words:
            raise UsageError(f"the alias {shell_words[0].text} is not a command with arguments")
        shell_words = [*meaning.words, *shell_words[1:]]
    return shell_words


def _named(session: Session, shell_words: list[Word]) -> list[Word]:
    """Put ``ls`` or ``cat`` before a line that begins with a path in place of a command."""
    path = shell_words[0]
    if not path.text.startswith("/") or (len(shell_words) > 1 and not shell_words[1].text.startswith("-")):
        return shell_words
    hits = session.find(path.pattern)
    name = "ls" if hits[0][1].is_directory else "cat"
    return [Word(name, name, path.column), *shell_words]


def _patterns(value: object) -> Any:
    """Replace each :class:`PatternWord` word in the value of a path argument by its glob pattern."""
    if isinstance(value, list):
        return [_patterns(element) for element in value]
    return value.pattern if isinstance(value, PatternWord) else value


def _session(session: Session, arguments: object, point: str | None) -> Session:
    """Return the session to run on: the given one, or a copy with ``--show-secrets``, ``--as-of`` and ``--tz``."""
    show = True if getattr(arguments, "show_secrets", False) else None
    own_point = getattr(arguments, "as_of", None)
    point = point if own_point is None else own_point
    zone = getattr(arguments, "tz", None)
    if show is None and point is None and zone is None:
        return session
    return session.reshape(show_secrets=show, point=point, zone=zone)


def _shape(arguments: object, settings: dict[str, Any]) -> Shape:
    """Take each option of the answer from the line, else from the session's settings (``set``)."""
    return Shape(
        output=getattr(arguments, "output", None) or settings.get("output"),
        color=getattr(arguments, "color", None) or settings.get("color"),
        no_header=bool(getattr(arguments, "no_header", False)) or not settings.get("header", True),
        timeout=getattr(arguments, "timeout", None) or settings.get("timeout"),
        width=settings.get("width"),
        timezone=getattr(arguments, "tz", None) or settings.get("timezone"),
    )


class FrontEnd(Protocol):
    """What an :class:`Engine` calls: ``answer``, then always ``finish``, and ``report`` for problems and notes."""

    def answer(self, call: Call) -> int:
        """Run the call, show its answer, and return the exit code. Raises KshellError."""

    def finish(self) -> None:
        """Remove the progress display and end paging. Called after every call, also after one that failed."""

    def report(self, label: str, sentences: list[str]) -> None:
        """Show sentences about the data to the user; ``label`` is ``error`` or ``note``."""


class Engine:
    """Runs calls for one front end, and reports each problem and note of the data only once in its lifetime."""

    def __init__(self, session: Session, front_end: FrontEnd, ask: Callable[[str], bool] | None) -> None:
        """``ask`` asks the user a yes-or-no question; ``None`` where there is no user."""
        self._front_end = front_end
        self._reported: set[str] = set()
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
        """Pass the session's problems and notes to the front end, without those that were reported before."""
        for label, sentences in (("error", session.problems()), ("note", session.notes())):
            news = [sentence for sentence in sentences if sentence not in self._reported]
            self._reported.update(news)
            if news:
                self._front_end.report(label, list(dict.fromkeys(news)))


@contextlib.contextmanager
def time_limit(call: Call) -> Iterator[None]:
    """Apply the call's ``--timeout``. If the source did not answer in that time, the error names the source."""
    try:
        with deadline(call.shape.timeout):
            yield
    except DeadlineError as error:
        raise call.session.why(error) from None


@contextlib.contextmanager
def deadline(seconds: float | None) -> Iterator[None]:
    """Raise DeadlineError in the block after ``seconds``; ``None`` means no limit. Uses SIGALRM: main thread only."""
    if seconds is None:
        yield
        return
    import signal
    import weakref

    raised: list[weakref.ref[DeadlineError]] = []

    def expired(number: int, frame: FrameType | None) -> None:
        if raised and raised[-1]() is not None:
            return
        error = DeadlineError(f"gave up after {seconds:g} s", hint="--timeout sets how long a command may take")
        raised.append(weakref.ref(error))
        try:
            raise error
        finally:
            del error  # its traceback refers to this frame: without this, the two would keep each other alive

    before = signal.signal(signal.SIGALRM, expired)
    # Python drops an exception raised inside a finalizer or a callback. The timer repeats, so it is raised again.
    signal.setitimer(signal.ITIMER_REAL, seconds, _ALARM_INTERVAL)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
