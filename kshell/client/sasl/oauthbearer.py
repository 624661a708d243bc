"""OAUTHBEARER (RFC 7628): a bearer token in one message."""

from __future__ import annotations

import contextlib
import json
import re

from kshell.client.sasl import Exchange
from kshell.client.sasl.configuration import Sasl
from kshell.errors import AuthenticationError, UsageError

_SEPARATOR = b"\x01"
_KEY = re.compile(r"[A-Za-z]+\Z")
_VALUE = re.compile(r"[\x21-\x7e \t\r\n]+\Z")
_LONGEST = 1000
"""Characters of a server's failure that are repeated to a person."""


class OAuthBearer:
    """Fetches a token, sends it. A refusal comes as a JSON object, which the client acknowledges."""

    name = "OAUTHBEARER"

    def __init__(self, sasl: Sasl, node: str, timeout: float) -> None:
        self._sasl = sasl
        self._node = node
        self._timeout = timeout

    def exchange(self) -> Exchange:
        """One message, or two when the server refuses. Raises AuthenticationError, UsageError."""
        from kshell.client.sasl.tokens import fetch

        assert self._sasl.oauth is not None
        token = fetch(self._sasl.oauth, self._node, self._timeout)
        answer = yield self._first(token)
        if not answer:
            return
        self._sasl.oauth.kept.token = None
        # The server waits for this before it says (as an error code, too) that it refuses.
        with contextlib.suppress(AuthenticationError):  # thrown in here by whoever saw that code
            yield _SEPARATOR
        raise AuthenticationError(
            self._node,
            f"OAUTHBEARER: the token was refused: {_said(answer)}",
            api="SaslAuthenticate",
            hint="compare the token's audience, issuer and expiry with the server's sasl.oauthbearer.expected.*",
        )

    def _first(self, token: str) -> bytes:
        assert self._sasl.oauth is not None
        parts = [b"n,,", b"auth=Bearer " + token.encode("ascii")]
        for name, value in self._sasl.oauth.extensions.items():
            if not _KEY.match(name) or name == "auth" or not _VALUE.match(value.value):
                raise UsageError(
                    f"sasl.jaas.config: the extension {name} is not valid",
                    hint="a name has letters only and is not auth, a value has printable ASCII characters only",
                )
            parts.append(f"{name}={value.value}".encode("ascii"))
        return _SEPARATOR.join(parts) + _SEPARATOR * 2


def _said(answer: bytes) -> str:
    """The server's own words, short: the status of the JSON object, or what else it sent."""
    text = answer[: 4 * _LONGEST].decode("utf-8", "replace")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text[:_LONGEST]
    if not isinstance(found, dict):
        return text[:_LONGEST]
    return ", ".join(f"{name}={value}" for name, value in found.items() if value)[:_LONGEST]
