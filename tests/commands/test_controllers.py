"""controllers: registrations, voters that have none, and who leads."""

from __future__ import annotations

from typing import Any

from kshell.session import Session
from kshell.sources.brokers import BrokerSource
from kshell.sources.quorum import QuorumSource
from tests import builders
from tests.commands.shell import lines, rows
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
