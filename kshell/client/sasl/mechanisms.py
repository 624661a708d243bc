"""SASL mechanisms as generators without a socket: PLAIN (RFC 4616), SCRAM (RFC 5802, RFC 7677); and their declarations.

In: the settings of a connection. Out: a :class:`Mechanism`, whose generator yields the bytes that the client sends in
SaslAuthenticate, and receives the bytes that the server answers::

    exchange = mechanism(settings, "controller-1:9093", tls=True).exchange()
    message = next(exchange)
    while True: message = exchange.send(answer_of_server(message))   # until StopIteration

SCRAM is implemented here, on the standard library's PBKDF2, because Kafka (``ScramSaslClient``) does not apply SASLprep
to name and password but uses their UTF-8 bytes. Existing libraries do apply it, so a password that SASLprep changes
would fail with them.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, NamedTuple, Protocol

from kshell.client.properties import Properties
from kshell.client.sasl.configuration import (
    JAAS,
    Options,
    Sasl,
    login_options,
    names_token,
    password_login,
    token_login,
)
from kshell.errors import AuthenticationError, UsageError

if TYPE_CHECKING:
    from kshell.client.settings import Settings


Exchange = Generator[bytes, bytes, None]
"""One authentication: yields the client's messages, receives the server's, and ends when it has succeeded."""


class Mechanism(Protocol):
    """A mechanism, ready to authenticate; ``name`` is sent in SaslHandshake."""

    name: str

    def exchange(self) -> Exchange:
        """Start an authentication; call this once per connection. The generator raises AuthenticationError."""


# --- PLAIN ------------------------------------------------------------------------------------------------------------


class Plain:
    """PLAIN: one message with name and password; the server's answer is empty, or an error code."""

    name = "PLAIN"

    def __init__(self, sasl: Sasl, node: str) -> None:
        self._sasl = sasl
        self._node = node

    def exchange(self) -> Exchange:
        """Yield the message. Raises UsageError for a NUL in name or password, AuthenticationError for a challenge."""
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
"""Iterations that are accepted: Kafka's own minimum, and a limit on the time that a server can make a client spend."""
_LONGEST = 8192
"""Bytes of the longest message of a server that is read."""
_FIRST = re.compile(r"(?:m=[^,]*,)?r=([\x21-\x2b\x2d-\x7e]+),s=([A-Za-z0-9+/]+={0,2}),i=([1-9][0-9]{0,9})(?:,.*)?\Z")
_FINAL = re.compile(r"(?:e=([^,]*)|v=([A-Za-z0-9+/]+={0,2}))(?:,.*)?\Z")
_API = "SaslAuthenticate"


class Scram:
    """SCRAM-SHA-256 or SCRAM-SHA-512: both sides prove that they know the password, and neither sends it."""

    def __init__(self, sasl: Sasl, node: str, nonce: Callable[[], str] = lambda: secrets.token_urlsafe(24)) -> None:
        self.name = sasl.mechanism
        self._hash = "sha" + sasl.mechanism.rpartition("-")[2]
        self._sasl = sasl
        self._node = node
        self._nonce = nonce

    def exchange(self) -> Exchange:
        """Yield two messages. Raises AuthenticationError if the server's nonce, iterations or proof are not valid."""
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
        """Read the server's first message: (combined nonce, salt, iterations), all checked."""
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


# --- which there are --------------------------------------------------------------------------------------------------


class Login(NamedTuple):
    """What a mechanism needs for one login; ``tls`` is whether the connection is encrypted."""

    sasl: Sasl
    node: str
    """The node's ``host:port``, for errors."""
    settings: Settings
    tls: bool
    timeout: float
    """Seconds for fetching a token (OAUTHBEARER)."""


