"""Progress in a cell: a line that comes up after a second of reading, is drawn in its place, and goes away."""

from __future__ import annotations

import os
import time

from kshell.magic.display import Drawing
from kshell.render.escape import terminal

_PATIENCE = 1.0
_EVERY = 0.2


class CellProgress:
    """Callable as the sources' ``Progress``; ``clear`` ends it."""

    def __init__(self) -> None:
        self._started: float | None = None
        self._drawn = 0.0
        self._place = Drawing()

    def __call__(self, done: int, total: int, what: str) -> None:
        now = time.monotonic()
        if self._started is None:
            self._started = now
        if now - self._started < _PATIENCE or now - self._drawn < _EVERY:
            return
        self._drawn = now
        name = terminal(os.path.basename(what))
        line = f"{min(done / total, 1.0):4.0%} of {total / 1e6:.1f} MB  {name}" if total else name
        self._place.draw({"text/plain": line})

    def clear(self) -> None:
        """Takes the line away; the next work starts anew."""
        self._place.clear()
        self._started = None
