"""A cluster in which findings are planted, and what ``health`` prints about them is carried out."""

from __future__ import annotations

import json
import signal
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.builders import batches, sealed
from tests.kafka.admin import AdminError
from tests.kafka.cluster import Cluster
from tests.kafka.node import Node
from tests.kafka.shell_tools import Shell
from tests.kafka.waiting import wait_until
from tests.live import oneshot

SLOW = 120
"""Seconds that a finding may take to come or to go."""
TOPIC = "/image/topics/byName/"
_DAY = 24 * 3600_000


class Unanswered(AssertionError):
    """kshell had no answer: neither that a finding is there, nor that it is gone."""


class Run:
    """A cluster with what was done to it: one line per finding, printed as it happens."""

    def __init__(self, cluster: Cluster) -> None:
        """Nothing is done yet."""
        self.cluster = cluster
        self.source: oneshot.Source = ("-q", cluster.bootstrap_controllers)
        self.shell = Shell(cluster.version, cluster.home / "tools")
        self.admin = cluster.admin()
        self.outcomes: dict[str, str] = {}
        self.started = time.monotonic()

    def answer(self, *words: str, source: oneshot.Source | None = None) -> Any:
        """One answer of kshell as JSON."""
        done = oneshot.run(source or self.source, *words, "-o", "json")
        if done.returncode not in (0, 1):
            raise Unanswered(f"{words}: {done.stderr}")
        return json.loads(done.stdout)

    def find(self, finding: str, path: str = "", *, source: oneshot.Source | None = None) -> dict[str, Any] | None:
        """The finding, as far as health reports it there."""
        rows = self.answer("health", "--where", f"finding == {finding}", source=source)
        return next((row for row in rows if path in row["path"]), None)

    def seen(self, finding: str, path: str = "", *, source: oneshot.Source | None = None) -> dict[str, Any]:
        """Wait for a finding."""
        row: dict[str, Any] | None = None

        def is_there() -> bool:
            nonlocal row
            with suppress(Unanswered):
                row = self.find(finding, path, source=source)
            return row is not None

        try:
            wait_until(is_there, "", SLOW)
        except TimeoutError:
            everything = self.answer("health", source=source)
            raise TimeoutError(f"{finding} is not found at {path!r}: {everything}") from None
        assert row is not None
        return row

    def gone(self, finding: str, path: str = "", *, source: oneshot.Source | None = None) -> None:
        """Wait until a finding is cured."""

        def is_gone() -> bool:
            with suppress(Unanswered):
                return self.find(finding, path, source=source) is None
            return False

        try:
            wait_until(is_gone, "", SLOW)
        except TimeoutError:
            raise TimeoutError(f"{finding} stays: {self.find(finding, path, source=source)}") from None

    def execute(self, commands: list[str]) -> None:
        """Run the lines in bash, one after another; each must end well."""
        assert commands
        for line in commands:
            ended = self.shell.run(line)
            assert ended.returncode == 0, f"{line}\n{ended.stdout}\n{ended.stderr}"
            failures = ("Error", "Exception", "failed", "does not support")
            assert not any(word in ended.stdout for word in failures), f"{line}\n{ended.stdout}\n{ended.stderr}"

    def cure(self, finding: str, path: str = "", *, source: oneshot.Source | None = None) -> dict[str, Any]:
        """Run what is printed for a finding, and see it go."""
        row = self.seen(finding, path, source=source)
        self.execute(row["commands"])
        self.gone(finding, path, source=source)
        self.note(finding, "cured by " + "; ".join(row["commands"]))
        return row

    def says(self, finding: str, path: str, step: str) -> dict[str, Any]:
        """A finding that no command cures: its step begins so."""
        row = self.seen(finding, path)
        assert row["commands"] == [] and row["nextStep"].startswith(step), row
        return row

    def note(self, finding: str, outcome: str) -> None:
        """Remember what became of a finding."""
        self.outcomes[finding] = outcome
        seconds = f"{time.monotonic() - self.started:.0f} s"
        print(f"{self.cluster.version} {seconds} {finding}: {outcome}", file=sys.stderr, flush=True)

    def carry_out(self, steps: list[Callable[[Run], None]]) -> None:
        """Every step, also those after one that failed; raise AssertionError with all that failed."""
        failures: dict[str, str] = {}
        for step in steps:
            try:
                step(self)
            except (AdminError, AssertionError, TimeoutError, ValueError, KeyError, IndexError) as failed:
                failures[step.__name__] = f"{type(failed).__name__}: {failed}"[:3000]
                self.note(step.__name__, f"FAILED: {failures[step.__name__]}")
                self.cluster.node_versions.clear()
                for node in self.cluster.nodes:
                    if node.running:
                        resume(node)
                    elif node.process is not None:
                        self.cluster.start(node)
        print(f"{self.cluster.version}: {len(self.outcomes)}: {', '.join(self.outcomes)}", file=sys.stderr, flush=True)
        assert not failures, failures

    # Brokers

    def stop(self, broker: int) -> None:
        """Shut a broker down, and wait until it is fenced."""
        self.cluster.stop(self.cluster.node(broker))
        wait_until(lambda: self.broker(broker)["fenced"], f"broker {broker} is not fenced", SLOW)

    def start(self, broker: int) -> None:
        """Start a broker, and wait until it serves."""
        self.cluster.start(self.cluster.node(broker))
        wait_until(lambda: self.broker(broker)["fenced"] is False, f"broker {broker} is fenced", SLOW)

    def broker(self, broker: int) -> dict[str, Any]:
        """The row of a broker; one that is not registered has nothing in it but that it is not fenced by."""
        rows = self.answer("brokers", "--where", f"id == {broker}")
        return rows[0] if rows else {"fenced": None}


