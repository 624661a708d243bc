"""A follower of a busy quorum, through bad connections, while controllers are killed: every event once, memory flat.

``KSHELL_FOLLOW_SECONDS``, ``KSHELL_FOLLOW_RATE`` (changes per second) and ``KSHELL_FOLLOW_KILLS`` replace what the
tests say. ``KSHELL_FOLLOW_PLOT`` names a file for the picture of the memory.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

import pytest

from tests.kafka import jars
from tests.kafka.admin import Admin, AdminError
from tests.kafka.cluster import Cluster
from tests.kafka.node import HOST, Node
from tests.kafka.waiting import wait_until
from tests.live import memory, oneshot, workload
from tests.live.proxy import FAULTS, Proxies, proxies

pytestmark = [pytest.mark.live, pytest.mark.soak]

TOPICS = 50
"""Topics whose configs change."""
KEYS = (
    "retention.ms", "retention.bytes", "flush.ms", "flush.messages", "delete.retention.ms", "file.delete.delay.ms",
    "min.compaction.lag.ms", "max.message.bytes", "segment.ms", "index.interval.bytes",
)  # fmt: skip
"""Configs that may be any large number. A request for one of them on all topics makes a record for each topic."""
RESTART = 3.0
"""Seconds that a killed controller stays away."""
LATE = 180
"""Seconds that a follower may need for what is left when all is quiet."""
FLAT = 8 << 20
"""Bytes by which the memory of the second half may exceed that of the first."""


class Scale(NamedTuple):
    """How long, how many changes per second, how many kills."""

    seconds: float
    rate: int
    kills: int


def scale(seconds: float, rate: int, kills: int) -> Scale:
    environment = os.environ.get
    return Scale(
        float(environment("KSHELL_FOLLOW_SECONDS", str(seconds))),
        int(environment("KSHELL_FOLLOW_RATE", str(rate))),
        int(environment("KSHELL_FOLLOW_KILLS", str(kills))),
    )


# --- the cluster and what happens to it -------------------------------------------------------------------------------


def with_second_listener(cluster: Cluster, ports: list[int]) -> None:
    """Give each controller a listener for clients, whose advertised port is a proxy's.

    The quorum itself speaks over the first one: a voter that cannot be reached would only make elections.
    """
    for node, port in zip(cluster.controllers, ports, strict=True):
        cluster.node_props[node.id] = [
            "controller.listener.names=CONTROLLER,CLIENTS",
            "listener.security.protocol.map=CONTROLLER:PLAINTEXT,CLIENTS:PLAINTEXT",
            f"listeners=CONTROLLER://{node.address},CLIENTS://{HOST}:{node.port + 1}",
            f"advertised.listeners=CONTROLLER://{node.address},CLIENTS://{HOST}:{port}",
        ]


class Changes:
    """How many records the background changes asked for, and how many requests Kafka refused."""

    def __init__(self) -> None:
        self.records = 0
        self.refused = 0
        self.seconds = 0.0


@contextlib.contextmanager
def changing(admin: Admin, rate: int) -> Iterator[Changes]:
    """Change configs of topics in the background, so many a second; what an election delays is made up for."""
    changes = Changes()
    stop = threading.Event()
    values = itertools.count(1_000_000)
    names = [f"busy-{number}" for number in range(TOPICS)]
    for name in names:
        admin.create_topic(name)

    def loop() -> None:
        started = time.monotonic()
        while not stop.is_set():
            changes.seconds = time.monotonic() - started
            keys = KEYS[: int(changes.seconds * rate - changes.records) // TOPICS]
            if not keys:
                stop.wait(0.02)
                continue
            value = str(next(values))
            try:
                admin.set_configs("TOPIC", {name: dict.fromkeys(keys, value) for name in names})
            except AdminError:
                changes.refused += 1
                stop.wait(0.2)
            else:
                changes.records += TOPICS * len(keys)

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield changes
    finally:
        stop.set()
        thread.join()


def kill_again_and_again(cluster: Cluster, size: Scale, rng: random.Random, started: float) -> Iterator[float]:
    """Kill a controller, two times of three the leader, and start it again; yields the moments."""
    every = size.seconds / (size.kills + 1)
    for number in range(size.kills):
        time.sleep(max(started + every * (number + 1) - time.monotonic(), 0.0))
        leader = cluster.leader()
        rest = [node for node in cluster.controllers if node is not leader]
        victim = leader if number % 3 < 2 else rng.choice(rest)
        yield time.monotonic() - started
        cluster.kill(victim)
        time.sleep(min(RESTART, every / 4))
        cluster.start(victim)
    time.sleep(max(started + size.seconds - time.monotonic(), 0.0))


# --- the follower -----------------------------------------------------------------------------------------------------


class Follower:
    """``kshell -q … follow -o jsonl`` in a process of its own, writing to a file."""

    def __init__(self, ports: list[int], out: Path) -> None:
        self.out = out
        self.errors = out.with_suffix(".err")
        addresses = ",".join(f"{HOST}:{port}" for port in ports)
        command = oneshot.command(("-q", addresses), "follow", "-o", "jsonl")
        with out.open("wb") as stdout, self.errors.open("wb") as stderr:
            self.process = subprocess.Popen(
                command, cwd=oneshot.ROOT, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr
            )

    def check_alive(self) -> None:
        """Fail with what it said, if it has ended."""
        assert self.process.poll() is None, self.errors.read_text()

    def last_offset(self) -> int:
        """The offset of the last row that is whole in the file, -1 before the first."""
        with self.out.open("rb") as file:
            file.seek(max(self.out.stat().st_size - (1 << 16), 0))
            lines = file.read().split(b"\n")[:-1]
        return int(json.loads(lines[-1])["offset"]) if lines else -1

    def stop(self) -> int:
        """Interrupt it; return its exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(20)


