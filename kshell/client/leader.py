"""Find the leader of the metadata quorum, and send an observer's requests: Fetch and FetchSnapshot (KIP-595, KIP-630).

The leader is found with Fetch requests, because that works in every release. A Fetch with epoch 0 is refused with the
leader's id and epoch. The leader's address comes from the same response (from 3.9 on), from DescribeCluster (3.7), from
registrations in the log, or from trying: a Fetch with the right epoch is served by the leader alone.

The search goes in rounds over all known addresses. What controllers claim about each other is forgotten after a round,
and a round has a limited number of requests: so false claims cost no more than the time that the caller allows.
"""

from __future__ import annotations

import time
from collections import Counter
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from kshell.client.address import Address, name_of
from kshell.client.backoff import Backoff
from kshell.client.codes import EPOCH_CODES, failure, may_succeed_later
from kshell.client.connection import Connection
from kshell.client.nodes import TOPIC, ClusterNode, Nodes
from kshell.errors import (
    ConnectError,
    LeaderNotListedError,
    NodeError,
    NoLeaderError,
    ProtocolError,
    ServerError,
    SourceTimeoutError,
)
from kshell.protocol.messages.quorum import FETCH, FETCH_SNAPSHOT
from kshell.protocol.primitives import Uuid

if TYPE_CHECKING:
    from kshell.protocol.decoder import Message

# --- Fetch and FetchSnapshot ------------------------------------------------------------------------------------------


TOPIC_ID = Uuid.parse("AAAAAAAAAAAAAAAAAAAAAQ")
NO_REPLICA = -1
"""The replica id of an observer that is no node. With an id >= 0, the leader would keep state about the observer; with
the id of a voter, a Fetch could move the high watermark."""
MAX_BYTES = 8 << 20


class FetchPosition(NamedTuple):
    """Where a Fetch starts: ``offset`` is the next one to fetch, ``last_epoch`` the epoch of the record before it."""

    leader_epoch: int = 0
    offset: int = 0
    last_epoch: int = 0
    high_watermark: int = -1
    """The last high watermark that the observer knows, which it reports to the leader (KIP-1166); -1 for none."""


class SnapshotId(NamedTuple):
    """A snapshot: the offset after the last record that it contains, and the epoch of that record."""

    end_offset: int
    epoch: int


class QuorumState(NamedTuple):
    """The quorum as the ``node`` that answered sees it, and the error code of the partition (0: none).

    ``leader_id`` is -1 if no leader is known, ``leader_epoch`` is -1 if none is reported; ``endpoints`` is by node id.
    """

    node: str
    error: int
    leader_id: int
    leader_epoch: int
    endpoints: dict[int, tuple[str, int]]


class Fetched(NamedTuple):
    """The response to a Fetch.

    ``records`` are batches; the last one may be incomplete, and some may not be committed (see ``high_watermark``).
    ``snapshot`` is set if the leader wants the observer to fetch that snapshot instead.
    """

    quorum: QuorumState
    high_watermark: int
    log_start: int
    diverging: tuple[int, int] | None
    """(epoch, end offset): the observer's records from that offset on are not the leader's. ``None``: no divergence."""
    snapshot: SnapshotId | None
    records: bytes
    version: int


class SnapshotChunk(NamedTuple):
    """The response to a FetchSnapshot: ``data`` from byte ``position`` of a snapshot of ``size`` bytes."""

    quorum: QuorumState
    snapshot: SnapshotId
    size: int
    position: int
    data: bytes


