"""The least that a principal needs for each thing, on a real controller and broker with an authorizer: docs/live.md."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kshell.metadata.families.acls import OPERATIONS, RESOURCE_TYPES, Acl
from kshell.metadata.kafka_tools import acl_words, release_of
from tests.kafka import jars
from tests.kafka.admin import Admin
from tests.kafka.cluster import Cluster
from tests.kafka.properties import SASL_USERS
from tests.kafka.waiting import wait_until
from tests.live import oneshot

pytestmark = pytest.mark.live

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, Admin]]:
    """A controller and a broker behind SASL where only admin may do everything, and an administrator."""
    jars.require()
    users = " ".join(f'user_{name}="{password}"' for name, password in SASL_USERS.items())
    login = f'{PLAIN} required username="admin" password="{SASL_USERS["admin"]}"'
    props = [
        "super.users=User:admin",
        "listener.security.protocol.map=CONTROLLER:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT",
        "sasl.mechanism.controller.protocol=PLAIN",
        "listener.name.controller.sasl.enabled.mechanisms=PLAIN",
        f"listener.name.controller.plain.sasl.jaas.config={login} {users};",
    ]
    with Cluster(sasl=True, props=props) as running, running.admin("admin") as admin:
        yield running, admin


def as_alice(folder: Path) -> str:
    return as_user(folder, "alice")


def as_user(folder: Path, name: str) -> str:
    """Write a properties file for a PLAIN user; return its path."""
    properties = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.plain.allow.plaintext": "true",
        "sasl.jaas.config": f'{PLAIN} required username="{name}" password="{SASL_USERS[name]}";',
    }
    path = folder / f"{name}.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    return str(path)


def test_each_operation_that_loggers_need(guarded: tuple[Cluster, Admin], tmp_path: Path) -> None:
    """On CLUSTER: DESCRIBE_CONFIGS to list; to change, CLUSTER_ACTION at a controller, ALTER_CONFIGS at a broker."""
    cluster, admin = guarded
    config = ("--config", as_alice(tmp_path))
    at_controller = ("-q", cluster.controllers[0].address, *config)
    at_broker = ("-b", cluster.brokers[0].second_address, *config)

    def codes() -> tuple[int, ...]:
        lines = [(at_controller, "3000"), (at_broker, "0")]
        done = [
            oneshot.run(source, "loggers", node, *change)
            for change in ((), ("set", "root", "ERROR", "--yes"))
            for source, node in lines
        ]
        for one in done:
            assert one.returncode == 0 or "the principal needs " in one.stderr
        return tuple(one.returncode for one in done)

    def grant(operation: str, expected: tuple[int, ...]) -> None:
        admin.acl(("CLUSTER", "kafka-cluster"), "User:alice", operation)
        wait_until(lambda: codes() == expected, f"with {operation} as well, loggers end with {codes()}", 15)

    assert codes() == (3, 3, 3, 3)
    grant("DESCRIBE_CONFIGS", (0, 0, 3, 3))
    grant("CLUSTER_ACTION", (0, 0, 0, 3))
    grant("ALTER_CONFIGS", (0, 0, 0, 0))


def test_versions_need_no_login(guarded: tuple[Cluster, Admin], tmp_path: Path) -> None:
    cluster, _ = guarded
    source = ("-q", cluster.controllers[0].address, "--config", as_alice(tmp_path))
    found = oneshot.lines(source, "api-versions", "-o", "jsonl")
    assert {json.loads(line)["apiKey"] for line in found} >= {1, 18, 55}


def test_each_operation_that_observing_needs(guarded: tuple[Cluster, Admin], tmp_path: Path) -> None:
    """On CLUSTER: CLUSTER_ACTION to observe, DESCRIBE for the quorum, ALTER for the cluster's id and controllers."""
    cluster, admin = guarded
    source = ("-q", cluster.controllers[0].address, "--config", as_user(tmp_path, "bob"))

    def ends(*words: str) -> tuple[int, str]:
        done = oneshot.run(source, *words)
        return done.returncode, done.stderr

    def grant(operation: str, *words: str) -> str:
        admin.acl(("CLUSTER", "kafka-cluster"), "User:bob", operation)
        wait_until(lambda: ends(*words)[0] == 0, f"with {operation} as well, {words} is denied", 15)
        return ends(*words)[1]

    denied = ends("ls", "/image")
    assert denied[0] == 3 and "Fetch: CLUSTER_AUTHORIZATION_FAILED" in denied[1], denied
    assert "the principal needs CLUSTER_ACTION on CLUSTER:kafka-cluster" in denied[1]
    denied = ends("quorum")
    assert denied[0] == 3 and "DescribeQuorum: CLUSTER_AUTHORIZATION_FAILED" in denied[1], denied
    assert "the principal needs DESCRIBE on CLUSTER:kafka-cluster" in denied[1]
    noted = grant("DESCRIBE", "quorum", "-o", "json")
    assert "the cluster's id and its controllers stay unknown" in noted and "ALTER on CLUSTER" in noted
    assert ends("ls", "/image")[0] == 3
    noted = grant("CLUSTER_ACTION", "find", "/image")
    assert "the cluster's id and its controllers stay unknown" in noted
    grant("ALTER", "controllers")
    assert ends("controllers") == (0, "")
    assert json.loads("".join(oneshot.lines(source, "quorum", "-o", "json")))["clusterId"] == cluster.cluster_id


