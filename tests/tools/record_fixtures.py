"""Record directories of real clusters for ``tests/fixtures``: ``python -m tests.tools.record_fixtures [NAME ...]``.

Each scenario is one cluster of one release, administered until its image holds every family that the release knows. Of
each the directories of a controller and a broker are kept, and beside them the image that Kafka itself sees in them.
All names and secrets are made up. Recording again gives other ids, times and offsets, and the same shapes.
"""

from __future__ import annotations

import re
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.kafka import jars
from tests.kafka.admin import Admin
from tests.kafka.cluster import Cluster
from tests.kafka.node import METADATA, Node, copy_node
from tests.kafka.oracle import expected_image
from tests.kafka.properties import small_files
from tests.kafka.waiting import wait_until

FIXTURES = Path(__file__).parents[1] / "fixtures"

FAST = ["broker.session.timeout.ms=4000", "broker.heartbeat.interval.ms=1000"]
LONG = "a-topic-name-of-the-greatest-length-that-kafka-takes." + "x" * 196
HOSTILE = "red \x1b[31m <script>alert(1)</script> \u202e 100% a/b (c) \\ \u30e6\u30fc\u30b6\u30fc"


def record(name: str, cluster: Cluster, use: Callable[[Cluster], list[Node]]) -> None:
    """Run a cluster through a scenario, kill what still runs, and keep the nodes that the scenario returns."""
    with cluster:
        kept = use(cluster)
        for node in [*cluster.brokers, *cluster.controllers]:
            if node.running:
                cluster.kill(node)
        for node in kept:
            target = FIXTURES / name / node.name
            shutil.rmtree(target, ignore_errors=True)
            copy_node(node, target)
            (target / "expected-image.tsv").write_text(expected_image(target / METADATA), "utf-8")


def topics(admin: Admin) -> None:
    """Create topics with every shape of name and assignment, and delete one."""
    admin.create_topic("orders", 3, 3, configs={"min.insync.replicas": "2", "retention.ms": "86400000"})
    admin.create_topic("with.dots.and_underscores-1", 2, 2, configs={"cleanup.policy": "compact"})
    admin.create_topic(LONG, 1, 2)
    admin.create_topic("10", 1, 1)
    admin.create_topic("9", 1, 1)
    admin.create_topic("..dots", 1, 1)
    admin.create_topic("assigned", assignment=[[0, 1], [1, 2], [2, 0]])
    admin.create_topic("lonely", assignment=[[2], [0]])
    admin.create_topic("moving", assignment=[[0], [1]])
    admin.create_topic("short-lived", 4, 1, configs={"retention.ms": "1000"})
    admin.add_partitions("9", 12)
    admin.delete_topic("short-lived")
    admin.produce("orders", 2)


def configs(admin: Admin, *, groups: bool, client_metrics: bool) -> None:
    """Set and delete configs of every resource type that the release has."""
    admin.set_config("BROKER", "", {"log.cleaner.threads": "2", "max.connections": "1000"})
    admin.set_config("BROKER", "", {"max.connections": None})
    admin.set_config("BROKER", "0", {"leader.replication.throttled.rate": "10485760"})
    admin.set_config("TOPIC", "orders", {"retention.ms": None, "segment.bytes": "1073741824"})
    admin.set_config("TOPIC", "9", {"leader.replication.throttled.replicas": "0:1,1:2"})
    if groups:
        admin.set_config("GROUP", "team/a 100%", {"consumer.session.timeout.ms": "50000"})
        admin.set_config("GROUP", "plain", {"consumer.heartbeat.interval.ms": "6000"})
    if client_metrics:
        admin.set_config("CLIENT_METRICS", "slow", {"interval.ms": "60000", "match": "client_id=a.*"})


def acls(admin: Admin) -> None:
    """Add ACLs of every kind, and remove one."""
    admin.acl(("TOPIC", "orders"), "User:alice", "READ")
    admin.acl(("TOPIC", "team."), "User:CN=writer, O=shop", "WRITE", pattern="PREFIXED", host="10.0.0.7")
    admin.acl(("TOPIC", "*"), "User:*", "DELETE", permission="DENY")
    admin.acl(("GROUP", "a/b"), "User:bob", "ALL")
    admin.acl(("CLUSTER", "kafka-cluster"), "User:ops", "ALTER_CONFIGS")
    admin.acl(("TRANSACTIONAL_ID", "tx-"), "Group:payments", "WRITE", pattern="PREFIXED")
    admin.acl(("TOPIC", "gone"), "User:bob", "READ")
    admin.acl(("TOPIC", "gone"), "User:bob", "READ", remove=True)


