"""The other recipes of docs/recovery.md, on real clusters: damage, a new disk, another cluster's id, new addresses."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.kafka import jars
from tests.kafka.cluster import Cluster
from tests.kafka.node import Node, new_uuid
from tests.kafka.waiting import wait_until
from tests.live import oneshot
from tests.live.test_recover import plan, rewrite_properties, wait_until_caught_up

pytestmark = pytest.mark.live


def answer(*words: str, code: int = 0) -> Any:
    ended = oneshot.run((), *words, "-o", "json")
    assert ended.returncode == code, ended.stdout + ended.stderr
    return json.loads(ended.stdout)


def quorum(cluster: Cluster) -> dict[str, Any]:
    document: dict[str, Any] = answer("-q", cluster.bootstrap_controllers, "quorum")
    return document


def damage(node: Node) -> tuple[str, int]:
    """Flip a bit of the last tenth of a controller's log; the file's name, and the byte."""
    path = max(node.metadata.glob("*.log"))
    raw = bytearray(path.read_bytes())
    place = len(raw) * 9 // 10
    raw[place] ^= 4
    path.write_bytes(raw)
    return path.name, place


def start_empty(cluster: Cluster, node: Node, *, dynamic: bool) -> None:
    """As recovery.md says: the directory moved away, a new one formatted; a dynamic quorum is told of the new disk."""
    if dynamic:
        gone = next(voter for voter in quorum(cluster)["voters"] if voter["id"] == node.id)
        words = ("--controller-id", str(node.id), "--controller-directory-id", gone["directoryId"])
        cluster.quorum("remove-controller", *words)
    node.logs.rename(node.home / f"moved-away-{new_uuid()}")
    cluster.format(node, [])
    cluster.start(node)
    wait_until_caught_up(cluster, node)
    if dynamic:
        cluster.quorum("--command-config", str(node.properties), "add-controller")
    wait_until(lambda: {voter["id"] for voter in quorum(cluster)["voters"]} == {c.id for c in cluster.controllers},
               f"{node.name} is no voter", 60)  # fmt: skip


@pytest.mark.parametrize(
    ("version", "dynamic"),
    [
        pytest.param("3.9.2", False, id="3.9.2-static", marks=[pytest.mark.soak, pytest.mark.long]),
        pytest.param("4.3.1", True, id="4.3.1-dynamic"),
    ],
)
def test_one_node_that_cannot_go_on(version: str, dynamic: bool) -> None:
    jars.require(version)
    with Cluster(version, controllers=3, brokers=1, dynamic=dynamic) as cluster:
        fill_one(cluster)
        node = next(each for each in cluster.controllers if each is not cluster.leader())
        others = [each for each in cluster.controllers if each is not node]

        cluster.kill(node)
        name, place = damage(node)
        checks = answer("-d", str(node.logs), "verify", code=1)
        found = next(check for check in checks if check["file"] == name)
        assert found["verdict"] == "damaged" and found["firstBadByte"] <= place
        shown = oneshot.run((), "-d", str(node.logs), "explain", str(10**6))
        assert (shown.returncode, f"byte {found['firstBadByte']}" in shown.stdout + shown.stderr) == (4, True), shown
        start_empty(cluster, node, dynamic=dynamic)
        cluster.admin().create_topic("after-damage", 1, 1)
        wait_until_caught_up(cluster, node)
        checks = answer("-d", str(node.logs), "verify")
        assert {check["verdict"] for check in checks} <= {"whole", "torn", "not-checked"}
        offset = answer("-d", str(node.logs), "hash")["offset"]
        hashes = {answer("-d", str(each.logs), "hash", "--as-of", str(offset))["hash"] for each in (node, others[0])}
        assert len(hashes) == 1

        cluster.kill(node)
        shutil.rmtree(node.logs)
        node.logs.mkdir()
        start_empty(cluster, node, dynamic=dynamic)

        broker = cluster.brokers[0]
        cluster.stop(broker)
        meta = broker.logs / "meta.properties"
        meta.write_text(meta.read_text().replace(cluster.cluster_id, other := new_uuid()))
        cluster.start(broker, wait=False)
        wait_until(lambda: "Unexpected error INCONSISTENT_CLUSTER_ID" in broker.log(), "the broker is let in", 60)
        words = ["info", "--meta-properties", *(str(each.logs) for each in (*cluster.controllers, broker))]
        rows = answer(*words, code=4)
        odd = [row for row in rows if row["problems"]]
        assert [row["directory"] for row in odd] == [str(broker.logs)], rows
        assert odd[0]["clusterId"] == other
        cluster.kill(broker)
        broker.logs.rename(broker.home / "moved-away")
        cluster.format(broker, [])
        cluster.start(broker)
        cluster.wait_for_brokers({broker.id})


def fill_one(cluster: Cluster) -> None:
    admin = cluster.admin()
    for number in range(5):
        admin.create_topic(f"orders-{number}", 2, 1, configs={"retention.ms": "123456"})
    admin.acl(("TOPIC", "orders-1"), "User:alice", "READ")


def test_all_controllers_have_new_addresses(tmp_path: Path) -> None:
    jars.require("4.3.1")
    with Cluster("4.3.1", controllers=2, brokers=1, dynamic=True) as cluster:
        fill_one(cluster)
        first, second = cluster.controllers
        for node in cluster.nodes:
            cluster.kill(node)
        first.port = second.port
        left = [str(node.logs) for node in (first, second, *cluster.brokers)]
        plan(*left, "--to", str(tmp_path / "new"), "--voters", f"{first.id}@{first.address}")
        first.logs.rename(first.home / "moved-away")
        shutil.copytree(tmp_path / "new", first.logs)
        rewrite_properties(cluster, [first])
        cluster.start(first)
        cluster.start(cluster.brokers[0])
        cluster.wait_for_brokers({cluster.brokers[0].id})
        (voter,) = quorum(cluster)["voters"]
        assert [(each["host"], each["port"]) for each in voter["endpoints"]] == [("127.0.0.1", second.port)]
        topics = oneshot.lines(("-q", first.address), "topics", "--columns", "name", "-o", "jsonl")
        assert len([row for row in topics if "orders" in row]) == 5
