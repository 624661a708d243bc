"""health: every finding where it was planted, none where nothing is wrong."""

from __future__ import annotations

import html
import json
import re
import shlex
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from kshell.engine.predicates import exit_code_of
from kshell.engine.result import Report, Rows, Section, StyledText, Text
from kshell.engine.session import Session
from kshell.errors import EXIT_SOURCE, NoLeaderError, UsageError
from kshell.metadata.health.check import LEVELS, checks
from kshell.metadata.next_steps import next_step
from kshell.metadata.partition_state import LOST, UNASSIGNED
from kshell.protocol.batches import write_batch
from kshell.protocol.primitives import ZERO_UUID, Uuid
from kshell.render import render
from kshell.sources.brokers.source import BrokerSource
from kshell.sources.quorum.source import QuorumSource
from tests import builders
from tests.builders import Pair, uuid, value
from tests.commands.healthy import (
    FEATURES,
    HOUR,
    ORDERS,
    acl,
    broker,
    config,
    controller,
    partition,
    quota,
    records,
    scram,
    token,
    write,
)
from tests.commands.shell import FORMATS, lines, opened, rows, run
from tests.server import Quorum, faults, settings

ORDERS_0 = "/image/topics/byName/orders/0"


class Planted(NamedTuple):
    """Records after the healthy ones (or how the directory differs), and where the finding is to be."""

    path: str
    records: tuple[bytes, ...] = ()
    how: dict[str, Any] = {}  # noqa: RUF012  # never changed
    evidence: str = ""


def changed(**more: Any) -> bytes:
    """A change of orders/0."""
    return value("PARTITION_CHANGE", 2, partitionId=0, topicId=ORDERS, **more)


def older(number: int, top: int = 29) -> bytes:
    """A broker whose software is older than the others'."""
    return broker(number, features=[FEATURES[0] | {"maxSupportedVersion": top}, FEATURES[1]])


def jbod(number: int, *directories: int) -> bytes:
    """A broker that tells its log directories."""
    point = {"name": "B", "host": "h", "port": 9092, "securityProtocol": 0}
    return value("REGISTER_BROKER", 3, brokerId=number, incarnationId=uuid(number), endPoints=[point],
                 rack=f"rack-{number}", fenced=False, brokerEpoch=number, features=FEATURES,
                 logDirs=[uuid(one) for one in directories])  # fmt: skip


def level(number: int) -> bytes:
    """Another metadata.version."""
    return value("FEATURE_LEVEL", name="metadata.version", featureLevel=number)


def moving(*, to: int) -> bytes:
    """orders/0 on its way to a broker."""
    return changed(replicas=[1, 2, 3, to], addingReplicas=[to], directories=[uuid(7)] * 4)


def lone(name: str, replicas: tuple[int, ...], *more: bytes) -> tuple[bytes, ...]:
    """A new topic with one partition."""
    return value("TOPIC", name=name, topicId=uuid(200)), partition(0, 200, replicas), *more


BROKER_2 = "/image/cluster/brokers/2"
PLANTED: dict[str, Planted] = {
    "offlinePartition": Planted(ORDERS_0, (changed(leader=-1, isr=[1]),), evidence="leader none, isr 1 of"),
    "underMinIsr": Planted(ORDERS_0, (changed(isr=[1]),), evidence="isr 1 of replicas 1,2,3, min.insync.replicas 2"),
    "uncleanRecovery": Planted(ORDERS_0, (changed(isr=[2], leader=2, leaderRecoveryState=1),), evidence="RECOVERING"),
    "offlineDirectory": Planted(
        ORDERS_0,
        (jbod(2, 8, 9), changed(directories=[uuid(7), uuid(77), uuid(7)])),
        evidence=f"broker 2 has no directory {uuid(77)}; isr 1,2,3 of replicas 1,2,3",
    ),
    "atMinIsr": Planted(ORDERS_0, (changed(isr=[1, 2]),), evidence="isr 1,2 of replicas 1,2,3"),
    "underReplicated": Planted(ORDERS_0, (changed(isr=[1, 3]),), evidence="isr 1,3"),
    "elrInUse": Planted(ORDERS_0, (changed(isr=[1], eligibleLeaderReplicas=[2]),), evidence="elr 2"),
    "nonPreferredLeader": Planted(ORDERS_0, (changed(leader=2),), evidence="leader 2, replicas 1,2,3"),
    "stuckReassignment": Planted(
        ORDERS_0, (moving(to=9),), evidence="broker 9 is not registered; adding 9, removing none"
    ),
    "reassignment": Planted(ORDERS_0, (broker(4), moving(to=4)), evidence="adding 4"),
    "unregisteredReplica": Planted(
        ORDERS_0, (value("UNREGISTER_BROKER", brokerId=2, brokerEpoch=2),), evidence="broker 2 is not registered"
    ),
    "rackViolation": Planted(
        "/image/topics/byName/near/0", (broker(4, rack="rack-1"), *lone("near", (1, 4, 2))), evidence="4 in rack-1"
    ),
    "singleReplica": Planted("/image/topics/byName/alone", lone("alone", (1,)), evidence="replication factor 1"),
    "minIsrAboveReplicas": Planted(
        "/image/topics/byName/low", lone("low", (1, 2), config(2, "low", "min.insync.replicas", "3"))
    ),
    "minIsrEqualsReplicas": Planted(
        "/image/topics/byName/tight", lone("tight", (1, 2, 3), config(2, "tight", "min.insync.replicas", "3"))
    ),
    "brokerFenced": Planted(
        BROKER_2, (value("BROKER_REGISTRATION_CHANGE", 1, brokerId=2, brokerEpoch=2, fenced=1),), evidence="rack-2"
    ),
    "staleRegistration": Planted("/image/cluster/brokers/8", (broker(8, fenced=True),)),
    "brokerShuttingDown": Planted(
        BROKER_2, (value("BROKER_REGISTRATION_CHANGE", 1, brokerId=2, brokerEpoch=2, inControlledShutdown=1),)
    ),
    "controllerUnregistered": Planted(
        "/image/cluster/controllers", how={"voters": (11, 12, 13, 14, 15)}, evidence="voter 14"
    ),
    "staleController": Planted(
        "/image/cluster/controllers/14", (level(33), controller(14)), evidence="controller 14 is registered and no"
    ),
    "evenVoters": Planted("/quorum/voters", (controller(14),), {"voters": (11, 12, 13, 14)}, "4 voters (11,12,13,14)"),
    "featureUnsupported": Planted("/image/features", (older(3),), evidence="broker 3 supports 7 to 29"),
    "mixedSoftware": Planted("/image/cluster", (level(29), older(3)), evidence="29 (4.2-IV1): broker 3"),
    "featureBehind": Planted(
        "/image/features/metadataVersion", (level(29),), evidence="all nodes support 30 (4.3-IV0)"
    ),
    "noSnapshot": Planted("/snapshots", how={"snapshot_before": None, "later": 7 * HOUR}, evidence="none, after 7 h"),
    "noSnapshotYet": Planted("/snapshots", how={"snapshot_before": None}),
    "oldSnapshot": Planted("/snapshots", how={"snapshot_before": 7 * HOUR}, evidence="7 h older"),
    "orphanedConfig": Planted("/image/configs/TOPIC:gone", (config(2, "gone", "retention.ms", "1"),)),
    "orphanedBrokerConfig": Planted("/image/configs/BROKER:7", (config(4, "7", "log.cleaner.threads", "1"),)),
    "leftOverThrottle": Planted(
        "/image/configs/BROKER:1", (config(4, "1", "follower.replication.throttled.rate", "1000"),)
    ),
    "snapshotDisagrees": Planted(
        "/image/configs/TOPIC:gone/retention.ms",
        how={"kept": (config(2, "gone", "retention.ms", "1"),)},
        evidence="only in the snapshot",
    ),
    "wideOpenAcl": Planted(f"/image/acls/byId/{uuid(50)}", (acl(50, resourceName="*", principal="User:*"),)),
    "orphanedAcl": Planted(f"/image/acls/byId/{uuid(51)}", (acl(51, resourceName="gone"),), evidence="TOPIC:gone"),
    "orphanedQuota": Planted("/image/clientQuotas/user(bob)", (quota("bob"),), evidence="user bob"),
    "weakScram": Planted("/image/scram/SCRAM-SHA-256/bob", (scram("bob", 1000),), evidence="1000 iterations"),
    "fewScramIterations": Planted("/image/scram/SCRAM-SHA-256/bob", (scram("bob", 4096),)),
    "expiredToken": Planted("/image/delegationToken/t", (token(builders.TIME - HOUR),), evidence="expired 1.0 h ago"),
}
ASKED = {"noLeader", "voterBehind", "observerBehind"}
"""What only a running quorum tells."""


