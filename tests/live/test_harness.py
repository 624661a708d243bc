"""The harness itself: a cluster ends with its block, whatever happens in it."""

from __future__ import annotations

import gc
import socket
import subprocess
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import pytest

from tests.kafka import archives, jars
from tests.kafka.cluster import Cluster, NotUp, StartedAnew
from tests.kafka.node import HOST, Node

pytestmark = pytest.mark.live

STORAGE = "kafka.tools.StorageTool"


def processes(nodes: list[Node]) -> list[subprocess.Popen[bytes]]:
    """Return the servers' processes."""
    return [node.process for node in nodes if node.process]


def test_a_failing_test_leaves_no_server() -> None:
    jars.require()
    with pytest.raises(ZeroDivisionError), Cluster() as cluster:
        started = processes(cluster.nodes)
        assert len(started) == 2
        assert all(process.poll() is None for process in started)
        admin = cluster.admin()
        assert admin.brokers() == [0]
        raise ZeroDivisionError
    assert all(process.poll() is not None for process in started)
    assert not cluster.home.exists()


def test_a_server_that_cannot_start_is_named() -> None:
    jars.require()
    cluster = Cluster(brokers=0, props=["num.io.threads=none"])
    with pytest.raises(RuntimeError, match=r"format|controller-3000") as raised, cluster:
        pass
    assert not isinstance(raised.value, NotUp), "the next time is no better"
    assert not cluster.home.exists()
    assert not [process for process in processes(cluster.nodes) if process.poll() is None]


def test_servers_that_did_not_find_each_other_are_started_anew_and_it_is_told() -> None:
    jars.require()
    with socket.socket() as other:

        class Blocked(Cluster):
            """Another program has the controller's port when it first starts."""

            formatted = 0

            def format(self, node: Node, initial: Sequence[Node]) -> None:
                super().format(node, initial)
                self.formatted += 1
                if self.formatted == 2:
                    other.close()

        cluster = Blocked(brokers=0)
        other.bind((HOST, cluster.controllers[0].port))
        with pytest.warns(StartedAnew, match=r"(?s)controller-3000.* ended\n.*Address already in use"), cluster:
            assert cluster.leader() is cluster.controllers[0]
    assert cluster.formatted == 2 and not cluster.home.exists()


def test_a_server_that_ended_before_it_could_leave_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of what it began is there when it begins again, nor at the end."""
    jars.require()
    monkeypatch.setattr(archives, "folder", lambda: tmp_path / "archives")
    node = Node("broker", 0, 0, tmp_path / "node")
    node.home.mkdir()
    with warnings.catch_warnings(action="error"):
        for left in (1, 0):
            node.start(f"{jars.libs(jars.LATEST)}/*", "128m", {})
            assert len(list((tmp_path / "archives").iterdir())) == left
            assert node.process and node.process.wait() == 1, "it has no properties"
        node.end()
        gc.collect()


def not_again() -> NoReturn:
    raise AssertionError("the process is there")


def test_tools_say_what_they_say_in_processes_of_their_own() -> None:
    """The process stays: the second has nothing of the first, which failed."""
    jars.require()
    tools = f"{jars.libs(jars.LATEST)}/*"
    failed = jars.outcome(tools, "org.apache.kafka.tools.FeatureCommand", "describe")
    alone = jars.run(tools, STORAGE, "random-uuid", heap="128m")
    made = jars.RUNNERS.run(tools, not_again, "", STORAGE, "random-uuid")
    assert failed.code == 1 and "--bootstrap-server" in failed.err and not failed.out
    assert (made.code, len(made.out), made.err) == (0, len(alone), "") and made.out != alone
    with pytest.raises(RuntimeError, match=r"(?s)ended with 1:.*--bootstrap-server"):
        jars.run(tools, "org.apache.kafka.tools.FeatureCommand", "describe")


def test_a_program_that_is_not_there_is_named() -> None:
    jars.require()
    with pytest.raises(RuntimeError, match=r"(?s)no\.Such +ended with 1:.*ClassNotFoundException"):
        jars.run(f"{jars.libs(jars.LATEST)}/*", "no.Such")


def test_a_server_begins_with_the_classes_of_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jars.require()
    monkeypatch.setattr(archives, "folder", lambda: tmp_path)
    with Cluster() as first:
        assert [node.making is not None for node in first.nodes] == [False, True]
    made = next(tmp_path.iterdir(), None)
    assert made is not None, first.brokers[0].process and first.brokers[0].process.returncode
    with Cluster() as second:
        for node in second.nodes:
            assert node.process and node.making is None
            assert f"-XX:SharedArchiveFile={made}" in str(node.process.args)
            maps = Path("/proc", str(node.process.pid), "maps")
            assert not maps.exists() or str(made) in maps.read_text(), node.log_tail()
