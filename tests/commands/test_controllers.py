"""controllers: registrations, voters that have none, and who leads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kshell.engine.session import Session
from kshell.sources.brokers.source import BrokerSource
from kshell.sources.directory.files import METADATA_DIRECTORY
from kshell.sources.quorum.source import QuorumSource
from tests import builders
from tests.builders import batch, control_batch, leader_change, snapshot, write_log, write_snapshot
from tests.commands.shell import lines, opened, rows, sections, value
from tests.server import Quorum, settings

KEYS = ["id", "listeners", "isLeader", "incarnationId", "zkMigrationReady", "supportedFeatures", "address"]


def registered(node_id: int, port: int) -> bytes:
    """A controller's registration."""
    points: list[dict[str, Any]] = [{"name": "C", "host": "127.0.0.1", "port": port, "securityProtocol": 0}]
    features = [{"name": "kraft.version", "minSupportedVersion": 0, "maxSupportedVersion": 1}]
    return builders.value(
        "REGISTER_CONTROLLER",
        controllerId=node_id,
        incarnationId=builders.uuid(node_id),
        zkMigrationReady=False,
        endPoints=points,
        features=features,
    )


def test_what_the_image_holds_and_who_leads(sample: Session) -> None:
    found = rows(sample, "controllers")
    assert [(row["id"], row["isLeader"]) for row in found] == [(3000, True), (3001, False), (3002, False)]
    listener = found[0]["listeners"][0]
    assert list(listener) == ["name", "host", "port", "securityProtocol"]
    assert found[0]["address"] == f"{listener['host']}:{listener['port']}"
    assert found[0]["supportedFeatures"]["kraft.version"] == {"min": 0, "max": 1}


def test_text_reads_as_kafka_writes_listeners(sample: Session) -> None:
    assert lines(sample, "controllers")[1].split() == ["3000", "CONTROLLER://127.0.0.1:59749", "true"]


def test_voters_that_never_registered_have_their_ids() -> None:
    with Quorum(controllers=2, release="3.3") as quorum:
        session = Session(quorum.keep(QuorumSource(quorum.bootstrap, settings())))
        found = rows(session, "controllers")
        # The pretend log's LeaderChange names the leader alone; the quorum knows its voters.
        assert [(row["id"], row["listeners"], row["isLeader"]) for row in found] == [(1, None, True), (2, None, False)]
        assert found[0]["address"] == quorum.leader.address


def test_the_leader_moves() -> None:
    with Quorum(controllers=2) as quorum:
        quorum.append(*(registered(node.id, node.port) for node in quorum.controllers))
        session = Session(quorum.keep(QuorumSource(quorum.bootstrap, settings())))
        assert [row["isLeader"] for row in rows(session, "controllers")] == [True, False]
        quorum.elect(2)
        quorum.commit()
        assert session.refresh()
        found = rows(session, "controllers")
        assert [row["isLeader"] for row in found] == [False, True]
        assert [row["address"] for row in found] == [node.address for node in quorum.controllers]


def test_brokers_tell_voters_and_endpoints() -> None:
    with Quorum(controllers=2, brokers=1) as quorum:
        session = Session(quorum.keep(BrokerSource(quorum.bootstrap_servers, settings())))
        found = rows(session, "controllers")
        assert [(row["id"], row["isLeader"], row["address"]) for row in found] == [
            (node.id, node.id == 1, node.address) for node in quorum.controllers
        ]
        assert found[0]["listeners"][0]["securityProtocol"] is None


@pytest.fixture(params=["one image", "every image"])
def elections(request: pytest.FixtureRequest, tmp_path: Path) -> Session:
    """A log with three elections and a snapshot after the second; quorum-state knows of a fourth."""
    target = tmp_path / METADATA_DIRECTORY
    write_log(
        target,
        control_batch([leader_change(1, voters=(1, 2, 3))], 0, 1),
        batch([registered(number, 9000 + number) for number in (1, 2, 3)], 1, 1),
        control_batch([leader_change(2, voters=(1, 2, 3))], 4, 2),
        batch([registered(1, 9001)], 5, 2),
        batch([registered(2, 9002)], 6, 2),
        control_batch([leader_change(3, voters=(1, 2, 3))], 7, 3),
        batch([registered(3, 9003)], 8, 3),
    )
    write_snapshot(target, snapshot([registered(number, 9000 + number) for number in (1, 2, 3)], 2), 6, 2)
    (target / "quorum-state").write_text('{"leaderId":1,"leaderEpoch":4,"currentVoters":[{"voterId":9}]}')
    session = opened(target)
    if request.param == "every image":
        session.travels()
    return session