def found(session: Session, line: str = "health") -> dict[str, list[dict[str, Any]]]:
    """The rows by the finding's name."""
    told: dict[str, list[dict[str, Any]]] = {}
    for row in rows(session, line):
        told.setdefault(row["finding"], []).append(row)
    return told


def cancelled(row: dict[str, Any]) -> list[int]:
    """The replicas to which the only command of a finding goes back."""
    (command,) = row["commands"]
    assert command.endswith(" --cancel")
    (moved,) = json.loads(shlex.split(command)[1])["partitions"]
    return list(moved["replicas"])


def test_nothing_where_nothing_is_wrong(tmp_path: Path) -> None:
    session = opened(write(tmp_path))
    result = run(session, "health --fail-on info")
    assert isinstance(result, Rows)
    assert (list(result), result.exit_code) == ([], 0)
    assert session.remarks == []
    assert isinstance(result.readable, Text)
    assert result.readable.text == f"no findings: {len(checks())} checks, 2 topics, 3 partitions"


def test_every_check_is_planted() -> None:
    assert {one.name for one in checks()} == {*PLANTED, *ASKED}, "give PLANTED what the check finds"
    assert all(one.level in LEVELS and one.about and one.cures for one in checks())


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_finding_is_found(name: str, tmp_path: Path) -> None:
    planted = PLANTED[name]
    told = found(opened(write(tmp_path, *planted.records, **planted.how)))
    made = next(one for one in checks() if one.name == name)
    row = next(row for row in told[name] if row["path"] == planted.path)
    assert (row["level"], planted.evidence in row["evidence"]) == (made.level, True), row
    assert "{" not in row["nextStep"]


@pytest.mark.parametrize("name", PLANTED)
def test_the_exit_code_counts_from_a_level_up(name: str, tmp_path: Path) -> None:
    planted = PLANTED[name]
    session = opened(write(tmp_path, *planted.records, **planted.how))
    worst = min((row["level"] for row in rows(session, "health")), key=LEVELS.index)
    codes = {one: run(session, f"health --fail-on {one}").exit_code for one in LEVELS}
    assert codes == {one: int(LEVELS.index(worst) <= LEVELS.index(one)) for one in LEVELS}
    assert run(session, "health").exit_code == codes["error"]


def test_what_is_known_can_be_left_out(tmp_path: Path) -> None:
    """An alert on a condition is about what fulfils it; other options only shape what is shown."""
    session = opened(write(tmp_path, changed(isr=[1]), *lone("alone", (1,))))
    for options, code in (
        ("", 1),
        ("--where 'finding == underMinIsr'", 1),
        ("--where 'not path ~ \"orders\"'", 0),
        ("--where 'finding == singleReplica'", 0),
        ("--where 'finding == singleReplica' --fail-on warning", 1),
        ("--limit 0", 1),
        ("--columns path --sort path", 1),
    ):
        assert run(session, f"health {options}").exit_code == code, options


class TestMinIsr:
    """Topic, then the leader's own, then all brokers', then what is said; else it is not known."""

    def spoiled(self, directory: Path, *more: bytes, **how: Any) -> Session:
        without = [at for at, record in enumerate(records()) if b"min.insync.replicas" in record]
        return opened(write(directory, *more, changed(isr=[1]), without=without, **how))

    def test_is_unknown(self, tmp_path: Path) -> None:
        session = self.spoiled(tmp_path)
        assert set(found(session)) == {"underReplicated"}
        assert "min.insync.replicas of 2 topics is not in the log" in session.remarks[0]

    def test_is_given(self, tmp_path: Path) -> None:
        session = self.spoiled(tmp_path)
        assert set(found(session, "health --min-isr-default 2")) == {"underReplicated", "underMinIsr"}
        assert set(found(session, "health --min-isr-default 1")) == {"underReplicated", "atMinIsr"}
        assert session.remarks == []

    def test_is_the_leaders_own(self, tmp_path: Path) -> None:
        session = self.spoiled(tmp_path, config(4, "1", "min.insync.replicas", "2"))
        assert "underMinIsr" in found(session, "health --min-isr-default 1")

    def test_no_more_than_there_are_replicas(self, tmp_path: Path) -> None:
        """A broker asks for as many as there are (``Partition.effectiveMinIsr``)."""
        told = found(opened(write(tmp_path, *lone("alone", (1,)))))
        assert set(told) == {"singleReplica", "minIsrAboveReplicas"}


def test_a_replica_is_added_only_where_somebody_leads(tmp_path: Path) -> None:
    """A new replica copies what the leader has; without one the reassignment would wait."""

    def single(*leaders: int) -> dict[str, Any]:
        partitions = (partition(number, 200, (1,), leader=leader, isr=[1]) for number, leader in enumerate(leaders))
        session = opened(write(tmp_path, value("TOPIC", name="alone", topicId=uuid(200)), *partitions))
        (row,) = found(session)["singleReplica"]
        return row

    nobody = single(-1, -1)
    assert (nobody["nextStep"], nobody["commands"]) == (
        "the partition needs a leader first: see offlinePartition", [],
    )  # fmt: skip
    some = single(-1, 1)
    assert some["nextStep"] == "add replicas"
    assert '"partition":1,' in some["commands"][0] and '"partition":0,' not in some["commands"][0]


@pytest.mark.parametrize(("later", "name"), [(0, "noSnapshotYet"), (7 * HOUR, "noSnapshot")])
def test_the_snapshot_of_the_first_voters_is_none(later: int, name: str, tmp_path: Path) -> None:
    """Formatting a dynamic quorum writes ``0-0.checkpoint``, which no server has made."""
    write(tmp_path, snapshot_before=None, later=later)
    builders.write_snapshot(tmp_path, builders.snapshot([], 0, timestamp=0), 0, 0)
    assert set(found(opened(tmp_path))) == {name}


