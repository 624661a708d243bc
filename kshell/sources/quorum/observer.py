"""An observer of the metadata quorum: it fetches a snapshot and committed batches from the leader (KIP-595, KIP-630).

It is a state machine without a thread: each step sends one request, through elections, restarts and truncation. A
leader also sends batches that are not committed yet: they wait here until the high watermark has passed them.
"""

from __future__ import annotations

import time
from math import inf
from typing import NamedTuple

from kshell.client import codes
from kshell.client.address import name_of
from kshell.client.backoff import Backoff
from kshell.client.connection import MAX_FRAME, Connection
from kshell.client.leader import MAX_BYTES, Fetched, FetchPosition, Leader, fetch, find_leader
from kshell.client.nodes import Nodes
from kshell.errors import (
    ConnectError,
    CorruptDataError,
    LeaderNotListedError,
    NodeError,
    ProtocolError,
    ServerError,
    SourceTimeoutError,
)
from kshell.protocol.batches import Batch
from kshell.protocol.messages.quorum import FETCH, FETCH_SNAPSHOT
from kshell.protocol.names import error_name
from kshell.protocol.verify import Chain, RisingEpochs
from kshell.sources.directory.files import SnapshotFile
from kshell.sources.quorum.download import Downloader

_GRACE = 3.0
"""Seconds that an answer may take beyond the requested wait, before the leader is considered gone."""
_HURRY = 0.005
"""Seconds to wait while batches are pending: before 4.1 a leader does not end a wait when the high watermark moves."""
_WATERMARK_ENDS_WAIT = 18
"""From this version of Fetch on, a leader ends the wait when the high watermark moves (KIP-1166)."""
_EMPTY_ANSWERS = 3
"""Immediate answers in a row without anything committed, before we pause: a batch and its commit take two."""
_AT_ONCE = 0.05
"""Seconds: an answer that took longer was not immediate, whatever wait was requested."""
_CALM = 60.0
"""Seconds without starting over, after which the next start needs no pause."""
_MOST_PENDING = 64 << 20
"""The most bytes of batches that wait for their commit; no more are accepted until some were committed.

Normally there are few. A leader that was elected just now may send its log before it knows what is committed.
"""
_BATCH_COST = 400
"""Bytes of memory that a batch takes besides its own bytes."""


class FetchStep(NamedTuple):
    """The result of one request: a snapshot that replaces everything, or newly committed batches, or neither.

    ``lost``: a sentence if history is lost: there is a gap between the batches so far and the snapshot, or the leader
    no longer has committed records, so that the observer starts over.
    """

    snapshot: SnapshotFile | None = None
    batches: tuple[Batch, ...] = ()
    lost: str | None = None


