"""Read the states that ``top`` shows, in one background thread, so that the screen stays responsive.

Sessions are not thread-safe, so all sessions of ``top`` are used only in this thread, one request after another.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from kshell.engine.session import Session
from kshell.errors import KshellError
from kshell.sources.changes import ChangeDetector
from kshell.top.panels import Opening, PanelRows, failure
from kshell.tree.image import iso


class LogMoment(NamedTuple):
    """The shown moment: the offset of the last record that is included, and its time (ISO 8601; ``None``: unknown)."""

    offset: int
    time: str | None


class PanelView(NamedTuple):
    """The rows of a page, and the moment whose state they show; ``None`` for a source without a log."""

    listing: PanelRows
    moment: LogMoment | None


class Superseded(BaseException):
    """The request is outdated. A BaseException, so that no ``except Exception`` of a command catches it."""


class Viewer:
    """Reads pages for the screen.

    The screen takes a number (:meth:`request`) and submits :meth:`show` with it to :attr:`thread`. All other methods
    but :meth:`close` run only in that thread, too.
    """

    def __init__(self, session: Session) -> None:
        self.start = session.until
        """The offset that the screen shows first; ``None`` for now."""
        self.thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="kshell-top")
        self._is_closed = False
        self._newest = self._running = 0
        """The numbers of the newest request for a page, and of the one that is being answered (0 for none)."""
        self.reading_took = 0.0
        """Seconds that the last page took for which the source was read."""
        self._now = session if session.until is None else session.reshape(point="now")
        self._now = self._quiet(self._now.reshape())
        self._then: tuple[int | None, Session] = (None, self._now)
        self._changes = ChangeDetector(self._now)

    def _quiet(self, session: Session) -> Session:
        """Prepare a session for the full screen, on which no progress, notes or questions may be written."""
        session.progress = self._progress
        session.announce = None
        session.ask = None
        session.front = session
        return session

    def _progress(self, completed: int, total: int, label: str) -> None:
        if self._is_closed or (self._running and self._running != self._newest):
            raise Superseded

    def request(self) -> int:
        """Return the number of a new request, which makes all earlier ones outdated. Called in the screen's thread."""
        self._newest += 1
        return self._newest

    def show(self, number: int, opening: Opening, point: int | None, width: int) -> PanelView:
        """Read a page at a point (an offset; ``None``: now); an error of the data becomes a page with its message.

        Raises:
            Superseded: there is a newer request than ``number``.
        """
        moment = None
        begin, was_loaded = time.monotonic(), True
        self._running = number
        try:
            self._progress(0, 0, "")
            session = self._at(point)
            was_loaded = session.is_loaded
            if session.source.has_log:
                loaded = session.loaded
                offset = loaded.image.provenance.offset if point is None else point
                if point is None and loaded.log_end_offset is not None:
                    offset = loaded.log_end_offset - 1
                moment = LogMoment(offset, self._time(session, offset))
            page = opening.make(session, width)
        except KshellError as error:
            page = failure(error)
        finally:
            self._running = 0
        if not was_loaded:
            self.reading_took = time.monotonic() - begin
        return PanelView(page, moment)

    def _time(self, session: Session, offset: int) -> str | None:
        """Return the time of the record at the offset if the log was read, else that of the image's newest record."""
        past = session.past
        if past is not None and past.is_recorded:
            history = past.history(self._progress)
            if history is not None and history[0].log.start <= offset < history[0].log.end:
                return iso(history[0].log.timestamp(offset))
        return iso(session.image.provenance.timestamp)

    def _at(self, point: int | None) -> Session:
        if self._then[0] != point:
            session = self._now if point is None else self._quiet(self._now.reshape(point=str(point)))
            self._then = point, session
        return self._then[1]

    def bounds(self) -> tuple[int, int] | None:
        """Return the first and last offset that can be shown; ``None`` if there is only the newest state."""
        if not self._now.source.has_log:
            return None
        self._now.travels()
        assert self._now.past is not None
        history = self._now.past.history(self._progress)
        if history is None or history[0].log.end <= history[0].log.start:
            return None
        return history[0].log.start, history[0].log.end - 1

    def refresh(self) -> bool:
        """Whether the source has changed, which the next page shows. Raises KshellError."""
        return self._changes.changed()

    def reload(self) -> None:
        """Forget what was read, so that the next page reads the source again."""
        self._now.reload()
        self._then = None, self._now

    @property
    def is_live(self) -> bool:
        """Whether the source is a running cluster."""
        return self._now.source.is_live

    @property
    def name(self) -> str:
        """The name of the source, for the title."""
        source = self._now.source
        return source.name or source.path or source.kind

    def close(self) -> None:
        """End the thread; a reading that is under way ends at its next report of progress."""
        self._is_closed = True
        self.thread.shutdown(wait=True, cancel_futures=True)