class TestDirectories:
    """A replica's log directory against those with which its broker registered (``DirectoryId.isOnline``)."""

    @pytest.mark.parametrize(
        ("place", "is_lost"),
        [(uuid(7), False), (ZERO_UUID, False), (UNASSIGNED, False), (LOST, True), (uuid(8), True)],
    )
    def test_of_a_broker_that_tells_them(self, place: Uuid, is_lost: bool, tmp_path: Path) -> None:
        told = found(opened(write(tmp_path, jbod(2, 7), changed(directories=[uuid(7), place, uuid(7)]))))
        assert set(told) == ({"offlineDirectory"} if is_lost else set())

    def test_of_one_that_does_not(self, tmp_path: Path) -> None:
        """Registrations from before 3.7-IV2: only LOST says something."""
        told = found(opened(write(tmp_path, changed(directories=[uuid(7), uuid(77), LOST]))))
        assert [row["evidence"] for row in told["offlineDirectory"]] == [
            "broker 3 has no directory (LOST); isr 1,2,3 of replicas 1,2,3"
        ]

    def test_in_a_snapshot(self, tmp_path: Path) -> None:
        """What nobody changed since is looked at, too."""
        told = found(opened(write(tmp_path, jbod(3, 8))))
        assert {row["path"] for row in told["offlineDirectory"]} == {
            ORDERS_0, "/image/topics/byName/orders/1", "/image/topics/byName/payments/0"
        }  # fmt: skip


class TestMoves:
    """The commands of next steps against what kafka-reassign-partitions.sh takes, and what would lose data."""

    def test_no_plan_names_a_broker_that_does_not_run(self, tmp_path: Path) -> None:
        gone = [value("UNREGISTER_BROKER", brokerId=3, brokerEpoch=3), value("FENCE_BROKER", id=2, epoch=2)]
        told = found(opened(write(tmp_path, broker(4), *gone, changed(isr=[1]))))
        [row] = [row for row in told["unregisteredReplica"] if row["path"] == ORDERS_0]
        assert row["commands"] == [] and row["nextStep"].endswith("once broker 2 serves again")
        [row] = [row for row in told["underMinIsr"] if row["path"] == ORDERS_0]
        assert row["commands"] == [], "there is one broker for two places"

    def test_a_lone_replica_whose_move_is_stuck_gets_no_more(self, tmp_path: Path) -> None:
        moved = partition(2, replicas=(3, 1), isr=[1], leader=1, addingReplicas=[3], removingReplicas=[1])
        told = found(opened(write(tmp_path, moved, value("FENCE_BROKER", id=3, epoch=3))))
        [row] = told["singleReplica"]
        assert row["nextStep"] == "either start broker 3 or cancel the reassignment; then add replicas"
        assert cancelled(row) == [1]

    def test_several_moves_are_cancelled_together(self, tmp_path: Path) -> None:
        moves = {"isr": [1], "leader": 1, "addingReplicas": [3], "removingReplicas": [1]}
        stuck = [partition(number, 200, (3, 1), **moves) for number in (0, 1)]
        topic = value("TOPIC", name="two", topicId=uuid(200))
        told = found(opened(write(tmp_path, topic, *stuck, value("FENCE_BROKER", id=3, epoch=3))))
        [row] = told["singleReplica"]
        assert row["nextStep"] == "either start broker 3 or cancel the reassignments; then add replicas"

    @pytest.mark.parametrize(
        ("more", "first", "replicas"),
        [
            # Kafka refuses to cancel: nothing in sync would stay
            (
                {"replicas": [1, 3, 9], "isr": [3], "leader": 3, "addingReplicas": [3, 9], "removingReplicas": [1]},
                "start broker 9; if it is gone for good",
                [1, 3],
            ),
            # one that stays and one that is added
            (
                {"replicas": [8, 2, 3, 9], "isr": [2, 3], "leader": 2, "addingReplicas": [9], "removingReplicas": [3]},
                "start brokers 8 and 9; if they are gone for good",
                [1, 2, 3],
            ),
        ],
    )
    def test_a_replica_that_is_added_on_a_broker_that_is_gone_for_good_is_replaced(
        self, more: dict[str, Any], first: str, replicas: list[int], tmp_path: Path
    ) -> None:
        told = found(opened(write(tmp_path, broker(4), changed(directories=[uuid(7)] * len(more["replicas"]), **more))))
        [row] = told["unregisteredReplica"]
        assert row["nextStep"] == f"{first}, move the replicas to brokers that run"
        (command,) = row["commands"]
        (moved,) = json.loads(shlex.split(command)[1])["partitions"]
        assert (command.endswith(" --additional --execute"), sorted(moved["replicas"])) == (True, replicas)

    def test_brokers_that_must_serve_besides_the_end_of_a_move_are_named(self, tmp_path: Path) -> None:
        away = changed(replicas=[8, 1, 2, 9], isr=[1], leader=1, addingReplicas=[9], directories=[uuid(7)] * 4)
        stopped = [broker(9, fenced=True), value("FENCE_BROKER", id=2, epoch=2), broker(4), broker(5)]
        [row] = found(opened(write(tmp_path, *stopped, away)))["unregisteredReplica"]
        assert row["nextStep"] == (
            "start broker 8; if it is gone for good, either start broker 9 or cancel the reassignment;"
            " then move the replicas to brokers that run, once broker 2 serves again"
        )
        assert cancelled(row) == [8, 1, 2]

    def test_a_move_that_is_under_way_is_not_proposed_again(self, tmp_path: Path) -> None:
        away = changed(isr=[1, 3], directories=[uuid(7), LOST, uuid(7)], addingReplicas=[3], removingReplicas=[2])
        told = found(opened(write(tmp_path, away)))
        [row] = [row for row in told["offlineDirectory"] if row["path"] == ORDERS_0]
        assert (row["nextStep"], row["commands"]) == ("wait for the reassignment to end", [])

    @pytest.mark.parametrize("name", ["offlineDirectory", "rackViolation"])
    def test_a_partition_without_a_leader_is_not_moved(self, name: str, tmp_path: Path) -> None:
        away = changed(isr=[3], leader=-1, directories=[uuid(7), uuid(7), LOST])
        same = [broker(number, rack="a") for number in (1, 2, 3)] + [broker(4, rack="b")]
        told = found(opened(write(tmp_path, *same, away)))
        [row] = [row for row in told[name] if row["path"] == ORDERS_0]
        assert row["commands"] == [] and row["nextStep"].startswith("the partition needs a leader first")


