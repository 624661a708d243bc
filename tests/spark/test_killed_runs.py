"""``kshell-pipeline run`` killed with SIGKILL at random moments: no reader sees half a step, and the next run ends as
one that nothing disturbed. ``KSHELL_SOAK_COUNT`` says how often (50 by default).
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kshell.spark.tables.warehouse import Warehouse
from tests.bench.tables import cut, fleet
from tests.spark.gold.frames import comparable
from tests.spark.here import ROOT, need_spark

KILLS = int(os.environ.get("KSHELL_SOAK_COUNT", "50"))
pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.long, pytest.mark.timeout(300 * (2 + KILLS))]
CLUSTERS, WITH_NEWS, NEW = 4, "cluster-0002", "cluster-0003"
Content = dict[str, list[str]]


def _plain(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else value


def content(place: Path) -> Content:
    """The rows of all tables as of the last step that counts, as kshell's readers see them."""
    warehouse = Warehouse(None, str(place))
    rows: Content = {}
    for name in warehouse.tables():
        batches = warehouse.table(name).writer.read(warehouse.files(name))
        every = [row for batch in batches for row in batch.to_pylist()]
        rows[name] = comparable([{key: _plain(row[key]) for key in row} for row in every])
    return rows


def started(source: Path, place: Path) -> subprocess.Popen[str]:
    """A run in a process group of its own."""
    words = ["-m", "kshell.spark.cli", "run", "--source", f"{source}/*", "--out", str(place), "--master", "local[1]"]
    return subprocess.Popen(
        [sys.executable, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )


def whole(source: Path, place: Path) -> float:
    """A run that nothing disturbs; gives its seconds."""
    began = time.monotonic()
    process = started(source, place)
    _, said = process.communicate(timeout=600)
    assert process.returncode in (0, 4), said
    return time.monotonic() - began


def commits(place: Path) -> int:
    """How often the log of steps was written."""
    return len(list((place / "_kshell/steps/_delta_log").glob("*.json")))


@contextmanager
def watched(place: Path, allowed: Callable[[Content], bool]) -> Iterator[list[bool]]:
    """Reads all tables again and again; in the list, for each time whether what was seen is allowed."""
    seen: list[bool] = []
    over = threading.Event()

    def read() -> None:
        while not over.wait(0.3):
            seen.append(False)  # what it stays if reading fails
            seen[-1] = allowed(content(place))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield seen
    finally:
        over.set()
        reader.join()


def test_runs_killed_at_random_moments_lose_and_double_nothing(tmp_path: Path) -> None:
    need_spark()
    chosen = random.Random(12)
    source, before = tmp_path / "fleet", tmp_path / "before"
    fleet(source, CLUSTERS)
    put_back = cut(source / WITH_NEWS)
    (source / NEW).rename(tmp_path / NEW)
    whole(source, before)
    put_back()
    (tmp_path / NEW).rename(source / NEW)
    undisturbed = tmp_path / "undisturbed"
    shutil.copytree(before, undisturbed)
    usual = whole(source, undisturbed)
    first, second = content(before), content(undisturbed)
    assert first != second and any(second.values())

    killed_within_commits = 0
    for number in range(KILLS):
        place = tmp_path / str(number)
        shutil.copytree(before, place)
        rows_before = commits(place)
        with watched(place, lambda rows: rows in (first, second)) as seen:
            process = started(source, place)
            if number % 2:  # tables are committed within a second at the end, which few moments of a run would hit
                while commits(place) == rows_before and process.poll() is None:
                    time.sleep(0.002)
                time.sleep(chosen.uniform(0, 0.6))
            else:
                time.sleep(chosen.uniform(0, usual))
            # Java and its workers die with it, or have to notice.
            kill = os.killpg if chosen.random() < 0.5 else os.kill
            kill(process.pid, signal.SIGKILL)
            process.communicate()
        assert seen and all(seen), f"kill {number}"
        interrupted = Warehouse(None, str(place)).log.interrupted is not None
        killed_within_commits += interrupted
        assert content(place) in (first, second), f"kill {number}"
        with watched(place, lambda rows: rows in (first, second)) as seen:
            whole(source, place)
        assert seen and all(seen), f"after kill {number}"
        assert content(place) == second, f"after kill {number}"
        shutil.rmtree(place)
    assert killed_within_commits or KILLS < 10
