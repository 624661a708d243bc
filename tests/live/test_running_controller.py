"""Reading the directory of a controller that writes, rolls its log, takes snapshots and deletes what is old: no false
alarm, and no trace left.

``KSHELL_LIVE_SECONDS`` replaces the time for which it is read (old segments begin to be deleted after about a minute).
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.kafka import jars, text, trace
from tests.kafka.cluster import Cluster
from tests.kafka.node import METADATA, Node, keeping
from tests.kafka.oracle import expected_image
from tests.kafka.properties import small_files
from tests.live import oneshot, workload

pytestmark = pytest.mark.live

JUDGED = 6
"""How many of the images Kafka judges afterwards, and how many hashes and saved directories are looked at again."""
SAVED = "SAVED"
"""Stands for a directory that is not there yet."""

QUESTIONS = (
    oneshot.FIND,
    ("verify", "-o", "json"),
    ("hash", "-o", "json"),
    ("verify", "--deep", "-o", "json"),
    ("health", "-o", "json"),
    ("dump", "-o", "jsonl"),
    ("save", SAVED),
    ("info", "-o", "json"),
    ("log", "--newest-first", "--count", "5", "-o", "jsonl"),
    ("verify", "--deep", "-o", "json"),
    ("status", "-o", "json"),
    ("follow", "--count", "5", "-o", "jsonl"),
    ("topics", "-o", "jsonl"),
    ("why", "broker-0", "-o", "json"),
    ("diff", "end-5s", "now", "-o", "jsonl"),
    ("blame", "/image/cluster", "-o", "jsonl"),
    ("log", "--stat", "-o", "json"),
)
ANSWERS_NO = ("health", "diff")
"""Commands that may say no: there is one broker only, and there are changes."""
ALARM = re.compile(
    r'damage(?!": (?:null|\[\]))|corrupt|vanish|incomplete|no(?:t a)? whole|left out|was expected|Traceback'
)
"""What no answer says of a directory that is well; ``info`` has a field for damage."""
ROWS_OF_DUMP = ("dump", "follow")


@contextlib.contextmanager
def running(version: str) -> Iterator[Cluster]:
    """Run a controller that rolls and snapshots every few hundred milliseconds while it is kept busy."""
    jars.require(jars.LATEST, version)
    props = [*small_files(version, snapshot_bytes=4000, segment_bytes=8000, retention_bytes=60000),
             "metadata.max.idle.interval.ms=50"]  # fmt: skip
    with Cluster(version, props=props) as cluster:
        yield cluster


class Asked(NamedTuple):
    """A question and its answer."""

    words: tuple[str, ...]
    done: subprocess.CompletedProcess[str]
    saved: Path

    @property
    def lines(self) -> list[str]:
        return self.done.stdout.split("\n")[:-1]


class Reading:
    """What a controller was asked, and what was seen of its directory meanwhile."""

    def __init__(self, node: Node, scratch: Path) -> None:
        self.node = node
        self.kept = node.home / f"kept-{scratch.name}"
        self.kept.mkdir()
        self.answers: list[Asked] = []
        self.calls = 0
        """System calls that named something in the directory."""
        self.deleted = 0
        self._scratch = scratch

    def ask(self, words: tuple[str, ...], *, traced: bool) -> None:
        """Ask, and judge the answer as far as it can be at once."""
        saved = self._scratch / f"saved-{len(self.answers)}"
        command = [str(saved) if word == SAVED else word for word in words]
        if traced:
            log = self._scratch / "trace"
            done = trace.run(oneshot.command(self.node.logs, *command), log, oneshot.ROOT)
            calls = log.read_text("utf-8", "replace")
            assert trace.changes(calls, self.node.logs) == []
            assert trace.touches(calls, self.node.metadata) > 3
            self.calls += trace.touches(calls, self.node.logs)
        else:
            done = oneshot.run(self.node.logs, *command)
        asked = Asked(words, done, saved)
        self._judge(asked)
        self.answers.append(asked)

    def _judge(self, asked: Asked) -> None:
        words, done = asked.words, asked.done
        told = f"{' '.join(words)} ended with {done.returncode}: {done.stderr}\n{done.stdout[-3000:]}"
        assert done.returncode in ((0, 1) if words[0] in ANSWERS_NO else (0,)), told
        assert not ALARM.search(done.stderr), told
        if words[0] == "verify":
            checks = json.loads(done.stdout)
            assert [check for check in checks if check["verdict"] not in oneshot.WELL] == []
        if words[0] not in ROWS_OF_DUMP and words[0] != "verify":
            assert not ALARM.search(done.stdout), told

    def answers_to(self, word: str) -> list[Asked]:
        return [asked for asked in self.answers if asked.words[0] == word]


def read_for(cluster: Cluster, seconds: float, scratch: Path) -> Reading:
    """Ask everything again and again, every other time under strace where there is one."""
    node = cluster.controllers[0]
    reading = Reading(node, scratch)
    can_trace = trace.missing() is None
    with keeping(node.metadata, reading.kept), workload.changing(cluster.admin()) as work:
        end = time.monotonic() + seconds
        for number, words in enumerate(itertools.cycle(QUESTIONS)):
            if number >= len(QUESTIONS) and time.monotonic() > end:
                break
            reading.ask(words, traced=can_trace and number // len(QUESTIONS) % 2 == 1)
    left = {file.name for file in node.metadata.iterdir()}
    kinds = Counter(file.suffix for file in reading.kept.iterdir())
    reading.deleted = sum(file.name not in left for file in reading.kept.iterdir())
    print(f"{len(reading.answers)} answers in {seconds:.0f} s, {reading.calls} calls traced, {work.rounds} rounds of"
          f" changes, {work.refused} refused; {kinds['.log']} segments, {kinds['.checkpoint']} snapshots,"
          f" {reading.deleted} files deleted")  # fmt: skip
    assert work.refused <= work.rounds, "Kafka itself was too busy: what it was asked for, it refused"
    assert kinds[".log"] > 3 and kinds[".checkpoint"] > 3, "the controller neither rolled nor took snapshots"
    return reading


def offset_of(rows: list[str]) -> int:
    """Return the provenance of an image that ``find`` printed."""
    for line in rows:
        row = json.loads(line)
        if row["path"] == "/image/provenance":
            return int(row["value"]["offset"])
        if row["path"] == "/image/provenance/offset":
            return int(row["value"])
    raise AssertionError("no provenance")


def some(answers: list[Asked]) -> list[Asked]:
    return answers[:: max(1, len(answers) // JUDGED)]


def check_images(reading: Reading) -> None:
    """Each image, hash and saved directory is one that the log really had."""
    reads = reading.answers_to("find")
    offsets = [offset_of(asked.lines) for asked in reads]
    assert offsets == sorted(offsets)
    for asked in some(reads):
        offset = offset_of(asked.lines)
        expected = text.read(expected_image(reading.kept, offset, log_only=True))
        assert expected.last_offset == offset
        assert text.compare(expected, asked.lines) == []
    stated = [json.loads(asked.done.stdout) for asked in some(reading.answers_to("hash"))]
    for asked in some(reading.answers_to("save")):
        manifest = json.loads((asked.saved / "manifest.json").read_text())
        assert json.loads("\n".join(oneshot.lines(asked.saved, "hash", "-o", "json")))["hash"] == manifest["hash"]
        stated.append(manifest)
    for answer in stated:
        point = ("--as-of", str(answer["offset"]))
        oneshot.lines(reading.kept, "hash", *point, "--expect", answer["hash"])


def check_records(reading: Reading) -> None:
    """Each record that was printed is one of the log, and none between two of them is missing."""
    rows = (json.loads(line) for line in oneshot.lines(reading.kept, "dump", "-o", "jsonl"))
    log: dict[int, dict[str, Any]] = {row["offset"]: row for row in rows}
    for word in ROWS_OF_DUMP:
        for asked in reading.answers_to(word):
            rows_of_it = [json.loads(line) for line in asked.lines]
            first = rows_of_it[0]["offset"]
            assert rows_of_it == [log[offset] for offset in range(first, first + len(rows_of_it))]
    for asked in reading.answers_to("log"):
        if "--stat" not in asked.words:
            for row in map(json.loads, asked.lines):
                expected = log[row["offset"]]
                assert row == {**row, **{name: expected[name] for name in ("type", "data", "epoch", "timestampMs")}}


@pytest.fixture(scope="module", params=[jars.LATEST, "3.9.2"])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """One controller and one broker."""
    with running(request.param) as cluster:
        yield cluster


def test_answers_are_never_wrong(cluster: Cluster, tmp_path: Path) -> None:
    reading = read_for(cluster, float(os.environ.get("KSHELL_LIVE_SECONDS", "15")), tmp_path)
    check_images(reading)
    check_records(reading)


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("version", [jars.LATEST, jars.LATEST_SHELL, "3.9.2"])
def test_answers_are_never_wrong_in_ten_minutes(version: str, tmp_path: Path) -> None:
    with running(version) as cluster:
        reading = read_for(cluster, float(os.environ.get("KSHELL_LIVE_SECONDS", "600")), tmp_path)
        check_images(reading)
        check_records(reading)
        assert reading.deleted or "KSHELL_LIVE_SECONDS" in os.environ, "the controller deleted nothing"


@trace.NEEDED
def test_nothing_is_written_locked_or_created(cluster: Cluster, tmp_path: Path) -> None:
    reading = Reading(cluster.controllers[0], tmp_path)
    with workload.changing(cluster.admin(), first=1000):
        for words in dict.fromkeys(QUESTIONS):
            reading.ask(words, traced=True)
    assert reading.calls > 10 * len(reading.answers)


@trace.NEEDED
def test_the_judge_would_see_a_lock(cluster: Cluster, tmp_path: Path) -> None:
    """What Kafka's own tools do there: the trace must show it."""
    node, log = cluster.controllers[0], tmp_path / "trace"
    program = f"import fcntl; fcntl.flock(open({str(node.logs / METADATA / 'quorum-state')!r}), fcntl.LOCK_SH)"
    trace.run([sys.executable, "-c", program], log)
    assert any("flock" in line for line in trace.changes(log.read_text(), node.logs))