def pause(node: Node) -> None:
    """Hold a process up, as a long pause of its JVM does."""
    assert node.process
    node.process.send_signal(signal.SIGSTOP)


def resume(node: Node) -> None:
    """Let it go on."""
    assert node.process
    node.process.send_signal(signal.SIGCONT)


def set_properties(node: Node, *lines: str) -> None:
    """What a node's properties say from its next start on: the last line of a key counts."""
    with node.properties.open("a") as properties:
        properties.writelines(f"{line}\n" for line in lines)


# --- records that no release writes ----------------------------------------------------------------------------------


def edit(node: Node, near: bytes, old: bytes, new: bytes) -> None:
    """Change bytes of the same length in every file of a node that is stopped, with the right CRC.

    In each batch that has ``near`` it is the first place after that.
    """
    assert len(old) == len(new)
    edits = 0
    for file in (*node.metadata.glob("*.log"), *node.metadata.glob("*.checkpoint")):
        raw = file.read_bytes()
        written = b""
        for batch in batches(raw):
            whole = raw[batch.position : batch.end]
            start = whole.find(old, whole.find(near)) if near in whole else -1
            edits += start >= 0
            written += whole if start < 0 else sealed(whole[:start] + new + whole[start + len(old) :])
        if written != raw:
            file.write_bytes(written)
    assert edits, f"{near!r} with {old!r} is nowhere"


def age_snapshot(node: Node, milliseconds: int) -> Path:
    """Make the newest snapshot of a node that is stopped so much older; return its file."""
    file = max(node.metadata.glob("*.checkpoint"))
    raw = file.read_bytes()
    header = batches(raw)[0]
    now = int(time.time() * 1000)
    for start in range(61, header.size - 8):  # after the batch's own times
        (taken,) = struct.unpack_from(">q", raw, start)
        if now - _DAY < taken <= now:
            older = raw[:start] + struct.pack(">q", taken - milliseconds) + raw[start + 8 : header.size]
            file.write_bytes(sealed(older) + raw[header.size :])
            return file
    raise AssertionError(f"{file.name} does not say when it was taken")
