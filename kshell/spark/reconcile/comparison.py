"""Compare the copies of a cluster's log by Raft's rules: which of them count, and up to which offset.

Copies count if they are of one history, the largest group of copies that belong together. Two copies belong together
if they have batches in common, if one begins where the other ends, or if their states share an id that no two clusters
share, such as a topic id. Two copies contradict each other if their logs diverge and no election explains it. So a
directory of another cluster under the same cluster id is left out, even if it has no offset in common with the others.

The reference is the copy of the group that would win an election. Records of the other copies fill its gaps, as far as
they are known to be records of the same history.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from kshell.protocol.primitives import Uuid
from kshell.sources.copies.agreement import (
    DIVERGED,
    NOT_COMPARED,
    REFERENCE,
    CopyComparison,
    compare_copies,
    contradiction,
    majority_with,
    rank,
)
from kshell.sources.copies.agreement import cluster_of as most_common_cluster
from kshell.sources.copies.ids import cluster_specific_ids
from kshell.sources.copies.logs import Pair, Pairs, read_together
from kshell.sources.directory.source import without_collector
from kshell.spark.files.plan import FilePlan
from kshell.spark.reconcile.inventory import Checkpoint, Inventory, PlannedCopy
from kshell.spark.reconcile.logs import NO_LIMIT, Log, log_of, merge

_APART = (DIVERGED, NOT_COMPARED)


class Comparison(NamedTuple):
    """The result of :func:`compare`. All keys are indexes of ``inventory.copies``.

    Attributes:
        plans, logs: the file plans, and the log, of every copy that is not excluded.
        limits: copies of the common history -> the offset before which their records count; the reference is first.
        log: the merged log of the copies in ``limits``, each offset once.
        agreement: the verdicts on the copies, in the order of ``plans``; ``None`` if there was only one copy.
        same_until: copy -> the offset before which its records are those of the reference.
        foreign: copy of another cluster -> the evidence for that.
        compared: the copies after reading; empty if there was only one.
    """

    inventory: Inventory
    plans: Mapping[int, list[FilePlan]]
    logs: Mapping[int, Log]
    limits: Mapping[int, int]
    log: Log
    agreement: CopyComparison | None = None
    same_until: Mapping[int, int] = {}
    foreign: Mapping[int, str] = {}
    compared: Mapping[int, PlannedCopy] = {}


def compare(inventory: Inventory, checkpoint: Checkpoint | None, piece_bytes: int) -> Comparison:
    """Read several copies and compare them. A lone copy is not read: its plan by headers is enough.

    ``piece_bytes`` is the approximate size of a run of batches. Raises SourceError if a file cannot be read, and
    FileNotFoundError if it changed since it was listed (the caller lists again).
    """
    if len(inventory.plans) < 2:
        logs = {index: log_of(index, plans) for index, plans in inventory.plans.items()}
        log = merge([*logs.values()]) if logs else Log(())
        return Comparison(inventory, inventory.plans, logs, dict.fromkeys(logs, NO_LIMIT), log)
    indexes = list(inventory.plans)
    with without_collector():
        copies = [PlannedCopy(inventory, index, checkpoint, piece_bytes) for index in indexes]
        pairs = read_together(copies)
        _add_previous(copies, pairs)
        history = _History(copies, pairs)
        group = history.largest_group()
        committed = (checkpoint.committed if checkpoint is not None else None) or 0
        result = compare_copies(copies, pairs, group, committed)
        reference = next(place for place, copy in enumerate(copies) if copy is result.reference)
        limits, same_until = {indexes[reference]: NO_LIMIT}, {}
        for place in sorted(group, key=lambda place: rank(copies[place]), reverse=True):
            if place != reference:
                pair = pairs.of(place, reference)
                limits[indexes[place]] = _limit(copies[place], copies[reference], pair)
                if pair.to is not None:
                    same_until[indexes[place]] = pair.to
        outside = [place for place in range(len(copies)) if place not in group]
        foreign = {indexes[place]: why for place in outside if (why := history.foreign_evidence(place, group))}
    plans = {index: copy.plans for index, copy in zip(indexes, copies, strict=True)}
    logs = {index: log_of(index, plans[index]) for index in indexes}
    log = merge([logs[index].between(0, limit) for index, limit in limits.items()])
    compared = dict(zip(indexes, copies, strict=True))
    return Comparison(inventory, plans, logs, limits, log, result, same_until, foreign, compared)


def _add_previous(copies: Sequence[PlannedCopy], pairs: Pairs) -> None:
    """Extend the common range of each pair: copies that both match the tables at an offset match each other there."""
    for (first, second), pair in pairs.items():
        earlier, later = copies[first].previous, copies[second].previous
        if earlier is None or later is None or earlier.since is None or later.since is None:
            continue
        since, to = max(earlier.since, later.since), min(earlier.to, later.to)
        for copy, peer in ((earlier, copies[second]), (later, copies[first])):
            if copy.row["comparedWith"] == peer.path:  # both may begin with damage
                since = max(since, copy.row["sameFrom"])
        if since < to and (pair.parting is None or pair.parting.offset >= to):
            pair.since, pair.to = since, max(pair.to or 0, to)


def _limit(copy: PlannedCopy, reference: PlannedCopy, pair: Pair) -> int:
    """Return the offset before which a copy's records count: they are those of the reference, or fill its gaps."""
    limit = reference.epoch_end(copy.last_epoch) if reference.log_end is not None else NO_LIMIT
    if pair.parting is not None:
        limit = min(limit, pair.parting.offset if pair.to is None else pair.to)
    return limit


