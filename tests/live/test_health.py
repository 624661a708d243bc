"""health and status on a real cluster: nothing while all is well, and what was broken when something was."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest

from kshell.metadata.partition_state import MIGRATING, UNASSIGNED
from kshell.protocol.primitives import Uuid
from tests.kafka import jars
from tests.kafka.admin import AdminError
from tests.kafka.cluster import Cluster
from tests.kafka.waiting import wait_until
from tests.live import oneshot

pytestmark = pytest.mark.live


def findings(cluster: Cluster, *more: str) -> dict[str, list[dict[str, Any]]]:
    """The rows by the finding's name; the exit code says whether one of them is an error."""
    done = oneshot.run(("-q", cluster.bootstrap_controllers), "health", "-o", "json", *more)
    told: dict[str, list[dict[str, Any]]] = {}
    for row in json.loads(done.stdout):
        told.setdefault(row["finding"], []).append(row)
    errors = [row for found in told.values() for row in found if row["level"] in ("critical", "error")]
    assert done.returncode == (1 if errors else 0), done.stderr
    return told


def test_a_cluster_that_is_broken_step_by_step() -> None:
    jars.require("4.4.0")
    with Cluster("4.4.0", controllers=1, brokers=3) as cluster:
        admin = cluster.admin()
        admin.create_topic("orders", 3, 3, configs={"min.insync.replicas": "2"})
        admin.create_topic("spread", assignment=[[0, 1, 2], [1, 2, 0]])
        wait_until(lambda: not findings(cluster), f"a healthy cluster has findings: {findings(cluster)}", 20)

        admin.create_topic("alone", 1, assignment=[[2]])
        assert set(findings(cluster)) == {"singleReplica"}

        cluster.kill(cluster.node(2))
        wait_until(lambda: "brokerFenced" in findings(cluster), "the killed broker is not fenced", 60)
        told = findings(cluster)
        assert [row["path"] for row in told["brokerFenced"]] == ["/image/cluster/brokers/2"]
        assert [row["path"] for row in told["offlinePartition"]] == ["/image/topics/byName/alone/0"]
        assert len(told["atMinIsr"]) >= 3
        assert len(told["underReplicated"]) == 6

        cluster.kill(cluster.node(1))
        wait_until(lambda: len(findings(cluster)["brokerFenced"]) == 2, "the other broker is not fenced", 60)
        told = findings(cluster)
        orders = [row for row in told["underMinIsr"] if "/orders/" in row["path"]]
        assert len(orders) == 3 and "min.insync.replicas 2" in orders[0]["evidence"]
        assert {"elrInUse", "underReplicated"} <= told.keys()

        status = json.loads(oneshot.run(("-q", cluster.bootstrap_controllers), "status", "-o", "json").stdout)
        counts = status["counts"]
        assert (counts["brokers"], counts["brokersFenced"], counts["offline"]) == (3, 2, 1)
        assert status["versions"]["highestRelease"].startswith("4.4")
        assert status["quorum"]["leaderId"] == 3000
        by_brokers = json.loads(oneshot.run(("-b", cluster.node(0).address), "status", "-o", "json").stdout)
        assert by_brokers["counts"]["offline"] == 1
        assert by_brokers["cluster"]["clusterId"] == cluster.cluster_id


def are_assigned(cluster: Cluster, topic: str) -> bool:
    """Whether the controller knows the log directory of every replica: brokers report it after a while (KIP-858)."""
    where = ("-q", cluster.bootstrap_controllers)
    done = oneshot.run(where, "partitions", "-o", "json", "--where", f"topic == {topic}")
    places = [Uuid.parse(place) for row in json.loads(done.stdout) for place in row["directories"]]
    return bool(places) and not {MIGRATING, UNASSIGNED}.intersection(places)


def test_a_disk_that_fails() -> None:
    """A broker with two log directories loses one: it lives on, and says so to the controller (KIP-858)."""
    jars.require("4.1.1")
    cluster = Cluster("4.1.1", brokers=2)
    disks = [cluster.home / "disk-1", cluster.home / "disk-2"]
    cluster.node_props[1] = [f"log.dirs={','.join(map(str, disks))}", "log.flush.scheduler.interval.ms=500"]
    with cluster:
        admin = cluster.admin()
        admin.create_topic("orders", assignment=[[0, 1]] * 4)
        wait_until(lambda: not findings(cluster), f"a healthy cluster has findings: {findings(cluster)}", 20)
        admin.create_topic("alone", assignment=[[1]] * 4)
        wait_until(lambda: are_assigned(cluster, "alone"), "the broker does not say where its replicas are", 30)
        lost = next(disk for disk in disks if not (disk / "__cluster_metadata-0").exists())
        held = {place.name for place in lost.glob("*-?")}
        shutil.rmtree(lost)
        lost.touch()  # no directory can be made anew

        def is_found() -> bool:
            admin.produce("orders", 20)
            return "offlineDirectory" in findings(cluster)

        wait_until(is_found, "the lost directory is not found", 60)
        told = findings(cluster)["offlineDirectory"]
        assert {row["path"] for row in told} == {f"/image/topics/byName/{name[:-2]}/{name[-1]}" for name in held}
        assert all(row["evidence"].startswith("broker 1 has no directory ") for row in told)

        offline = findings(cluster)["offlinePartition"]
        assert [row["path"][-1] for row in offline] == sorted(name[-1] for name in held if name.startswith("alone"))
        step = "broker 1 runs, but the log directory of the replica is offline: repair the disk"
        assert all(row["nextStep"].startswith(step) for row in offline)
        with pytest.raises(AdminError, match="NotAvailable"):  # the broker runs, and that does not help
            admin.elect("alone", int(offline[0]["path"][-1]))
