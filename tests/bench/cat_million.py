"""Cold one-shot ``cat`` of one partition out of 1,000,000, against Kafka's own cold replay of the same snapshot.

10,000 topics x 100 partitions in mixed shapes, written by Kafka's own writer. Goals: at most 1/8 of the time, and at
most 256 MB of peak memory.
"""

from __future__ import annotations

import json
import statistics

from tests.bench.harness import Comparison, kshell, met, pair
from tests.kafka import gen

TOPICS, PARTITIONS = 10_000, 100
MEMORY_GOAL_MB = 256


def run(rounds: int) -> Comparison:
    """``rounds`` runs of each side, every one a fresh process."""
    file = gen.snapshot(TOPICS, PARTITIONS)
    peaks: list[float] = []
    alone: list[float] = []
    picked = 0

    def ours() -> float:
        nonlocal picked
        picked += 1
        leaf = f"/image/topics/byName/topic-{picked * 997 % TOPICS}/{picked * 37 % PARTITIONS}"
        done = kshell("-d", str(file), "cat", leaf, "-o", "json")
        assert done.code == 0 and json.loads(done.output)["replicas"], done
        peaks.append(done.peak_mb)
        return done.seconds

    def theirs() -> float:
        done = gen.replay(file)
        assert done.partitions == TOPICS * PARTITIONS, done
        alone.append(done.seconds)
        return done.wall

    mine, other = pair(rounds, ours, theirs)
    notes = [
        f"peak memory {max(peaks):.0f} MB (goal {MEMORY_GOAL_MB} MB: {met(max(peaks) <= MEMORY_GOAL_MB)})",
        f"file of {file.stat().st_size / 1e6:.0f} MB",
        f"both are whole processes; Kafka's replay alone, without the start of its JVM: median"
        f" {statistics.median(alone) * 1000:.0f} ms, ratio 1/{statistics.median(alone) / statistics.median(mine):.1f}",
    ]
    return Comparison("cold cat of one partition of 1,000,000", mine, other, 1 / 8, notes)
