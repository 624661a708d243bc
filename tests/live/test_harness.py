"""The harness itself: a cluster ends with its block, whatever happens in it."""

from __future__ import annotations

import subprocess

import pytest

from tests.kafka import jars
from tests.kafka.cluster import Cluster, Node

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
    with pytest.raises(RuntimeError, match=r"format|controller-3000"), cluster:
        pass
    assert not cluster.home.exists()
    assert not [process for process in processes(cluster.nodes) if process.poll() is None]