def is_conclusive(comparison: Comparison) -> bool:
    """Whether a comparison that began at the checkpoint says what a comparison of the whole logs would say.

    It does not know with what the earlier records of a copy were compared. So it is trusted to say that a copy agrees
    with its peers up to its end, and that nothing is new of one that did not agree.
    """
    start, agreement = comparison.inventory.start, comparison.agreement
    if start is None or agreement is None:
        return True
    row, reference = start.copy_rows.get(agreement.reference.path, {}), agreement.reference
    is_same_reference = (row.get("state"), row.get("lastEpoch")) == (REFERENCE, reference.last_epoch)
    for copy, verdict in zip(comparison.compared.values(), agreement.verdicts, strict=True):
        row, peer = start.copy_rows.get(copy.path, {}), verdict.peer
        is_unchanged = (row.get("endOffset"), row.get("lastEpoch")) == (copy.end, copy.last_epoch)
        state, same_from = row.get("state"), row.get("sameFrom")
        if verdict.state in _APART or state in _APART:
            is_known = state == verdict.state or (state == DIVERGED and copy.previous is not None)
            if not (is_known and is_unchanged and is_same_reference and same_from == verdict.since):
                return False
        elif peer is not None and verdict.since is not None:
            is_peer = row.get("comparedWith") == peer.path
            first = max(copy.oldest or 0, peer.oldest or 0, same_from or 0 if is_peer else 0)
            if verdict.since > first or not (is_unchanged or verdict.to == copy.log_end):
                return False
    return True


