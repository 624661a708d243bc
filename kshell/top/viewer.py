"""The states that ``top`` shows, read in one thread beside the screen.

Sessions are not made for several threads: all of them live here, and one thing is read after the other.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from kshell.engine.session import Session
from kshell.errors import KshellError
from kshell.top.panels import Opening, PanelRows, failure
from kshell.tree.image import iso


class LogMoment(NamedTuple):
    """A place in the log: the offset of the last record that counts, and its time."""

    offset: int
    time: str | None


class PanelView(NamedTuple):
    """A listing with the moment it is of."""

    listing: PanelRows
    moment: LogMoment | None


class Superseded(BaseException):
    """Nobody waits any more for what is being read. No error: nothing below may take it for an answer."""


class Viewer:
    """Reads for the screen. Its methods run in :attr:`thread` and nowhere else, but for :meth:`close`."""

    def __init__(self, session: Session) -> None:
        self.start = session.until
        """The offset of the moment that the session shows; ``None`` for now."""
        self.thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="kshell-top")
        self._is_closed = False
        self._newest = self._running = 0
        """The numbers of the newest request for a listing, and of the one that is being answered (0 for none)."""
        self._now = session if session.until is None else session.reshape(point="now")
        self._now = self._quiet(self._now.reshape())
        self._then: tuple[int | None, Session] = (None, self._now)

    def _quiet(self, session: Session) -> Session:
        """The screen is taken: progress and notes must not be written on it."""
        session.progress = self._progress
        session.announce = None
        session.ask = None
        session.front = session
        return session

    def _progress(self, completed: int, total: int, label: str) -> None:
        if self._is_closed or (self._running and self._running != self._newest):
            raise Superseded

    def request(self) -> int:
        """The number of a new request, which takes the place of those before; for the screen's own thread."""
        self._newest += 1
        return self._newest

    def show(self, number: int, opening: Opening, point: int | None, width: int) -> PanelView:
        """What an opening shows at a moment; an error is a listing, too.

        Raises:
            Superseded: there is a newer request than the one of this number.
        """
        moment = None
        self._running = number
        try:
            self._progress(0, 0, "")
            session = self._at(point)
            if session.source.has_log:
                loaded = session.loaded
                offset = loaded.image.provenance.offset if point is None else point
                if point is None and loaded.log_end_offset is not None:
                    offset = loaded.log_end_offset - 1
                moment = LogMoment(offset, self._time(session, offset))
            return PanelView(opening.make(session, width), moment)
        except KshellError as error:
            return PanelView(failure(error), moment)
        finally:
            self._running = 0

    def _time(self, session: Session, offset: int) -> str | None:
        """The time of the record where the log was read, else of the newest record of the image."""
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
        """The first and the last offset that can be shown; ``None`` where there is nothing but the newest state."""
        if not self._now.source.has_log:
            return None
        self._now.travels()
        assert self._now.past is not None
        history = self._now.past.history(self._progress)
        if history is None or history[0].log.end <= history[0].log.start:
            return None
        return history[0].log.start, history[0].log.end - 1

    def refresh(self) -> bool:
        """Bring in what a live source has committed; whether there is anything new. Raises KshellError."""
        return self._now.refresh()

    def reload(self) -> None:
        """Forget what was read."""
        self._now.reload()
        self._then = None, self._now

    @property
    def is_live(self) -> bool:
        """Whether a running cluster answers."""
        return self._now.source.is_live

    @property
    def name(self) -> str:
        """The source, for the title."""
        source = self._now.source
        return source.name or source.path or source.kind

    def close(self) -> None:
        """End the thread; what is being read ends at its next report of progress."""
        self._is_closed = True
        self.thread.shutdown(wait=True, cancel_futures=True)
