"""Load the session's image in a background thread, so that the prompt appears immediately, and show the progress.

The first command that needs the data waits for it (:meth:`Loader.wait`).
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable

from kshell.engine.session import Session
from kshell.errors import KshellError
from kshell.render.progress import Progress
from kshell.repl.terminal import shortened

_EVERY = 0.05
"""Seconds between two checks whether loading has ended."""
_BAR = 56
"""The most columns that the bar and the numbers take."""


class Meter:
    """The progress callback of the session's source. Draws a line only between :meth:`begin` and :meth:`clear`, while a
    command waits, and only in the main thread; otherwise it calls ``changed``, which redraws the toolbar.
    """

    def __init__(self) -> None:
        self._line = Progress()
        self._last = (0, 0, "")
        self._waiting = False
        self.changed: Callable[[], None] = lambda: None

    def __call__(self, completed: int, total: int, label: str) -> None:
        """Receive the progress of a source: bytes done, bytes in total, name. In the main thread, a command reads."""
        before, self._last = self.percent(), (completed, total, label)
        if threading.current_thread() is threading.main_thread():
            self.draw()
        elif self.percent() != before:
            self.changed()

    def redraw(self) -> None:
        """Redraw the toolbar, because a live source has news."""
        self.changed()

    def percent(self) -> int:
        """Return the percentage of bytes read."""
        completed, total, _ = self._last
        return min(100, completed * 100 // total) if total else 0

    def begin(self) -> None:
        """Allow drawing, because a command waits from now on; the line appears after a second."""
        self._waiting = True

    def draw(self) -> None:
        """Draw the line with the latest progress, if a command waits."""
        if self._waiting:
            completed, total, label = self._last
            # In one row, because a wrapped line cannot be overwritten.
            room = max(shutil.get_terminal_size().columns - _BAR, 1)
            self._line(completed, total, shortened(os.path.basename(label), room))

    def clear(self) -> None:
        """Remove the line, before the answer or the prompt is printed."""
        self._waiting = False
        self._line.clear()


class Loader:
    """Loads a session's image in a background thread. ``error`` is the reason if that failed, else ``None``."""

    def __init__(self, session: Session, meter: Meter) -> None:
        self._session = session
        self._meter = meter
        # An event, not join() of the thread: Ctrl-C in join() makes Python 3.11 believe that the thread has ended.
        self._idle = threading.Event()
        self._idle.set()
        self.error: KshellError | None = None

    def start(self) -> None:
        """Start loading, unless it is running already."""
        if not self._idle.is_set():
            return
        self._idle.clear()
        self.error = None
        threading.Thread(target=self._load, name="kshell loading", daemon=True).start()

    def _load(self) -> None:
        try:
            _ = self._session.loaded
            self._session.source.start(self._meter.redraw)
        except KshellError as error:
            self.error = error
        except Exception as error:
            # A bug of kshell. The first command will hit it again, and report it in full.
            self.error = KshellError(f"loading ended with {type(error).__name__}")
        finally:
            self._idle.set()
        self._meter.changed()

    def is_done(self, patience: float = 0.0) -> bool:
        """Whether loading has ended, successfully or not; wait up to ``patience`` seconds for it."""
        return self._idle.wait(patience)

    def wait(self) -> None:
        """Wait until loading has ended, and show its progress. Ctrl-C ends the waiting, but not the loading."""
        while not self.is_done(_EVERY):
            self._meter.draw()

    def status_text(self) -> str:
        """Return the progress of loading for the toolbar."""
        if self.error is not None:
            return "not loaded"
        return f"loading {self._meter.percent()} %" if not self.is_done() else "not loaded yet"
