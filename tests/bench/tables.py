"""Whole runs of ``kshell-pipeline`` over fleets of small clusters: CPU seconds of all processes, and files.

The clusters are copies of the recorded directories, each with an id of its own. Rows of the table in docs/spark.md.
Needs Linux, which counts the CPU of Java as well.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.bench.harness import ROOT, Comparison, met
from tests.bench.ingesting import cpu_seconds
from tests.builders import FIXTURES

FEW, MANY, WARM = 4, 200, 8
NEW_RECORDS = 100
MOST_FILES, MOST_CPU, MOST_CPU_MORE, MOST_CPU_WARM = 800, 200.0, 25.0, 12.0
"""Of the first run over many clusters; and of one with few new records over few, in CPU seconds: with the start of
Spark, and in a session that has made such steps before."""
_SUBREAPER = 36
"""``PR_SET_CHILD_SUBREAPER`` of prctl(2): processes whose parent has ended become this one's, and are counted."""
_HEADER = 12
"""Bytes of a batch before those that its length counts."""


def run(rounds: int) -> Comparison:
    """One of each, whatever ``rounds`` says: they take minutes. Compared are a second run and the first."""
    with tempfile.TemporaryDirectory() as folder:
        few, many = Path(folder, "few"), Path(folder, "many")
        fleet(few, FEW)
        held_back = cut(few / "cluster-0002")
        first = pipeline(few, Path(folder, "tables"))
        before = shutil.copytree(Path(folder, "tables"), Path(folder, "before"))
        held_back()
        second = pipeline(few, Path(folder, "tables"))
        warm = steps_in_one_session(few, before)
        fleet(many, MANY)
        whole = pipeline(many, Path(folder, "many-tables"))
        files = sum(len(names) for _, _, names in os.walk(Path(folder, "many-tables")))
    notes = [
        f"{FEW} clusters: {first:.1f} CPU s; {NEW_RECORDS} records more: {second:.1f}"
        f" (at most {MOST_CPU_MORE:.0f}: {met(second <= MOST_CPU_MORE)})",
        f"the same in one session, again and again: {', '.join(f'{cpu:.1f}' for cpu in warm)} CPU s"
        f" (the last at most {MOST_CPU_WARM:.0f}: {met(warm[-1] <= MOST_CPU_WARM)})",
        f"{MANY} clusters: {whole:.1f} CPU s (at most {MOST_CPU:.0f}: {met(whole <= MOST_CPU)}), {files} files"
        f" (at most {MOST_FILES}: {met(files <= MOST_FILES)})",
    ]
    return Comparison(
        "a run with few new records, against the first", [second], [first], 1.0, notes, ("second", "first")
    )


def fleet(place: Path, count: int) -> None:
    """So many clusters, ``cluster-0000`` and on."""
    nodes = sorted(path for path in FIXTURES.glob("*/broker-0") if any(path.glob("__cluster_metadata-0/*.log")))
    for number in range(count):
        copy = place / f"cluster-{number:04}"
        shutil.copytree(nodes[number % len(nodes)], copy)
        properties = copy / "meta.properties"
        lines = properties.read_text().splitlines()
        named = [f"cluster.id={copy.name}" if line.startswith("cluster.id=") else line for line in lines]
        properties.write_text("\n".join(named) + "\n")


def cut(node: Path) -> Callable[[], object]:
    """Takes about a hundred records off the end of its log; gives what puts them back."""
    log = sorted(node.glob("__cluster_metadata-0/*.log"))[-1]
    whole, at, batches = log.read_bytes(), 0, list[tuple[int, int]]()
    while at + 61 <= len(whole):
        length, records = struct.unpack_from(">i", whole, at + 8)[0], struct.unpack_from(">i", whole, at + 57)[0]
        batches.append((at, records))
        at += _HEADER + length
    left = NEW_RECORDS
    while left > 0:
        at, records = batches.pop()
        left -= records
    log.write_bytes(whole[:at])
    return lambda: log.write_bytes(whole)


def pipeline(source: Path, out: Path) -> float:
    """CPU seconds of one run and of all that it starts."""
    return _of_a_process("run", source, out)[-1]


def steps_in_one_session(source: Path, before: Path) -> list[float]:
    """CPU seconds of each of :data:`WARM` steps from the same tables on, in one session."""
    return _of_a_process("steps", source, before)


def _of_a_process(measured: str, source: Path, out: Path) -> list[float]:
    words = [sys.executable, "-m", "tests.bench.tables", measured, str(source), str(out)]
    done = subprocess.run(
        words, check=False, capture_output=True, text=True, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}
    )
    if done.returncode:
        raise SystemExit(f"the run failed:\n{done.stderr[-2000:]}")
    return [float(line) for line in done.stdout.splitlines()]


def _steps(source: str, before: str) -> None:
    from kshell.spark import session
    from kshell.spark.steps import planning
    from kshell.spark.steps.step import run_step
    from kshell.spark.tables.warehouse import Warehouse

    with session.running() as spark:
        for number in range(WARM):
            out = shutil.copytree(before, f"{before}-{number}")
            started = cpu_seconds()
            warehouse = Warehouse(spark, out)
            warehouse.settings_for_few_rows = session.FOR_FEW_ROWS
            with warehouse.writing():
                summary = run_step(warehouse, planning.clusters([f"{source}/*/__cluster_metadata-0"]))
            assert summary.step == 2 and any(summary.rows.values()), summary
            print(cpu_seconds() - started, flush=True)
            shutil.rmtree(out)


def _run(source: str, out: str) -> None:
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    words = ["run", "--source", f"{source}/*/__cluster_metadata-0", "--out", out]
    subprocess.run([sys.executable, "-m", "kshell.spark.cli", *words], check=True, stdout=subprocess.DEVNULL)
    ends = time.monotonic() + 60
    while time.monotonic() < ends:
        try:
            os.wait()
        except ChildProcessError:
            break
    spent = os.times()
    print(spent.children_user + spent.children_system)


if __name__ == "__main__":
    {"run": _run, "steps": _steps}[sys.argv[1]](*sys.argv[2:])
