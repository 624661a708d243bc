"""What kshell prints as the next step is run as it stands, on a real cluster of each release, and cures the finding.

Where no tool of a release cures it, the step says so, and what it says is done.
"""

from __future__ import annotations

import json
import shlex
import shutil
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.kafka import jars
from tests.kafka.admin import AdminError
from tests.kafka.cluster import Cluster
from tests.kafka.waiting import wait_until
from tests.live import oneshot
from tests.live.planted import SLOW, TOPIC, Run, age_snapshot, edit, pause, resume, set_properties
from tests.live.test_health import are_assigned

pytestmark = pytest.mark.live

BEFORE = {"3.9.2": "3.8.1", "4.0.0": "3.9.2", "4.3.1": "4.2.1", "4.4.0": "4.3.1"}
"""Release -> the one that its cluster comes from."""
STATIC_IS_FINAL = {"3.9.2", "4.0.0"}
"""Releases that cannot make a static quorum a dynamic one."""
LATE, LAST = 3, 3003
"""The broker that is upgraded last, and the controller that is."""
NEEDS_3_9 = {"4.0.0"}
"""Releases whose dynamic quorums need metadata.version 3.9."""
REFUSED = ("returned error UNSUPPORTED_VERSION", "Unsupported metadata version")
"""What a broker says that is too old for what is finalized."""
SNAPSHOT_BYTES = "metadata.log.max.record.bytes.between.snapshots"
BRIEF = "/image/configs/TOPIC:brief"


@contextmanager
def running(version: str) -> Iterator[Run]:
    """Four brokers in three racks, of which one has two disks; four controllers, whose quorum is static.

    They come from an earlier release: one broker runs it still, and one controller has yet to start.
    """
    jars.require(version, BEFORE[version])
    props = ["auto.leader.rebalance.enable=false", "broker.session.timeout.ms=6000"]
    release = BEFORE[version].rpartition(".")[0]
    cluster = Cluster(version, controllers=4, brokers=4, props=props, format_args=["--release-version", release])
    disks = [cluster.home / "disk-1", cluster.home / "disk-2"]
    cluster.node_props[2] = [f"log.dirs={','.join(map(str, disks))}", "log.flush.scheduler.interval.ms=500"]
    cluster.node_versions[LATE] = BEFORE[version]
    cluster.not_started.add(LAST)
    with cluster:
        yield Run(cluster)


def an_upgrade_goes_on(run: Run) -> None:
    mixed = run.says("mixedSoftware", "/image/cluster", "upgrade the nodes that support less (features names them)")
    assert mixed["evidence"].partition(";")[0].endswith(f": broker {LATE}")
    (level,) = run.answer("features", "--where", "feature == metadata.version")
    assert level["inTheWay"] == [f"broker {LATE}"] and level["command"] is None
    assert run.find("featureBehind") is None
    replace(run, LATE, run.cluster.version)
    run.gone("mixedSoftware")
    run.note("mixedSoftware", f"says: {mixed['nextStep']}; done, it is gone")

    absent = f"start controller {LAST}"
    step = f"{absent}; no tool takes it out of a static quorum"
    unregistered = run.says("controllerUnregistered", "/image/cluster/controllers", step)
    behind = run.says("voterBehind", f"/quorum/voters/{LAST}", f"{absent}, or see its log")
    assert run.find("featureBehind") is None, "Kafka raises no level before every voter has registered"
    run.cluster.start(run.cluster.node(LAST))
    run.gone("controllerUnregistered")
    run.gone("voterBehind")
    run.note("controllerUnregistered", f"static: says: {unregistered['nextStep']}; started, it is gone")
    run.note("voterBehind", f"static: says: {behind['nextStep']}; started, it is gone")


def replace(run: Run, broker: int, version: str) -> None:
    """Stop a broker, and start it with the software of a release."""
    run.stop(broker)
    run.cluster.node_versions[broker] = version
    run.start(broker)


def features(run: Run) -> None:
    run.cure("featureBehind")
    raised = []
    while commands := [row["command"] for row in run.answer("features") if raises(row)]:
        run.execute(commands[:1])
        raised += commands[:1]
        assert len(raised) < 20, raised
    run.note("features", "raised by " + "; ".join(raised) if raised else "has nothing to raise")


def raises(row: dict[str, Any]) -> bool:
    """Whether ``features`` names a command for a feature. The voters are another step's."""
    return row["command"] is not None and row["feature"] != "kraft.version"


