"""Runs lines one after another: waits for the data, prints the answer, and survives whatever goes wrong."""

from __future__ import annotations

import os
import shutil
import sys
import traceback
from typing import TextIO, cast

from kshell.engine.completion import resolve
from kshell.engine.execution import Call, Engine, prepare, run_commands
from kshell.engine.language import words as words_in
from kshell.engine.result import Exit
from kshell.engine.session import Session
from kshell.errors import EXIT_INTERRUPTED, EXIT_OK, EXIT_USAGE, KshellError
from kshell.escape import terminal as clean
from kshell.render.answer import answer, message_width
from kshell.render.color import paint, use_color
from kshell.render.output import OutputClosed, describe_error, message_lines
from kshell.render.question import asker
from kshell.repl.loading import Loader, Meter
from kshell.repl.pager import PagerQuit, Screen
from kshell.repl.prompt import message


class Lines:
    """``status`` is the exit code of the last command."""

    def __init__(self, session: Session, loader: Loader, meter: Meter) -> None:
        self._session = session
        self._loader = loader
        self._meter = meter
        self._screen: Screen | None = None
        self._engine = Engine(session, self, asker(meter.clear))
        self.status = EXIT_OK

    def run(self, line: str) -> None:
        """Run the commands of a line. Raises Exit when one asks to leave, or nobody reads the answers any more."""
        if line.strip():
            self.status = run_commands(line, self._command)

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
        except Exception:
            # A fault of ours must not take the shell away from somebody who needs it.
            self._meter.clear()
            self.write(f"{traceback.format_exc()}kshell: this is a fault of kshell, please report it", "error")
            return EXIT_USAGE
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
        """Print the call's answer, page by page where it is long."""
        self._screen = Screen(sys.stdout, paging=self._pages(), before=self._meter.clear)
        return answer(call, self.complain, stdout=cast("TextIO", self._screen))

    def finish(self) -> None:
        """End paging."""
        if self._screen is not None:
            self._screen.finish()
            self._screen = None

    def _needs_data(self, line: str) -> bool:
        tokens = words_in(line)
        resolved = resolve(self._session, tokens) if tokens else None
        # The lines of a file may be any commands.
        # And a diff needs no source only where it is given two, a full screen only where it is given one.
        return resolved is not None and (resolved[0].needs_source or resolved[0].name in ("source", "diff", "top"))

    def _pages(self) -> bool:
        wanted = self._session.settings.get("pager", True)
        return bool(wanted) and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"

    def complain(self, error: KshellError, line: str | None = None) -> None:
        """Print what went wrong, and what to do about it."""
        self._meter.clear()
        self.write(describe_error(error, line=line, color=self.colored(), width=message_width(sys.stderr)))

    def announce(self) -> None:
        """Print the problems and notes of the data that were not printed yet."""
        self._engine.announce(self._session)

    def tell(self, label: str, sentences: list[str]) -> None:
        """Print sentences about the data."""
        for sentence in sentences:
            text, style = f"kshell: {label}: {sentence}", "error" if label == "error" else "hint"
            self.write(message_lines(text, width=message_width(sys.stderr), style=style, color=self.colored()))

    def echo(self, line: str) -> None:
        """Show one of several pasted lines behind the prompt that it would have had; its answer or error comes next."""
        sys.stdout.flush()
        fragments = message(self._session, self.status, shutil.get_terminal_size().columns)
        sys.stderr.write("".join(paint(part[1], "hint", self.colored()) for part in fragments) + clean(line) + "\n")
        sys.stderr.flush()

    def write(self, text: str, style: str = "") -> None:
        """A message for the user; already safe for a terminal."""
        sys.stderr.write(paint(text, style, self.colored()) + "\n")
        sys.stderr.flush()

    def colored(self) -> bool:
        """Whether messages and the prompt are coloured."""
        return use_color(self._session.settings.get("color") or "auto", sys.stderr)
