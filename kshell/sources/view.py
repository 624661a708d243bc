"""A view of a source at one point in time: the newest state, or that of an offset, and how its image is loaded."""

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
    """One source at one point in time: ``until`` is an offset, or ``None`` for the newest state."""

    def __init__(self, source: Source, until: int | None, progress: Progress | None) -> None:
        self.source = source
        self.until = until
        self.progress = progress
        self.front: SourceView = self
        """The view of the front end; this one may be derived from it, for one answer."""
        self.past: Past | None = None
        """Every state of the source, once more than one is asked for (:meth:`travels`)."""
        self._uses_past = False
        self._present: Loaded | None = None
        """The newest state, cached while another one is shown."""

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
        """Whether the image is at hand (completion must not wait for it)."""
        return "loaded" in self.__dict__

    def refresh(self) -> bool:
        """Bring in what a live source has committed since then.

        Returns:
            Whether there is anything new; never at a fixed point in time.
        """
        if self.until is not None or not self.is_loaded or not self.source.refresh():
            return False
        self._forget()
        return True

    def travels(self) -> None:
        """Prepare for several points in time: from now on the log is read once for all of them."""
        if self.past is None:
            from kshell.sources.past import Past  # late: one answer needs one image

            self.past = Past(self.source)

    def travel(self, then: SourceView) -> None:
        """Move to the point in time of ``then`` (a reshaped session, loaded)."""
        if self.until is None and self.is_loaded:
            self._present = self.loaded
        present, self._present = (self._present, None) if then.until is None else (None, self._present)
        self._forget()
        self.until, self._uses_past = then.until, True
        if then.until is not None or present is not None:
            self.__dict__["loaded"] = then.loaded if then.until is not None else present

    def offset_of(self, point: str) -> int | None:
        """The offset of an offset, a time, ``@mark`` or ``now`` (``None``). Raises UsageError, DataError."""
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
        """What ``--since POINT`` begins with; ``None`` for now. A mark's own record is not from before the mark.

        Raises UsageError, DataError.
        """
        if point.startswith("@"):
            from kshell.sources.points import Since

            return Since(self.marks.get(point[1:]).offset)
        return self.source.since(point)

    @property
    def marks(self) -> Marks:
        """The named points of this source. Raises SourceError for one without a log, UsageError for a damaged file."""
        front = self.front
        if "_marks" not in front.__dict__:
            from kshell.sources.marks import Marks

            front.__dict__["_marks"] = Marks.of(front.source, os.environ)
        marks: Marks = front.__dict__["_marks"]
        return marks

    def reload(self) -> None:
        """Forget what was read: the next command reads the source again."""
        self._forget()
        self._present = None
        if self.past is not None:
            self.past = None
            self.travels()

    def _forget(self) -> None:
        for name in ("loaded", "root", "_from_oldest"):  # the latter two are a session's
            self.__dict__.pop(name, None)