def an_older_release_comes_back(run: Run) -> None:
    """What is finalized keeps it out: its registration stays that of the newer one."""
    node = run.cluster.node(LATE)
    run.stop(LATE)
    run.cluster.node_versions[LATE] = BEFORE[run.cluster.version]
    said = len(node.log())
    run.cluster.start(node, wait=False)
    wait_until(lambda: any(words in node.log()[said:] for words in REFUSED), "an older release is not refused", SLOW)
    fenced = run.seen("staleRegistration", f"/{LATE}")
    assert run.find("featureUnsupported") is None and run.find("mixedSoftware") is None
    if node.running:
        run.cluster.kill(node)
    run.cluster.node_versions[LATE] = run.cluster.version
    run.start(LATE)
    run.gone("staleRegistration", f"/{LATE}")
    run.note("featureUnsupported", f"cannot come about so: Kafka refuses the broker; found is: {fenced['evidence']}")


def configs(run: Run) -> None:
    admin = run.admin
    admin.create_topic("above", assignment=[[0, 1]], configs={"min.insync.replicas": "3"})
    run.cure("minIsrAboveReplicas", f"{TOPIC}above")
    admin.create_topic("equal", assignment=[[0, 1]], configs={"min.insync.replicas": "2"})
    run.cure("minIsrEqualsReplicas", f"{TOPIC}equal")
    admin.set_config("BROKER", "0", {"leader.replication.throttled.rate": "1000"})
    run.cure("leftOverThrottle", "BROKER:0")
    admin.set_config("TOPIC", "above", {"follower.replication.throttled.replicas": "*"})
    run.cure("leftOverThrottle", "TOPIC:above")


def access(run: Run) -> None:
    admin = run.admin
    admin.acl(("TOPIC", "*"), "User:*", "ALL")
    run.cure("wideOpenAcl")
    admin.acl(("TOPIC", "not there"), "User:o'hara", "READ", host="10.0.0.1")
    run.cure("orphanedAcl")
    with pytest.raises(AdminError, match="Too few iterations"):  # fewer are refused: weakScram comes from before
        admin.scram("alice", "SCRAM-SHA-512", "secret-of-alice", 4095)
    admin.scram("alice", "SCRAM-SHA-512", "secret-of-alice", 4096)
    admin.quota({"user": "ghost"}, "producer_byte_rate", 1000.0)
    run.cure("orphanedQuota")
    run.cure("fewScramIterations")


def a_broker_is_down(run: Run) -> None:
    admin = run.admin
    two = {"min.insync.replicas": "2"}
    admin.create_topic("moved", assignment=[[0, 1, 2]], configs=two)
    admin.create_topic("strict", assignment=[[0, 1]], configs=two)
    admin.create_topic("eligible", assignment=[[0, 1]], configs=two)
    admin.create_topic("wide", assignment=[[0, 1]], configs={"min.insync.replicas": "1"})
    admin.create_topic("dup", assignment=[[1, 0]])
    admin.create_topic("moving", assignment=[[0]])
    run.stop(0)
    admin.reassign("moving", 0, [3])
    fenced = run.seen("brokerFenced")
    assert fenced["commands"] == [] and fenced["nextStep"].startswith("start it")
    moving = run.seen("reassignment", f"{TOPIC}moving")
    (line,) = moving["commands"]
    listed = run.shell.run(line).stdout
    assert "moving-0: " in listed and "adding: 3." in listed, f"{line}: {listed}"
    run.cure("underMinIsr", f"{TOPIC}strict")
    run.cure("atMinIsr", f"{TOPIC}wide")
    run.cure("underReplicated", f"{TOPIC}dup")
    if run.find("elrInUse", f"{TOPIC}eligible") is not None:
        run.cure("elrInUse", f"{TOPIC}eligible")
    else:
        run.note("elrInUse", "cannot come about: eligible.leader.replicas.version is off")
    behind = run.says("observerBehind", "/quorum/observers/0", "see the node's log and its network")
    run.start(0)
    run.gone("brokerFenced")
    run.gone("observerBehind", "/quorum/observers/0")
    run.note("observerBehind", f"says: {behind['nextStep']}; started, it is gone")
    run.gone("reassignment")
    run.admin.delete_topic("moving")
    run.note("reassignment", f"shown by {line}; its replica started, it is gone")
    run.note("brokerFenced", f"says: {fenced['nextStep']}; started, it is gone")
    wait_until(lambda: run.find("underReplicated") is None, "replicas do not catch up", SLOW)
    run.cure("nonPreferredLeader", f"{TOPIC}moved")


