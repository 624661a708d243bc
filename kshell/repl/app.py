"""The main loop of the interactive shell: read lines and run them until the user leaves."""

from __future__ import annotations

import gc
import os
import shutil

from prompt_toolkit.input import Input
from prompt_toolkit.output import Output

from kshell import __version__
from kshell.engine.execution import logical_lines
from kshell.engine.language import quote
from kshell.engine.result import Exit
from kshell.engine.session import Session
from kshell.errors import EXIT_INTERRUPTED
from kshell.escape import terminal as clean
from kshell.repl.history import ShellHistory
from kshell.repl.lines import Lines
from kshell.repl.loading import Loader, Meter
from kshell.repl.prompt import PlainPrompt, RichPrompt
from kshell.repl.terminal import is_dumb, shortened, width_of
from kshell.repl.toolbar import Toolbar

_HEAD_START = 0.25
"""Seconds to wait for loading before the first prompt; a small directory is loaded by then."""


def run(session: Session, *, input: Input | None = None, output: Output | None = None) -> int:
    """Run the shell, and return the exit code: that of ``exit N``, else of the last command.

    ``input`` and ``output`` replace the terminal in tests.
    """
    gc.freeze()
    gc.enable()  # one-shot commands run without garbage collection
    return Repl(session, input=input, output=output).run()


class Repl:
    """One run of the shell on one session; connects prompt, toolbar, loader and :class:`Lines`."""

    def __init__(self, session: Session, *, input: Input | None = None, output: Output | None = None) -> None:
        self._session = session
        self._meter = Meter()
        session.progress = self._meter
        self._loader = Loader(session, self._meter)
        self._lines = Lines(session, self._loader, self._meter)
        self._history = ShellHistory()
        session.history[:0] = self._history.lines()
        if is_dumb() and input is None:
            self._prompt: PlainPrompt | RichPrompt = PlainPrompt(session, self._history)
        else:
            self._prompt = RichPrompt(
                session,
                self._history,
                Toolbar(session, self._loader),
                color=self._lines.colored,
                input=input,
                output=output,
            )

    def run(self) -> int:
        """Run until ``exit``, the end of the input, or a closed terminal; return the exit code."""
        try:
            # Before loading starts in the background: a line of kshellrc that needs the image loads it here.
            self._read_kshellrc()
            self._loader.start()
            self._greet()
            while True:
                self._survive_turn()
        except Exit as asked:
            return asked.code
        except EOFError:
            return self._lines.status
        finally:
            self._session.source.close()

    def _survive_turn(self) -> None:
        """Run one turn. Ctrl-C at the prompt, or while a command is ending, only ends the turn, not the shell."""
        try:
            self._turn()
        except KeyboardInterrupt:
            self._lines.status = EXIT_INTERRUPTED

    def _turn(self) -> None:
        """Show the prompt once, and run the line that was entered, or each of several pasted lines.

        As in other shells, the lines after a failed one still run; only Ctrl-C skips them.
        """
        self._meter.changed = self._prompt.refresh
        try:
            entered = self._prompt.ask(self._lines.status)
        finally:
            self._meter.changed = lambda: None
        lines = [line for _, line in logical_lines(entered.split("\n")) if line.strip()]
        for number, line in enumerate(lines, 1):
            if len(lines) > 1:
                self._lines.echo(line)
            self._remember(line)
            self._lines.run(line)
            if self._lines.status == EXIT_INTERRUPTED:
                self._report_rest(len(lines) - number)
                return

    def _report_rest(self, count: int) -> None:
        """Print how many of several pasted lines did not run because of Ctrl-C."""
        if count:
            self._lines.write(f"kshell: {count} more {'line was' if count == 1 else 'lines were'} not run", "hint")

    def _remember(self, line: str) -> None:
        if not line[0].isspace():
            self._session.history.append(line)

    def _greet(self) -> None:
        title, keys = f"kshell {__version__} on ", "try status, health, help · Ctrl-D leaves"
        room = shutil.get_terminal_size().columns - width_of(f"{title} · {keys}")
        name = clean(self._session.source.name)
        if room >= min(width_of(name), 20):
            self._lines.write(f"{title}{shortened(name, room)} · {keys}", "hint")
        else:
            self._lines.write(title + name, "hint")
            self._lines.write(keys, "hint")
        if self._history.note is not None:
            self._lines.write(f"kshell: note: {clean(self._history.note)}", "hint")
        if self._loader.is_done(_HEAD_START):
            self._lines.announce()
            if self._loader.error is not None:
                self._lines.complain(self._loader.error)

    def _read_kshellrc(self) -> None:
        path = kshellrc()
        if path is not None and os.path.exists(path):
            command_line_settings = dict(self._session.settings)
            self._lines.run(f"source {quote(path)}")
            self._session.settings |= command_line_settings  # the command line wins over the file


def kshellrc() -> str | None:
    """Return ``$XDG_CONFIG_HOME/kshell/kshellrc`` or ``~/.config/kshell/kshellrc``; ``None`` without a home."""
    base = os.environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(base):
        base = os.path.expanduser("~/.config")
    return os.path.join(base, "kshell", "kshellrc") if os.path.isabs(base) else None
