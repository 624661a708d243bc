"""Fetch the log before an observer's snapshot, as far as the leader still has it, for questions about the past."""

from __future__ import annotations

import time

from kshell.client.backoff import Backoff
from kshell.client.codes import failure, may_succeed_later
from kshell.client.leader import FetchPosition, Leader, fetch, find_leader
from kshell.client.nodes import Nodes
from kshell.client.settings import Settings
from kshell.errors import (
    ConnectError,
    LeaderNotListedError,
    OutOfReachError,
    ProtocolError,
    ServerError,
    SourceTimeoutError,
)
from kshell.protocol.messages.quorum import FETCH
from kshell.protocol.verify import Chain, RisingEpochs
from kshell.sources.quorum.mirror import Mirror
from kshell.sources.quorum.observer import Observer

_MOST_EPOCHS = 1000
"""The most epochs to try at the log's start: as many elections may lie between the oldest snapshot and the newest."""
_ADVICE = "look at the newest state in place of an older one, or read the leader's directory"


def older_log(observer: Observer, nodes: Nodes, start: int, end: int) -> Mirror:
    """Fetch the batches from offset ``start`` (or the batch around it) up to ``end``. Raises NodeError, DataError.

    If the leader changes, the next one is asked for the rest: all records below ``end`` are committed, so both have
    the same. An election may take as long as ``default.api.timeout.ms`` says.
    """
    leader = observer.leader
    search = _Search(nodes, start, end)
    position, backoff = start, _patience(nodes.settings)
    while not search.is_over:
        try:
            if leader is None:
                leader = find_leader(nodes, timeout=backoff.seconds_left, known_epoch=observer.epoch)
            search.ask(leader, backoff.seconds_left)
        except LeaderNotListedError:
            raise
        except (ConnectError, SourceTimeoutError, ServerError) as error:
            if backoff.is_over or (isinstance(error, ServerError) and not may_succeed_later(error.code)):
                raise
            leader = None
            backoff.wait()
        if search.position != position:
            position, backoff = search.position, _patience(nodes.settings)
    return search.mirror


def _patience(settings: Settings) -> Backoff:
    return Backoff(settings.retry_backoff, settings.retry_backoff_max, time.monotonic() + settings.api_timeout)


class _Search:
    """The older log as far as it was fetched; ``position`` is the next offset to ask for.

    A Fetch names the epoch of the record before its position, which is not known here. The leader accepts any epoch
    that ends after the position, so its own epoch works everywhere but at the log's start. There it must be the epoch
    of the oldest snapshot, which is found by trying.
    """

    def __init__(self, nodes: Nodes, start: int, end: int) -> None:
        self.position = start
        self.mirror = Mirror(nodes.kind, start)
        self.is_over = start >= end
        self._nodes = nodes
        self._end = end
        self._epoch: int | None = None
        """The epoch to ask with, if it is not the leader's own."""
        self._guesses = 0
        self._chain = Chain(RisingEpochs(), None)

    def ask(self, leader: Leader, timeout: float) -> None:
        """Fetch once. Raises NodeError, OutOfReachError if the leader has deleted the records, CorruptDataError."""
        connection = self._nodes.at(leader.address, timeout=timeout)
        epoch = leader.epoch if self._epoch is None else self._epoch
        at = FetchPosition(leader.epoch, self.position, epoch)
        answer = fetch(connection, at, self._nodes.cluster_id, timeout=min(connection.timeout, timeout))
        if answer.quorum.error:
            raise failure(connection.node, answer.quorum.error, FETCH.name)
        if answer.snapshot is not None and self.position == answer.log_start and epoch > 0:
            self._guesses += 1
            if self._guesses > _MOST_EPOCHS:
                reason = f"no epoch fits where its log starts, of {_MOST_EPOCHS} that were asked with"
                raise ProtocolError(connection.node, reason, api=FETCH.name, hint=_ADVICE)
            self._epoch = min(epoch - 1, answer.snapshot.epoch)  # the oldest snapshot's epoch is not above the newest's
            return
        if answer.snapshot is not None or not answer.records:
            raise OutOfReachError(
                f"{connection.node}: the log before offset {self._end} was removed",
                hint="the leader has deleted it meanwhile",
            )
        walk = self._chain.walk(answer.records, connection.node)
        batches = [batch for batch in walk if batch.last_offset < self._end]
        self._chain.torn = None
        if batches and self.mirror.end == self.mirror.start:
            self.mirror = Mirror(self._nodes.kind, batches[0].base_offset)
        self.mirror.append(batches)
        self._epoch = None
        self.position = self.mirror.end
        self.is_over = not batches or self.position >= self._end
