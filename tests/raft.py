"""Made-up histories of a quorum by Raft's rules, and the directories that its nodes leave, whole or damaged."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from kshell.sources.directory.files import METADATA_DIRECTORY
from tests.builders import batch, control, control_batch, snapshot, uuid, value, write_log, write_snapshot

_OBSERVERS = 2


class Entry(NamedTuple):
    """A record of the model: a LeaderChange, or a topic whose name says where it was written and by which leader."""

    epoch: int
    leader: int
    opens: bool


class Node:
    """A node: its log, the epoch that it knows, and the offset below which it knows records to be committed."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.log: list[Entry] = []
        self.epoch = 0
        self.high_watermark = 0

    @property
    def rank(self) -> tuple[int, int]:
        """Who has the higher one is not elected by who has the lower one's vote, but may elect it."""
        return (self.log[-1].epoch if self.log else 0), len(self.log)


class Quorum:
    """Voters and observers after some random elections, appends and fetches."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.voters = [Node(number) for number in range(1, self.random.choice((3, 3, 5)) + 1)]
        self.observers = [Node(10 + number) for number in range(_OBSERVERS)]
        self.high_watermark = 0
        self._leader: Node | None = None
        for _ in range(self.random.randint(40, 160)):
            self._step()

    @property
    def majority(self) -> int:
        return len(self.voters) // 2 + 1

    @property
    def committed(self) -> list[Entry]:
        """The records that no leader will ever replace."""
        return max(self.voters, key=lambda node: node.rank).log[: self.high_watermark]

    def _step(self) -> None:
        dice = self.random.random()
        if self._leader is None or dice < 0.06:
            self._elect()
        elif dice < 0.45:
            self._leader.log.append(Entry(self._leader.epoch, self._leader.number, opens=False))
        else:
            self._fetch(self._leader)

    def _elect(self) -> None:
        candidate = self.random.choice(self.voters)
        willing = [node for node in self.voters if node is not candidate and candidate.rank >= node.rank]
        if len(willing) + 1 < self.majority:
            return
        votes = [candidate, *self.random.sample(willing, self.random.randint(self.majority - 1, len(willing)))]
        epoch = max(node.epoch for node in votes) + 1
        for node in votes:
            node.epoch = epoch
        candidate.log.append(Entry(epoch, candidate.number, opens=True))
        self._leader = candidate

    def _fetch(self, leader: Node) -> None:
        if leader.epoch != leader.log[-1].epoch:  # it has voted for another one
            self._leader = None
            return
        follower = self.random.choice([node for node in self.voters + self.observers if node is not leader])
        if follower.epoch > leader.epoch:
            return
        follower.epoch = leader.epoch
        same = _common(follower.log, leader.log)
        follower.log = follower.log[:same] + leader.log[same : same + self.random.randint(0, 12)]
        reached = sorted(_common(node.log, leader.log) for node in self.voters if node.epoch == leader.epoch)
        if len(reached) >= self.majority:
            shared = reached[-self.majority]
            if shared > self.high_watermark and leader.log[shared - 1].epoch == leader.epoch:
                self.high_watermark = shared
        leader.high_watermark = self.high_watermark
        follower.high_watermark = max(follower.high_watermark, min(self.high_watermark, len(follower.log)))

    def write(self, folder: Path, node: Node, *, damaged: bool = False) -> Path:
        """Write what a node has: segments, perhaps snapshots, perhaps only the log after one; then damage it."""
        directory, log, dice = folder / f"node-{node.number}", node.log, self.random
        inner = directory / METADATA_DIRECTORY
        ends: list[int] = []
        if node.high_watermark > 3 and dice.random() < 0.5:
            ends = sorted(dice.sample(range(2, node.high_watermark + 1), dice.randint(1, 2)))
        start = ends[0] if ends and dice.random() < 0.5 else 0
        inside = range(start + 1, len(log))
        cuts = [start, *sorted(dice.sample(inside, min(2, len(inside)))), len(log)]
        voters = [voter.number for voter in self.voters]
        segments = {begin: [_batch(log[at], at, voters) for at in range(begin, end)] for begin, end in pairwise(cuts)}
        if damaged:
            _damage(dice, segments, ends)
        for begin, parts in segments.items():
            write_log(inner, *parts, base_offset=begin)
        for end in ends:
            write_snapshot(inner, snapshot(_topics(log[:end]), log[end - 1].epoch), end, log[end - 1].epoch)
        (directory / "meta.properties").write_text(f"version=1\ncluster.id=made-up\nnode.id={node.number}\n")
        state = {"leaderId": -1, "leaderEpoch": node.epoch, "currentVoters": [{"voterId": voter} for voter in voters]}
        (inner / "quorum-state").write_text(json.dumps(state))
        return directory


def names(entries: Sequence[Entry]) -> set[str]:
    """The topics that these records make, if they are the beginning of a log."""
    return {_name(entry, at) for at, entry in enumerate(entries) if not entry.opens}


def _common(mine: Sequence[Entry], theirs: Sequence[Entry]) -> int:
    both = zip(mine, theirs, strict=False)
    return next((at for at, (a, b) in enumerate(both) if a != b), min(len(mine), len(theirs)))


def _name(entry: Entry, at: int) -> str:
    return f"topic-{entry.epoch}-{at}"


def _topic(entry: Entry, at: int) -> bytes:
    return value("TOPIC", name=_name(entry, at), topicId=uuid(1000 * entry.epoch + at))


def _topics(entries: Sequence[Entry]) -> list[bytes]:
    return [_topic(entry, at) for at, entry in enumerate(entries) if not entry.opens]


def _batch(entry: Entry, at: int, voters: Sequence[int]) -> bytes:
    if not entry.opens:
        return batch([_topic(entry, at)], at, entry.epoch)
    named = [{"voterId": voter} for voter in voters]
    return control_batch([control(2, leaderId=entry.leader, voters=named, grantingVoters=named)], at, entry.epoch)


def _damage(dice: random.Random, segments: dict[int, list[bytes]], ends: list[int]) -> None:
    """Up to two times: lose a segment or a snapshot, flip a bit, or cut the log."""
    for _ in range(dice.randint(0, 2)):
        what, begin = dice.choice(("segment", "snapshot", "bit", "cut")), dice.choice(list(segments))
        parts = segments[begin]
        if what == "segment" and len(segments) > 1:
            del segments[begin]
        elif what == "snapshot" and ends:
            ends.pop()
        elif what == "bit" and parts:
            at = dice.randrange(len(parts))
            raw = bytearray(parts[at])
            raw[-3] ^= 1
            parts[at] = bytes(raw)
        elif what == "cut":
            last = segments[max(segments)]
            del last[dice.randint(0, len(last)) :]
