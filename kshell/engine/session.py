"""The session that commands run on: its source, the image that it shows, the working directory, settings and aliases.

A session is the only mutable state of a front end. Loading is lazy (``dump`` needs no image) but never partial: the
first command that needs the image waits for all of it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kshell.errors import (
    EXIT_DATA,
    EXIT_OK,
    DataError,
    DeadlineError,
    KshellError,
    NoSuchPathError,
    OutOfReachError,
    SourceTimeoutError,
)
from kshell.metadata.image import Image
from kshell.metadata.partial import NOT_AVAILABLE
from kshell.metadata.redaction import Redaction
from kshell.metadata.replay import MALFORMED, MOST_PROBLEMS, NEWER, SKIPPED
from kshell.metadata.values import Origin
from kshell.protocol import checksum
from kshell.sources.directory.files import META, METADATA_DIRECTORY
from kshell.sources.directory.log import Progress
from kshell.sources.source import Loaded, Source, SourceFacts
from kshell.sources.view import SourceView
from kshell.tree.globs import ESCAPED, expand, is_glob, unescape
from kshell.tree.image import iso
from kshell.tree.node import Directory, Leaf, Node
from kshell.tree.paths import Segments, join, resolve, split, walk
from kshell.tree.root import Fact, Facts, root_directory
from kshell.version import __version__

if TYPE_CHECKING:
    from kshell.sources.points import Since

OLD_AFTER = 300.0
"""Seconds. If the last record of a copy is older, a note says how old it is."""


class Session(SourceView):
    """One source at one point in time (``until``), with the user's working directory, settings and aliases.

    A front end makes one session. :meth:`reshape` derives others for a single answer (``--as-of``), which share aliases
    and history with it and know it as ``front``.
    """

    def __init__(
        self,
        source: Source,
        *,
        show_secrets: bool = False,
        until: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        super().__init__(source, until, progress)
        self.front: Session = self
        self.is_confined = False
        """Whether commands may read only this source: a remote client must not choose what else this process reads."""
        self.redaction = Redaction(show_secrets=show_secrets)
        self._point: str | None = None
        """The point in time that ``until`` was resolved from, with its zone; ``None`` if no point was typed."""
        self.cwd: Segments = ()
        self.previous: Segments = ()
        self.settings: dict[str, Any] = {}
        self.aliases: dict[str, str] = {}
        self.history: list[str] = []
        self.sourcing: list[str] = []
        """The files whose lines are being run (``source``), the outermost first."""
        self.announce: Callable[[], None] | None = None
        """Reports problems and notes immediately, while a command still runs; an ``Engine`` sets it."""
        self.ask: Callable[[str], bool] | None = None
        """Asks the user a yes-or-no question and returns the answer; ``None`` where there is no user."""
        self.remarks: list[str] = []
        """Notes about the answer of the last command; :meth:`kshell.engine.execution.Call.run` empties the list."""
        self.found_damage: list[DataError] = []
        """Damage that the last command found in the log, in addition to that of loading; emptied in the same way."""

    @property
    def image(self) -> Image:
        """The metadata image. Loads it on first use."""
        return self.loaded.image

    @cached_property
    def root(self) -> Directory:
        """The root directory ``/`` of the tree. Child nodes are created when somebody walks to them."""
        facts = {
            "local": self._local,
            "quorum": self._quorum,
            "snapshots": self._snapshots,
            "log": self._log,
        }
        return root_directory(lambda: self.image, self.redaction, facts)

    def _local(self) -> Facts:
        """``/local``: this program's version. No commit is recorded in a release."""
        return {"version": Fact("version", __version__), "commitId": Fact("version", None)}

    # The modules that describe a source are imported late: most commands need only the image.

    def _quorum(self) -> Facts:
        return _facts(self.source.quorum(self.loaded))

    def _snapshots(self) -> Fact | Facts:
        if not self.source.has_log:
            return Fact("unavailable", NOT_AVAILABLE)
        from kshell.sources.directory.describe import snapshots

        return _facts(snapshots(self.source.listing()))

    def _log(self) -> Fact | Facts:
        if not self.source.has_log:
            return Fact("unavailable", NOT_AVAILABLE)
        from kshell.sources.directory.describe import log

        return _facts(log(self.loaded, self.redaction))

    def origin(self, segments: Segments, node: Directory | Leaf, *, most: int | None = None) -> Origin | None:
        """Return the record that last wrote a node; ``None`` if unknown. Raises DataError.

        For a value of the snapshot, the log before the snapshot is replayed, once per session, if it is still there and
        the segments have at most ``most`` bytes.
        """
        origin = node.origin()
        if origin is None or not origin.place.in_snapshot or not self.knows_more:
            return origin
        if most is not None and sum(segment.size for segment in self.loaded.listing.segments) > most:
            return origin
        if self._from_oldest.loaded.damage:
            return origin  # what wrote the value may be among the records that cannot be read
        older = walk(self._from_oldest.root, segments)
        if isinstance(older, Leaf) and isinstance(node, Leaf) and older.value() != node.value():
            return origin  # the snapshot and the log before it disagree
        older_origin = older.origin() if isinstance(older, Directory | Leaf) else None
        return older_origin or origin  # an older snapshot that has the value says more, too

    @property
    def knows_more(self) -> bool:
        """Whether the directory still has records of the log from before the snapshot that was loaded."""
        loaded = self.loaded
        segments, first = loaded.listing.segments, loaded.listing.log_start
        if first is None and segments:
            first = segments[0].base_offset
        return loaded.snapshot is not None and first is not None and first < loaded.snapshot.end_offset

    @cached_property
    def _from_oldest(self) -> Session:
        """A session with the same state, replayed from the oldest record of the log in place of the newest snapshot."""
        twin = Session(self.source, until=self.until, progress=self.progress)
        twin.__dict__["loaded"] = self.source.load(until=self.until, progress=self.progress, from_oldest=True)
        return twin

    @property
    def protected(self) -> tuple[str, ...]:
        """Paths that kshell must not write to: the source itself, and the Kafka log directory that holds it, if any."""
        if not self.source.path:
            return ()
        path = os.path.realpath(self.source.path)
        around = os.path.dirname(path)
        is_kafkas = os.path.basename(path) == METADATA_DIRECTORY or os.path.exists(os.path.join(around, META))
        if os.path.isfile(path):
            is_kafkas = os.path.basename(around) == METADATA_DIRECTORY
        return (path, around) if is_kafkas else (path,)

    def reshape(
        self, *, show_secrets: bool | None = None, point: str | None = None, zone: str | None = None
    ) -> Session:
        """Return a session over the same source and directory with other options, for one answer.

        ``point`` is an offset, a time, ``@mark`` or ``now``; ``zone`` is the time zone of times without one. Raises
        UsageError if ``point`` is not a point in time, DataError if the log does not go back to it.
        """
        absolute_point = None if point is None else self._in_zone(point, zone)
        until = self.until if absolute_point is None else super().offset_of(absolute_point)
        if point is not None:
            self._discard_if_changed(point, until)
        twin = Session(
            self.source,
            show_secrets=self.redaction.show_secrets if show_secrets is None else show_secrets,
            until=until,
            progress=self.progress,
        )
        twin._point = self._point if absolute_point is None else absolute_point
        twin.cwd, twin.previous, twin.aliases = self.cwd, self.previous, self.aliases
        twin.settings = self.settings if zone is None else {**self.settings, "timezone": zone}
        twin.history, twin.sourcing, twin.announce = self.history, self.sourcing, self.announce
        twin.is_confined = self.is_confined
        twin.ask, twin.front, twin.past = self.ask, self.front, self.past
        twin._uses_past = self._uses_past or point is not None
        if twin.until == self.until and self.is_loaded:
            twin.__dict__["loaded"] = self.loaded
        elif twin.until is None and self._present is not None:
            twin.__dict__["loaded"] = self._present
        return twin

    def _discard_if_changed(self, point: str, until: int | None) -> None:
        """Discard the newest state if the files have changed since it was read, and ``point``, the offset ``until``, is
        now, counts from now, or is later: no point in time may be later than ``now``."""
        from kshell.sources.points import is_ago  # late: few lines name a point

        newest = self._present if self.until is not None else self.loaded if self.is_loaded else None
        if newest is None or self.source.is_live or not self.source.has_log:
            return
        if until is not None and until <= newest.last_offset and not is_ago(point):
            return
        try:
            listing = self.source.listing()
        except KshellError:
            return  # what was read is still an answer
        if (listing.segments[-1:], listing.snapshots[-1:]) == (
            newest.listing.segments[-1:],
            newest.listing.snapshots[-1:],
        ):
            return
        for session in {self, self.front}:
            session._present = None
            if session.until is None:
                session._forget()
        if until is None and self.until is None:
            _ = self.loaded  # once, for all that the command asks of now

    @cached_property
    def loaded(self) -> Loaded:
        """As in the base class. If a running server removed the state meanwhile, the point is resolved once more."""
        try:
            return super().loaded
        except OutOfReachError:
            offset = None if self._point is None else super().offset_of(self._point)
            if offset is None or offset == self.until:
                raise
            self.until = offset
        return super().loaded

    def offset_of(self, point: str) -> int | None:
        """As in the base class; a time without a zone is in the zone of the setting ``timezone``."""
        return super().offset_of(self._in_zone(point))

    def since(self, point: str) -> Since | None:
        """As in the base class; a time without a zone is in the zone of the setting ``timezone``.

        If the time is after the last record of a copy, a remark says so: users forget that a copy may be old.
        """
        begin = super().since(self._in_zone(point))
        if begin is not None and begin.last_ms is not None and not self.source.is_live:
            from kshell.sources.points import is_ago  # late: few lines name a point

            age = ago(time.time() - begin.last_ms / 1000)
            from_end = f"end{point}" if is_ago(point) else "end-15m"
            self.remarks.append(
                f"no record is newer than {point}: the last one was written at {iso(begin.last_ms)}, {age};"
                f" `{from_end}` counts back from it"
            )
        return begin

    def _in_zone(self, point: str, zone: str | None = None) -> str:
        name = zone or self.settings.get("timezone")
        if name is None:
            return point
        from kshell.engine.zones import absolute  # late: few users set one

        return absolute(point, name)

    # --- paths ---------------------------------------------------------------------------------------------------

    def node(self, path: str) -> tuple[Segments, Node]:
        """The node at a literal path. Raises NoSuchPathError."""
        segments = split(path, self.cwd)
        return segments, resolve(self.root, segments)

    def find(self, pattern: str) -> list[tuple[Segments, Node]]:
        """The nodes that a path pattern stands for. Raises NoSuchPathError when there is none."""
        segments = self.place(pattern)
        if segments is not None:
            return [(segments, resolve(self.root, segments))]
        matches = list(expand(self.root, self.cwd, pattern))
        if not matches:
            raise NoSuchPathError(f"{pattern}: nothing matches")
        return matches

    def place(self, pattern: str) -> Segments | None:
        """The one place, maybe without a node, that a path pattern names; ``None`` for a glob.

        Names may have brackets and backslashes, and kshell prints them as they are: so brackets stand for themselves
        where there is such a name, and a backslash that escapes nothing does, unless only the other reading is there.
        """
        if is_glob(pattern):
            literal = () if "*" in pattern or "?" in pattern else split(pattern, self.cwd)
            return literal if literal and walk(self.root, literal) is not None else None
        plain = unescape(pattern)
        readings = [split(text, self.cwd) for text in dict.fromkeys((plain, pattern))]
        if not ESCAPED.fullmatch(pattern):
            readings.reverse()
        if len(readings) > 1 and walk(self.root, readings[0]) is None and walk(self.root, readings[1]) is not None:
            return readings[1]
        return readings[0]

    def change_directory(self, segments: Segments) -> None:
        """Make ``segments`` the working directory, also of the front end's session if this one is for a single answer.

        The caller has checked that it is a directory.
        """
        for session in {self, self.front}:
            session.previous, session.cwd = session.cwd, segments

    @property
    def cwd_path(self) -> str:
        """The working directory as a path."""
        return join(self.cwd)

    # --- problems and notes --------------------------------------------------------------------------------------

    def problems(self) -> list[str]:
        """Return what is wrong with what was read, one sentence each: damage, and records that were skipped."""
        damage = [error.message for error in self.found_damage]
        if not self.is_loaded:
            return damage
        loaded = self.loaded
        messages = list(dict.fromkeys((*(error.message for error in loaded.damage), *damage)))
        for problem in loaded.problems:
            if not problem.unknown:
                where = f"{problem.origin.place.file}: offset {problem.origin.offset}"
                messages.append(f"{where}: {problem.origin.record_type} skipped: {problem.reason}")
        unlisted = sum(len(loaded.problems.unlisted.get(kind, ())) for kind in (MALFORMED, SKIPPED))
        if unlisted:
            messages.append(
                f"at least {unlisted} more records are skipped: only the first {MOST_PROBLEMS} of each kind are listed"
            )
        return messages

    def notes(self, *, answer: bool = True) -> list[str]:
        """Return what the user should know though nothing is wrong: a torn tail, unknown records, an old copy.

        ``answer``: also what only concerns the last answer, or the point in time that is shown.
        """
        notes = self.source.notes()
        if checksum.was_in_python():
            notes.append("checksums are computed in plain Python here: all is checked, but large logs take longer")
        remarks = self.remarks if answer else []
        if not self.is_loaded:
            return notes + remarks
        notes += self.loaded.notes + [remark for remark in remarks if remark not in self.loaded.notes]
        if self.is_empty() and self.loaded.log_end_offset:
            notes.append("no metadata record has taken effect yet: the log says nothing about the cluster's state")
        unknown = [problem for problem in self.loaded.problems if problem.unknown]
        if unknown:
            kinds = sorted({f"{p.origin.record_type} v{p.origin.version}" for p in unknown})
            number = len(unknown) + len(self.loaded.problems.unlisted.get(NEWER, ()))
            count = "1 record is" if number == 1 else f"{number} records are"
            notes.append(f"{count} newer than this kshell and not in the image: {', '.join(kinds)}")
        if answer:
            notes += self.state_notes()
        age = self.age()
        if age is not None and age > OLD_AFTER and not (self.source.is_sample or self.source.is_live):
            notes.append(f"last record {ago(age)}")
        return notes

    def state_notes(self, subject: str = "answers are") -> list[str]:
        """Name the offset that the answers show where it is not the requested one: damage, or not written yet."""
        offset = self.image.provenance.offset
        if self.loaded.damage:
            return [
                f"{subject} the state at offset {offset} ({iso(self.image.provenance.timestamp) or 'no time known'})"
            ]
        return self.unwritten()

    def unwritten(self) -> list[str]:
        """Return a sentence if the requested offset is after the end of what was read, else an empty list."""
        offset = self.image.provenance.offset
        if self.until is not None and self.until > self.loaded.last_offset:
            reason = "is not written yet" if self.loaded.listing.has_log else "is after the end of the snapshot"
            if self.loaded.damage:
                reason = "cannot be read"
            return [f"offset {self.until} {reason}: answers are the state at offset {offset}"]
        return []

    def age(self) -> float | None:
        """Seconds since the last record was written, by this machine's clock; ``None`` without a timestamp."""
        timestamp = self.loaded.last_timestamp
        return None if timestamp <= 0 else time.time() - timestamp / 1000

    def why(self, error: DeadlineError) -> KshellError:
        """Return the error to report after a deadline; SourceTimeoutError that says what a live source waited for."""
        following = self.source.following()
        trouble = None if following is None else following.trouble
        if trouble is None and self.source.nodes is not None:
            from kshell.wording import first_of  # late: only this error needs it

            # What follows a quorum that is loaded always waits for the answer to a Fetch.
            nodes = self.source.nodes.take_unanswered(with_fetch=not self.is_loaded)
            trouble = f"no answer yet from {first_of(nodes, 3)}" if nodes else None
        if trouble is None:
            return error
        return SourceTimeoutError(self.source.name, f"{error.message}: {trouble}", hint=error.hint)

    def note_damage(self, damage: Iterable[DataError]) -> None:
        """Record damage that a command found in the log, for the notes and the exit code; the same damage only once."""
        self.found_damage += [error for error in damage if error not in self.found_damage]

    def remark(self, *sentences: str) -> None:
        """Add remarks on the answer, each of them only once."""
        self.remarks += [sentence for sentence in dict.fromkeys(sentences) if sentence not in self.remarks]

    def is_empty(self) -> bool:
        """Whether no metadata record of a log that was loaded has taken effect, up to its end."""
        if not self.is_loaded or not self.source.has_log or self.loaded.image.provenance.offset >= 0:
            return False
        return self.until is None or not self.loaded.log_end_offset or self.until > self.loaded.last_offset

    def exit_code(self) -> int:
        """4 if the data that was loaded, or that the last command read, is damaged or incomplete; else 0."""
        return EXIT_DATA if self.problems() else EXIT_OK


def ago(seconds: float) -> str:
    """``10800`` -> ``"3 h ago"``."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit} ago"
    return f"{max(seconds, 0):.0f} s ago"


def _facts(described: SourceFacts) -> Facts:
    """Convert the nested (type, value, origin) tuples with which a source describes itself to facts of the tree."""
    return {name: _facts(below) if isinstance(below, dict) else Fact(*below) for name, below in described.items()}
