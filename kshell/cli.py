"""The command line: its options, and the ways to give commands (as arguments, ``-c``, ``-f``, standard input).

:func:`main` parses the options, opens the source and runs the commands, or starts the interactive shell. No answer is
printed before the source is loaded completely. Standard output carries only data.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO, cast

from kshell.engine import registry
from kshell.engine.arguments import SHAPING, parse, parse_options, take_out
from kshell.engine.declaration import Flag
from kshell.engine.execution import (
    Call,
    Engine,
    line_of_fault,
    logical_lines,
    prepare,
    prepare_words,
    run_commands,
)
from kshell.engine.result import Exit, Text
from kshell.engine.session import Session
from kshell.engine.source_flags import NAMING, PROPERTIES, READING, RUNNING, SOURCES, given_sources
from kshell.errors import EXIT_CODES, EXIT_INTERRUPTED, EXIT_OK, CommandError, KshellError, UsageError
from kshell.render.answer import answer, message_width
from kshell.render.color import use_color
from kshell.render.output import OutputClosed, describe_error, emit, message_lines
from kshell.render.question import asker
from kshell.sources.choose import NO_SOURCE, NoSource, TwoSourcesError, choose, open_source
from kshell.version import __version__

if TYPE_CHECKING:
    from io import TextIOWrapper

    from kshell.render.progress import Progress

OPTIONS = (
    *PROPERTIES,
    *READING,
    *RUNNING,
)
"""The options that neither name a source nor shape an answer; the manual page lists them, too."""
_MOST_SENTENCES = 10
_STDIN = "-"
_SERVER = "mcp"


def main(argv: list[str] | None = None) -> int:
    """Run kshell and return the exit code: 0, 1, 2, 3, 4 or 130."""
    try:
        return _main(sys.argv[1:] if argv is None else argv)
    except KshellError as error:
        complain(error)
        return error.exit_code
    except Exit as asked:
        return asked.code
    except KeyboardInterrupt:
        print("kshell: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except OutputClosed as closed:
        return closed.exit_code
    except Exception as error:
        from kshell.render.faults import tell_own_fault  # late: only an error in kshell itself needs it

        return tell_own_fault("kshell", error, verbose="-v" in sys.argv or "--verbose" in sys.argv)


def _main(argv: list[str]) -> int:
    options, command = parse_options("kshell", (*SOURCES, *OPTIONS, *SHAPING), argv)
    if options.version or options.help:
        return emit(Text(usage() if options.help else f"kshell {__version__}"), "text")
    if command and (options.c or options.f):
        raise UsageError(f"{command[0]}: a command cannot be combined with -c or -f", hint="give every command with -c")
    options, command = _with_sources_after(options, command)
    scripted = bool(command or options.c or options.f) or not sys.stdin.isatty()
    if command[:1] == [_SERVER] and not (served := _served(options, command[1:])).tools:
        from kshell.mcp import serve  # late: no other command needs it

        return serve(served)
    progress = _progress()
    runner = Runner(_session(options, command, scripted, progress), progress)
    if command:
        return runner.run_tokens(command)
    runner.session.travels()
    if scripted:
        is_given = bool(options.c or options.f)
        live = not is_given or _STDIN in (options.f or ())
        return runner.lines(_given_lines(options) if is_given else _file_lines(_STDIN), live=live)
    from kshell.repl import run

    return run(runner.session)


def _with_sources_after(options: SimpleNamespace, command: list[str]) -> tuple[SimpleNamespace, list[str]]:
    """Return the options merged with source options after the command, as Kafka's tools allow, and the other words.

    A command that itself declares such an option keeps it.
    """
    if not command or command[0] not in registry.names():
        return options, command
    declared = registry.get(command[0])
    after, words = take_out(NAMING, declared, command[1:])
    merged = {name: _merged(getattr(options, name), value) for name, value in vars(after).items()}
    both = SimpleNamespace(**vars(options) | merged)
    if not declared.takes_line:
        return both, [command[0], *words]
    inner = getattr(parse(declared, words), declared.args[-1].name)
    both, line = _with_sources_after(both, inner)
    return both, [command[0], *words[: len(words) - len(inner)], *line]


def _merged(before: object, after: object) -> Any:
    """Merge an option's values before and after the command: repeated ones add up, else the later one counts."""
    return [*before, *after] if isinstance(before, list) and isinstance(after, list) else after or before


