"""kshell on a running quorum: the tree of the leader's directory, every committed record once, whatever is killed.

``KSHELL_LIVE_SECONDS`` says for how long the cluster is followed (12 by default), ``KSHELL_LIVE_KILLS`` how often a
controller is killed meanwhile (3 by default), ``KSHELL_LIVE_LOOKS`` how often the tree is compared (4 by default), and
``KSHELL_LIVE_QUORUMS`` in how many clusters (12 by default; from 6 on, each release is among them).
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kafka import jars, text
from tests.kafka.cluster import Cluster
from tests.kafka.node import METADATA, copy_node
from tests.kafka.oracle import expected_image
from tests.kafka.properties import small_files
from tests.kafka.waiting import wait_until
from tests.live import oneshot, workload

pytestmark = pytest.mark.live

VERSIONS = ("3.3.2", "3.6.2", "3.9.2", "4.0.0", "4.1.1", "4.4.0")
SECONDS = float(os.environ.get("KSHELL_LIVE_SECONDS", "12"))
KILLS = int(os.environ.get("KSHELL_LIVE_KILLS", "3"))
LOOKS = int(os.environ.get("KSHELL_LIVE_LOOKS", "4"))
QUORUMS = int(os.environ.get("KSHELL_LIVE_QUORUMS", "12"))
KINDS = [(version, (number + half) % 2 == 0) for half in (0, 1) for number, version in enumerate(VERSIONS)]
"""Releases, and whether they make snapshots."""
SHORT = (10, 2)
"""Snapshots and segments roll every few rounds, so that pieces, tails and deleted segments are met."""


def quorum(cluster: Cluster) -> tuple[str, ...]:
    return ("-q", cluster.bootstrap_controllers)


def provenance(rows: list[str]) -> int:
    for line in rows:
        row = json.loads(line)
        if row["path"] == "/image/provenance":
            return int(row["value"]["offset"])
    raise AssertionError("no provenance")


@pytest.mark.parametrize(
    ("version", "snapshots"),
    [pytest.param(*kind, id=f"{'snapshots' if kind[1] else 'log'}-{kind[0]}") for kind in KINDS[:QUORUMS]],
)
def test_the_tree_is_that_of_the_leaders_directory(version: str, snapshots: bool, tmp_path: Path) -> None:
    jars.require(jars.LATEST, version)
    props = small_files(version, snapshot_bytes=4000, segment_bytes=8000) if snapshots else []
    dynamic = snapshots and version >= "4"
    with Cluster(version, controllers=3 if snapshots else 1, dynamic=dynamic, props=props) as cluster:
        admin = cluster.admin()
        with workload.changing(admin, scram=version >= "3.5") as work:
            wait_until(lambda: work.rounds > 0, "nothing changes")
            for attempt in range(LOOKS):
                time.sleep(0.7)
                check_image(cluster, tmp_path / f"copy-{attempt}")


def check_image(cluster: Cluster, copy: Path) -> None:
    """The image on the wire is the one in a copy of the leader's directory, at the same offset."""
    live = oneshot.lines(quorum(cluster), *oneshot.FIND)
    offset = provenance(live)
    leader = cluster.leader()
    wait_until(lambda: ends_behind(leader.logs, offset), f"offset {offset} is not in the leader's files")
    copy_node(leader, copy)
    assert live == oneshot.lines(copy, "--as-of", str(offset), *oneshot.FIND)
    expected = text.read(expected_image(copy / METADATA, offset))
    assert len(expected.leaves) > 10
    assert text.compare(expected, live) == []


def ends_behind(logs: Path, offset: int) -> bool:
    done = oneshot.run(logs, "cat", "/log/endOffset", "-o", "json")
    return done.returncode == 0 and int(done.stdout) > offset


