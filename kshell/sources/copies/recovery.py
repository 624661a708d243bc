"""Recover a quorum of one voter from the surviving copies of a log: read them (:func:`survey`), :func:`write` its log.

A new quorum starts from one copy. Kafka's raft layer takes the voters from the last VotersRecord of the log, committed
or not (KIP-853). So a VotersRecord that is appended to the log makes one node the only voter, and as leader it commits
the whole log. With kraft.version 0 the voters are only in the servers' properties and in ``quorum-state``.

Source: ``KafkaRaftClient``, ``QuorumState``, ``FileQuorumStateStore``, ``KRaftControlRecordStateMachine``.
"""

from __future__ import annotations

import json
import time
import uuid as uuids
from collections.abc import Sequence
from typing import NamedTuple

from kshell.client.address import Address, addresses, name_of
from kshell.errors import DataError, UsageError
from kshell.protocol.batches import write_batch
from kshell.protocol.control import CONTROL_TYPES, KRAFT_VOTERS, control_key
from kshell.protocol.encoder import encode
from kshell.protocol.primitives import ZERO_UUID, Uuid
from kshell.sources.copies.agreement import (
    OTHER_CLUSTER,
    CopyComparison,
    CopyVerdict,
    cluster_of,
    compare_copies,
    latest_epoch,
)
from kshell.sources.copies.histories import Contradiction, contradictions
from kshell.sources.copies.ids import RESERVED
from kshell.sources.copies.joined import JoinedLog
from kshell.sources.copies.logs import Copy, UnreadCopy, open_copies, read_together
from kshell.sources.directory.files import METADATA_DIRECTORY
from kshell.sources.directory.log import Progress
from kshell.sources.directory.sidecar_files import STATE
from kshell.sources.directory.writer import MetadataWriter

_VOTERS = next(kind for kind in CONTROL_TYPES.values() if kind.schema is KRAFT_VOTERS)
_LARGEST_ID = (1 << 31) - 1
_HINT = "--voters 3000@controller-1:9093, with the id and the address of the controller that is to start"


class Voter(NamedTuple):
    """A controller of the new quorum: its node id, where it listens, and the id of its metadata directory.

    ``directory_id`` is ``None`` until it is chosen, if the user names none.
    """

    id: int
    address: Address
    directory_id: Uuid | None = None

    @property
    def endpoint(self) -> str:
        """``ID@HOST:PORT``, the form of an entry of ``controller.quorum.voters``."""
        return f"{self.id}@{name_of(*self.address)}"


def parse_voter(text: str) -> Voter:
    """Parse ``ID@HOST:PORT`` or ``ID@HOST:PORT:DIRECTORY_ID``.

    Raises:
        UsageError: the text has neither form.
    """
    node, mark, rest = text.partition("@")
    directory_id = None
    head, colon, last = rest.rpartition(":")
    if colon and not last.isdigit() and ":" in head:
        try:
            rest, directory_id = head, Uuid.parse(last)
        except ValueError:
            raise UsageError(f"{text}: {last} is not the id of a directory", hint=_HINT) from None
    if not mark or not (node.isascii() and node.isdigit() and len(node) <= 10 and int(node) <= _LARGEST_ID):
        raise UsageError(f"{text}: before the @ must be the id of a node, 0 to {_LARGEST_ID}", hint=_HINT)
    (address, *more) = addresses(rest)
    if more:
        raise UsageError(f"{text}: more than one address", hint=_HINT)
    if directory_id is not None and int.from_bytes(directory_id, "big") < RESERVED:
        raise UsageError(f"{text}: {last} is one of the ids that Kafka reserves", hint=_HINT)
    return Voter(int(node), address, directory_id)


def new_directory_id() -> Uuid:
    """Make a random directory id as Kafka does: no reserved one, and none whose text begins with a dash."""
    while True:
        directory_id = Uuid(uuids.uuid4().bytes)
        if not str(directory_id).startswith("-") and int.from_bytes(directory_id, "big") >= RESERVED:
            return directory_id


