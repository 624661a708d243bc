"""Who leads a partition that has no leader: by Kafka's own class, and on real clusters by the steps of ``health``."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Sequence
from typing import Any

import pytest

from kshell.metadata.election import ACTIVE, FENCED, PREFERRED, UNCLEAN, ElectionCase
from kshell.metadata.failover import ONLINE_ELECTION, after_crashes
from kshell.metadata.partitions import Partition
from kshell.protocol.primitives import Uuid
from tests.kafka import jars
from tests.kafka.admin import AdminError
from tests.kafka.cluster import Cluster
from tests.kafka.waiting import wait_until
from tests.live import oneshot

pytestmark = pytest.mark.live

CASES = 6_000


def case(rng: random.Random) -> ElectionCase:
    """A partition without a leader. Its ELR and its last leader may be no replicas any more, as after reassignments."""
    brokers = [1, 2, 3, 4]
    replicas = rng.sample(brokers, rng.randint(1, 3))
    isr = rng.sample(replicas, rng.choice((0, 0, 0, 1, len(replicas))))
    elr = rng.sample([broker for broker in brokers if broker not in isr], rng.choice((0, 0, 1, 2)) if not isr else 0)
    last = rng.sample(replicas, min(len(replicas), rng.choice((0, 1, 1, 2))))
    active = rng.sample(brokers, rng.randint(0, 4))
    partition = Partition(
        tuple(replicas), (Uuid(bytes(16)),) * len(replicas), tuple(isr), (), (), tuple(elr), tuple(last), -1,
        "RECOVERED", 1, 1,
    )  # fmt: skip
    statuses = {broker: ACTIVE if broker in active else FENCED for broker in brokers}
    return ElectionCase(partition, statuses, has_elr=rng.random() < 0.7)


def line(asked: ElectionCase, kind: str, least: int, isr: Sequence[int] | None = None) -> str:
    """A case as ``Elections.java`` reads it; ``isr`` is what it becomes, if it does."""
    value = asked.partition
    active = [broker for broker, status in asked.statuses.items() if status == ACTIVE]
    lists = (value.replicas, value.isr, value.elr, value.last_known_elr, active)
    return "\t".join(
        (*map(numbers, lists), str(asked.has_elr).lower(), str(least), kind.upper(), str(value.leader),
         numbers(value.isr if isr is None else isr))
    )  # fmt: skip


def numbers(brokers: Sequence[int]) -> str:
    """Broker ids as ``Elections.java`` reads and writes them."""
    return ",".join(map(str, brokers))


def kafkas(lines: Sequence[str]) -> list[str]:
    """What Kafka's class makes of the cases."""
    command = jars.java(jars.classes(jars.LATEST, "Elections"), "Elections")
    done = subprocess.run(command, input="".join(f"{one}\n" for one in lines).encode(), capture_output=True, check=True)
    answers = done.stdout.decode().splitlines()
    assert len(answers) == len(lines)
    return answers


def test_elections_are_those_of_kafkas_own_class() -> None:
    """``PartitionChangeBuilder``, which the controller asks whenever a broker comes up and on every request."""
    rng = random.Random(23)
    asked = [(case(rng), rng.choice((PREFERRED, UNCLEAN)), rng.randint(1, 3)) for _ in range(CASES)]
    answers = ["\t".join(answer.split("\t")[:2]) for answer in kafkas([line(*one) for one in asked])]
    differ = []
    for (one, kind, least), answer in zip(asked, answers, strict=True):
        leader = one.elect(kind)
        expected = "-1\tclean" if leader is None else f"{leader.id}\t{'clean' if leader.is_clean else 'unclean'}"
        if answer != expected:
            differ.append((line(one, kind, least), expected, answer))
    assert not differ, f"{len(differ)} of {CASES} differ, such as {differ[:3]}"
    assert {answer.split("\t")[1] for answer in answers} == {"clean", "unclean"}
    assert sum(answer.startswith("-1") for answer in answers) > CASES // 10


