"""SASL mechanisms: small state machines without a socket.

A mechanism yields what the client sends in SaslAuthenticate and is sent what the server answered::

    exchange = mechanism(settings, "controller-1:9093", tls=True).exchange()
    message = next(exchange)
    while True: message = exchange.send(answer_of_server(message))   # until StopIteration
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Protocol

from kshell.errors import UsageError

if TYPE_CHECKING:
    from kshell.client.settings import Settings

Exchange = Generator[bytes, bytes, None]
"""Yields the client's messages, is sent the server's; ends when both sides are satisfied."""


class Mechanism(Protocol):
    """``name`` goes into SaslHandshake; ``exchange`` begins anew with each call (a connection each)."""

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
        from kshell.client.sasl.plain import Plain

        if not tls and not settings.allow_plaintext_password:
            raise UsageError(
                f"{node}: SASL PLAIN would send the password over a connection that is not encrypted",
                hint="use security.protocol=SASL_SSL, or allow it with -X sasl.plain.allow.plaintext=true",
            )
        return Plain(chosen, node)
    if chosen.mechanism == "OAUTHBEARER":
        from kshell.client.sasl.oauthbearer import OAuthBearer

        most = settings.request_timeout
        return OAuthBearer(chosen, node, timeout=most if timeout is None else min(most, timeout))
    from kshell.client.sasl.scram import Scram

    return Scram(chosen, node)
