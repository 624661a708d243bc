"""Which copies are of one history: those that show it, and that no two of which contradict.

Two copies show it by batches that are the same, by a log that begins where another one ends, or by ids in their states
that no two clusters have in common. They contradict where they part and no election explains it. So a directory of
another cluster under the same name is none of them, whether it has offsets in common with them or not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kshell.protocol.primitives import Uuid
from kshell.sources.copies.agreement import cluster_of, contradiction, rank
from kshell.sources.copies.logs import Pair
from kshell.spark.truth.marks import marks
from kshell.spark.truth.members import Member

Pairs = Mapping[tuple[int, int], Pair]


class History:
    """Copies that were read together."""

    def __init__(self, members: Sequence[Member], pairs: Pairs) -> None:
        self._members = members
        self._pairs = pairs
        self._marks: dict[int, frozenset[Uuid]] = {}

    def group(self) -> list[int]:
        """The places of the copies that count, the first by Raft's rules first: of groups the one with the most copies,
        then the one that the tables come from, then the one that Raft's rules put first.
        """
        members, cluster = self._members, cluster_of(self._members)
        ours = [place for place, one in enumerate(members) if one.cluster_id in (None, cluster)]
        ours.sort(key=lambda place: rank(members[place]), reverse=True)
        groups = [self._around(seed, ours) for seed in ours]
        return max(groups, key=lambda group: (len(group), any(members[place].is_trusted for place in group)))

    def foreign(self, place: int, group: Sequence[int]) -> str | None:
        """What shows that a copy outside the group is of another cluster, and not of another history of this one.

        Returns:
            The evidence, as a sentence without its end; ``None`` where the copy has a batch or an id in common with
            the group, or nothing of it can be compared. A first record of its own proves nothing by itself where an
            election may have replaced it.
        """
        pairs = [self._pair(place, peer) for peer in group]
        parted = [peer for peer, pair in zip(group, pairs, strict=True) if pair.parting is not None]
        if not parted or any(pair.since is not None for pair in pairs):
            return None
        mine, ours = self._ids(place), frozenset[Uuid]().union(*(self._ids(peer) for peer in group))
        if mine & ours:
            return None
        evidence = []
        is_contradicted = not all(self._fit(place, peer) for peer in parted)
        at_start = [peer for peer in parted if (parting := self._pair(place, peer).parting) and parting.offset == 0]
        if is_contradicted and at_start:
            path = self._members[at_start[0]].path
            evidence.append(f"its log begins at offset 0 with another record than that of {path}")
        if mine and ours:
            none = "its only id" if len(mine) == 1 else f"none of its {len(mine)} ids"
            verb = "is unknown to" if len(mine) == 1 else "is known to"
            evidence.append(f"{none} of topics, ACLs, directories and starts of nodes {verb} this cluster's copies")
        return ", and ".join(evidence) or None

    def _around(self, seed: int, ours: Sequence[int]) -> list[int]:
        """Those that belong to a copy; ids are only looked at where nothing else shows it."""
        group = [seed]
        for shows in (self._meet, self._share_ids):
            while more := [place for place in ours if place not in group and self._joins(place, group, shows)][:1]:
                group += more
        return group

    def _joins(self, place: int, group: Sequence[int], shows: Callable[[int, int], bool]) -> bool:
        if not all(self._fit(place, other) for other in group):
            return False
        return any(shows(place, other) for other in group)

    def _pair(self, one: int, other: int) -> Pair:
        return self._pairs[min(one, other), max(one, other)]

    # --- what shows it ---

    def _meet(self, one: int, other: int) -> bool:
        mine, theirs = self._members[one], self._members[other]
        if not mine.end or not theirs.end:
            return True  # an empty log is the beginning of every other
        if self._pair(one, other).since is not None or (mine.is_trusted and theirs.is_trusted):
            return True
        return _goes_on(mine, theirs) or _goes_on(theirs, mine)

    def _share_ids(self, one: int, other: int) -> bool:
        return not self._ids(one).isdisjoint(self._ids(other))

    def _ids(self, place: int) -> frozenset[Uuid]:
        if place not in self._marks:
            self._marks[place] = marks(self._members[place].listing)
        return self._marks[place]

    # --- what contradicts it ---

    def _fit(self, one: int, other: int) -> bool:
        members, pair = self._members, self._pair(one, other)
        if pair.parting is None:
            return True
        behind, ahead = sorted((one, other), key=lambda place: rank(members[place]))
        if contradiction(members[behind], members[ahead], pair.parting.offset) is not None:
            return False
        return not self._is_held_by_most(behind, pair.parting.offset)

    def _is_held_by_most(self, place: int, offset: int) -> bool:
        """Whether most voters have what a copy has from an offset on: then that was committed, and no election takes it
        back. Records of its last epoch show it: those of earlier ones may have been taken back before.
        """
        copy = self._members[place]
        begun = next((first for epoch, first in reversed(copy.epochs) if epoch == copy.last_epoch), offset)
        needed = max(begun, offset)
        holders = {
            one.node_id
            for at, one in enumerate(self._members)
            if at == place or (self._pair(place, at).to or 0) > needed
        }
        return bool(copy.voters) and len(holders & copy.voters.keys()) > len(copy.voters) // 2


def _goes_on(earlier: Member, later: Member) -> bool:
    """Whether a log begins where another copy ends."""
    if later.start is None or later.start != earlier.end:
        return False
    return earlier.last_epoch <= later.epochs[0][0]