def test_what_a_crash_makes_of_a_partition_is_what_kafkas_own_class_makes_of_it() -> None:
    """Leader, ISR, ELR and last known leader: of any state that Kafka can hold, led or not."""
    rng = random.Random(29)
    asked: list[tuple[ElectionCase, int, int]] = []
    while len(asked) < CASES:
        one, least = case(rng), rng.randint(1, 3)
        isr = tuple(rng.sample(one.partition.replicas, rng.randint(1, len(one.partition.replicas))))
        others = [broker for broker in (1, 2, 3, 4) if broker not in isr]
        elr = tuple(rng.sample(others, min(len(others), rng.choice((0, 1, 2)))))
        victim = rng.choice(isr)
        led = rng.random() < 0.9
        leader = rng.choice([victim, *isr]) if led else -1
        active = {*isr, *elr} if rng.random() < 0.7 else set(rng.sample((1, 2, 3, 4), rng.randint(0, 4)))
        value = one.partition._replace(
            isr=isr, elr=elr if one.has_elr else (), last_known_elr=one.partition.last_known_elr if not led else (),
            leader=leader,
        )  # fmt: skip
        statuses = {broker: ACTIVE if broker in {*active, victim} else FENCED for broker in (1, 2, 3, 4)}
        asked.append(
            (one._replace(partition=value, statuses=statuses, elects_unclean=rng.random() < 0.3), victim, least)
        )
    given = []
    for one, victim, least in asked:
        without = one._replace(statuses={**one.statuses, victim: FENCED})
        isr = tuple(member for member in one.isr if member != victim)
        kind = UNCLEAN if one.elects_unclean else ONLINE_ELECTION
        given.append(line(without, kind, min(least, len(one.partition.replicas)), isr))
    differ = []
    for (one, victim, least), said, answer in zip(asked, given, kafkas(given), strict=True):
        after, is_clean = after_crashes(one, [victim], least)
        clean = "clean" if is_clean else "unclean"
        expected = [str(after.leader), clean, *map(numbers, (after.isr, after.elr, after.last_known_elr))]
        found = answer.split("\t")
        found[3] = ",".join(sorted(found[3].split(",")))  # Kafka's ELR is a set
        if found != expected:
            differ.append((said, expected, found))
    assert not differ, f"{len(differ)} of {CASES} differ, such as {differ[:3]}"


class Scene:
    """A cluster whose partitions lose their leaders, and what ``health`` and ``why`` say of them."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.admin = cluster.admin()
        self._where = ("-q", cluster.bootstrap_controllers)

    def steps(self) -> dict[str, str]:
        """Topic -> the next step of its only partition, of all that are offline."""
        done = oneshot.run(self._where, "health", "-o", "json", "--where", "finding == offlinePartition")
        return {row["path"].split("/")[-2]: row["nextStep"] for row in json.loads(done.stdout)}

    def step(self, topic: str) -> str:
        """The next step of a topic's only partition; ``health`` and ``why`` agree on it."""
        step = self.steps()[topic]
        assert step.startswith(self.answer(topic)["nextStep"])
        return step

    def answer(self, topic: str) -> dict[str, str]:
        """What ``why`` says of a topic's only partition."""
        done = oneshot.run(self._where, "why", f"{topic}-0", "-o", "json")
        answer: dict[str, str] = json.loads(done.stdout)["answer"]
        return answer

    def partition(self, topic: str) -> dict[str, Any]:
        """Its leader, ISR, ELR and more, as the controller has it."""
        done = oneshot.run(self._where, "cat", f"/image/topics/byName/{topic}/0", "-o", "json")
        return dict(json.loads(done.stdout))

    def wait_for(self, topic: str, **expected: Any) -> None:
        """Wait until the controller has such a partition."""

        def is_so() -> bool:
            value = self.partition(topic)
            return all(value[name] == wanted for name, wanted in expected.items())

        wait_until(is_so, f"{topic}: {expected}, but {self.partition(topic)}", 60)

    def refuses(self, topic: str, kind: str) -> bool:
        """Whether Kafka has nobody to elect."""
        try:
            self.admin.elect(topic, 0, kind)
        except AdminError as error:
            return "LeadersNotAvailable" in str(error) or "LeaderNotAvailable" in str(error)
        return False


SOON = ["broker.session.timeout.ms=3000", "unclean.leader.election.interval.ms=1000"]


