"""``what-if`` against real crashes and unclean elections: brokers are killed, and elections held, as the questions say,
and the controller's image must agree.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from typing import Any

import pytest

from tests.commands.shell import opened, rows
from tests.kafka import jars
from tests.kafka.admin import AdminError
from tests.kafka.cluster import Cluster
from tests.kafka.waiting import wait_until
from tests.live import oneshot

pytestmark = pytest.mark.live

CASES = int(os.environ.get("KSHELL_LIVE_CRASHES", "20"))
SOON = [
    "broker.session.timeout.ms=3000",
    "broker.heartbeat.interval.ms=500",
    "unclean.leader.election.interval.ms=1000",
    "auto.leader.rebalance.enable=false",
]
BROKERS = (0, 1, 2)
ELECTIONS = 2
"""How many partitions without a leader get an unclean election after each case, at the most."""
QUIET = 2.0
"""Seconds without a change after which a cluster is taken to be at rest."""


class Scene:
    """A cluster whose brokers crash and come back at random, and its image."""

    def __init__(self, cluster: Cluster, rng: random.Random) -> None:
        self.cluster = cluster
        self.rng = rng
        self.controller = cluster.controllers[0].metadata

    def create_topics(self) -> None:
        """Every mixture of replicas, min ISR and whether data may be given up."""
        with self.cluster.admin() as admin:
            for factor in (2, 3):
                for least in (1, 2):
                    for unclean in ("false", "true"):
                        assignment = [self.rng.sample(BROKERS, factor) for _ in range(3)]
                        configs = {"min.insync.replicas": str(least), "unclean.leader.election.enable": unclean}
                        admin.create_topic(f"t{factor}{least}{unclean}", assignment=assignment, configs=configs)

    def partitions(self) -> list[dict[str, Any]]:
        """The partitions in the controller's log."""
        return rows(opened(self.controller), "partitions")

    def fenced(self) -> set[int]:
        """The brokers that the controller has fenced."""
        return {row["id"] for row in rows(opened(self.controller), "brokers") if row["fenced"]}

    def rest(self) -> None:
        """Wait until the brokers that run have caught up wherever somebody leads, and nothing changes any more."""
        last, since = self.partitions(), time.monotonic()
        running = {node.id for node in self.cluster.brokers if node.running}

        def at_rest() -> bool:
            nonlocal last, since
            now = self.partitions()
            if now != last:
                last, since = now, time.monotonic()
            caught_up = all(
                row["leader"] < 0 or running.intersection(row["replicas"]) <= set(row["isr"]) for row in now
            )
            leads = all(row["leader"] >= 0 or not self._electable(row, running) for row in now)
            return caught_up and leads and time.monotonic() - since > QUIET

        wait_until(at_rest, f"the cluster does not come to rest: {last}", 60)

    def _electable(self, row: dict[str, Any], running: set[int]) -> bool:
        """Whether the controller is about to give up data for the sake of a leader."""
        return "true" in row["topic"] and not running.isdisjoint(row["replicas"])

    def crash(self, victims: list[int]) -> None:
        """Kill the brokers one after another, each when the one before it is fenced."""
        for victim in victims:
            self.cluster.kill(self.cluster.node(victim))
            wait_until(lambda broker=victim: broker in self.fenced(), f"broker {victim} is not fenced", 30)  # type: ignore[misc]

    def come_back(self, brokers: list[int]) -> None:
        """Start brokers, and wait until the cluster is at rest."""
        for broker in brokers:
            self.cluster.start(self.cluster.node(broker), wait=False)
        for broker in brokers:
            self.cluster.wait_up(self.cluster.node(broker))
        wait_until(lambda: self.fenced().isdisjoint(brokers), f"brokers {brokers} stay fenced", 60)
        self.rest()

    def ask(self, *words: str, of_brokers: bool = False) -> list[dict[str, Any]]:
        """The rows of a question to the controller, or to the brokers."""
        source = ("-b", self.cluster.bootstrap_servers) if of_brokers else ("-q", self.cluster.bootstrap_controllers)
        done = oneshot.run(source, *words, "-o", "json")
        assert done.returncode in (0, 1), done.stderr
        answer: list[dict[str, Any]] = json.loads(done.stdout)
        return answer

    def elect(self) -> Counter[str]:
        """Ask for an unclean election of a few partitions, and hold it; count what it came to."""
        seen: Counter[str] = Counter()
        leaderless = [row for row in self.partitions() if row["leader"] < 0]
        chosen = self.rng.sample(leaderless, min(len(leaderless), ELECTIONS))
        with self.cluster.admin() as admin:
            for row in chosen:
                name = f"{row['topic']}-{row['partition']}"
                (then,) = self.ask("what-if", "--unclean", name)
                try:
                    admin.elect(row["topic"], row["partition"], "UNCLEAN")
                except AdminError as error:
                    assert "NotAvailable" in str(error)
                    assert then["leaderAfter"] == -1, f"{then}, but {error}"
                now = self.next_state(name, row["partitionEpoch"]) if then["leaderAfter"] >= 0 else row
                assert fields(then) == real(now), f"{row} was to be {then}, but is {now}"
                seen[then["what"]] += 1
        return seen

    def next_state(self, partition: str, epoch: int) -> dict[str, Any]:
        """What a partition was right after that epoch, before others joined its ISR."""
        done = oneshot.run(("-q", self.cluster.bootstrap_controllers), "why", partition, "-o", "json")
        events: list[dict[str, Any]] = json.loads(done.stdout)["events"]
        return next(event for event in events if event["partitionEpoch"] == epoch + 1)


