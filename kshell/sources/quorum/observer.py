"""An observer of the metadata quorum: snapshot and batches from the leader, only what is committed (KIP-595, KIP-630).

It is a state machine that asks one question at a time and survives elections, restarts and truncation. What a leader
hands out may not be committed yet: batches wait here until the high watermark has passed them.
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
from kshell.errors import ConnectError, CorruptDataError, NodeError, ProtocolError, ServerError, SourceTimeoutError
from kshell.protocol.batches import Batch
from kshell.protocol.messages.quorum import FETCH, FETCH_SNAPSHOT
from kshell.protocol.names import error_name
from kshell.protocol.verify import Chain, RisingEpochs
from kshell.sources.directory.files import SnapshotFile
from kshell.sources.quorum.download import Downloader

_GRACE = 3.0
"""Seconds that an answer may take beyond the wait that was asked for; a leader that is gone does not say so."""
_HURRY = 0.005
"""The wait while batches are here whose commit is not known: before 4.1 a moved high watermark ends no wait."""
_KNOWS_WATERMARK = 18
"""From this version of Fetch on a moved high watermark ends the wait (KIP-1166)."""
_EMPTY_ANSWERS = 3
"""Answers in a row that come at once and bring nothing committed, before we pause: a batch and its commit take two."""
_AT_ONCE = 0.05
"""Seconds: an answer that took so long was waited for, whatever the wait that was asked for."""
_CALM = 60.0
"""Seconds without a new beginning, after which the next one needs no pause."""
_MOST_PENDING = 64 << 20
"""Bytes of batches that may wait here for their commit; more is not taken from the leader until some were committed.

