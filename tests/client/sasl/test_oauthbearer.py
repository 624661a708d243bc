"""OAUTHBEARER: its messages, and where tokens come from (a real https server in this process, files, commands)."""

from __future__ import annotations

import base64
import contextlib
import json
import shlex
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain, repeat
from pathlib import Path

import pytest

from kshell.client.properties import Secret
from kshell.client.sasl.mechanisms import mechanism
from kshell.client.sasl.oauth import unsecured
from kshell.client.settings import Settings
from kshell.errors import AuthenticationError, UsageError
from tests.kafka.certificates import Authority

NODE = "controller-1:9093"
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"


def settings(jaas: str = "", **keys: str) -> Settings:
    given = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER", "sasl.jaas.config": f"{MODULE} {jaas};"}
    return Settings.of(given | {key.replace("_", "."): value for key, value in keys.items()})


def first_of(made: Settings) -> bytes:
    return next(mechanism(made, NODE, tls=True).exchange())


class TestMessages:
    def test_token_and_extensions(self, tmp_path: Path) -> None:
        (tmp_path / "t").write_text("abc.def\n")
        made = settings('extension_logicalCluster="lkc 1"', sasl_oauthbearer_token_file=str(tmp_path / "t"))
        exchange = mechanism(made, NODE, tls=True).exchange()
        assert next(exchange) == b"n,,\x01auth=Bearer abc.def\x01logicalCluster=lkc 1\x01\x01"
        with pytest.raises(StopIteration):
            exchange.send(b"")

    @pytest.mark.parametrize(
        "option", ['extension_auth="x"', 'extension_a1="x"', 'extension_a="\\1"', 'extension_a=""']
    )
    def test_extensions_that_are_not_valid(self, tmp_path: Path, option: str) -> None:
        (tmp_path / "t").write_text("abc")
        with pytest.raises(UsageError, match="extension"):
            first_of(settings(option, sasl_oauthbearer_token_file=str(tmp_path / "t")))

    @pytest.mark.parametrize(
        ("answer", "said"),
        [
            (b'{"status":"invalid_token","scope":""}', "status=invalid_token"),
            (b"no JSON", "no JSON"),
            (b"[" * 5000, "[[["),
            (b"\xff", "\ufffd"),
        ],
    )
    @pytest.mark.parametrize("how", ["send", "throw"])
    def test_a_refusal_is_acknowledged_and_quoted(self, tmp_path: Path, answer: bytes, said: str, how: str) -> None:
        (tmp_path / "t").write_text("abc")
        exchange = mechanism(settings(sasl_oauthbearer_token_file=str(tmp_path / "t")), NODE, tls=True).exchange()
        next(exchange)
        assert exchange.send(answer) == b"\x01"
        with pytest.raises(AuthenticationError, match="the token was refused") as raised:
            exchange.send(b"") if how == "send" else exchange.throw(AuthenticationError(NODE, "code 58"))
        assert said in raised.value.message
        assert len(raised.value.message) < 1200
        assert raised.value.node == NODE


class TestFilesAndCommands:
    def test_a_file_url_as_javas_file_token_retriever(self, tmp_path: Path) -> None:
        (tmp_path / "my token").write_text(" abc \n")
        url = f"file://{tmp_path}/my%20token"
        assert b"Bearer abc\x01" in first_of(settings(sasl_oauthbearer_token_endpoint_url=url))

    def test_a_command(self) -> None:
        command = f"{shlex.quote(sys.executable)} -c 'print(\"a.b\")'"
        assert b"Bearer a.b\x01" in first_of(settings(sasl_oauthbearer_token_command=command))

    @pytest.mark.parametrize(
        ("command", "reason"),
        [
            ("/nonexistent/program", "No such file"),
            ("'", "cannot be split"),
            (f"{shlex.quote(sys.executable)} -c 'print(\"hunter2\"); raise SystemExit(3)'", "ended with code 3"),
            (f"{shlex.quote(sys.executable)} -c 'print(\"hunter2 x\")'", "no bearer token"),
            (f"{shlex.quote(sys.executable)} -c 'import time; time.sleep(60)'", "did not end within 0.3 s"),
        ],
    )
    def test_commands_that_give_none(self, command: str, reason: str) -> None:
        timeout = {"request_timeout_ms": "300"} if "sleep" in command else {}
        with pytest.raises((AuthenticationError, UsageError), match=reason) as raised:
            first_of(settings(sasl_oauthbearer_token_command=command, **timeout))
        assert "hunter2" not in raised.value.message

    def test_files_that_hold_none(self, tmp_path: Path) -> None:
        (tmp_path / "t").write_text("hunter2 hunter3")
        with pytest.raises(AuthenticationError, match="no bearer token") as raised:
            first_of(settings(sasl_oauthbearer_token_file=str(tmp_path / "t")))
        assert "hunter" not in raised.value.message
        with pytest.raises(UsageError, match="No such file"):
            first_of(settings(sasl_oauthbearer_token_file=str(tmp_path / "none")))


