"""TLS: real handshakes with a server in this process, each way in which they fail, and what a person is told."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from kshell.client.properties import Properties
from kshell.client.settings import Settings
from kshell.client.tls import Tls, context_of, explain, openssl_names, server_name
from kshell.errors import TlsError, UsageError
from tests.kafka.certificates import Authority, Pair

AUTHORITY, OTHER = Authority(), Authority("another authority")
NODE = "controller-1:9093"


def settings(**keys: str) -> Settings:
    given = {"security.protocol": "SSL", "ssl.truststore.certificates": AUTHORITY.pem}
    given |= {f"ssl.{key.replace('_', '.')}": value for key, value in keys.items()}
    return Settings.of(given)


def context(settings: Settings) -> ssl.SSLContext:
    assert settings.tls is not None
    return context_of(settings.tls)


def identity(pair: Pair) -> dict[str, str]:
    return {"keystore_certificate_chain": pair.pem, "keystore_key": pair.key_pem()}


class Server:
    """Accepts connections; with TLS, echoes a byte over each."""

    def __init__(self, tls: ssl.SSLContext | None, greeting: bytes = b"") -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.tls = tls
        self.greeting = greeting
        self.thread = threading.Thread(target=self._serve)
        self.thread.start()

    def _serve(self) -> None:
        while True:
            try:
                plain, _ = self.listener.accept()
            except OSError:
                return
            plain.settimeout(5)
            with suppress(OSError), plain:
                if self.tls is None:
                    plain.recv(1)
                    plain.sendall(self.greeting)
                    plain.shutdown(socket.SHUT_WR)
                    while plain.recv(4096):
                        pass
                else:
                    self._echo(self.tls, plain)

    def _echo(self, tls: ssl.SSLContext, plain: socket.socket) -> None:
        with plain.dup() as below:
            try:
                with tls.wrap_socket(plain, server_side=True) as wrapped:
                    wrapped.sendall(wrapped.recv(1))
            except OSError:
                # Closing before all is read would reset the connection, and the alert could be lost on its way.
                below.shutdown(socket.SHUT_WR)
                while below.recv(4096):
                    pass

    def close(self) -> None:
        # Closing does not wake an accept; a connection does.
        with suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(10)
        assert not self.thread.is_alive()


@contextmanager
def server(folder: Path, pair: Pair, *, clients: Authority | None = None, **limits: ssl.TLSVersion) -> Iterator[Server]:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    (folder / "server.pem").write_text(pair.key_pem() + pair.pem)
    made.load_cert_chain(folder / "server.pem")
    if clients is not None:
        made.verify_mode = ssl.CERT_REQUIRED
        made.load_verify_locations(cadata=clients.pem)
    for name, version in limits.items():
        setattr(made, name, version)
    running = Server(made)
    try:
        yield running
    finally:
        running.close()


def say(running: Server, given: Settings, host: str = "localhost") -> str:
    """Connects and has a byte echoed; the version that was agreed on. Raises TlsError as a connection would."""
    assert given.tls is not None
    made = context(given)
    with socket.create_connection(("127.0.0.1", running.port), 5) as plain:
        done = False
        try:
            with made.wrap_socket(plain, server_hostname=server_name(host)) as wrapped:
                done = True
                wrapped.sendall(b"x")
                if not wrapped.recv(1):
                    raise EOFError
                return str(wrapped.version())
        except (OSError, EOFError) as error:
            raise explain(error, NODE, presents=given.tls.presents, handshake=not done) from None


VERSIONS = pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])


class TestHandshake:
    @VERSIONS
    def test_good(self, tmp_path: Path, version: ssl.TLSVersion) -> None:
        with server(tmp_path, AUTHORITY.server(), maximum_version=version) as running:
            assert say(running, settings()) == version.name.replace("_", ".")
            assert say(running, settings(), host="127.0.0.1")
            assert say(running, settings(), host="localhost.")

    @VERSIONS
    def test_good_with_a_client_certificate(self, tmp_path: Path, version: ssl.TLSVersion) -> None:
        with server(tmp_path, AUTHORITY.server(), clients=AUTHORITY, maximum_version=version) as running:
            assert say(running, settings(**identity(AUTHORITY.client())))

    def test_a_certificate_that_is_trusted_itself(self, tmp_path: Path) -> None:
        """No authority in the trust store, only the server's certificate: enough for Java, so enough here."""
        pair = AUTHORITY.server()
        with server(tmp_path, pair) as running:
            assert say(running, settings(truststore_certificates=pair.pem))

    def test_wrong_host(self, tmp_path: Path) -> None:
        with server(tmp_path, AUTHORITY.server("kafka.example", "10.0.0.1")) as running:
            for host in ("localhost", "127.0.0.1"):
                with pytest.raises(TlsError, match=r"is for another (name|address)$") as raised:
                    say(running, settings(), host)
                assert f"openssl s_client -connect {NODE}" in str(raised.value.hint)
                assert "ssl.endpoint.identification.algorithm" in str(raised.value.hint)
            assert say(running, settings(endpoint_identification_algorithm=""))

    @pytest.mark.parametrize(
        ("pair", "trusted", "reason"),
        [
            (AUTHORITY.server(expired=True), AUTHORITY, "has expired"),
            (AUTHORITY.server(), OTHER, "from an authority that is not trusted"),
            (OTHER.pair, AUTHORITY, "self-signed and not trusted"),
        ],
    )
    def test_certificates_that_are_refused(self, tmp_path: Path, pair: Pair, trusted: Authority, reason: str) -> None:
        with (
            server(tmp_path, pair) as running,
            pytest.raises(TlsError, match=f"^{NODE}: TLS: .*{reason}") as raised,
        ):
            say(running, settings(truststore_certificates=trusted.pem))
        assert raised.value.hint

    def test_the_systems_trust_where_no_store_is_given(self, tmp_path: Path) -> None:
        with (
            server(tmp_path, AUTHORITY.server()) as running,
            pytest.raises(TlsError, match="authority that is not trusted"),
        ):
            say(running, Settings.of({"security.protocol": "SSL"}))

    @VERSIONS
    def test_client_certificate_missing(self, tmp_path: Path, version: ssl.TLSVersion) -> None:
        with (
            server(tmp_path, AUTHORITY.server(), clients=AUTHORITY, maximum_version=version) as running,
            pytest.raises(TlsError) as raised,
        ):
            say(running, settings())
        if version is ssl.TLSVersion.TLSv1_3:
            assert "wants a client certificate, and none was presented" in raised.value.message
        assert "ssl.keystore.location" in str(raised.value.hint)

    @VERSIONS
    @pytest.mark.parametrize("pair", [OTHER.client(), AUTHORITY.client(expired=True)])
    def test_client_certificate_refused(self, tmp_path: Path, version: ssl.TLSVersion, pair: Pair) -> None:
        with (
            server(tmp_path, AUTHORITY.server(), clients=AUTHORITY, maximum_version=version) as running,
            pytest.raises(TlsError, match="refused the client's certificate"),
        ):
            say(running, settings(**identity(pair)))

    @pytest.mark.parametrize("greeting", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0\0\0\x04\0\0\0\x01"])
    def test_no_tls_on_the_other_side(self, greeting: bytes) -> None:
        running = Server(None, greeting)
        try:
            with pytest.raises(TlsError) as raised:
                say(running, settings())
        finally:
            running.close()
        assert "does not speak TLS" in raised.value.message or "instead of agreeing on TLS" in raised.value.message
        assert "PLAINTEXT" in str(raised.value.hint)

    def test_no_version_in_common(self, tmp_path: Path) -> None:
        with (
            server(tmp_path, AUTHORITY.server(), maximum_version=ssl.TLSVersion.TLSv1_2) as running,
            pytest.raises(TlsError, match="no TLS version in common") as raised,
        ):
            say(running, settings(enabled_protocols="TLSv1.3"))
        assert "ssl.enabled.protocols" in str(raised.value.hint)

    def test_the_end_after_the_handshake(self) -> None:
        said = [explain(EOFError(), NODE, presents=presents, handshake=False) for presents in (True, False)]
        assert "may want a client certificate" not in said[0].message
        assert "may want a client certificate" in said[1].message

    @pytest.mark.parametrize(
        ("presents", "reason"), [(True, "refused the client's"), (False, "none was presented"), (None, "got none, or")]
    )
    def test_a_bad_certificate_may_be_one_that_is_missing(self, presents: bool | None, reason: str) -> None:
        error = ssl.SSLError()
        error.reason = "SSLV3_ALERT_BAD_CERTIFICATE"
        assert reason in explain(error, NODE, presents=presents).message

    def test_what_nobody_foresaw(self) -> None:
        assert explain(OSError(5, "Input/output error"), NODE).message == f"{NODE}: TLS: Input/output error"


class TestContext:
    def test_versions_and_checks(self) -> None:
        made = context(settings())
        assert (made.minimum_version, made.maximum_version) == (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
        assert made.check_hostname
        assert made.verify_mode is ssl.CERT_REQUIRED
        loose = context(settings(endpoint_identification_algorithm=""))
        assert not loose.check_hostname
        assert loose.verify_mode is ssl.CERT_REQUIRED

    def test_cipher_suites(self, tmp_path: Path) -> None:
        suite = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"
        made = context(settings(cipher_suites=f"{suite},TLS_KRB5_WITH_RC4_128_MD5"))
        assert made.maximum_version is ssl.TLSVersion.TLSv1_2
        names = {cipher["name"] for cipher in made.get_ciphers() if cipher["protocol"] != "TLSv1.3"}
        assert names == {"ECDHE-ECDSA-AES256-GCM-SHA384"}
        assert context(settings(cipher_suites="TLS_AES_128_GCM_SHA256")).minimum_version is ssl.TLSVersion.TLSv1_3
        both = context(settings(cipher_suites=f"TLS_AES_128_GCM_SHA256,{suite}"))
        assert (both.minimum_version, both.maximum_version) == (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
        with pytest.raises(UsageError, match="names no cipher suite"):
            context(settings(cipher_suites="TLS_KRB5_WITH_RC4_128_MD5"))
        with pytest.raises(UsageError, match="fits none of the versions"):
            context(settings(cipher_suites="TLS_AES_128_GCM_SHA256", enabled_protocols="TLSv1.2"))

    def test_names_of_suites_are_ones_that_openssl_has(self) -> None:
        """Java's names of everything that OpenSSL offers by default: each comes back as OpenSSL's."""
        suites = {
            "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
            "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
            "TLS_DHE_RSA_WITH_AES_256_CBC_SHA256": "DHE-RSA-AES256-SHA256",
            "TLS_RSA_WITH_AES_128_CBC_SHA": "AES128-SHA",
            "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384": "ECDHE-ECDSA-AES256-SHA384",
            "TLS_ECDHE_ECDSA_WITH_AES_128_CCM_8": "ECDHE-ECDSA-AES128-CCM8",
        }
        older, newer, unknown = openssl_names(suites)
        assert (older, newer, unknown) == (list(suites.values()), [], [])
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        for name in older:
            made.set_ciphers(name)

    def test_a_certificate_that_is_none(self) -> None:
        pem = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
        with pytest.raises(UsageError, match=r"ssl\.truststore\.certificates: a certificate in it cannot be read"):
            context(settings(truststore_certificates=pem))

    def test_the_context_needs_no_settings(self) -> None:
        made = context_of(Tls.of(Properties({"ssl.truststore.certificates": AUTHORITY.pem}), []))
        assert len(made.get_ca_certs()) == 1


@pytest.mark.parametrize(
    ("host", "name"),
    [("a.example.", "a.example"), ("::1", "::1"), ("fe80::1%eth0", "fe80::1"), ("10.0.0.1", "10.0.0.1")],
)
def test_the_name_to_check(host: str, name: str) -> None:
    assert server_name(host) == name
