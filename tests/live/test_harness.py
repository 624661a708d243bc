"""The harness itself: a cluster ends with its block, whatever happens in it."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Sequence

import pytest

from tests.kafka import jars
from tests.kafka.cluster import Cluster, NotUp, StartedAnew
from tests.kafka.node import HOST, Node

pytestmark = pytest.mark.live


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