class TestUnsecured:
    def test_as_java_makes_it(self) -> None:
        options = {
            "StringClaim_sub": "älice", "NumberClaim_n": "1.5", "ListClaim_scope": "|a|b", "LifetimeSeconds": "60",
        }  # fmt: skip
        head, claims, signature = unsecured({k: Secret(v) for k, v in options.items()}, 1000.5009).split(".")
        assert signature == ""
        assert json.loads(base64.urlsafe_b64decode(head + "==")) == {"alg": "none"}
        found = json.loads(base64.urlsafe_b64decode(claims + "=="))
        assert found == {"sub": "älice", "n": 1.5, "scope": ["a", "b"], "exp": 1060.5, "iat": 1000.5}

    @pytest.mark.parametrize(
        "options",
        [{"StringClaim_x": "1"}, {"StringClaim_sub": "a", "NumberClaim_n": "x"}, {"StringClaim_exp": "1"}],
    )
    def test_faults(self, options: dict[str, str]) -> None:
        with pytest.raises(UsageError):
            unsecured({name: Secret(value) for name, value in options.items()}, 0)


Answer = Callable[[BaseHTTPRequestHandler], None]


class Endpoint:
    """A token endpoint; ``answer`` does what it is told to."""

    def __init__(self, folder: Path) -> None:
        authority = Authority()
        self.ca = folder / "ca.pem"
        self.ca.write_text(authority.pem)
        pair = authority.server("localhost")
        (folder / "server.pem").write_text(pair.key_pem() + pair.pem)
        self.answer: Answer = lambda handler: None
        self.requests: list[tuple[dict[str, str], str]] = []
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def handle(self) -> None:
                with contextlib.suppress(OSError):  # a client that does not like the certificate
                    super().handle()

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                endpoint.requests.append((dict(self.headers), body))
                endpoint.answer(self)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "server.pem")
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def settings(self, host: str = "localhost", trust: bool = True, **keys: str) -> Settings:
        url = f"https://user:hunter4@{host}:{self.server.server_address[1]}/token?x=hunter5"
        more = {"ssl_truststore_location": str(self.ca)} if trust else {}
        jaas = 'clientId="my id" clientSecret="hunter2:ü" scope="a b"'
        return settings(jaas, sasl_oauthbearer_token_endpoint_url=url, **more, **keys)


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[Endpoint]:
    made = Endpoint(tmp_path)
    yield made
    made.server.shutdown()
    made.server.server_close()


def reply(status: int, body: bytes, **headers: str) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def requests_for_two(endpoint: Endpoint, answer: bytes) -> int:
    """How often the endpoint is asked for two connections."""
    endpoint.answer = reply(200, answer)
    made = endpoint.settings()
    first_of(made)
    first_of(made)
    return len(endpoint.requests)


