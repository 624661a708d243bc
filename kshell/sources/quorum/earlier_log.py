"""The part of the log that an observer did not need: what came before its snapshot, while the leader still has it."""

from __future__ import annotations

import time

from kshell.client.backoff import Backoff
from kshell.client.codes import failure, may_pass
from kshell.client.leader import FetchPosition, Leader, fetch, find_leader
from kshell.client.nodes import Nodes
from kshell.client.settings import Settings
from kshell.errors import ConnectError, OutOfReachError, ProtocolError, ServerError, SourceTimeoutError
from kshell.protocol.messages.quorum import FETCH
from kshell.protocol.verify import Chain, RisingEpochs
from kshell.sources.quorum.mirror import Mirror
from kshell.sources.quorum.observer import Observer

_MOST_EPOCHS = 1000
"""Epochs to ask with at the log's start: elections between the oldest snapshot and the newest."""
_ADVICE = "look at the newest state in place of an older one, or read the leader's directory"


def older_log(observer: Observer, nodes: Nodes, start: int, end: int) -> Mirror:
    """The batches from offset ``start`` (or the batch around it) up to ``end``. Raises NodeError, DataError.

    When the leader goes, the next one is asked for the rest: below ``end`` all is committed, so both have the same. An
    election may take as long as ``default.api.timeout.ms`` says.
    """
    leader = observer.leader
    search = _Search(nodes, start, end)
    position, backoff = start, _patience(nodes.settings)
    while not search.is_over:
        try:
            if leader is None:
                leader = find_leader(nodes, timeout=backoff.seconds_left, known_epoch=observer.epoch)
            search.ask(leader, backoff.seconds_left)
        except (ConnectError, SourceTimeoutError, ServerError) as error:
            if backoff.is_over or (isinstance(error, ServerError) and not may_pass(error.code)):
                raise
            leader = None
            backoff.wait()
        if search.position != position:
            position, backoff = search.position, _patience(nodes.settings)
    return search.mirror


def _patience(settings: Settings) -> Backoff:
    return Backoff(settings.retry_backoff, settings.retry_backoff_max, time.monotonic() + settings.api_timeout)


class _Search:
    """How far the older log is here: ``position`` is the next offset to ask for.

    Which epoch a position has is not known; the leader takes any epoch whose end lies behind the position, so its own
    does for all of them but the log's first: there it must be the epoch of the oldest snapshot.
    """

    def __init__(self, nodes: Nodes, start: int, end: int) -> None:
        self.position = start
        self.mirror = Mirror(nodes.kind, start)
        self.is_over = start >= end
        self._nodes = nodes
        self._end = end
        self._epoch: int | None = None
        """Asked with in place of the leader's own."""
        self._guesses = 0
        self._chain = Chain(RisingEpochs(), None)

    def ask(self, leader: Leader, timeout: float) -> None:
        """Fetch once. Raises NodeError, OutOfReachError for what was deleted, CorruptDataError."""
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
            self._epoch = min(epoch - 1, answer.snapshot.epoch)  # the newest one's; the oldest's is not above it
            return
        if answer.snapshot is not None or not answer.records:
            raise OutOfReachError(
                f"{connection.node}: the log before offset {self._end} is gone",
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
