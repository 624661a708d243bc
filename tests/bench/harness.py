"""Paired runs: ours and theirs in turn, each a process of its own; medians and their ratio."""

from __future__ import annotations

import atexit
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]


def met(is_met: bool) -> str:
    """How a goal came out, as the benchmarks say it; the count of goals that were missed goes by it."""
    return "met" if is_met else "NOT met"


class Run(NamedTuple):
    """One process: wall-clock and CPU seconds, peak resident memory in MB, exit code, and what it printed."""

    seconds: float
    cpu: float
    peak_mb: float
    code: int
    output: str


class Comparison(NamedTuple):
    """Seconds of each side, in the order they were taken; ``goal`` is the largest ratio ours / theirs that will do."""

    title: str
    ours: list[float]
    theirs: list[float]
    goal: float
    notes: list[str]
    names: tuple[str, str] = ("kshell", "Kafka")
    """What the two sides are called."""

    @property
    def ratio(self) -> float:
        """Median of ours over median of theirs."""
        return statistics.median(self.ours) / statistics.median(self.theirs)

    def __str__(self) -> str:
        def side(name: str, seconds: list[float]) -> str:
            return (
                f"  {name:<8} median {statistics.median(seconds) * 1000:8.0f} ms"
                f"   min {min(seconds) * 1000:8.0f}   max {max(seconds) * 1000:8.0f}   of {len(seconds)}"
            )

        times = f"  ratio    1/{1 / self.ratio:.1f} (goal 1/{1 / self.goal:.3g}: {met(self.ratio <= self.goal)})"
        lines = [self.title, side(self.names[0], self.ours), side(self.names[1], self.theirs), times]
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])


def kshell(*words: str) -> Run:
    """One process of kshell from this checkout, as a user starts it."""
    return measured([sys.executable, "-P", "-m", "kshell", *words], _environment())


def measured(command: Sequence[str], env: Mapping[str, str] | None = None) -> Run:
    """Any process, from its start to its end."""
    start = time.perf_counter()
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, env=env)
        assert process.stdout is not None
        output = process.stdout.read()
        # wait4 gives the peak of this one child; resource.getrusage would give the largest of all so far.
        _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    cpu = usage.ru_utime + usage.ru_stime
    return Run(seconds, cpu, usage.ru_maxrss / 1024, process.returncode, output.decode())


@cache
def _environment() -> dict[str, str]:
    """As an installed kshell runs: with its bytecode at hand, wherever the environment keeps Python from writing it."""
    bytecode = tempfile.mkdtemp(prefix="kshell-bench-")
    atexit.register(shutil.rmtree, bytecode)
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return clean | {"PYTHONPATH": str(ROOT), "PYTHONPYCACHEPREFIX": bytecode}


def pair(rounds: int, ours: Callable[[], float], theirs: Callable[[], float | None]) -> tuple[list[float], list[float]]:
    """Both in turn, after one run of each that does not count; a ``None`` of theirs is a wrong answer: not counted."""
    ours()
    theirs()
    mine: list[float] = []
    other: list[float] = []
    for _ in range(20 * rounds):
        mine.append(ours())
        seconds = theirs()
        if seconds is not None:
            other.append(seconds)
        if len(other) >= rounds:
            break
    if not other:
        raise SystemExit("Kafka's tool gave no right answer: nothing to compare with")
    return mine, other
