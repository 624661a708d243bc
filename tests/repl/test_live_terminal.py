"""The shell on a running quorum, in a real terminal: connect, look, watch, and the leader is killed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kafka import jars
from tests.kafka.admin import Admin
from tests.kafka.cluster import Cluster
from tests.kafka.waiting import wait_until
from tests.repl.tmux import NEEDS_TMUX, Terminal

pytestmark = [
    pytest.mark.live,
    NEEDS_TMUX,
]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """Three controllers and a broker that write nothing unless somebody asks them to: the screen stays still."""
    jars.require()
    with Cluster(controllers=3, props=["metadata.max.idle.interval.ms=0"]) as running:
        yield running


@pytest.fixture
def shell(cluster: Cluster, tmp_path: Path) -> Iterator[Terminal]:
    """kshell on that quorum."""
    opened = Terminal(tmp_path, "-q", cluster.bootstrap_controllers, columns=100)
    yield opened
    opened.close()


def test_a_session_on_a_running_quorum(cluster: Cluster, shell: Terminal) -> None:
    admin = cluster.admin()
    admin.create_topic("orders", 3)
    shell.wait_for_prompt("/")
    shell.wait(r"leader \d+ · epoch \d+ · offset \d+ · lag 0")
    shell.shows("live-start")
    shell.type("ls /image/topics/byName")
    shell.press("Enter")
    shell.wait(r"^orders/$")
    admin.create_topic("payments", 1)
    catches_up(shell, admin)
    shell.type("ls /image/topics/byName")
    shell.press("Enter")
    shell.wait(r"^orders/ +payments/$")
    shell.shows("live-ls")
    shell.type("watch --times 200 -n 0.3 ls /image/topics/byName")
    shell.press("Enter")
    shell.wait(r"payments")
    admin.create_topic("refunds", 1)
    shell.wait(r"refunds")
    shell.shows("live-watch")
    shell.press("C-c")
    shell.wait_for_prompt("/")
    kill_the_leader(cluster, shell)


def catches_up(shell: Terminal, admin: Admin) -> None:
    """By itself, at its prompt: to what was committed when Kafka answered. An observer is told of it by its next fetch,
    a moment after the one who made the change.
    """
    committed = admin.high_watermark()

    def has() -> bool:
        found = re.search(r"offset (\d+) · lag 0", shell.screen())
        return found is not None and int(found[1]) >= committed - 1

    wait_until(has, f"the toolbar does not come to offset {committed - 1}")


def kill_the_leader(cluster: Cluster, shell: Terminal) -> None:
    """The toolbar says that there is no leader, then names the next one; the shell goes on."""
    shell.enter("pwd")
    shell.wait_for_prompt("/")
    old = cluster.leader()
    epoch = int(shell.wait(rf"leader {old.id} · epoch (\d+)")[1])
    cluster.kill(old)
    shell.wait(r" · no leader · ")
    found = shell.wait(rf"leader (?!{old.id})(\d+) · epoch (\d+) · offset \d+ · lag 0")
    assert int(found[2]) > epoch
    shell.press("C-l")
    shell.shows("live-next-leader")
    admin = cluster.admin()
    admin.create_topic("returns", 1)
    catches_up(shell, admin)
    shell.type("ls /image/topics/byName")
    shell.press("Enter")
    shell.wait(r"returns/")
    assert re.search(r"^orders/ +payments/ +refunds/ +returns/$", shell.screen(), re.MULTILINE)
