"""Tables that follow a controller which writes, rolls, snapshots and deletes, while what follows it is killed.

``KSHELL_LIVE_KILLS`` says how often (5 by default).
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kshell.spark.options import parse
from kshell.spark.stream.plan import latest
from kshell.spark.stream.positions import StreamPositions
from kshell.spark.tables.catalog import LAYERS
from kshell.spark.tables.steps import DONE_PHASE, StepLog
from tests.kafka import jars
from tests.kafka.admin import Admin
from tests.kafka.cluster import Cluster
from tests.kafka.node import METADATA, keeping
from tests.kafka.properties import small_files
from tests.kafka.waiting import wait_until
from tests.live import oneshot, workload
from tests.spark.beyond import BRIEF, UNCOMPILED, confs
from tests.spark.here import need_spark
from tests.spark.reading import needs_arrow
from tests.spark.warehouses import delta_rows, delta_tables

pytestmark = [pytest.mark.live, pytest.mark.spark, needs_arrow, pytest.mark.timeout(3600)]

KILLS = int(os.environ.get("KSHELL_LIVE_KILLS", "5"))
ROUNDS = 15
"""Rounds of changes before the stream begins, and the least number after it."""
RETAINED = 60_000
"""Bytes of log and snapshots that the controller keeps: more than there are when the stream begins, or come before it
has taken in what was there.
"""
AHEAD = 150
"""Records that the log may be ahead of the tables: what is deleted was read, whatever the machine is busy with."""
ABOUT_FILES = frozenset(("bronze/files", "bronze/copies"))
"""Tables that say what lies in a directory: less than what did."""
QUICK = ("--master", "local[1]", *confs({"spark.driver.extraJavaOptions": BRIEF} | UNCOMPILED))
"""Little is to be done, again and again by a new process: what compiles costs more than it gives."""


class Tables:
    """A warehouse, and the processes that write it."""

    def __init__(self, folder: Path, source: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self.out = folder / "tables"
        self.source = source
        self.log = folder / "said"

    def stream(self, *words: str) -> subprocess.Popen[bytes]:
        """Follows the source."""
        return self._start("stream", "--checkpoint", str(self.folder / "checkpoint"), *words)

    def _start(self, verb: str, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "kshell.spark.cli", verb, "--source", str(self.source), "--out", str(self.out)]
        environment = os.environ | {"PYTHONPATH": str(oneshot.ROOT)}
        with self.log.open("ab") as said:
            return subprocess.Popen(
                [*command, *QUICK, *words], cwd=self.folder, env=environment, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=said, stderr=said,
            )  # fmt: skip

    def finish(self, verb: str, *words: str) -> None:
        """Runs a verb to its end, which must be a good one."""
        process = self.stream(*words) if verb == "stream" else self._start(verb, *words)
        try:
            assert process.wait(1200) == 0, self.log.read_text()[-3000:]
        finally:
            kill(process)

    @property
    def steps(self) -> int:
        """Steps that count."""
        return sum(row["phase"] == DONE_PHASE for row in self.step_rows())

    @property
    def reached(self) -> int:
        """The offset to come."""
        return max((one.reached["offset"] for one in StepLog(str(self.out)).load().clusters.values()), default=0)

    def step_rows(self) -> list[dict[str, Any]]:
        """The rows of the log of steps."""
        log = StepLog(str(self.out))
        log.load()
        return log.rows()

    def data_files(self) -> set[Path]:
        """The data files of the tables, those that no step counts as well."""
        found = (path for layer in LAYERS for path in (self.out / layer).rglob("*.parquet"))
        return {path for path in found if "_delta_log" not in path.parts}

    def rows(self) -> dict[str, list[str]]:
        """Table -> rows in an order of their own, read as anybody reads Delta; what names files is left out."""
        made = {}
        for place in delta_tables(self.out):
            kept = ({name: row[name] for name in row if name != "file"} for row in delta_rows(place))
            rows = [json.dumps(row, sort_keys=True, default=str) for row in kept]
            made[f"{place.parent.name}/{place.name}"] = sorted(rows)
        return made


def kill(process: subprocess.Popen[bytes], *, alone: bool = False) -> None:
    """``kill -9`` of the process, and unless ``alone`` of Spark's own, too."""
    with contextlib.suppress(ProcessLookupError):
        if alone:
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextlib.contextmanager
def changing(admin: Admin, metadata: Path, tables: Tables) -> Iterator[Callable[[], int]]:
    """Changes go on in the background, never far ahead of the tables; gives how many rounds there were."""
    stop = threading.Event()
    failed: list[Exception] = []
    rounds = ROUNDS
    options = parse({"path": str(metadata)})
    places: StreamPositions = {}

    def loop() -> None:
        nonlocal rounds, places
        try:
            while not stop.wait(0.5):
                places = latest(options, places)
                ahead = max(place.offset for place in places.values()) - tables.reached
                if ahead < AHEAD or (tables.steps == 0 and rounds < ROUNDS + 4):
                    workload.change(admin, rounds)
                    rounds += 1
        except Exception as error:  # reported below, in the test's own thread
            failed.append(error)

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield lambda: rounds
    finally:
        stop.set()
        thread.join()
    assert not failed, failed


