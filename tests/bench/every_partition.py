"""Commands that look at every partition, cold and one-shot, against Kafka's own cold replay of the same snapshot.

The figure is processor time of whole processes: Kafka's decodes as many partitions and asks nothing of them. Snapshots
of 10,000 topics x 100 partitions and of 100,000 x 10 in mixed shapes, written by Kafka's own writer.
"""

from __future__ import annotations

import resource
import statistics
from functools import partial
from pathlib import Path

from tests.bench.harness import Comparison, kshell, met, pair
from tests.kafka import gen

SIZES = ((10_000, 100), (100_000, 10))
COMMANDS = (
    ("partitions", "--offline"),
    ("partitions", "--where", "state == offline"),
    ("partitions", "--where", "topic == topic-77"),
    ("status",),
    ("health",),
    ("topics", "--where", "offline > 0"),
)
GOAL = 0.6


def run(rounds: int) -> Comparison:
    """``rounds`` runs of each side for each command. The result is the command that does worst; the notes have all."""
    made: list[Comparison] = []
    for topics, partitions in SIZES:
        file = gen.snapshot(topics, partitions)
        for words in COMMANDS:
            mine, other = pair(rounds, partial(_ours, file, words), partial(_theirs, file))
            title = f"{' '.join(words)}: {topics:,} topics x {partitions}, processor time"
            made.append(Comparison(title, mine, other, GOAL, []))
    notes = [
        f"{one.ratio:.2f} ({met(one.ratio <= GOAL)}), {statistics.median(one.ours):.2f} s: {one.title}" for one in made
    ]
    return max(made, key=lambda one: one.ratio)._replace(notes=notes)


def _ours(file: Path, words: tuple[str, ...]) -> float:
    before = _children()
    done = kshell("-d", str(file), *words)
    assert done.code in (0, 1), done
    return _children() - before


def _theirs(file: Path) -> float:
    before = _children()
    done = gen.replay(file)
    assert done.partitions == 1_000_000, done
    return _children() - before


def _children() -> float:
    """Processor seconds of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