def quotas(admin: Admin) -> None:
    """Set quotas of entities with awkward names and of the defaults, and remove one."""
    admin.quota({"user": "alice"}, "producer_byte_rate", 1048576)
    admin.quota({"user": "alice"}, "request_percentage", 12.5)
    admin.quota({"user": None}, "producer_byte_rate", 524288)
    admin.quota({"client-id": None}, "consumer_byte_rate", 524289)
    admin.quota({"user": "bob", "client-id": None}, "request_percentage", 50)
    admin.quota({"user": None, "client-id": "app/1"}, "request_percentage", 50)
    admin.quota({"user": "a(b)c", "client-id": "x)_user(y"}, "request_percentage", 1)
    admin.quota({"user": "100%/\\", "client-id": "%2F"}, "controller_mutation_rate", 1e-3)
    admin.quota({"user": HOSTILE}, "producer_byte_rate", 1e15)
    admin.quota({"client-id": "<default>"}, "producer_byte_rate", 7)
    admin.quota({"ip": "10.1.2.3"}, "connection_creation_rate", 20)
    admin.quota({"ip": None}, "connection_creation_rate", 40)
    admin.quota({"user": "gone"}, "producer_byte_rate", 1)
    admin.quota({"user": "gone"}, "producer_byte_rate", None)


def secrets(cluster: Cluster, admin: Admin) -> None:
    """Set SCRAM users (one deleted, one with an awkward name) and delegation tokens (one expired, one renewed)."""
    admin.scram("alice", "SCRAM-SHA-256", "made-up-1")
    admin.scram("alice", "SCRAM-SHA-512", "made-up-2", 8192)
    admin.scram("a/b%\x07", "SCRAM-SHA-256", "made-up-3", 5000)
    admin.scram("gone", "SCRAM-SHA-512", "made-up-4")
    admin.scram("gone", "SCRAM-SHA-512", None)
    owner = cluster.admin("admin")
    owner.create_token(["alice", "CN=b, O=c"], "alice")
    renewed, expired = owner.create_token()["hmac"], owner.create_token(["alice"])["hmac"]
    time.sleep(2)  # until the brokers know them
    owner.renew_token(renewed, 3_600_000)
    owner.expire_token(expired)


def lose_brokers(cluster: Cluster, admin: Admin) -> None:
    """Lose broker 2 (fenced) and broker 3 (unregistered), and leave reassignments in progress."""
    cluster.stop(cluster.node(3))
    cluster.kill(cluster.node(2))
    cluster.wait_for_brokers({0, 1})
    admin.unregister_broker(3)
    admin.reassign("moving", 0, [2])
    admin.reassign("moving", 1, [1, 2])
    admin.reassign("..dots", 0, [1] if admin.describe_topic("..dots")[0]["leader"] == 0 else [0])
    time.sleep(2)


def families(cluster: Cluster, *, groups: bool = True, client_metrics: bool = True) -> Admin:
    """Do all of the above but losing brokers."""
    admin = cluster.admin()
    topics(admin)
    configs(admin, groups=groups, client_metrics=client_metrics)
    acls(admin)
    quotas(admin)
    secrets(cluster, admin)
    return admin


def kafka_3_6(cluster: Cluster) -> list[Node]:
    """One controller, restarted once; the last release line before directory ids."""
    admin = families(cluster, groups=False, client_metrics=False)
    cluster.stop(cluster.controllers[0])
    cluster.start(cluster.controllers[0])
    cluster.wait_for_brokers({0, 1, 2, 3})
    lose_brokers(cluster, admin)
    return [cluster.controllers[0], cluster.brokers[1]]


def kafka_3_7(cluster: Cluster) -> list[Node]:
    """Three controllers of a fixed quorum; metadata.version rises from 3.6-IV2 to 3.7-IV4 half way."""
    admin = cluster.admin()
    topics(admin)
    acls(admin)
    admin.feature("metadata.version", 19)
    time.sleep(3)
    configs(admin, groups=False, client_metrics=True)
    quotas(admin)
    secrets(cluster, admin)
    admin.create_topic("after-the-upgrade", 2, 3)
    leader = cluster.leader()
    cluster.kill(leader)
    wait_until(lambda: cluster.leader() is not leader, "no other controller leads")
    lose_brokers(cluster, admin)
    return [cluster.leader(), leader, cluster.brokers[0]]


def kafka_4_0(cluster: Cluster) -> list[Node]:
    """A dynamic quorum: a fourth controller becomes a voter, one of the first three stops being one."""
    admin = families(cluster)
    fourth = cluster.add_controller()
    cluster.start(fourth)
    time.sleep(3)
    cluster.quorum("--command-config", str(fourth.properties), "add-controller")
    leader = cluster.leader()
    other = next(node for node in cluster.controllers[:3] if node is not leader)
    cluster.quorum(
        "remove-controller", "--controller-id", str(other.id), "--controller-directory-id", other.directory_id
    )
    cluster.stop(other)
    lose_brokers(cluster, admin)
    return [leader, fourth, cluster.brokers[0]]


