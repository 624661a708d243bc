"""SCRAM: the RFCs' examples, a server that does its part, and servers that do not."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest
from hypothesis import given, strategies

from kshell.client.properties import Secret
from kshell.client.sasl.configuration import Sasl
from kshell.client.sasl.mechanisms import Scram
from kshell.errors import AuthenticationError

NODE = "controller-1:9093"
NONCE = "rOprNGfwEbeRWgbNEkqO"


def scram(name: str = "user", password: str = "pencil", mechanism: str = "SCRAM-SHA-256", token: bool = False) -> Scram:
    return Scram(Sasl(mechanism, Secret(name), Secret(password), token_auth=token), NODE, lambda: NONCE)


def run(made: Scram, *answers: bytes) -> list[bytes]:
    """What the client sends; the answers must be all that it needs."""
    exchange = made.exchange()
    sent = [next(exchange)]
    for answer in answers[:-1]:
        sent.append(exchange.send(answer))
    with pytest.raises(StopIteration):
        exchange.send(answers[-1])
    return sent


FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_the_example_of_rfc_7677() -> None:
    assert run(scram(), FIRST, FINAL) == [
        b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
    ]


def serve(first: bytes, password: str, hash_name: str, salt: bytes = b"salty", iterations: int = 4096) -> list[bytes]:
    """A server's two messages, computed another way than the client's: stored keys first, as RFC 5802 has it."""
    bare = first[3:]
    nonce = bare.split(b",r=")[1].split(b",")[0] + b"server"
    one = b"r=%s,s=%s,i=%d" % (nonce, base64.b64encode(salt), iterations)
    salted = hashlib.pbkdf2_hmac(hash_name, password.encode(), salt, iterations)
    message = bare + b"," + one + b",c=biws,r=" + nonce
    server_key = hmac.new(salted, b"Server Key", hash_name).digest()
    return [one, b"v=" + base64.b64encode(hmac.new(server_key, message, hash_name).digest())]


@pytest.mark.parametrize(("mechanism", "hash_name"), [("SCRAM-SHA-256", "sha256"), ("SCRAM-SHA-512", "sha512")])
# SASLprep would change the second (a Roman numeral) and refuse the third (a control character); Kafka takes both as is.
@pytest.mark.parametrize("password", ["pencil", "pass\u2168", "a\u0007b", "pässwörd,="])
def test_a_server_that_does_its_part(mechanism: str, hash_name: str, password: str) -> None:
    exchange = scram("älice=,", password, mechanism).exchange()
    first = next(exchange)
    assert first == "n,,n=älice=3D=2C,r=".encode() + NONCE.encode()
    one, two = serve(first, password, hash_name)
    final = exchange.send(one)
    salted = hashlib.pbkdf2_hmac(hash_name, password.encode(), b"salty", 4096)
    client_key = hmac.new(salted, b"Client Key", hash_name).digest()
    message = first[3:] + b"," + one + b"," + final.partition(b",p=")[0]
    signature = hmac.new(hashlib.new(hash_name, client_key).digest(), message, hash_name).digest()
    proof = base64.b64decode(final.partition(b",p=")[2])
    assert bytes(a ^ b for a, b in zip(proof, signature, strict=True)) == client_key
    with pytest.raises(StopIteration):
        exchange.send(two)


def test_a_delegation_token() -> None:
    assert next(scram(token=True).exchange()).endswith(b",tokenauth=true")


def test_nonces_are_never_the_same() -> None:
    made = Scram(Sasl("SCRAM-SHA-256", Secret("u"), Secret("p")), NODE)
    nonces = {next(made.exchange()).partition(b"r=")[2] for _ in range(50)}
    assert len(nonces) == 50
    assert all(len(nonce) >= 24 for nonce in nonces)


GOOD_NONCE = NONCE + "xyz"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"", "is not SCRAM"),
        (b"\xff\xfe", "is not SCRAM"),
        (b"r=x", "is not SCRAM"),
        (f"r={GOOD_NONCE},s=AAAA,i=04096".encode(), "is not SCRAM"),
        (f"r={GOOD_NONCE},s=AAAA,i=-4096".encode(), "is not SCRAM"),
        (f"m=ext,r={GOOD_NONCE},s=AAAA,i=4096".encode(), "is not SCRAM"),
        (b"r=other,s=AAAA,i=4096", "does not continue ours"),
        (f"r={NONCE},s=AAAA,i=4096".encode(), "does not continue ours"),
        (f"r={GOOD_NONCE},s=AAAA,i=4095".encode(), "4095 iterations"),
        (f"r={GOOD_NONCE},s=AAAA,i=1000001".encode(), "1000001 iterations"),
        (f"r={GOOD_NONCE},s=AAA,i=4096".encode(), "base64"),
        (b"r=" + NONCE.encode() + b"x" * 9000 + b",s=AAAA,i=4096", "is not SCRAM"),
    ],
)
def test_first_messages_that_are_refused(answer: bytes, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is computed, and before anything else is sent."""
    monkeypatch.setattr(hashlib, "pbkdf2_hmac", None)
    exchange = scram().exchange()
    next(exchange)
    with pytest.raises(AuthenticationError, match=reason) as raised:
        exchange.send(answer)
    assert raised.value.node == NODE
    assert "pencil" not in raised.value.message


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"e=invalid-proof", "the server says: invalid-proof"),
        (b"v=AAAA", "could not prove"),
        (FINAL.replace(b"6", b"7"), "could not prove"),
        (b"", "is not SCRAM"),
        (b"v=A", "base64"),
    ],
)
def test_last_messages_that_are_refused(answer: bytes, reason: str) -> None:
    exchange = scram().exchange()
    next(exchange)
    exchange.send(FIRST)
    with pytest.raises(AuthenticationError, match=reason):
        exchange.send(answer)


@given(strategies.binary(), strategies.booleans())
def test_any_answer_is_taken_or_refused(answer: bytes, last: bool) -> None:
    exchange = scram().exchange()
    next(exchange)
    if last:
        exchange.send(FIRST)
    with pytest.raises(AuthenticationError):
        exchange.send(answer)
