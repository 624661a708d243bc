"""Ingest of a log of 1,000,000 records, all fields to Parquet, against kafka-dump-log printing it; each on one CPU.

What is compared is CPU seconds: on one CPU that nobody else uses they are those of the clock. Kafka's tool is a process
of its own each time; a session of Spark takes several steps of a stream or clusters of a fleet, so its start does not
count (it is told). All sides take turns: what else the machine does meanwhile it does to all of them. Goals: at most
the same time, better a third; of 64 directories a record costs at most 1.2 times as much as of one.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from kshell.sources.directory.files import METADATA_DIRECTORY
from tests.bench.harness import Comparison, met
from tests.bench.ingesting import Ingest, ingesting, pinned
from tests.kafka import gen, jars

TOPICS, PARTITIONS, RECORDS = 5_000, 20, 1_000_000
DIRECTORIES = 64
WARM = 10
"""Rounds after which Java has compiled what it uses, with two CPUs too, where that takes longest: not counted."""
DIRECTORIES_GOAL = 1.2


def run(rounds: int) -> Comparison:
    """``rounds`` of each, at most nine."""
    rounds = min(rounds, 9)
    log = generated(TOPICS, PARTITIONS, RECORDS)
    with tempfile.TemporaryDirectory() as folder:
        first, one, many, dumped = _in_turn(Path(folder), log, rounds)
    assert {done.records for done in one} == {RECORDS}, one
    assert {done.records for done in many} == {RECORDS // DIRECTORIES * DIRECTORIES}, many
    assert all(done.worker_mb for done in [*one, *many]), "no worker was seen"
    each = _per_record(many) / _per_record(one)
    ours = [done.cpu for done in one]
    theirs = [cpu for _, cpu in dumped]
    rate = RECORDS / statistics.median(ours)
    notes = [
        f"records a CPU second: {rate:,.0f}; kafka-dump-log {RECORDS / statistics.median(theirs):,.0f}"
        f" ({statistics.median(theirs) / statistics.median(ours):.2f} times; wished for: 3)",
        f"by the clock, one CPU: {statistics.median(done.wall for done in one):.2f} s; kafka-dump-log"
        f" {statistics.median(wall for wall, _ in dumped):.2f} s",
        f"the first ingest of a new JVM: {first.cpu:.1f} CPU s",
        f"{DIRECTORIES} directories: {each:.2f} times the CPU of a record (goal {DIRECTORIES_GOAL}:"
        f" {met(each <= DIRECTORIES_GOAL)})",
        f"peak memory of a worker: {max(done.worker_mb for done in [*one, *many]):.0f} MB",
        f"load of the machine meanwhile: {os.getloadavg()[1]:.1f} (what is by the clock needs a quiet one)",
    ]
    return Comparison("ingest of 1,000,000 records into Parquet, one CPU", ours, theirs, 1, notes)


class _Rounds(NamedTuple):
    """The first ingest on one CPU, and warm ones: of one log, of many directories; :func:`dump` of each."""

    first: Ingest
    one: list[Ingest]
    many: list[Ingest]
    dumped: list[tuple[float, float]]


def _in_turn(folder: Path, log: Path, rounds: int) -> _Rounds:
    fleet = split(folder / "fleet")
    with (
        ingesting([0], folder / "one", [log.parent]) as one,
        ingesting([0], folder / "many", [fleet]) as many,
    ):
        first = one()
        for _ in range(WARM):
            one()
            many()
        made = _Rounds(first, [], [], [])
        for _ in range(rounds):
            made.one.append(one())
            made.many.append(many())
            made.dumped.append(dump(log))
    return made


def dump_command(log: Path) -> list[str]:
    """What prints a log with Kafka's own tool."""
    return [
        jars.program("java"), "-Xmx1g", "-cp", f"{jars.libs(jars.LATEST)}/*", "org.apache.kafka.tools.DumpLogSegments",
        "--cluster-metadata-decoder", "--files", str(log),
    ]  # fmt: skip


def dump(log: Path) -> tuple[float, float]:
    """Seconds of the clock and CPU seconds of kafka-dump-log, on one CPU."""
    words = dump_command(log)
    before, start, every = os.times(), time.perf_counter(), os.sched_getaffinity(0)
    os.sched_setaffinity(0, pinned([0]))
    try:
        with open(os.devnull, "w") as nothing:
            subprocess.run(words, check=True, stdin=subprocess.DEVNULL, stdout=nothing)
    finally:
        os.sched_setaffinity(0, every)
    wall, after = time.perf_counter() - start, os.times()
    return wall, after.children_user + after.children_system - before.children_user - before.children_system


def generated(topics: int, partitions: int, records: int) -> Path:
    """A log of so many records, all counted: topics, their partitions and configs, brokers, and what follows."""
    return gen.log(topics, partitions, records - topics * (partitions + 1) + -topics // 4 - 61)


def split(folder: Path) -> Path:
    """Directories of as many clusters, which have as many records together."""
    each = RECORDS // DIRECTORIES
    log = generated(50, 20, each)
    for number in range(DIRECTORIES):
        place = folder / f"cluster{number}" / METADATA_DIRECTORY
        place.mkdir(parents=True)
        shutil.copy(log, place)
    return folder / "*" / METADATA_DIRECTORY


def _per_record(rounds: list[Ingest]) -> float:
    return statistics.median(done.cpu / done.records for done in rounds)
