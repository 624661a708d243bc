"""Raft's rules applied to the copies of a log: which copies are of one history, and how far each is to be believed.

The reference is the copy that would win an election among those of one history. Two copies are of one history if they
have batches in common, if one begins where the other ends, or if ids in their states show it that no two clusters
share. They contradict each other where they part and no election explains it. So a directory of another cluster under
the same name is left out, whether it has offsets in common with the others or not.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from kshell.errors import KshellError
from kshell.metadata.families.quorum import QUORUM, VOTERS
from kshell.metadata.image import Image
from kshell.metadata.replay import Replayer
from kshell.protocol.primitives import Uuid
from kshell.sources.copies.agreement import Agreement, agreement, contradiction, rank
from kshell.sources.copies.agreement import cluster_of as most_common_cluster
from kshell.sources.copies.logs import Pair, read_together
from kshell.sources.directory.files import Listing
from kshell.sources.directory.snapshot import load_snapshot
from kshell.sources.directory.source import load_listing, without_collector
from kshell.spark.files.plan import FilePlan
from kshell.spark.reconcile.inventory import Checkpoint, Inventory, PlannedCopy
from kshell.spark.reconcile.logs import NO_LIMIT, Log, log_of, merge

Pairs = Mapping[tuple[int, int], Pair]
_RESERVED = 100
"""Ids below that number have a meaning of their own (``org.apache.kafka.common.Uuid``)."""


class Comparison(NamedTuple):
    """The copies of one history and the log that they make together. Keys are indexes of ``inventory.copies``.

    ``plans`` and ``logs``: of every copy that is not excluded. ``limits``: copy -> the offset before which its records
    count, the reference first. ``log``: the merged log of those copies. With several copies: ``agreement`` (its
    standings in the order of ``plans``); ``same_until``: copy -> the offset before which it is as the reference;
    ``foreign``: copy of another cluster -> what shows that; ``compared``: the copies as they were read.
    """

    inventory: Inventory
    plans: Mapping[int, list[FilePlan]]
    logs: Mapping[int, Log]
    limits: Mapping[int, int]
    log: Log
    agreement: Agreement | None = None
    same_until: Mapping[int, int] = {}
    foreign: Mapping[int, str] = {}
    compared: Mapping[int, PlannedCopy] = {}


def compare(inventory: Inventory, checkpoint: Checkpoint | None, cut: int) -> Comparison:
    """Read several copies and compare them; of a lone copy the plans are enough.

    Raises:
        FileNotFoundError: a file is not what it was when it was listed; list again.
        SourceError: a file cannot be read.
    """
    if len(inventory.plans) < 2:
        logs = {index: log_of(index, plans) for index, plans in inventory.plans.items()}
        log = merge([*logs.values()]) if logs else Log(())
        return Comparison(inventory, inventory.plans, logs, dict.fromkeys(logs, NO_LIMIT), log)
    indexes = list(inventory.plans)
    with without_collector():
        copies = [PlannedCopy(inventory, index, checkpoint, cut) for index in indexes]
        pairs = read_together(copies)
        _add_previous(copies, pairs)
        history = _History(copies, pairs)
        group = history.largest_group()
        committed = (inventory.start.committed if inventory.start is not None else None) or 0
        result = agreement(copies, pairs, group, committed)
        reference = next(place for place, copy in enumerate(copies) if copy is result.reference)
        limits, same_until = {indexes[reference]: NO_LIMIT}, {}
        for place in sorted(group, key=lambda place: rank(copies[place]), reverse=True):
            if place != reference:
                pair = pairs[min(place, reference), max(place, reference)]
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
    """Copies that are the same as the tables are the same as each other."""
    for (first, second), pair in pairs.items():
        earlier, later = copies[first].previous, copies[second].previous
        if earlier is None or later is None or earlier.since is None or later.since is None:
            continue
        since, to = max(earlier.since, later.since), min(earlier.to, later.to)
        if since < to and (pair.parting is None or pair.parting.offset >= to):
            pair.since, pair.to = since, max(pair.to or 0, to)


def _limit(copy: PlannedCopy, reference: PlannedCopy, pair: Pair) -> int:
    """The offset before which a copy's records are those of the reference, also where the reference has none."""
    limit = reference.epoch_end(copy.last_epoch) if reference.log_end is not None else NO_LIMIT
    if pair.parting is not None:
        limit = min(limit, pair.parting.offset if pair.to is None else pair.to)
    return limit


