"""Any offset of a log of 1,000,000 records, against Kafka's own cold replay of that log.

5,000 topics x 20 partitions, then random partition changes. Goals: after the first ``as-of``, any other and ``cat`` of
one leaf in at most 200 ms (median of 50 random offsets), with at most 1.5 times the memory of a plain load. Both are
held for logs of one kind of record each as well (:mod:`tests.bench.logs`).
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tests.bench import logs
from tests.bench.harness import ROOT, Comparison, kshell, pair
from tests.kafka import gen, jars

TOPICS, PARTITIONS, RECORDS = 5_000, 20, 1_000_000
OFFSETS = 50
MILLISECONDS_GOAL = 200
MEMORY_GOAL = 1.5
_PROGRAM = """
import json, random, resource, sys, time
import kshell

file, offsets, end, leaves = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
session = kshell.open(file)
start = time.perf_counter()
session.at(0).image
first = time.perf_counter() - start
rng, times = random.Random(7), []
for _ in range(offsets):
    offset = rng.randrange(end // 4, end)
    start = time.perf_counter()
    answer = session.at(offset).run(f"cat {rng.choice(leaves)} -o json").to_json()
    times.append(time.perf_counter() - start)
    json.loads(answer)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"first": first, "times": times, "peak": peak}))
"""


class _Travels(NamedTuple):
    """Seconds of the first ``as-of`` and of the others, and the peak memory in MB."""

    first: float
    times: list[float]
    peak: float

    @property
    def median(self) -> float:
        """Milliseconds."""
        return statistics.median(self.times) * 1000


def _travels(file: Path, leaves: list[str]) -> _Travels:
    words = [sys.executable, "-c", _PROGRAM, str(file), str(OFFSETS), str(RECORDS), *leaves]
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=env)
    return _Travels(**json.loads(done.stdout))


def _kind(name: str) -> str:
    """A line of the table: one kind of log."""
    file = logs.made(name, RECORDS, jars.cache() / "generated/kinds")
    plain = kshell("-d", str(file), "cat", "/image/provenance", "-o", "json")
    assert plain.code == 0, plain
    told = _travels(file, [logs.PLACES.get(name, "/image/cluster/brokers/1")])
    ratio, worst = told.peak / plain.peak_mb, max(told.times) * 1000
    met = ratio <= MEMORY_GOAL and told.median <= MILLISECONDS_GOAL
    return (
        f"  {name:<24} {plain.peak_mb:6.0f} {told.peak:6.0f} {ratio:6.2f} {told.median:8.1f} {worst:8.1f}"
        f" {told.first:8.1f}  {'met' if met else 'NOT met'}"
    )


def run(rounds: int) -> Comparison:
    """Kafka's replay ``rounds`` times; ours is one process that asks for 50 offsets."""
    # A topic in four has a config, and there are 60 brokers and a feature level.
    changes = RECORDS - TOPICS * (PARTITIONS + 1) - TOPICS // 4 - 61
    file = gen.log(TOPICS, PARTITIONS, changes)
    plain = kshell("-d", str(file), "cat", "/image/provenance", "-o", "json")
    assert plain.code == 0 and json.loads(plain.output)["offset"] == RECORDS - 1, plain
    rng = random.Random(5)
    told = _travels(
        file, [f"/image/topics/byName/topic-{rng.randrange(TOPICS)}/{rng.randrange(PARTITIONS)}" for _ in range(500)]
    )
    times, peak = told.times, told.peak
    _, other = pair(min(rounds, 3), lambda: 0.0, lambda: gen.replay(file).wall)
    median = told.median
    notes = [
        f"as-of and cat: median {median:.1f} ms, worst {max(times) * 1000:.1f} ms of {len(times)}"
        f" (goal {MILLISECONDS_GOAL} ms: {'met' if median <= MILLISECONDS_GOAL else 'NOT met'})",
        f"peak memory {peak:.0f} MB, of a plain load {plain.peak_mb:.0f} MB: {peak / plain.peak_mb:.2f} times"
        f" (goal {MEMORY_GOAL}: {'met' if peak <= MEMORY_GOAL * plain.peak_mb else 'NOT met'})",
        f"the first as-of reads the whole log: {told.first:.1f} s; a plain load, cold: {plain.seconds:.1f} s",
        "kinds of log                plain  as-of  times   median      max    first  (MB, MB, of it, ms, ms, s)",
        *map(_kind, logs.KINDS),
    ]
    return Comparison("as-of any offset and cat, 1,000,000 records", times, other, 1, notes)