A leader that is well has few of them; one that was elected just now may hand out its log before it knows what is
committed.
"""
_BATCH_COST = 400
"""Bytes that a batch takes here beside its own."""


class FetchStep(NamedTuple):
    """What one question brought: a snapshot that replaces all, or batches that were committed; or neither.

    ``lost``: offsets that nobody gives any more lie between what was given and the snapshot, or committed records were
    taken back, so that all starts over.
    """

    snapshot: SnapshotFile | None = None
    batches: tuple[Batch, ...] = ()
    lost: str | None = None


class Observer:
    """``committed`` is the offset after the last batch that was given; ``high_watermark`` is -1 until it is known.

    ``trouble`` is why the last question failed, ``None`` when it did not; ``silent_since`` when trouble began.
    ``restarts`` counts how often all started over: by a snapshot, or because committed records were taken back.
    ``deadline``, by the monotonic clock, is for whoever waits for a step: no question and no pause passes it.
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
        """Damaged answers one after another: the first is asked for again, over another connection."""
        settings = nodes.settings
        self._backoff = Backoff(settings.reconnect_backoff, settings.reconnect_backoff_max)
        self._restart_backoff = Backoff(settings.reconnect_backoff, settings.reconnect_backoff_max)

    # --- one question --------------------------------------------------------------------------------------------

    def step(self, wait: float = 0.0) -> FetchStep:
        """Ask the leader once; it may wait ``wait`` seconds for news. Raises NodeError, CorruptDataError.

        Errors that pass (elections, nodes that restart) are not raised: they are ``trouble``, after a pause.
        """
        began = self._asked_at = time.monotonic()
        try:
            connection = self._to_leader()
            step = self._settle(self._fetch(connection, wait), connection)
        except (ConnectError, SourceTimeoutError) as error:
            self._failed(error)
            return FetchStep()
        except ServerError as error:
            if not codes.may_pass(error.code):
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
            self.silent_since = None
            self._pace(step, wait, time.monotonic() - began)
        else:
            self._failed(self.trouble)
        return step

    def _pace(self, step: FetchStep, wait: float, took: float) -> None:
        """Pauses, longer each time, for a leader that keeps us busy with answers that bring nothing."""
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

    def unsteady(self) -> ProtocolError:
        """The error for a leader with which all starts over again and again."""
        node = name_of(*self.leader.address) if self.leader is not None else "quorum"
        reason = "the leader names another snapshot, or takes committed records back, again and again"
        hint = "did two controllers lead at once, or was a data directory replaced? The controllers' logs say more"
        return ProtocolError(node, reason, api=FETCH.name, hint=hint)

    def stalled(self, source: str, end: int) -> SourceTimeoutError:
        """The error for a leader that answers, and brings nothing though offset ``end`` is not the last."""
        high_watermark = self.high_watermark
        reason = (
            "the leader does not say what is committed" if high_watermark < 0 else f"nothing comes after offset {end}"
        )
        hint = "do most voters run? default.api.timeout.ms sets how long to wait"
        return SourceTimeoutError(source, reason, api=FETCH.name, hint=hint)

    def close(self) -> None:
        """End the connection; a step that waits in another thread ends too."""
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
        if self._pending and self._version < _KNOWS_WATERMARK:
            wait = min(wait, _HURRY)
        wait = min(wait, self._seconds_left / 2)
        last = self._pending[-1] if self._pending else None
        at = FetchPosition(
            self.epoch,
            last.last_offset + 1 if last else self.committed,
            last.epoch if last else self._committed_epoch,
            self.high_watermark,
        )
        timeout = min(wait + _GRACE, self.nodes.settings.request_timeout, self._seconds_left)
        answer = fetch(connection, at, self.nodes.cluster_id, wait=wait, max_bytes=self._max_bytes, timeout=timeout)
        self._version = answer.version
        return answer

    def _failed(self, error: NodeError) -> None:
        """Remember the trouble, drop the leader, and pause."""
        if not self._was_cut_short(error):
            self.trouble = error
        if self.silent_since is None:
            self.silent_since = time.monotonic()
        self.close()
        self.leader = None
        self._pause(self._backoff)

    def _was_cut_short(self, error: NodeError) -> bool:
        """Whether the deadline came soon after the question: then what was known before says more."""
        if self._seconds_left or not isinstance(error, SourceTimeoutError):
            return False
        return time.monotonic() - self._asked_at < self.nodes.settings.api_timeout / 2

    # --- what an answer means ------------------------------------------------------------------------------------

    def _settle(self, answer: Fetched, connection: Connection) -> FetchStep:
        quorum = answer.quorum
        if quorum.error:
            return self._refused(answer)
        self.trouble = None
        self.log_start = answer.log_start
        if answer.snapshot is not None:
            return self._snapshot(answer, connection)
        if answer.diverging is not None:
            return self._diverged(*answer.diverging)
        if answer.high_watermark >= 0:
            self.high_watermark = answer.high_watermark
        self._take(answer.records, connection.node)
        return FetchStep(batches=self._commit())

    def _refused(self, answer: Fetched) -> FetchStep:
        quorum = answer.quorum
        if quorum.error == codes.OFFSET_OUT_OF_RANGE:
            return self._start_over(f"the leader has no log from offset {self.committed} on")
        self.epoch = max(self.epoch, quorum.leader_epoch)
        if quorum.error not in codes.EPOCH_CODES:
            raise codes.failure(quorum.node, quorum.error, FETCH.name)
        self.trouble = ConnectError(quorum.node, f"is not the leader now ({error_name(quorum.error)})", api=FETCH.name)
        return FetchStep()

    def _snapshot(self, answer: Fetched, connection: Connection) -> FetchStep:
        assert answer.snapshot is not None
        before = self.committed
        file = self.downloader.get(connection, self.epoch, answer.snapshot, self.nodes.cluster_id)
        if file is None:  # the next fetch names another; but not at once, for ever
            self.trouble = ConnectError(connection.node, "the snapshot is gone again", api=FETCH_SNAPSHOT.name)
            return FetchStep()
        self._restart(answer.snapshot.end_offset, answer.snapshot.epoch)
        lost = None
        if 0 < before < answer.snapshot.end_offset:
            lost = f"offsets {before} to {answer.snapshot.end_offset - 1} are only in a snapshot by now"
        return FetchStep(snapshot=file, lost=lost)

    def _diverged(self, epoch: int, end_offset: int) -> FetchStep:
        """Drop what the leader does not have. Committed records never go; if they do, all starts over."""
        keep = [batch for batch in self._pending if batch.epoch <= epoch and batch.last_offset < end_offset]
        if len(keep) < len(self._pending):
            self._pending, self._costs = keep, self._costs[: len(keep)]
            self._chain = Chain(RisingEpochs(), keep[-1].last_offset + 1 if keep else self.committed)
            return FetchStep()
        return self._start_over(f"committed records from offset {end_offset} on are not what they were")

    def _start_over(self, why: str) -> FetchStep:
        if self.committed == 0 and not self._pending:
            raise ProtocolError("quorum", f"{why}, and there is nothing before it", api=FETCH.name)
        self.start_over()
        return FetchStep(lost=why)

    def start_over(self) -> None:
        """The next step asks from offset 0 on: for a snapshot, or all of the log. What was committed is open again."""
        self.high_watermark = -1
        self._restart(0, 0)

    def _restart(self, offset: int, epoch: int) -> None:
        self.committed, self._committed_epoch = offset, epoch
        self._pending, self._costs = [], []
        self._chain = Chain(RisingEpochs(), offset)

    def _take(self, records: bytes, node: str) -> None:
        """Verify batches and keep them pending. The last may be cut: then it comes again, complete."""
        if not records or sum(self._costs) >= _MOST_PENDING:
            return
        chain, taken, size = self._chain, 0, 0
        try:
            for batch in chain.walk(records, node):
                if batch.epoch > self.epoch:  # no CRC covers it, and we would ask with it
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

    def _commit(self) -> tuple[Batch, ...]:
        """The batches that the high watermark has passed: they never change again."""
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
