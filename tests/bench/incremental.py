"""A second run, when little or nothing is new, against the first: a log of 1,000,000 records, of which 1% come later.

Compared is what a run reads, decodes and writes of the log (planning, ``bronze/records``, the commit), in one session,
by CPU seconds on one CPU. Whole runs, with all tables: :mod:`tests.bench.whole_runs`.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from kshell.sources.directory.files import METADATA_DIRECTORY
from tests.bench.harness import ROOT, Comparison
from tests.bench.ingest import PARTITIONS, RECORDS, TOPICS, generated
from tests.bench.ingesting import cpu_seconds, pinned, take

SHARE = 100
"""The newest hundredth of the log's bytes comes later."""
GOAL = 0.1
WARM = 10
"""Rounds until Java has compiled what it runs most; the first of them is told besides."""


def run(rounds: int) -> Comparison:
    """``rounds`` in one session, at most five."""
    rounds = min(rounds, 5)
    log = generated(TOPICS, PARTITIONS, RECORDS)
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "tests.bench.incremental", str(log), folder, str(WARM + rounds)]
        env = os.environ | {"PYTHONPATH": str(ROOT)}
        done = subprocess.run(words, capture_output=True, text=True, check=False, env=env, cwd=ROOT)
        if done.returncode:
            raise SystemExit(f"the runs failed:\n{done.stderr[-2000:]}")
        every = [json.loads(line) for line in done.stdout.splitlines()]
    first, second, idle = ([one[which] for one in every[WARM:]] for which in (0, 1, 2))
    nothing = statistics.median(idle)
    notes = [
        "in a session that has just begun: {0:.2f} s, then {1:.2f} s, {ratio:.3f} of the first".format(
            *every[0], ratio=every[0][1] / every[0][0]
        ),
        f"nothing new: {nothing * 1000:.0f} ms of CPU, {nothing / statistics.median(first):.4f} of the first",
    ]
    return Comparison(
        "reading a log that has grown by 1%, against reading all of it", second, first, GOAL, notes, ("second", "first")
    )


def place(log: Path, folder: Path, *, whole: bool) -> Path:
    """The log as a metadata directory: all of it, or but for its end, with half a batch there."""
    directory = folder / METADATA_DIRECTORY
    directory.mkdir(parents=True, exist_ok=True)
    copy = directory / log.name
    shutil.copy(log, copy)
    if not whole:
        os.truncate(copy, log.stat().st_size * (SHARE - 1) // SHARE)
    return directory


def _main(log: Path, folder: Path, rounds: int) -> None:
    """Prints the CPU seconds of the three, a JSON list for each round."""
    from kshell.spark import session
    from kshell.spark.steps import planning
    from kshell.spark.tables.warehouse import Warehouse

    os.sched_setaffinity(0, pinned([0]))
    with session.running("local[1]") as spark:
        for number in range(rounds):
            warehouse = Warehouse(spark, str(folder / f"out{number}"))
            spent = []
            for whole in (False, True, True):
                source = place(log, folder / "source", whole=whole)
                before = cpu_seconds()
                found = planning.reconcile_all(planning.clusters([str(source)]), warehouse.state)
                take(warehouse, found, 1)
                spent.append(cpu_seconds() - before)
            assert warehouse.read("records").count() == RECORDS
            print(json.dumps(spent), flush=True)


if __name__ == "__main__":
    _main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