def _served(options: SimpleNamespace, tokens: list[str]) -> SimpleNamespace:
    """Return the options of the MCP server: those of sources may stand before its name and after it."""
    own = parse(registry.get(_SERVER), tokens)
    for name, value in vars(options).items():
        setattr(own, name, _merged(value, getattr(own, name, None)))
    own.tools = own.tools or own.help  # both are answered like a normal command, without starting the server
    return own


def complain(error: KshellError, line: str | None = None) -> None:
    """Print an error for the user on standard error; ``line`` is the command line that the error points into."""
    color, width = use_color("auto", sys.stderr), message_width(sys.stderr)
    print(describe_error(error, line=line, color=color, width=width, name="kshell: "), file=sys.stderr)


def _progress() -> Progress | None:
    """Return what shows progress, if standard error is a terminal; otherwise the module is not even imported."""
    if not sys.stderr.isatty():
        return None
    from kshell.render.progress import Progress

    return Progress()


def _session(options: SimpleNamespace, command: list[str], scripted: bool, progress: Progress | None) -> Session:
    flags = given_sources(options)
    try:
        choice = choose(flags, os.environ, options.config, options.X or ())
        source = open_source(choice, options.on_corruption)
        # Printed before the command runs: a wrong key may be the reason why it fails.
        for warning in choice.warnings:
            _print(f"warning: {warning}")
    except UsageError as error:
        # A script may have only commands that need no source; one that needs it raises then. And a context that
        # cannot be opened must not prevent the command that removes it.
        is_free = _needs_none(command) and not isinstance(error, TwoSourcesError) and not any(flags.values())
        if not is_free and (not scripted or error.message != NO_SOURCE):
            raise
        source = NoSource()
    session = Session(source, show_secrets=options.show_secrets, progress=progress)
    settings = {
        "output": options.output,
        "color": options.color,
        "header": False if options.no_header else None,
        "keep-going": options.keep_going or None,
        "timeout": options.timeout,
        "timezone": options.tz,
    }
    session.settings |= {name: value for name, value in settings.items() if value is not None}
    if options.as_of is None:
        return session
    then = session.reshape(point=options.as_of)
    then.front = then
    return then


def _needs_none(command: list[str]) -> bool:
    return bool(command) and command[0] in registry.names() and not registry.get(command[0]).needs_source


class Runner:
    """Runs commands one after another on one session: the front end of one-shot commands and of scripts.

    :class:`.Engine` calls :meth:`answer`, :meth:`finish` and :meth:`report`; the CLI calls the others.
    """

    def __init__(self, session: Session, progress: Progress | None) -> None:
        self.session = session
        self._progress = progress
        self._engine = Engine(session, self, asker(self.finish))

    def run_tokens(self, tokens: list[str]) -> int:
        """Run one command whose tokens the operating system's shell has split, and return its exit code."""
        call, before = prepare_words(self.session, tokens), self._lasting_state()
        code = self._engine.run(call)
        lines_share_it = call.command.name == "source"
        if self._lasting_state() != before and not lines_share_it:
            _print("note: that is for later commands of the same process, and there are none: give each with -c LINE")
        return code

    def _lasting_state(self) -> tuple[object, ...]:
        """What a command changes for the commands after it (``set``, ``alias``, ``cd``)."""
        return {**self.session.settings}, {**self.session.aliases}, self.session.cwd

    def lines(self, lines: Iterable[GivenLine], *, live: bool = False) -> int:
        """Run lines of the command language; unless ``--keep-going`` is set, the first that fails is the last.

        Returns the worst exit code. ``live``: the lines come from standard input.
        """
        code = EXIT_OK
        rest = iter(lines)
        for line in rest:
            try:
                code = max(code, run_commands(line.text, self._command, line.complain))
            except OutputClosed as closed:
                closed.exit_code = max(code, closed.exit_code)
                raise
            if code != EXIT_OK and not self.session.settings.get("keep-going"):
                if _has_more(rest, live=live):
                    print("kshell: note: the remaining lines were not run; --keep-going runs them all", file=sys.stderr)
                break
        return code

    def _command(self, line: str) -> int:
        try:
            call = prepare(self.session, line)
            return EXIT_OK if call is None else self._engine.run(call)
        except KshellError as error:
            complain(error, line)
            return error.exit_code

    def answer(self, call: Call) -> int:
        """Print the call's answer."""
        return answer(call, complain)

    def finish(self) -> None:
        """Remove the progress line."""
        if self._progress is not None:
            self._progress.clear()

    def report(self, label: str, sentences: list[str]) -> None:
        """Print sentences on standard error, at most the first ten, and how many more there are."""
        for sentence in sentences[:_MOST_SENTENCES]:
            _print(f"{label}: {sentence}")
        if len(sentences) > _MOST_SENTENCES:
            _print(f"{label}: … and {len(sentences) - _MOST_SENTENCES} more: `info` lists them")