class SaslMechanism(NamedTuple):
    """The declaration of a mechanism; :func:`sasl_of` calls ``login``, then :func:`mechanism` calls ``begin``."""

    login_modules: tuple[str, ...]
    """Class names, without package, of the login modules that may be in ``sasl.jaas.config``."""
    example: str
    """A value of ``sasl.jaas.config``, for hints."""
    begin: Callable[[Login], Mechanism]
    """Makes the mechanism. Raises UsageError if it must not be used over this connection."""
    login: Callable[[Properties, str, Options, str], Sasl] = password_login
    """(properties, name of the mechanism, options of the login module, example) -> credentials. Raises UsageError."""
    does_without_jaas: Callable[[Properties], bool] = lambda properties: False
    """Whether the properties have all that is needed, so that ``sasl.jaas.config`` may be absent."""


def _plain(login: Login) -> Mechanism:
    if not login.tls and not login.settings.allow_plaintext_password:
        raise UsageError(
            f"{login.node}: SASL PLAIN would send the password over a connection that is not encrypted",
            hint="use security.protocol=SASL_SSL, or allow it with -X sasl.plain.allow.plaintext=true",
        )
    return Plain(login.sasl, login.node)


def _scram(login: Login) -> Mechanism:
    return Scram(login.sasl, login.node)


def _oauthbearer(login: Login) -> Mechanism:
    from kshell.client.sasl.oauth import OAuthBearer  # late: it needs HTTP

    return OAuthBearer(login.sasl, login.node, login.timeout)


_PACKAGE = "org.apache.kafka.common.security"
_SCRAM = SaslMechanism(
    ("ScramLoginModule",), f'{_PACKAGE}.scram.ScramLoginModule required username="…" password="…";', _scram
)
MECHANISMS = {
    # In Java, PLAIN gets name and password from either login module.
    "PLAIN": SaslMechanism(
        ("PlainLoginModule", "ScramLoginModule"),
        f'{_PACKAGE}.plain.PlainLoginModule required username="…" password="…";',
        _plain,
    ),
    "SCRAM-SHA-256": _SCRAM,
    "SCRAM-SHA-512": _SCRAM,
    "OAUTHBEARER": SaslMechanism(
        ("OAuthBearerLoginModule",),
        f"{_PACKAGE}.oauthbearer.OAuthBearerLoginModule required;",
        _oauthbearer,
        token_login,
        names_token,
    ),
}
"""The mechanisms by name. To add one, declare it here; nothing else needs to change."""


def sasl_of(properties: Properties) -> Sasl:
    """Read the mechanism (``sasl.mechanism``; Kafka's default is GSSAPI) and the credentials that it needs.

    Raises:
        UsageError: the mechanism is not in :data:`MECHANISMS`, or a property is missing or wrong.
    """
    key, names = "sasl.mechanism", ", ".join(MECHANISMS)
    name = (properties.filled(key) or "GSSAPI").upper()
    declared = MECHANISMS.get(name)
    if name == "GSSAPI":
        raise properties.fault(
            key,
            "GSSAPI (Kerberos), which is also the default, is not supported",
            hint=f"kshell speaks {names}: ask for a listener that offers one of them",
        )
    if declared is None:
        raise properties.fault(key, f"{name} is not supported", hint=f"kshell speaks {names}")
    options: Options = {}
    if properties.filled(JAAS) or not declared.does_without_jaas(properties):
        options = login_options(properties, name, declared.login_modules, declared.example)
    return declared.login(properties, name, options, declared.example)


def mechanism(settings: Settings, node: str, tls: bool, timeout: float | None = None) -> Mechanism:
    """Return the mechanism of the settings, ready to authenticate.

    Args:
        settings: the mechanism and the credentials.
        node: the node's ``host:port``, for errors.
        tls: whether the connection is encrypted.
        timeout: seconds for fetching a token, if that is less than ``request.timeout.ms``.

    Raises:
        UsageError: SASL is not configured, or PLAIN would send a password over a connection that is not encrypted and
            the settings do not allow that.
    """
    if settings.sasl is None:
        raise UsageError(f"security.protocol={settings.security_protocol} uses no SASL")
    most = settings.request_timeout
    login = Login(settings.sasl, node, settings, tls, most if timeout is None else min(most, timeout))
    return MECHANISMS[settings.sasl.mechanism].begin(login)