class Survivors(NamedTuple):
    """The surviving copies, how they relate, and the log that a new quorum is to start from."""

    copies: list[Copy]
    comparison: CopyComparison
    log: JoinedLog
    contradictions: list[Contradiction]
    """What shows that the copies have two histories: then no plan must choose between them."""
    unread: list[UnreadCopy]

    @property
    def reference(self) -> Copy:
        """The copy whose last record has the highest epoch, and of those the longest: it would win an election."""
        return self.comparison.reference

    @property
    def cluster_id(self) -> str | None:
        """The id of the cluster, which files next to another copy may name if those of the reference are missing."""
        return cluster_of(self.of_cluster)

    @property
    def is_sound(self) -> bool:
        """Whether the new log has everything that is known of one history, and the reference is undamaged."""
        is_whole = not self.reference.damage and self.log.certain >= (self.reference.end or 0)
        return is_whole and not self.contradictions and not self.known_losses

    @property
    def known_losses(self) -> list[str]:
        """Sentences on records that there were, by the files next to damaged logs, and that no copy has any more."""
        named = max(self.of_cluster, key=lambda copy: copy.named_end)
        snapshot = (
            f"a snapshot of {named.path} is damaged, and its name says that records up to offset {named.named_end - 1}"
            " had been committed"
        )
        return [
            *([snapshot] if named.named_end > self.log.end else []),
            *self._superseded(),
        ]

    def _superseded(self) -> list[str]:
        """Sentences on damaged or torn copies that knew of a later epoch than the reference has records of."""
        unread = [copy for copy in self.of_cluster if copy.damage or copy.torn is not None]
        last_known = [(copy.path, *copy.last_known) for copy in unread if copy.last_known is not None]
        return [
            f"leader-epoch-checkpoint of {path}, whose log cannot be read to its end, knows of epoch {epoch} from"
            f" offset {start} on: if it had records of that epoch, they replaced what {self.reference.path} has there"
            for path, epoch, start in last_known
            if epoch > self.reference.last_epoch
        ]

    @property
    def verdicts(self) -> list[CopyVerdict]:
        """How each copy relates to the reference, in the order in which the paths were given."""
        return self.comparison.verdicts

    @property
    def of_cluster(self) -> list[Copy]:
        """The copies of the reference's cluster; nodes of another cluster may have the same ids."""
        return [verdict.copy for verdict in self.verdicts if verdict.state != OTHER_CLUSTER]

    @property
    def highest_epoch(self) -> int:
        """The highest epoch that any copy or any node's ``quorum-state`` knows."""
        return max(latest_epoch(self.of_cluster), 0)


def survey(paths: Sequence[str], progress: Progress | None) -> Survivors:
    """Read the copies side by side, compare them, and join their logs.

    Raises:
        SourceError: none of them can be read.
        DataError: none has a record.
    """
    copies, unread = open_copies(paths)
    pairs = read_together(copies, progress)
    comparison = compare_copies(copies, pairs)
    if not comparison.reference.end:
        raise DataError("recover: none of the copies has a record", hint="give other copies: brokers have one, too")
    log = JoinedLog(copies, pairs, comparison)
    return Survivors(copies, comparison, log, contradictions(comparison, pairs), unread)


def write(
    directory: str, survivors: Survivors, voter: Voter, kraft_version: int, listener: str, progress: Progress | None
) -> int:
    """Write the log directory from which the voter starts as a quorum of one.

    Args:
        directory: an empty one.
        survivors: the copies, whose joined log is written.
        voter: the node that starts from the directory.
        kraft_version: 0 if the voters are in the servers' properties, else they are written into the log.
        listener: the name of the controllers' listener.
        progress: called with the bytes that were read.

    Returns:
        The offset after the last record that was written.

    Raises:
        DataError: a snapshot has changed since the copies were compared, or no copy knows the cluster's id.
        OSError: what the operating system refuses.
    """
    if survivors.cluster_id is None:
        raise DataError(
            "recover: none of the copies has the id of its cluster, without which no server starts",
            hint="put meta.properties of any node of the cluster next to one of the copies",
        )
    reference = survivors.reference
    writer = MetadataWriter(directory)
    for file in survivors.log.snapshots:
        writer.snapshot(file, progress)
    writer.segments(survivors.log.batches(progress))
    if kraft_version > 0:
        writer.append(_voters_batch(writer, voter, listener), writer.last_epoch, 1)
    writer.finish()
    writer.write(f"{METADATA_DIRECTORY}/{STATE}", [_state(survivors, voter, kraft_version)])
    writer.properties(
        {
            "version": "1",
            "cluster.id": survivors.cluster_id,
            "node.id": str(voter.id),
            "directory.id": str(voter.directory_id),
        }
    )
    writer.bootstrap(reference.source.listing())
    return writer.end


def _voters_batch(writer: MetadataWriter, voter: Voter, listener: str) -> bytes:
    """A control batch for the end of the log, with a VotersRecord that names ``voter`` alone."""
    host, port = voter.address
    endpoint = {"name": listener, "host": host, "port": port}
    message = {
        "version": 0,
        "voters": [
            {
                "voterId": voter.id,
                "voterDirectoryId": voter.directory_id,
                "endpoints": [endpoint],
                "kRaftVersionFeature": {"minSupportedVersion": 0, "maxSupportedVersion": 1},
            }
        ],
    }
    record = (control_key(_VOTERS.number), encode(KRAFT_VOTERS, 0, message))
    now = int(time.time() * 1000)
    return write_batch([record], base_offset=writer.end, epoch=writer.last_epoch, timestamp=now, control=True)


def _state(survivors: Survivors, voter: Voter, kraft_version: int) -> bytes:
    """The text of ``quorum-state``: no leader and no vote, in the highest epoch that any copy knows.

    An election that left no record may have raised the epoch of other nodes, which would refuse a lower one.
    """
    state: dict[str, object] = {"leaderId": -1, "leaderEpoch": survivors.highest_epoch, "votedId": -1}
    if kraft_version > 0:
        state |= {"votedDirectoryId": str(ZERO_UUID), "data_version": 1}
    else:
        state |= {"appliedOffset": 0, "currentVoters": [{"voterId": voter.id}], "data_version": 0}
        state = {"clusterId": "", **state}
    return json.dumps(state, separators=(",", ":")).encode()
