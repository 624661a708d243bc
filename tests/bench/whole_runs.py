"""A whole ``kshell-pipeline run`` over a log that has grown by 1%, against the first: processes of their own, with all
tables, by the clock. The log has 4,000,000 records, one after the other over eight months, and 100,000 partitions.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.bench.harness import ROOT, Comparison
from tests.bench.incremental import place
from tests.bench.ingest import PARTITIONS, TOPICS, generated
from tests.bench.stretched import stretched

RECORDS = 4_000_000
DAYS = 240
GOAL = 0.1


def run(rounds: int) -> Comparison:
    """One of each, whatever ``rounds`` says: the first takes minutes."""
    log = stretched(generated(TOPICS, PARTITIONS, RECORDS), DAYS)
    with tempfile.TemporaryDirectory() as folder:
        first, second, nothing = (_seconds(log, Path(folder), whole=whole) for whole in (False, True, True))
    notes = [f"first {first:.0f} s, 1% more {second:.0f} s, nothing new {nothing:.1f} s"]
    return Comparison(
        "a whole run of a log that has grown by 1%, against the first", [second], [first], GOAL, notes,
        ("second", "first"),
    )  # fmt: skip


def _seconds(log: Path, folder: Path, *, whole: bool) -> float:
    source = place(log, folder, whole=whole)
    words = [sys.executable, "-m", "kshell.spark.cli", "run", "--source", str(source), "--out", str(folder / "out")]
    start = time.perf_counter()
    subprocess.run(words, check=True, capture_output=True, env=os.environ | {"PYTHONPATH": str(ROOT)})
    return time.perf_counter() - start