@pytest.mark.parametrize(
    ("registered", "behind", "spare"),
    [
        ((11, 12, 14), None, 13), ((11, 12, 13, 14), None, 14), ((), None, 14), ((11, 12, 13, 14), 12, 12),
        ((), 13, 13), ((11, 12, 13, 14), 11, 14),
    ],
)  # fmt: skip
def test_the_voter_that_is_away_is_the_one_to_spare(
    registered: tuple[int, ...], behind: int | None, spare: int
) -> None:
    """To remove another one would leave three voters of which one is away. Before 3.7 none registers."""
    voters = [
        {"id": voter, "lag": 0, "lastFetchTimestamp": 60_000, "lastCaughtUpTimestamp": 1 if voter == behind else 60_000}
        for voter in (11, 12, 13, 14)
    ]
    state: Any = SimpleNamespace(
        voters=(11, 12, 13, 14),
        features=SimpleNamespace(leader_id=11),
        image={"controllers": dict.fromkeys(registered)},
        voter_directories={},
        quorum={"leaderId": 11, "voters": voters},
    )
    find = next(one for one in checks() if one.name == "evenVoters").of_state
    assert find is not None
    [observation] = find(state)
    assert observation.placeholders is not None and observation.placeholders["id"] == spare


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ((changed(leader=2, directories=[LOST, uuid(7), uuid(7)]),), "see offlineDirectory"),
        ((changed(leader=2, isr=[2, 3], directories=[LOST, uuid(7), uuid(7)]),), "see offlineDirectory"),
        ((changed(leader=2, isr=[2, 3]),), "see underReplicated"),
        (
            (broker(4), changed(leader=2, isr=[2, 3, 4], replicas=[1, 2, 3, 4], addingReplicas=[4],
                                directories=[uuid(7)] * 4)),
            "see its server.log",
        ),
        (
            (broker(4), changed(leader=2, isr=[2, 3, 4], replicas=[1, 2, 3, 4], addingReplicas=[4],
                                removingReplicas=[1], directories=[uuid(7)] * 4)),
            "the reassignment removes it: once that ends, another is preferred",
        ),
        (
            (broker(4), changed(leader=2, replicas=[4, 1, 2, 3], addingReplicas=[4], directories=[uuid(7)] * 4)),
            "see the reassignment that adds it",
        ),
        (
            (
                value("BROKER_REGISTRATION_CHANGE", 1, brokerId=1, brokerEpoch=1, inControlledShutdown=1),
                changed(leader=2),
            ),
            "it is in controlled shutdown",
        ),
    ],
)  # fmt: skip
def test_no_election_is_proposed_that_would_fail(more: tuple[bytes, ...], reason: str, tmp_path: Path) -> None:
    """Kafka elects a replica that is in sync, on a broker that serves and has the replica's log directory."""
    told = found(opened(write(tmp_path, *more)))
    [row] = [row for row in told["nonPreferredLeader"] if row["path"] == ORDERS_0]
    assert (row["commands"], row["nextStep"].endswith(reason)) == ([], True), row["nextStep"]


class TestReassignment:
    def test_is_stuck_when_nothing_happens(self, tmp_path: Path) -> None:
        """Its last change is two hours older than the last record."""
        more = [broker(4), partition(0, replicas=(1, 2, 3, 4), addingReplicas=[4])]
        base = [*records(), *more]
        builders.write_log(
            tmp_path,
            builders.control_batch([builders.control(2, leaderId=11, voters=[{"voterId": n} for n in (11, 12, 13)])]),
            builders.batch(base, 1),
            write_batch([(None, value("NO_OP"))], base_offset=1 + len(base), epoch=1,
                                 timestamp=builders.TIME + 2 * HOUR),
        )  # fmt: skip
        told = found(opened(tmp_path))
        assert told["stuckReassignment"][0]["evidence"].startswith("no change for 2 h; adding 4")
        assert "reassignment" not in told

    def test_a_reassignment_that_only_removes_is_stuck_without_any_replica_in_sync(self, tmp_path: Path) -> None:
        base = [*records(), changed(leader=-1, isr=[], removingReplicas=[1], eligibleLeaderReplicas=[1])]
        builders.write_log(
            tmp_path,
            builders.control_batch([builders.leader_change()]),
            builders.batch(base, 1),
            write_batch([(None, value("NO_OP"))], base_offset=1 + len(base), epoch=1,
                                 timestamp=builders.TIME + 2 * HOUR),
        )  # fmt: skip
        told = found(opened(tmp_path))
        assert "offlinePartition" in told
        (stuck,) = told["stuckReassignment"]
        assert (stuck["nextStep"], stuck["commands"]) == (
            "the partition needs a leader first: see offlinePartition", [],
        ), "Kafka cancels no reassignment after which no replica in sync would be left"  # fmt: skip

    @pytest.mark.parametrize(
        ("name", "more", "step"),
        [
            (
                "underMinIsr",
                {"isr": [1], "replicas": [9, 1, 3], "addingReplicas": [9], "removingReplicas": [3]},
                "start broker 9, or cancel the reassignment",
            ),
            (
                "underReplicated",
                {"isr": [1, 3], "replicas": [1, 2, 3, 9], "addingReplicas": [9]},
                "see the server.log of broker 2, which runs and is not in sync; if it is gone for good, either start"
                " broker 9 or cancel the reassignment; then move the replicas to brokers that run",
            ),
            (
                "unregisteredReplica",
                {"replicas": [1, 2, 3, 4, 9], "addingReplicas": [9]},  # there is no other broker for it
                "start broker 9, or cancel the reassignment",
            ),
        ],
    )  # fmt: skip
    def test_one_that_waits_for_a_dead_broker_can_be_cancelled(
        self, name: str, more: dict[str, Any], step: str, tmp_path: Path
    ) -> None:
        told = found(opened(write(tmp_path, broker(4), changed(directories=[uuid(7)] * len(more["replicas"]), **more))))
        [row] = [row for row in told[name] if row["path"] == ORDERS_0]
        assert row["nextStep"] == step
        assert cancelled(row) == [replica for replica in more["replicas"] if replica != 9]

    def test_replicas_that_are_added_are_not_missing(self, tmp_path: Path) -> None:
        told = found(opened(write(tmp_path, broker(4), moving(to=4))))
        assert set(told) == {"reassignment"}

    def test_a_replica_that_is_removed_need_not_come_back(self, tmp_path: Path) -> None:
        """As after health's own advice: the dead broker is being replaced already."""
        gone = value("FENCE_BROKER", id=3, epoch=3)
        away = changed(isr=[1], replicas=[4, 1, 3], addingReplicas=[4], removingReplicas=[3])
        told = found(opened(write(tmp_path, broker(4), gone, away)))
        [row] = [row for row in told["underMinIsr"] if row["path"] == ORDERS_0]
        assert (row["nextStep"], row["commands"]) == ("wait for the reassignment to end", [])

    def test_racks_are_mended_when_a_stuck_move_is_over(self, tmp_path: Path) -> None:
        stopped = broker(4, rack="rack-1", fenced=True)
        to_4 = changed(replicas=[1, 2, 4], isr=[1, 2], addingReplicas=[4])
        [row] = [
            row for row in found(opened(write(tmp_path, stopped, to_4)))["rackViolation"] if row["path"] == ORDERS_0
        ]
        assert (
            row["nextStep"] == "either start broker 4 or cancel the reassignment; then move a replica to another rack"
        )
        assert cancelled(row) == [1, 2]

    def test_a_throttle_of_what_is_gone_is_no_finding_with_a_command_that_fails(self, tmp_path: Path) -> None:
        throttle = [config(4, name, "leader.replication.throttled.rate", "1") for name in ("7", "11")]
        gone = config(2, "gone", "leader.replication.throttled.replicas", "*")
        assert "leftOverThrottle" not in found(opened(write(tmp_path, *throttle, gone)))

    def test_a_throttle_is_in_use_while_something_moves(self, tmp_path: Path) -> None:
        throttle = config(4, "1", "leader.replication.throttled.rate", "1")
        assert "leftOverThrottle" not in found(opened(write(tmp_path, broker(4), moving(to=4), throttle)))


