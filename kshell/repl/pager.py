"""A text stream that sends answers longer than the terminal through a pager, and prints shorter ones directly.

An answer that comes slowly is printed while it comes; the pager takes over as soon as it is longer than the terminal.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable
from typing import Any, TextIO

from kshell.render.cells import rows_of

_PATIENCE = 0.4
"""Seconds after which buffered output is printed, though the answer is not complete."""
_QUESTION = "-- Enter: more, q: stop --"


class PagerQuit(Exception):
    """The user has left the pager before the end. Not an OSError, because nothing is wrong with standard output."""


def pager_command() -> str | None:
    """Return ``KSHELL_PAGER``, else ``PAGER``, else ``less``.

    ``""`` means no paging; ``None`` means that there is no such program, so that kshell pages by itself.
    """
    for name in ("KSHELL_PAGER", "PAGER"):
        wanted = os.environ.get(name)
        if wanted is not None:
            return wanted.strip() if _is_there(wanted) else None
    return "less" if shutil.which("less") else None


def _is_there(command: str) -> bool:
    try:
        arguments = shlex.split(command)
    except ValueError:
        return False
    return not arguments or "=" in arguments[0] or shutil.which(arguments[0]) is not None


class Screen:
    """The output stream for one answer. The caller writes to it and must call :meth:`finish` in the end."""

    encoding = "utf-8"

    def __init__(self, out: TextIO, *, paging: bool, before: Callable[[], None] = lambda: None) -> None:
        """``out`` is the real stream; ``before`` is called before each write."""
        self._out = out
        self._before = before
        self._paging = paging
        self._command = pager_command() if paging else ""
        self._pending: list[str] = []
        self._direct = not paging or self._command == ""
        self._rows = 0
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._pager: subprocess.Popen[str] | None = None
        self._at_stop: Any = None
        """The handler of Ctrl-Z before the pager was started, where the pager is not to be suspended."""

    @property
    def pages(self) -> bool:
        """Whether a long answer is paged."""
        return self._command != ""

    def isatty(self) -> bool:
        """Whether the real stream is a terminal."""
        return self._out.isatty()

    def fileno(self) -> int:
        """The descriptor of the real stream, for a program that writes to it directly."""
        return self._out.fileno()

    def flush(self) -> None:
        """Flush the real stream; output that waits for the decision about a pager stays buffered."""
        self._out.flush()

    def direct(self) -> None:
        """Stop buffering and paging, for an answer that has no end or draws the whole screen."""
        with self._lock:
            self._command = ""

    def write(self, text: str) -> int:
        """Write or buffer a text. Raises PagerQuit if the user has left the pager."""
        self._before()
        with self._lock:
            if self._pager is not None:
                self._feed(text)
            elif self._command == "":
                self._out.write(text)
            elif self._command is None:
                self._page(text)
            else:
                self._collect(text)
        return len(text)

    def _collect(self, text: str) -> None:
        size = shutil.get_terminal_size()
        self._rows += rows_of(text, size.columns)
        if self._rows > size.lines - 2:
            self._open()
            self._feed("".join(self._pending) + text)
            self._pending.clear()
        elif self._direct:
            self._out.write(text)
        else:
            self._pending.append(text)
            if self._timer is None:
                self._timer = threading.Timer(_PATIENCE, self._release)
                self._timer.daemon = True
                self._timer.start()

    def _release(self) -> None:
        """Print the buffered output, because the answer takes long; called by the timer."""
        with self._lock:
            if self._pager is None:
                self._direct = True
                self._out.write("".join(self._pending))
                self._out.flush()
                self._pending.clear()

    def _open(self) -> None:
        """Start the pager. Options of less: X (keep the answer on the screen), F (quit if it fits), R (colours)."""
        self._out.flush()
        environment = {"LESSSECURE": "1", "LESS": "FRX", "LV": "-c", "LESSCHARSET": "utf-8", **os.environ}
        assert self._command
        if "less" in self._command and environment["LESSSECURE"]:
            # less ignores Ctrl-Z then. If kshell stopped alone, less and the user's shell would both read the keyboard.
            self._at_stop = signal.signal(signal.SIGTSTP, signal.SIG_IGN)
        self._pager = subprocess.Popen(
            self._command, shell=True, stdin=subprocess.PIPE, stdout=self._out, encoding="utf-8", env=environment
        )

    def _feed(self, text: str) -> None:
        assert self._pager is not None and self._pager.stdin is not None
        try:
            self._pager.stdin.write(text)
            self._pager.stdin.flush()
        except BrokenPipeError:
            raise PagerQuit from None

    def _page(self, text: str) -> None:
        """Page without a program: print a screenful, then ask whether to go on."""
        for line in text.splitlines(keepends=True):
            size = shutil.get_terminal_size()
            rows = rows_of(line, size.columns)
            if self._rows + rows > size.lines - 1 and self._rows:
                self._rows = 0
                self._ask()
            self._rows += rows
            self._out.write(line)

    def _ask(self) -> None:
        try:
            answer = input(_QUESTION)
        except EOFError:
            self._out.write("\n")
            answer = "q"
        if answer.strip().lower().startswith("q"):
            raise PagerQuit

    def finish(self) -> None:
        """Print the buffered output, and wait until the user leaves the pager. Ctrl-C there belongs to the pager."""
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            pending, self._pending = self._pending, []
        if self._pager is None:
            self._out.write("".join(pending))
            self._out.flush()
        else:
            assert self._pager.stdin is not None
            with contextlib.suppress(OSError):
                self._pager.stdin.close()
            while self._pager.returncode is None:
                with contextlib.suppress(KeyboardInterrupt):
                    self._pager.wait()
        if self._at_stop is not None:  # also after a pager that did not start
            signal.signal(signal.SIGTSTP, self._at_stop)
