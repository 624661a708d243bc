"""TLS x SASL at a real controller: what the client's settings make of each, and the message that a person gets.

One controller with a listener for each kind of certificate, with and without SASL.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import pytest

from kshell.client.negotiation import connect
from kshell.client.properties import read
from kshell.client.settings import Settings
from kshell.errors import AuthenticationError, TlsError
from kshell.protocol.messages.cluster import DESCRIBE_CLUSTER
from tests.kafka import certificates, jars
from tests.kafka.certificates import PASSWORD, Authority
from tests.kafka.cluster import Cluster
from tests.kafka.node import HOST, free_ports
from tests.live import oneshot

pytestmark = pytest.mark.live

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
SECRET = "pass\u2168 wörd,="
"""SASLprep would make IX of the Roman numeral; Kafka leaves it."""
_MODULE = "org.apache.kafka.common.security"
_KINDS = ("good", "wrong", "expired", "mutual")
"""Certificates of listeners: right, for another host, expired; and right, where the client needs one too."""


class Place(NamedTuple):
    """A running controller's listeners by name, and where the files for clients are."""

    ports: dict[str, int]
    folder: Path
    authority: Authority
    other: Authority


def _listener_properties(name: str, folder: Path, *, tls: bool, sasl: bool) -> Iterator[str]:
    prefix = f"listener.name.{name}."
    kind = name.removeprefix("sasl")
    if tls:
        yield f"{prefix}ssl.keystore.type=JKS"
        yield f"{prefix}ssl.keystore.location={folder}/{'good' if kind == 'mutual' else kind}.jks"
        yield f"{prefix}ssl.keystore.password={PASSWORD}"
        yield f"{prefix}ssl.truststore.location={folder}/trust.jks"
        yield f"{prefix}ssl.truststore.password={PASSWORD}"
        yield f"{prefix}ssl.client.auth={'required' if kind == 'mutual' else 'none'}"
    if sasl:
        yield f"{prefix}sasl.enabled.mechanisms={','.join(MECHANISMS)}"
        user = 'username="server" password="server"'
        # Properties files are ISO-8859-1 with escapes.
        secret = "".join(char if char.isascii() else f"\\u{ord(char):04x}" for char in SECRET)
        yield f'{prefix}plain.sasl.jaas.config={_MODULE}.plain.PlainLoginModule required user_alice="{secret}";'
        for scram in MECHANISMS[1:3]:
            module = f"{_MODULE}.scram.ScramLoginModule required {user};"
            yield f"{prefix}{scram.lower()}.sasl.jaas.config={module}"
        module = f'{_MODULE}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="server";'
        yield f"{prefix}oauthbearer.sasl.jaas.config={module}"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """One controller with ten listeners."""
    jars.require()
    folder = tmp_path_factory.mktemp("tls")
    authority, other = Authority(), Authority("another authority")
    pairs = {
        "good": authority.server(),
        "wrong": authority.server("kafka.example"),
        "expired": authority.server(expired=True),
    }
    for name, pair in pairs.items():
        certificates.identity_jks(pair, authority, folder / f"{name}.jks")
    certificates.trust_store(authority, folder / "trust.jks", "JKS")
    names = [*_KINDS, *(f"sasl{kind}" for kind in _KINDS), "saslplain"]
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    with_files = [
        line
        for name in names
        for line in _listener_properties(name, folder, tls=name != "saslplain", sasl=name.startswith("sasl"))
    ]
    cluster = Cluster()
    (node,) = cluster.controllers
    protocols = {name: "SASL_PLAINTEXT" if name == "saslplain" else "SSL" for name in names}
    protocols |= {name: "SASL_SSL" for name in names if name.startswith("sasl") and name != "saslplain"}
    cluster.node_props[node.id] = [
        "controller.listener.names=" + ",".join(["CONTROLLER", *(name.upper() for name in names)]),
        "listener.security.protocol.map="
        + ",".join(["CONTROLLER:PLAINTEXT", *(f"{name.upper()}:{protocol}" for name, protocol in protocols.items())]),
        "listeners="
        + ",".join([f"CONTROLLER://{node.address}", *(f"{n.upper()}://{HOST}:{p}" for n, p in ports.items())]),
        "super.users=User:ANONYMOUS;User:alice",
        *with_files,
    ]
    with cluster:
        # Kafka's own client makes the credential of the password; only brokers take it.
        admin = cluster.admin()
        for scram in MECHANISMS[1:3]:
            admin.scram("alice", scram, SECRET, iterations=8192)
        yield Place(ports | {"plain": node.port}, folder, authority, other)