class TestAccess:
    @pytest.mark.parametrize(
        ("more", "is_open"),
        [
            ({"resourceName": "*", "operation": 4}, True),
            ({"resourceType": 4, "resourceName": "kafka-cluster", "operation": 7}, True),
            ({"operation": 2}, True),
            ({"resourceName": "*", "operation": 8}, False),
            ({"resourceName": "*", "patternType": 4, "operation": 4}, False),
            ({"resourceName": "", "patternType": 4, "operation": 4}, True),
            ({"resourceName": "", "operation": 4}, False),
            ({"operation": 3}, False),
            ({"resourceName": "*", "operation": 4, "permissionType": 2}, False),
            ({"resourceName": "*", "operation": 4, "principal": "User:alice"}, False),
        ],
    )
    def test_wide_open(self, more: dict[str, Any], is_open: bool, tmp_path: Path) -> None:
        given = {"principal": "User:*", **more}
        assert ("wideOpenAcl" in found(opened(write(tmp_path, acl(60, **given))))) is is_open

    def test_a_prefix_is_orphaned_without_any_topic(self, tmp_path: Path) -> None:
        there = acl(61, resourceName="ord", patternType=4)
        gone = acl(62, resourceName="ordinary", patternType=4)
        told = found(opened(write(tmp_path, there, gone)))
        assert [row["path"] for row in told["orphanedAcl"]] == [f"/image/acls/byId/{uuid(62)}"]

    def test_the_prefix_of_every_name_is_not_orphaned_but_an_asterisk_is_no_such_prefix(self, tmp_path: Path) -> None:
        asterisk, empty = acl(63, resourceName="*", patternType=4), acl(64, resourceName="", patternType=4)
        told = found(opened(write(tmp_path, asterisk, empty)))
        assert [row["path"] for row in told["orphanedAcl"]] == [f"/image/acls/byId/{uuid(63)}"]

    def test_iterations_of_an_unknown_mechanism_are_not_judged(self, tmp_path: Path) -> None:
        """The numbers that are recommended are for SHA-256 and SHA-512, and no tool sets a password for another."""
        unknown = value("USER_SCRAM_CREDENTIAL", name="bob", mechanism=0, salt=b"s", storedKey=b"k", serverKey=b"v",
                        iterations=1)  # fmt: skip
        assert found(opened(write(tmp_path, unknown))) == {}

    def test_tokens_are_judged_by_the_time_of_the_state(self, tmp_path: Path) -> None:
        assert "expiredToken" not in found(opened(write(tmp_path, token(builders.TIME + 1))))

    def test_a_token_that_has_just_expired(self, tmp_path: Path) -> None:
        told = found(opened(write(tmp_path, token(builders.TIME - 4000))))
        assert told["expiredToken"][0]["evidence"] == "owner User:alice, expired 4 s ago"

    def test_quotas_of_unknown_users_say_nothing_without_scram(self, tmp_path: Path) -> None:
        at = [number for number, record in enumerate(records()) if record == scram("alice", 16384)]
        assert "orphanedQuota" not in found(opened(write(tmp_path, quota("bob"), without=at)))


def test_names_of_others_are_quoted_in_commands(tmp_path: Path) -> None:
    name = "a; rm -rf ~"
    told = found(opened(write(tmp_path, value("TOPIC", name=name, topicId=uuid(200)), partition(0, 200, leader=-1))))
    assert f"--topic '{name}' " in told["offlinePartition"][0]["nextStep"]


class TestOfflinePartitions:
    """Several at once, each of which needs something else; ``tests/metadata/test_election.py`` has every case."""

    def offline(self, number: int, replicas: tuple[int, ...], **more: Any) -> bytes:
        return partition(number, 200, replicas, leader=-1, **{"isr": [], **more})

    def session(self, directory: Path) -> Session:
        fenced = value("BROKER_REGISTRATION_CHANGE", 1, brokerId=3, brokerEpoch=3, fenced=1)
        return opened(
            write(
                directory, fenced, value("FEATURE_LEVEL", name="eligible.leader.replicas.version", featureLevel=1),
                value("TOPIC", name="lost", topicId=uuid(200)),
                self.offline(0, (3, 1), isr=[3]),
                self.offline(1, (3, 2), isr=[3]),
                self.offline(2, (1, 3), eligibleLeaderReplicas=[2]),
                self.offline(3, (1, 2), isr=[1]),
                self.offline(4, (3, 1), lastKnownElr=[3]),
            )
        )  # fmt: skip

    def test_each_has_its_own_step(self, tmp_path: Path) -> None:
        steps = {row["path"][-1]: row["nextStep"] for row in found(self.session(tmp_path))["offlinePartition"]}
        assert steps["0"] == steps["1"] and steps["0"].startswith("start broker 3 ")
        assert "broker 2 is in the ELR but no replica any more" in steps["2"] and "start" not in steps["2"]
        assert "makes broker 1 the leader" in steps["2"] and "--topic lost --partition 2" in steps["2"]
        assert (
            steps["3"].startswith("broker 1 runs and is in the ISR; have it elected: ") and "unclean" not in steps["3"]
        )
        assert "it was the last leader" in steps["4"]
        assert len(set(steps.values())) == 4

    def test_text_and_page_show_every_step_below_the_findings_that_it_is_for(self, tmp_path: Path) -> None:
        session = self.session(tmp_path)
        steps = {row["path"]: row["nextStep"] for row in found(session)["offlinePartition"]}
        shown = lines(session, "health", width=1000)
        at = shown.index("critical: offlinePartition (5): no leader: it can be neither read nor written")
        group = shown[at + 1 : shown.index("", at)]
        for path, step in steps.items():
            below = group[next(number for number, line in enumerate(group) if line.strip().startswith(f"{path} ")) :]
            first = next(line for line in below if line.strip().startswith("next: "))
            assert first.strip() == f"next: {step}", path
        assert sum(line.strip().startswith("next: start broker 3 ") for line in group) == 2
        text = html.unescape(re.sub("<[^>]*>", "", "".join(render(run(session, "health"), "html"))))
        assert all(step in text for step in steps.values())

    def test_what_else_is_found_of_them_does_not_send_for_brokers_that_may_run(self, tmp_path: Path) -> None:
        """Without a leader nobody returns to the ISR, whoever is brought back."""
        everything = found(self.session(tmp_path))
        for name in ("underMinIsr", "underReplicated", "elrInUse"):
            steps = {row["nextStep"] for row in everything[name] if "/lost/" in row["path"]}
            assert steps == {"the partition needs a leader first: see offlinePartition"}, name

    @pytest.mark.parametrize(
        ("moving", "step"), [({}, "see minIsrAboveReplicas"), ({"addingReplicas": [1]}, "wait for the reassignment")]
    )
    def test_a_partition_whose_replicas_are_all_in_sync_waits_for_a_reassignment_only_if_there_is_one(
        self, moving: dict[str, Any], step: str, tmp_path: Path
    ) -> None:
        directory = write(
            tmp_path, value("FEATURE_LEVEL", name="eligible.leader.replicas.version", featureLevel=1),
            value("TOPIC", name="few", topicId=uuid(200)), value("CONFIG", resourceType=2, resourceName="few",
            name="min.insync.replicas", value="2"),
            partition(0, 200, (1,), isr=[1], leader=1, eligibleLeaderReplicas=[2], **moving),
        )  # fmt: skip
        (row,) = (row for row in found(opened(directory))["elrInUse"] if "/few/" in row["path"])
        assert step in row["nextStep"]

    def test_more_than_are_shown_are_counted_by_step(self, tmp_path: Path) -> None:
        fenced = value("BROKER_REGISTRATION_CHANGE", 1, brokerId=3, brokerEpoch=3, fenced=1)
        same = [self.offline(number, (3, 1), isr=[3]) for number in range(9)]
        others = [self.offline(number, (1, 2), isr=[1]) for number in range(9, 18)]
        topic = value("TOPIC", name="lost", topicId=uuid(200))
        shown = lines(opened(write(tmp_path, fenced, topic, *same, *others)), "health", width=1000)
        listing = "health --where 'finding == offlinePartition'"
        assert f"  … 4 more, with the same next step: {listing}" in shown
        assert f"  … 5 more, with steps of their own: {listing}" in shown

    def test_steps_that_name_the_partition_leave_room_for_those_of_many(self, tmp_path: Path) -> None:
        """Only the first sentences are made; what has one of those is counted wherever it comes."""
        topic = value("TOPIC", name="lost", topicId=uuid(200))
        waits = [partition(number, 200, (3, 1), isr=[1], leader=1) for number in (1, *range(9, 12))]
        votes = [partition(number, 200, (3, 1), isr=[3, 1], leader=1) for number in (0, *range(2, 9))]
        shown = lines(opened(write(tmp_path, topic, *waits, *votes)), "health", width=1000)
        start = next(number for number, line in enumerate(shown) if line.startswith("info: nonPreferredLeader (12)"))
        group = shown[start : shown.index("", start)] if "" in shown[start:] else shown[start:]
        of_waits = group.index("    next: broker 3 must be in sync before it can lead: see underReplicated")
        paths = [line.split()[0] for line in group[:of_waits] if line.startswith("  /image/")]
        assert [path.rpartition("/")[2] for path in paths] == ["0", "1", "9", "10", "11"]
        assert sum(line.startswith("    next: automatic rebalancing") for line in group) == 4
        assert group[-1] == "  … 4 more, with steps of their own: health --where 'finding == nonPreferredLeader'"

    def test_why_says_the_same(self, tmp_path: Path) -> None:
        session = self.session(tmp_path)
        steps = {row["path"][-1]: row["nextStep"] for row in found(session)["offlinePartition"]}
        for number, step in steps.items():
            report = json.loads("".join(render(run(session, f"why lost-{number}"), "json")))
            assert step.startswith(report["answer"]["nextStep"])
            assert ("lastResort" in report["answer"]) is (number in "014")


