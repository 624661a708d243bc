"""Ingest of a log of 1,000,000 records with two CPUs, against one: seconds of the clock, in sessions that are warm.

The sides take turns, and who comes first changes each round. What two CPUs of this machine can do at all is measured in
the same rounds: two sessions that share nothing, one on each CPU, each with all of the log, against one of them alone.
Virtual CPUs that share a core, or others on the machine, take of both alike.
"""

from __future__ import annotations

import statistics
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tests.bench.harness import Comparison
from tests.bench.ingest import PARTITIONS, RECORDS, TOPICS, WARM, generated
from tests.bench.ingesting import Ingest, ingesting

GOAL = 1.7


class _Round(NamedTuple):
    """One CPU alone, both in one session, and two sessions at once, each on a CPU of its own."""

    one: Ingest
    two: Ingest
    apart: tuple[Ingest, Ingest]

    @property
    def faster(self) -> float:
        """How many times as fast two CPUs are as one."""
        return self.one.wall / self.two.wall

    @property
    def possible(self) -> float:
        """How many times as much the machine does in the same time where nothing is shared."""
        return sum(self.one.wall / side.wall for side in self.apart)


def run(rounds: int) -> Comparison:
    """Three times ``rounds`` of each: the clock varies more than CPU seconds do."""
    rounds *= 3
    log = generated(TOPICS, PARTITIONS, RECORDS)
    made = _in_turn(log, rounds)
    every = [done for one in made for done in (one.one, one.two, *one.apart)]
    assert {done.records for done in every} == {RECORDS}
    assert all(done.worker_mb for done in every), "no worker was seen"
    faster = [one.faster for one in made]
    possible = [one.possible for one in made]
    shares = [one.faster / one.possible for one in made]
    notes = [
        f"round by round: {statistics.median(faster):.2f} times as fast, {min(faster):.2f} to {max(faster):.2f}",
        f"two sessions that share nothing, one on each CPU: {statistics.median(possible):.2f} times the work of one,"
        f" {min(possible):.2f} to {max(possible):.2f}",
        f"of what the machine can do: {statistics.median(shares):.0%}",
        f"peak memory of a worker: {max(done.worker_mb for done in every):.0f} MB",
        f"CPU seconds: {statistics.median(one.two.cpu for one in made):.2f} with two,"
        f" {statistics.median(one.one.cpu for one in made):.2f} with one",
    ]
    ours, theirs = [one.two.wall for one in made], [one.one.wall for one in made]
    title = f"ingest of {RECORDS:,} records into Parquet, two CPUs against one"
    return Comparison(title, ours, theirs, 1 / GOAL, notes, ("two", "one"))


def _in_turn(log: Path, rounds: int) -> list[_Round]:
    with (
        tempfile.TemporaryDirectory() as folder,
        ingesting([0], Path(folder, "one"), [log.parent]) as one,
        ingesting([1], Path(folder, "other"), [log.parent]) as other,
        ingesting([0, 1], Path(folder, "two"), [log.parent]) as two,
        ThreadPoolExecutor(2) as at_once,
    ):

        def apart() -> tuple[Ingest, Ingest]:
            first, second = at_once.submit(one), at_once.submit(other)
            return first.result(), second.result()

        for _ in range(WARM):
            apart()
            two()
        made = []
        for number in range(rounds):
            before = one() if number % 2 else None  # who comes first changes
            both = two()
            made.append(_Round(before or one(), both, apart()))
    return made