def _jaas(name: str, secret: str = SECRET) -> str:
    if name == "OAUTHBEARER":
        return f'{_MODULE}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="alice";'
    module = "plain.PlainLoginModule" if name == "PLAIN" else "scram.ScramLoginModule"
    return f'{_MODULE}.{module} required username="alice" password="{secret}";'


def _settings(place: Place, kind: str, sasl: str | None, *, secret: str = SECRET, **keys: str) -> Settings:
    protocol = "PLAINTEXT" if kind == "plain" else "SSL"
    given = {"security.protocol": protocol if sasl is None else f"SASL_{protocol}"}
    if kind != "plain":
        given |= {"ssl.truststore.location": f"{place.folder}/trust.jks", "ssl.truststore.password": PASSWORD}
    if sasl is not None:
        given |= {"sasl.mechanism": sasl, "sasl.jaas.config": _jaas(sasl, secret), "sasl.plain.allow.plaintext": "true"}
    return Settings.of(given | {f"ssl.{key.replace('_', '.')}": value for key, value in keys.items()})


def _connect(place: Place, kind: str, settings: Settings, host: str = "localhost") -> int:
    """Connects as every command does: how many APIs the controller offers. ``host`` is a name for the loopback."""
    port = place.ports[kind if settings.sasl is None else f"sasl{kind}"]
    found = socket.getaddrinfo(HOST, port, type=socket.SOCK_STREAM)
    with mock.patch("socket.getaddrinfo", lambda *args, **kwargs: found):
        connection = connect(host, port, settings)
    try:
        # Who we are is believed; whether that person may know the cluster is another matter.
        assert connection.request(DESCRIBE_CLUSTER, {"endpointType": 2}).body["errorCode"] in (0, 31)
        return len(connection.versions.ranges)
    finally:
        connection.close()


ALL = pytest.mark.parametrize("sasl", [None, *MECHANISMS])


@ALL
@pytest.mark.parametrize("kind", ["plain", "good"])
def test_good(place: Place, kind: str, sasl: str | None) -> None:
    assert _connect(place, kind, _settings(place, kind, sasl)) > 10


@ALL
def test_a_client_certificate(place: Place, sasl: str | None) -> None:
    path = place.folder / "client.jks"
    if not path.exists():
        certificates.identity_jks(place.authority.client(), place.authority, path)
    keys = {"keystore_location": str(path), "keystore_password": PASSWORD}
    assert _connect(place, "mutual", _settings(place, "mutual", sasl, **keys)) > 10


@ALL
@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_client_certificate_missing(place: Place, sasl: str | None, version: str) -> None:
    with pytest.raises(TlsError) as raised:
        _connect(place, "mutual", _settings(place, "mutual", sasl, enabled_protocols=version))
    assert "client certificate" in raised.value.message
    assert "ssl.keystore.location" in str(raised.value.hint)


@ALL
@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_client_certificate_of_another_authority(place: Place, sasl: str | None, version: str) -> None:
    pair = place.other.client()
    keys = {"keystore_certificate_chain": pair.pem, "keystore_key": pair.key_pem(), "enabled_protocols": version}
    with pytest.raises(TlsError) as raised:
        _connect(place, "mutual", _settings(place, "mutual", sasl, **keys))
    assert "refused the client's certificate" in raised.value.message or "right after" in raised.value.message