@contextlib.contextmanager
def following(ports: list[int], out: Path) -> Iterator[Follower]:
    follower = Follower(ports, out)
    try:
        yield follower
    finally:
        if follower.process.poll() is None:
            follower.process.kill()
            follower.process.wait()


def end_offset(admin: Admin) -> int:
    """The offset after the last committed record, as the leader says."""
    while True:
        with contextlib.suppress(AdminError):
            return admin.high_watermark()
        time.sleep(0.5)


# --- every event once -------------------------------------------------------------------------------------------------


def compare(printed: Path, node: Node) -> Counter[str]:
    """What was printed is what the node's log holds from the first record printed on: each once, in order.

    Returns:
        The records by type.
    """
    types: Counter[str] = Counter()
    command = oneshot.command(node.metadata, "dump", "-o", "jsonl")
    with (
        printed.open("rb") as rows,
        subprocess.Popen(command, cwd=oneshot.ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as dump,
    ):
        assert dump.stdout is not None
        expected = _from(dump.stdout, rows)
        for row in rows:
            other = next(expected, None)
            assert other is not None, f"printed, and not in the log: {row!r}"
            if row != other:
                assert json.loads(row) == json.loads(other), "printed out of order, twice, or not as it is"
            types[json.loads(row)["type"]] += 1
        for _ in expected:  # what came after the follower ended
            pass
        assert dump.wait() == 0
    return types


def _from(log: IO[bytes], rows: IO[bytes]) -> Iterator[bytes]:
    """The lines of the log from the offset of the first row on."""
    first = json.loads(rows.readline())["offset"]
    rows.seek(0)
    return itertools.dropwhile(lambda line: json.loads(line)["offset"] < first, log)


@pytest.mark.timeout(7200)
@pytest.mark.parametrize(
    "size",
    [
        pytest.param(scale(20, 500, 2), id="short"),
        pytest.param(scale(1800, 500, 50), id="half-an-hour", marks=pytest.mark.long),
    ],
)
def test_every_event_is_printed_once_whatever_happens(size: Scale, tmp_path: Path) -> None:
    jars.require()
    rng = random.Random(6)
    with contextlib.ExitStack() as stack:
        cluster = Cluster(controllers=3)
        chaos = stack.enter_context(proxies([node.port + 1 for node in cluster.controllers], 6))
        with_second_listener(cluster, chaos.ports)
        stack.enter_context(cluster)
        follower = stack.enter_context(following(chaos.ports, tmp_path / "rows.jsonl"))
        admin = cluster.admin()
        wait_until(lambda: follower.last_offset() >= 0, "follow prints nothing")
        with memory.sampled(follower.process.pid) as samples:
            with changing(admin, size.rate) as changes, workload.changing(cluster.admin()) as work:
                kills = []
                for moment in kill_again_and_again(cluster, size, rng, time.monotonic()):
                    follower.check_alive()
                    kills.append(moment)
                seconds = changes.seconds
            end = end_offset(admin)
            wait_until(lambda: follower.last_offset() >= end - 1, f"offset {end - 1} is not printed", LATE)
        assert follower.stop() == 130
        types = compare(follower.out, cluster.leader())
    report(size, changes, seconds, work, kills, types, chaos, samples)
    assert changes.records / seconds > size.rate * 0.8, "not as many changes as were to be made"
    assert len(kills) == size.kills
    assert types["CONFIG_RECORD"] >= changes.records
    assert size.kills < 10 or all(chaos.counts[fault] for fault in FAULTS)
    if size.seconds >= 600:
        assert_flat(samples)


def report(
    size: Scale,
    changes: Changes,
    seconds: float,
    work: workload.Work,
    kills: list[float],
    types: Counter[str],
    chaos: Proxies,
    samples: list[memory.Sample],
) -> None:
    warm = samples[len(samples) // 5 :]
    print(
        f"{seconds:.0f} s, {types.total():,} records printed once ({changes.records / seconds:.0f} changes of configs a"
        f" second, {changes.refused} requests refused; {work.rounds} rounds of other changes, {work.refused} refused),"
        f" {len(kills)} kills, {types['LEADER_CHANGE']} elections; faults: {dict(sorted(chaos.counts.items()))};"
        f" resident memory {min(s.resident for s in warm) / memory.MIB:.1f} to"
        f" {max(s.resident for s in warm) / memory.MIB:.1f} MiB after warming up, slope"
        f" {memory.slope(warm) * 3600 / memory.MIB:+.2f} MiB an hour"
    )
    picture = os.environ.get("KSHELL_FOLLOW_PLOT")
    if picture:
        Path(picture).with_suffix(".json").write_text(json.dumps({"samples": samples, "kills": kills}))
        title = f"follow: {types.total():,} records in {size.seconds / 60:.0f} minutes, {len(kills)} kills"
        memory.plot(samples, kills, title, Path(picture))


def assert_flat(samples: list[memory.Sample]) -> None:
    warm = samples[len(samples) // 5 :]
    first, second = warm[: len(warm) // 2], warm[len(warm) // 2 :]
    grown = max(sample.resident for sample in second) - max(sample.resident for sample in first)
    assert grown < FLAT, f"memory grew by {grown / memory.MIB:.1f} MiB"
