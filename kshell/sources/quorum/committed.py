"""What an observer has fetched so far: a snapshot, the committed log after it, and the image of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kshell.errors import CorruptDataError, IncompleteLogError, MissingCodecError
from kshell.metadata.replay import Replayer
from kshell.protocol.batches import Batch
from kshell.protocol.primitives import DecodeError
from kshell.sources.directory.files import Listing, SnapshotFile
from kshell.sources.directory.log import Progress
from kshell.sources.directory.snapshot import SnapshotFacts, load_snapshot
from kshell.sources.directory.source import without_collector
from kshell.sources.quorum.mirror import Mirror
from kshell.sources.source import Loaded

_LEAN = 1 << 20
"""Bytes that the image may keep in memory besides the snapshot's, while a reader only follows the log."""


class Committed:
    """The fetched state: :meth:`begin` takes a snapshot, :meth:`apply` the batches after it, :meth:`publish` the image.

    Threads that share it must hold a lock; only ``end`` may be read without one. After a DataError of :meth:`apply`
    the image lacks records: call :meth:`begin` or :meth:`reset` then.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self.reset()

    def reset(self, start: int = 0) -> None:
        """Discard everything; the log will begin at offset ``start``."""
        self.log = Mirror(self._name, start)
        self._replayer = Replayer()
        self._facts: SnapshotFacts | None = None
        self._snapshot: SnapshotFile | None = None
        self._timestamp = -1
        self._loaded: Loaded | None = None
        self._most_retained = _LEAN

    @property
    def start(self) -> int:
        """The first offset of the log that was fetched."""
        return self.log.start

    @property
    def end(self) -> int:
        """The offset after the last record."""
        return self.log.end

    @property
    def covered(self) -> int:
        """The offset (exclusive) up to which the snapshot replaces the log; 0 without a snapshot."""
        return self._facts.end_offset if self._facts is not None else 0

    @property
    def has_news(self) -> bool:
        """Whether records were added since the last image was published."""
        return self._loaded is None or self._loaded.log_end_offset != self.end

    def begin(self, file: SnapshotFile, progress: Progress | None) -> None:
        """Replace everything with a snapshot. Raises DataError, and changes nothing, if it is damaged."""
        replayer = Replayer()
        with without_collector():
            facts = load_snapshot(file, replayer, progress, control_only=file.is_bootstrap)
        self.reset(facts.end_offset)
        self._replayer, self._facts, self._snapshot, self._timestamp = replayer, facts, file, facts.timestamp
        self._most_retained = replayer.log.retained + _LEAN

    def apply(self, batches: Sequence[Batch]) -> None:
        """Add the batches that were committed next. Raises CorruptDataError, MissingCodecError."""
        self.log.append(list(batches))
        for batch in batches:
            file = f"{batch.base_offset:020d}.log"
            try:
                self._replayer.log_batch(batch, file)
            except DecodeError as error:
                raise CorruptDataError(f"{self._name}/{file}", batch.position, str(error)) from None
            except MissingCodecError as error:
                raise error.at(f"{self._name}/{file}", batch.position) from None
            self._timestamp = batch.max_timestamp
        self._replayer.release()

    def let_go(self, before: int) -> None:
        """Release most of the log below offset ``before``, for a reader who does not come back to it."""
        self.log.forget(before)
        self._replayer.release(self._most_retained)

    def prepend(self, older: Mirror) -> None:
        """Put an older part before the log. Raises IncompleteLogError unless it ends where the log starts."""
        if older.end != self.start:
            raise IncompleteLogError(f"{self._name}: the leader's log ends at {older.end}, {self.start} was expected")
        self.log.prepend(older)

    def listing(self, beside: Mapping[str, str], log_start: int) -> Listing:
        """A directory's listing: ``beside`` are the sidecar files, ``log_start`` is where the leader's log begins."""
        snapshots = (self._snapshot,) if self._snapshot is not None else ()
        unseen = 1 if log_start == 0 else 0  # offset 0 is the first LeaderChange, which leaders do not give out
        return Listing(self._name, self.log.segments(), snapshots, beside, unseen, log_start)

    def publish(self, beside: Mapping[str, str], log_start: int) -> Loaded:
        """The image and what it was loaded from; the same object again if nothing was added."""
        if self._loaded is not None and not self.has_news:
            return self._loaded
        image = self._replayer.image()
        self._loaded = Loaded(
            image=image,
            listing=self.listing(beside, log_start),
            snapshot=self._facts,
            log_end_offset=self.end,
            last_timestamp=max(self._timestamp, image.provenance.timestamp),
            problems=self._replayer.problems,
            torn=None,
            open_transaction=self._replayer.open_transaction,
            damage=[],
            notes=[],
        )
        return self._loaded
