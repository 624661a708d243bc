"""SASL on a connection: which mechanism (KIP-43), then its exchange in SaslAuthenticate requests (KIP-152)."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import TYPE_CHECKING

from kshell.client.sasl import mechanism
from kshell.errors import AuthenticationError, ConnectError, ServerError
from kshell.protocol.messages.connection import SASL_AUTHENTICATE, SASL_HANDSHAKE
from kshell.protocol.names import error_name
from kshell.protocol.schema import Versions

if TYPE_CHECKING:
    from kshell.client.connection import Connection
    from kshell.client.settings import Settings

_UNSUPPORTED_MECHANISM = 33
_ILLEGAL_STATE = 34
_FAILED = 58
_FRAMED = Versions(1, None)
"""From version 1 on the tokens travel inside SaslAuthenticate; before (Kafka below 1.0) they had no frame."""
_MOST_STEPS = 16


def authenticate(connection: Connection, settings: Settings, deadline: float) -> None:
    """Proves who we are. Raises NodeError: AuthenticationError when either side does not believe the other."""
    left = min(connection.timeout, max(deadline - time.monotonic(), 0.0))
    made = mechanism(settings, connection.node, settings.tls is not None, left)
    answer = connection.request(SASL_HANDSHAKE, {"mechanism": made.name}, needed=_FRAMED, timeout=left).body
    if answer["errorCode"]:
        raise _refused(connection.node, made.name, answer)
    _exchange(connection, made.name, made.exchange(), deadline)


def _exchange(connection: Connection, name: str, steps: Generator[bytes, bytes, None], deadline: float) -> None:
    try:
        token = next(steps)
        for _ in range(_MOST_STEPS):
            try:
                answer = _step(connection, name, token, deadline)
            except AuthenticationError as error:
                token = steps.throw(error)  # the mechanism may know better why
            else:
                token = steps.send(answer)
    except StopIteration:
        return
    raise AuthenticationError(connection.node, f"{name} does not come to an end")


def _step(connection: Connection, name: str, token: bytes, deadline: float) -> bytes:
    left = min(connection.timeout, max(deadline - time.monotonic(), 0.0))
    try:
        answer = connection.request(SASL_AUTHENTICATE, {"authBytes": token}, timeout=left).body
    except ConnectError as error:
        # Servers that refuse say so (KIP-152): this one may be restarting, and asking again may help.
        hint = error.hint or "if it stays so, the server's log says why"
        raise type(error)(error.node, f"{name}: {error.reason}", api=error.api, hint=hint) from None
    code = answer["errorCode"]
    if code == _FAILED:
        reason = answer["errorMessage"] or error_name(code)
        hint = "are the user name and the password in sasl.jaas.config right, and known to this listener?"
        raise AuthenticationError(connection.node, f"{name}: {reason}", api=SASL_AUTHENTICATE.name, hint=hint)
    if code:
        reason = f"{name}: {error_name(code)}: {answer['errorMessage'] or 'no reason given'}"
        raise AuthenticationError(connection.node, reason, api=SASL_AUTHENTICATE.name)
    token = answer["authBytes"]
    return bytes(token)


def _refused(node: str, name: str, answer: dict[str, object]) -> AuthenticationError | ServerError:
    code = answer["errorCode"]
    assert isinstance(code, int)
    if code == _ILLEGAL_STATE:
        hint = "does this listener want SASL at all? Set security.protocol to what it speaks, or use another port"
        return AuthenticationError(node, "the listener does not want SASL now", api=SASL_HANDSHAKE.name, hint=hint)
    if code != _UNSUPPORTED_MECHANISM:
        return ServerError(node, code, error_name(code), api=SASL_HANDSHAKE.name)
    there = answer["mechanisms"]
    assert isinstance(there, list)
    hint = f"set sasl.mechanism to one of: {', '.join(there)}" if there else "the listener enables no mechanism"
    return AuthenticationError(node, f"the listener does not take {name}", api=SASL_HANDSHAKE.name, hint=hint)