def _print(sentence: str) -> None:
    """Print a sentence on standard error; on a terminal, broken between words."""
    print(message_lines(sentence, width=message_width(sys.stderr), name="kshell: "), file=sys.stderr)


class GivenLine(NamedTuple):
    """A line to run, and the number in its file, 0 for the line of a ``-c``; ``file`` is empty for standard input."""

    text: str
    number: int = 0
    file: str = ""

    def complain(self, error: KshellError, text: str) -> None:
        """Print the error of a line that is no line of commands, with the place of the fault."""
        if self.number:
            place = f"line {line_of_fault(self.number, text, error)}"
            error.message = f"{self.file}: {place}: {error.message}" if self.file else f"{place}: {error.message}"
        complain(error, text)


def _given_lines(options: SimpleNamespace) -> Iterator[GivenLine]:
    """Yield the lines of every ``-c``, then of every ``-f``."""
    yield from map(GivenLine, options.c or ())
    for name in options.f or ():
        yield from _file_lines(name)


def _is_readable(stream: TextIO) -> bool:
    """Whether a read from the stream returns without waiting."""
    import select

    return bool(select.select([stream], [], [], 0)[0])


def _has_more(lines: Iterator[GivenLine], *, live: bool) -> bool:
    """Whether there is another line; if ``live`` (from standard input), one that can be read without waiting."""
    rest: Iterator[str] = (line.text for line in lines)
    if live:
        # Not by ``lines`` first: where a quote is open, these wait for the line that closes it.
        rest = chain(iter(sys.stdin.readline, ""), rest)
    try:
        while not live or _is_readable(sys.stdin):
            line = next(rest, None)
            if line is None or line.strip():
                return line is not None
        return False
    except (KshellError, OSError, ValueError):
        return False  # an error in the remaining lines must not change the exit code of this one


def _file_lines(name: str) -> Iterator[GivenLine]:
    if name == _STDIN:
        with contextlib.suppress(AttributeError, ValueError):  # no file of its own, or read from before
            cast("TextIOWrapper", sys.stdin).reconfigure(newline=None)  # lines end as in other files
        # The mark that some editors put first, which ``utf-8-sig`` takes from files.
        yield from _command_lines((line.removeprefix("\ufeff") for line in sys.stdin), "")
        return
    try:
        with open(name, encoding="utf-8-sig") as file:
            yield from _command_lines(file, name)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not UTF-8 text"
        raise CommandError(f"{name}: {reason}") from None


def _command_lines(lines: Iterable[str], name: str) -> Iterator[GivenLine]:
    return (GivenLine(text, number, name) for number, text in logical_lines(line.removesuffix("\n") for line in lines))


def usage() -> str:
    """Return the text of ``kshell --help``."""
    lines = [
        "usage: kshell [SOURCE] [OPTIONS] [COMMAND [ARG ...]]",
        "",
        "source (one of; before the command or after it):",
    ]
    lines += _describe(SOURCES)
    lines += ["", "options:", *_describe(OPTIONS), "", "options that shape an answer, also after the command:"]
    lines += _describe(SHAPING)
    lines += [
        "",
        "Without a command: the interactive shell at a terminal; otherwise commands from standard input, one per line.",
    ]
    lines += ["`kshell help` lists the commands by task, `kshell help COMMAND` explains one."]
    lines += ["Variables: KSHELL_DIRECTORY, KSHELL_BOOTSTRAP_CONTROLLERS, KSHELL_BOOTSTRAP_SERVERS, KSHELL_CONTEXT and"]
    lines += ["KSHELL_CONFIG name the source; `kshell help environment` lists them all."]
    lines += ["", "exit codes (`kshell help exit-codes` says more):"]
    lines += [f"  {code:<4}{meaning}" for code, meaning in EXIT_CODES]
    return "\n".join(lines)


def _describe(flags: tuple[Flag, ...]) -> list[str]:
    named = [(", ".join(flag.names) + (f" {flag.metavar}" if flag.metavar else ""), flag.help) for flag in flags]
    return [f"  {names}\n      {text}" if len(names) > 26 else f"  {names:<28}{text}" for names, text in named]