def fields(then: dict[str, Any]) -> tuple[Any, ...]:
    """What is foreseen of a partition."""
    return then["leaderAfter"], sorted(then["isrAfter"]), sorted(then["elrAfter"])


def real(now: dict[str, Any]) -> tuple[Any, ...]:
    """The same of one that is there."""
    return now["leader"], sorted(now["isr"]), sorted(now["elr"])


@pytest.mark.parametrize("elr", [1, 0], ids=["with the ELR", "without the ELR"])
def test_what_is_foreseen_is_what_happens(elr: int) -> None:
    """Leaders, ISR, ELR and states of all partitions, from whatever the crashes and returns before have left."""
    jars.require(jars.LATEST)
    rng = random.Random(5 + elr)
    seen: Counter[str] = Counter()
    elected: Counter[str] = Counter()
    format_args = ["--feature", f"eligible.leader.replicas.version={elr}"]
    with Cluster(jars.LATEST, brokers=len(BROKERS), props=SOON, format_args=format_args) as cluster:
        scene = Scene(cluster, rng)
        scene.create_topics()
        scene.rest()
        for number in range((CASES + 1) // 2):
            running = [node.id for node in cluster.brokers if node.running]
            victims = rng.sample(running, rng.choice([count for count in (1, 1, 2, 2, 3) if count <= len(running)]))
            question = ("what-if", "--kill", ",".join(map(str, victims)), "--all")
            foreseen = scene.ask(*question)
            if number == 0:
                assert foreseen == scene.ask(*question, of_brokers=True)
            before = scene.partitions()
            scene.crash(victims)
            happened = scene.ask("partitions")
            seen.update(row["what"] for row in foreseen)
            assert len(foreseen) == len(happened)
            for then, now, was in zip(foreseen, happened, before, strict=True):
                case = f"case {number}, killed {victims}: {was} was to be {then}, but is {now}"
                assert fields(then) == real(now) and then["stateAfter"] == now["state"], case
            dead = [node.id for node in cluster.brokers if not node.running]
            scene.come_back(rng.sample(dead, rng.randint(1, len(dead))))
            elected += scene.elect()
    print(f"\nforeseen: {dict(seen)}; elections: {dict(elected)}")
    assert seen["offline"] and seen["no-worse"]
    if CASES >= 20:
        assert set(seen) == {"offline", "under-min-isr", "leader-moves", "no-worse"}, seen
        assert elected["unclean-election"], elected