class _History:
    """Which of the copies that were read together are of one history."""

    def __init__(self, copies: Sequence[PlannedCopy], pairs: Pairs) -> None:
        self._copies = copies
        self._pairs = pairs
        self._known_ids: dict[int, frozenset[Uuid]] = {}

    def largest_group(self) -> list[int]:
        """The copies that count, the first by Raft's rules first.

        Of several groups: the one with the most copies, then the one that the tables come from, then the one that
        Raft's rules put first.
        """
        copies, cluster = self._copies, most_common_cluster(self._copies)
        candidates = [place for place, copy in enumerate(copies) if copy.cluster_id in (None, cluster)]
        candidates.sort(key=lambda place: rank(copies[place]), reverse=True)
        groups = [self._group_of(seed, candidates) for seed in candidates]
        return max(groups, key=lambda group: (len(group), any(copies[place].is_trusted for place in group)))

    def foreign_evidence(self, place: int, group: Sequence[int]) -> str | None:
        """What shows that a copy outside the group is of another cluster, and not of another history of this one.

        Returns:
            The evidence, as a sentence without its end; ``None`` where the copy has a batch or an id in common with
            the group, or nothing of it can be compared. A first record of its own proves nothing by itself where an
            election may have replaced it.
        """
        pairs = {peer: self._pair(place, peer) for peer in group}
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
        """The copies that belong to ``seed``. Ids are read only where nothing else shows it."""
        group = [seed]
        for shows in (self._share_records, self._share_ids):
            while more := [place for place in candidates if place not in group and self._joins(place, group, shows)]:
                group.append(more[0])
        return group

    def _joins(self, place: int, group: Sequence[int], shows: Callable[[int, int], bool]) -> bool:
        return all(self._are_compatible(place, peer) for peer in group) and any(shows(place, peer) for peer in group)

    def _pair(self, place: int, peer: int) -> Pair:
        return self._pairs[min(place, peer), max(place, peer)]

    def _share_records(self, place: int, peer: int) -> bool:
        copy, peer_copy = self._copies[place], self._copies[peer]
        if not copy.end or not peer_copy.end:
            return True  # an empty log is the beginning of every other
        if self._pair(place, peer).since is not None or (copy.is_trusted and peer_copy.is_trusted):
            return True
        return _begins_at_end_of(copy, peer_copy) or _begins_at_end_of(peer_copy, copy)

    def _share_ids(self, place: int, peer: int) -> bool:
        return not self._ids(place).isdisjoint(self._ids(peer))

    def _ids(self, place: int) -> frozenset[Uuid]:
        if place not in self._known_ids:
            self._known_ids[place] = cluster_specific_ids(self._copies[place].listing)
        return self._known_ids[place]

    def _are_compatible(self, place: int, peer: int) -> bool:
        """Whether elections alone explain how two copies differ."""
        copies, pair = self._copies, self._pair(place, peer)
        if pair.parting is None:
            return True
        behind, ahead = sorted((place, peer), key=lambda index: rank(copies[index]))
        if contradiction(copies[behind], copies[ahead], pair.parting.offset) is not None:
            return False
        return not self._most_voters_have(behind, pair.parting.offset)

    def _most_voters_have(self, place: int, offset: int) -> bool:
        """Whether most voters have what a copy has from an offset on: then no election takes it back.

        Records of the copy's last epoch show it: those of earlier ones may have been taken back before.
        """
        copy = self._copies[place]
        epoch_start = next((first for epoch, first in reversed(copy.epochs) if epoch == copy.last_epoch), offset)
        reach = max(epoch_start, offset)
        nodes = {
            peer.node_id
            for index, peer in enumerate(self._copies)
            if index == place or (self._pair(place, index).to or 0) > reach
        }
        return bool(copy.voters) and len(nodes & copy.voters.keys()) > len(copy.voters) // 2


def _begins_at_end_of(later: PlannedCopy, earlier: PlannedCopy) -> bool:
    if later.start is None or later.start != earlier.end:
        return False
    return earlier.last_epoch <= later.epochs[0][0]


def cluster_specific_ids(listing: Listing) -> frozenset[Uuid]:
    """The ids that no other cluster has: of topics, ACL entries, log directories, starts of brokers and controllers.

    They are those of the state at the copy's end and in its oldest snapshot. What cannot be read has none.
    """
    ids: set[Uuid] = set()
    with contextlib.suppress(KshellError, FileNotFoundError):  # damage is reported elsewhere
        ids.update(_image_ids(load_listing(listing, None, None).image))
    for file in listing.snapshots[:1]:
        replayer = Replayer()
        with contextlib.suppress(KshellError, FileNotFoundError):
            load_snapshot(file, replayer, None)
            ids.update(_image_ids(replayer.image()))
    return frozenset(uuid for uuid in ids if int.from_bytes(uuid, "big") >= _RESERVED)


def _image_ids(image: Image) -> Iterator[Uuid]:
    yield from image["topics"]
    yield from image["acls"]
    for name in ("brokers", "controllers"):
        for entry in image[name].values():
            yield entry.value.incarnation_id
            yield from getattr(entry.value, "directories", ())
    entry = image[QUORUM].get(VOTERS)
    for voter in entry.value if entry is not None else ():
        yield voter["voterDirectoryId"]
