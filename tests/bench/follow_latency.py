"""Commit to printed: how long after the leader's high watermark has passed a record ``follow`` has printed it.

Three controllers; the leader's own log says, to the millisecond, when its high watermark moved. Goal: p99 at most 50 ms
from 4.1 on, where a moved high watermark ends a fetch's wait (KIP-1166); before, the next fetch's wait bounds it, and
it is only reported.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import threading
import time
from bisect import bisect_right
from datetime import datetime
from typing import NamedTuple

from tests.bench.harness import ROOT
from tests.kafka.cluster import Cluster
from tests.live import workload

SECONDS = float(os.environ.get("KSHELL_BENCH_SECONDS", "20"))
VERSIONS = ("4.3.1", "4.1.1", "4.0.0", "3.9.2", "3.3.2")
JUDGED = ("4.3.1", "4.1.1")
_GOAL = 50.0
_LOGGER = "org.apache.kafka.raft.KafkaRaftClient"
_ADVANCE = re.compile(r"^(\S+) .*Leader high watermark updated to LogOffsetMetadata\(offset=(\d+)", re.MULTILINE)


class Latency(NamedTuple):
    """Milliseconds from the advance of the high watermark to the line, by release."""

    by_release: dict[str, list[float]]
    notes: list[str]
    goal: float = 1.0

    @property
    def ratio(self) -> float:
        """The worst judged p99 over the goal."""
        return max(p99(self.by_release[version]) / _GOAL for version in JUDGED)

    def __str__(self) -> str:
        lines = ["commit to printed: from the leader's high watermark to a line of follow -o jsonl, three controllers"]
        for version, values in self.by_release.items():
            goal = (
                "" if version not in JUDGED else f" (goal {_GOAL:g} ms: {'met' if p99(values) <= _GOAL else 'NOT met'})"
            )
            lines.append(
                f"  {version:<6} p50 {statistics.median(values):6.1f} ms   p99 {p99(values):6.1f} ms{goal}"
                f"   max {max(values):6.1f}   of {len(values)}"
            )
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])


def p99(values: list[float]) -> float:
    """The value that 99 of 100 do not pass."""
    return sorted(values)[max(0, -(-len(values) * 99 // 100) - 1)]


def run(rounds: int) -> Latency:
    """A cluster of each release in turn; ``rounds`` is not used: time is."""
    return Latency({version: measure(version) for version in VERSIONS}, [])


def measure(version: str) -> list[float]:
    """Every record printed while an administrator changes the cluster; the first seconds do not count."""
    printed: list[tuple[int, float]] = []
    with Cluster(version, controllers=3, logged=[_LOGGER]) as cluster:
        command = [sys.executable, "-P", "-m", "kshell", "-q", cluster.bootstrap_controllers, "follow", "-o", "jsonl"]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, env=os.environ | {"PYTHONPATH": str(ROOT)}, cwd=ROOT
        ) as process:
            counts = threading.Event()

            def read() -> None:
                assert process.stdout is not None
                for line in process.stdout:
                    now = time.time() * 1000
                    if counts.is_set():
                        printed.append((json.loads(line)["offset"], now))

            reader = threading.Thread(target=read)
            reader.start()
            with workload.changing(cluster.admin(), scram=version >= "3.5"):
                time.sleep(4)
                counts.set()
                time.sleep(SECONDS)
                counts.clear()
            process.kill()
            reader.join()
        passed = advances((cluster.leader().home / "server.log").read_text("utf-8", "replace"))
    ends = [end for end, _ in passed]
    return [now - passed[at][1] for offset, now in printed if (at := bisect_right(ends, offset)) < len(passed)]


def advances(log: str) -> list[tuple[int, float]]:
    """(high watermark, epoch milliseconds when the leader had it), rising."""
    found = _ADVANCE.findall(log)
    return [(int(end), datetime.strptime(time, "%Y-%m-%dT%H:%M:%S.%f%z").timestamp() * 1000) for time, end in found]
