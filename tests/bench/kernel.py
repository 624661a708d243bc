"""What looking into a large log costs, against Kafka's own classes: CPU seconds of whole processes.

Each row is taken in one run, ours and theirs in turn: the newest state, a state of the past, the past of one partition,
all partitions, of a log of 1,000,000 records (5,000 topics x 20 partitions, then random changes); the newest state of
logs of one kind of record each (:mod:`tests.bench.logs`); all partitions of snapshots of a million; ten snapshots along
a log; and the cost against the size of the log, as a picture.
"""

from __future__ import annotations

import os
import random
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.bench import checkpoints, logs
from tests.bench.harness import ROOT, Comparison, Run, kshell, measured, met
from tests.bench.ingest import dump_command
from tests.kafka import gen, jars

TOPICS, PARTITIONS, RECORDS = 5_000, 20, 1_000_000
KIND_RECORDS = 300_000
CURVE = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
MEMORY_MB = 150
"""What the first and third rows may take beside the file."""
_LATER = """
import sys, time
import kshell

session = kshell.open(sys.argv[1])
session.at(10).image
times = []
for offset in map(int, sys.argv[3:]):
    start = time.process_time()
    session.at(offset).run(f"cat {sys.argv[2]} -o json").to_json()
    times.append(time.process_time() - start)
print(sorted(times)[len(times) // 2] * 1000)
"""
_FIRST = """
import sys
import kshell

kshell.open(sys.argv[1]).at(sys.argv[2]).run(f"cat {sys.argv[3]} -o json").to_json()
"""
_HOT = """
import sys, time
import kshell

session = kshell.open(sys.argv[1])
past = session.at(sys.argv[3])
past.image, session.image
for shown in (session, past):
    start = time.process_time()
    shown.run(sys.argv[2]).to_json()
    print((time.process_time() - start) * 1000)
"""


class _Row(NamedTuple):
    """A line of the table: what it is, ours and what it is held against, the largest ratio that will do, the goal."""

    title: str
    ours: float
    theirs: float
    most: float
    goal: float
    unit: str = "s"

    def __str__(self) -> str:
        ratio = self.ours / self.theirs
        must, goal = met(ratio <= self.most), met(ratio <= self.goal).lower()
        return (
            f"{self.title:<58} {self.ours:8.2f} {self.theirs:8.2f} {self.unit:<2} {ratio:6.2f}"
            f"  must {self.most:<5g} {must:<7}  goal {self.goal:<5g} {goal}"
        )


def _row(title: str, ours: float, theirs: float, most: float, goal: float, unit: str = "s") -> _Row:
    """A row, printed at once: all of them take half an hour."""
    row = _Row(title, ours, theirs, most, goal, unit)
    print(row, flush=True)
    return row


def _checked(done: Run) -> Run:
    if done.code not in (0, 1):
        raise SystemExit(f"a benchmark's process failed: {done.code}, {done.output[-300:]}")
    return done


def _median(rounds: int, *sides: Callable[[], Run]) -> list[float]:
    """Median CPU seconds of each side, the sides in turn."""
    seconds: list[list[float]] = [[] for _ in sides]
    for _ in range(rounds):
        for taken, side in zip(seconds, sides, strict=True):
            taken.append(_checked(side()).cpu)
    return [statistics.median(taken) for taken in seconds]


def _environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT)}


def _python(program: str, *words: str) -> list[float]:
    done = _checked(measured([sys.executable, "-c", program, *words], _environment()))
    return [float(line) for line in done.output.split()]