def fetch(
    connection: Connection,
    at: FetchPosition,
    cluster_id: str | None,
    *,
    wait: float = 0.0,
    max_bytes: int = MAX_BYTES,
    timeout: float | None = None,
    whole: float | None = None,
) -> Fetched:
    """Fetch the records after a position of the metadata log; the leader may wait ``wait`` seconds for new ones.

    ``timeout`` is until the answer begins, ``whole`` until it has ended (:meth:`.Connection.request`).

    With a ``cluster_id``, a node of another cluster refuses. An error code of the partition is in the result
    (``quorum.error``); one of the whole request, and any other failure, raises NodeError.
    """
    wanted: Message = {
        "partition": 0,
        "currentLeaderEpoch": at.leader_epoch,
        "fetchOffset": at.offset,
        "lastFetchedEpoch": at.last_epoch,
        "partitionMaxBytes": max_bytes,
        "highWatermark": at.high_watermark,
    }
    message: Message = {
        "replicaId": NO_REPLICA,
        "maxWaitMs": int(wait * 1000),
        "minBytes": 0,
        "maxBytes": max_bytes,
        "topics": [{"topicId": TOPIC_ID, "partitions": [wanted]}],
    }
    if cluster_id is not None:
        message["clusterId"] = cluster_id
    version, body = connection.request(FETCH, message, timeout=timeout, whole=whole)
    if body["errorCode"]:
        raise failure(connection.node, body["errorCode"], FETCH.name)
    partition = _only_partition(connection, body["responses"], FETCH.name)
    diverging, snapshot = partition.get("divergingEpoch"), partition.get("snapshotId")
    return Fetched(
        _quorum_state(connection, partition, body),
        partition["highWatermark"],
        partition["logStartOffset"],
        (diverging["epoch"], diverging["endOffset"]) if diverging and diverging["epoch"] >= 0 else None,
        _snapshot_id(connection, snapshot) if snapshot and snapshot["endOffset"] >= 0 else None,
        partition["records"] or b"",
        version,
    )


def _snapshot_id(connection: Connection, claim: Message) -> SnapshotId:
    """Read a snapshot id from a response. Raises ProtocolError for a negative epoch."""
    if claim["epoch"] < 0:
        connection.close()
        reason = f"a snapshot of epoch {claim['epoch']} is named (end offset {claim['endOffset']})"
        raise ProtocolError(connection.node, reason, api=FETCH.name)
    return SnapshotId(claim["endOffset"], claim["epoch"])


def fetch_snapshot(
    connection: Connection,
    leader_epoch: int,
    snapshot: SnapshotId,
    position: int,
    cluster_id: str | None,
    *,
    max_bytes: int = MAX_BYTES,
    timeout: float | None = None,
) -> SnapshotChunk:
    """Fetch a part of a snapshot. Raises NodeError; an error code of the partition is in the result instead."""
    wanted = {
        "partition": 0,
        "currentLeaderEpoch": leader_epoch,
        "snapshotId": {"endOffset": snapshot.end_offset, "epoch": snapshot.epoch},
        "position": position,
    }
    message: Message = {
        "replicaId": NO_REPLICA,
        "maxBytes": max_bytes,
        "topics": [{"name": TOPIC, "partitions": [wanted]}],
    }
    if cluster_id is not None:
        message["clusterId"] = cluster_id
    _, body = connection.request(FETCH_SNAPSHOT, message, timeout=timeout)
    if body["errorCode"]:
        raise failure(connection.node, body["errorCode"], FETCH_SNAPSHOT.name)
    partition = _only_partition(connection, body["topics"], FETCH_SNAPSHOT.name)
    named = SnapshotId(partition["snapshotId"]["endOffset"], partition["snapshotId"]["epoch"])
    answered = _quorum_state(connection, partition, body)
    return SnapshotChunk(answered, named, partition["size"], partition["position"], partition["unalignedRecords"])


def _only_partition(connection: Connection, topics: list[Message], api: str) -> Message:
    partitions = [partition for topic in topics for partition in topic["partitions"]]
    if len(partitions) != 1:
        connection.close()
        reason = f"the answer holds {len(partitions)} partitions, one was asked for"
        raise ProtocolError(connection.node, reason, api=api)
    only: Message = partitions[0]
    return only


def _quorum_state(connection: Connection, partition: Message, body: Message) -> QuorumState:
    leader = partition.get("currentLeader") or {"leaderId": -1, "leaderEpoch": -1}
    endpoints = {point["nodeId"]: (point["host"], point["port"]) for point in body.get("nodeEndpoints", ())}
    return QuorumState(connection.node, partition["errorCode"], leader["leaderId"], leader["leaderEpoch"], endpoints)


