"""Secrets of a client: not in messages, not in what kshell starts, not in a traceback, locals and all."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kshell.client.properties import read
from kshell.client.settings import Settings
from kshell.errors import KshellError
from kshell.render.faults import tell_own_fault
from kshell.sources.brokers.source import BrokerSource
from kshell.sources.quorum.source import QuorumSource
from tests.canaries.planted import Canaries
from tests.server import Quorum, faults

ROOT = Path(__file__).parents[2]
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
_BEARER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


def jaas(module: str, **options: str) -> str:
    return " ".join([module, "required", *(f'{name}="{value}"' for name, value in options.items())]) + ";"


def kinds(canaries: Canaries) -> Iterator[dict[str, str]]:
    """Properties with a secret each, as clients have them."""

    def made(place: str) -> str:
        return canaries.text(place)

    fast = {"default.api.timeout.ms": "300", "request.timeout.ms": "200", "reconnect.backoff.ms": "1"}
    plain = jaas(_PLAIN, username="alice", password=made("password of PLAIN"))
    plain_properties = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
    yield fast | plain_properties | {"sasl.jaas.config": plain, "sasl.plain.allow.plaintext": "true"}
    scram = jaas(_SCRAM, username="alice", password=made("password of SCRAM"))
    scram_properties = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-256"}
    yield fast | scram_properties | {"sasl.jaas.config": scram}
    token = jaas(_SCRAM, username="id", password=made("hmac of a token"), tokenauth="true")
    yield fast | scram_properties | {"sasl.jaas.config": token}
    # Broken in ways that an error must tell without quoting.
    yield fast | scram_properties | {"sasl.jaas.config": f'{_SCRAM} required username="a" password="{made("quote")}'}
    yield fast | scram_properties | {"sasl.jaas.config": f"{made('no module')}"}
    pem = f"-----BEGIN PRIVATE KEY-----\n{made('key')}\n-----END PRIVATE KEY-----"
    yield fast | {
        "security.protocol": "SSL", "ssl.keystore.type": "PEM", "ssl.keystore.key": pem,
        "ssl.keystore.certificate.chain": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
        "ssl.key.password": made("password of a key"),
    }  # fmt: skip
    yield fast | {
        "security.protocol": "SSL", "ssl.truststore.location": __file__,
        "ssl.truststore.password": made("password of a trust store"), "ssl.truststore.type": "PKCS12",
    }  # fmt: skip
    yield fast | {
        "security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": "http://127.0.0.1:1/token",
        "sasl.jaas.config": jaas(_BEARER, clientId="me", clientSecret=made("secret of OAuth")),
    }  # fmt: skip


def written(folder: Path, properties: dict[str, str], number: int) -> Path:
    path = folder / f"client-{number}.properties"
    lines = (f"{key}={value}".replace("\n", "\\n") for key, value in properties.items())
    path.write_text("\n".join(lines) + "\n")
    return path


def told(attempt: Callable[[], object]) -> str:
    """What an attempt prints as a user sees it, and as a traceback with every local variable."""
    try:
        attempt()
    except Exception as error:
        full = traceback.TracebackException.from_exception(error, capture_locals=True)
        hint = error.hint if isinstance(error, KshellError) else None
        return "".join(full.format()) + f"{error!r} {hint}"
    return ""


def loads(kind: str, quorum: Quorum, path: Path) -> None:
    settings = Settings.of(read(str(path)))
    if kind == "controllers":
        QuorumSource(quorum.bootstrap, settings).load()
    else:
        BrokerSource(quorum.bootstrap_servers, settings).load()


@pytest.mark.parametrize(
    "fault", [None, faults.hang_up, faults.cut(20), faults.error(58), faults.raw(b"HTTP/1.1 400 \r\n\r\n")]
)
def test_no_traceback_with_locals_tells_a_clients_secret(
    canaries: Canaries, tmp_path: Path, fault: faults.Fault | None
) -> None:
    seen = 0
    with Quorum(controllers=1, brokers=1, users={"alice": "another"}) as quorum:
        if fault is not None:
            for node in quorum.nodes:
                node.on("SaslAuthenticate", fault)
        for number, properties in enumerate(kinds(canaries)):
            path = written(tmp_path, properties, number)
            for kind in ("controllers", "brokers"):
                text = told(lambda kind=kind, path=path: loads(kind, quorum, path))  # type: ignore[misc]
                assert canaries.seen_in(text) == set(), (properties, text)
                seen += bool(text)
    assert seen > 8


# --- a process -------------------------------------------------------------------------------------------------------

CHILD = "cat /proc/self/environ /proc/$$/cmdline /proc/self/cmdline"


def kshell(*words: str, home: Path, **variables: str) -> str:
    """What a process of kshell says on both streams."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("KSHELL_", "XDG_"))}
    done = subprocess.run(
        [sys.executable, "-P", "-m", "kshell", *words],
        cwd=home, env={**env, "HOME": str(home), "PYTHONPATH": str(ROOT), **variables},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=60, check=False,
    )  # fmt: skip
    return done.stdout + done.stderr


def test_neither_messages_nor_children_have_a_clients_secret(canaries: Canaries, tmp_path: Path) -> None:
    """With -v; and in what a program that reads the answer can see of itself and of what started it."""
    with Quorum(controllers=1, brokers=1, users={"alice": "another"}) as quorum:
        for number, properties in enumerate(kinds(canaries)):
            path = written(tmp_path, properties, number)
            flags = ("--command-config", str(path))
            text = kshell("-v", "-q", quorum.bootstrap, *flags, "status", home=tmp_path)
            assert "kshell: " in text
            assert canaries.seen_in(text) == set(), (properties, text)
            if number < 2:
                piped = kshell("-q", quorum.bootstrap, *flags, "-c", f"version | {CHILD}", home=tmp_path)
                assert "HOME=" in piped and canaries.seen_in(piped) == set(), piped


def test_a_fault_of_ours_shows_no_value_even_with_v(canaries: Canaries, capsys: pytest.CaptureFixture[str]) -> None:
    """What Python says of an error may quote what was in hand."""
    secret = canaries.text("a value")

    def fail() -> None:
        raise ValueError(f"could not convert {secret}") from KeyError(secret)

    try:
        fail()
    except ValueError as error:
        error.add_note(secret)
        tell_own_fault("kshell", error, verbose=True)
    told_of = capsys.readouterr().err
    assert "ValueError" in told_of and "test_processes.py" in told_of and "in fail" in told_of
    assert "KeyError" in told_of
    assert secret not in told_of