def a_broker_shuts_down(run: Run) -> None:
    """It waits until all brokers know of it, and one of them is held up."""
    node = run.cluster.node(2)
    run.admin.create_topic("led", assignment=[[2, 1]])
    pause(run.cluster.node(LATE))
    assert node.process
    node.process.terminate()
    stopping = run.seen("brokerShuttingDown", "/2")
    questions = stopping["nextStep"].split("`")[1::2]
    resume(run.cluster.node(LATE))
    assert stopping["commands"] == [] and questions
    for question in questions:
        asked = oneshot.run(run.source, *shlex.split(question))
        assert asked.returncode == 0, f"{question}: {asked.stderr}"
    run.cluster.stop(node)
    run.gone("brokerShuttingDown")
    run.admin.delete_topic("led")
    run.start(2)
    run.note("brokerShuttingDown", f"says: {stopping['nextStep']}; waited, it is gone")


def placement(run: Run) -> None:
    admin = run.admin
    admin.create_topic("alone", assignment=[[0], [1]])
    run.cure("singleReplica", f"{TOPIC}alone")
    admin.delete_topic("alone")
    admin.create_topic("near", assignment=[[0, 3]])
    run.cure("rackViolation", f"{TOPIC}near")


def a_broker_is_gone(run: Run) -> None:
    admin = run.admin
    admin.create_topic("stuck", assignment=[[0, 1]])
    run.stop(3)
    admin.reassign("stuck", 0, [3, 1])
    run.cure("stuckReassignment", f"{TOPIC}stuck")
    (stale,) = run.answer("registrations", "--stale", "--where", "kind == broker")
    assert stale["reason"].endswith(run.seen("staleRegistration", "/3")["nextStep"])
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
    admin = run.admin
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


def no_leader(run: Run) -> None:
    """Two of four voters are gone: the others elect nobody."""
    gone = run.cluster.controllers[:2]
    for node in gone:
        run.cluster.kill(node)
    waiting = ("-X", "default.api.timeout.ms=8000", "-X", "request.timeout.ms=4000")
    by_controllers = ("-q", run.cluster.bootstrap_controllers, *waiting)
    by_brokers = ("-b", run.cluster.bootstrap_servers, *waiting)
    for source in (by_controllers, by_brokers):
        row = run.seen("noLeader", source=source)
        assert row["commands"] == [] and row["nextStep"].startswith("start controllers until most voters are up")
    for node in gone:
        run.cluster.start(node)
    for source in (by_controllers, by_brokers):
        run.gone("noLeader", source=source)
    run.note("noLeader", f"says: {row['nextStep']}; started, it is gone")


def quorum(run: Run) -> None:
    row = run.seen("evenVoters")
    can = oneshot.run(run.source, "quorum", "--can-upgrade", "-o", "json")
    if run.cluster.version in STATIC_IS_FINAL:
        assert row["commands"] == [] and "no tool of this release changes the voters" in row["nextStep"]
        assert can.returncode == 1, can.stdout + can.stderr
        run.note("evenVoters", f"static: says: {row['nextStep']}")
        (software,) = [row for row in json.loads(can.stdout) if row["requirement"] == "software"]
        run.note("quorum --can-upgrade", f"no: {software['nextStep']}")
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
    run.cure("evenVoters")


# --- a dynamic quorum, and what is in files --------------------------------------------------------------------------


@contextmanager
def dynamic(version: str) -> Iterator[Run]:
    """Four voters, of which one was never started; controllers never take snapshots, and broker 1 does so often."""
    jars.require(version)
    props = ["auto.leader.rebalance.enable=false", "broker.session.timeout.ms=6000"]
    args = [] if version in NEEDS_3_9 else ["--release-version", "3.8"]
    cluster = Cluster(version, controllers=4, brokers=2, dynamic=True, sasl=True, props=props, format_args=args)
    cluster.node_props = {node.id: [f"{SNAPSHOT_BYTES}=1000000000"] for node in cluster.controllers}
    cluster.node_props[1] = [f"{SNAPSHOT_BYTES}=6000"]
    cluster.not_started.add(LAST)
    with cluster:
        yield Run(cluster)


