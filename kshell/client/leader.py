"""Who leads the metadata quorum, and a connection to it: found by asking, because each release tells in another way.

A Fetch with epoch 0 is refused with the leader's id and epoch. Where that leader listens comes from the same answer
(from 3.9 on), from DescribeCluster (3.7), from what the log registers, or from trying: a Fetch with the right epoch is
served by the leader alone.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from kshell.client.address import Address, name_of
from kshell.client.backoff import Backoff
from kshell.client.codes import EPOCH_CODES, failure, may_pass
from kshell.client.nodes import Node, Nodes
from kshell.client.observe import Answered, Position, fetch
from kshell.errors import ConnectError, NodeError, ServerError, SourceTimeoutError
from kshell.protocol.messages.quorum import FETCH

_SMALL = 1 << 10
"""Bytes of records that a question about the leader may bring along."""


class Leader(NamedTuple):
    """The leader of an epoch, and where it listens."""

    id: int
    epoch: int
    address: Address


def find_leader(nodes: Nodes, *, timeout: float, known_epoch: int = 0) -> Leader:
    """Asks until an election has ended, for ``timeout`` seconds at most. Raises NodeError.

    An answer from before ``known_epoch`` is not believed: that node has missed an election.
    """
    settings = nodes.settings
    backoff = Backoff(settings.retry_backoff, settings.retry_backoff_max, time.monotonic() + timeout)
    search = _Search(nodes, known_epoch)
    while True:
        found = search.round()
        if found is not None:
            return found
        if backoff.is_over:
            raise search.failed()
        backoff.wait()


class _Search:
    """What one search has learnt."""

    def __init__(self, nodes: Nodes, known_epoch: int) -> None:
        self._nodes = nodes
        self._id = -1
        self._epoch = max(known_epoch, 0)
        self._last: NodeError | None = None
        self._silent: list[str] = []
        """Who did not answer in the last round."""
        self._answered = False
        """Whether somebody did, and said that it is not the leader."""

    def round(self) -> Leader | None:
        """Asks every address, and again once the epoch is known. Raises NodeError for what waiting does not mend."""
        asked: set[tuple[Address, int]] = set()
        self._last, self._silent, self._answered = None, [], False
        try:
            self._nodes.any()
        except (ConnectError, SourceTimeoutError) as error:
            self._last = error
            return None
        waiting = self._addresses()
        while waiting:
            address = waiting.pop(0)
            epoch = self._epoch
            if (address, epoch) in asked:
                continue
            asked.add((address, epoch))
            try:
                connection = self._nodes.at(address)
                at, cluster = Position(epoch), self._nodes.cluster_id
                answer = fetch(connection, at, cluster, max_bytes=_SMALL, timeout=connection.patience).quorum
            except (ConnectError, SourceTimeoutError) as error:
                self._last = error
                self._silent.append(name_of(*address))
                continue
            except ServerError as error:
                if not may_pass(error.code):
                    raise
                self._last = error
                continue
            if answer.error == 0:
                return self._served(address, epoch, answer)
            if answer.error not in EPOCH_CODES:
                self._last = failure(connection.node, answer.error, FETCH.name)
                if not may_pass(answer.error):
                    raise self._last
            else:
                self._answered = True
            if self._learn(answer):
                waiting = self._addresses()
        return None

    def _addresses(self) -> list[Address]:
        """All of them, the leader's first where it is known."""
        leader = self._nodes.known.get(self._id)
        return list(dict.fromkeys([*([leader.address] if leader else ()), *self._nodes.addresses()]))

    def _learn(self, answer: Answered) -> bool:
        """Whether the answer told of a leader that was not known."""
        for node_id, address in answer.endpoints.items():
            self._nodes.known[node_id] = Node(node_id, address)
        if (answer.leader_epoch, answer.leader_id) <= (self._epoch, self._id):
            return False
        self._id, self._epoch = answer.leader_id, answer.leader_epoch
        return True

    def _served(self, address: Address, epoch: int, answer: Answered) -> Leader:
        """The node at ``address`` serves a Fetch of that epoch: it leads, and says its id."""
        self._id = answer.leader_id if answer.leader_id >= 0 else self._id
        if self._id >= 0:
            self._nodes.known[self._id] = Node(self._id, address)
        return Leader(self._id, epoch, address)

    def failed(self) -> NodeError:
        """Why no leader was found."""
        there = ", ".join(name_of(*address) for address in self._nodes.addresses())
        is_leaderless = self._answered and self._id < 0
        if self._last is not None and not is_leaderless:
            return self._last
        if self._id >= 0:
            reason = f"controller {self._id} leads (epoch {self._epoch}), and none of these addresses is its: {there}"
            return ConnectError(f"controller {self._id}", reason, hint="name every controller in the list")
        hint = "do most voters run? default.api.timeout.ms sets how long to wait"
        silent = f", and no answer comes from {', '.join(dict.fromkeys(self._silent))}" if self._silent else ""
        return SourceTimeoutError(there, f"no controller leads the quorum: an election goes on{silent}", hint=hint)