class _History:
    """Decides which copies belong to one history; a ``place`` is a position in the list of copies."""

    def __init__(self, copies: Sequence[PlannedCopy], pairs: Pairs) -> None:
        self._copies = copies
        self._pairs = pairs
        self._known_ids: dict[int, frozenset[Uuid]] = {}

    def largest_group(self) -> list[int]:
        """Return the places of the copies that count, the one that would win an election first.

        Of several groups the one with the most copies counts. Of equal ones: the group with a copy that the tables
        were made from, then the group whose first copy would win an election.
        """
        copies, cluster = self._copies, most_common_cluster(self._copies)
        candidates = [place for place, copy in enumerate(copies) if copy.cluster_id in (None, cluster)]
        candidates.sort(key=lambda place: rank(copies[place]), reverse=True)
        groups = [self._group_of(seed, candidates) for seed in candidates]
        return max(groups, key=lambda group: (len(group), any(copies[place].is_trusted for place in group)))

    def foreign_evidence(self, place: int, group: Sequence[int]) -> str | None:
        """Find evidence that a copy outside the group is of another cluster, not of another history of this cluster.

        Returns:
            The evidence, as a sentence without a full stop. ``None`` if the copy has a batch or an id in common with
            the group, or has no offset to compare. A different record at offset 0 alone is no evidence if an election
            may have replaced it.
        """
        pairs = {peer: self._pairs.of(place, peer) for peer in group}
        parted = [peer for peer, pair in pairs.items() if pair.parting is not None]
        if not parted or any(pair.since is not None for pair in pairs.values()):
            return None
        ids, group_ids = self._ids(place), frozenset[Uuid]().union(*(self._ids(peer) for peer in group))
        if ids & group_ids:
            return None
        evidence = []
        at_start = [peer for peer in parted if (parting := pairs[peer].parting) and parting.offset == 0]
        if at_start and not all(self._are_compatible(place, peer) for peer in parted):
            path = self._copies[at_start[0]].path
            evidence.append(f"its log begins at offset 0 with another record than that of {path}")
        if ids and group_ids:
            none = "its only id" if len(ids) == 1 else f"none of its {len(ids)} ids"
            verb = "is unknown to" if len(ids) == 1 else "is known to"
            evidence.append(f"{none} of topics, ACLs, directories and starts of nodes {verb} this cluster's copies")
        return ", and ".join(evidence) or None

    def _group_of(self, seed: int, candidates: Sequence[int]) -> list[int]:
        """Return ``seed`` and the candidates that belong to it. Ids are compared only after records, for the rest."""
        group = [seed]
        for shows in (self._share_records, self._share_ids):
            while more := [place for place in candidates if place not in group and self._joins(place, group, shows)]:
                group.append(more[0])
        return group

    def _joins(self, place: int, group: Sequence[int], shows: Callable[[int, int], bool]) -> bool:
        """Whether a copy contradicts no member of the group and ``shows`` links it to one of them."""
        return all(self._are_compatible(place, peer) for peer in group) and any(shows(place, peer) for peer in group)

    def _share_records(self, place: int, peer: int) -> bool:
        """Whether the logs of two copies show that they belong together."""
        copy, peer_copy = self._copies[place], self._copies[peer]
        if not copy.end or not peer_copy.end:
            return True  # an empty log is a prefix of every other log
        if self._pairs.of(place, peer).since is not None or (copy.is_trusted and peer_copy.is_trusted):
            return True
        return _begins_at_end_of(copy, peer_copy) or _begins_at_end_of(peer_copy, copy)

    def _share_ids(self, place: int, peer: int) -> bool:
        return not self._ids(place).isdisjoint(self._ids(peer))

    def _ids(self, place: int) -> frozenset[Uuid]:
        if place not in self._known_ids:
            self._known_ids[place] = cluster_specific_ids(self._copies[place].listing)
        return self._known_ids[place]

    def _are_compatible(self, place: int, peer: int) -> bool:
        """Whether two copies can be of one history: their logs do not diverge, or elections alone explain it."""
        copies, pair = self._copies, self._pairs.of(place, peer)
        if pair.parting is None:
            return True
        behind, ahead = sorted((place, peer), key=lambda index: rank(copies[index]))
        if contradiction(copies[behind], copies[ahead], pair.parting.offset) is not None:
            return False
        # No election truncates records of its last epoch that most voters have.
        return not majority_with(copies, self._pairs, behind, pair.parting.offset, range(len(copies)))


def _begins_at_end_of(later: PlannedCopy, earlier: PlannedCopy) -> bool:
    """Whether the log of one copy begins at the end offset of another, in the same epoch or a later one."""
    if later.start is None or later.start != earlier.end:
        return False
    return earlier.last_epoch <= later.epochs[0][0]