def voters(run: Run) -> None:
    row = run.cure("controllerUnregistered")
    assert f"remove-controller --controller-id {LAST}" in row["commands"][0]
    run.gone("voterBehind")
    assert run.find("evenVoters") is None

    leader = run.cluster.leader()
    follower = next(node for node in run.cluster.controllers if node.running and node is not leader)
    run.cluster.kill(follower)
    behind = run.seen("voterBehind", f"/{follower.id}")
    assert behind["nextStep"].startswith(f"start controller {follower.id}, or see its log")
    run.cluster.start(follower)
    run.gone("voterBehind")
    run.cluster.kill(follower)
    run.cure("voterBehind", f"/{follower.id}")
    removed = int(run.cure("evenVoters")["commands"][0].split("--controller-id ")[1].split()[0])
    run.cluster.stop(run.cluster.node(removed))
    run.source = ("-q", run.cluster.leader().address)


def stale_controllers(run: Run) -> None:
    """Those that are no voters any more stay registered."""
    gone = [node.id for node in run.cluster.controllers if node.process and not node.running]
    assert len(gone) == 2
    for removed in gone:
        stale = run.seen("staleController", f"/{removed}")
        assert stale["nextStep"] == run.answer("why", f"controller-{removed}")["answer"]["nextStep"]
        (row,) = run.answer("registrations", "--stale", "--where", f"kind == controller and id == {removed}")
        assert stale["nextStep"] in row["reason"]
        if run.cluster.version == "4.4.0":  # the first with metadata.version, which has to be raised before
            run.cure("staleController", f"/{removed}")
        else:
            assert stale["commands"] == [] and stale["nextStep"].startswith("no tool of this release removes it")
            run.note("staleController", f"says: {stale['nextStep']}")


def tokens(run: Run) -> None:
    """One that is not removed for an hour, as it is by default."""
    alice = run.cluster.admin("alice")
    hmac = alice.create_token()["hmac"]
    wait_until(lambda: bool(run.answer("tokens")), "the token is not there", SLOW)
    alice.expire_token(hmac, 1000)
    row = run.seen("expiredToken")
    file = run.cluster.home / "alice.properties"
    (line,) = row["commands"]
    assert "--command-config FILE " in line
    shutil.copyfile(run.cluster.home / "admin-1.properties", file)
    run.execute([line.replace("FILE", str(file))])
    assert len(run.answer("tokens")) == 2
    run.note("expiredToken", f"a new one by {line}")


def unsupported(run: Run) -> None:
    """The registration of a broker says what no release lets it: that it does not support what is finalized."""
    leader = run.cluster.leader()
    broker = run.cluster.node(1)
    (row,) = run.answer("features", "--where", "feature == metadata.version")
    low, high = row["nodes"]["broker 1"]["min"], row["nodes"]["broker 1"]["max"]
    name, port = b"metadata.version", b"127.0.0.1" + struct.pack(">H", broker.port)
    run.cluster.stop(leader)
    edit(leader, port, name + struct.pack(">hh", low, high), name + struct.pack(">hh", low, row["level"] - 1))
    run.cluster.start(leader)
    finding = run.says("featureUnsupported", "/image/features", "upgrade that node's software")
    assert "broker 1 supports" in finding["evidence"]
    run.cluster.stop(broker)
    run.start(1)
    run.gone("featureUnsupported")
    run.note("featureUnsupported", f"says: {finding['nextStep']}; it registers anew, and it is gone")


