"""The interface of every source: list its files, load an image, follow its log, and find offsets by time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from kshell.errors import DataError, SourceError
from kshell.metadata.image import Image
from kshell.metadata.replay import Problems
from kshell.protocol.verify import Torn
from kshell.sources.directory.files import Listing
from kshell.sources.directory.log import FileBatch, Progress
from kshell.sources.directory.snapshot import SnapshotFacts

if TYPE_CHECKING:
    from kshell.client.nodes import Nodes
    from kshell.sources.points import Point, Since

_T = TypeVar("_T")
SourceFacts = dict[str, Any]
"""What a source says of itself: name -> fact (type, value, origin), or name -> a dictionary of facts."""

NO_LOG = "brokers report only the present state, not the metadata log"
WHERE_LOGS_ARE = "connect to the controllers (-q host:port), or read a directory (-d DIR)"


class Loaded(NamedTuple):
    """An image, what it was loaded from, and what was noticed on the way.

    ``snapshot``: the one that the replay began with, if any. ``last_timestamp``: of the last record, in epoch
    milliseconds. ``problems``: records that are not in the image. ``torn``: the path and the end of a log that is cut
    inside its last batch. ``open_transaction``: the offset at which an unfinished metadata transaction begins.
    ``notes``: sentences for the user.
    """

    image: Image
    listing: Listing
    snapshot: SnapshotFacts | None
    log_end_offset: int | None
    """The offset after the last record read (control records included); ``None`` when no log was read."""
    last_timestamp: int
    problems: Problems
    torn: tuple[str, Torn] | None
    open_transaction: int | None
    damage: list[DataError]
    notes: list[str]
    until: int | None = None
    """The offset that was asked for; ``None`` for the newest state, the only one that sidecar files describe."""

    @property
    def last_offset(self) -> int:
        """The offset of the last record that was read, in the log or in the snapshot; -1 if there is none."""
        return max(self.image.provenance.offset, (self.log_end_offset or 0) - 1)

    @property
    def cut_at(self) -> int | None:
        """The end of a log that ends before its snapshot: records are missing (:meth:`.Listing.missing_from`)."""
        snapshot_end = self.snapshot.end_offset if self.snapshot is not None and self.until is None else None
        return self.listing.missing_from(self.log_end_offset, snapshot_end)


class Following(NamedTuple):
    """The progress of a live source. ``lag``: offsets behind the high watermark; ``trouble``: why there is no news."""

    leader_id: int
    leader_epoch: int
    end_offset: int
    lag: int
    trouble: str | None


class Source(ABC):
    """Base class of the sources. ``kind``: ``directory``, ``quorum`` or ``brokers``; ``path`` is of files only."""

    kind = ""
    path = ""
    name = ""
    is_sample = False
    nodes: Nodes | None = None
    """The nodes of a running cluster; ``None`` for a source that reads files."""
    has_log = True
    """Whether the source knows the metadata log. If not, it has no offsets and no past, and only parts of the image."""

    @property
    def is_live(self) -> bool:
        """Whether the source is a running cluster, not files."""
        return self.nodes is not None

    def require_log(self, command: str) -> None:
        """Raise SourceError, on behalf of ``command``, if the source does not know the metadata log."""
        if not self.has_log:
            raise SourceError(f"{command}: {NO_LOG}", hint=WHERE_LOGS_ARE)

    @abstractmethod
    def listing(self, *, full_log: bool = False) -> Listing:
        """List snapshots and log as they are now.

        Args:
            full_log: include as much of the log as there is, not only what the newest image needs.

        Raises:
            SourceError: the files cannot be listed.
            UnsupportedVersionError: the source has neither snapshots nor a log.
        """

    @abstractmethod
    def load(self, *, until: int | None = None, progress: Progress | None = None, from_oldest: bool = False) -> Loaded:
        """Load the newest image, or the one with every record up to offset ``until``. Raises SourceError, DataError.

        ``from_oldest`` replays as much of the log as there is, so that more values know the record that wrote them.
        """

    def offset_of(self, point: str) -> int | None:
        """The offset that a point such as ``-15m`` means; ``None`` for now. Raises UsageError, DataError."""
        from kshell.sources.points import offset_at  # imported late: few command lines name a point

        moment = self._point(point)
        time_ms = moment.time_ms
        return moment.offset if time_ms is None else self.read_listed(lambda listing: offset_at(listing, time_ms))

    def since(self, point: str) -> Since | None:
        """Where the records at or after ``point`` begin; ``None`` for now. Raises UsageError, DataError."""
        from kshell.sources.points import Since, since_time

        moment = self._point(point)
        time_ms = moment.time_ms
        if time_ms is not None:
            return self.read_listed(lambda listing: since_time(listing, time_ms))
        return None if moment.offset is None else Since(moment.offset)

    def _point(self, text: str) -> Point:
        """Parse a point; ``end-15m``, which counts from the last record's time, becomes a time."""
        from kshell.sources.points import Point, end_time, parse_point

        point = parse_point(text, from_end=True)
        if point.before_end_ms is None:
            return point
        return Point(time_ms=self.read_listed(end_time) - point.before_end_ms)

    def read_listed(self, read: Callable[[Listing], _T]) -> _T:
        """Call ``read`` with a listing of the whole log, again if a running server removes files meanwhile."""
        from kshell.sources.directory.source import read_listed

        return read_listed(lambda: self.listing(full_log=True), read)

    def quorum(self, loaded: Loaded) -> SourceFacts:
        """The content of ``/quorum``."""
        from kshell.sources.directory import describe

        return describe.quorum(loaded)

    def notes(self) -> list[str]:
        """Notes for the user on the source itself, such as its connections; notes on data are in :class:`Loaded`."""
        return []

    def start(self, changed: Callable[[], None] | None = None) -> None:  # noqa: B027  # files are not followed so
        """Follow in the background from now on, if the source can; ``changed`` is called after each step."""

    def following(self) -> Following | None:
        """The progress of a live source; ``None`` for one that is not followed."""
        return None

    def refresh(self) -> bool:
        """Whether a live source has newer committed records than the image that it loaded last."""
        return False

    @abstractmethod
    def follow(self, start: int | None = None) -> Iterator[FileBatch | None]:
        """Yield the log's batches from offset ``start`` (``None``: from now) on, without end.

        Yields ``None`` whenever there is nothing new. A live source yields only what is committed. Raises SourceError,
        DataError.
        """

    def close(self) -> None:  # noqa: B027  # a directory has none
        """Close connections."""
