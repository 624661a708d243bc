"""The server's side of SASL: PLAIN (RFC 4616), SCRAM (RFC 5802) as generators: sent a message, they yield the next."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Callable, Generator, Mapping

Exchange = Generator[bytes, bytes, None]
"""Begun with ``next`` (which yields nothing of worth), then sent the client's messages; it returns when it believes."""


class Refused(Exception):
    """The client is not believed; the text goes into the answer."""


class Scram:
    """What a SCRAM server may do wrong: its own ``nonce``, ``iterations``, a ``signature`` that proves nothing."""

    def __init__(
        self, *, iterations: int = 4096, nonce: Callable[[str], str] | None = None, good_signature: bool = True
    ) -> None:
        self.iterations = iterations
        self.nonce = nonce or (lambda client: client + secrets.token_urlsafe(12))
        self.good_signature = good_signature


def exchange(mechanism: str, users: Mapping[str, str], scram: Scram) -> Exchange:
    """One authentication against names and passwords; any bearer token will do. Raises Refused."""
    if mechanism == "OAUTHBEARER":
        return _bearer()
    return _plain(users) if mechanism == "PLAIN" else _scram(mechanism, users, scram)


def _bearer() -> Exchange:
    message = yield b""
    if b"auth=Bearer " not in message:
        raise Refused("Authentication failed: no bearer token")
    while True:  # a client that was told otherwise acknowledges it
        yield b""


def _plain(users: Mapping[str, str]) -> Exchange:
    message = yield b""
    _, name, password = message.decode().split("\0")
    if users.get(name) != password:
        raise Refused("Authentication failed: Invalid username or password")
    yield b""


def _scram(mechanism: str, users: Mapping[str, str], scram: Scram) -> Exchange:
    algorithm = mechanism.removeprefix("SCRAM-").replace("-", "").lower()
    first = (yield b"").decode()
    bare = first.split(",", 2)[2]
    fields = dict(part.split("=", 1) for part in bare.split(","))
    name = fields["n"].replace("=2C", ",").replace("=3D", "=")
    if name not in users:
        raise Refused("Authentication failed during authentication due to invalid credentials with SASL mechanism")
    salt = secrets.token_bytes(16)
    nonce = scram.nonce(fields["r"])
    server_first = f"r={nonce},s={base64.b64encode(salt).decode()},i={scram.iterations}"
    final = (yield server_first.encode()).decode()
    without_proof, _, proof = final.rpartition(",p=")
    salted = hashlib.pbkdf2_hmac(algorithm, users[name].encode(), salt, scram.iterations)

    def mac(key: bytes, data: bytes) -> bytes:
        return hmac.digest(key, data, algorithm)

    client_key = mac(salted, b"Client Key")
    signed = f"{bare},{server_first},{without_proof}".encode()
    wanted = bytes(
        a ^ b for a, b in zip(client_key, mac(hashlib.new(algorithm, client_key).digest(), signed), strict=True)
    )
    if not hmac.compare_digest(wanted, base64.b64decode(proof)):
        raise Refused("Authentication failed during authentication due to invalid credentials with SASL mechanism")
    signature = mac(mac(salted, b"Server Key"), signed)
    if not scram.good_signature:
        signature = bytes(len(signature))
    yield b"v=" + base64.b64encode(signature)
