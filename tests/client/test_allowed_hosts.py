"""``allowed.hosts``: a node cannot send kshell, and its credentials, to a host that the user does not want."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from kshell.client.address import addresses
from kshell.client.allowed_hosts import AllowedHosts
from kshell.client.nodes import BROKER, CONTROLLER, Nodes, ask_versions
from kshell.client.properties import Properties
from kshell.cluster.nodes import Member, connection_to
from kshell.errors import HostNotAllowedError, UsageError
from tests.server import PLAIN_LOGIN, Quorum, settings


def allowed(text: str) -> AllowedHosts:
    hosts = AllowedHosts.of(Properties({"allowed.hosts": text}))
    assert hosts is not None
    return hosts


@pytest.fixture
def quorum() -> Iterator[Quorum]:
    """Two controllers, which name each other as 127.0.0.1."""
    with Quorum(2) as running:
        yield running


def _nodes(quorum: Quorum, hosts: str) -> Nodes:
    bootstrap = f"localhost:{quorum.controllers[0].port}"
    return quorum.keep(Nodes(CONTROLLER, addresses(bootstrap), settings(allowed_hosts=hosts)))


def test_a_node_on_another_host_is_not_connected_to(quorum: Quorum) -> None:
    nodes = _nodes(quorum, "*.kafka.example")
    nodes.describe(nodes.any())
    other = quorum.controllers[1]
    with pytest.raises(HostNotAllowedError, match=r"127\.0\.0\.1:\d+: allowed.hosts does not list this host") as error:
        nodes.node(other.id)
    assert error.value.hint == "if the host belongs to the cluster, add it: -X allowed.hosts=…,127.0.0.1"
    assert other.connections == 0


def test_nor_is_it_asked_for_its_versions(quorum: Quorum) -> None:
    nodes = _nodes(quorum, "*.kafka.example")
    other = ("127.0.0.1", quorum.controllers[1].port)
    assert isinstance(ask_versions([other], nodes.settings)[other].failure, HostNotAllowedError)
    assert quorum.controllers[1].connections == 0


def test_nor_is_a_broker_that_a_registration_names_logged_in_at() -> None:
    """Its address comes from the cluster, also where it is the first one that is asked of its kind."""
    with Quorum(1, 1, users={"u": "p"}) as quorum:
        broker = quorum.brokers[0]
        bootstrap = addresses(f"localhost:{quorum.controllers[0].port}")
        for hosts, is_connected in (("*.kafka.example", False), ("127.0.0.1", True)):
            nodes = quorum.keep(Nodes(CONTROLLER, bootstrap, settings(**PLAIN_LOGIN, allowed_hosts=hosts)))
            member = Member(BROKER, broker.id, ("127.0.0.1", broker.port))
            with contextlib.nullcontext() if is_connected else pytest.raises(HostNotAllowedError):
                connection_to(nodes, member).close()
            assert bool(broker.connections) is is_connected


@pytest.mark.parametrize("hosts", ["127.0.0.1", "127.0.0.0/8", "*.kafka.example, 127.0.0.1"])
def test_a_listed_host_is_connected_to(quorum: Quorum, hosts: str) -> None:
    nodes = _nodes(quorum, hosts)
    nodes.describe(nodes.any())
    assert nodes.node(quorum.controllers[1].id).is_open


def test_without_the_property_every_host_may_be_connected_to() -> None:
    assert AllowedHosts.of(Properties({})) is None
    assert settings().allowed_hosts is None


@pytest.mark.parametrize(
    ("hosts", "host", "is_allowed"),
    [
        ("broker-1.example", "BROKER-1.example", True),
        ("broker-1.example", "broker-1.example.", True),
        ("broker-1.example", "broker-1.example.evil", False),
        ("*.example", "a.b.example", True),
        ("*.example", "example", False),
        ("*.example", "badexample", False),
        ("10.0.0.0/8", "10.255.0.1", True),
        ("10.0.0.0/8", "11.0.0.1", False),
        ("10.0.0.0/8", "ten.example", False),
        ("[fd00::]/8", "fd12::1", True),
        ("::1", "::1", True),
    ],
)
def test_hosts_match_by_name_domain_and_network(hosts: str, host: str, is_allowed: bool) -> None:
    assert allowed(hosts).allows(host) is is_allowed


@pytest.mark.parametrize("hosts", ["10.0.0.0/99", "*", "*.*.example", "a*b", "*."])
def test_a_pattern_that_cannot_be_meant_is_refused(hosts: str) -> None:
    with pytest.raises(UsageError, match=r"allowed\.hosts: .* is not a (host|network)"):
        allowed(hosts)
