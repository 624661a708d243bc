"""Record the sample that ships in ``kshell/demo`` from a real cluster: ``python -m tests.tools.record_demo``.

A cluster of the latest release runs for a minute on the loopback address, is administered as an operator would, loses a
broker, and leaves the metadata directory of one of its controllers. All names, hosts and secrets are made up.
The image that Kafka itself sees in the sample goes to ``tests/fixtures/demo/expected-image.tsv``.
"""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path

from tests.kafka import jars
from tests.kafka.admin import Admin
from tests.kafka.cluster import Cluster
from tests.kafka.node import HOST, METADATA, copy_node
from tests.kafka.oracle import expected_image
from tests.kafka.properties import small_files
from tests.kafka.waiting import wait_until

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "kshell" / "demo"
EXPECTED = ROOT / "tests" / "fixtures" / "demo" / "expected-image.tsv"

DAY = 86_400_000


class DemoCluster(Cluster):
    """The sample's cluster: its brokers also advertise a listener under a believable name."""

    def __enter__(self) -> Cluster:
        """Add the external listener, then start."""
        for node in self.brokers:
            local = f"PLAINTEXT://{node.address},SASL://{node.second_address}"
            self.node_props[node.id] = [
                f"listeners={local},EXTERNAL://{HOST}:0",
                f"advertised.listeners={local},EXTERNAL://kafka-{node.id}.shop.example:9094",
                "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,"
                "EXTERNAL:SASL_PLAINTEXT",
                "listener.name.external.plain.sasl.jaas.config="
                'org.apache.kafka.common.security.plain.PlainLoginModule required user_demo="demo-password";',
            ]
        return super().__enter__()


def topics(admin: Admin) -> None:
    """Create what a shop's event platform would have."""
    safe = {"min.insync.replicas": "2"}
    admin.create_topic("orders", 6, 3, configs={**safe, "retention.ms": str(7 * DAY)})
    admin.create_topic("payments.v2", 3, 3, configs={**safe, "retention.ms": str(30 * DAY)})
    admin.create_topic("payments.v1", 3, 3, configs={**safe, "retention.ms": str(30 * DAY)})
    admin.create_topic("clicks", assignment=[[1, 2], [2, 3], [3, 1], [1, 2], [2, 3], [3, 1]],
                       configs={"retention.ms": str(DAY), "compression.type": "zstd"})  # fmt: skip
    admin.create_topic("inventory", 4, 2, configs={"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.1"})
    admin.create_topic("customer-profiles", 4, 3, configs={**safe, "cleanup.policy": "compact"})
    admin.create_topic("shipments", 3, 3, configs=safe)
    admin.create_topic("returns", 2, 3)
    admin.create_topic("fraud-alerts", 1, 3, configs={**safe, "max.message.bytes": "262144"})
    admin.create_topic("audit-log", 1, 3, configs={**safe, "retention.ms": "-1"})
    admin.create_topic("search_index.updates", 2, 2)
    admin.create_topic("legacy-import", assignment=[[3]], configs={"retention.ms": str(DAY)})
    admin.create_topic("tmp-backfill", 2, 1, configs={"retention.ms": "3600000"})


def configs(admin: Admin, external: Admin) -> None:
    """Set configs of every resource type, a secret among them."""
    admin.set_config("BROKER", "", {"log.cleaner.threads": "2", "log.retention.ms": str(3 * DAY)})
    admin.set_config("BROKER", "1", {"leader.replication.throttled.rate": "10485760"})
    for broker in ("1", "2", "3"):
        external.set_config("BROKER", broker, {
            "listener.name.external.ssl.keystore.location": f"/etc/kafka/secrets/kafka-{broker}.jks",
            "listener.name.external.ssl.keystore.password": "demo-keystore-secret",
        })  # fmt: skip
    admin.set_config("GROUP", "analytics", {"consumer.session.timeout.ms": "50000"})
    admin.set_config("GROUP", "fraud-workers", {"share.record.lock.duration.ms": "45000"})
    admin.set_config("CLIENT_METRICS", "slow-producers", {
        "interval.ms": "30000", "metrics": "org.apache.kafka.producer.", "match": "client_id=checkout.*",
    })  # fmt: skip


