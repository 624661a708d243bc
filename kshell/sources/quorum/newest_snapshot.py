"""Ask a running quorum for its newest snapshot, which is the one that the leader names to a replica without a log.

An observer keeps the snapshot that it began with. Servers later write newer ones, but the observer is not notified.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshell.client.codes import failure
from kshell.client.leader import FetchPosition, SnapshotId, fetch, find_leader
from kshell.metadata.health.check import SnapshotAge
from kshell.protocol.batches import read_header
from kshell.protocol.messages.quorum import FETCH

if TYPE_CHECKING:
    from kshell.sources.quorum.source import QuorumSource
    from kshell.sources.source import Loaded

_NAMES_IT = 17
"""From this version of Fetch on (Kafka 3.9) leaders name a snapshot at offset 0 whenever there is one; older leaders
only if the log before it is deleted.
"""


def _newest_snapshot(source: QuorumSource) -> tuple[SnapshotId | None, bool]:
    """Ask the leader once for its newest snapshot. Raises NodeError.

    Returns:
        The snapshot, if any, and whether ``None`` means that there is none.
    """
    nodes, leader = source.nodes, source.observer.leader
    if leader is None:  # an election goes on
        leader = find_leader(nodes, timeout=nodes.settings.api_timeout, known_epoch=source.observer.epoch)
    connection = nodes.at(leader.address)
    answer = fetch(connection, FetchPosition(leader.epoch), nodes.cluster_id, max_bytes=1)
    if answer.quorum.error:
        raise failure(connection.node, answer.quorum.error, FETCH.name)
    return answer.snapshot, answer.snapshot is not None or answer.version >= _NAMES_IT


def snapshot_age(source: QuorumSource, loaded: Loaded) -> SnapshotAge | None:
    """The age of the newest snapshot, compared with the fetched log; ``None`` if it is not known. Raises NodeError."""
    newest, is_known = _newest_snapshot(source)
    segments = loaded.listing.segments
    if not is_known or not segments or not segments[0].data:
        return None
    first = read_header(segments[0].data, 0).base_timestamp
    size = sum(segment.size for segment in segments)
    taken = None if newest is None else _taken(source, loaded, newest.end_offset)
    if newest is not None and taken is None:
        return None
    return SnapshotAge(taken, first, loaded.last_timestamp, size, is_running=True)


def _taken(source: QuorumSource, loaded: Loaded, end_offset: int) -> int | None:
    """The time of the last record in a snapshot, from the loaded snapshot or from the log; ``None`` if unknown."""
    if loaded.snapshot is not None and loaded.snapshot.end_offset == end_offset:
        return loaded.snapshot.timestamp
    last = next(iter(source.batches(end_offset - 1)), None)
    return None if last is None else last.max_timestamp