# --- finding the leader -----------------------------------------------------------------------------------------------


_SMALL = 1 << 10
"""``max_bytes`` of a Fetch that only asks for the leader: its records are not used."""
_MOST_TIMES = 2
"""Requests to one address in a round: the second one has the epoch that a response in this round named."""
_MOST_NEW = 16
"""Requests in a round to controllers that responses named, beyond those to the bootstrap list."""
_WAIT = "default.api.timeout.ms sets how long to wait"
NEXT_ELECTION = 5.0
"""Seconds to wait for another leader while the one that all controllers name has an address that cannot be learnt.

An election takes up to three (``controller.quorum.fetch.timeout.ms``, ``controller.quorum.election.timeout.ms``). After
that, only another list of controllers helps.
"""


class Leader(NamedTuple):
    """The leader of an epoch, and its address; ``id`` is -1 if the leader did not report it."""

    id: int
    epoch: int
    address: Address


def find_leader(nodes: Nodes, *, timeout: float, known_epoch: int = 0, once: bool = False) -> Leader:
    """Find the leader of the quorum; during an election, repeat until it has ended.

    Args:
        nodes: the controllers to ask.
        timeout: seconds for the whole search.
        known_epoch: the highest epoch that the caller knows. A node that names a leader of an earlier epoch has missed
            an election and is not believed.
        once: make one round only; the caller decides when to search again.

    Raises:
        LeaderNotListedError: for :data:`NEXT_ELECTION` seconds, the leader was none of the known addresses.
        NodeError: no leader was found in time, or a node refuses for a reason that waiting does not solve.
    """
    settings = nodes.settings
    deadline = time.monotonic() + timeout
    backoff = Backoff(settings.retry_backoff, settings.retry_backoff_max, deadline)
    search = _Search(nodes, known_epoch, deadline)
    unlisted_since = inf
    while True:
        leader = search.round()
        if leader is not None:
            return leader
        error, now = search.failed(), time.monotonic()
        unlisted_since = min(unlisted_since, now) if isinstance(error, LeaderNotListedError) else inf
        if once or backoff.is_over or now - unlisted_since >= NEXT_ELECTION:
            raise error
        backoff.wait()


class _Claim(NamedTuple):
    """The leader that a node named when it refused a Fetch."""

    node: str
    leader_id: int
    epoch: int
    asked_epoch: int
    """The epoch in the request that the node refused."""


class _Round:
    """The outcome of one round that did not find the leader: it explains the failure to the user."""

    def __init__(self) -> None:
        self.failure: NodeError | None = None
        """The last error in this round."""
        self.silent: list[str] = []
        """The nodes that did not answer, as ``host:port``."""
        self.claims: dict[Address, _Claim] = {}
        """Each node's latest claim in this round."""
        self.was_cut_short = False
        """Whether the deadline passed before every known address was asked."""


