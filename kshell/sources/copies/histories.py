"""Whether copies that were compared can be of one history at all: a plan to recover must not choose between two.

Copies and their comparison come in, sentences for the user go out. Raft's order (epoch, then length) is right only
among copies of one history. A directory of another cluster without ``meta.properties``, a disk that was restored from a
backup, or a snapshot that was copied into the wrong directory may have the higher epoch, and be wrong.

Source: KIP-595, and Ongaro and Ousterhout, *In Search of an Understandable Consensus Algorithm*, 5.4.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, product
from typing import NamedTuple

from kshell.protocol.primitives import Uuid
from kshell.sources.copies.agreement import (
    NOT_COMPARED,
    OTHER_CLUSTER,
    CopyComparison,
    CopyVerdict,
    contradiction,
    latest_epoch,
    majority_with,
    majority_without,
    rank,
    snapshot_differences,
)
from kshell.sources.copies.ids import cluster_specific_ids
from kshell.sources.copies.logs import Copy, Pairs
from kshell.sources.directory.describe import snapshot_id
from kshell.sources.directory.files import SnapshotFile

_WRONG_ID = "one of the cluster ids in meta.properties is wrong"


class Contradiction(NamedTuple):
    """What shows that a copy is not of the history of the others, or not of one history itself: a sentence."""

    copy: Copy
    text: str


def contradictions(comparison: CopyComparison, pairs: Pairs) -> list[Contradiction]:
    """What shows that the copies of the reference's cluster have two histories; empty if nothing does.

    Args:
        comparison: of all copies that were given.
        pairs: how each two of them compare, by their indexes in ``comparison.verdicts``.
    """
    contradictions = _Histories(comparison, pairs).contradictions()
    return list({contradiction.text: contradiction for contradiction in contradictions}.values())


class _Histories:
    """Looks for contradictions; an ``index`` is that of a copy and of its verdict."""

    def __init__(self, comparison: CopyComparison, pairs: Pairs) -> None:
        self._comparison = comparison
        self._pairs = pairs
        self._copies = [verdict.copy for verdict in comparison.verdicts]
        verdicts = enumerate(comparison.verdicts)
        self._members = {index: verdict for index, verdict in verdicts if verdict.state != OTHER_CLUSTER}
        self._latest = latest_epoch(verdict.copy for verdict in self._members.values())
        self._known_ids: dict[int, frozenset[Uuid]] = {}

    def contradictions(self) -> Iterator[Contradiction]:
        yield from self._wrong_cluster_ids()
        for index, verdict in self._members.items():
            why = (
                self._log_conflict(index, verdict)
                or self._snapshot_conflict(verdict)
                or self._unrelated(index, verdict)
            )
            if why is not None:
                yield Contradiction(verdict.copy, why)
        yield from self._falling_epochs()
        yield from self._conflicts_apart()
        for index, verdict in self._members.items():
            why = self._snapshot_ahead(index, verdict.copy)
            if why is not None:
                yield Contradiction(verdict.copy, why)
        text = _outvoted_snapshot(self._comparison)
        if text is not None:
            yield Contradiction(self._comparison.reference, text)

    def _wrong_cluster_ids(self) -> Iterator[Contradiction]:
        """Cluster ids that cannot be right, or that leave open which cluster is meant."""
        reference = self._comparison.reference
        ids = [copy.cluster_id for copy in self._copies]
        for index, copy in enumerate(self._copies):
            if index in self._members:
                continue
            twin = next((peer for peer in self._members if self._pairs.of(index, peer).since is not None), None)
            if twin is not None:
                yield Contradiction(
                    copy,
                    f"{copy.path} has batches of {self._copies[twin].path}, byte for byte, and its cluster id is"
                    f" {copy.cluster_id}, not {reference.cluster_id}: {_WRONG_ID}",
                )
            elif ids.count(copy.cluster_id) >= ids.count(reference.cluster_id):
                yield Contradiction(
                    copy,
                    f"as many copies are of cluster {copy.cluster_id} ({copy.path}) as of {reference.cluster_id}"
                    f" ({reference.path}): nothing says which of them is to be recovered",
                )

    def _log_conflict(self, index: int, verdict: CopyVerdict) -> str | None:
        """Two logs that differ, and no election explains it."""
        parted, copy, peer = verdict.divergence, verdict.copy, verdict.peer
        if parted is None or peer is None:
            return None
        differ = _unexplained(copy, peer, parted.offset)
        if parted.contradiction is not None:
            return f"{differ}: {parted.contradiction}"
        majority = self._majority_with(index, parted.offset)
        if majority:
            return (
                f"{differ}: most voters ({_listed(majority)}) have what {copy.path} has there, of epoch"
                f" {copy.last_epoch}, and know of no later epoch. So it is committed, and every later leader has it"
            )
        ids = self._ids(index)
        if parted.offset == 0 and ids and ids.isdisjoint(self._ids(self._index_of(peer))):
            return (
                f"{copy.path} and {peer.path} differ from the first record on, and have no id of a topic, a node or a"
                " directory in common: was a controller formatted again?"
            )
        return None

    def _majority_with(self, index: int, offset: int) -> list[int]:
        """The voters that have the records of a copy's last epoch after an offset, if they are most of its voters.

        None of them knows a later epoch: a later leader may still replace records of an epoch before it that most
        voters have (figure 8 of the Raft paper).
        """
        last_epoch = self._copies[index].last_epoch
        epoch_by_peer = {peer: member.copy.stated_epoch for peer, member in self._members.items()}
        peers = [peer for peer, epoch in epoch_by_peer.items() if epoch is not None and epoch <= last_epoch]
        return majority_with(self._copies, self._pairs, index, offset, peers)

    def _snapshot_conflict(self, verdict: CopyVerdict) -> str | None:
        """A snapshot of one copy that the log of another contradicts, and that node does not only lag behind."""
        peers = [member.copy for member in self._members.values() if member.copy is not verdict.copy]
        differences = snapshot_differences(verdict.copy, peers, self._latest)
        return next((difference.text for difference in differences if not difference.is_explained), None)

    def _falling_epochs(self) -> Iterator[Contradiction]:
        """Pairs of snapshots where the earlier end has the later epoch, or one end has two epochs."""
        for mine, theirs in combinations([verdict.copy for verdict in self._members.values()], 2):
            for file, their_file in product(mine.snapshots, theirs.snapshots):
                if not (file.end_offset and their_file.end_offset) or file.epoch is None or their_file.epoch is None:
                    continue
                ends, epochs = file.end_offset - their_file.end_offset, file.epoch - their_file.epoch
                if ends * epochs < 0 or (ends == 0 and epochs != 0):
                    names = f"{snapshot_id(file)} of {mine.path} and {snapshot_id(their_file)} of {theirs.path}"
                    committed = "each says that its last record was committed, and an epoch never falls"
                    yield Contradiction(theirs, f"snapshots {names} are not of one log: {committed}")

    def _conflicts_apart(self) -> Iterator[Contradiction]:
        """Two logs that have no offset in common with the reference, and that no election makes differ."""
        apart = [index for index, verdict in self._members.items() if verdict.state == NOT_COMPARED]
        for indexes in combinations(sorted(apart, key=lambda index: rank(self._copies[index])), 2):
            behind, ahead = (self._copies[index] for index in indexes)
            parting = self._pairs.of(*indexes).parting
            why = None if parting is None else contradiction(behind, ahead, parting.offset)
            if parting is not None and why is not None:
                yield Contradiction(behind, f"{_unexplained(behind, ahead, parting.offset)}: {why}")

    def _unrelated(self, index: int, verdict: CopyVerdict) -> str | None:
        """A copy without a batch in common with the others, and nothing else shows that it is of their history."""
        copy, reference = verdict.copy, self._comparison.reference
        if copy is reference or not copy.end or verdict.since is not None or verdict.divergence is not None:
            return None
        ids, reference_ids = self._ids(index), self._ids(self._index_of(reference))
        has_one_id = reference.cluster_id is not None and copy.cluster_id == reference.cluster_id
        if has_one_id or not ids or not reference_ids or not ids.isdisjoint(reference_ids):
            return None  # empty: not known
        return (
            f"{copy.path} and {reference.path} have no batch in common, and no id of a topic, a node or a directory:"
            " nothing shows that they are of one cluster"
        )

    def _snapshot_ahead(self, index: int, copy: Copy) -> str | None:
        """A snapshot that ends after its own copy's log: does anything else in the copy contradict it?"""
        newest = copy.newest
        if newest is None or copy.log_end is None or (newest.end_offset or 0) <= copy.log_end:
            return None
        name = f"snapshot {snapshot_id(newest)} of {copy.path}, which ends after its log,"
        if self._is_confirmed(index, newest):
            return None
        if copy.stated_epoch is not None and newest.epoch is not None and 0 <= copy.stated_epoch < newest.epoch:
            return f"{name} has epoch {newest.epoch}, and quorum-state knows epochs up to {copy.stated_epoch}"
        before = _ids_without(copy, newest)
        peers = [peer for peer in self._members if peer != index and self._pairs.of(index, peer).since is not None]
        known_ids = before.union(*(self._ids(peer) for peer in peers))
        if before and (ids := _ids_of(copy, newest)) and ids.isdisjoint(known_ids):
            return f"{name} has no id of a topic, a node or a directory that the log has"
        return None

    def _is_confirmed(self, index: int, file: SnapshotFile) -> bool:
        """Whether the log of another copy has the last record of a snapshot, with its epoch and time."""
        last = (file.end_offset or 0) - 1
        return any(
            peer != index and (verdict.copy.start or 0) <= last < (verdict.copy.log_end or 0)
            for peer, verdict in self._members.items()
            if verdict.copy.epoch_at(last) == file.epoch and file.path not in verdict.copy.refuted
        )

    def _index_of(self, copy: Copy) -> int:
        return next(index for index, candidate in enumerate(self._copies) if candidate is copy)

    def _ids(self, index: int) -> frozenset[Uuid]:
        if index not in self._known_ids:
            self._known_ids[index] = cluster_specific_ids(self._copies[index].source.listing())
        return self._known_ids[index]


