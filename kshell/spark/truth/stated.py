"""What the files ``quorum-state`` beside the copies say: who leads is not always in the log."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from kshell.sources.beside import quorum_state
from kshell.sources.files import Listing

_MOST = (1 << 31) - 1


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
    listed = state.get("currentVoters")
    ids = [one.get("voterId") for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    voters = tuple(dict.fromkeys(found for one in ids if (found := _number(one)) is not None))
    return Stated(_number(state.get("leaderId")), _number(state.get("leaderEpoch")), voters)


def _number(found: Any) -> int | None:
    """A node's id or an epoch, if it is one."""
    return found if isinstance(found, int) and not isinstance(found, bool) and -1 <= found <= _MOST else None
