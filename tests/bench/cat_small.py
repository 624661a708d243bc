"""One-shot ``cat`` of one leaf on a small directory, against Kafka's own shell on the same file.

Kafka's one-shot mode races with its own loading; its empty answers are discarded. Goal: at most 1/5 of its time.
"""

from __future__ import annotations

from pathlib import Path

from tests.bench.harness import Comparison, kshell, pair
from tests.kafka import javashell

SNAPSHOT = Path(__file__).parents[1] / "fixtures/4.3.1/controller-3001/__cluster_metadata-0"
FILE = SNAPSHOT / "00000000000000000574-0000000001.checkpoint"
LEAF = "/image/topics/byName/orders-s10/0"
PART = "PartitionRegistration(replicas="


def run(rounds: int) -> Comparison:
    """``rounds`` right answers of each side."""
    wrong = 0

    def ours() -> float:
        done = kshell("-d", str(FILE), "cat", LEAF)
        assert done.code == 0 and "replicas" in done.output, done
        return done.seconds

    def theirs() -> float | None:
        nonlocal wrong
        done = javashell.run(FILE, "cat", LEAF)
        if PART not in done.output:
            wrong += 1
            return None
        return done.seconds

    mine, other = pair(rounds, ours, theirs)
    note = f"wrong answers of Kafka's shell, discarded: {wrong}"
    return Comparison("one-shot cat of one leaf, small directory", mine, other, 1 / 5, [note])