def snapshots(run: Run) -> None:
    """A controller that takes no snapshots, and one whose snapshot is old."""
    leader = run.cluster.leader()
    admin = run.admin
    assert run.find("noSnapshotYet") is None, "the leader of a running quorum is known to have lost none"
    young = run.seen("noSnapshotYet", source=leader.logs)
    grow(run, 65)
    for source in (run.source, leader.logs):
        row = run.seen("noSnapshot", source=source)
        assert row["commands"] == [] and row["nextStep"].startswith("see the server's log for SnapshotGenerator")
    admin.scram("weak", "SCRAM-SHA-256", "secret-of-weak")
    run.cluster.stop(leader)
    edit(leader, b"weak", struct.pack(">i", 4096), struct.pack(">i", 1000))
    set_properties(leader, f"{SNAPSHOT_BYTES}=100000", "delegation.token.expiry.check.interval.ms=1000")
    run.cluster.start(leader)
    grow(run, 0.3)
    for source in (run.source, leader.logs):
        run.gone("noSnapshot", source=source)
        run.gone("noSnapshotYet", source=source)
    run.note("noSnapshot", f"says: {row['nextStep']}; with other properties, it is gone")
    run.note("noSnapshotYet", f"says: {young['nextStep']}; with the first snapshot, it is gone")
    run.cure("weakScram")
    run.gone("expiredToken")
    run.note("expiredToken", "and the controller has removed the old one")

    run.cluster.stop(leader)
    age_snapshot(leader, 7 * 3600_000)
    run.cluster.start(leader)
    for source in (run.source, leader.logs):
        row = run.seen("oldSnapshot", source=source)
        assert row["commands"] == [] and row["nextStep"].startswith("see the server's log for SnapshotGenerator")
    grow(run, 0.3)
    for source in (run.source, leader.logs):
        run.gone("oldSnapshot", source=source)
    run.note("oldSnapshot", f"says: {row['nextStep']}; when it wrote one, it is gone")


def grow(run: Run, megabytes: float) -> None:
    """Write so much of the log: a config that takes any text of up to 32 KB, of many resources with one request."""
    count = 80 if megabytes > 1 else 1
    for _ in range(round(megabytes / count / 0.03)):
        text = f"{time.monotonic_ns():030000}"
        run.admin.set_configs("CLIENT_METRICS", {f"large-{number}": {"metrics": text} for number in range(count)})


def slips(run: Run) -> None:
    """Broker 1 is away while a topic comes and goes, and keeps its configs."""
    leader = run.cluster.leader()
    broker = run.cluster.node(1)
    leak(run)
    row = run.seen("snapshotDisagrees", source=broker.logs)
    assert row["path"] == f"{BRIEF}/retention.ms" and row["commands"] == []
    assert "move its __cluster_metadata-0 away and start it" in row["nextStep"]
    assert run.find("snapshotDisagrees", source=leader.logs) is None
    compared = oneshot.run(broker.logs, "diff", str(broker.logs), str(leader.logs))
    assert BRIEF in compared.stdout, compared
    run.stop(1)
    broker.metadata.rename(run.cluster.home / "moved")
    run.start(1)
    run.gone("snapshotDisagrees", source=broker.logs)
    assert run.find("orphanedConfig", source=broker.logs) is None
    run.note("snapshotDisagrees", f"says: {row['nextStep']}; done, it is gone")

    leak(run)
    run.cure("orphanedConfig", BRIEF, source=broker.logs)


def leak(run: Run) -> None:
    """Have broker 1 write a snapshot with the configs of a topic that is gone."""
    admin = run.admin
    broker = run.cluster.node(1)
    run.cluster.kill(broker)
    wait_until(lambda: run.broker(1)["fenced"], "broker 1 is not fenced", SLOW)
    admin.create_topic("brief", assignment=[[0]], configs={"retention.ms": "7"})
    admin.delete_topic("brief")
    run.start(1)

    def is_written() -> bool:
        grow(run, 0.03)
        return run.find("orphanedConfig", source=broker.logs) is not None

    wait_until(is_written, "the configs of a topic that is gone are in no snapshot", SLOW)


SOAK = [pytest.mark.soak, pytest.mark.long, pytest.mark.timeout(3600)]
VERSIONS = [pytest.param(version, marks=SOAK) for version in BEFORE]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_printed_commands_cure_what_was_found(version: str) -> None:
    with running(version) as run:
        run.carry_out(
            [
                an_upgrade_goes_on, features, an_older_release_comes_back, configs, access, a_broker_is_down,
                a_broker_shuts_down, placement, a_broker_is_gone, a_disk_is_lost, no_leader,
                quorum,
            ]
        )  # fmt: skip


@pytest.mark.parametrize("version", VERSIONS)
def test_voters_snapshots_and_tokens(version: str) -> None:
    with dynamic(version) as run:
        run.carry_out([tokens, voters, slips, stale_controllers, unsupported, snapshots])


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
        run.gone("underReplicated", f"{TOPIC}moved")  # unfenced, broker 0 is not in sync yet: it cannot lead
        run.cure("nonPreferredLeader", f"{TOPIC}moved")
        admin.delete_topic("moved")
        run.stop(1)
        assert str(run.cure("staleRegistration")["path"]).endswith("/1")
