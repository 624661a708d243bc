"""A process with a Spark session of its own that ingests a log again and again, and measures itself.

``python -m tests.bench.ingesting CPUS OUT SOURCE …``: all records below the sources into the table ``records`` of a
new warehouse in ``OUT``, which is removed again; in a session on those CPUs of this machine (``0,1``: the first two
that there are) and no others. Each line of its input is a round, for which it prints a JSON object: records, seconds of
the clock, CPU seconds of all processes (Java, its Python workers, this one), and the peak resident memory of a worker
in MB (0 where there was none: little is read by the driver). So rounds of several such processes take turns. Needs
Linux.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.bench.harness import ROOT

if TYPE_CHECKING:
    from kshell.spark.reconcile import ReconciledLog
    from kshell.spark.tables.warehouse import Warehouse

_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


class Ingest(NamedTuple):
    """One round."""

    records: int
    wall: float
    cpu: float
    worker_mb: float


@contextlib.contextmanager
def ingesting(cpus: Sequence[int], out: Path, sources: Sequence[Path]) -> Iterator[Callable[[], Ingest]]:
    """A process on those CPUs, and what makes it take one more round; the first are of a JVM that is not warm yet."""
    words = [sys.executable, "-m", "tests.bench.ingesting", ",".join(map(str, cpus)), str(out), *map(str, sources)]
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True, env=env, cwd=ROOT
        )
        assert process.stdin is not None and process.stdout is not None
        asked, told = process.stdin.fileno(), process.stdout

        def failed() -> SystemExit:
            said.seek(0)
            return SystemExit(f"ingesting failed:\n{said.read()[-2000:]}")

        def ingest() -> Ingest:
            with contextlib.suppress(BrokenPipeError):  # it has failed: that no line comes shows it
                os.write(asked, b"\n")
            line = told.readline()
            if not line:
                process.wait()
                raise failed()
            return Ingest(**json.loads(line))

        with process:  # closes its input, which ends it
            yield ingest
        if process.returncode:
            raise failed()


def pinned(cpus: Sequence[int]) -> set[int]:
    """Of the CPUs that this process may run on the first (0), the second, and so on."""
    every = sorted(os.sched_getaffinity(0))
    return {every[number] for number in cpus}


def _main(cpus: Sequence[int], out: str, sources: Sequence[str]) -> None:
    from kshell.spark import session
    from kshell.spark.steps import planning
    from kshell.spark.tables.steps import WarehouseState
    from kshell.spark.tables.warehouse import Warehouse

    os.sched_setaffinity(0, pinned(cpus))
    with session.running(f"local[{len(cpus)}]") as spark:
        for _ in sys.stdin:
            warehouse = Warehouse(spark, out)
            cpu, wall = cpu_seconds(), time.perf_counter()
            take(warehouse, planning.reconcile_all(planning.clusters(sources), WarehouseState()), len(cpus))
            wall, cpu = time.perf_counter() - wall, cpu_seconds() - cpu
            records = warehouse.read("records").count()
            print(json.dumps(Ingest(records, wall, cpu, _worker_mb())._asdict()), flush=True)
            shutil.rmtree(out)


def take(warehouse: Warehouse, truths: Sequence[ReconciledLog], parallelism: int) -> None:
    """What is new into ``bronze/records``, as a step that commits: as a run does it, without the other tables."""
    from kshell.spark.steps import ingest
    from kshell.spark.steps.cluster_changes import change_of
    from kshell.spark.tables.steps import ClusterState

    fresh = [one for one in (change_of(truth, warehouse.state) for truth in truths) if one is not None]
    if not fresh:
        return
    with warehouse.writing():
        warehouse.begin([one.cluster_id for one in fresh])
        slices = [piece for one in fresh for piece in one.log.slices]
        ingest.append(warehouse, slices, parallelism)
        warehouse.commit({one.cluster_id: ClusterState(one.log.checkpoint._asdict(), None, 0) for one in fresh})


def _family() -> Iterator[int]:
    """This process and all below it."""
    parents: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = Path("/proc", entry, "stat").read_text()
            except OSError:
                continue
            parents.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(entry))
    waiting = [os.getpid()]
    while waiting:
        one = waiting.pop()
        yield one
        waiting += parents.get(one, [])


def cpu_seconds() -> float:
    """Of the whole family, with children that have ended."""
    total = 0
    for one in _family():
        try:
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += sum(map(int, fields[11:15]))
    return total / _TICKS


def _worker_mb() -> float:
    """The largest peak of the Python processes below this one."""
    peaks = [0.0]
    for one in _family():
        try:
            status = Path(f"/proc/{one}/status").read_text()
        except OSError:
            continue
        values = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
        if one != os.getpid() and values["Name"].strip().startswith("python") and "VmHWM" in values:
            peaks.append(int(values["VmHWM"].split()[0]) / 1024)
    return max(peaks)


if __name__ == "__main__":
    _main([int(number) for number in sys.argv[1].split(",")], sys.argv[2], sys.argv[3:])
