"""A controller that is gone stays registered, until kafka-cluster.sh unregister-controller removes it (4.4-IV2)."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.kafka import jars
from tests.kafka.cluster import Cluster
from tests.kafka.node import copy_node
from tests.kafka.runner import Ended
from tests.kafka.waiting import wait_until
from tests.live import oneshot

pytestmark = pytest.mark.live

CURE = re.compile(r"for good: kafka-cluster\.sh unregister-controller .*--id 3001$")


def reasons(source: oneshot.Source) -> dict[int, str]:
    """Why each stale registration of a controller is that."""
    lines = oneshot.lines(source, "registrations", "--stale", "--where", "kind == controller", "-o", "jsonl")
    return {row["id"]: row["reason"] for row in map(json.loads, lines)}


def unregister(cluster: Cluster) -> Ended:
    """Do what the cure says."""
    words = ["unregister-controller", "--bootstrap-controller", cluster.bootstrap_controllers, "--id", "3001"]
    return jars.outcome(f"{jars.libs(cluster.version)}/*", "org.apache.kafka.tools.ClusterTool", *words)


def test_a_controller_that_is_gone_is_unregistered(tmp_path: Path) -> None:
    jars.require("4.4.0")
    with Cluster("4.4.0", dynamic=True, format_args=["--release-version", "4.4-IV1"]) as cluster:
        first = ("-q", cluster.controllers[0].address)
        observer = cluster.add_controller()
        cluster.start(observer)
        wait_until(lambda: 3001 in reasons(first), "the observer does not register", 60)
        cluster.stop(observer)
        assert "metadata.version=33 and then kafka-cluster.sh" in reasons(first)[3001]
        assert "does not support the controller unregistration API" in unregister(cluster).out
        assert 3001 in reasons(first)

        cluster.admin().feature("metadata.version", 33)
        assert CURE.search(reasons(first)[3001])
        copy_node(cluster.controllers[0], tmp_path / "before")
        found = json.loads(oneshot.run(tmp_path / "before", "health", "-o", "json").stdout)
        stale = [row for row in found if row["finding"] == "staleController"]
        assert [row["path"] for row in stale] == ["/image/cluster/controllers/3001"]
        assert CURE.search(stale[0]["nextStep"])

        ended = unregister(cluster)
        assert "does not support" not in ended.out + ended.err, ended
        assert reasons(first) == {}
        assert oneshot.lines(first, "ls", "/image/cluster/controllers") == ["3000"]
