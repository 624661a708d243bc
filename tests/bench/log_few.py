"""``log`` in text of some records of a log of a million, against the whole: CPU seconds of whole processes.

The path and the change that a line shows depend on the records before it. Goal: a condition on types, which few records
meet, takes a third of the whole log; any other, and the last records alone, half of it.
"""

from __future__ import annotations

import statistics

from tests.bench.harness import Comparison, kshell, met
from tests.bench.kernel import big_log

_TYPES = ("--type", "CONFIG_RECORD")
_OTHERS = (
    ("--type", "TOPIC_RECORD"),
    ("--where", "offset > 999990"),
    ("--grep", "topic-77"),
    ("--newest-first", "--count", "5"),
)
_GOAL = 1 / 3
_MOST = 1 / 2


def run(rounds: int) -> Comparison:
    """Few records and all of them, in turn; then each other condition once."""
    words = ("-d", str(big_log()), "log")
    ours, theirs = [], []
    for _ in range(min(rounds, 3)):
        ours.append(kshell(*words, *_TYPES).cpu)
        theirs.append(kshell(*words).cpu)
    whole, notes = statistics.median(theirs), []
    for condition in _OTHERS:
        cpu = kshell(*words, *condition).cpu
        share = cpu / whole
        notes.append(
            f"{' '.join(condition)}: {cpu:.1f} s, {share:.2f} of the whole (goal {_MOST}: {met(share <= _MOST)})"
        )
    return Comparison(
        f"CPU seconds of log {' '.join(_TYPES)}, against the whole log", ours, theirs, _GOAL, notes, ("few", "whole")
    )
