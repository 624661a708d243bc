"""SASL mechanisms as small state machines without a socket: PLAIN (RFC 4616), SCRAM (RFC 5802, RFC 7677).

A mechanism yields what the client sends in SaslAuthenticate and is sent what the server answered::

    exchange = mechanism(settings, "controller-1:9093", tls=True).exchange()
    message = next(exchange)
    while True: message = exchange.send(answer_of_server(message))   # until StopIteration

SCRAM is as Kafka has it (``ScramSaslClient``): Kafka prepares neither name nor password (no SASLprep): their UTF-8
bytes count. The libraries there are do, so a password that SASLprep changes fails with them; hence the exchange is
here, on the standard library's PBKDF2.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Protocol

from kshell.client.sasl.configuration import Sasl
from kshell.errors import AuthenticationError, UsageError

if TYPE_CHECKING:
    from kshell.client.settings import Settings


Exchange = Generator[bytes, bytes, None]
"""Yields the client's messages, is sent the server's; ends when both sides are satisfied."""


class Mechanism(Protocol):
    """``name`` goes into SaslHandshake; ``exchange`` starts from scratch with each call (one per connection)."""

    name: str

    def exchange(self) -> Exchange:
        """The messages of one authentication. Raises AuthenticationError, which names the node."""


def mechanism(settings: Settings, node: str, tls: bool, timeout: float | None = None) -> Mechanism:
    """The mechanism that the settings choose.

    Args:
        settings: which mechanism, and whom to be.
        node: for messages, ``host:port``.
        tls: whether the connection is encrypted.
        timeout: seconds in which a token must be here, where that is less than ``request.timeout.ms``.

    Raises:
        UsageError: SASL is not configured, or PLAIN would send a password over a connection that is not encrypted and
            nobody allowed that.
    """
    chosen = settings.sasl
    if chosen is None:
        raise UsageError(f"security.protocol={settings.security_protocol} uses no SASL")
    if chosen.mechanism == "PLAIN":
        if not tls and not settings.allow_plaintext_password:
            raise UsageError(
                f"{node}: SASL PLAIN would send the password over a connection that is not encrypted",
                hint="use security.protocol=SASL_SSL, or allow it with -X sasl.plain.allow.plaintext=true",
            )
        return Plain(chosen, node)
    if chosen.mechanism == "OAUTHBEARER":
        from kshell.client.sasl.oauth import OAuthBearer

        most = settings.request_timeout
        return OAuthBearer(chosen, node, timeout=most if timeout is None else min(most, timeout))

    return Scram(chosen, node)


# --- PLAIN ------------------------------------------------------------------------------------------------------------


class Plain:
    """One message; the server answers with nothing, or closes the connection after an error code."""

    name = "PLAIN"

    def __init__(self, sasl: Sasl, node: str) -> None:
        self._sasl = sasl
        self._node = node

    def exchange(self) -> Exchange:
        """The message. Raises UsageError where NUL is in it, AuthenticationError for an answer that has no place."""
        assert self._sasl.username is not None
        assert self._sasl.password is not None
        parts = (b"", self._sasl.username.utf8(), self._sasl.password.utf8())
        if any(b"\0" in part for part in parts):
            raise UsageError("sasl.jaas.config: neither name nor password may hold a NUL with PLAIN")
        answer = yield b"\0".join(parts)
        if answer:
            raise AuthenticationError(self._node, "the server answered PLAIN with a challenge", api="SaslAuthenticate")


# --- SCRAM ------------------------------------------------------------------------------------------------------------


_FEWEST, _MOST = 4096, 1_000_000
"""Iterations. Kafka's own minimum; and a limit on the time that a server can make a client spend."""
_LONGEST = 8192
"""Bytes of a server's message."""
_FIRST = re.compile(r"(?:m=[^,]*,)?r=([\x21-\x2b\x2d-\x7e]+),s=([A-Za-z0-9+/]+={0,2}),i=([1-9][0-9]{0,9})(?:,.*)?\Z")
_FINAL = re.compile(r"(?:e=([^,]*)|v=([A-Za-z0-9+/]+={0,2}))(?:,.*)?\Z")
_API = "SaslAuthenticate"


class Scram:
    """Both sides prove that they know the password; neither sends it."""

    def __init__(self, sasl: Sasl, node: str, nonce: Callable[[], str] = lambda: secrets.token_urlsafe(24)) -> None:
        self.name = sasl.mechanism
        self._hash = "sha" + sasl.mechanism.rpartition("-")[2]
        self._sasl = sasl
        self._node = node
        self._nonce = nonce

    def exchange(self) -> Exchange:
        """Two messages. Raises AuthenticationError where the server's proof, nonce or iterations are not right."""
        assert self._sasl.username is not None
        assert self._sasl.password is not None
        nonce = self._nonce()
        name = self._sasl.username.utf8().replace(b"=", b"=3D").replace(b",", b"=2C")
        bare = b"n=%s,r=%s" % (name, nonce.encode()) + (b",tokenauth=true" if self._sasl.token_auth else b"")
        first = yield b"n,," + bare
        combined, salt, iterations = self._read_first(first, nonce)
        salted = hashlib.pbkdf2_hmac(self._hash, self._sasl.password.utf8(), salt, iterations)
        without_proof = b"c=biws,r=" + combined.encode()
        message = b",".join((bare, first, without_proof))
        client_key = self._mac(salted, b"Client Key")
        signature = self._mac(hashlib.new(self._hash, client_key).digest(), message)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        final = yield without_proof + b",p=" + base64.b64encode(proof)
        self._check_final(final, self._mac(self._mac(salted, b"Server Key"), message))

    def _mac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self._hash)

    def _fault(self, reason: str, hint: str | None = None) -> AuthenticationError:
        return AuthenticationError(self._node, f"{self.name}: {reason}", api=_API, hint=hint)

    def _read_first(self, answer: bytes, nonce: str) -> tuple[str, bytes, int]:
        """(both nonces, salt, iterations), checked before anything is computed."""
        message = _FIRST.match(_decoded_text(answer))
        if message is None or message[0].startswith("m="):
            raise self._fault("the server's first message is not SCRAM")
        if not message[1].startswith(nonce) or message[1] == nonce:
            raise self._fault(
                "the server's nonce does not continue ours", "the answer was not made for this connection"
            )
        iterations = int(message[3])
        if not _FEWEST <= iterations <= _MOST:
            raise self._fault(
                f"the server asks for {iterations} iterations, outside of {_FEWEST} to {_MOST}",
                "fewer would make the password easy to guess, more only cost time: recreate the SCRAM credential",
            )
        return message[1], self._decoded(message[2]), iterations

    def _check_final(self, answer: bytes, expected: bytes) -> None:
        message = _FINAL.match(_decoded_text(answer))
        if message is None:
            raise self._fault("the server's last message is not SCRAM")
        if message[1] is not None:
            raise self._fault(f"the server says: {message[1]}", "check the name and the password in sasl.jaas.config")
        if not hmac.compare_digest(self._decoded(message[2]), expected):
            raise self._fault(
                "the server could not prove that it knows the password's credential",
                "this may not be the server that you mean: nothing more was sent to it",
            )

    def _decoded(self, text: str) -> bytes:
        try:
            return base64.b64decode(text, validate=True)
        except binascii.Error:
            raise self._fault("base64 in the server's message is not valid") from None


def _decoded_text(answer: bytes) -> str:
    return "" if len(answer) > _LONGEST else answer.decode("utf-8", "replace")
