"""Which mechanism the settings choose, and PLAIN."""

from __future__ import annotations

import pytest

from kshell.client.sasl.mechanisms import mechanism
from kshell.client.settings import Settings
from kshell.errors import AuthenticationError, UsageError

NODE = "controller-1:9093"


def settings(name: str, protocol: str = "SASL_SSL", username: str = "alice", **more: str) -> Settings:
    module = "PlainLoginModule" if name == "PLAIN" else "ScramLoginModule"
    return Settings.of(
        {
            "security.protocol": protocol,
            "sasl.mechanism": name,
            "sasl.jaas.config": f'x.{module} required username="{username}" password="hünter2";',
        }
        | {key.replace("_", "."): value for key, value in more.items()}
    )


@pytest.mark.parametrize("name", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_the_name_for_the_handshake(name: str) -> None:
    assert mechanism(settings(name), NODE, tls=True).name == name


def test_plain_over_tls() -> None:
    exchange = mechanism(settings("PLAIN"), NODE, tls=True).exchange()
    assert next(exchange) == "\0alice\0hünter2".encode()
    with pytest.raises(StopIteration):
        exchange.send(b"")


def test_plain_wants_no_challenge() -> None:
    exchange = mechanism(settings("PLAIN"), NODE, tls=True).exchange()
    next(exchange)
    with pytest.raises(AuthenticationError, match=f"{NODE}: SaslAuthenticate: "):
        exchange.send(b"?")


def test_plain_takes_no_nul() -> None:
    exchange = mechanism(settings("PLAIN", username=r"a\0b"), NODE, tls=True).exchange()
    with pytest.raises(UsageError, match="NUL"):
        next(exchange)


def test_plain_without_tls_is_refused_with_both_ways_out() -> None:
    with pytest.raises(UsageError, match="not encrypted") as raised:
        mechanism(settings("PLAIN", "SASL_PLAINTEXT"), NODE, tls=False)
    assert raised.value.hint is not None
    assert "SASL_SSL" in raised.value.hint
    assert "sasl.plain.allow.plaintext=true" in raised.value.hint
    allowed = settings("PLAIN", "SASL_PLAINTEXT", sasl_plain_allow_plaintext="true")
    assert mechanism(allowed, NODE, tls=False).name == "PLAIN"


def test_scram_needs_no_tls() -> None:
    assert mechanism(settings("SCRAM-SHA-256", "SASL_PLAINTEXT"), NODE, tls=False).name == "SCRAM-SHA-256"


def test_no_sasl() -> None:
    with pytest.raises(UsageError, match="uses no SASL"):
        mechanism(Settings.of({}), NODE, tls=False)
