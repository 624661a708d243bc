"""What the files ``quorum-state`` beside the copies say: who leads is not always in the log."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kshell.sources.directory.files import Listing
from kshell.sources.directory.sidecar_files import quorum_state


class Stated(NamedTuple):
    """The leader (-1: nobody yet), its epoch, and the voters; ``None`` and empty where nothing says so."""

    leader: int | None = None
    epoch: int | None = None
    voters: tuple[int, ...] = ()


def stated(listings: Iterable[Listing]) -> Stated:
    """What the file of the newest epoch says; of equal ones one that knows the leader, then the first."""
    found = [one for one in map(_of, listings) if one.leader is not None]
    return max(found, key=lambda one: (-1 if one.epoch is None else one.epoch, one.leader != -1), default=Stated())


def _of(listing: Listing) -> Stated:
    state = quorum_state(listing)
    voters = tuple(dict.fromkeys(voter["voterId"] for voter in state.get("currentVoters", ())))
    return Stated(state.get("leaderId"), state.get("leaderEpoch"), voters)
