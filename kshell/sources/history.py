"""The part of the log that an observer did not need: what came before its snapshot, while the leader still has it."""

from __future__ import annotations

from kshell.client.codes import failure
from kshell.client.leader import find_leader
from kshell.client.nodes import Nodes
from kshell.client.observe import Position, fetch
from kshell.errors import IncompleteLogError
from kshell.protocol.messages.quorum import FETCH
from kshell.protocol.verify import Chain, RisingEpochs
from kshell.sources.mirror import Mirror
from kshell.sources.observer import Observer


def older_log(observer: Observer, nodes: Nodes, start: int, end: int) -> Mirror:
    """The batches from offset ``start`` (or the batch around it) up to ``end``. Raises NodeError, DataError.

    Which epoch a position has is not known here; the leader takes any epoch whose end lies behind the position, so its
    own does for all of them but the log's first: there it must be the epoch of the oldest snapshot.
    """
    leader = observer.leader
    if leader is None:  # an election goes on
        leader = find_leader(nodes, timeout=nodes.settings.api_timeout, known_epoch=observer.epoch)
    connection = nodes.at(leader.address)
    found: Mirror | None = None
    chain: Chain | None = None
    position, epoch = start, leader.epoch
    while position < end:
        answer = fetch(connection, Position(leader.epoch, position, epoch), nodes.cluster_id)
        if answer.quorum.error:
            raise failure(connection.node, answer.quorum.error, FETCH.name)
        if answer.snapshot is not None and position == answer.log_start and epoch > 0:
            epoch = min(epoch - 1, answer.snapshot.epoch)  # the newest one's; the oldest's is not above it
            continue
        if answer.snapshot is not None or not answer.records:
            raise IncompleteLogError(
                f"{connection.node}: the log before offset {end} is gone", hint="the leader has deleted it meanwhile"
            )
        chain = chain or Chain(RisingEpochs(), None)
        batches = [batch for batch in chain.walk(answer.records, connection.node) if batch.last_offset < end]
        chain.torn = None
        if not batches:
            break
        found = found or Mirror(observer.nodes.kind, batches[0].base_offset)
        found.append(batches)
        position, epoch = found.end, leader.epoch
    return found or Mirror(observer.nodes.kind, start)