def leader_of(session: Session, suffix: str) -> tuple[int | None, int, list[int]]:
    """What every command that names the leader says at a point; they agree."""
    leading = [row["id"] for row in rows(session, f"controllers {suffix}") if row["isLeader"]]
    quorum, info, status = (
        sections(session, f"{command} {suffix}")[key]
        for command, key in (("quorum", ""), ("info", "quorum"), ("status", "quorum"))
    )
    tree = value(session, f"cat /quorum/leaderId {suffix}"), value(session, f"cat /quorum/leaderEpoch {suffix}")
    leader = tree[0]
    assert leading == ([] if leader is None else [leader])
    for facts in (quorum, info, status):
        assert (facts["leaderId"], facts["leaderEpoch"]) == tree
    voters = [voter["id"] for voter in quorum["voters"]]
    assert [voter["id"] for voter in info["voters"]] == voters == (status["voters"] or [])
    return (*tree, voters)


@pytest.mark.parametrize(
    ("offset", "leader"), [(0, 1), (3, 1), (4, 2), (5, 2), (6, 2), (7, 3), (8, 3), (99, 3)]
)  # fmt: skip
def test_as_of_a_point_the_leader_is_the_one_of_the_log(elections: Session, offset: int, leader: int) -> None:
    assert leader_of(elections, f"--as-of {offset}") == (leader, leader, [1, 2, 3])


def test_the_newest_leader_is_that_of_quorum_state(elections: Session) -> None:
    assert leader_of(elections, "")[:2] == (1, 4)


def test_a_leader_that_only_a_deleted_log_knew_is_unknown(tmp_path: Path) -> None:
    """A snapshot holds no LeaderChange: as of its end, nobody can say who led; today's leader is no answer."""
    target = tmp_path / METADATA_DIRECTORY
    write_snapshot(target, snapshot([registered(1, 9001)], 2), 6, 2)
    write_log(
        target,
        batch([registered(2, 9002)], 6, 2),
        control_batch([leader_change(3, voters=(1, 2, 3))], 7, 3),
        base_offset=6,
    )
    (target / "quorum-state").write_text('{"leaderId":3,"leaderEpoch":3,"currentVoters":[{"voterId":9}]}')
    session = opened(target)
    assert leader_of(session, "--as-of 5") == leader_of(session, "--as-of 6") == (None, 2, [])
    assert leader_of(session, "--as-of 7") == (3, 3, [1, 2, 3])


def test_the_leader_of_an_earlier_epoch_does_not_lead(tmp_path: Path) -> None:
    """The record that opened the last epoch is missing, and so is quorum-state."""
    target = tmp_path / METADATA_DIRECTORY
    write_log(target, control_batch([leader_change(1, voters=(1, 2, 3))], 0, 1), batch([registered(1, 9001)], 1, 1))
    write_snapshot(target, snapshot([registered(1, 9001)], 3), 6, 3)
    write_log(target, batch([registered(2, 9002)], 6, 3), base_offset=6)
    assert leader_of(opened(target), "") == (None, 3, [1, 2, 3])
    assert leader_of(opened(target), "--as-of 6")[:2] == (None, 3)


def test_a_running_quorum_is_not_asked_about_the_past() -> None:
    with Quorum(controllers=2) as quorum:
        quorum.append(*(registered(node.id, node.port) for node in quorum.controllers))
        before = quorum.log.high_watermark - 1
        quorum.elect(2)
        quorum.commit()
        session = Session(quorum.keep(QuorumSource(quorum.bootstrap, settings())))
        assert [row["isLeader"] for row in rows(session, "controllers")] == [False, True]
        assert [row["isLeader"] for row in rows(session, f"controllers --as-of {before}")] == [True, False]
        assert value(session, f"cat /quorum/leaderId --as-of {before}") == 1
        assert sections(session, f"info --as-of {before}")["quorum"]["leaderId"] == 1
