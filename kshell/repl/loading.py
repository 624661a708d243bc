"""Loading in the background: the prompt is there at once, and the first command that needs the data waits for it."""

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
"""Seconds between two looks at whether loading has ended."""
_BAR = 56
"""Columns that the bar and the numbers take, at most."""


class Meter:
    """How far the reading is. Draws a line only while the user waits, and never from the loading thread."""

    def __init__(self) -> None:
        self._line = Progress()
        self._last = (0, 0, "")
        self._waiting = False
        self.changed: Callable[[], None] = lambda: None

    def __call__(self, completed: int, total: int, label: str) -> None:
        """The progress of a source; in the main thread it is the running command that reads."""
        before, self._last = self.percent(), (completed, total, label)
        if threading.current_thread() is threading.main_thread():
            self.draw()
        elif self.percent() != before:
            self.changed()

    def tell(self) -> None:
        """There is news of a live source."""
        self.changed()

    def percent(self) -> int:
        """Return the percentage of bytes read."""
        completed, total, _ = self._last
        return min(100, completed * 100 // total) if total else 0

    def begin(self) -> None:
        """From now on somebody waits; the line comes up after a second."""
        self._waiting = True

    def draw(self) -> None:
        """Bring the line up to date, if somebody waits."""
        if self._waiting:
            completed, total, label = self._last
            # In one row: what wraps cannot be written over.
            room = max(shutil.get_terminal_size().columns - _BAR, 1)
            self._line(completed, total, shortened(os.path.basename(label), room))

    def clear(self) -> None:
        """Take the line away: the answer is coming, or the prompt."""
        self._waiting = False
        self._line.clear()


class Loader:
    """Loads a session's image in a thread of its own, once; ``error`` is why it could not."""

    def __init__(self, session: Session, meter: Meter) -> None:
        self._session = session
        self._meter = meter
        # Not the thread itself: Ctrl-C during its join() makes Python 3.11 believe that it has ended.
        self._idle = threading.Event()
        self._idle.set()
        self.error: KshellError | None = None

    def start(self) -> None:
        """Begin to load, unless that goes on already."""
        if not self._idle.is_set():
            return
        self._idle.clear()
        self.error = None
        threading.Thread(target=self._load, name="kshell loading", daemon=True).start()

    def _load(self) -> None:
        try:
            _ = self._session.loaded
            self._session.source.start(self._meter.tell)
        except KshellError as error:
            self.error = error
        except Exception as error:
            # A fault of kshell; the first command meets it again, and reports it in full.
            self.error = KshellError(f"loading ended with {type(error).__name__}")
        finally:
            self._idle.set()
        self._meter.changed()

    def is_done(self, patience: float = 0.0) -> bool:
        """Whether loading has ended, well or not, or does so while we wait."""
        return self._idle.wait(patience)

    def wait(self) -> None:
        """Until loading has ended, with progress to be seen. Ctrl-C ends the waiting, and loading goes on."""
        while not self.is_done(_EVERY):
            self._meter.draw()

    def status_text(self) -> str:
        """The progress, for the toolbar."""
        if self.error is not None:
            return "not loaded"
        return f"loading {self._meter.percent()} %" if not self.is_done() else "not loaded yet"
