"""Progress in a cell: a line that comes up after a second of reading, is drawn in its place, and goes away."""

from __future__ import annotations

import os

from kshell.escape import terminal
from kshell.magic.display import Drawing
from kshell.render.progress import Pace

_EVERY = 0.2


class CellProgress:
    """Callable as the sources' ``Progress``; ``clear`` ends it."""

    def __init__(self) -> None:
        self._pace = Pace(_EVERY)
        self._place = Drawing()

    def __call__(self, done: int, total: int, what: str) -> None:
        if not self._pace.is_due():
            return
        name = terminal(os.path.basename(what))
        line = f"{min(done / total, 1.0):4.0%} of {total / 1e6:.1f} MB  {name}" if total else name
        self._place.draw({"text/plain": line})

    def clear(self) -> None:
        """Takes the line away; the next work starts anew."""
        self._place.clear()
        self._pace.end()
