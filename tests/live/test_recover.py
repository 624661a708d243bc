"""A cluster that lost two of three controllers comes back from what is left, with a static and a dynamic quorum.

The disks of two controllers are deleted, and each copy that is left is damaged in another place. ``recover`` plans, and
writes the directory from which the third starts as a quorum of one; every topic, config, ACL and credential is there, a
producer writes, and the quorum grows to three again. Controllers that are brokers, too, keep their partitions.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.kafka import jars
from tests.kafka.cluster import Cluster
from tests.kafka.node import METADATA, Node
from tests.kafka.properties import server_properties
from tests.kafka.waiting import wait_until
from tests.live import oneshot

pytestmark = pytest.mark.live

WRITTEN = [f"event {number}" for number in range(5)]
"""What a producer of the tests writes."""
TABLES = ("topics", "configs", "acls", "users", "quotas")
RELEASES = [
    pytest.param("3.8.1", False, id="3.8.1-static", marks=[pytest.mark.soak, pytest.mark.long]),
    pytest.param("3.9.2", False, id="3.9.2-static"),
    pytest.param("4.1.1", True, id="4.1.1-dynamic", marks=[pytest.mark.soak, pytest.mark.long]),
    pytest.param("4.3.1", True, id="4.3.1-dynamic", marks=[pytest.mark.soak, pytest.mark.long]),
    pytest.param("4.4.0", True, id="4.4.0-dynamic"),
]


def fill(cluster: Cluster) -> None:
    """Something of each kind that must come back."""
    admin = cluster.admin()
    admin.create_topic("orders", 4, 2, configs={"retention.ms": "123456"})
    admin.create_topic("payments", 2, 2)
    admin.produce("orders", 5)
    admin.set_config("TOPIC", "payments", {"min.insync.replicas": "1"})
    admin.acl(("TOPIC", "orders"), "User:alice", "READ")
    admin.scram("alice", "SCRAM-SHA-256", "secret")
    admin.quota({"user": "alice"}, "producer_byte_rate", 1048576.0)


def tables(source: oneshot.Source) -> dict[str, list[str]]:
    """The rows of the tables that must be the same, without what every restart changes."""
    chosen = {"topics": ["--columns", "name,topicId,partitions,replicationFactor,configs"]}
    return {name: oneshot.lines(source, name, *chosen.get(name, []), "-o", "jsonl") for name in TABLES}


def plan(*words: str) -> dict[str, Any]:
    ended = oneshot.run((), "recover", *words, "-o", "json")
    assert ended.returncode in (0, 4), ended.stderr  # 4: the copy to keep is damaged
    return dict(json.loads(ended.stdout))


def damage(node: Node, part: float) -> None:
    """Flip a byte of its oldest segment, where the other copies are whole."""
    segment = min(node.metadata.glob("*.log"))
    content = bytearray(segment.read_bytes())
    content[int(len(content) * part)] ^= 0xFF
    segment.write_bytes(content)


def rewrite_properties(cluster: Cluster, controllers: list[Node]) -> None:
    """Tell every node which controllers there are, as the steps of the plan say."""
    cluster.controllers = controllers
    for node in cluster.nodes:
        node.properties.write_text("\n".join(server_properties(cluster, node, [])) + "\n")


def is_voter(cluster: Cluster, node: Node) -> bool:
    voters = oneshot.lines(("-q", cluster.controllers[0].address), "quorum", "-o", "json")
    document = json.loads("\n".join(voters))
    return any(row["id"] == node.id for row in document["voters"])


def wait_until_caught_up(cluster: Cluster, node: Node) -> None:
    def caught_up() -> bool:
        rows = json.loads("\n".join(oneshot.lines(("-q", cluster.controllers[0].address), "quorum", "-o", "json")))
        replicas = [*rows["voters"], *rows.get("observers", [])]
        return any(row["id"] == node.id and row["lag"] == 0 for row in replicas)

    wait_until(caught_up, f"{node.name} does not catch up", 60)


@pytest.mark.parametrize(("version", "dynamic"), RELEASES)
def test_a_majority_that_is_lost(version: str, dynamic: bool, tmp_path: Path) -> None:
    jars.require(jars.LATEST, version)
    with Cluster(version, controllers=3, brokers=2, dynamic=dynamic) as cluster:
        fill(cluster)
        first, *lost = cluster.controllers
        before = tables(("-q", cluster.bootstrap_controllers))
        for node in cluster.nodes:
            cluster.kill(node)
        for node in lost:
            shutil.rmtree(node.logs)

        for part, node in enumerate((first, *cluster.brokers), 1):
            damage(node, part / 4)
        left = [str(node.logs) for node in (first, *cluster.brokers)]
        planned = plan(*left)
        assert len(planned["damage"]) == len(left)
        assert planned["keep"]["clusterId"] == cluster.cluster_id
        assert planned["voters"]["kraftVersion"] == int(dynamic)
        assert planned["lost"] == []
        uncertain = planned["keep"]["endOffset"] - (planned["keep"]["committedBelow"] or 0)
        assert len(planned["uncertain"]) == uncertain

        new = tmp_path / "new"
        plan(*left, "--to", str(new), "--voters", f"{first.id}@{first.address}")
        first.logs.rename(first.home / "moved-away")
        shutil.copytree(new, first.logs)
        rewrite_properties(cluster, [first])
        cluster.start(first)
        (of_brokers,) = [step for step in planned["steps"].values() if step.startswith("Of each broker whose copy")]
        for broker in cluster.brokers:
            assert str(broker.logs) in of_brokers
            broker.metadata.rename(broker.home / "moved-away")
            cluster.start(broker, wait=False)
        cluster.wait_for_brokers({broker.id for broker in cluster.brokers})
        assert tables(("-q", first.address)) == before
        cluster.admin().produce("orders", 3)
        assert is_voter(cluster, first)

        grow(cluster, first, lost, dynamic=dynamic)
        cluster.admin().create_topic("after", 1, 2)
        assert {row["id"] for row in voters(cluster)} == {node.id for node in (first, *lost)}


def test_controllers_that_are_brokers_too(tmp_path: Path) -> None:
    """One keeps its disk, one lost its metadata, one lost its disk: what a producer wrote before is there."""
    with Cluster(controllers=3, brokers=0, dynamic=True, combined=True) as cluster:
        first, other, lost = cluster.controllers
        for topic, node in (("on-first", first), ("on-other", other)):
            cluster.admin().create_topic(topic, assignment=[[node.id]])
            cluster.admin().produce(topic, 5)
        for node in cluster.nodes:
            cluster.kill(node)
        shutil.rmtree(other.metadata)
        shutil.rmtree(lost.logs)

        new = tmp_path / "new"
        planned = plan(str(first.logs), "--to", str(new), "--voters", f"{first.id}@{first.address}")
        assert planned["written"]["directoryId"] == first.directory_id
        assert f"move only {METADATA} away" in planned["steps"]["2"]
        first.metadata.rename(first.home / "moved-away")
        shutil.copytree(new / METADATA, first.metadata)
        rewrite_properties(cluster, [first])
        cluster.start(first)
        cluster.wait_for_brokers({first.id})
        assert consumed(cluster, "on-first") == WRITTEN

        for node in (other, lost):
            cluster.controllers.append(node)
            if node is lost:
                cluster.format(node, [])
            cluster.start(node)
            wait_until_caught_up(cluster, node)
            cluster.quorum("--command-config", str(node.properties), "add-controller")
            cluster.wait_for_brokers({broker.id for broker in cluster.controllers})
        assert {row["id"] for row in voters(cluster)} == {node.id for node in (first, other, lost)}
        assert (consumed(cluster, "on-first"), consumed(cluster, "on-other")) == (WRITTEN, WRITTEN)


def consumed(cluster: Cluster, topic: str) -> list[str]:
    """What a topic of one partition holds, as Kafka's console consumer prints it."""
    words = ["--bootstrap-server", cluster.bootstrap_servers, "--topic", topic, "--partition", "0",
             "--offset", "earliest", "--timeout-ms", "10000"]  # fmt: skip
    main = "org.apache.kafka.tools.consumer.ConsoleConsumer"
    return jars.run(f"{jars.libs(cluster.version)}/*", main, *words).splitlines()


def voters(cluster: Cluster) -> list[dict[str, Any]]:
    document = json.loads("\n".join(oneshot.lines(("-q", cluster.bootstrap_controllers), "quorum", "-o", "json")))
    return list(document["voters"])


def grow(cluster: Cluster, first: Node, lost: list[Node], *, dynamic: bool) -> None:
    """Back to three voters, one after another, as the last steps of the plan say."""
    there = [first]
    for node in lost:
        shutil.rmtree(node.logs, ignore_errors=True)
        if not dynamic:
            for running in (*there, *cluster.brokers):
                cluster.kill(running)
            for stopped in (*there, *cluster.brokers):
                (stopped.metadata / "quorum-state").unlink()
        there.append(node)
        rewrite_properties(cluster, list(there) if not dynamic else [first])
        cluster.controllers = list(there)
        cluster.format(node, [])
        if dynamic:
            cluster.start(node)
            wait_until_caught_up(cluster, node)
            cluster.quorum("--command-config", str(node.properties), "add-controller")
        else:
            for starting in (*there, *cluster.brokers):
                cluster.start(starting, wait=False)
            cluster.wait_for_brokers({broker.id for broker in cluster.brokers})
        wait_until_caught_up(cluster, node)
