"""Show the progress of loading on standard error: one line that appears after a second, and goes before the answer."""

from __future__ import annotations

import os
import shutil
import sys
import time

from kshell.escape import terminal
from kshell.render.cells import clip

_PATIENCE = 1.0
_EVERY = 0.1
_WIDTH = 24


class Pace:
    """Decides when progress is drawn (:meth:`is_due`): after a second, then at most once in ``every`` seconds."""

    def __init__(self, every: float) -> None:
        self._every = every
        self._started: float | None = None
        self._drawn = 0.0

    def is_due(self) -> bool:
        """Whether to draw now. The first call starts the clock."""
        now = time.monotonic()
        if self._started is None:
            self._started = now
        if now - self._started < _PATIENCE or now - self._drawn < self._every:
            return False
        self._drawn = now
        return True

    def end(self) -> None:
        """Reset the clock for the next work."""
        self._started = None


class Progress:
    """The progress callback of sources (bytes done, bytes in total, name of the file) that draws a bar on a terminal.

    A total of 0 means that nothing can be measured: only the text is shown. Silent if standard error is no terminal.
    """

    def __init__(self) -> None:
        self._pace = Pace(_EVERY)
        self._is_drawn = False
        self._stopped = False

    def __call__(self, done: int, total: int, what: str) -> None:
        if self._stopped or not self._pace.is_due() or not sys.stderr.isatty():
            return
        self._is_drawn = True
        if total:
            share = min(done / total, 1.0)
            bar = "#" * int(share * _WIDTH)
            line = f"[{bar:<{_WIDTH}}] {share:4.0%} of {total / 1e6:.1f} MB  {terminal(os.path.basename(what))}"
        else:
            line = terminal(what)  # nothing to measure, for example while waiting for a node
        # In one row, and not in its last column: a wrapped line cannot be overwritten.
        room = max(shutil.get_terminal_size().columns - 1, 1)
        sys.stderr.write(f"\r{clip(line, room)}\x1b[K")
        sys.stderr.flush()

    def stop(self) -> None:
        """Remove the line, and draw no more until :meth:`clear`, because an answer is being written to the terminal."""
        self.clear()
        self._stopped = True

    def clear(self) -> None:
        """Remove the line, and allow drawing for the next work."""
        self._stopped = False
        if self._is_drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
        self._pace.end()
        self._is_drawn = False