def test_no_level_is_named_that_kafka_refuses(tmp_path: Path) -> None:
    """A voter that has not registered may not support it."""
    told = found(opened(write(tmp_path, level(29), voters=(11, 12, 13, 14, 15))))
    assert "controllerUnregistered" in told and "featureBehind" not in told


def test_braces_in_a_name_are_a_name(tmp_path: Path) -> None:
    told = found(opened(write(tmp_path, scram("{x}", 1))))
    assert told["weakScram"][0]["nextStep"].endswith(
        "--entity-name '{x}' --add-config 'SCRAM-SHA-256=[iterations=10000,password=PASSWORD]'"
    )


class TestLive:
    """A pretend quorum, whose records are the healthy ones."""

    def session(self, quorum: Quorum) -> Session:
        ids = [node.id for node in quorum.controllers]
        mine = [record for record in records() if record not in [controller(n) for n in (11, 12, 13)]]
        quorum.append(*mine, *(controller(number) for number in ids))
        return Session(quorum.keep(QuorumSource(quorum.bootstrap, settings())))

    def change(self, quorum: Quorum, spoil: Callable[[dict[str, Any]], None]) -> None:
        def then(body: dict[str, Any]) -> None:
            found = body["topics"][0]["partitions"][0]
            now = int(time.time() * 1000)
            for replica in found["currentVoters"] + found["observers"]:
                replica |= {"lastFetchTimestamp": now, "lastCaughtUpTimestamp": now}
            spoil(found)

        quorum.on("DescribeQuorum", faults.change(then))

    def live(self, spoil: Callable[[dict[str, Any]], None]) -> dict[str, list[dict[str, Any]]]:
        with Quorum(controllers=3, brokers=1) as quorum:
            session = self.session(quorum)
            self.change(quorum, spoil)
            told = found(session)
            told.pop("expiredToken", None)  # the healthy token is from another time
            return told

    def test_nothing(self) -> None:
        assert self.live(lambda found: None) == {}

    def test_a_voter_is_behind(self) -> None:
        def spoil(found: dict[str, Any]) -> None:
            found["currentVoters"][1]["lastCaughtUpTimestamp"] -= 60_000

        row = self.live(spoil)["voterBehind"][0]
        assert (row["path"], row["evidence"]) == ("/quorum/voters/2", "lag 0, last caught up 60 s ago")

    def test_a_voter_of_whom_the_leader_knows_nothing(self) -> None:
        def spoil(found: dict[str, Any]) -> None:
            found["currentVoters"][1] |= {"logEndOffset": -1, "lastFetchTimestamp": -1, "lastCaughtUpTimestamp": -1}

        row = self.live(spoil)["voterBehind"][0]
        assert (row["path"], row["evidence"]) == ("/quorum/voters/2", "leader 1 has not heard of it")

    def test_a_voter_that_came_back_with_another_disk(self) -> None:
        """It runs, as an observer: to start it, as is said of one that is away, changes nothing."""
        old, new = "z0UvZHnETvujmsxcX7k2cQ", "xQKy5uBkXeey-tlk8q1Znw"

        def spoil(found: dict[str, Any]) -> None:
            replaced = found["currentVoters"][1]
            found["observers"].append(replaced | {"replicaDirectoryId": Uuid.parse(new)})
            replaced |= {"replicaDirectoryId": Uuid.parse(old)}
            replaced["lastCaughtUpTimestamp"] -= 60_000

        (row,) = self.live(spoil)["voterBehind"]
        assert row["path"] == "/quorum/voters/2"
        assert row["evidence"] == (
            f"lag 0, last caught up 60 s ago; it follows with the directory {new}, which is no voter"
        )
        assert row["nextStep"].startswith(
            "if its disk was replaced, make the new directory the voter: kafka-metadata-quorum.sh"
        )
        (command,) = row["commands"]
        assert command.endswith(f" remove-controller --controller-id 2 --controller-directory-id {old}")

    def test_a_voter_whose_own_disk_is_back_is_not_replaced(self) -> None:
        """It ran with another disk for a moment; its last fetch is of the voter's directory, which must stay one."""
        old = "z0UvZHnETvujmsxcX7k2cQ"

        def spoil(found: dict[str, Any]) -> None:
            voter = found["currentVoters"][1]
            voter |= {"replicaDirectoryId": Uuid.parse(old)}
            then = voter["lastFetchTimestamp"] - 20_000
            found["observers"].append(voter | {"replicaDirectoryId": uuid(3), "lastFetchTimestamp": then})
            voter["lastCaughtUpTimestamp"] -= 30_000

        (row,) = self.live(spoil)["voterBehind"]
        assert row["evidence"] == "lag 0, last caught up 30 s ago"
        assert row["nextStep"].startswith("start controller 2, or see its log")

    def test_a_voter_whose_disk_was_replaced_twice(self) -> None:
        """The directory of the last fetch is the one that runs."""

        def spoil(found: dict[str, Any]) -> None:
            voter = found["currentVoters"][1]
            then = voter["lastFetchTimestamp"] - 20_000
            found["observers"] += [
                voter | {"replicaDirectoryId": uuid(4)},
                voter | {"replicaDirectoryId": uuid(3), "lastFetchTimestamp": then},
            ]
            times = {"lastFetchTimestamp": then - 10_000, "lastCaughtUpTimestamp": then - 10_000}
            voter |= {"replicaDirectoryId": uuid(2)} | times

        (row,) = self.live(spoil)["voterBehind"]
        assert row["evidence"].endswith(f"; it follows with the directory {uuid(4)}, which is no voter")

    def test_a_voter_that_was_an_observer_is_not_behind(self) -> None:
        """For five minutes the leader lists it as both, the observer with the last fetch before it became a voter.

        So it lists the directory that was removed as a voter, when a disk was replaced.
        """

        def spoil(found: dict[str, Any]) -> None:
            voter = found["currentVoters"][1]
            voter |= {"replicaDirectoryId": uuid(2)}
            then = voter["lastFetchTimestamp"] - 60_000
            old = {"lastFetchTimestamp": then, "lastCaughtUpTimestamp": then}
            still = {"replicaDirectoryId": uuid(3), "lastCaughtUpTimestamp": then}
            removed = voter | old | {"replicaDirectoryId": uuid(4)}
            found["observers"] += [voter | old, voter | still, removed]

        (row,) = self.live(spoil)["observerBehind"]  # the one that is no voter and still fetches
        assert row["path"] == "/quorum/observers/2"

    def test_a_broker_that_starts_is_not_stale(self) -> None:
        """It registers fenced, and has no replicas yet; a minute later something is wrong with it."""
        with Quorum(controllers=3, brokers=1) as quorum:
            session = self.session(quorum)
            for number, ago in ((7, 5_000), (8, 120_000)):
                then = int(time.time() * 1000) - ago
                registered: list[Pair] = [(None, broker(number, fenced=True))]
                quorum.log.put(write_batch(registered, base_offset=quorum.log.end, epoch=quorum.epoch, timestamp=then))
                quorum.commit()
            told = found(session)
            assert [row["path"] for row in told["staleRegistration"]] == ["/image/cluster/brokers/8"]

    def test_a_controller_that_follows_the_quorum_is_not_stale(self) -> None:
        """It may become a voter."""
        with Quorum(controllers=3, brokers=1) as quorum:
            follower = quorum.brokers[0].id
            session = self.session(quorum)
            quorum.append(level(33), controller(follower), controller(77))
            told = found(session)
            assert [row["path"] for row in told["staleController"]] == ["/image/cluster/controllers/77"]
            assert told["staleController"][0]["commands"] == [
                f"kafka-cluster.sh unregister-controller --bootstrap-controller {quorum.bootstrap} --id 77"
            ]
            quorum.append(level(32))
            run(session, "reload")
            (row,) = found(session)["staleController"]
            assert row["nextStep"].startswith("no tool of this release removes it") and row["commands"] == []

    def test_an_observer_is_behind_by_offsets_where_times_are_not_told(self) -> None:
        def spoil(found: dict[str, Any]) -> None:
            for replica in found["currentVoters"] + found["observers"]:
                replica |= {"lastFetchTimestamp": -1, "lastCaughtUpTimestamp": -1}
            found["currentVoters"][0]["logEndOffset"] += 5000
            found["currentVoters"][1]["logEndOffset"] += 5000
            found["currentVoters"][2]["logEndOffset"] += 5000

        assert self.live(spoil)["observerBehind"][0]["path"] == "/quorum/observers/101"

    def test_no_leader(self) -> None:
        """Nobody says what is committed: that is the finding, and all there is."""
        with Quorum(controllers=3) as quorum:
            quorum.elect(None)
            session = Session(quorum.keep(QuorumSource(quorum.bootstrap, settings(default_api_timeout_ms="500"))))
            told = found(session)
            assert set(told) == {"noLeader"} and told["noLeader"][0]["level"] == "critical"
            assert told["noLeader"][0]["evidence"].startswith("no controller leads the quorum")
            assert run(session, "health").exit_code == 1
            assert any(remark.startswith("not checked: everything else") for remark in session.remarks)
            with pytest.raises(NoLeaderError):  # to say that there is none would be a guess
                run(session, "health --where 'finding == offlinePartition'")

    def test_a_leader_that_is_lost_meanwhile(self) -> None:
        with Quorum(controllers=3) as quorum:
            mine = QuorumSource(quorum.bootstrap, settings(default_api_timeout_ms="500"))
            session = Session(quorum.keep(mine))
            assert session.loaded is not None
            quorum.elect(None)
            told = found(session)
            assert "noLeader" in told

    def test_no_leader_whom_brokers_could_ask(self) -> None:
        """They let the question wait."""
        with Quorum(controllers=3, brokers=1) as quorum:
            short = settings(default_api_timeout_ms="500", request_timeout_ms="300")
            session = Session(quorum.keep(BrokerSource(quorum.bootstrap_servers, short)))
            quorum.on("DescribeQuorum", faults.slow(3))
            (row,) = found(session)["noLeader"]
            assert row["evidence"].endswith("gets no answer from the active controller")

    def test_who_may_not_ask_hears_of_it(self) -> None:
        with Quorum(controllers=3) as quorum:
            session = self.session(quorum)
            quorum.on("DescribeQuorum", faults.error(31))
            assert "noLeader" not in found(session)
            assert any("how the quorum keeps up" in remark for remark in session.remarks)

    def test_brokers(self) -> None:
        """What brokers do not tell is not checked, and no finding."""
        with Quorum(controllers=3, brokers=3) as quorum:
            session = Session(quorum.keep(BrokerSource(quorum.bootstrap_servers, settings())))
            assert not {"controllerUnregistered", "unregisteredReplica", "brokerFenced"} & found(session).keys()