def test_the_steps_for_partitions_with_eligible_leader_replicas() -> None:
    """Brokers 1 and 2 stop, 1 in the orderly way and 2 by a crash, and come back; broker 0 stays."""
    jars.require(jars.LATEST)
    with Cluster(jars.LATEST, brokers=3, props=SOON) as cluster:
        scene, admin = Scene(cluster), cluster.admin()
        admin.create_topic("solo", assignment=[[2]])
        admin.create_topic("back", assignment=[[2]])
        admin.create_topic("pair", assignment=[[2, 1]], configs={"min.insync.replicas": "2"})
        admin.create_topic("left", assignment=[[2, 1]], configs={"min.insync.replicas": "2"})

        cluster.stop(cluster.node(1))
        scene.wait_for("left", isr=[2], elr=[1])
        admin.reassign("left", 0, [2])
        scene.wait_for("left", replicas=[2], elr=[1])
        cluster.kill(cluster.node(2))
        scene.wait_for("pair", leader=-1)
        scene.wait_for("solo", leader=-1, elr=[2])
        assert scene.step("solo").startswith("start broker 2 ")
        assert scene.step("pair").startswith("start brokers 2 and 1 ")
        assert scene.step("left").startswith("start broker 2 ")
        assert "start broker 1" not in scene.step("left")
        assert all(scene.refuses(topic, kind) for topic in ("pair", "left") for kind in ("PREFERRED", "UNCLEAN"))

        cluster.start(cluster.node(1))  # it has all records of `pair`, and is no replica of `left` any more
        scene.wait_for("pair", leader=1, leaderRecoveryState="RECOVERED")
        assert scene.step("left").startswith("start broker 2 ")

        cluster.start(cluster.node(2))  # it crashed: it leaves the ELR, and leads where that is then empty
        scene.wait_for("solo", leader=2, leaderRecoveryState="RECOVERING")
        scene.wait_for("left", leader=-1, elr=[1])
        cluster.wait_for_brokers({0, 1, 2})
        step = scene.step("left")
        assert "broker 1 is in the ELR but no replica any more" in step and "start" not in step
        assert (
            "an unclean election makes broker 2 the leader" in step and " --election-type unclean --topic left " in step
        )
        assert scene.refuses("left", "PREFERRED")
        admin.elect("left", 0, "UNCLEAN")
        scene.wait_for("left", leader=2)

        cluster.kill(cluster.node(2))  # and for `solo` it never comes back
        scene.wait_for("solo", leader=-1)
        assert "no other replica exists" in scene.answer("solo")["lastResort"]
        assert scene.refuses("solo", "UNCLEAN")
        admin.reassign("solo", 0, [0])
        scene.wait_for("solo", replicas=[0, 2])
        assert (
            "makes broker 0 (which a reassignment adds: it may be empty) the leader"
            in scene.answer("solo")["lastResort"]
        )
        admin.elect("solo", 0, "UNCLEAN")
        scene.wait_for("solo", leader=0)
        assert scene.steps().keys() == {"back", "left"}

        admin.unregister_broker(2)
        wait_until(lambda: "which is not registered" in scene.step("back"), "broker 2 is still registered")
        assert "it leaves the ELR when it registers, and then Kafka elects it as the last leader" in scene.step("back")
        cluster.start(cluster.node(2))
        scene.wait_for("back", leader=2, leaderRecoveryState="RECOVERING")
        assert scene.steps() == {}


def test_the_steps_where_only_the_isr_counts() -> None:
    """A release without the ELR: the last in-sync replica is waited for, or the config gives its records up."""
    jars.require("3.9.2")
    with Cluster("3.9.2", brokers=3, props=SOON) as cluster:
        scene, admin = Scene(cluster), cluster.admin()
        admin.create_topic("kept", assignment=[[1, 2]])
        admin.create_topic("lossy", assignment=[[1, 2]])
        cluster.kill(cluster.node(1))
        scene.wait_for("kept", leader=2, isr=[2])
        scene.wait_for("lossy", leader=2, isr=[2])
        cluster.kill(cluster.node(2))
        scene.wait_for("lossy", leader=-1, isr=[2])
        cluster.start(cluster.node(1))
        cluster.wait_for_brokers({0, 1})
        step = scene.step("kept")
        assert step.startswith("start broker 2 ") and "broker 1" not in step
        assert "makes broker 1 the leader" in scene.answer("kept")["lastResort"]
        assert scene.refuses("kept", "PREFERRED")

        admin.set_config("TOPIC", "lossy", {"unclean.leader.election.enable": "true"})
        scene.wait_for("lossy", leader=1, leaderRecoveryState="RECOVERING")  # as `health` warns where the config is set
        cluster.start(cluster.node(2))
        scene.wait_for("kept", leader=2, leaderRecoveryState="RECOVERED")
        assert scene.steps() == {}