class _Search:
    """One search: the leader and epoch that responses named, and the outcome of the last round.

    Call :meth:`round` until it returns the leader or time is up; then :meth:`failed` makes the error.
    """

    def __init__(self, nodes: Nodes, known_epoch: int, deadline: float) -> None:
        self._nodes = nodes
        self._deadline = deadline
        self._id = -1
        self._epoch = max(known_epoch, 0)
        self._round = _Round()

    @property
    def _seconds_left(self) -> float:
        """Seconds to the deadline."""
        return max(self._deadline - time.monotonic(), 0.0)

    def round(self) -> Leader | None:
        """Ask every known address, and again once the epoch is known. Raises NodeError where waiting does not help."""
        before, self._round = self._round, _Round()
        named = self._id, self._epoch
        leader = self._ask_all(self._round)
        if leader is None and not self._seconds_left and (before.claims or before.failure):
            # The deadline cut this round short, so the round before explains the failure better.
            before.was_cut_short = self._round.was_cut_short and named != (self._id, self._epoch)
            self._round = before
        return leader

    def _ask_all(self, current: _Round) -> Leader | None:
        try:
            self._nodes.any(timeout=self._seconds_left)
        except (ConnectError, SourceTimeoutError) as error:
            current.failure = error
            return None
        times: Counter[Address] = Counter()
        tried: set[tuple[Address, int]] = set()
        most = _MOST_TIMES * len(self._nodes.bootstrap) + _MOST_NEW
        waiting = self._addresses()
        while waiting and len(tried) < most and (self._seconds_left or not tried):
            address, epoch = waiting.pop(0), self._epoch
            if (address, epoch) in tried or times[address] == _MOST_TIMES:
                continue
            tried.add((address, epoch))
            times[address] += 1
            current.claims.pop(address, None)
            try:
                answer = self._ask(address, epoch)
            except (ConnectError, SourceTimeoutError) as error:
                current.silent.append(name_of(*address))
                if self._seconds_left or not (
                    current.claims or current.failure
                ):  # a timeout at the deadline says less than what is known already
                    current.failure = error
                continue
            except ServerError as error:
                if not may_succeed_later(error.code):
                    raise
                current.failure = error
                continue
            if answer.error == 0:
                return self._served(address, epoch, answer)
            if answer.error not in EPOCH_CODES:
                current.failure = failure(answer.node, answer.error, FETCH.name)
                if not may_succeed_later(answer.error):
                    raise current.failure
            else:
                current.claims[address] = _Claim(answer.node, answer.leader_id, answer.leader_epoch, epoch)
            if self._learn(answer):
                waiting = self._addresses()
        current.was_cut_short = not self._seconds_left and any(address not in times for address in waiting)
        return None

    def _ask(self, address: Address, epoch: int) -> QuorumState:
        """Send a Fetch with that epoch, only for the leader in the response. Raises NodeError."""
        connection = self._nodes.at(address, timeout=self._seconds_left)
        timeout = min(connection.patience, self._seconds_left)
        whole = min(connection.timeout, self._seconds_left)  # up to 4.0, leaders ignore `max_bytes`
        position, cluster_id = FetchPosition(epoch), self._nodes.cluster_id
        return fetch(connection, position, cluster_id, max_bytes=_SMALL, timeout=timeout, whole=whole).quorum

    def _addresses(self) -> list[Address]:
        """Every known address, that of the leader first if it is known."""
        leader = self._nodes.by_id.get(self._id)
        return list(dict.fromkeys([*([leader.address] if leader else ()), *self._nodes.addresses()]))

    def _learn(self, answer: QuorumState) -> bool:
        """Note the leader, epoch and address that a response names; return whether the leader or epoch is new."""
        endpoint = answer.endpoints.get(answer.leader_id)
        if endpoint is not None:
            self._nodes.learn(ClusterNode(answer.leader_id, endpoint))
        if (answer.leader_epoch, answer.leader_id) <= (self._epoch, self._id):
            return False
        self._id, self._epoch = answer.leader_id, answer.leader_epoch
        return True

    def _served(self, address: Address, epoch: int, answer: QuorumState) -> Leader:
        """Return the node at ``address`` as the leader, because it served a Fetch with that epoch."""
        self._id = answer.leader_id if answer.leader_id >= 0 else self._id
        if self._id >= 0:
            self._nodes.learn(ClusterNode(self._id, address))
        return Leader(self._id, epoch, address)

    # --- why there is none ---------------------------------------------------------------------------------------

    def failed(self) -> NodeError:
        """Return the error that explains best why no leader was found."""
        there = ", ".join(name_of(*address) for address in self._nodes.addresses())
        explained = self._behind(there) or self._contradiction()
        if explained is not None:
            return explained
        is_leaderless = bool(self._round.claims) and (self._id < 0 or self._is_without_majority())
        if self._round.failure is not None and not is_leaderless:
            return self._round.failure
        if self._id >= 0 and not is_leaderless:
            return self._unreachable(there)
        hint = f"do most voters run? {_WAIT}"
        silent = ", ".join(dict.fromkeys(self._round.silent))
        more = f", and no answer comes from {silent}" if silent else ""
        return NoLeaderError(there, f"no controller leads the quorum: an election goes on{more}", hint=hint)

    def _unreachable(self, there: str) -> NodeError:
        """Return the error for a leader that nodes named: it did not answer, or its address is not known."""
        named = f"controller {self._id} is named as the leader (epoch {self._epoch})"
        leader = self._nodes.by_id.get(self._id)
        if leader is not None:
            reason = f"{named}, and did not confirm it in time"
            return SourceTimeoutError(name_of(*leader.address), reason, api=FETCH.name, hint=_WAIT)
        every = "name every controller in the list"
        if self._round.was_cut_short:
            reason = f"{named}; time was up before all of these addresses were asked"
            return SourceTimeoutError(there, reason, api=FETCH.name, hint=f"{every}; {_WAIT}")
        reason = f"controller {self._id} leads (epoch {self._epoch}), but none of these addresses is its own"
        return LeaderNotListedError(there, f"{reason}, and no controller says where it listens", hint=every)

    def _behind(self, there: str) -> NoLeaderError | None:
        """Return an error if all controllers answer, and each with an earlier epoch than the caller knows."""
        newest = max((claim.epoch for claim in self._round.claims.values()), default=-1)
        if self._id >= 0 or self._round.failure is not None or not 0 <= newest < self._epoch:
            return None
        reason = f"every controller is at epoch {newest} or earlier, and epoch {self._epoch} was seen before"
        hint = "nodes that missed an election catch up; if the quorum was formatted again, start kshell again"
        return NoLeaderError(there, reason, hint=hint)

    def _is_without_majority(self) -> bool:
        """Whether at least half of the controllers, and at least two, do not answer, among them the named leader.

        Then the quorum probably has no majority and no leader. A single silent controller may only be unreachable from
        here, or missing in the list. From 4.0 on (KIP-996), a voter that has lost its leader goes on naming it until
        it hears of the next one, so its claim proves nothing.
        """
        named = self._nodes.by_id.get(self._id)
        silent = set(self._round.silent)
        if named is None or name_of(*named.address) not in silent:
            return False
        return len(silent) >= max(2, len(self._round.claims))

    def _contradiction(self) -> SourceTimeoutError | None:
        """Return an error if the claims of this round contradict each other, as when two nodes name each other."""
        for address, claim in self._round.claims.items():
            named = self._nodes.by_id.get(claim.leader_id)
            theirs = None if named is None else self._round.claims.get(named.address)
            if claim.leader_id < 0:
                continue
            if named is not None and named.address == address and claim.asked_epoch > 0:
                reason = f"names itself (controller {claim.leader_id}) as the leader, and refuses to serve"
                return _contradictory(claim.node, f"{reason} epoch {claim.asked_epoch}")
            if theirs is not None and theirs.leader_id not in (-1, claim.leader_id):
                epochs = f"(epochs {claim.epoch} and {theirs.epoch})"
                back = self._nodes.by_id.get(theirs.leader_id)
                if back is not None and back.address == address:
                    reason = f"controllers {claim.node} and {theirs.node} each name the other as leader {epochs}"
                else:
                    reason = f"{claim.node} names controller {claim.leader_id} as leader, and that one ({theirs.node})"
                    reason += f" names controller {theirs.leader_id} {epochs}"
                return _contradictory(f"{claim.node}, {theirs.node}", reason)
            if theirs is None and 0 < claim.asked_epoch < claim.epoch:
                reason = "names a later epoch each time kshell asks with the epoch that it named before"
                return _contradictory(claim.node, f"{reason} (now {claim.epoch}, led by controller {claim.leader_id})")
        return None


def _contradictory(node: str, reason: str) -> SourceTimeoutError:
    hint = (
        "an election ends by itself; if this stays, check that these addresses are the controllers' own, and read the"
        " controllers' logs"
    )
    return SourceTimeoutError(node, reason, api=FETCH.name, hint=hint)