class TestLiveSnapshots:
    """The leader names its newest one; an observer may have begun with an older one."""

    def session(self, quorum: Quorum, *, snapshot: bool) -> Session:
        ids = [node.id for node in quorum.controllers]
        mine = [record for record in records() if record not in [controller(n) for n in (11, 12, 13)]]
        mine += [controller(number) for number in ids]
        quorum.append(*mine)
        if snapshot:
            quorum.snapshot(mine)
        return Session(quorum.keep(QuorumSource(quorum.bootstrap, settings())))

    def pass_time(self, quorum: Quorum, hours: int) -> None:
        later = builders.TIME + hours * HOUR
        quorum.log.put(write_batch([(None, value("NO_OP"))], base_offset=quorum.log.end, epoch=1, timestamp=later))
        quorum.commit()

    def about(self, session: Session) -> list[tuple[str, str]]:
        told = found(session)
        return [(name, told[name][0]["evidence"]) for name in told if "napshot" in name]

    def test_old(self) -> None:
        with Quorum(controllers=3) as quorum:
            session = self.session(quorum, snapshot=True)
            self.pass_time(quorum, 5)
            assert self.about(session) == []
            self.pass_time(quorum, 7)
            session.refresh()
            assert self.about(session) == [("oldSnapshot", "the newest one is 7 h older than the log's last record")]

    def test_a_newer_one_than_the_observer_began_with(self) -> None:
        with Quorum(controllers=3) as quorum:
            session = self.session(quorum, snapshot=True)
            assert self.about(session) == []
            self.pass_time(quorum, 7)
            quorum.snapshot([])
            self.pass_time(quorum, 8)
            session.refresh()
            assert self.about(session) == []

    @pytest.mark.parametrize(("release", "is_known"), [("4.3", True), ("3.9", True), ("3.8", False)])
    def test_none(self, release: str, is_known: bool) -> None:
        """Before 3.9 a leader whose log begins at 0 names none, whether there is one or not."""
        with Quorum(controllers=3, release=release) as quorum:
            session = self.session(quorum, snapshot=False)
            assert self.about(session) == []  # young
            self.pass_time(quorum, 7)
            session.refresh()
            assert [name for name, _ in self.about(session)] == (["noSnapshot"] if is_known else [])

    def test_who_cannot_be_asked(self) -> None:
        with Quorum(controllers=3) as quorum:
            session = self.session(quorum, snapshot=True)
            assert session.image
            quorum.on("Fetch", faults.error(29))
            assert self.about(session) == []
            assert any(remark.startswith("not checked: the age of snapshots: ") for remark in session.remarks)


