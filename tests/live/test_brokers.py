"""What brokers tell, against the log's view of the same cluster; who may read what; which configs Kafka takes."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from kshell.metadata.partial import NOT_AVAILABLE
from tests.kafka import jars
from tests.kafka.admin import Admin, AdminError
from tests.kafka.cluster import Cluster
from tests.kafka.properties import SASL_USERS
from tests.kafka.waiting import wait_until
from tests.live import oneshot

pytestmark = pytest.mark.live

VERSIONS = ("3.9.2", "4.4.0")
FIND = ("find", "/", "--values", "-o", "jsonl")
MOVES_ON = {"highWatermark", "logEndOffset", "lag", "lastFetchTimestamp", "lastCaughtUpTimestamp"}
"""Between two questions, of the quorum."""
NOT_TOLD = {
    "partition": {"directories", "leaderRecoveryState", "partitionEpoch"},
    "broker": {"epoch", "incarnationId", "inControlledShutdown", "isMigratingZkBroker", "directories",
               "cordonedDirectories"},
}  # fmt: skip
ONLY_IN_THE_LOG = ("/image/acls/byId", "/image/cluster/controllers", "/image/producerIds", "/image/provenance", "/log",
                   "/snapshots", "/image/delegationToken")  # fmt: skip


def fill(admin: Admin, version: str) -> None:
    """Something of every kind that brokers tell."""
    admin.create_topic("orders", 3, 2, configs={"retention.ms": "86400000", "cleanup.policy": "compact,delete"})
    admin.create_topic("one-replica", assignment=[[0], [1]])
    admin.set_config("BROKER", "", {"log.retention.ms": "7200000", "log.cleaner.threads": "2"})
    admin.set_config("BROKER", "0", {"background.threads": "11", "leader.replication.throttled.rate": "1000"})
    jaas = f"org.apache.kafka.common.security.plain.PlainLoginModule required {users()};"
    admin.set_config("BROKER", "1", {"listener.name.sasl.plain.sasl.jaas.config": jaas})
    admin.set_config("CLIENT_METRICS", "a/subscription", {"interval.ms": "30000", "metrics": "org.apache.kafka."})
    if version >= "4.1":
        admin.set_config("GROUP", "readers", {"consumer.session.timeout.ms": "50000"})
    admin.acl(("TOPIC", "orders"), "User:CN=alice, O=x", "READ", permission="DENY")
    admin.acl(("GROUP", "g"), "User:bob", "READ", pattern="PREFIXED", host="10.0.0.1")
    admin.acl(("CLUSTER", "kafka-cluster"), "User:*", "DESCRIBE_CONFIGS")
    admin.quota({"user": "u/1", "client-id": "app (1) 100%"}, "request_percentage", 12.5)
    admin.quota({"user": None}, "producer_byte_rate", 1e6)
    admin.quota({"client-id": None, "user": "v"}, "consumer_byte_rate", 5)
    admin.quota({"ip": "127.0.0.9"}, "connection_creation_rate", 10)
    admin.quota({"ip": None}, "connection_creation_rate", 11)
    admin.scram("dora/\u20ac", "SCRAM-SHA-256", "pw", 8192)
    admin.scram("dora/\u20ac", "SCRAM-SHA-512", "pw")
    admin.produce("one-replica", 2)


def users() -> str:
    return " ".join(f'user_{name}="{password}"' for name, password in SASL_USERS.items())


@pytest.fixture(scope="module", params=VERSIONS)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    version: str = request.param
    jars.require(jars.LATEST, version)
    with Cluster(version, brokers=2, sasl=True) as running:
        fill(running.admin(), version)
        yield running


def properties(cluster: Cluster, user: str) -> str:
    """Client properties of a PLAIN user."""
    path = cluster.home / f"{user}.properties"
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    path.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.plain.allow.plaintext=true\n"
        f'sasl.jaas.config={module} required username="{user}" password="{SASL_USERS[user]}";\n'
    )
    return str(path)


def as_user(cluster: Cluster, user: str) -> tuple[str, ...]:
    servers = ",".join(node.second_address for node in cluster.brokers)
    return ("-b", servers, "--config", properties(cluster, user))


def ask(*words: str) -> subprocess.CompletedProcess[str]:
    return oneshot.run(words)


def leaves(*words: str) -> dict[str, dict[str, Any]]:
    done = ask(*words, *FIND)
    assert done.returncode == 0, done.stderr
    return {row["path"]: row for row in map(json.loads, done.stdout.splitlines())}


def is_unreported(value: Any) -> bool:
    return isinstance(value, str) and value.startswith(NOT_AVAILABLE)


def same(log: Any, told: Any, kind: str) -> bool:
    if isinstance(log, Mapping) and isinstance(told, Mapping):
        # Only what is named may be untold: a field that went missing must show.
        untold = {name for name, value in told.items() if is_unreported(value)}
        fields = set(log) - (MOVES_ON if kind in ("voter", "observer") else set())
        return (
            log.keys() == told.keys()
            and untold == NOT_TOLD.get(kind, set()) & log.keys()
            and all(log[name] == told[name] for name in fields - untold)
        )
    return bool(log == told)


def test_leaf_by_leaf(cluster: Cluster) -> None:
    log = leaves("-q", cluster.bootstrap_controllers)
    told = leaves("-b", cluster.bootstrap_servers)
    both = [path for path in log if path in told and path.rpartition("/")[2] not in MOVES_ON]
    both = [path for path in both if path not in ONLY_IN_THE_LOG]
    assert [path for path in both if not same(log[path]["value"], told[path]["value"], log[path]["type"])] == []
    missing = [path for path in log if path not in told and not path.startswith(ONLY_IN_THE_LOG)]
    assert missing == []
    acls = [sorted(json.dumps(row["value"]) for row in rows.values() if row["type"] == "acl") for rows in (log, told)]
    assert acls[0] == acls[1]
    assert len(acls[0]) == 3
    sentences = {path for path, row in told.items() if row["type"] == "unavailable"}
    assert sentences - {"/image/configs/GROUP"} == set(ONLY_IN_THE_LOG)
    kinds = {log[path]["type"] for path in both}
    assert {"partition", "broker", "config", "quota", "scram", "feature", "topicId", "voter", "quorum"} <= kinds
    configs = {path for path in both if path.startswith("/image/configs/")}
    assert len(configs) >= 8
    assert told["/image/configs/BROKER:1/listener.name.sasl.plain.sasl.jaas.config"]["value"] == "[redacted]"


def test_tokens_over_sasl(cluster: Cluster) -> None:
    token = cluster.admin("admin").create_token(["User:bob"])["tokenId"]
    path = f"/image/delegationToken/{token}"
    wait_until(lambda: path in leaves(*as_user(cluster, "admin")), "the token is not told")
    log, told = leaves("-q", cluster.bootstrap_controllers)[path], leaves(*as_user(cluster, "admin"))[path]
    assert log["value"] == told["value"]


def test_who_may_read_little_is_told_which_acls_are_missing(cluster: Cluster) -> None:
    cluster.admin().acl(("TOPIC", "orders"), "User:alice", "DESCRIBE")
    wait_until(lambda: "/image/topics/byName/orders/0" in leaves(*as_user(cluster, "alice")), "the ACL does not work")
    told = leaves(*as_user(cluster, "alice"))
    assert {path.split("/")[4] for path in told if path.startswith("/image/topics/byName/")} == {"orders"}
    needed = {
        "/image/acls": "DESCRIBE on CLUSTER:kafka-cluster",
        "/image/scram": "DESCRIBE on CLUSTER:kafka-cluster",
        "/image/configs/TOPIC:orders": "DESCRIBE_CONFIGS on TOPIC:orders",
        "/quorum/leaderId": "DESCRIBE on CLUSTER:kafka-cluster",
    }
    for path, acl in needed.items():
        assert is_unreported(told[path]["value"]), path
        assert acl in told[path]["value"], path
    # DESCRIBE_CONFIGS on CLUSTER is everybody's here.
    assert told["/image/configs/BROKER/log.retention.ms"]["value"] == "7200000"
    assert told["/image/clientQuotas/user(<default>)/producer_byte_rate"]["value"] == 1e6
    assert told["/image/topics/byName/orders/0"]["value"]["addingReplicas"] == NOT_AVAILABLE
    done = ask(*as_user(cluster, "alice"), "configs", "TOPIC:orders")
    assert done.returncode == 3
    assert "DESCRIBE_CONFIGS" in done.stderr


@pytest.mark.parametrize("flag", ["-q", "-b"])
def test_software_is_inferred(cluster: Cluster, flag: str) -> None:
    address = cluster.bootstrap_controllers if flag == "-q" else cluster.bootstrap_servers
    rows = json.loads(ask(flag, address, "brokers", "--software", "-o", "json").stdout)
    release = ".".join(cluster.version.split(".")[:2])
    assert [row["id"] for row in rows] == [0, 1]
    assert {(row["softwareVersion"], row["softwareSource"]) for row in rows} == {(release, "inferred")}
    assert {(row["lowestSoftwareVersion"], row["highestSoftwareVersion"]) for row in rows} == {(release, release)}


@pytest.mark.parametrize("flag", ["-q", "-b"])
def test_configs_of_nodes(cluster: Cluster, flag: str) -> None:
    address = cluster.bootstrap_controllers if flag == "-q" else cluster.bootstrap_servers
    found = json.loads(ask(flag, address, "configs", "TOPIC:orders", "BROKER:0", "--docs", "-o", "json").stdout)
    told = {(row["resourceType"], row["name"]): row for row in found}
    assert {key: row["value"] for key, row in told.items()} == {
        ("TOPIC", "retention.ms"): "86400000",
        ("TOPIC", "cleanup.policy"): "compact,delete",
        ("BROKER", "background.threads"): "11",
        ("BROKER", "leader.replication.throttled.rate"): "1000",
    }
    retention = told["TOPIC", "retention.ms"]
    assert (retention["type"], retention["source"]) == ("LONG", "DYNAMIC_TOPIC_CONFIG")
    assert [one["name"] for one in retention["synonyms"]] == ["retention.ms", "log.retention.ms", "log.retention.hours"]
    assert "log segments" in retention["documentation"]
    page = " ".join(ask(flag, address, "man", "config", "retention.ms").stdout.split())
    assert all(words in page for words in ("604800000", "-1 or more", "log segments", "`log.retention.hours`"))


CHECKED = (
    ("TOPIC", "orders", "retention.ms", "-1"),
    ("TOPIC", "orders", "retention.ms", "-2"),
    ("TOPIC", "orders", "retention.ms", " 86400000 "),
    ("TOPIC", "orders", "retention.ms", "1.0"),
    ("TOPIC", "orders", "retention.ms", "9223372036854775808"),
    ("TOPIC", "orders", "max.message.bytes", "2147483648"),
    ("TOPIC", "orders", "max.message.bytes", "+5000000"),
    ("TOPIC", "orders", "min.insync.replicas", "0"),
    ("TOPIC", "orders", "preallocate", "TRUE"),
    ("TOPIC", "orders", "preallocate", "yes"),
    ("TOPIC", "orders", "cleanup.policy", "compact, delete"),
    ("TOPIC", "orders", "cleanup.policy", "compact,remove"),
    ("TOPIC", "orders", "compression.type", "zstd"),
    ("TOPIC", "orders", "compression.type", "ZSTD"),
    ("TOPIC", "orders", "message.timestamp.type", "LogAppendTime"),
    ("TOPIC", "orders", "min.cleanable.dirty.ratio", "1e-3"),
    ("TOPIC", "orders", "min.cleanable.dirty.ratio", "1.5"),
    ("TOPIC", "orders", "min.cleanable.dirty.ratio", "0.5f"),
    ("TOPIC", "orders", "min.cleanable.dirty.ratio", "NaN"),
    ("TOPIC", "orders", "segment.bytes", "10"),
    ("TOPIC", "orders", "no.such.key", "1"),
    ("CLIENT_METRICS", "sub", "interval.ms", "often"),
    ("CLIENT_METRICS", "sub", "no.such.key", "1"),
    ("BROKER", "0", "background.threads", "9"),
    ("BROKER", "0", "background.threads", "0"),
    ("BROKER", "0", "background.threads", "many"),
    ("BROKER", "0", "broker.rack", "elsewhere"),
)


def test_a_check_says_what_kafka_does(cluster: Cluster) -> None:
    admin = cluster.admin()
    verdicts = {}
    for kind, name, key, value in CHECKED:
        done = ask(
            "-b", cluster.bootstrap_servers, "configs", "check", f"{kind}:{name}", f"{key}={value}", "-o", "json"
        )
        (row,) = json.loads(done.stdout)
        assert done.returncode == (0 if row["valid"] else 1)
        verdicts[kind, key, value] = row["valid"]
    taken = {}
    for kind, name, key, value in CHECKED:
        try:
            admin.set_config(kind, name, {key: value})
        except AdminError:
            taken[kind, key, value] = False
        else:
            taken[kind, key, value] = True
            time.sleep(0.05)
            if kind == "BROKER":
                admin.set_config(kind, name, {key: "11"})
    assert verdicts == taken


def test_a_broker_that_is_gone() -> None:
    jars.require(jars.LATEST)
    with Cluster(jars.LATEST, brokers=2) as cluster:
        admin = cluster.admin()
        admin.create_topic("orders", 2, 2)
        admin.create_topic("moves", assignment=[[0]])
        cluster.kill(cluster.brokers[1])
        where = ("-b", cluster.brokers[0].address)

        def fenced() -> bool:
            rows = json.loads(ask(*where, "brokers", "-o", "json").stdout)
            return [row["fenced"] for row in rows] == [False, True]

        wait_until(fenced, "the broker is not fenced", 60)
        admin.reassign("moves", 0, [1])
        log, told = leaves("-q", cluster.bootstrap_controllers), leaves(*where)
        for path in (f"/image/topics/byName/{name}" for name in ("orders/0", "orders/1", "moves/0")):
            assert same(log[path]["value"], told[path]["value"], "partition")
        moving = told["/image/topics/byName/moves/0"]["value"]
        assert (moving["addingReplicas"], moving["removingReplicas"]) == ([1], [0])
        assert is_unreported(told["/image/configs/BROKER:1"]["value"])
        rows = json.loads(ask(*where, "brokers", "--software", "-o", "json").stdout)
        assert [row["softwareSource"] for row in rows] == ["inferred", "unknown"]
        assert str(cluster.brokers[1].port) in rows[1]["evidence"][0]