def wait_for_moment(tables: Tables, process: subprocess.Popen[bytes], number: int, rng: random.Random) -> None:
    """A moment to kill a stream: while it starts, while it writes or commits a step, or soon after one counts."""
    steps, begun, files = tables.steps, len(tables.step_rows()), tables.data_files()
    most = 15.0 if number % 3 else 40.0

    def alive() -> bool:
        assert process.poll() is None, tables.log.read_text()[-3000:]
        return True

    if number % 3 == 1 and number % 2:  # tasks write files, which no table has yet
        wait_until(lambda: alive() and not tables.data_files() <= files, "no step begins", 600)
    elif number % 3 == 1:  # tables are committed, one after the other
        wait_until(lambda: alive() and len(tables.step_rows()) > begun, "no step is committed", 900)
        most = 1.0
    elif number % 3 == 2:
        wait_until(lambda: alive() and tables.steps > steps, "no step counts", 900)
    time.sleep(rng.uniform(0, most))
    alive()


@pytest.mark.soak
@pytest.mark.long
def test_tables_are_those_of_a_run_at_the_end_whatever_was_killed(tmp_path: Path) -> None:
    jars.require()
    need_spark()
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    props = [
        *small_files(jars.LATEST, snapshot_bytes=4000, segment_bytes=8000, retention_bytes=RETAINED),
        "metadata.max.idle.interval.ms=0",
    ]
    with Cluster(props=props, home=tmp_path / "cluster") as cluster:
        metadata = cluster.controllers[0].metadata
        kept, tables = tmp_path / "kept" / METADATA, Tables(tmp_path / "followed", metadata)
        kept.mkdir(parents=True)
        with keeping(metadata, kept):
            follow(cluster, tables, random.Random(seed))
            cluster.close()
    tables.finish("stream", "--available-now")
    said = (metadata / name for name in ("leader-epoch-checkpoint", "quorum-state"))
    for beside in (metadata.parent / "meta.properties", *said):
        (kept.parent if beside.parent == metadata.parent else kept).joinpath(beside.name).write_bytes(
            beside.read_bytes()
        )
    assert len(list(kept.glob("*.log"))) > len(list(metadata.glob("*.log"))) > 1
    once = Tables(tmp_path / "once", kept)
    once.finish("run")
    made, expected = tables.rows(), once.rows()
    assert tables.steps > 1 and once.steps == 1 and tables.reached == once.reached
    assert {name for name in expected if expected[name] and name.startswith("silver")} >= {
        "silver/topics", "silver/partitions", "silver/brokers", "silver/configs", "silver/acls", "silver/quotas",
        "silver/users", "silver/features",
    }  # fmt: skip
    records = map(json.loads, made["bronze/records"])
    # The snapshot of offset 0, which every directory has from Kafka 4.4 on, counts offsets of its own.
    offsets = [record["offset"] for record in records if not record["isSnapshot"]]
    assert sorted(offsets) == list(range(once.reached)), "every record once"
    for name in sorted({*made, *expected} - ABOUT_FILES):
        assert made.get(name, []) == expected.get(name, []), name
    rows = sum(map(len, expected.values()))
    print(f"{tables.steps} steps, {once.reached} records, {rows} rows in {len(expected)} tables")


def follow(cluster: Cluster, tables: Tables, rng: random.Random) -> None:
    """Kills and starts a stream while its source goes on, until the log's first segment is deleted."""
    metadata = cluster.controllers[0].metadata
    admin = cluster.admin()
    for number in range(ROUNDS):
        workload.change(admin, number)
    with changing(admin, metadata, tables) as rounds:
        for number in range(KILLS):
            process = tables.stream("--every", "1s")
            try:
                wait_for_moment(tables, process, number, rng)
            finally:
                kill(process, alone=number % 2 == 1)
            print(f"killed {number + 1}: {tables.steps} steps, offset {tables.reached}, {rounds()} rounds")
        process, steps = tables.stream("--every", "1s"), tables.steps
        try:
            wait_until(lambda: tables.steps > steps, "no step counts", 900)
            wait_until(lambda: not (metadata / f"{0:020}.log").exists(), "nothing is deleted", 900)
            process.terminate()
            assert process.wait(600) == 0, tables.log.read_text()[-3000:]
        finally:
            kill(process)
