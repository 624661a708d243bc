"""Several copies of one log, read together: which of them count, and how far each is to be believed.

The reference is the copy that wins an election among those of one history.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kshell.sources.copies.agreement import Agreement, agreement, rank
from kshell.sources.copies.logs import Pair, read_together
from kshell.spark.truth.history import History, Pairs
from kshell.spark.truth.members import Member
from kshell.spark.truth.values import ENDLESS


class Judged(NamedTuple):
    """``believed``: (place of a copy, offset before which its log counts), the reference first. ``same``: place of
    another one of them -> the offset before which it is as the reference, where anything was compared. ``foreign``:
    place of a copy of another cluster under this one's id -> what shows that.
    """

    agreement: Agreement
    believed: tuple[tuple[int, int], ...]
    same: Mapping[int, int]
    foreign: Mapping[int, str]


def judge(members: Sequence[Member], committed: int) -> Judged:
    """Reads all of at least one copy. ``committed``: the offset below which all is known to be. Raises SourceError."""
    pairs = read_together(members)
    _remember(members, pairs)
    history = History(members, pairs)
    group = history.group()
    found = agreement(members, pairs, group, committed)
    reference = members.index(found.reference)
    believed, same = [(reference, ENDLESS)], {}
    for place in sorted(group, key=lambda place: rank(members[place]), reverse=True):
        if place != reference:
            pair = pairs[min(place, reference), max(place, reference)]
            believed.append((place, _limit(members[place], members[reference], pair)))
            if pair.to is not None:
                same[place] = pair.to
    outside = [place for place in range(len(members)) if place not in group]
    evidence = {place: history.foreign(place, group) for place in outside}
    foreign = {place: why for place, why in evidence.items() if why is not None}
    return Judged(found, tuple(believed), same, foreign)


def _remember(members: Sequence[Member], pairs: Pairs) -> None:
    """Copies that are the same as the tables are the same as each other."""
    for (one, other), pair in pairs.items():
        mine, theirs = members[one].known, members[other].known
        if mine is None or theirs is None or mine.since is None or theirs.since is None:
            continue
        since, to = max(mine.since, theirs.since), min(mine.to, theirs.to)
        if since < to and (pair.parting is None or pair.parting.offset >= to):
            pair.since, pair.to = since, max(pair.to or 0, to)


def _limit(copy: Member, reference: Member, pair: Pair) -> int:
    """Before which offset the records of a copy are those of the reference, also where that has none."""
    limit = reference.ends_epoch(copy.last_epoch) if reference.log_end is not None else ENDLESS
    if pair.parting is not None:
        limit = min(limit, pair.parting.offset if pair.to is None else pair.to)
    return limit
