"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677) as Kafka has them (``ScramSaslClient``).

Kafka prepares neither name nor password (no SASLprep): their UTF-8 bytes count. The libraries there are do, so a
password that SASLprep changes fails with them; hence the exchange is here, on the standard library's PBKDF2.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable

from kshell.client.sasl import Exchange
from kshell.client.sasl.configuration import Sasl
from kshell.errors import AuthenticationError

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
        found = _FIRST.match(_text(answer))
        if found is None or found[0].startswith("m="):
            raise self._fault("the server's first message is not SCRAM")
        if not found[1].startswith(nonce) or found[1] == nonce:
            raise self._fault(
                "the server's nonce does not continue ours", "the answer was not made for this connection"
            )
        iterations = int(found[3])
        if not _FEWEST <= iterations <= _MOST:
            raise self._fault(
                f"the server asks for {iterations} iterations, outside of {_FEWEST} to {_MOST}",
                "fewer would make the password easy to guess, more only cost time: recreate the SCRAM credential",
            )
        return found[1], self._decoded(found[2]), iterations

    def _check_final(self, answer: bytes, expected: bytes) -> None:
        found = _FINAL.match(_text(answer))
        if found is None:
            raise self._fault("the server's last message is not SCRAM")
        if found[1] is not None:
            raise self._fault(f"the server says: {found[1]}", "check the name and the password in sasl.jaas.config")
        if not hmac.compare_digest(self._decoded(found[2]), expected):
            raise self._fault(
                "the server could not prove that it knows the password's credential",
                "this may not be the server that you mean: nothing more was sent to it",
            )

    def _decoded(self, text: str) -> bytes:
        try:
            return base64.b64decode(text, validate=True)
        except binascii.Error:
            raise self._fault("base64 in the server's message is not valid") from None


def _text(answer: bytes) -> str:
    return "" if len(answer) > _LONGEST else answer.decode("utf-8", "replace")
