"""Questions to the history of a log of 1,000,000 records, cold, against a plain load of it.

The log of :mod:`tests.bench.as_of`: 5,000 topics x 20 partitions, then random partition changes. Goals: to count what
was offline at an offset in at most 2 times the load, and to aggregate every version of all partitions in at most 4
times. Times are CPU seconds of a whole process: what else the machine does counts least in them.
"""

from __future__ import annotations

import json
import statistics

from tests.bench.as_of import PARTITIONS, RECORDS, TOPICS
from tests.bench.harness import Comparison, Run, kshell, met
from tests.kafka import gen

AT, HISTORY, WHEN = 2.0, 4.0, 3.0
"""Goals: times a plain load."""
_AT = f"SELECT count(*) AS n FROM partitions_at({RECORDS * 7 // 10}) WHERE state = 'offline'"
_HISTORY = (
    "SELECT topic, count(*) AS versions, sum(validToMs - validFromMs) FILTER (WHERE leader = -1) AS offlineMs"
    " FROM history_partitions GROUP BY topic ORDER BY versions DESC"
)
_OTHERS = {
    "all columns of history_partitions": "SELECT max(p) AS m FROM history_partitions p",
    "events by type": "SELECT type, count(*) AS n FROM events GROUP BY type",
    "changes(A, B)": f"SELECT change, count(*) AS n FROM changes({RECORDS // 2}, {RECORDS * 7 // 10}) GROUP BY change",
}
_CONDITIONS = (
    ("partitions", "leader == -1"),
    ("partitions", "partitionEpoch > 15"),
    ("topics", "underReplicated > 10"),
    ("brokers", "fenced"),
    ("provenance", "epoch == 1 and offset != 40"),
)
"""What ``when`` is asked: of every change, of epochs (which no two changes share), of counts, and of every offset."""


def run(rounds: int) -> Comparison:
    """Each ``rounds`` times, at most three."""
    changes = RECORDS - TOPICS * (PARTITIONS + 1) - TOPICS // 4 - 61
    file = gen.log(TOPICS, PARTITIONS, changes)
    rounds = min(rounds, 3)

    def runs(*words: str, may_be_none: bool = False) -> list[Run]:
        """``may_be_none``: a predicate's "no", with an empty answer, is one."""
        found = [kshell("-d", str(file), *words, "-o", "json") for _ in range(rounds)]
        if may_be_none:
            assert all(one.code in (0, 1) and isinstance(json.loads(one.output), list) for one in found), found
        else:
            assert all(one.code == 0 and json.loads(one.output) for one in found), found
        return found

    load, at, history = runs("cat", "/image/provenance"), runs("sql", _AT), runs("sql", _HISTORY)
    plain, ratio = _cpu(load), _cpu(history) / _cpu(load)
    assert sum(row["versions"] for row in json.loads(history[0].output)) == TOPICS * PARTITIONS + changes
    notes = [
        f"CPU: load {plain:.1f} s, {_peak(load)} MB",
        f"partitions_at: {_cpu(at):.1f} s, {_peak(at)} MB; {_cpu(at) / plain:.2f} times the load"
        f" (goal {AT:g}: {met(_cpu(at) <= AT * plain)})",
        f"history_partitions: {_cpu(history):.1f} s, {_peak(history)} MB; {ratio:.2f} times the load"
        f" (goal {HISTORY:g}: {met(ratio <= HISTORY)})",
    ]
    for name, query in _OTHERS.items():
        found = runs("sql", query)
        notes.append(f"{name}: {_cpu(found):.1f} s, {_peak(found)} MB; {_cpu(found) / plain:.2f} times the load")
    for table, condition in _CONDITIONS:
        found = runs("when", table, "--where", condition, may_be_none=True)
        times = _cpu(found) / plain
        notes.append(
            f"when {table} --where '{condition}': {_cpu(found):.1f} s, {_peak(found)} MB; {times:.2f} times the load"
            f" (goal {WHEN:g}: {met(times <= WHEN)})"
        )
    return Comparison(
        "an aggregate of every version of 100,000 partitions, against a load",
        [one.cpu for one in history],
        [one.cpu for one in load],
        HISTORY,
        notes,
        ("query", "load"),
    )


def _cpu(runs: list[Run]) -> float:
    return statistics.median(one.cpu for one in runs)


def _peak(runs: list[Run]) -> int:
    return round(max(one.peak_mb for one in runs))
