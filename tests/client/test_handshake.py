"""From an address to a connection that may ask: SASL after the versions, deadlines, and nothing left open."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from kshell.client.connection import Connection
from kshell.client.negotiation import connect
from kshell.errors import AuthenticationError, ConnectError, NodeError, ServerError, UnsupportedVersionError, UsageError
from kshell.protocol.messages.cluster import DESCRIBE_CLUSTER
from kshell.protocol.names import error_codes
from tests.server import Quorum, faults, settings
from tests.server.sasl import Scram

USER, PASSWORD = "me,=you", "swordfish-ß"
SCRAMS = ["SCRAM-SHA-256", "SCRAM-SHA-512"]
MECHANISMS = ["PLAIN", *SCRAMS]


@pytest.fixture
def quorum() -> Iterator[Quorum]:
    with Quorum(users={USER: PASSWORD}) as made:
        yield made


def dial(quorum: Quorum, mechanism: str, password: str = PASSWORD, user: str = USER, **more: str) -> Connection:
    module = "plain.Plain" if mechanism == "PLAIN" else "scram.Scram"
    line = f'org.apache.kafka.common.security.{module}LoginModule required username="{user}" password="{password}";'
    made = settings(
        security_protocol="SASL_PLAINTEXT", sasl_mechanism=mechanism, sasl_jaas_config=line,
        **({"sasl_plain_allow_plaintext": "true"} | more),
    )  # fmt: skip
    return quorum.keep(connect("127.0.0.1", quorum.leader.port, made))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_sasl_comes_after_the_versions_and_before_all_else(quorum: Quorum, mechanism: str) -> None:
    answer = dial(quorum, mechanism).request(DESCRIBE_CLUSTER, {"endpointType": 2})
    assert answer.body["clusterId"] == quorum.cluster_id
    steps = ["SaslAuthenticate"] * (1 if mechanism == "PLAIN" else 2)
    assert [asked.api for asked in quorum.asked] == ["ApiVersions", "SaslHandshake", *steps, "DescribeCluster"]


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("who", [{"password": "wrong"}, {"user": "nobody"}])
def test_who_is_not_believed_is_told_so(quorum: Quorum, mechanism: str, who: dict[str, str]) -> None:
    with pytest.raises(AuthenticationError) as caught:
        dial(quorum, mechanism, **who)
    assert mechanism in caught.value.message
    assert "Authentication failed" in caught.value.message
    assert "sasl.jaas.config" in str(caught.value.hint)
    assert "wrong" not in caught.value.message + str(caught.value.hint)
    assert caught.value.exit_code == 3


def test_a_mechanism_that_is_not_enabled_names_those_that_are(quorum: Quorum) -> None:
    quorum.mechanisms = ["SCRAM-SHA-512", "\x1b[31mPLAIN"]
    with pytest.raises(AuthenticationError, match="does not take SCRAM-SHA-256") as caught:
        dial(quorum, "SCRAM-SHA-256")
    assert "SCRAM-SHA-512" in str(caught.value.hint)


def test_a_listener_that_offers_no_sasl_is_unsupported(quorum: Quorum) -> None:
    del quorum.leader.ranges[17]
    with pytest.raises(UnsupportedVersionError):
        dial(quorum, "PLAIN")


@pytest.mark.parametrize("mechanism", SCRAMS)
@pytest.mark.parametrize(
    "wrong",
    [
        Scram(good_signature=False),
        Scram(iterations=4095),
        Scram(iterations=100_000_000),
        Scram(nonce=lambda client: client),
        Scram(nonce=lambda client: "x" + client),
    ],
    ids=["signature", "few iterations", "many iterations", "nonce of the client alone", "nonce of another"],
)
def test_a_server_that_cannot_prove_itself_is_not_believed(quorum: Quorum, mechanism: str, wrong: Scram) -> None:
    quorum.scram = wrong
    begin = time.monotonic()
    with pytest.raises(AuthenticationError):
        dial(quorum, mechanism)
    assert time.monotonic() - begin < 2


def test_a_hang_up_during_sasl_may_pass(quorum: Quorum) -> None:
    """A server that refuses says so (KIP-152); one that is stopped does not."""
    quorum.on("SaslAuthenticate", faults.hang_up)
    with pytest.raises(ConnectError, match="PLAIN: the peer closed the connection") as caught:
        dial(quorum, "PLAIN")
    assert "log" in str(caught.value.hint)


def test_an_exchange_without_an_end_ends(quorum: Quorum) -> None:
    quorum.bodies["SaslAuthenticate"] = {"authBytes": b"r=,s=,i="}
    with pytest.raises(NodeError):
        dial(quorum, "SCRAM-SHA-256")
    assert len(quorum.asked_for("SaslAuthenticate")) <= 16


def test_sasl_without_a_password_for_this_client_is_a_hang_up(quorum: Quorum) -> None:
    connection = quorum.keep(connect("127.0.0.1", quorum.leader.port, settings()))
    with pytest.raises(NodeError, match="closed the connection"):
        connection.request(DESCRIBE_CLUSTER, {"endpointType": 2})


def test_plain_without_tls_asks_for_leave_first(quorum: Quorum) -> None:
    with pytest.raises(UsageError, match="not encrypted"):
        dial(quorum, "PLAIN", sasl_plain_allow_plaintext="false")
    assert quorum.asked_for("SaslAuthenticate") == []


@pytest.mark.parametrize("api", ["SaslHandshake", "SaslAuthenticate"])
@pytest.mark.parametrize("code", [code for code in (*error_codes(), 4711, -2) if code])
def test_every_error_code_is_a_typed_error(quorum: Quorum, api: str, code: int) -> None:
    quorum.on(api, faults.error(code, message="said \x1b[31m so"))
    with pytest.raises((AuthenticationError, ServerError)) as caught:
        dial(quorum, "SCRAM-SHA-512")
    assert (caught.value.node, caught.value.api, caught.value.exit_code) == (quorum.leader.address, api, 3)
