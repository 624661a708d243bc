"""Run the lines of the interactive shell: wait for the data, print the answer, and survive every error.

:class:`Lines` is the :class:`kshell.engine.execution.FrontEnd` of the shell.
"""

from __future__ import annotations

import os
import shutil
import sys
from typing import TextIO, cast

from kshell.engine.completion import resolve
from kshell.engine.execution import Call, Engine, is_query, prepare, run_commands
from kshell.engine.language import words_in
from kshell.engine.result import Exit
from kshell.engine.session import Session
from kshell.errors import EXIT_INTERRUPTED, EXIT_OK, KshellError
from kshell.escape import terminal as clean
from kshell.render.answer import answer, message_width
from kshell.render.color import paint, use_color
from kshell.render.output import OutputClosed, describe_error, message_lines
from kshell.render.question import asker
from kshell.repl.loading import Loader, Meter
from kshell.repl.pager import PagerQuit, Screen
from kshell.repl.prompt import prompt_text


class Lines:
    """Runs lines on one session (:meth:`run`) and prints answers and messages. ``status``: the last exit code."""

    def __init__(self, session: Session, loader: Loader, meter: Meter) -> None:
        self._session = session
        self._loader = loader
        self._meter = meter
        self._screen: Screen | None = None
        self._engine = Engine(session, self, asker(meter.clear))
        self.status = EXIT_OK

    def run(self, line: str) -> None:
        """Run the commands of a line. Raises Exit after ``exit``, or if standard output was closed; else no error."""
        if line.strip():
            self.status = run_commands(line, self._command, self.complain)

    def _command(self, line: str) -> int:
        try:
            return self._run(line)
        except KshellError as error:
            self.complain(error, line)
            return error.exit_code
        except PagerQuit:
            return EXIT_OK
        except KeyboardInterrupt:
            self._meter.clear()
            self.write("\ninterrupted" if sys.stderr.isatty() else "interrupted", "hint")
            return EXIT_INTERRUPTED
        except OutputClosed:
            raise Exit(EXIT_OK) from None
        except Exit:
            raise
        except Exception as error:
            # A bug of kshell must not end the shell while the user needs it.
            from kshell.render.faults import own_fault  # late: only an error in kshell itself needs it

            fault = own_fault(error)
            self.complain(fault)
            return fault.exit_code
        finally:
            self._meter.clear()

    def _run(self, line: str) -> int:
        self._meter.begin()
        if self._needs_data(line):
            self._loader.wait()
            self._session.refresh()
        call = prepare(self._session, line)
        if call is None:
            return self.status
        return self._engine.run(call)

    def answer(self, call: Call) -> int:
        """Run the call, print its answer, through a pager if it is long, and return the exit code."""
        self._screen = Screen(sys.stdout, paging=self._pages(), before=self._meter.clear)
        return answer(call, self.complain, stdout=cast("TextIO", self._screen))

    def finish(self) -> None:
        """End paging."""
        if self._screen is not None:
            self._screen.finish()
            self._screen = None

    def _needs_data(self, line: str) -> bool:
        tokens = words_in(line)
        if is_query(line) or (tokens and tokens[0].text.startswith("/")):
            return True
        resolved = resolve(self._session, tokens) if tokens else None
        # These three declare that they need no source, but the lines of a file (source) may be any commands, and diff
        # and top need none only if their arguments name other sources.
        return resolved is not None and (resolved[0].needs_source or resolved[0].name in ("source", "diff", "top"))

    def _pages(self) -> bool:
        wanted = self._session.settings.get("pager", True)
        return bool(wanted) and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"

    def complain(self, error: KshellError, line: str | None = None) -> None:
        """Print an error with its hint; ``line`` is the typed line, to show the fault in it."""
        self._meter.clear()
        self.write(describe_error(error, line=line, color=self.colored(), width=message_width(sys.stderr)))

    def announce(self) -> None:
        """Print the problems and notes of the data that were not printed yet."""
        self._engine.announce(self._session)

    def report(self, label: str, sentences: list[str]) -> None:
        """Print sentences about the data."""
        for sentence in sentences:
            text, style = f"kshell: {label}: {sentence}", "error" if label == "error" else "hint"
            self.write(message_lines(text, width=message_width(sys.stderr), style=style, color=self.colored()))

    def echo(self, line: str) -> None:
        """Print one of several pasted lines after a prompt, as if it had been typed alone, before it runs."""
        sys.stdout.flush()
        fragments = prompt_text(self._session, self.status, shutil.get_terminal_size().columns)
        text = "\n".join(map(clean, line.split("\n")))
        sys.stderr.write("".join(paint(part[1], "hint", self.colored()) for part in fragments) + text + "\n")
        sys.stderr.flush()

    def write(self, text: str, style: str = "") -> None:
        """Print a message on standard error; it must be escaped already."""
        sys.stderr.write(paint(text, style, self.colored()) + "\n")
        sys.stderr.flush()

    def colored(self) -> bool:
        """Whether messages and the prompt are coloured."""
        return use_color(self._session.settings.get("color") or "auto", sys.stderr)
