"""Reading the directory of a controller that writes, rolls its log and takes snapshots: no false alarm, no trace left.

``KSHELL_LIVE_SECONDS`` says for how long (20 by default; old segments begin to be deleted after about a minute).
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kafka import jars, text, trace
from tests.kafka.admin import Admin
from tests.kafka.cluster import Cluster
from tests.kafka.node import METADATA, Node
from tests.kafka.oracle import expected_image
from tests.kafka.properties import small_files
from tests.live import oneshot

pytestmark = pytest.mark.live

SECONDS = float(os.environ.get("KSHELL_LIVE_SECONDS", "20"))
JUDGED = 6
"""How many of the reads Kafka judges afterwards."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Run a controller that rolls and snapshots every few hundred milliseconds while it is kept busy."""
    jars.require()
    props = [*small_files(jars.LATEST, snapshot_bytes=4000, segment_bytes=8000, retention_bytes=60000),
             "metadata.max.idle.interval.ms=50"]  # fmt: skip
    with Cluster(props=props) as running:
        yield running


@contextlib.contextmanager
def busy(admin: Admin) -> Iterator[list[int]]:
    """Keep a cluster changing in the background; yields a list that grows by one a round."""
    rounds: list[int] = []
    stop = threading.Event()
    failed: list[Exception] = []
    name = f"busy-{time.monotonic_ns():x}"

    def change() -> None:
        number = 0
        try:
            while not stop.is_set():
                admin.create_topic(f"{name}-{number}", 3, 1, configs={"retention.ms": "1000"})
                admin.set_config("TOPIC", f"{name}-{number}", {"segment.bytes": "1048576"})
                if number >= 10:
                    admin.delete_topic(f"{name}-{number - 10}")
                rounds.append(number)
                number += 1
        except Exception as error:  # reported below, in the test's own thread
            failed.append(error)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        yield rounds
    finally:
        stop.set()
        thread.join()
    assert not failed, failed


def keep(node: Node, kept: Path) -> None:
    """Link every segment into a directory beside, where it stays when the controller deletes it."""
    for segment in node.metadata.glob("*.log"):
        with contextlib.suppress(FileExistsError, FileNotFoundError):
            (kept / segment.name).hardlink_to(segment)


def offset_of(rows: list[str]) -> int:
    """Return the provenance of an image that ``find`` printed."""
    for line in rows:
        row = json.loads(line)
        if row["path"] == "/image/provenance":
            return int(row["value"]["offset"])
        if row["path"] == "/image/provenance/offset":
            return int(row["value"])
    raise AssertionError("no provenance")


def test_reads_are_never_wrong(cluster: Cluster) -> None:
    node = cluster.controllers[0]
    kept = node.home / "kept"
    kept.mkdir()
    keep(node, kept)
    reads: list[tuple[int, list[str]]] = []
    snapshots: set[str] = set()
    with busy(cluster.admin()) as rounds:
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            rows = oneshot.lines(node.metadata, *oneshot.FIND)
            reads.append((offset_of(rows), rows))
            keep(node, kept)
            snapshots.update(file.name for file in node.metadata.glob("*.checkpoint"))
            assert oneshot.lines(node.logs, "info")
    keep(node, kept)
    offsets = [offset for offset, _ in reads]
    segments = sorted(file.name for file in kept.iterdir())
    print(f"{len(reads)} reads to offset {offsets[-1]}, {len(rounds)} rounds, {len(segments)} segments, "
          f"{len(snapshots)} snapshots, {len(list(node.metadata.glob('*.log')))} segments left")  # fmt: skip
    assert offsets == sorted(offsets)
    assert len(set(offsets)) > 3
    assert len(segments) > 3 and len(snapshots) > 3, "the controller neither rolled nor took snapshots"
    for offset, rows in reads[:: max(1, len(reads) // JUDGED)]:
        expected = text.read(expected_image(kept, offset, log_only=True))
        assert expected.last_offset == offset
        assert text.compare(expected, rows) == []


@trace.NEEDED
@pytest.mark.parametrize("words", [oneshot.FIND, ("info",), ("dump",)], ids=lambda words: words[0])
def test_nothing_is_written_locked_or_created(cluster: Cluster, tmp_path: Path, words: tuple[str, ...]) -> None:
    node = cluster.controllers[0]
    with busy(cluster.admin()):
        for number in range(5):
            log = tmp_path / f"trace-{number}"
            done = trace.run(oneshot.command(node.logs, *words), log, oneshot.ROOT)
            assert done.returncode == 0, done.stderr
            calls = log.read_text("utf-8", "replace")
            assert trace.touches(calls, node.metadata) > 3
            assert trace.changes(calls, node.logs) == []


@trace.NEEDED
def test_the_judge_would_see_a_lock(cluster: Cluster, tmp_path: Path) -> None:
    """What Kafka's own tools do there: the trace must show it."""
    node, log = cluster.controllers[0], tmp_path / "trace"
    program = f"import fcntl; fcntl.flock(open({str(node.logs / METADATA / 'quorum-state')!r}), fcntl.LOCK_SH)"
    trace.run([sys.executable, "-c", program], log)
    assert any("flock" in line for line in trace.changes(log.read_text(), node.logs))