class Observer:
    """Observes one quorum: call :meth:`step` again and again, each returns what was committed since the one before.

    ``committed``: the offset after the last batch that was returned. ``high_watermark``: -1 until it is known.
    ``trouble``: why the last request failed, or ``None``; ``silent_since``: the monotonic time at which trouble began.
    ``unlisted_since``: the one since which the trouble is that the leader's address cannot be learnt, or ``None``.
    ``restarts``: how often everything started over, with a snapshot or because committed records were lost.
    ``deadline``: the monotonic time at which every request and pause ends; the caller of :meth:`step` sets it.
    """

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self.leader: Leader | None = None
        self.epoch = 0
        self.high_watermark = -1
        self.log_start = 0
        self.committed = 0
        self.trouble: NodeError | None = None
        self.silent_since: float | None = None
        self.unlisted_since: float | None = None
        self.restarts = 0
        self.deadline = inf
        self.downloader = Downloader()
        self._connection: Connection | None = None
        self._committed_epoch = 0
        self._pending: list[Batch] = []
        self._costs: list[int] = []
        """Bytes that each pending batch keeps in memory."""
        self._empty_answers = 0
        self._restarted_at = -inf
        self._asked_at = -inf
        self._chain = Chain(RisingEpochs(), None)
        self._max_bytes = MAX_BYTES
        self._version = 0
        self._damaged = 0
        """Damaged answers in a row: after the first one the request is repeated, over another connection."""
        settings = nodes.settings
        self._backoff = Backoff(settings.reconnect_backoff, settings.reconnect_backoff_max)
        self._restart_backoff = Backoff(settings.reconnect_backoff, settings.reconnect_backoff_max)

    # --- one request ---------------------------------------------------------------------------------------------

    def step(self, wait: float = 0.0) -> FetchStep:
        """Send the leader one request; it may wait ``wait`` seconds for news. Raises NodeError, CorruptDataError.

        Errors that pass (elections, nodes that restart) are not raised: they are kept in ``trouble``, after a pause.
        """
        began = self._asked_at = time.monotonic()
        try:
            connection = self._to_leader()
            step = self._handle(self._fetch(connection, wait), connection)
        except (ConnectError, SourceTimeoutError) as error:
            self._failed(error)
            return FetchStep()
        except ServerError as error:
            if not codes.may_succeed_later(error.code):
                raise
            self._failed(error)
            return FetchStep()
        except CorruptDataError as error:
            self._damaged += 1
            if self._damaged > 1:
                raise
            self._failed(ProtocolError(error.file, f"a damaged answer: {error.reason}", api=FETCH.name))
            return FetchStep()
        self._damaged = 0
        if self.trouble is None:
            self.silent_since = self.unlisted_since = None
            self._pace(step, wait, time.monotonic() - began)
        else:
            self._failed(self.trouble)
        return step

    def _pace(self, step: FetchStep, wait: float, took: float) -> None:
        """Pause, longer each time, if immediate answers bring nothing, or if everything starts over too often."""
        if step.snapshot is not None or step.lost is not None:
            now = time.monotonic()
            if now - self._restarted_at > _CALM:
                self._restart_backoff.reset()
            else:
                self._pause(self._restart_backoff)
            self._restarted_at = now
            self.restarts += 1
        elif step.batches or took >= max(wait / 2, _AT_ONCE):
            self._empty_answers = 0
            self._backoff.reset()
        else:
            self._empty_answers += 1
            if self._empty_answers > _EMPTY_ANSWERS:
                self._pause(self._backoff)

    def _pause(self, backoff: Backoff) -> None:
        time.sleep(min(backoff.next(), self._seconds_left))

    @property
    def _seconds_left(self) -> float:
        """Seconds to the deadline."""
        return max(self.deadline - time.monotonic(), 0.0)

    def unsteady_error(self) -> ProtocolError:
        """The error for a leader that makes the observer start over again and again."""
        node = name_of(*self.leader.address) if self.leader is not None else "quorum"
        reason = "the leader names another snapshot, or takes committed records back, again and again"
        hint = "did two controllers lead at once, or was a data directory replaced? The controllers' logs say more"
        return ProtocolError(node, reason, api=FETCH.name, hint=hint)

    def stalled_error(self, source: str, end: int) -> SourceTimeoutError:
        """The error for a leader that answers, but sends nothing committed after offset ``end``, though more is due."""
        high_watermark = self.high_watermark
        reason = (
            "the leader does not say what is committed"
            if high_watermark < 0
            else f"the leader sends nothing after offset {end}"
        )
        hint = "do most voters run? default.api.timeout.ms sets how long to wait"
        return SourceTimeoutError(source, reason, api=FETCH.name, hint=hint)

    def close(self) -> None:
        """Close the connection; a step that waits in another thread ends, too."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _to_leader(self) -> Connection:
        if self._connection is not None and self._connection.is_usable():
            return self._connection
        if self.leader is None:
            timeout = min(self.nodes.settings.api_timeout, self._seconds_left)
            self.leader = find_leader(self.nodes, timeout=timeout, known_epoch=self.epoch, once=True)
            self.epoch = self.leader.epoch
        try:
            self._connection = self.nodes.dial(self.leader.address, timeout=self._seconds_left)
        except (ConnectError, SourceTimeoutError):
            self.leader = None
            raise
        return self._connection

    def _fetch(self, connection: Connection, wait: float) -> Fetched:
        if self._pending and self._version < _WATERMARK_ENDS_WAIT:
            wait = min(wait, _HURRY)
        wait = min(wait, self._seconds_left / 2)
        last = self._pending[-1] if self._pending else None
        at = FetchPosition(
            self.epoch,
            last.last_offset + 1 if last else self.committed,
            last.epoch if last else self._committed_epoch,
            self.high_watermark,
        )
        whole = min(self.nodes.settings.request_timeout, self._seconds_left)
        timeout = min(wait + _GRACE, whole)
        answer = fetch(
            connection, at, self.nodes.cluster_id, wait=wait, max_bytes=self._max_bytes, timeout=timeout, whole=whole
        )
        self._version = answer.version
        return answer

    def _failed(self, error: NodeError) -> None:
        """Keep the error as ``trouble``, forget the leader, and pause."""
        if not self._was_cut_short(error):
            self.trouble = error
        if self.silent_since is None or self.downloader.advanced_at > self.silent_since:
            self.silent_since = time.monotonic()
        if not isinstance(error, LeaderNotListedError):
            self.unlisted_since = None
        elif self.unlisted_since is None:
            self.unlisted_since = time.monotonic()
        self.close()
        self.leader = None
        self._pause(self._backoff)

    def _was_cut_short(self, error: NodeError) -> bool:
        """Whether the deadline ended the request early: then the error before it says more than this timeout."""
        if self._seconds_left or not isinstance(error, SourceTimeoutError):
            return False
        return time.monotonic() - self._asked_at < self.nodes.settings.api_timeout / 2

    # --- what an answer means ------------------------------------------------------------------------------------

    def _handle(self, answer: Fetched, connection: Connection) -> FetchStep:
        """Act on an answer: an error, a snapshot to download, records that diverge, or batches."""
        quorum = answer.quorum
        if quorum.error:
            return self._handle_error(answer)
        self.trouble = None
        self.log_start = answer.log_start
        if answer.snapshot is not None:
            return self._snapshot(answer, connection)
        if answer.diverging is not None:
            return self._diverged(*answer.diverging)
        if answer.high_watermark >= 0:
            self.high_watermark = answer.high_watermark
        self._add_pending(answer.records, connection.node)
        return FetchStep(batches=self._take_committed())

    def _handle_error(self, answer: Fetched) -> FetchStep:
        """Act on an error code. Raises NodeError, unless the offset is gone, or the leader or its epoch has changed."""
        quorum = answer.quorum
        if quorum.error == codes.OFFSET_OUT_OF_RANGE:
            return self._lose_history(f"the leader has no log from offset {self.committed} on")
        self.epoch = max(self.epoch, quorum.leader_epoch)
        if quorum.error not in codes.EPOCH_CODES:
            raise codes.failure(quorum.node, quorum.error, FETCH.name)
        self.trouble = ConnectError(quorum.node, f"is not the leader now ({error_name(quorum.error)})", api=FETCH.name)
        return FetchStep()

    def _snapshot(self, answer: Fetched, connection: Connection) -> FetchStep:
        """Download the snapshot that the leader named, and continue after its end."""
        assert answer.snapshot is not None
        before = self.committed
        file = self.downloader.get(connection, self.epoch, answer.snapshot, self.nodes.cluster_id)
        if file is None:  # the next fetch names another snapshot, after a pause, so that this cannot go on for ever
            self.trouble = ConnectError(connection.node, "the snapshot was removed meanwhile", api=FETCH_SNAPSHOT.name)
            return FetchStep()
        self._restart(answer.snapshot.end_offset, answer.snapshot.epoch)
        lost = None
        if 0 < before < answer.snapshot.end_offset:
            lost = f"offsets {before} to {answer.snapshot.end_offset - 1} are only in a snapshot by now"
        return FetchStep(snapshot=file, lost=lost)

    def _diverged(self, epoch: int, end_offset: int) -> FetchStep:
        """Drop pending batches that the leader does not have. If it lacks committed records, start over."""
        keep = [batch for batch in self._pending if batch.epoch <= epoch and batch.last_offset < end_offset]
        if len(keep) < len(self._pending):
            self._pending, self._costs = keep, self._costs[: len(keep)]
            self._chain = Chain(RisingEpochs(), keep[-1].last_offset + 1 if keep else self.committed)
            return FetchStep()
        return self._lose_history(f"committed records from offset {end_offset} on are not what they were")

    def _lose_history(self, why: str) -> FetchStep:
        if self.committed == 0 and not self._pending:
            raise ProtocolError("quorum", f"{why}, and there is nothing before it", api=FETCH.name)
        self.start_over()
        return FetchStep(lost=why)

    def start_over(self) -> None:
        """Let the next step ask from offset 0 on, for a snapshot or the whole log; the high watermark is forgotten."""
        self.high_watermark = -1
        self._restart(0, 0)

    def _restart(self, offset: int, epoch: int) -> None:
        self.committed, self._committed_epoch = offset, epoch
        self._pending, self._costs = [], []
        self._chain = Chain(RisingEpochs(), offset)

    def _add_pending(self, records: bytes, node: str) -> None:
        """Verify batches and keep them pending. The last one may be cut: the next answer has it complete."""
        if not records or sum(self._costs) >= _MOST_PENDING:
            return
        chain, taken, size = self._chain, 0, 0
        try:
            for batch in chain.walk(records, node):
                if batch.epoch > self.epoch:  # the CRC does not cover the epoch, and the next request names it
                    reason = f"the batch has epoch {batch.epoch}, the leader's is {self.epoch}"
                    raise CorruptDataError(node, batch.position, reason)
                self._pending.append(batch)
                self._costs.append(batch.size + _BATCH_COST)
                taken += 1
                size = batch.end
        except CorruptDataError:
            self._chain = Chain(RisingEpochs(), self._next_offset())
            raise
        if taken:
            self._costs[-1] += len(records) - size  # a batch keeps the whole answer in memory, its cut end, too
        if chain.torn is None:
            self._max_bytes = MAX_BYTES
        elif not taken:
            if self._max_bytes >= MAX_FRAME // 2:
                raise ProtocolError(node, "a batch is larger than an answer may be", api=FETCH.name)
            self._max_bytes *= 2
        chain.torn = None

    def _next_offset(self) -> int:
        return self._pending[-1].last_offset + 1 if self._pending else self.committed

    def _take_committed(self) -> tuple[Batch, ...]:
        """Remove and return the pending batches below the high watermark: they never change again."""
        count = 0
        for batch in self._pending:
            if batch.last_offset >= self.high_watermark:
                break
            count += 1
        if not count:
            return ()
        committed, self._pending = tuple(self._pending[:count]), self._pending[count:]
        del self._costs[:count]
        self.committed, self._committed_epoch = committed[-1].last_offset + 1, committed[-1].epoch
        return committed
