"""A running quorum as a source: the same tree as of a directory, updated with every committed change.

An observer keeps a copy of the log's end in memory; images are made of it as of a directory's files. One-shot commands
fetch until they have what was committed when they began; the interactive shell follows in a thread.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from math import inf
from typing import TYPE_CHECKING

from kshell.client.address import addresses, name_of
from kshell.client.leader import NEXT_ELECTION
from kshell.client.nodes import CONTROLLER, FIRST_CONTACT, Nodes
from kshell.errors import CorruptDataError, DataError
from kshell.protocol.batches import Batch
from kshell.sources.directory.files import Listing, SnapshotFile
from kshell.sources.directory.log import FileBatch, Progress
from kshell.sources.directory.sidecar_files import UNKNOWN, property_line
from kshell.sources.directory.source import load_listing
from kshell.sources.quorum.committed import Committed
from kshell.sources.quorum.earlier_log import older_log
from kshell.sources.quorum.observer import FetchStep, Observer
from kshell.sources.source import Following, Loaded, Source, SourceFacts

if TYPE_CHECKING:
    from kshell.client.settings import Settings

_WAIT = 0.5
"""Seconds that a leader may wait for news before it answers a request."""
_PAUSE = 0.1
"""As ``_WAIT``, while something must come soon, such as the high watermark after an election."""
_MOST_RESTARTS = 4
"""How often the observer may start over during :meth:`QuorumSource.catch_up`; each new snapshot counts as once."""


class QuorumSource(Source):
    """Observes the quorum whose controllers ``bootstrap`` lists (``host:port,…``)."""

    kind = "quorum"
    nodes: Nodes

    def __init__(self, bootstrap: str, settings: Settings) -> None:
        bootstrap_addresses = addresses(bootstrap)
        self.name = ",".join(name_of(*address) for address in bootstrap_addresses)
        self.nodes = Nodes(CONTROLLER, bootstrap_addresses, settings)
        self.observer = Observer(self.nodes)
        self._notes: list[str] = []
        self._committed = Committed(self.name)
        self._changed = threading.Condition(threading.RLock())
        self._thread: threading.Thread | None = None
        self._failure: Exception | None = None
        self._over = threading.Event()
        self._repairs = 0
        self._on_change: Callable[[], None] | None = None

    # --- what a source does --------------------------------------------------------------------------------------

    def listing(self, *, full_log: bool = False) -> Listing:
        """Snapshot and log in memory; with ``full_log``, the log before the snapshot is fetched as well."""
        self.catch_up()
        if full_log:
            self._fetch_older()
        with self._changed:
            return self._committed.listing(self._sidecar_files(), self.observer.log_start)

    def load(self, *, until: int | None = None, progress: Progress | None = None, from_oldest: bool = False) -> Loaded:
        """Load the image of what is committed now, or of every record up to offset ``until``. Raises KshellError."""
        if until is not None or from_oldest:
            self.catch_up(progress)
            covered = self._committed.covered
            older = from_oldest or (until is not None and until < covered) or self._committed.start > covered
            return load_listing(self.listing(full_log=older), until, progress, from_oldest=from_oldest)
        self.catch_up(progress)
        with self._changed:
            return self._committed.publish(self._sidecar_files(), self.observer.log_start)

    def refresh(self) -> bool:
        """Whether records were committed since the last image was loaded."""
        if self._thread is None:
            self.catch_up()
        with self._changed:
            return self._committed.has_news

    def quorum(self, loaded: Loaded) -> SourceFacts:
        """The facts of ``/quorum``; only the newest state has those that the controllers report on themselves."""
        if loaded.until is not None:
            return super().quorum(loaded)
        from kshell.sources.quorum.facts import quorum

        return quorum(self, loaded)

    def close(self) -> None:
        """Close the observer's connection and end its thread."""
        self._over.set()
        self.observer.close()
        self.nodes.close()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join(2.0)
            self.observer.close()  # it may have been connecting

    # --- following -----------------------------------------------------------------------------------------------

    def following(self) -> Following:
        """The leader, its epoch, the end offset and the lag, as the observer knows them."""
        observer = self.observer
        trouble = observer.trouble.reason if observer.trouble is not None else None
        leader = observer.leader.id if observer.leader is not None else -1
        end = self._committed.end
        return Following(leader, observer.epoch, end, max(observer.high_watermark - end, 0), trouble)

    def notes(self) -> list[str]:
        """The notes of the connections, and on history that was lost."""
        return [*self.nodes.notes, *self._notes]

    def start(self, changed: Callable[[], None] | None = None) -> None:
        """Follow in a thread from now on; ``changed`` is called after every step."""
        self._on_change = changed
        if self._thread is None and not self._over.is_set():
            self._thread = threading.Thread(target=self._follow, name="kshell observer", daemon=True)
            self._thread.start()

    def catch_up(self, progress: Progress | None = None) -> None:
        """Fetch everything that was committed when the leader was first asked. Raises NodeError, DataError.

        It always ends, whatever a leader does: no request goes on for longer than ``default.api.timeout.ms`` after the
        last new record, and the observer may start over only a few times.
        """
        try:
            self._catch_up(progress)
        finally:
            self.observer.deadline = inf

    def _catch_up(self, progress: Progress | None) -> None:
        self.observer.downloader.progress = progress
        observer, follows = self.observer, self._thread is not None
        target = observer.high_watermark if follows else -1
        restarts = last_restart = observer.restarts
        end, wait, since = self._committed.end, 0.0, time.monotonic()
        while not 0 <= target <= self._committed.end:
            since = max(since, observer.downloader.advanced_at)
            if time.monotonic() - since >= self.nodes.settings.api_timeout:
                raise observer.trouble or observer.stalled_error(self.name, self._committed.end)
            if not follows:
                observer.deadline = since + self.nodes.settings.api_timeout
            self.advance(_WAIT if follows else wait)
            if observer.restarts - restarts > _MOST_RESTARTS:
                raise observer.unsteady_error()
            if progress is not None and observer.trouble is not None:
                progress(0, 0, f"waiting for a leader: {observer.trouble.message}")
            if follows or (target < 0 and observer.trouble is None):
                target = observer.high_watermark
            wait = _PAUSE
            if self._committed.end > end or observer.restarts != last_restart:
                end, wait, since, last_restart = self._committed.end, 0.0, time.monotonic(), observer.restarts

    def advance(self, wait: float = _WAIT) -> None:
        """Send the leader one request, or wait for the thread that does. Raises NodeError after a long silence."""
        if self._thread is None:
            self._take(self.observer.step(wait))
        else:
            with self._changed:
                before = self._committed.end
                self._changed.wait_for(lambda: self._committed.end != before or self._failure is not None, wait)
                if self._failure is not None:
                    raise self._failure
        self._check_silence()

    def batches(self, start: int) -> list[Batch]:
        """The committed batches from offset ``start`` on that were fetched so far."""
        with self._changed:
            return list(self._committed.log.batches(start))

    def follow(self, start: int | None = None) -> Iterator[FileBatch | None]:
        """Yield every committed batch once, in order, across elections and reconnects. Raises NodeError, DataError.

        Without a thread nobody else reads the log meanwhile: batches that were yielded are released, so that memory
        does not grow. Later questions about them fetch them again.
        """
        self.catch_up()
        position = self._committed.end if start is None else start
        if position < self._committed.start:
            self._fetch_older()
        while not self._over.is_set():
            if position < self._committed.start:
                if self._committed.start > 1:  # offset 0 is the first LeaderChange, which leaders do not give out
                    self._notes.append(
                        f"offsets {position} to {self._committed.start - 1} are only in a snapshot by now"
                    )
                position = self._committed.start
            for batch in self.batches(position):
                position = batch.last_offset + 1
                yield FileBatch(f"{batch.base_offset:020d}.log", batch)
            if self._thread is None:
                self._committed.let_go(position)
            yield None
            self.advance()

    def _follow(self) -> None:
        """The thread: step until the source is closed. An error is kept for the callers, and the thread goes on."""
        while not self._over.is_set():
            try:
                self._take(self.observer.step(_WAIT))
            except Exception as error:
                if self._over.is_set():
                    return
                with self._changed:
                    self._failure = error
                    self._changed.notify_all()
                self._over.wait(1.0)

    def _check_silence(self) -> None:
        """Raise ``trouble`` that lasts too long.

        A quorum that was reached once is waited for longer than a new one, and an election longer than a leader whose
        address cannot be learnt.
        """
        since, trouble = self.observer.silent_since, self.observer.trouble
        patience = self.nodes.settings.api_timeout
        if not self.nodes.was_reached:
            patience = min(patience, FIRST_CONTACT)
        if self.observer.unlisted_since is not None and patience > NEXT_ELECTION:
            since, patience = self.observer.unlisted_since, NEXT_ELECTION
        if since is not None and trouble is not None and time.monotonic() - since > patience:
            raise trouble

    # --- results of steps ----------------------------------------------------------------------------------------

    def _take(self, step: FetchStep) -> None:
        """Apply the result of a step, and wake those who wait for it."""
        with self._changed:
            if step.lost is not None:
                self._notes.append(f"{self.name}: {step.lost}")
            try:
                if step.snapshot is not None:
                    self._begin(step.snapshot)
                elif step.lost is not None:
                    self._committed.reset()
                if step.batches:
                    self._committed.apply(step.batches)
            except DataError:
                self._start_over()  # records are missing now: nobody may continue from this state
                raise
            self._failure = None
            if step != FetchStep():
                self._changed.notify_all()
        if self._on_change is not None:
            self._on_change()

    def _begin(self, file: SnapshotFile) -> None:
        """Replace everything with a snapshot. A damaged one is fetched once more."""
        try:
            self._committed.begin(file, self.observer.downloader.progress)
        except CorruptDataError:
            self._repairs += 1
            if self._repairs > 1:
                raise
            self._start_over()
        else:
            self._repairs = 0

    def _start_over(self) -> None:
        self.observer.start_over()
        self._committed.reset()

    def _sidecar_files(self) -> dict[str, str]:
        """The texts that a directory has in its sidecar files, by file name."""
        leader = self.observer.leader.id if self.observer.leader else -1
        return {
            "quorum-state": json.dumps({"leaderId": leader, "leaderEpoch": self.observer.epoch}),
            "meta.properties": property_line("cluster.id", self.nodes.cluster_id or UNKNOWN),
        }

    def _fetch_older(self) -> None:
        """Fetch the log before what was fetched so far, as far as the leader still has it."""
        with self._changed:
            log, start = self._committed.log, max(self.observer.log_start, 1)
        if log.start <= start:
            return
        older = older_log(self.observer, self.nodes, start, log.start)
        with self._changed:
            if self._committed.log is log:  # else everything started over meanwhile
                self._committed.prepend(older)