def _unexplained(copy: Copy, peer: Copy, offset: int) -> str:
    return f"{copy.path} and {peer.path} differ from offset {offset} on, and no election explains it"


def _ids_without(copy: Copy, newest: SnapshotFile) -> frozenset[Uuid]:
    """The ids in the log and the older snapshots of a copy; empty if without the newest one they make no state."""
    listing = copy.source.listing()
    older = tuple(file for file in listing.snapshots if file.path != newest.path)
    return cluster_specific_ids(listing._replace(snapshots=older))


def _ids_of(copy: Copy, newest: SnapshotFile) -> frozenset[Uuid]:
    """The ids in a snapshot of a copy."""
    return cluster_specific_ids(copy.source.listing()._replace(snapshots=(newest,), segments=()))


def _outvoted_snapshot(comparison: CopyComparison) -> str | None:
    """A sentence if the newest records are in one snapshot alone, and whole logs of most voters end before it."""
    reference = comparison.reference
    newest = reference.newest
    if newest is None or (newest.end_offset or 0) <= (reference.log_end or 0):
        return None
    majority, end = majority_without(comparison)
    if not majority or end >= (newest.end_offset or 0) or (reference.log_end or 0) > end:
        return None  # the log next to the snapshot goes on where theirs end
    committed = f"says that records up to offset {(newest.end_offset or 0) - 1} were committed"
    return (
        f"snapshot {snapshot_id(newest)} of {reference.path} {committed}, and the logs of most voters"
        f" ({_listed(majority)}) are whole and end at offset {end}: they are older copies, or of another history"
    )


def _listed(voters: Sequence[int]) -> str:
    return ", ".join(map(str, voters))
