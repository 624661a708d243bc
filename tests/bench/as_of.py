"""Any offset of a log of 1,000,000 records, against Kafka's own cold replay of that log.

5,000 topics x 20 partitions, then random partition changes. Goals: after the first ``as-of``, any other and ``cat`` of
one leaf in at most 200 ms (median of 50 random offsets), with at most 1.5 times the memory of a plain load.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from tests.bench.harness import ROOT, Comparison, kshell, pair
from tests.kafka import gen

TOPICS, PARTITIONS, RECORDS = 5_000, 20, 1_000_000
OFFSETS = 50
MILLISECONDS_GOAL = 200
MEMORY_GOAL = 1.5
_PROGRAM = """
import json, random, resource, sys, time
import kshell

file, offsets, topics = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
session = kshell.open(file)
start = time.perf_counter()
session.at(0).image
first = time.perf_counter() - start
rng, times, end = random.Random(7), [], int(sys.argv[4])
for _ in range(offsets):
    offset = rng.randrange(end // 4, end)
    line = f"cat /image/topics/byName/topic-{rng.randrange(topics)}/{rng.randrange(20)} -o json"
    start = time.perf_counter()
    answer = session.at(offset).run(line).to_json()
    times.append(time.perf_counter() - start)
    assert json.loads(answer)["replicas"], answer
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"first": first, "times": times, "peak": peak}))
"""


def _travels(file: Path) -> dict[str, list[float] | float]:
    words = [sys.executable, "-c", _PROGRAM, str(file), str(OFFSETS), str(TOPICS), str(RECORDS)]
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=env)
    told: dict[str, list[float] | float] = json.loads(done.stdout)
    return told


def run(rounds: int) -> Comparison:
    """Kafka's replay ``rounds`` times; ours is one process that asks for 50 offsets."""
    # A topic in four has a config, and there are 60 brokers and a feature level.
    changes = RECORDS - TOPICS * (PARTITIONS + 1) - TOPICS // 4 - 61
    file = gen.log(TOPICS, PARTITIONS, changes)
    plain = kshell("-d", str(file), "cat", "/image/provenance", "-o", "json")
    assert plain.code == 0 and json.loads(plain.output)["offset"] == RECORDS - 1, plain
    told = _travels(file)
    times, peak = told["times"], told["peak"]
    assert isinstance(times, list) and isinstance(peak, float)
    _, other = pair(min(rounds, 3), lambda: 0.0, lambda: gen.replay(file).wall)
    median = statistics.median(times) * 1000
    notes = [
        f"as-of and cat: median {median:.1f} ms, worst {max(times) * 1000:.1f} ms of {len(times)}"
        f" (goal {MILLISECONDS_GOAL} ms: {'met' if median <= MILLISECONDS_GOAL else 'NOT met'})",
        f"peak memory {peak:.0f} MB, of a plain load {plain.peak_mb:.0f} MB: {peak / plain.peak_mb:.2f} times"
        f" (goal {MEMORY_GOAL}: {'met' if peak <= MEMORY_GOAL * plain.peak_mb else 'NOT met'})",
        f"the first as-of reads the whole log: {told['first']:.1f} s; a plain load, cold: {plain.seconds:.1f} s",
    ]
    return Comparison("as-of any offset and cat, 1,000,000 records", times, other, 1, notes)