def raw(parts: Callable[[], Iterable[bytes]], pause: float = 0.0) -> Answer:
    """Bytes in place of an HTTP answer, one part after another."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.close_connection = True
        with contextlib.suppress(OSError):
            for part in parts():
                handler.wfile.write(part)
                time.sleep(pause)

    return answer


OK = b"HTTP/1.1 200 OK\r\n"
ENDLESS: dict[str, tuple[Answer, str]] = {
    "a status line in drops": (raw(lambda: repeat(b"H"), 0.05), "no complete answer in time"),
    "headers in drops": (raw(lambda: chain([OK + b"X: "], repeat(b"x")), 0.05), "no complete answer in time"),
    "one header after another": (raw(lambda: chain([OK], repeat(b"X-A: b\r\n"))), "HTTPException"),
    "a header without an end": (raw(lambda: chain([OK + b"X: "], repeat(b"x" * 4096))), "too large|LineTooLong"),
    "100 Continue": (raw(lambda: repeat(b"HTTP/1.1 100 Continue\r\n\r\n")), "too large"),
    "100 Continue, slowly": (raw(lambda: repeat(b"HTTP/1.1 100 Continue\r\n\r\n"), 0.05), "no complete answer in time"),
    "100 Continue with headers": (raw(lambda: repeat(b"HTTP/1.1 100 Continue\r\nX: y\r\n\r\n")), "too large"),
    "a body in drops": (raw(lambda: chain([OK + b"Content-Length: 999\r\n\r\n"], repeat(b" ")), 0.05), "in time"),
    "a body without an end": (raw(lambda: chain([OK + b"\r\n"], repeat(b" " * 4096))), "too large"),
    "a body that is cut": (raw(lambda: [OK + b"Content-Length: 999\r\n\r\n{}"]), "is truncated"),
    "a body of an exabyte": (
        raw(lambda: chain([OK + b"Content-Length: 1152921504606846976\r\n\r\n"], repeat(b" " * 4096))),
        "too large",
    ),
    "chunks without an end": (
        raw(lambda: chain([OK + b"Transfer-Encoding: chunked\r\n\r\n"], repeat(b"400\r\n%1024s\r\n" % b" "))),
        "too large",
    ),
    "chunks in drops": (
        raw(lambda: chain([OK + b"Transfer-Encoding: chunked\r\n\r\n"], repeat(b"1\r\n \r\n")), 0.05),
        "no complete answer in time",
    ),
    "a chunk of a negative size": (
        raw(lambda: chain([OK + b"Transfer-Encoding: chunked\r\n\r\n-5\r\n"], repeat(b" " * 4096))),
        "too large|is truncated",
    ),
    "no HTTP": (raw(lambda: [b"SSH-2.0-OpenSSH\r\n"]), "is not HTTP"),
    "nothing": (raw(lambda: []), "is not HTTP, or is truncated"),
}


class TestEndpoint:
    def test_client_credentials(self, endpoint: Endpoint) -> None:
        endpoint.answer = reply(200, b'{"access_token": "abc.def", "expires_in": 60}')
        assert b"Bearer abc.def\x01" in first_of(endpoint.settings())
        ((headers, body),) = endpoint.requests
        assert body == "grant_type=client_credentials&scope=a+b"
        assert headers["Authorization"] == "Basic " + base64.b64encode("my id:hunter2:ü".encode()).decode()
        assert headers["Content-Type"] == "application/x-www-form-urlencoded"

    def test_a_token_is_presented_again_until_it_is_old_or_refused(
        self, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        endpoint.answer = reply(200, b'{"access_token": "abc", "expires_in": 100}')
        made = endpoint.settings()
        clock = time.monotonic
        for _ in range(3):
            assert b"Bearer abc\x01" in first_of(made)
        assert len(endpoint.requests) == 1
        monkeypatch.setattr(time, "monotonic", lambda: clock() + 81)
        first_of(made)
        assert len(endpoint.requests) == 2
        exchange = mechanism(made, NODE, tls=True).exchange()
        next(exchange)
        exchange.send(b"{}")
        first_of(made)
        assert len(endpoint.requests) == 3

    @pytest.mark.parametrize(
        "lifetime",
        [
            b"",
            *(
                b', "expires_in": ' + value
                for value in (
                    b"0", b"-1", b"-86400", b'"0"', b'""', b'"soon"', b'"1e9"', b'" 9"', b"1e99", b"1e999", b"NaN",
                    b"9" * 400, b"9223372036854775808", b"true", b"null", b"[3600]", b'{"a": 1}', b"-0.0",
                )
            ),
        ],
    )  # fmt: skip
    def test_a_token_of_unknown_lifetime_is_not_kept(self, endpoint: Endpoint, lifetime: bytes) -> None:
        assert requests_for_two(endpoint, b'{"access_token": "abc"%s}' % lifetime) == 2

    @pytest.mark.parametrize(
        "lifetime", [b"60", b"3599", b"86399", b"86400", b"86401", b"31536000", b"9223372036854775807", b"3600.0",
                     b"0.9e5", b'"3599"', b'"86400"', b'"3600.5"']
    )  # fmt: skip
    def test_a_token_is_kept_however_long_it_is_good_for(self, endpoint: Endpoint, lifetime: bytes) -> None:
        assert requests_for_two(endpoint, b'{"access_token": "abc", "expires_in": %s}' % lifetime) == 1

    @pytest.mark.parametrize(
        ("lifetime", "until"),
        [
            (100, 80),
            (359, 287.2),
            (400, 100),
            (600, 300),
            (1500, 1200),
            (3600, 2880),
            (86400, 69120),
            (2592000, 2073600),
        ],
    )
    def test_a_token_is_renewed_when_java_would(
        self, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, lifetime: int, until: float
    ) -> None:
        """At 80 % of its lifetime, and 300 seconds before its end where there are as many."""
        endpoint.answer = reply(200, b'{"access_token": "abc", "expires_in": %d}' % lifetime)
        made = endpoint.settings()
        first_of(made)
        clock = time.monotonic
        monkeypatch.setattr(time, "monotonic", lambda: clock() + until - 10)
        first_of(made)
        assert len(endpoint.requests) == 1
        monkeypatch.setattr(time, "monotonic", lambda: clock() + until)
        first_of(made)
        assert len(endpoint.requests) == 2

    @pytest.mark.parametrize(
        ("lifetime", "expiry", "kept"),
        [
            (None, 3600, True),
            (None, 86400 * 30, True),
            (3600, -1, False),
            (None, -1, False),
            (None, None, False),
            (3600, None, True),
            (0, 3600, False),
            (None, "3600", False),
            (None, 1 << 70, False),
        ],
    )
    def test_a_jwt_says_itself_when_it_ends(
        self, endpoint: Endpoint, lifetime: int | None, expiry: int | str | None, kept: bool
    ) -> None:
        claims = {} if expiry is None else {"exp": time.time() + expiry if isinstance(expiry, int) else expiry}
        middle = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
        answer: dict[str, object] = {"access_token": f"eyJhbGciOiJub25lIn0.{middle}.c2ln"}
        answer |= {} if lifetime is None else {"expires_in": lifetime}
        assert requests_for_two(endpoint, json.dumps(answer).encode()) == (1 if kept else 2)

    @pytest.mark.parametrize("middle", ["", "!", "bm8", "W10", "eyJleHAiOiBbXX0", "e30", "_" * 70_000])
    def test_what_only_looks_like_a_jwt_is_a_token_all_the_same(self, endpoint: Endpoint, middle: str) -> None:
        if middle != "!":  # no character of a token
            answer = json.dumps({"access_token": f"a.{middle}.c", "expires_in": 3600}).encode()
            assert requests_for_two(endpoint, answer) == 1

    def test_encoded_header(self, endpoint: Endpoint) -> None:
        endpoint.answer = reply(200, b'{"access_token": "abc"}')
        first_of(endpoint.settings(sasl_oauthbearer_header_urlencode="true"))
        assert (
            endpoint.requests[0][0]["Authorization"] == "Basic " + base64.b64encode(b"my+id:hunter2%3A%C3%BC").decode()
        )

    @pytest.mark.parametrize(
        ("answer", "reason"),
        [
            (reply(401, b'{"error": "invalid_client", "error_description": "no"}'), "answered 401: invalid_client: no"),
            (reply(500, b"<html>"), "answered 500"),
            (reply(302, b"", Location="http://127.0.0.1:1/"), "answered 302"),
            (reply(200, b"{}"), "without an access_token"),
            (reply(200, b"[1"), "without an access_token"),
            (reply(200, b'{"access_token": 1}'), "without an access_token"),
            (reply(200, b'{"access_token": "a b"}'), "no bearer token"),
            (
                reply(200, b'{"access_token": "' + b"a" * (1 << 21) + b'"}'),
                "the answer is too large for one with a token",
            ),
        ],
    )
    def test_answers_that_are_no_token(self, endpoint: Endpoint, answer: Answer, reason: str) -> None:
        endpoint.answer = answer
        with pytest.raises(AuthenticationError) as raised:
            first_of(endpoint.settings())
        assert reason in raised.value.message
        assert raised.value.node == NODE
        assert "hunter" not in raised.value.message
        assert len(endpoint.requests) == 1

    @pytest.mark.parametrize("drops", [False, True])
    def test_a_slow_answer_ends_at_the_deadline(self, endpoint: Endpoint, drops: bool) -> None:
        def answer(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(200)
            handler.send_header("Content-Length", "1000")
            handler.end_headers()
            for _ in range(100):
                try:
                    handler.wfile.write(b" " if drops else b"")
                except OSError:
                    return
                time.sleep(0.05)

        endpoint.answer = answer
        begin = time.monotonic()
        with pytest.raises(AuthenticationError):
            first_of(endpoint.settings(sasl_login_read_timeout_ms="400"))
        assert time.monotonic() - begin < 3

    @pytest.mark.parametrize("case", ENDLESS)
    def test_an_answer_that_does_not_end_costs_the_deadline_at_most(self, endpoint: Endpoint, case: str) -> None:
        endpoint.answer, reason = ENDLESS[case]
        seconds = 0.8 if "in time" in reason else 20  # what is too large ends long before
        made = endpoint.settings(request_timeout_ms=f"{seconds * 1000:.0f}", sasl_login_read_timeout_ms="60000")
        begin = time.monotonic()
        with pytest.raises(AuthenticationError, match=reason) as raised:
            first_of(made)
        assert time.monotonic() - begin < seconds + 3
        assert raised.value.node == NODE
        assert "the token endpoint https://localhost:" in raised.value.reason

    def test_a_tls_handshake_in_drops_costs_the_deadline_at_most(self, endpoint: Endpoint) -> None:
        """A server that sends a record's header, and then its bytes one by one."""
        with socket.create_server(("127.0.0.1", 0)) as listener:

            def serve() -> None:
                with contextlib.suppress(OSError), listener.accept()[0] as connection:
                    connection.sendall(b"\x16\x03\x03\x40\x00")
                    while True:
                        connection.sendall(b"\x02")
                        time.sleep(0.05)

            threading.Thread(target=serve, daemon=True).start()
            url = f"https://localhost:{listener.getsockname()[1]}/token"
            made = settings(
                'clientId="a" clientSecret="b"', sasl_oauthbearer_token_endpoint_url=url, request_timeout_ms="800"
            )
            begin = time.monotonic()
            with pytest.raises(AuthenticationError, match="no complete answer in time"):
                first_of(made)
            assert time.monotonic() - begin < 4

    def test_its_certificate_is_checked(self, endpoint: Endpoint) -> None:
        for made in (
            endpoint.settings(trust=False),
            endpoint.settings(host="127.0.0.1"),
            endpoint.settings(host="127.0.0.1", ssl_endpoint_identification_algorithm=""),
        ):
            with pytest.raises(AuthenticationError, match="certificate") as raised:
                first_of(made)
            assert "hunter" not in raised.value.message
        assert endpoint.requests == []

    def test_the_systems_certificates_count_beside_kafkas_own_authority(
        self, endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Kafka's nodes have a private authority, and the identity provider a certificate that everybody trusts."""
        private = Authority("of Kafka's nodes")
        (tmp_path / "private.pem").write_text(private.pem)
        own = private.client("kshell")
        (tmp_path / "own.pem").write_text(own.key_pem() + own.pem)
        mutual = {"ssl_truststore_location": "private.pem", "ssl_keystore_location": "own.pem"}
        made = endpoint.settings(trust=False, **{key: str(tmp_path / name) for key, name in mutual.items()})
        with pytest.raises(AuthenticationError, match="certificate"):
            first_of(made)
        monkeypatch.setenv("SSL_CERT_FILE", str(endpoint.ca))
        endpoint.answer = reply(200, b'{"access_token": "abc", "expires_in": 60}')
        assert first_of(made)
        assert made.sasl is not None and made.sasl.oauth is not None
        assert made.tls is not None and made.tls.presents and not made.sasl.oauth.tls.presents

    def test_nobody_there(self, endpoint: Endpoint) -> None:
        endpoint.server.server_close()
        with pytest.raises(AuthenticationError, match="the token endpoint https://localhost:"):
            first_of(endpoint.settings())