def security(admin: Admin, as_admin: Admin) -> None:
    """Set ACLs, SCRAM users and delegation tokens."""
    admin.acl(("TOPIC", "orders"), "User:svc-orders", "WRITE")
    admin.acl(("TOPIC", "orders"), "User:svc-orders", "DESCRIBE")
    admin.acl(("TOPIC", "payments."), "User:svc-payments", "ALL", pattern="PREFIXED")
    admin.acl(("TOPIC", "*"), "User:auditor", "READ")
    admin.acl(("TOPIC", "customer-profiles"), "User:intern", "READ", permission="DENY")
    admin.acl(("GROUP", "analytics"), "User:alice", "READ", host="10.20.0.7")
    admin.acl(("TRANSACTIONAL_ID", "checkout-"), "User:svc-payments", "WRITE", pattern="PREFIXED")
    admin.acl(("CLUSTER", "kafka-cluster"), "User:monitoring", "DESCRIBE")
    admin.acl(("TOPIC", "tmp-backfill"), "User:alice", "WRITE")
    admin.acl(("TOPIC", "tmp-backfill"), "User:alice", "WRITE", remove=True)
    admin.scram("alice", "SCRAM-SHA-256", "demo-alice-password")
    admin.scram("alice", "SCRAM-SHA-512", "demo-alice-password", 8192)
    admin.scram("svc-orders", "SCRAM-SHA-512", "demo-orders-password", 8192)
    admin.scram("svc-payments", "SCRAM-SHA-512", "demo-payments-password", 8192)
    admin.scram("bob", "SCRAM-SHA-256", "demo-bob-password")
    admin.scram("bob", "SCRAM-SHA-256", None)
    as_admin.create_token(["svc-scheduler"], "svc-etl")
    hmac = as_admin.create_token(["svc-scheduler"])["hmac"]
    time.sleep(2)  # until the brokers know it
    as_admin.expire_token(hmac)


def quotas(admin: Admin) -> None:
    """Set quotas of users, client ids and addresses, and their defaults."""
    admin.quota({"user": None}, "producer_byte_rate", 1048576)
    admin.quota({"user": None}, "consumer_byte_rate", 2097152)
    admin.quota({"client-id": None}, "request_percentage", 25)
    admin.quota({"user": "svc-orders"}, "producer_byte_rate", 10485760)
    admin.quota({"user": "alice", "client-id": "notebook/alice (dev)"}, "consumer_byte_rate", 524288)
    admin.quota({"user": "svc-etl", "client-id": None}, "producer_byte_rate", 5242880)
    admin.quota({"ip": "10.20.0.7"}, "connection_creation_rate", 20)
    admin.quota({"ip": None}, "connection_creation_rate", 50)


def operate(cluster: Cluster, admin: Admin) -> None:
    """Do what happens in an operator's week: growth, a reassignment, an election, a lost controller and broker."""
    admin.produce("orders", 3)
    admin.produce("payments.v2", 3, "checkout-1")
    admin.add_partitions("orders", 8)
    admin.set_config("TOPIC", "orders", {"retention.ms": str(14 * DAY)})
    admin.reassign("clicks", 0, [2, 3])
    wait_until(lambda: admin.describe_topic("clicks")[0]["replicas"] == [2, 3], "the reassignment did not finish")
    admin.delete_topic("payments.v1")
    admin.delete_topic("tmp-backfill")

    leader = cluster.leader()
    cluster.stop(leader)
    time.sleep(2)
    cluster.start(leader)
    cluster.leader()

    broker = cluster.node(3)
    cluster.kill(broker)
    cluster.wait_for_brokers({1, 2})
    admin.set_config("TOPIC", "audit-log", {"segment.bytes": "134217728"})
    admin.acl(("TOPIC", "audit-log"), "User:*", "DELETE", permission="DENY")
    admin.quota({"user": "intern"}, "request_percentage", 5)
    admin.set_config("TOPIC", "returns", {"retention.ms": str(2 * DAY)})
    time.sleep(3)


def record() -> None:
    """Run the cluster and write the sample."""
    props = [
        *small_files(jars.LATEST, snapshot_bytes=5000, segment_bytes=8000),
        "metadata.max.idle.interval.ms=5000",
        "transaction.state.log.replication.factor=2",
        "broker.session.timeout.ms=4000",
        "broker.heartbeat.interval.ms=1000",
    ]
    with DemoCluster(controllers=3, brokers=3, first_broker=1, dynamic=True, sasl=True, props=props) as cluster:
        admin = cluster.admin()
        topics(admin)
        configs(admin, cluster.controller_admin())
        security(admin, cluster.admin("admin"))
        quotas(admin)
        operate(cluster, admin)
        leader = cluster.leader()
        for node in cluster.brokers:
            if node.running:
                cluster.kill(node)
        cluster.kill(leader)
        shutil.rmtree(DEMO / METADATA, ignore_errors=True)
        copy_node(leader, DEMO)
    EXPECTED.parent.mkdir(parents=True, exist_ok=True)
    EXPECTED.write_text(expected_image(DEMO / METADATA), "utf-8")


if __name__ == "__main__":
    record()
    sys.stderr.write(f"wrote {DEMO} and {EXPECTED}\n")