def test_progress_is_told(tmp_path: Path) -> None:
    session = opened(write(tmp_path))
    said: list[str] = []
    session.progress = lambda done, total, what: said.append(what)
    assert rows(session, "health") == []
    assert "looking at topics: 0 of 2" in said


class TestForPeople:
    def test_grouped_limited_and_toned(self, sample: Session) -> None:
        result = run(sample, "health")
        assert isinstance(result.readable, Report)
        summary, *groups = result.readable.sections
        assert (summary.title, summary.body) == ("Findings: 1 critical, 2 error, 69 warning, 16 info", {}), (
            "the sample has other findings: if that is right, write their number here"
        )
        titles = [section.title for section in groups]
        assert all(isinstance(title, StyledText) and title.tone == title.partition(":")[0] for title in titles)
        shown = "\n".join(lines(sample, "health", width=200))
        assert "… 7 more, with the same next step: health --where 'finding == atMinIsr'" in shown
        assert all(f"{title}\n  /image/" in shown for title in titles) and shown.count("next: ") >= len(groups)
        everything = "health --where 'finding == atMinIsr' --columns path,commands -o jsonl"
        assert f"    … and 11 more like it: {everything}" in shown

    def test_what_it_proposes_works(self, sample: Session) -> None:
        assert len(rows(sample, "health --where 'finding == atMinIsr'")) == 32

    def test_colours_follow_the_level(self, sample: Session) -> None:
        chunks = "".join(render(run(sample, "health"), "text", color=True))
        assert "\x1b[1;97;41mcritical: offlinePartition" in chunks
        assert "\x1b[1;38;5;166mwarning: atMinIsr" in chunks

    def test_wide_has_all(self, sample: Session) -> None:
        assert len(lines(sample, "health -o wide")) == 1 + len(rows(sample, "health"))

    def test_a_tone_that_no_style_has_is_no_colour(self) -> None:
        page = Report([Section("a", StyledText("title", "\x1b[31m"), {"b": 1})])
        assert "".join(render(page, "text", color=True)).startswith("\x1b[1mtitle\x1b[0m\n")


def test_golden(tmp_path: Path) -> None:
    session = opened(write(tmp_path, changed(isr=[1]), scram("bob", 4096)))
    assert "\n".join(lines(session, "health", width=120)) == (
        "Findings: 1 error, 1 warning, 1 info\n"
        "\n"
        "error: underMinIsr (1): fewer in-sync replicas than min.insync.replicas: acks=all is refused\n"
        "  /image/topics/byName/orders/0  isr 1 of replicas 1,2,3, min.insync.replicas 2\n"
        "  next: see the server.log of brokers 2 and 3, which run and are not in sync; if they are gone for good,"
        " start a\n    further broker: none that runs could take a replica\n"
        "\n"
        "warning: underReplicated (1): fewer in-sync replicas than replicas\n"
        "  /image/topics/byName/orders/0  isr 1 of replicas 1,2,3\n"
        "  next: see the server.log of brokers 2 and 3, which run and are not in sync; if they are gone for good,"
        " start a\n    further broker: none that runs could take a replica\n"
        "\n"
        "info: fewScramIterations (1): fewer iterations than are asked for today\n"
        "  /image/scram/SCRAM-SHA-256/bob  4096 iterations\n"
        "  next: set the password again:\n"
        "    kafka-configs.sh --bootstrap-server h:9092 --alter --entity-type users --entity-name bob --add-config"
        " 'SCRAM-SHA-256=[iterations=10000,password=PASSWORD]'"
    )
    line = "health --where 'level == error'"
    step = (
        "see the server.log of brokers 2 and 3, which run and are not in sync; if they are gone for good, start a"
        " further broker: none that runs could take a replica"
    )
    assert "".join(render(run(session, line), "csv")) == (
        "level,finding,path,evidence,nextStep,commands\n"
        'error,underMinIsr,/image/topics/byName/orders/0,"isr 1 of replicas 1,2,3, min.insync.replicas 2",'
        f'"{step}",[]\n'
    )
    assert [json.loads(row) for row in "".join(render(run(session, line), "jsonl")).splitlines()] == [
        {
            "level": "error",
            "finding": "underMinIsr",
            "path": "/image/topics/byName/orders/0",
            "evidence": "isr 1 of replicas 1,2,3, min.insync.replicas 2",
            "nextStep": step,
            "commands": [],
        }
    ]


@pytest.mark.parametrize("fmt", FORMATS)
def test_every_format(fmt: str, sample: Session) -> None:
    assert "offlinePartition" in "".join(render(run(sample, "health"), fmt))


def test_a_wrong_level(sample: Session) -> None:
    with pytest.raises(UsageError):
        run(sample, "health --fail-on fatal")


def test_next_steps_are_written_only_for_what_is_shown(monkeypatch: pytest.MonkeyPatch, sample: Session) -> None:
    """There may be 100,000 findings, and `status` shows none of their steps."""
    written = []

    def noted(*arguments: Any) -> Any:
        written.append(arguments)
        return next_step(*arguments)

    monkeypatch.setattr("kshell.metadata.health.check.next_step", noted)
    run(sample, "status")
    found = rows(sample, "health --columns finding,path")
    assert len(found) > 10 and written == []
    assert all(row["nextStep"] for row in rows(sample, "health --columns nextStep")) and written


@pytest.mark.parametrize("line", ["health", "partitions --offline --fail-if-any"])
def test_a_log_of_control_records_alone_answers_nothing(tmp_path: Path, line: str) -> None:
    builders.write_log(tmp_path, builders.control_batch([builders.leader_change()]))
    session = opened(tmp_path)
    result = run(session, line)
    assert exit_code_of(result, session) == EXIT_SOURCE
    assert "no metadata record has taken effect yet: the log says nothing about the cluster's state" in session.notes()
