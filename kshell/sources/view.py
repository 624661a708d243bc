"""A view of a source at one point in time, the newest state or an offset; it decides how the image is loaded."""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING

from kshell.sources.directory.log import Progress
from kshell.sources.source import Loaded, Source

if TYPE_CHECKING:
    from kshell.sources.marks import Marks
    from kshell.sources.past import Past
    from kshell.sources.points import Since


class SourceView:
    """One source at one point in time: ``until`` is an offset, or ``None`` for the newest state.

    The image is loaded on first use of ``loaded``; :meth:`refresh`, :meth:`travel` and :meth:`reload` discard it.
    """

    def __init__(self, source: Source, until: int | None, progress: Progress | None) -> None:
        self.source = source
        self.until = until
        self.progress = progress
        self.front: SourceView = self
        """The front end's view, which has the marks. This view may have been derived from it for one answer."""
        self.past: Past | None = None
        """The recorded history of the source, once several points in time are asked for (:meth:`travels`)."""
        self._uses_past = False
        self._present: Loaded | None = None
        """The newest state, kept while another point in time is shown."""

    @cached_property
    def loaded(self) -> Loaded:
        """The image and how it was loaded; loaded on first use. Raises SourceError, DataError."""
        past = self.past if self._uses_past else None
        if past is not None and self.until is not None and not past.skips_log_for(self.until):
            loaded = past.at(self.until, self.progress)
            if loaded is not None:
                return loaded
        if self.until is None and self.past is not None and self.past.is_recorded and not self.source.is_live:
            loaded = self.past.newest(self.progress)
            if loaded is not None:
                return loaded
        return self.source.load(until=self.until, progress=self.progress)

    @property
    def is_loaded(self) -> bool:
        """Whether the image is loaded already; completion asks this, because it must not wait for it."""
        return "loaded" in self.__dict__

    def refresh(self) -> bool:
        """Discard the image if a live source has newer committed records; its next use loads them.

        Returns:
            Whether there are newer records; always ``False`` at a fixed point in time.
        """
        if self.until is not None or not self.is_loaded or not self.source.refresh():
            return False
        self._forget()
        return True

    def travels(self) -> None:
        """Prepare for several points in time: from now on the log is replayed once for all of them."""
        if self.past is None:
            from kshell.sources.past import Past  # imported late: most commands need one image only

            self.past = Past(self.source)

    def travel(self, then: SourceView) -> None:
        """Move to the point in time of ``then``, a view that was derived from this one, and take over its image."""
        if self.until is None and self.is_loaded:
            self._present = self.loaded
        present, self._present = (self._present, None) if then.until is None else (None, self._present)
        self._forget()
        self.until, self._uses_past = then.until, True
        if then.until is not None or (present is None and then.is_loaded):
            self.__dict__["loaded"] = then.loaded
        elif present is not None:
            self.__dict__["loaded"] = present

    def offset_of(self, point: str) -> int | None:
        """The offset that a point means: an offset, a time, or ``@mark``; ``None`` for ``now``.

        Raises UsageError, DataError.
        """
        if point.startswith("@"):
            return self.marks.get(point[1:]).offset
        if self.past is not None and self.past.is_recorded and self.source.has_log:
            from kshell.sources.points import parse_point

            moment = parse_point(point, from_end=True)
            offset = None if moment.time_ms is None else self.past.offset_by(moment.time_ms, self.progress)
            if offset is not None:
                return offset
        return self.source.offset_of(point)

    def since(self, point: str) -> Since | None:
        """Where the records of ``--since POINT`` begin; ``None`` for now. The record at a mark's offset is included.

        Raises UsageError, DataError.
        """
        if point.startswith("@"):
            from kshell.sources.points import Since

            return Since(self.marks.get(point[1:]).offset)
        return self.source.since(point)

    @property
    def marks(self) -> Marks:
        """The named points of this source. Raises SourceError if it has no log, UsageError if their file is damaged."""
        return self.front._marks

    @cached_property
    def _marks(self) -> Marks:
        from kshell.sources.marks import Marks  # imported late: few commands name one

        return Marks.of(self.source, os.environ)

    def reload(self) -> None:
        """Discard everything that was read: the next command reads the source again."""
        self._forget()
        self._present = None
        if self.past is not None:
            self.past = None
            self.travels()

    def renew(self) -> None:
        """Discard the image, whose next use reads the source again; of the recorded history only the news are read."""
        self._forget()
        self._present = None

    def _forget(self) -> None:
        for name in ("loaded", "root", "_from_oldest"):  # the latter two are cached properties of the class Session
            self.__dict__.pop(name, None)
