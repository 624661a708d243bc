"""A fresh cluster's directories hold the image that Kafka itself sees in them, also as copied while it writes."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kafka import gen, jars, text
from tests.kafka.admin import Admin
from tests.kafka.cluster import Cluster
from tests.kafka.node import METADATA, Node, copy_node
from tests.kafka.oracle import expected_image, images_at_each
from tests.kafka.properties import small_files
from tests.live import oneshot

pytestmark = pytest.mark.live

VERSIONS = ("3.3.2", "3.9.2", "4.4.0")
COPIES = 5
DEMO = Path(__file__).parents[2] / "kshell" / "demo"


@pytest.fixture(params=VERSIONS)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Run a small cluster that snapshots and rolls its log often."""
    version: str = request.param
    jars.require(jars.LATEST, version)
    props = [*small_files(version, snapshot_bytes=3000, segment_bytes=6000), "metadata.max.idle.interval.ms=100"]
    with Cluster(version, brokers=2, props=props) as running:
        yield running


def disturb(admin: Admin, rounds: range) -> None:
    """Change a little of everything, with names that differ from round to round."""
    for number in rounds:
        admin.create_topic(f"topic.{number}", 2, 1 + number % 2, configs={"retention.ms": str(1000 * number + 1)})
        admin.set_config("BROKER", str(number % 2), {"leader.replication.throttled.rate": str(1000 + number)})
        admin.set_config("TOPIC", f"topic.{number}", {"retention.ms": None, "max.message.bytes": "1048576"})
        admin.acl(("TOPIC", f"topic.{number}"), f"User:CN=user {number}, O=x", "READ", permission="DENY")
        admin.quota({"user": f"user/{number}", "client-id": f"app ({number}) 100%"}, "request_percentage", number + 0.5)
        admin.quota({"user": None}, "producer_byte_rate", 1000 + number)
        if number % 3 == 2:
            admin.delete_topic(f"topic.{number - 1}")
            admin.add_partitions(f"topic.{number}", 4)


def assert_equal(node: Node, copy: Path) -> None:
    """Copy a node's directory, and compare what kshell and Kafka see in the copy."""
    copy_node(node, copy)
    expected = text.read(expected_image(copy / METADATA))
    assert len(expected.leaves) > 20
    assert text.compare(expected, oneshot.lines(copy, *oneshot.FIND)) == []


def test_directories_of_a_fresh_cluster(cluster: Cluster, tmp_path: Path) -> None:
    admin = cluster.admin()
    seed = time.time_ns() % 10_000
    moments = random.Random(seed)
    print(f"seed {seed}")  # shown when the test fails
    for number in range(COPIES):
        disturb(admin, range(6 * number, 6 * number + 6))
        time.sleep(moments.random())
        assert_equal(cluster.controllers[0], tmp_path / f"moment-{number}")
    cluster.stop(cluster.brokers[1])
    assert_equal(cluster.brokers[0], tmp_path / "broker")
    cluster.stop(cluster.controllers[0])
    assert_equal(cluster.controllers[0], tmp_path / "controller")
    names = sorted(file.name for file in cluster.controllers[0].metadata.iterdir())
    assert sum(name.endswith(".log") for name in names) > 1, names
    assert sum(name.endswith(".checkpoint") for name in names) > 1, names


@pytest.mark.parametrize("mixed", [True, False], ids=["mixed", "uniform"])
@pytest.mark.parametrize("kind", ["snapshot", "log"])
def test_generated_files(kind: str, mixed: bool) -> None:
    jars.require()
    made = gen.snapshot(100, 10, mixed=mixed) if kind == "snapshot" else gen.log(100, 10, 5000, mixed=mixed)
    expected = text.read(expected_image(made.parent))
    assert sum(path.startswith("/image/topics/byName/") for path in expected.leaves) == 100 * (10 + 2)
    for source in (made, made.parent):
        assert text.compare(expected, oneshot.lines(source, *oneshot.FIND)) == []


def test_as_of_any_offset(tmp_path: Path) -> None:
    """In the middle of batches, and in the transaction that holds the first records."""
    jars.require()
    images = images_at_each(DEMO / METADATA, 1, tmp_path)
    last = max(images)
    assert sorted(images) == list(range(last + 1))
    for offset in [*range(2, 13), *range(20, last, 23), last]:
        expected = text.read(images[offset])
        found = oneshot.lines(DEMO, "--as-of", str(offset), *oneshot.FIND)
        assert text.compare(expected, found) == [], f"as of {offset}"
