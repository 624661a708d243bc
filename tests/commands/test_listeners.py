"""Controllers with several listeners, and a principal that may not ask who they are: it stays at the listener given."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from kshell.client.address import addresses
from kshell.client.nodes import CONTROLLER, ClusterNode, Nodes
from kshell.engine.session import Session
from kshell.errors import TlsError
from kshell.metadata.families.cluster import Listener
from kshell.protocol.decoder import Message
from kshell.sources.quorum.reachable import controller_addresses
from kshell.sources.quorum.source import QuorumSource
from tests import builders
from tests.commands.shell import rows, run
from tests.commands.test_loggers import live
from tests.kafka.certificates import Authority
from tests.server import Node, Quorum, faults, settings

DENIED = 31
ELSEWHERE = 1
"""A port where nobody listens: that of a listener which this client cannot use."""


def registered(node: Node, host: str = "127.0.0.1", name: str = "CSASL", protocol: int = 0) -> bytes:
    """A controller with a listener that is first by name and does not answer, and its own one."""
    points = [
        {"name": "CBAD", "host": "127.0.0.1", "port": ELSEWHERE, "securityProtocol": 0},
        {"name": name, "host": host, "port": node.port, "securityProtocol": protocol},
    ]
    return builders.value(
        "REGISTER_CONTROLLER", controllerId=node.id, incarnationId=builders.uuid(node.id), zkMigrationReady=False,
        endPoints=points, features=[],
    )  # fmt: skip


@pytest.fixture
def quorum() -> Iterator[Quorum]:
    """DescribeCluster is denied, and DescribeQuorum names a listener that this client cannot use."""
    with Quorum(controllers=3) as made:
        made.on("DescribeCluster", faults.error(DENIED))
        made.on("DescribeQuorum", faults.change(lambda body: name_listener(body, ELSEWHERE)))
        made.append(*(registered(node) for node in made.controllers))
        live(made)  # the nodes have loggers
        yield made


def name_listener(body: Message, port: int) -> None:
    """Makes an answer to DescribeQuorum name that port for every controller."""
    for node in body["nodes"]:
        node["listeners"] = [{"name": "CONTROLLER", "host": "127.0.0.1", "port": port}]


def session_of(quorum: Quorum, *ids: int) -> Session:
    """A session whose bootstrap list is of these controllers."""
    return Session(quorum.keep(QuorumSource(",".join(quorum.node(one).address for one in ids), settings())))


def unasked(session: Session) -> list[str]:
    return [note for note in session.notes() if "was not asked" in note]


@pytest.mark.parametrize("ids", [(1, 2, 3), (3, 1), (1,), (2,)])
def test_every_controller_is_asked_at_the_listener_that_was_given(quorum: Quorum, ids: tuple[int, ...]) -> None:
    session = session_of(quorum, *ids)
    assert list(rows(session, "api-versions")[0]["nodes"]) == ["1", "2", "3"]
    assert unasked(session) == []
    assert rows(session, "compat KIP-630")[0]["usable"] is True
    assert rows(session, "api-versions --node 2")
    assert len(rows(session, "loggers 3")) == 2
    assert quorum.asked_for("DescribeConfigs")[-1].node_id == 3


@pytest.mark.parametrize("ids", [(1, 2, 3), (1,)])
def test_so_it_is_without_describe(quorum: Quorum, ids: tuple[int, ...]) -> None:
    quorum.on("DescribeQuorum", faults.error(DENIED))
    session = session_of(quorum, *ids)
    assert len(rows(session, "loggers 2")) == 2
    assert [asked.node_id for asked in quorum.asked_for("DescribeConfigs")] == [2]
    assert {node for row in rows(session, "api-versions --node 3") for node in row["nodes"]} == {"3"}


def test_a_given_address_counts_more_than_the_host_that_is_registered(quorum: Quorum) -> None:
    """As with forwarded ports: the registered host has no address here."""
    quorum.append(*(registered(node, host="controller.invalid") for node in quorum.controllers))
    session = session_of(quorum, 1, 2, 3)
    assert list(rows(session, "api-versions")[0]["nodes"]) == ["1", "2", "3"]
    assert unasked(session) == []
    assert [row["address"] for row in rows(session, "controllers")] == [node.address for node in quorum.controllers]


def test_the_listeners_name_counts_more_than_its_protocol(quorum: Quorum) -> None:
    quorum.append(*(registered(node, protocol=1) for node in quorum.controllers))
    session = session_of(quorum, 1)
    assert list(rows(session, "api-versions")[0]["nodes"]) == ["1", "2", "3"]
    assert unasked(session) == []


def test_an_address_that_no_registration_names() -> None:
    """A balancer's: its port tells the listener; if that is unknown, too, the first one with the protocol is taken."""
    points = {
        number: [
            Listener("CONTROLLER", f"c{number}", 9092, "PLAINTEXT"),
            Listener("CSASL", f"c{number}", 9093, "PLAINTEXT"),
            Listener("OTHER", f"c{number}", 9094, "SSL"),
        ]
        for number in (1, 2)
    }
    points[3] = points[2][2:]
    for given, port in (("balancer:9093", 9093), ("balancer:1", 9092), ("c9:9092,balancer:9093", 9092)):
        found = controller_addresses(Nodes(CONTROLLER, addresses(given), settings()), points)
        assert found == {number: (f"c{number}", port) for number in (1, 2)}, given
    nodes = Nodes(CONTROLLER, addresses("balancer:9093,C2:9093"), settings())
    nodes.learn(ClusterNode(1, ("balancer", 9093)))
    assert controller_addresses(nodes, points) == {1: ("balancer", 9093), 2: ("C2", 9093)}


def test_without_registrations_the_given_addresses_are_asked(quorum: Quorum) -> None:
    """Who may describe the quorum and fetch nothing does not know whose they are, but for the one that leads."""
    quorum.on("Fetch", faults.error(DENIED))
    quorum.elect(2)
    session = session_of(quorum, 1, 2, 3)
    names = list(rows(session, "api-versions")[0]["nodes"])
    assert names == ["2", quorum.node(1).address, quorum.node(3).address]
    assert unasked(session) == []


def test_the_hint_leads_to_no_certificate_that_is_not_needed(quorum: Quorum, tmp_path: Path) -> None:
    """The address that DescribeQuorum names is of a listener that wants another login than the one given."""
    authority = Authority()
    pair = authority.server()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    (tmp_path / "server.pem").write_text(pair.key_pem() + pair.pem)
    tls.load_cert_chain(tmp_path / "server.pem")
    plain, mutual = quorum.node(1), quorum.node(3)
    wants = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    wants.load_cert_chain(tmp_path / "server.pem")
    wants.verify_mode = ssl.CERT_REQUIRED
    wants.load_verify_locations(cadata=authority.pem)
    plain.tls, mutual.tls = tls, wants
    quorum.on("Fetch", faults.error(DENIED))
    quorum.on("DescribeQuorum", faults.change(lambda body: name_listener(body, mutual.port)))
    given = settings(security_protocol="SSL", ssl_truststore_certificates=authority.pem)
    session = Session(quorum.keep(QuorumSource(plain.address, given)))
    for line in ("api-versions --node 3", "loggers 3"):
        with pytest.raises(TlsError, match="client certificate") as raised:
            run(session, line)
        assert raised.value.hint == (
            "DescribeQuorum names this address, and it may be of another listener than those that were given: list"
            " every controller, or allow ALTER on CLUSTER:kafka-cluster"
        )
