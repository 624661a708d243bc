"""What kshell prints as the next step is run as it stands, on a real cluster of each release, and cures the finding.

Where no tool of a release cures it, the step says so, and the finding stays.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.kafka import jars
from tests.kafka.cluster import Cluster
from tests.kafka.shell_tools import Shell
from tests.kafka.waiting import wait_until
from tests.live import oneshot
from tests.live.test_health import are_assigned

pytestmark = pytest.mark.live

SLOW = 120
"""Seconds that a finding may take to come or to go."""
BEFORE = {"3.9.2": "3.8", "4.0.0": "3.9", "4.3.1": "4.2", "4.4.0": "4.3"}
"""Release -> the one that its cluster is finalized at first."""
TOPIC = "/image/topics/byName/"
STATIC_IS_FINAL = {"3.9.2", "4.0.0"}
"""Releases that cannot make a static quorum a dynamic one."""


class Run:
    """A cluster with what was done to it: one line per finding, printed at the end."""

    def __init__(self, cluster: Cluster) -> None:
        """Nothing is done yet."""
        self.cluster = cluster
        self.source = ("-q", cluster.bootstrap_controllers)
        self.shell = Shell(cluster.version, cluster.home / "tools")
        self.outcomes: dict[str, str] = {}

    def answer(self, *words: str, source: tuple[str, ...] | None = None) -> Any:
        """One answer of kshell as JSON."""
        return json.loads(oneshot.run(source or self.source, *words, "-o", "json").stdout or "[]")

    def find(self, finding: str, path: str = "") -> dict[str, Any] | None:
        """The finding, as far as health reports it there."""
        rows = self.answer("health", "--where", f"finding == {finding}")
        return next((row for row in rows if path in row["path"]), None)

    def seen(self, finding: str, path: str = "") -> dict[str, Any]:
        """Wait for a finding."""
        row: dict[str, Any] | None = None

        def is_there() -> bool:
            nonlocal row
            row = self.find(finding, path)
            return row is not None

        wait_until(is_there, f"{finding} is not found at {path!r}: {self.answer('health')}", SLOW)
        assert row is not None
        return row

    def gone(self, finding: str, path: str = "") -> None:
        """Wait until a finding is cured."""
        wait_until(lambda: self.find(finding, path) is None, f"{finding} stays: {self.find(finding, path)}", SLOW)

    def execute(self, commands: list[str]) -> None:
        """Run the lines in bash, one after another; each must end well."""
        assert commands
        for line in commands:
            ended = self.shell.run(line)
            assert ended.returncode == 0, f"{line}\n{ended.stdout}\n{ended.stderr}"
            failures = ("Error", "Exception", "failed", "does not support")
            assert not any(word in ended.stdout for word in failures), f"{line}\n{ended.stdout}\n{ended.stderr}"

    def cure(self, finding: str, path: str = "") -> dict[str, Any]:
        """Run what is printed for a finding, and see it go."""
        row = self.seen(finding, path)
        self.execute(row["commands"])
        self.gone(finding, path)
        self.note(finding, "cured by " + "; ".join(row["commands"]))
        return row

    def note(self, finding: str, outcome: str) -> None:
        """Remember what became of a finding."""
        self.outcomes[finding] = outcome
        print(f"{self.cluster.version} {finding}: {outcome}", file=sys.stderr, flush=True)

    def stop(self, broker: int) -> None:
        """Shut a broker down, and wait until it is fenced."""
        self.cluster.stop(self.cluster.node(broker))
        wait_until(lambda: self.broker(broker)["fenced"], f"broker {broker} is not fenced", SLOW)

    def start(self, broker: int) -> None:
        """Start a broker, and wait until it serves."""
        self.cluster.start(self.cluster.node(broker))
        wait_until(lambda: self.broker(broker)["fenced"] is False, f"broker {broker} is fenced", SLOW)

    def broker(self, broker: int) -> dict[str, Any]:
        """The row of a broker; one that is not registered has nothing in it but that it is not fenced by."""
        rows = self.answer("brokers", "--where", f"id == {broker}")
        return rows[0] if rows else {"fenced": None}


@contextmanager
def running(version: str) -> Iterator[Run]:
    """Four brokers in three racks, of which one has two disks; two controllers, whose quorum is static."""
    jars.require(version)
    props = ["auto.leader.rebalance.enable=false", "broker.session.timeout.ms=6000"]
    cluster = Cluster(
        version, controllers=2, brokers=4, props=props, format_args=["--release-version", BEFORE[version]]
    )
    disks = [cluster.home / "disk-1", cluster.home / "disk-2"]
    cluster.node_props[2] = [f"log.dirs={','.join(map(str, disks))}", "log.flush.scheduler.interval.ms=500"]
    with cluster:
        yield Run(cluster)


def features(run: Run) -> None:
    run.cure("featureBehind")


def configs(run: Run) -> None:
    admin = run.cluster.admin()
    admin.create_topic("above", assignment=[[0, 1]], configs={"min.insync.replicas": "3"})
    run.cure("minIsrAboveReplicas", f"{TOPIC}above")
    admin.create_topic("equal", assignment=[[0, 1]], configs={"min.insync.replicas": "2"})
    run.cure("minIsrEqualsReplicas", f"{TOPIC}equal")
    admin.set_config("BROKER", "0", {"leader.replication.throttled.rate": "1000"})
    run.cure("leftOverThrottle", "BROKER:0")
    admin.set_config("TOPIC", "above", {"follower.replication.throttled.replicas": "*"})
    run.cure("leftOverThrottle", "TOPIC:above")


def access(run: Run) -> None:
    admin = run.cluster.admin()
    admin.acl(("TOPIC", "*"), "User:*", "ALL")
    run.cure("wideOpenAcl")
    admin.acl(("TOPIC", "not there"), "User:o'hara", "READ", host="10.0.0.1")
    run.cure("orphanedAcl")
    admin.scram("alice", "SCRAM-SHA-512", "secret-of-alice", 4096)
    admin.quota({"user": "ghost"}, "producer_byte_rate", 1000.0)
    run.cure("orphanedQuota")
    run.cure("fewScramIterations")


def a_broker_is_down(run: Run) -> None:
    admin = run.cluster.admin()
    two = {"min.insync.replicas": "2"}
    admin.create_topic("moved", assignment=[[0, 1, 2]], configs=two)
    admin.create_topic("strict", assignment=[[0, 1]], configs=two)
    admin.create_topic("eligible", assignment=[[0, 1]], configs=two)
    admin.create_topic("wide", assignment=[[0, 1]], configs={"min.insync.replicas": "1"})
    admin.create_topic("dup", assignment=[[1, 0]])
    run.stop(0)
    fenced = run.seen("brokerFenced")
    assert fenced["commands"] == [] and fenced["nextStep"].startswith("start it")
    run.cure("underMinIsr", f"{TOPIC}strict")
    run.cure("atMinIsr", f"{TOPIC}wide")
    run.cure("underReplicated", f"{TOPIC}dup")
    if run.find("elrInUse", f"{TOPIC}eligible") is not None:
        run.cure("elrInUse", f"{TOPIC}eligible")
    else:
        run.note("elrInUse", "cannot come about: eligible.leader.replicas.version is off")
    run.start(0)
    run.gone("brokerFenced")
    run.note("brokerFenced", f"says: {fenced['nextStep']}; started, it is gone")
    wait_until(lambda: run.find("underReplicated") is None, "replicas do not catch up", SLOW)
    run.cure("nonPreferredLeader", f"{TOPIC}moved")


def placement(run: Run) -> None:
    admin = run.cluster.admin()
    admin.create_topic("alone", assignment=[[0], [1]])
    run.cure("singleReplica", f"{TOPIC}alone")
    admin.delete_topic("alone")
    admin.create_topic("near", assignment=[[0, 3]])
    run.cure("rackViolation", f"{TOPIC}near")


def a_broker_is_gone(run: Run) -> None:
    admin = run.cluster.admin()
    admin.create_topic("stuck", assignment=[[0, 1]])
    run.stop(3)
    admin.reassign("stuck", 0, [3, 1])
    run.cure("stuckReassignment", f"{TOPIC}stuck")
    run.cure("staleRegistration", "/3")
    run.start(3)

    admin.set_config("BROKER", "3", {"log.cleaner.threads": "2"})
    admin.create_topic("left", assignment=[[3, 1]])
    admin.create_topic("broken", assignment=[[3]])
    admin.create_topic("late", assignment=[[3, 2]])
    run.stop(2)
    wait_until(lambda: admin.describe_topic("late")[0]["isr"] == [3], "broker 2 stays in the ISR", SLOW)
    run.stop(3)
    run.start(2)
    offline = run.seen("offlinePartition", f"{TOPIC}late")
    assert offline["commands"] == [] and "`why TOPIC-PARTITION` has the last resort" in offline["nextStep"]
    last_resort(run, "late")
    run.gone("offlinePartition", f"{TOPIC}late")
    unclean = run.find("uncleanRecovery", f"{TOPIC}late")
    run.execute([f"kafka-cluster.sh unregister --bootstrap-server {run.cluster.node(0).address} --id 3"])
    run.seen("offlinePartition", f"{TOPIC}broken")
    last_resort(run, "broken")
    run.gone("offlinePartition", f"{TOPIC}broken")
    run.note("offlinePartition", "cured by the last resort of why: an unclean election, and a new, empty replica")
    run.cure("unregisteredReplica", f"{TOPIC}left")
    orphan = run.seen("orphanedBrokerConfig")
    assert orphan["nextStep"].startswith("no tool of any release removes them while the broker is not registered")
    refused = run.shell.run(f"timeout 30 {orphan['commands'][0]}")
    assert refused.returncode != 0 and run.find("orphanedBrokerConfig") is not None
    run.start(3)
    run.execute(orphan["commands"][:1])
    run.stop(3)
    run.execute(orphan["commands"][1:])
    run.gone("orphanedBrokerConfig")
    run.note("orphanedBrokerConfig", f"says: {orphan['nextStep']}; done in that order, it is gone")
    if unclean is not None:
        run.cure("unregisteredReplica", f"{TOPIC}late")
        run.gone("uncleanRecovery", f"{TOPIC}late")
        run.note("uncleanRecovery", "says that the mark goes with the next change of the ISR; it did")


def last_resort(run: Run, topic: str) -> None:
    closing = run.answer("why", f"{topic}-0")["answer"]
    run.execute(closing["lastResortCommands"])


def a_disk_is_lost(run: Run) -> None:
    admin = run.cluster.admin()
    admin.create_topic("disks", assignment=[[2, 0]] * 4)
    wait_until(lambda: are_assigned(run.cluster, "disks"), "the broker does not say where its replicas are", SLOW)
    disks = [run.cluster.home / "disk-1", run.cluster.home / "disk-2"]
    lost = next(disk for disk in disks if not (disk / "__cluster_metadata-0").exists())
    shutil.rmtree(lost)
    lost.touch()  # no directory can be made anew

    def is_found() -> bool:
        admin.produce("disks", 20)
        return run.find("offlineDirectory", f"{TOPIC}disks") is not None

    wait_until(is_found, "the lost directory is not found", SLOW)
    while (row := run.find("offlineDirectory")) is not None:
        run.execute(row["commands"])
        run.gone("offlineDirectory", row["path"])
    run.note("offlineDirectory", "cured by kafka-reassign-partitions.sh, for each partition")


def quorum(run: Run) -> None:
    row = run.seen("evenVoters")
    can = oneshot.run(run.source, "quorum", "--can-upgrade", "-o", "json")
    if run.cluster.version in STATIC_IS_FINAL:
        assert row["commands"] == [] and "no tool of this release changes the voters" in row["nextStep"]
        assert can.returncode == 1, can.stdout + can.stderr
        run.note("evenVoters", f"static: says: {row['nextStep']}")
        run.note("quorum --can-upgrade", f"no: {can.stdout}")
        line = f"kafka-features.sh --bootstrap-server {run.cluster.node(0).address} upgrade --feature kraft.version=1"
        run.shell.run(line)
        again = oneshot.run(run.source, "quorum", "--can-upgrade", "-o", "json")
        assert again.returncode == 1, "Kafka takes the command, and the quorum stays static"
        return
    assert can.returncode == 0, can.stdout + can.stderr
    (line,) = {row["command"] for row in json.loads(can.stdout)} - {None}
    assert row["commands"] == [line]
    run.execute([line])
    wait_until(lambda: "remove-controller" in run.seen("evenVoters")["commands"][0], "the quorum stays static", SLOW)
    run.note("quorum --can-upgrade", f"yes; done by {line}")
    again = oneshot.run(run.source, "quorum", "--can-upgrade", "-o", "json")
    assert again.returncode == 0, again.stdout
    stale_controllers(run)


def stale_controllers(run: Run) -> None:
    """Of two voters of a dynamic quorum one is removed, and stays registered."""
    row = run.cure("evenVoters")
    removed = int(row["commands"][0].split("--controller-id ")[1].split()[0])
    run.cluster.stop(run.cluster.node(removed))
    run.source = ("-q", next(node.address for node in run.cluster.controllers if node.id != removed))
    stale = run.seen("staleController")
    if run.cluster.version != "4.4.0":
        assert stale["commands"] == [] and stale["nextStep"].startswith("no tool of this release removes it")
        run.note("staleController", f"says: {stale['nextStep']}")
        (reason,) = [row["reason"] for row in run.answer("registrations", "--stale", "--where", "kind == controller")]
        assert stale["nextStep"] in reason
        return
    assert stale["nextStep"] == run.answer("why", f"controller-{removed}")["answer"]["nextStep"]
    run.cure("staleController")


STEPS: list[Callable[[Run], None]] = [
    features, configs, access, a_broker_is_down, placement, a_broker_is_gone, a_disk_is_lost, quorum,
]  # fmt: skip
SOAK = [pytest.mark.soak, pytest.mark.long, pytest.mark.timeout(3600)]


@pytest.mark.parametrize("version", [pytest.param(version, marks=SOAK) for version in BEFORE])
def test_the_printed_commands_cure_what_was_found(version: str) -> None:
    with running(version) as run:
        failures: dict[str, str] = {}
        for step in STEPS:
            try:
                step(run)
            except (AssertionError, TimeoutError, ValueError, KeyError, IndexError) as failed:  # the next may still go
                failures[step.__name__] = f"{type(failed).__name__}: {failed}"[:3000]
                print(f"{version} {step.__name__} FAILED: {failures[step.__name__]}", file=sys.stderr, flush=True)
                for node in run.cluster.nodes:
                    if not node.running:
                        run.cluster.start(node)
        assert not failures, failures


@pytest.mark.parametrize("version", [pytest.param(version, marks=SOAK) for version in ("3.9.2", "4.0.0")])
def test_a_voter_of_a_dynamic_quorum_is_removed(version: str) -> None:
    jars.require(version)
    with Cluster(version, controllers=2, dynamic=True) as cluster:
        stale_controllers(Run(cluster))


def test_a_leader_and_a_registration() -> None:
    """What the whole does for every release, for one and for two findings."""
    jars.require("4.3.1")
    props = ["auto.leader.rebalance.enable=false", "broker.session.timeout.ms=6000"]
    with Cluster("4.3.1", brokers=2, props=props) as cluster:
        run = Run(cluster)
        admin = cluster.admin()
        admin.create_topic("moved", assignment=[[0, 1]])
        run.stop(0)
        run.start(0)
        run.cure("nonPreferredLeader", f"{TOPIC}moved")
        admin.delete_topic("moved")
        run.stop(1)
        assert str(run.cure("staleRegistration")["path"]).endswith("/1")