def test_a_wrong_password(guarded: tuple[Cluster, Admin], tmp_path: Path) -> None:
    cluster, _ = guarded
    path = Path(as_user(tmp_path, "bob"))
    path.write_text(path.read_text().replace(SASL_USERS["bob"], "hunter2"))
    done = oneshot.run(("-q", cluster.controllers[0].address, "--config", str(path)), "ls", "/image")
    assert done.returncode == 3 and "hunter2" not in done.stderr
    assert "PLAIN: Authentication failed: Invalid username or password" in done.stderr


def test_each_operation_that_brokers_ask_for(guarded: tuple[Cluster, Admin], tmp_path: Path) -> None:
    """The table of docs/live.md for ``-b``: each grant opens its own part of the tree, and nothing before it does."""
    cluster, admin = guarded
    admin.create_topic("orders", 1, 1, configs={"retention.ms": "1000"})
    admin.scram("carol", "SCRAM-SHA-256", "made-up")
    admin.quota({"user": "carol"}, "request_percentage", 50)
    admin.set_config("BROKER", "", {"log.cleaner.threads": "2"})
    source = ("-b", cluster.brokers[0].second_address, "--config", as_user(tmp_path, "dave"))
    places = {
        "brokers": "/image/cluster/brokers/0",
        "topics": "/image/topics/byName/orders/0",
        "topicConfigs": "/image/configs/TOPIC:orders/retention.ms",
        "brokerConfigs": "/image/configs/BROKER/log.cleaner.threads",
        "quotas": "/image/clientQuotas/user(carol)/request_percentage",
        "scram": "/image/scram/SCRAM-SHA-256/carol",
    }

    def seen() -> set[str]:
        found = {
            json.loads(line)["path"] for line in oneshot.lines(source, "find", "/image", "-o", "jsonl", "--values")
        }
        return {name for name, path in places.items() if path in found}

    def grant(kind: str, name: str, operation: str, opens: set[str]) -> None:
        before = seen()
        assert not before & opens, (operation, before)
        admin.acl((kind, name), "User:dave", operation)
        wait_until(lambda: seen() == before | opens, f"{operation} on {kind} does not open {opens} alone: {seen()}", 15)

    assert seen() == {"brokers"}
    grant("TOPIC", "orders", "DESCRIBE", {"topics"})
    grant("TOPIC", "orders", "DESCRIBE_CONFIGS", {"topicConfigs"})
    grant("CLUSTER", "kafka-cluster", "DESCRIBE_CONFIGS", {"brokerConfigs", "quotas"})
    grant("CLUSTER", "kafka-cluster", "DESCRIBE", {"scram"})


@pytest.mark.parametrize("release", ["3.9.2", "4.0.0", "4.1.1", "4.4.0"])
def test_operations_that_the_tool_of_a_release_takes(release: str) -> None:
    """``kafka-acls.sh`` refuses others (``AclCommand.validateOperation``)."""
    jars.require(release)
    lines = jars.run(jars.classes(release, "AclOperations"), "AclOperations").splitlines()
    theirs = {(kind, operation) for kind, operation in map(str.split, lines)}
    version = release_of(release)
    mine = {
        (kind, operation)
        for kind in RESOURCE_TYPES.values()
        for operation in OPERATIONS.values()
        if acl_words(Acl(kind, "kafka-cluster", "LITERAL", "User:a", "*", operation, "ALLOW"), version) is not None
    }
    assert mine == theirs | {(kind, "ALL") for kind, _ in theirs}
