"""Time of an ingest against the records of the log, 10^4 to 10^7; ``KSHELL_BENCH_MOST`` stops it earlier.

Logs of random partition changes of 100 topics x 20 partitions. One CPU, all fields to Parquet, the last of some rounds
in a warm session. Goals: the largest log takes at most 1.2 times the CPU of a record of the one before, and no worker
more than 1 GB. Writes docs/images/ingest-curve.png where matplotlib is installed.
"""

from __future__ import annotations

import importlib.util
import os
import tempfile
from pathlib import Path

from tests.bench.harness import ROOT, Comparison, met
from tests.bench.ingesting import Ingest, ingesting
from tests.kafka import gen

TOPICS, PARTITIONS = 100, 20
IMAGE = ROOT / "docs/images/ingest-curve.png"
MEMORY_GOAL_MB, GOAL = 1000, 1.2
WARM = 3


def run(rounds: int) -> Comparison:
    """One process a size; ``rounds`` does not matter: what is compared are sizes."""
    most = int(os.environ.get("KSHELL_BENCH_MOST", "10000000"))
    found: list[Ingest] = []
    with tempfile.TemporaryDirectory() as folder:
        for size in (10**power for power in range(4, 8)):
            if size <= most:
                log = gen.log(TOPICS, PARTITIONS, size - TOPICS * (PARTITIONS + 1) - 61)
                with ingesting([0], Path(folder, "out"), [log.parent]) as ingest:
                    found.append([ingest() for _ in range(WARM + 1 if size < 10**7 else 2)][-1])
    peak = max(one.worker_mb for one in found)
    assert found[-1].worker_mb, "no worker was seen"
    notes = [
        f"{one.records:>12,} records {one.cpu:8.2f} CPU s {one.wall:8.2f} s {one.worker_mb:6.0f} MB" for one in found
    ]
    notes.append(f"peak memory of a worker {peak:.0f} MB (goal {MEMORY_GOAL_MB} MB: {met(peak < MEMORY_GOAL_MB)})")
    if importlib.util.find_spec("matplotlib") is not None:
        plot(found, IMAGE)
        notes.append(f"plot: {IMAGE.relative_to(ROOT)}")
    largest, before = (one.cpu / one.records * 10**6 for one in (found[-1], found[-2]))
    title = f"CPU seconds of 10^6 records: of a log of {found[-1].records:,}, and of one of {found[-2].records:,}"
    return Comparison(title, [largest], [before], GOAL, notes, ("largest", "before"))


def plot(found: list[Ingest], image: Path) -> None:
    """Both axes logarithmic; the line is what the largest one takes for each record."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    records = [one.records for one in found]
    axes.loglog(records, [one.cpu for one in found], "o-", color="#2060a0", label="CPU seconds")
    each = found[-1].cpu / found[-1].records
    axes.loglog(
        records, [each * count for count in records], ":", color="#808080", label=f"{each * 10**6:.1f} µs a record"
    )
    axes.set(xlabel="records", ylabel="seconds", title="Ingest into Parquet, all fields, one CPU")
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(image, dpi=120)


if __name__ == "__main__":
    print(run(1))
