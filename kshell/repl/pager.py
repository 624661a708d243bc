"""The screen as a stream: what is longer than the terminal goes through a pager, the rest is just printed.

An answer that comes slowly is shown as it comes; the pager takes over once it is longer than the terminal.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
import threading
from collections.abc import Callable
from typing import TextIO

from kshell.render.cells import rows_of

_PATIENCE = 0.4
"""Seconds after which buffered output is printed, though the answer goes on."""
_QUESTION = "-- Enter: more, q: stop --"


class PagerQuit(Exception):
    """The user has left the pager. Not an OSError: nothing is wrong with standard output."""


def pager_command() -> str | None:
    """``KSHELL_PAGER``, else ``PAGER``, else ``less``; ``""`` for no paging, ``None`` when no such program is there."""
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
    """A text stream on ``out``, for one answer. ``finish`` it, whatever happens."""

    encoding = "utf-8"

    def __init__(self, out: TextIO, *, paging: bool, before: Callable[[], None] = lambda: None) -> None:
        """``before`` is called before anything is printed."""
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

    @property
    def pages(self) -> bool:
        """Whether a long answer is paged."""
        return self._command != ""

    def isatty(self) -> bool:
        """What the real stream is."""
        return self._out.isatty()

    def fileno(self) -> int:
        """The real stream's, for a program that writes there by itself."""
        return self._out.fileno()

    def flush(self) -> None:
        """Buffered output stays buffered."""
        self._out.flush()

    def direct(self) -> None:
        """From now on nothing is buffered or paged: the answer has no end, or draws the whole screen."""
        with self._lock:
            self._command = ""

    def write(self, text: str) -> int:
        """Raises PagerQuit."""
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
        """It takes long: show what there is."""
        with self._lock:
            if self._pager is None:
                self._direct = True
                self._out.write("".join(self._pending))
                self._out.flush()
                self._pending.clear()

    def _open(self) -> None:
        """less: keep the answer on the screen (X), leave at once if it fits after all (F), let colours through (R)."""
        self._out.flush()
        environment = {"LESSSECURE": "1", "LESS": "FRX", "LV": "-c", "LESSCHARSET": "utf-8", **os.environ}
        assert self._command
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
        """There is no program: a screenful, then a question."""
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
            return
        assert self._pager.stdin is not None
        with contextlib.suppress(OSError):
            self._pager.stdin.close()
        while self._pager.returncode is None:
            with contextlib.suppress(KeyboardInterrupt):
                self._pager.wait()