@ALL
def test_wrong_host(place: Place, sasl: str | None) -> None:
    with pytest.raises(TlsError, match=r"for another name$"):
        _connect(place, "wrong", _settings(place, "wrong", sasl))
    assert _connect(place, "wrong", _settings(place, "wrong", sasl), host="kafka.example") > 10
    assert _connect(place, "wrong", _settings(place, "wrong", sasl, endpoint_identification_algorithm="")) > 10


@ALL
def test_expired(place: Place, sasl: str | None) -> None:
    with pytest.raises(TlsError, match="certificate has expired"):
        _connect(place, "expired", _settings(place, "expired", sasl))


@ALL
def test_unknown_authority(place: Place, sasl: str | None) -> None:
    path = place.folder / "other.jks"
    if not path.exists():
        certificates.trust_store(place.other, path, "JKS")
    with pytest.raises(TlsError, match="authority that is not trusted"):
        _connect(place, "good", _settings(place, "good", sasl, truststore_location=str(path)))


@ALL
def test_tls_where_there_is_none(place: Place, sasl: str | None) -> None:
    ports = place.ports | {"good": place.ports["plain"], "saslgood": place.ports["saslplain"]}
    with pytest.raises(TlsError) as raised:
        _connect(place._replace(ports=ports), "good", _settings(place, "good", sasl))
    assert "PLAINTEXT" in str(raised.value.hint)


@pytest.mark.parametrize("kind", ["plain", "good"])
@pytest.mark.parametrize("sasl", MECHANISMS[:3])
def test_wrong_password(place: Place, kind: str, sasl: str) -> None:
    with pytest.raises(AuthenticationError, match=r"[Aa]uthentication failed|[Ii]nvalid") as raised:
        _connect(place, kind, _settings(place, kind, sasl, secret="hunter2"))
    assert "hunter2" not in raised.value.message


def test_a_token_that_is_refused(place: Place) -> None:
    settings = _settings(place, "good", "OAUTHBEARER")
    assert settings.sasl is not None
    assert settings.sasl.oauth is not None
    late = {**settings.sasl.oauth.claims, "LifetimeSeconds": type(settings.sasl.oauth.claims["StringClaim_sub"])("-60")}
    sasl = settings.sasl._replace(oauth=settings.sasl.oauth._replace(claims=late))
    with pytest.raises(AuthenticationError, match="the token was refused: status=invalid_token"):
        _connect(place, "good", settings._replace(sasl=sasl))


def test_a_file_for_javas_tools_works_unchanged(place: Place, tmp_path: Path) -> None:
    """JKS trust store, SCRAM JAAS line over two lines, a password from another file: Kafka's tool and we take it."""
    escaped = "".join(char if char.isascii() else f"\\u{ord(char):04x}" for char in SECRET)
    (tmp_path / "secrets.properties").write_text(f"password={escaped}\n")
    path = tmp_path / "client.properties"
    path.write_text(
        "# for kafka-metadata-quorum.sh\n"
        "config.providers=file\n"
        "config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider\n"
        "security.protocol = SASL_SSL\nsasl.mechanism: SCRAM-SHA-512\n"
        f"sasl.jaas.config={_MODULE}.scram.ScramLoginModule required \\\n"
        f'    username="alice" password="${{file:{tmp_path}/secrets.properties:password}}";\n'
        f"ssl.truststore.location={place.folder}/trust.jks\nssl.truststore.password={PASSWORD}\n"
        "group.id=unused\n"
    )
    where = ("--bootstrap-controller", f"localhost:{place.ports['saslgood']}", "--command-config", str(path))
    said = jars.run(
        f"{jars.libs(jars.LATEST)}/*", "org.apache.kafka.tools.MetadataQuorumCommand", *where, "describe", "--status"
    )
    assert "LeaderId:" in said
    settings = Settings.of(read(str(path)))
    assert settings.warnings == []
    assert _connect(place, "good", settings) > 10
    done = oneshot.run(("-q", f"localhost:{place.ports['saslgood']}", "--config", str(path)), "ls", "/image")
    assert (done.returncode, done.stderr) == (0, "")
    assert "topics" in done.stdout