class Follower:
    """``kshell -q … follow -o jsonl`` in a process of its own, writing to a file."""

    def __init__(self, cluster: Cluster, out: Path, *words: str) -> None:
        self.out = out
        self.errors = out.with_suffix(".err")
        command = oneshot.command(quorum(cluster), "follow", "-o", "jsonl", *words)
        with out.open("wb") as stdout, self.errors.open("wb") as stderr:
            self.process = subprocess.Popen(
                command, cwd=oneshot.ROOT, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr
            )

    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.read_text("utf-8").split("\n")[:-1]]

    def reached(self, offset: int) -> bool:
        assert self.process.poll() is None, self.errors.read_text()
        rows = self.rows()
        return bool(rows) and rows[-1]["offset"] >= offset

    def stop(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(10)


@contextlib.contextmanager
def following(cluster: Cluster, out: Path, *words: str) -> Iterator[Follower]:
    follower = Follower(cluster, out, *words)
    try:
        yield follower
    finally:
        if follower.process.poll() is None:
            follower.process.kill()
            follower.process.wait()


def check_followed(cluster: Cluster, follower: Follower, tmp_path: Path) -> int:
    """What was printed is what the leader's log holds from the first record printed on: each once, in order."""
    last = provenance(oneshot.lines(quorum(cluster), *oneshot.FIND))
    wait_until(lambda: follower.reached(last), f"follow has not printed offset {last}")
    assert follower.stop() == 130
    rows = follower.rows()
    offsets = [row["offset"] for row in rows]
    assert offsets == list(range(offsets[0], offsets[-1] + 1))
    copy_node(cluster.leader(), tmp_path / "leader")
    dumped = [json.loads(line) for line in oneshot.lines(tmp_path / "leader", "dump", "-o", "jsonl")]
    expected = [row for row in dumped if offsets[0] <= row["offset"] <= offsets[-1]]
    assert rows == expected
    return len(rows)


def test_follow_prints_every_record_once(tmp_path: Path) -> None:
    jars.require()
    with Cluster(controllers=3) as cluster, following(cluster, tmp_path / "rows.jsonl") as follower:
        wait_until(lambda: bool(follower.rows()), "follow prints nothing")
        with workload.changing(cluster.admin()) as work:
            time.sleep(SECONDS)
        count = check_followed(cluster, follower, tmp_path)
        check_image(cluster, tmp_path / "final")
        print(f"{work.rounds} rounds of changes, {work.refused} refused, {count} records")
        assert work.rounds > SECONDS / 3
        types = {row["type"] for row in follower.rows()}
        assert types >= {
            "TOPIC_RECORD", "PARTITION_RECORD", "REMOVE_TOPIC_RECORD", "CONFIG_RECORD", "CLIENT_QUOTA_RECORD",
            "ACCESS_CONTROL_ENTRY_RECORD", "REMOVE_ACCESS_CONTROL_ENTRY_RECORD", "USER_SCRAM_CREDENTIAL_RECORD",
            "REMOVE_USER_SCRAM_CREDENTIAL_RECORD",
        }  # fmt: skip


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_nothing_is_lost_or_repeated_when_controllers_are_killed(dynamic: bool, tmp_path: Path) -> None:
    jars.require()
    leaders = set()
    with Cluster(controllers=3, dynamic=dynamic) as cluster, following(cluster, tmp_path / "rows.jsonl") as follower:
        wait_until(lambda: bool(follower.rows()), "follow prints nothing")
        with workload.changing(cluster.admin()) as work:
            for number in range(KILLS):
                leader = cluster.leader()
                leaders.add(leader.id)
                victim = leader if number % 3 < 2 else next(c for c in cluster.controllers if c is not leader)
                cluster.kill(victim)
                time.sleep(1.5)
                cluster.start(victim)
                time.sleep(1.0)
        count = check_followed(cluster, follower, tmp_path)
        check_image(cluster, tmp_path / "final")
        changes = [row for row in follower.rows() if row["type"] == "LEADER_CHANGE"]
        print(f"{KILLS} kills, {len(changes)} leader changes, {work.rounds} rounds, {work.refused} refused, "
              f"{count} records")  # fmt: skip
        assert len(changes) >= KILLS // 2
