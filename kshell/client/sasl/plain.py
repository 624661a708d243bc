"""PLAIN (RFC 4616): name and password in one message."""

from __future__ import annotations

from kshell.client.sasl import Exchange
from kshell.client.sasl.configuration import Sasl
from kshell.errors import AuthenticationError, UsageError


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
