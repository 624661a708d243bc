"""``features --can-upgrade`` and ``--can-downgrade`` agree with what ``kafka-features.sh … --dry-run`` says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial

import pytest

from tests.kafka import jars
from tests.kafka.cluster import Cluster
from tests.kafka.node import Node
from tests.kafka.waiting import wait_until
from tests.live import oneshot

pytestmark = pytest.mark.live


class Mixed(Cluster):
    """A cluster in which brokers run another release than the controllers."""

    broker_version = ""

    def start(self, node: Node, *, wait: bool = True) -> None:
        """Starts the node with its own release's jars."""
        own = self.version
        self.version = self.broker_version if node.role == "broker" and self.broker_version else own
        try:
            super().start(node, wait=wait)
        finally:
            self.version = own


def dry_run(cluster: Cluster, direction: str, *options: str) -> bool:
    """Whether Kafka's own tool says that all of it can be done."""
    words = ["--bootstrap-server", cluster.bootstrap_servers, direction, "--dry-run", *options]
    ended = jars.outcome(f"{jars.libs(cluster.version)}/*", "org.apache.kafka.tools.FeatureCommand", *words)
    said = ended.out + ended.err
    # Anything else than the two sentences is a tool that did not get as far as asking.
    assert (" can be " in said) is (ended.code == 0), said
    refusals = "Can not", "Could not", "is < 1"
    assert ended.code == 0 or any(one in said for one in refusals), said
    return ended.code == 0


def compare(cluster: Cluster, direction: str, *targets: str) -> bool:
    """The answer that both give to one question: a release, or FEATURE=LEVEL words."""
    release = len(targets) == 1 and "=" not in targets[0]
    words = ["--release-version", targets[0]] if release else [word for one in targets for word in ("--feature", one)]
    theirs = dry_run(cluster, direction, *words)
    asked = [word for one in targets for word in (f"--can-{direction}", one)]
    for source in (("-q", cluster.bootstrap_controllers), ("-b", cluster.bootstrap_servers)):
        done = oneshot.run(source, "features", *asked, "-o", "json")
        rows = json.loads(done.stdout)
        assert done.returncode == (0 if theirs else 1), (source, targets, theirs, rows, done.stderr)
        assert (all(row["possible"] is True for row in rows)) is theirs
    return theirs


@pytest.fixture(scope="module", params=["3.9.2", "4.0.0", "4.4.0"])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster that is finalized below what it can: below the level from which on controllers register (3.9.2)."""
    version: str = request.param
    jars.require(version)
    below = {"3.9.2": "3.6", "4.0.0": "3.8", "4.4.0": "4.0"}[version]
    with Cluster(version, format_args=["--release-version", below]) as running:
        yield running


QUESTIONS: dict[str, list[tuple[str, ...]]] = {
    "3.9.2": [
        ("upgrade", "metadata.version=21"),
        ("upgrade", "metadata.version=22"),
        ("upgrade", "metadata.version=14"),
        ("upgrade", "metadata.version=13"),
        ("upgrade", "transaction.version=1"),
        ("upgrade", "kraft.version=1"),
        ("upgrade", "kraft.version=2"),
        ("upgrade", "no.such.version=1"),
        ("upgrade", "no.such.version=0"),
        ("downgrade", "no.such.version=0"),
        ("downgrade", "metadata.version=13"),
        ("downgrade", "metadata.version=12"),
        ("downgrade", "metadata.version=15"),
        ("downgrade", "kraft.version=0"),
    ],
    "4.0.0": [
        ("upgrade", "4.0"),
        ("upgrade", "kraft.version=1"),
        ("upgrade", "kraft.version=1", "metadata.version=21"),
        ("upgrade", "eligible.leader.replicas.version=1"),
        ("downgrade", "3.8"),
        ("downgrade", "metadata.version=16"),
        ("downgrade", "kraft.version=0"),
    ],
    "4.4.0": [
        ("upgrade", "4.4"),
        ("upgrade", "4.4-IV0"),
        ("upgrade", "4.3"),
        ("upgrade", "4.1"),
        ("upgrade", "3.9"),
        ("upgrade", "metadata.version=33"),
        ("upgrade", "metadata.version=34"),
        ("upgrade", "metadata.version=30", "share.version=1"),
        ("upgrade", "metadata.version=31", "share.version=2"),
        ("upgrade", "share.version=2"),
        ("upgrade", "eligible.leader.replicas.version=1"),
        ("upgrade", "streams.version=2"),
        ("upgrade", "kraft.version=1"),
        ("upgrade", "transaction.version=1"),
        ("upgrade", "group.version=0"),
        ("downgrade", "3.9"),
        ("downgrade", "metadata.version=24"),
        ("downgrade", "metadata.version=22"),
        ("downgrade", "transaction.version=0"),
        ("downgrade", "group.version=0"),
        ("downgrade", "no.such.version=0"),
        ("downgrade", "metadata.version=26"),
    ],
}


LATER: dict[str, dict[int, list[tuple[str, ...]]]] = {
    "4.4.0": {
        31: [("downgrade", "4.3"), ("downgrade", "metadata.version=30"), ("downgrade", "metadata.version=29"),
             ("upgrade", "4.4")],
        33: [("downgrade", "4.4-IV1"), ("downgrade", "metadata.version=31"), ("downgrade", "share.version=0"),
             ("upgrade", "4.4")],
    },
}  # fmt: skip
"""What is asked once metadata.version is at a level."""


def test_agrees_with_kafka(cluster: Cluster) -> None:
    answers = {question: compare(cluster, *question) for question in QUESTIONS[cluster.version]}
    assert set(answers.values()) == {True, False}, answers
    admin = cluster.admin()
    for level, questions in LATER.get(cluster.version, {}).items():
        admin.feature("metadata.version", level)
        wait_until(partial(is_finalized, cluster, level), f"the broker does not know level {level}")
        answers = {question: compare(cluster, *question) for question in questions}
        assert set(answers.values()) == {True, False}, answers


def is_finalized(cluster: Cluster, level: int) -> bool:
    return finalized(cluster) == level


def finalized(cluster: Cluster) -> int:
    """The metadata.version that a broker says is finalized."""
    (line,) = oneshot.lines(("-b", cluster.bootstrap_servers), "features", "--where",
                            "feature == metadata.version", "-o", "jsonl")  # fmt: skip
    return int(json.loads(line)["level"])


def test_an_older_broker_is_in_the_way() -> None:
    jars.require("4.4.0", "4.1.1")
    mixed = Mixed("4.4.0", format_args=["--release-version", "4.0"])
    with mixed:
        mixed.stop(mixed.brokers[0])
        mixed.broker_version = "4.1.1"
        mixed.start(mixed.brokers[0])
        mixed.wait_for_brokers({0})
        assert compare(mixed, "upgrade", "4.1")
        assert not compare(mixed, "upgrade", "4.3")
        assert not compare(mixed, "upgrade", "metadata.version=28")
        done = oneshot.run(("-q", mixed.bootstrap_controllers), "features", "--can-upgrade", "4.3", "-o", "json")
        refused = {row["feature"]: row["inTheWay"] for row in json.loads(done.stdout) if not row["possible"]}
        assert refused == {"metadata.version": ["broker 0"], "streams.version": ["broker 0"]}
