"""Peers that never finish: TLS, ApiVersions, SASL and frames in drops end at their deadline, as typed errors."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import repeat

import pytest

from kshell.client.connection import MAX_FRAME, SocketTransport
from kshell.client.negotiation import connect
from kshell.client.settings import Settings
from kshell.errors import AuthenticationError, NodeError, ProtocolError, SourceTimeoutError
from kshell.protocol.decoder import Message
from tests.server import Quorum, faults, settings

TIMEOUT = 0.8
SLACK = 3.0
"""More seconds for a machine that is busy."""


@contextlib.contextmanager
def trickling(parts: Callable[[], Iterable[bytes]], pause: float = 0.05) -> Iterator[int]:
    """A port where every connection is given bytes that nobody asked for, one part after another."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve(connection: socket.socket) -> None:
            with connection, contextlib.suppress(OSError):
                for part in parts():
                    connection.sendall(part)
                    if over.wait(pause):
                        return

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        try:
            yield listener.getsockname()[1]
        finally:
            over.set()


def hasty(**properties: str) -> Settings:
    return settings(
        request_timeout_ms="800", socket_connection_setup_timeout_ms="800", default_api_timeout_ms="800", **properties
    )


def refusal(port: int, made: Settings) -> NodeError:
    begin = time.monotonic()
    with pytest.raises(NodeError) as caught:
        connect("127.0.0.1", port, made)
    assert time.monotonic() - begin < TIMEOUT + SLACK
    assert f"127.0.0.1:{port}" in caught.value.node
    return caught.value


def test_a_tls_handshake_in_drops_ends_at_the_deadline() -> None:
    made = hasty(security_protocol="SSL")
    with trickling(lambda: [b"\x16\x03\x03\x40\x00", *repeat(b"\x02", 1000)]) as port:
        assert isinstance(refusal(port, made), SourceTimeoutError)


def test_a_frame_in_drops_ends_at_the_deadline() -> None:
    with trickling(lambda: [b"\0\0\1\0\0\0\0\1", *repeat(b"\0", 1000)]) as port:
        error = refusal(port, hasty())
        assert isinstance(error, SourceTimeoutError)
        assert error.api == "ApiVersions"


def test_a_length_in_drops_ends_at_the_deadline() -> None:
    with trickling(lambda: [b"\0", *repeat(b"", 1000)]) as port:
        assert isinstance(refusal(port, hasty()), SourceTimeoutError)


@pytest.mark.parametrize("size", [MAX_FRAME + 1, 0x7FFFFFFF, -1, -0x80000000])
def test_a_frame_beyond_the_cap_is_refused_at_its_length(size: int) -> None:
    with trickling(lambda: [size.to_bytes(4, "big", signed=True)]) as port:
        error = refusal(port, hasty())
        assert isinstance(error, ProtocolError)
        assert f"{size} bytes is claimed" in error.reason


def test_a_peer_that_reads_a_byte_now_and_then_ends_at_the_deadline() -> None:
    """A request larger than what the socket takes at once is under way for the time that is left, and no longer."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                while not over.wait(0.05):
                    connection.recv(1)

        threading.Thread(target=serve, daemon=True).start()
        transport = SocketTransport("127.0.0.1", listener.getsockname()[1], time.monotonic() + 2)
        begin = time.monotonic()
        with pytest.raises(SourceTimeoutError):
            transport.send(bytes(64 << 20), begin + TIMEOUT)
        assert time.monotonic() - begin < TIMEOUT + SLACK
        over.set()


LOGIN = {
    "security_protocol": "SASL_PLAINTEXT",
    "sasl_plain_allow_plaintext": "true",
}
JAAS = 'org.apache.kafka.common.security.{}.{}LoginModule required username="alice" password="secret";'


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "OAUTHBEARER"])
@pytest.mark.parametrize("api", ["ApiVersions", "SaslHandshake", "SaslAuthenticate"])
def test_a_server_that_hangs_while_we_log_in_costs_the_deadline(mechanism: str, api: str) -> None:
    with Quorum(users={"alice": "secret"}) as quorum:
        quorum.mechanisms.append("OAUTHBEARER")
        quorum.on(api, faults.slow(5, after=3))
        assert isinstance(refusal(quorum.leader.port, hasty(**login(mechanism))), SourceTimeoutError)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "OAUTHBEARER"])
@pytest.mark.parametrize("token", [b"", b"n", b"r=x,s=eA==,i=4096", b'{"status":"invalid_token"}', b"x" * (1 << 20)])
def test_a_server_that_asks_on_and_on_is_not_followed(mechanism: str, token: bytes) -> None:
    def spoil(body: Message) -> None:
        body.clear()
        body.update(errorCode=0, errorMessage=None, authBytes=token, sessionLifetimeMs=0)

    with Quorum(users={"alice": "secret"}) as quorum:
        quorum.mechanisms.append("OAUTHBEARER")
        quorum.on("SaslAuthenticate", faults.change(spoil))
        made = hasty(**login(mechanism))
        if token == b"" and mechanism != "SCRAM-SHA-256":
            connect("127.0.0.1", quorum.leader.port, made).close()  # nothing to say is how these two say yes
        else:
            error = refusal(quorum.leader.port, made)
            assert isinstance(error, AuthenticationError)
            assert len(error.message) < 20_000
        assert len(quorum.asked_for("SaslAuthenticate")) <= 3


def test_a_token_command_that_hangs_costs_the_deadline() -> None:
    with Quorum(users={"alice": "secret"}) as quorum:
        quorum.mechanisms.append("OAUTHBEARER")
        made = login("OAUTHBEARER") | {"request_timeout_ms": "30000", "sasl_oauthbearer_token_command": "sleep 20"}
        made["sasl_jaas_config"] = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"
        begin = time.monotonic()
        with pytest.raises(AuthenticationError, match="did not end within"):
            connect("127.0.0.1", quorum.leader.port, settings(**made), timeout=TIMEOUT)
        assert time.monotonic() - begin < TIMEOUT + SLACK


def test_a_refusal_as_long_as_a_frame_is_cut() -> None:
    with Quorum(users={"alice": "secret"}) as quorum:
        quorum.on("SaslAuthenticate", faults.error(58, message="no " * 10_000))
        error = refusal(quorum.leader.port, hasty(**login("PLAIN")))
        assert isinstance(error, AuthenticationError)
        assert len(error.message) < 10_000
        assert "more characters" in error.message


def login(mechanism: str) -> dict[str, str]:
    if mechanism == "OAUTHBEARER":
        module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
        jaas = f'{module} unsecuredLoginStringClaim_sub="alice";'
    else:
        name = "Plain" if mechanism == "PLAIN" else "Scram"
        jaas = JAAS.format(name.lower(), name)
    return LOGIN | {"sasl_mechanism": mechanism, "sasl_jaas_config": jaas}
