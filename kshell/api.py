"""The Python API: ``kshell.open(directory=…)`` gives a session, ``session.run("ls /image")`` a result."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Mapping
from types import TracebackType

from kshell.engine import registry
from kshell.engine.arguments import option_words
from kshell.engine.execution import Call, PatternWord, commands, deadline, prepare, prepare_words
from kshell.engine.language import Word
from kshell.engine.result import Exit, Frames, LineResult, Many, Row, Rows
from kshell.engine.session import Session as Shell
from kshell.errors import DeadlineError, UsageError
from kshell.metadata.image import Image
from kshell.result import Result
from kshell.sources.choose import choose, open_source
from kshell.tree.globs import escape


class Session:
    """An open source with a working directory. A context manager; every command is also a method."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    def run(self, line: str, *arguments: object) -> Result:
        """Run a command. A session on a live source first fetches what was committed since the last one.

        Args:
            line: a line of the command language; with ``arguments``, only the command's name.
            arguments: its arguments and options, one each. They need no quotes and are taken literally, without globs.

        Raises:
            UsageError: there is no such command, or the line pipes or redirects its output.
            KshellError: anything else that goes wrong.
        """
        if not isinstance(line, str):
            raise UsageError(f"a command is text, and not {type(line).__name__}")
        self._shell.refresh()
        if arguments:
            literal = [PatternWord.of(Word(text, escape(text), 0)) for text in map(str, arguments)]
            return _result(prepare_words(self._shell, [line, *literal]))
        line_commands = commands(line)
        if len(line_commands) > 1:
            raise UsageError("run takes one command", hint="call it once for each of them")
        call = prepare(self._shell, line_commands[0].text) if line_commands else None
        if call is None:
            raise UsageError("there is no command in the line")
        if call.line.target or call.line.program:
            raise UsageError("the result is returned: it cannot be redirected or piped")
        return _result(call)

    @property
    def image(self) -> Image:
        """The metadata image at the point that the session shows."""
        return self._shell.image

    @property
    def problems(self) -> list[str]:
        """What is wrong with the data of the state that the session shows, one sentence each; empty if nothing is.

        Reads the source if no command has done so. Raises KshellError.
        """
        self._shell.image  # noqa: B018  # the property loads the source
        return self._shell.problems()

    def at(self, point: str | int) -> Session:
        """Return a session on the same source at an offset, time or ``@mark``. The first call reads the log for all."""
        return Session(self._shell.reshape(point=str(point)))

    def diff(self, a: str | int, b: str | int, path: str = "/image", *, ignore_epochs: bool = False) -> Result:
        """Return the changes from ``a`` to ``b`` (points, directories, files, ``context:NAME``). Raises KshellError."""
        self._shell.refresh()
        tokens = ["diff", str(a), str(b), path, *(["--ignore-epochs"] if ignore_epochs else [])]
        return _result(prepare_words(self._shell, tokens))

    def __getattr__(self, name: str) -> Callable[..., Result]:
        """Give any command as a method: ``topics(where="offline > 0")``, ``can("User:alice", "READ", "TOPIC:orders")``.

        Options are keyword arguments, with underscores for dashes: ``True`` for a switch, a list for an option that may
        be given several times or takes several names (``columns=["name", "offline"]``).
        """
        command = name.replace("_", "-")
        if name.startswith("_") or command not in registry.names():
            raise AttributeError(f"a session has no attribute {name!r}, and there is no command {command}")

        def run(*arguments: object, **options: object) -> Result:
            declared = registry.get(command)
            words = option_words(declared, options)
            # A line as the last argument (watch) takes all that follows it.
            return (
                self.run(command, *words, *arguments) if declared.takes_line else self.run(command, *arguments, *words)
            )

        run.__name__ = name
        run.__doc__ = registry.get(command).summary
        return run

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(name.replace("-", "_") for name in registry.names())})

    def __repr__(self) -> str:
        source, until = self._shell.source, self._shell.until
        moment = "newest state" if until is None else f"as of offset {until}"
        return f"<kshell session on {source.name or source.path or source.kind}: {moment}; try .status(), .health()>"

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Release what was read. A later use reads again."""
        self._shell.reload()


def _result(call: Call) -> Result:
    """Run a call within its deadline. Of a command that repeats (``watch``) the last run's answer is the result."""
    limit = call.shape.timeout
    if limit is not None and threading.current_thread() is not threading.main_thread():
        raise UsageError("timeout works in the main thread only", hint="leave it out; a client's own timeouts hold")
    with deadline(limit):
        try:
            answer = call.run()
        except Exit:
            raise UsageError(f"{call.command.name}: a session in Python ends with close()") from None
        if isinstance(answer, Rows) and answer.live:
            _collect(answer)
        if not isinstance(answer, Many):
            return Result.of(call, answer)
        if isinstance(answer, Frames) and not answer.has_end and limit is None:
            raise UsageError(f"{call.command.name}: would never end", hint="give times, until or timeout")
        results = [_part(part) for part in answer.parts]
        return results[-1] if isinstance(answer, Frames) else Result(answer, parts=results)


def _collect(answer: Rows) -> None:
    """Read the rows of a command that follows a log. If its ``timeout`` ends it, those that came have the exit code 3.

    Raises DeadlineError if none came.
    """
    rows: list[Row] = []
    try:
        rows += answer.rows
    except DeadlineError as error:
        if not rows:
            raise
        answer.exit_code = error.exit_code
    answer.rows = rows


def _part(part: LineResult) -> Result:
    if part.error is not None:
        raise part.error
    assert part.call is not None and part.result is not None
    return Result.of(part.call, part.result)


def open(
    directory: str | os.PathLike[str] | None = None,
    *,
    demo: bool = False,
    bootstrap_controllers: str | None = None,
    bootstrap_servers: str | None = None,
    context: str | None = None,
    config: str | None = None,
    properties: Mapping[str, str] | None = None,
    as_of: str | int | None = None,
    show_secrets: bool = False,
    on_corruption: str | None = None,
) -> Session:
    """Open a source; without one, that of the environment (``KSHELL_DIRECTORY``), the default context, or ``config``.

    Raises KshellError.

    Args:
        demo: open the sample that ships with kshell.
        config: a Java client properties file; a :class:`UserWarning` says what is wrong with it.
        properties: take precedence over the same keys of that file.
        on_corruption: what to do at a damaged batch of a directory: ``stop`` (the default: show the last good state
            before it), ``tail`` (the same, and unreadable bytes at the end count as torn) or ``skip`` (the batches
            after it count, too; notes say what is left out).
    """
    flags = {
        "directory": None if directory is None else os.fspath(directory),
        "bootstrap_controllers": bootstrap_controllers,
        "bootstrap_servers": bootstrap_servers,
        "context": context,
        "demo": "demo" if demo else None,
    }
    above = [f"{key}={value}" for key, value in (properties or {}).items()]
    choice = choose(flags, os.environ, config, above)
    for warning in choice.warnings:
        warnings.warn(warning, stacklevel=2)
    shell = Shell(open_source(choice, on_corruption), show_secrets=show_secrets)
    shell = shell if as_of is None else shell.reshape(point=str(as_of))
    shell.front = shell
    shell.travels()
    return Session(shell)
