"""Answers against Kafka's own tools, on a real cluster: a plan that is run, log directories, partitions in trouble."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.builders import uuid, value
from tests.commands.cluster import CLIENT_METRICS, GROUP, TOPIC, broker, config, partition, topic, write
from tests.kafka import jars
from tests.kafka.cluster import Cluster
from tests.kafka.waiting import wait_until
from tests.live import oneshot

pytestmark = pytest.mark.live

TOOLS = {
    "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
    "kafka-configs.sh": "org.apache.kafka.tools.ConfigCommand",
    "kafka-acls.sh": "org.apache.kafka.tools.AclCommand",
    "kafka-log-dirs.sh": "org.apache.kafka.tools.LogDirsCommand",
}
ODD = "x'; exit 9 #$(id)\"\\ \u4e2d -"
"""A name that a shell would take for more."""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A metadata directory with names and values that tools and shells stumble over."""
    quota = {"key": "producer_byte_rate", "remove": False}
    acl = {"host": "*", "permissionType": 3}
    return write(
        tmp_path_factory.mktemp("source"),
        broker(1),
        topic(1, "-dash"), topic(2, "two.parts"),
        partition(1, 0, [1], [1], 1),
        partition(2, 0, [1], [1], 1), partition(2, 1, [1], [1], 1),
        config(TOPIC, "-dash", "cleanup.policy", "compact,delete"),
        config(TOPIC, "-dash", "min.insync.replicas", "2"),
        config(TOPIC, "two.parts", "retention.ms", "-1"),
        config(TOPIC, "two.parts", "follower.replication.throttled.replicas", "0:1,1:1"),
        config(GROUP, "readers", "consumer.session.timeout.ms", "50000"),
        config(CLIENT_METRICS, "slow", "match", "client_id=a.*,client_software_name=[x-z]+"),
        config(CLIENT_METRICS, "slow", "interval.ms", "30000"),
        value("CLIENT_QUOTA", entity=[{"entityType": "user", "entityName": ODD}], value=1048576.0, **quota),
        value("CLIENT_QUOTA", entity=[{"entityType": "user", "entityName": None},
                                      {"entityType": "client-id", "entityName": "-c"}], value=2.0, **quota),
        value("ACCESS_CONTROL_ENTRY", id=uuid(11), resourceType=2, resourceName="pre-", patternType=4, operation=10,
              principal=f"User:{ODD}", **acl),
        value("ACCESS_CONTROL_ENTRY", id=uuid(12), resourceType=4, resourceName="kafka-cluster", patternType=3,
              operation=12, principal="User:*", **acl),
        value("ACCESS_CONTROL_ENTRY", id=uuid(13), resourceType=7, resourceName="User:alice", patternType=3,
              operation=13, principal="User:bob", host="10.0.0.1", permissionType=2),
    )  # fmt: skip


@pytest.fixture(scope="module")
def running() -> Iterator[Cluster]:
    """A controller, and a broker of the id that the plan places everything on."""
    jars.require()
    with Cluster(brokers=1, first_broker=1) as made:
        yield made


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which Kafka's tools are programs."""
    folder = tmp_path_factory.mktemp("tools")
    for name, main in TOOLS.items():
        command = jars.java(f"{jars.libs(jars.LATEST)}/*", main, heap="128m")
        program = folder / name
        program.write_text("#!/bin/sh\nexec " + " ".join(f"'{word}'" for word in command) + ' "$@"\n')
        program.chmod(0o755)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}


def answer(source: oneshot.Source, *words: str) -> list[dict[str, Any]]:
    done = oneshot.run(source, *words, "-o", "json")
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def restored(source: Path, running: Cluster, tools: dict[str, str]) -> Cluster:
    """The cluster after bash has run the plan, word for word."""
    script = "set -e\n" + "\n".join(
        oneshot.lines(source, "plan-restore", "--bootstrap-server", running.bootstrap_servers)
    )
    done = subprocess.run(
        ["bash", "-c", script], env=tools, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )
    assert done.returncode == 0, (script, done.stdout[-3000:], done.stderr[-3000:])
    return running


def test_a_plan_that_is_run_gives_the_same_metadata(source: Path, restored: Cluster) -> None:
    live = ("-q", restored.bootstrap_controllers)
    for line, ids in (
        ("topics", ("topicId",)),
        ("partitions --columns topic,partition,replicas", ()),
        ("quotas", ()),
        ("acls", ("id",)),
        ("configs --where 'resourceType != BROKER'", ()),
    ):
        words = ["-c", line]
        expected, found = answer(source, *words), answer(live, *words)
        for row in (*expected, *found):
            for name in ids:
                del row[name]
            if line == "topics":  # the brokers of 4.x set a default for all
                del row["minIsr"], row["underMinIsr"]
        assert found == expected, line


def test_log_directories_of_a_real_broker_hold_no_strays(
    source: Path, restored: Cluster, tools: dict[str, str], tmp_path: Path
) -> None:
    live = ("-q", restored.bootstrap_controllers)
    file = tmp_path / "log-dirs"
    asked = ["kafka-log-dirs.sh", "--bootstrap-server", restored.bootstrap_servers, "--describe"]
    place = restored.brokers[0].logs
    wait_until(lambda: (place / "two.parts-1").exists() and (place / "-dash-0").exists(), "no log directory")
    file.write_text(subprocess.run(asked, env=tools, capture_output=True, text=True, check=True).stdout)
    for told in (file, place):
        done = oneshot.run(live, "strays", "--log-dirs", str(told), "-o", "json")
        assert (json.loads(done.stdout), done.returncode) == ([], 0), told
    # The same topics by name, made anew: only what tells ids can know.
    assert answer(source, "strays", "--log-dirs", str(file)) == []
    found = {
        (row["topic"], row["partition"], row["finding"]) for row in answer(source, "strays", "--log-dirs", str(place))
    }
    assert {
        (name, number, "other-topic-id") for name, number in (("-dash", 0), ("two.parts", 0), ("two.parts", 1))
    } <= found


@pytest.mark.parametrize("problem", ["under-min-isr", "at-min-isr"])
def test_partitions_in_trouble_are_those_of_kafka_topics(
    restored: Cluster, tools: dict[str, str], problem: str
) -> None:
    asked = [
        "kafka-topics.sh",
        "--bootstrap-server",
        restored.bootstrap_servers,
        "--describe",
        f"--{problem}-partitions",
    ]
    told = subprocess.run(asked, env=tools, capture_output=True, text=True, check=True).stdout
    expected = {(name, int(number)) for name, number in re.findall(r"Topic: (\S+)\s+Partition: (\d+)", told)}
    found = answer(("-q", restored.bootstrap_controllers), "partitions", f"--{problem}", "--min-isr-default", "1")
    assert {(row["topic"], row["partition"]) for row in found} == expected
    assert expected