def kafka_4_1(cluster: Cluster) -> list[Node]:
    """Retention at work: old files go, the log starts above 0. Changes of min.insync.replicas clear ELRs."""
    admin = families(cluster)
    lose_brokers(cluster, admin)
    admin.set_config("TOPIC", "orders", {"min.insync.replicas": "1"})
    admin.set_config("BROKER", "", {"min.insync.replicas": "2"})
    leader = cluster.leader()

    def cleaned() -> bool:
        admin.set_config("TOPIC", "10", {"retention.ms": str(time.time_ns() // 10**6)})
        return not (leader.metadata / "00000000000000000000.log").exists()

    wait_until(cleaned, "nothing is deleted", 150)
    cluster.stop(leader)
    wait_until(lambda: cluster.leader() is not leader, "no other controller leads")
    cluster.start(leader)
    admin.create_topic("after-the-election", 1, 1)
    return [leader, cluster.leader(), cluster.brokers[0]]


def kafka_4_3(cluster: Cluster) -> list[Node]:
    """A broker with two log directories, one of them cordoned."""
    admin = families(cluster)
    cordoned = cluster.node(0).home / "more-data"
    admin.set_config("BROKER", "0", {"cordoned.log.dirs": str(cordoned)})
    time.sleep(3)
    lose_brokers(cluster, admin)
    return [cluster.controllers[0], cluster.brokers[0]]


def kafka_4_3_lost(cluster: Cluster) -> list[Node]:
    """Partitions that lost their leader: broker 1 shuts down and comes back, broker 2 is killed and unregistered."""
    admin = cluster.admin()
    admin.create_topic("orders-eu", assignment=[[2, 1], [0, 1], [1, 0]])
    admin.create_topic("orders-eu-1", assignment=[[0, 1]])
    admin.create_topic("retries", assignment=[[2, 1]])
    admin.create_topic("again", assignment=[[2]])
    admin.delete_topic("again")
    admin.create_topic("again", assignment=[[0]])
    time.sleep(2)
    cluster.stop(cluster.node(1))
    cluster.wait_for_brokers({0, 2})
    cluster.kill(cluster.node(2))
    cluster.wait_for_brokers({0})
    time.sleep(2)
    admin.unregister_broker(2)
    time.sleep(2)
    cluster.start(cluster.node(1))
    cluster.wait_for_brokers({0, 1})
    time.sleep(2)
    admin.elect("retries", 0, "UNCLEAN")
    admin.elect("orders-eu", 2)
    admin.reassign("orders-eu-1", 0, [1])
    time.sleep(3)
    return [cluster.controllers[0]]


def kafka_4_4(cluster: Cluster) -> list[Node]:
    """No ``bootstrap.checkpoint``; ACLs of ranges; a controller that was a voter, was removed and is unregistered."""
    admin = families(cluster)
    admin.acl(("TOPIC", "orders"), "User:alice", "WRITE", host="10.1.0.0/16")
    admin.acl(("TOPIC", "orders"), "User:alice", "WRITE", host="10.1.66.6/24", permission="DENY")
    admin.acl(("GROUP", "*"), "User:*", "READ", host="fd00::/8")
    admin.acl(("TOPIC", "gone"), "User:bob", "READ", host="::/0")
    admin.acl(("TOPIC", "gone"), "User:bob", "READ", host="::/0", remove=True)
    admin.set_config("TOPIC", "orders", {"max.decompressed.message.bytes": "10485760"})
    admin.set_config("TOPIC", "9", {"errors.deadletterqueue.group.enable": "true"})
    fourth = cluster.add_controller()
    cluster.start(fourth)
    time.sleep(3)
    cluster.quorum("--command-config", str(fourth.properties), "add-controller")
    directory_id = re.search(r"^directory\.id=(.+)$", (fourth.logs / "meta.properties").read_text(), re.MULTILINE)
    assert directory_id
    cluster.stop(fourth)
    cluster.quorum("remove-controller", "--controller-id", str(fourth.id), "--controller-directory-id",
                   directory_id[1], "--unregister")  # fmt: skip
    leader = cluster.leader()
    cluster.kill(leader)
    wait_until(lambda: cluster.leader() is not leader, "no other controller leads")
    lose_brokers(cluster, admin)
    return [leader, cluster.leader(), cluster.brokers[0]]


def kafka_4_4_broker(cluster: Cluster) -> list[Node]:
    """What a broker can go through: broker 1 is killed, comes back, loses a disk, shuts down and is unregistered."""
    admin, broker = cluster.admin(), cluster.node(1)
    admin.create_topic("orders", assignment=[[1, 2], [2, 1], [1, 0], [0, 1]])
    admin.create_topic("audit", assignment=[[1]])
    time.sleep(2)
    cluster.kill(broker)
    cluster.wait_for_brokers({0, 2})
    time.sleep(2)
    cluster.start(broker)
    cluster.wait_for_brokers({0, 1, 2})
    admin.create_topic("refunds", assignment=[[1, 2]] * 4)
    time.sleep(5)
    lost = next(disk for disk in two_disks(cluster) if not (disk / METADATA).exists())
    shutil.rmtree(lost)
    lost.touch()  # no directory can be made anew
    held = {tuple(part["replicas"]) for part in admin.describe_topic("refunds")}
    assert held == {(1, 2)}

    def is_lost() -> bool:
        admin.produce("refunds", 20)
        return any(1 not in part["isr"] for part in admin.describe_topic("refunds"))

    wait_until(is_lost, "broker 1 does not notice that a disk is gone")
    time.sleep(2)
    cluster.stop(broker)
    cluster.wait_for_brokers({0, 2})
    time.sleep(2)
    admin.unregister_broker(1)
    time.sleep(2)
    return [cluster.controllers[0]]


def two_disks(cluster: Cluster) -> list[Path]:
    """The log directories of broker 1."""
    return [cluster.home / "disk-1", cluster.home / "disk-2"]


def cluster_4_4_broker(version: str = "4.4.0") -> Cluster:
    """Return the cluster for ``kafka_4_4_broker``: broker 1 has two disks."""
    cluster = Cluster(version, brokers=3, dynamic=True, props=FAST)
    disks = ",".join(map(str, two_disks(cluster)))
    cluster.node_props[1] = [f"log.dirs={disks}", "log.flush.scheduler.interval.ms=500"]
    return cluster


def cluster_4_3() -> Cluster:
    """Return the cluster for ``kafka_4_3``: broker 0 has two log directories."""
    props = [*FAST, *small_files("4.3.1", segment_bytes=12000)]
    cluster = Cluster("4.3.1", brokers=4, sasl=True, dynamic=True, props=props)
    broker = cluster.node(0)
    cluster.node_props[0] = [f"log.dirs={broker.logs},{broker.home / 'more-data'}", f"metadata.log.dir={broker.logs}"]
    return cluster


def small_cluster(version: str, controllers: int, *, dynamic: bool = False, format_args: tuple[str, ...] = (),
                  snapshot_bytes: int = 6000, retention_bytes: int | None = None) -> Cluster:  # fmt: skip
    """Return a cluster of four brokers whose files stay small."""
    small = small_files(version, snapshot_bytes=snapshot_bytes, segment_bytes=9000, retention_bytes=retention_bytes)
    props = [*FAST, *small]
    return Cluster(version, controllers=controllers, brokers=4, sasl=True, dynamic=dynamic, props=props,
                   format_args=format_args)  # fmt: skip


SCENARIOS: dict[str, tuple[Callable[[], Cluster], Callable[[Cluster], list[Node]]]] = {
    "3.6.2": (lambda: small_cluster("3.6.2", 1), kafka_3_6),
    "3.7.2": (lambda: small_cluster("3.7.2", 3, format_args=("--release-version", "3.6")), kafka_3_7),
    "4.0.0": (
        lambda: small_cluster(
            "4.0.0", 3, dynamic=True, format_args=("--feature", "eligible.leader.replicas.version=1")
        ),
        kafka_4_0,
    ),
    "4.1.1": (lambda: small_cluster("4.1.1", 3, dynamic=True, retention_bytes=20000), kafka_4_1),
    "4.3.1-more": (cluster_4_3, kafka_4_3),
    "4.4.0": (lambda: small_cluster("4.4.0", 3, dynamic=True, snapshot_bytes=12000), kafka_4_4),
    "4.4.0-broker": (cluster_4_4_broker, kafka_4_4_broker),
    "4.3.1-lost": (lambda: Cluster("4.3.1", brokers=3, dynamic=True, props=FAST), kafka_4_3_lost),
}


if __name__ == "__main__":
    for scenario in sys.argv[1:] or SCENARIOS:
        make, use = SCENARIOS[scenario]
        started = time.monotonic()
        record(scenario, make(), use)
        sys.stderr.write(f"{scenario}: {time.monotonic() - started:.0f} s, judged by Kafka {jars.LATEST}\n")