def big_log() -> Path:
    """The log of a million records. A topic in four has a config, and there are 60 brokers and a feature level."""
    return gen.log(TOPICS, PARTITIONS, RECORDS - TOPICS * (PARTITIONS + 1) - TOPICS // 4 - 61)


def _of_one_log(rounds: int) -> tuple[list[_Row], list[str]]:
    file = big_log()
    words = ("-d", str(file))
    path = "/image/topics/byName/topic-7/13"
    peaks: list[float] = []

    def newest() -> Run:
        done = kshell(*words, "cat", path, "-o", "json")
        peaks.append(done.peak_mb)
        return done

    def past() -> Run:
        done = kshell(*words, "--as-of", str(RECORDS * 3 // 4), "cat", path, "-o", "json")
        peaks.append(done.peak_mb)
        return done

    def ours(*command: str) -> Callable[[], Run]:
        return lambda: kshell(*words, *command)

    kafka, first, as_of = _median(rounds, lambda: measured(gen.replay_command(file)), newest, past)
    rows = [
        _row("1  newest state, one cat | Kafka's replay", first, kafka, 0.6, 0.35),
        _row("3  first as-of and cat | row 1", as_of, first, 1.3, 1.1),
    ]
    rng = random.Random(3)
    offsets = [str(rng.randrange(RECORDS // 4, RECORDS)) for _ in range(40)]
    later = _python(_LATER, str(file), path, *offsets)[0]
    rows.append(_row("3  a later one | 1 ms", later, 1.0, 20, 2, "ms"))
    of_one: tuple[tuple[str, ...], ...] = (
        ("log", path),
        ("blame", path),
        ("why", "topic-7-13"),
        ("timeline", "topic-7-13"),
    )
    for command in of_one:
        again, cost = _median(max(1, rounds // 2), newest, ours(*command, "-o", "json"))
        rows.append(_row(f"4  {command[0]} of one partition | row 1", cost, again, 1.7, 1.2))
    of_all: tuple[tuple[str, ...], ...] = (
        ("partitions", "--offline"),
        ("health",),
        ("find", "/image/topics/byName", "--values"),
    )
    for command in of_all:
        again, cost = _median(max(1, rounds // 2), newest, ours(*command, "-o", "json"))
        rows.append(_row(f"10 {' '.join(command)} over the log | row 1", cost, again, 2, 1.3))
    beside = max(peaks) - file.stat().st_size / 1e6
    note = f"8  peak memory {max(peaks):.0f} MB: the file and {beside:.0f} MB (must {MEMORY_MB}: "
    return rows, [note + f"{met(beside <= MEMORY_MB)}; goal 60: {met(beside <= 60).lower()})"]


def _of_kinds(rounds: int) -> list[_Row]:
    rows = []
    for name in logs.KINDS:
        file = logs.made(name, KIND_RECORDS, jars.cache() / "generated/kinds")
        kafka, ours = _median(
            rounds,
            lambda file=file: measured(gen.replay_command(file)),  # type: ignore[misc]
            lambda file=file: kshell("-d", str(file), "cat", "/image/provenance", "-o", "json"),  # type: ignore[misc]
        )
        rows.append(_row(f"2  {KIND_RECORDS:,} records: {name} | Kafka's replay", ours, kafka, 0.8, 0.5))
    return rows


def _of_every_partition(rounds: int) -> list[_Row]:
    """Looks at a million partitions, and at one of them, against Kafka's replay of the same snapshot."""
    rows = []
    for topics, partitions, most, goal in ((10_000, 100, 1 / 8, 1 / 10), (100_000, 10, 1 / 3, 1 / 5)):
        file = gen.snapshot(topics, partitions)
        shape = f"{topics:,} x {partitions}"
        for command in (("partitions", "--offline"), ("status",), ("health",), ("topics", "--where", "offline > 0")):
            kafka, ours = _median(
                rounds,
                lambda file=file: measured(gen.replay_command(file)),  # type: ignore[misc]
                lambda file=file, command=command: kshell("-d", str(file), *command),  # type: ignore[misc]
            )
            rows.append(_row(f"5  {' '.join(command)}, {shape} | Kafka's replay", ours, kafka, 0.6, 0.3))
        walls: list[list[float]] = [[], []]
        for _ in range(rounds):
            walls[0].append(measured(gen.replay_command(file)).seconds)
            words = ("cat", f"/image/topics/byName/topic-{topics // 3}/3")
            walls[1].append(_checked(kshell("-d", str(file), *words, "-o", "json")).seconds)
        kafka, ours = map(statistics.median, walls)
        rows.append(_row(f"7  one cat by the clock, {shape} | Kafka's replay", ours, kafka, most, goal))
    return rows


def _dump(rounds: int) -> list[_Row]:
    file = big_log()
    kafka, ours = _median(
        rounds, lambda: measured(dump_command(file)), lambda: kshell("-d", str(file), "dump", "-o", "jsonl")
    )
    rows = [_row("6  dump -o jsonl | kafka-dump-log", ours, kafka, 0.8, 0.4)]
    with tempfile.TemporaryDirectory() as folder:
        export = ("export", folder, "--force", "--format", "parquet", "--table", "events")
        kafka, ours = _median(rounds, lambda: measured(dump_command(file)), lambda: kshell("-d", str(file), *export))
    return [*rows, _row("6  export of the records to Parquet | kafka-dump-log", ours, kafka, 0.5, 0.15)]


def _of_checkpoints(rounds: int) -> list[_Row]:
    whole = checkpoints.directory(big_log(), 10)
    alone = checkpoints.newest_alone(whole)
    words = ("cat", "/image/topics/byName/topic-7/13", "-o", "json")
    newest, with_others, as_of, of_log = _median(
        rounds,
        lambda: kshell("-d", str(alone), *words),
        lambda: kshell("-d", str(whole), *words),
        lambda: measured([sys.executable, "-c", _FIRST, str(whole), str(RECORDS * 3 // 4), words[1]], _environment()),
        lambda: kshell("-d", str(big_log()), *words),
    )
    return [
        _row("11 newest, ten checkpoints along the log | the newest alone", with_others, newest, 1.1, 1.05),
        _row("11 first as-of there | row 1", as_of, of_log, 1.3, 1.1),
    ]


def _hot_keys() -> list[_Row]:
    rows = []
    for name, command in (("fencing", "brokers -o json"), ("ACLs that come and go", "acls -o json")):
        file = logs.made(name, KIND_RECORDS, jars.cache() / "generated/kinds")
        for when, cost in zip(("now", "as of"), _python(_HOT, str(file), command, str(KIND_RECORDS // 2)), strict=True):
            rows.append(_row(f"12 {command.split()[0]} {when}, {name} | 1 ms", cost, 1.0, 50, 10, "ms"))
    return rows


def _curve() -> list[str]:
    """The cost of row 1 against the size of the log, and its picture."""
    sizes, costs = [], []
    for records in CURVE:
        topics = max(1, records // 200)
        file = gen.log(topics, PARTITIONS, records - topics * (PARTITIONS + 1) - topics // 4 - 61)
        done = [_checked(kshell("-d", str(file), "cat", "/image/provenance", "-o", "json")).cpu for _ in range(3)]
        sizes.append(records)
        costs.append(statistics.median(done))
    lines = [f"9  {size:>9,} records {cost:6.2f} s" for size, cost in zip(sizes, costs, strict=True)]
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return lines
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    axes.loglog(sizes, costs, marker="o")
    axes.set_xlabel("records in the log")
    axes.set_ylabel("CPU seconds of `kshell … cat`")
    axes.grid(visible=True, which="both", alpha=0.3)
    picture = Path(tempfile.gettempdir(), "kshell-kernel.png")
    figure.savefig(picture, dpi=120)
    return [*lines, f"9  the picture: {picture}"]


def run(rounds: int) -> Comparison:
    """All rows; the comparison is that of the first."""
    rows, notes = _of_one_log(min(rounds, 3))
    rows += _of_kinds(min(rounds, 3)) + _of_every_partition(min(rounds, 3)) + _dump(min(rounds, 3))
    rows += _of_checkpoints(min(rounds, 3)) + _hot_keys()
    notes = [*map(str, rows), *notes, *_curve()]
    return Comparison("CPU seconds, ours | what they are held against", [rows[0].ours], [rows[0].theirs], 0.6, notes)
