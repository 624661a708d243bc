"""What every source can do: list what it holds, load an image of it, and say where it comes from."""

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


NO_LOG = "brokers report only the present state, not the metadata log"
WHERE_LOGS_ARE = "connect to the controllers (-q host:port), or read a directory (-d DIR)"


class Loaded(NamedTuple):
    """An image and everything there is to say about how it came to be."""

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
    """The offset that was asked for; ``None`` for the newest state. Files beside the log describe only the latter."""

    @property
    def cut_at(self) -> int | None:
        """Where the log ends, if that is before the snapshot does (:meth:`.Listing.missing_from`)."""
        snapshot_end = self.snapshot.end_offset if self.snapshot is not None and self.until is None else None
        return self.listing.missing_from(self.log_end_offset, snapshot_end)


class Following(NamedTuple):
    """The progress of a live source: ``lag`` in offsets behind the high watermark; ``trouble``: why it has no news."""

    leader_id: int
    leader_epoch: int
    end_offset: int
    lag: int
    trouble: str | None


class Source(ABC):
    """Base of the sources. ``kind``: ``directory``, ``quorum`` or ``brokers``; ``path`` is empty if there is none."""

    kind = ""
    path = ""
    name = ""
    is_sample = False
    nodes: Nodes | None = None
    """The nodes of the cluster, where there are any to ask."""
    has_log = True
    """Whether it knows the metadata log: else it has no offsets and no past, and only parts of the image."""

    @property
    def is_live(self) -> bool:
        """Whether a running cluster answers."""
        return self.nodes is not None

    def demand_log(self, command: str) -> None:
        """Refuse a command that needs the metadata log. Raises SourceError where the source does not know it."""
        if not self.has_log:
            raise SourceError(f"{command}: {NO_LOG}", hint=WHERE_LOGS_ARE)

    @abstractmethod
    def listing(self, *, full_log: bool = False) -> Listing:
        """List snapshots and log as they are now.

        Args:
            full_log: with as much of the log as there is, not only what the newest image needs.

        Raises:
            SourceError: the files cannot be listed.
            UnsupportedVersionError: the source has neither snapshots nor a log.
        """

    @abstractmethod
    def load(self, *, until: int | None = None, progress: Progress | None = None, from_oldest: bool = False) -> Loaded:
        """The image now, or with every record up to offset ``until``. Raises SourceError, DataError."""

    def offset_of(self, point: str) -> int | None:
        """The offset that ``point`` means; ``None`` for now. Raises UsageError, DataError."""
        from kshell.sources.points import offset_at  # late: few lines name a point

        moment = self._point(point)
        time_ms = moment.time_ms
        return moment.offset if time_ms is None else self._read(lambda listing: offset_at(listing, time_ms))

    def since(self, point: str) -> Since | None:
        """The first record that is not from before ``point``; ``None`` for now. Raises UsageError, DataError."""
        from kshell.sources.points import Since, since_time

        moment = self._point(point)
        time_ms = moment.time_ms
        if time_ms is not None:
            return self._read(lambda listing: since_time(listing, time_ms))
        return None if moment.offset is None else Since(moment.offset)

    def _point(self, text: str) -> Point:
        """A point; one that counts from the last record's time becomes a time."""
        from kshell.sources.points import Point, end_time, parse_point

        point = parse_point(text, from_end=True)
        if point.before_end_ms is None:
            return point
        return Point(time_ms=self._read(end_time) - point.before_end_ms)

    def _read(self, read: Callable[[Listing], _T]) -> _T:
        """What ``read`` finds in all of the log, even though a running server removes files meanwhile."""
        from kshell.sources.directory.source import read_listed

        return read_listed(lambda: self.listing(full_log=True), read)

    def quorum(self, loaded: Loaded) -> dict[str, Any]:
        """``/quorum`` as nested facts: (type, value, origin) or a dictionary of them."""
        from kshell.sources.directory import describe

        return describe.quorum(loaded)

    def notes(self) -> list[str]:
        """Notes for the user on the source itself: on connections, not on data."""
        return []

    def start(self, changed: Callable[[], None] | None = None) -> None:  # noqa: B027  # files are not followed so
        """Follow in the background from now on, where that is possible; ``changed`` is called on news."""

    def following(self) -> Following | None:
        """The progress of a live source; ``None`` for one that is not followed."""
        return None

    def refresh(self) -> bool:
        """Whether a live source has newer committed records than the image it gave last."""
        return False

    @abstractmethod
    def follow(self, start: int | None = None) -> Iterator[FileBatch | None]:
        """The log's batches from offset ``start`` (``None``: now) on, for ever; ``None`` whenever there is no news.

        A live source gives what is committed. Raises SourceError, DataError.
        """

    def close(self) -> None:  # noqa: B027  # a directory has none
        """Close connections."""
