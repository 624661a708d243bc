"""From an address to a usable connection: TCP, TLS, ApiVersions (KIP-35, KIP-511), then SASL (KIP-43, KIP-152).

A peer that closes the connection on ApiVersions may not know that version: it is asked once more with the same version,
then with lower ones; at last it is treated as the release that ``broker.version.fallback`` names.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING

from kshell.client.address import name_of
from kshell.client.connection import NOT_KAFKA, Connection, NodeVersions, Range, SocketTransport, versions_of
from kshell.client.properties import hides_locals
from kshell.client.sasl.mechanisms import mechanism
from kshell.errors import (
    AuthenticationError,
    ConnectError,
    HostNotAllowedError,
    NotKafkaError,
    ProtocolError,
    ServerError,
    TlsError,
    UnsupportedVersionError,
    UsageError,
)
from kshell.protocol.api import Api
from kshell.protocol.decoder import decoder
from kshell.protocol.messages.connection import API_VERSIONS, SASL_AUTHENTICATE, SASL_HANDSHAKE
from kshell.protocol.names import error_name
from kshell.protocol.primitives import DecodeError
from kshell.protocol.schema import Versions
from kshell.version import __version__

if TYPE_CHECKING:
    from kshell.client.settings import Settings


_SOFTWARE = {"clientSoftwareName": "kraft-shell", "clientSoftwareVersion": __version__}
_UNSUPPORTED_VERSION = 35
_HEADER = 4


def connect(host: str, port: int, settings: Settings, *, timeout: float | None = None) -> Connection:
    """Open a connection that is ready for requests.

    Args:
        host: where the node listens; must be among ``settings.allowed_hosts``, where that is set.
        port: the port of its listener.
        settings: how to connect and log in.
        timeout: seconds for all steps together; ``None`` for ``default.api.timeout.ms``.

    Raises:
        HostNotAllowedError: ``allowed.hosts`` does not list the host; nothing was sent.
        NodeError: any other failure.
    """
    if settings.allowed_hosts is not None and not settings.allowed_hosts.allows(host):
        hint = f"if the host belongs to the cluster, add it: -X allowed.hosts=…,{host}"
        raise HostNotAllowedError(name_of(host, port), "allowed.hosts does not list this host", hint=hint)
    deadline = time.monotonic() + (settings.api_timeout if timeout is None else timeout)
    connection = _negotiated(host, port, settings, deadline)
    if settings.sasl is not None:
        try:
            authenticate(connection, settings, deadline)
        except BaseException:
            connection.close()
            raise
    return connection


def _negotiated(host: str, port: int, settings: Settings, deadline: float) -> Connection:
    """Return a connection with ``versions`` set: reported by the peer, or those of ``broker.version.fallback``."""
    tried: list[int] = []
    while True:
        connection = _open(host, port, settings, deadline)
        version = _version_to_try(connection, len(tried))
        if version is None:
            return _assumed(connection, settings, tried)
        tried.append(version)
        try:
            connection.versions = _ask(connection, version, deadline)
            return connection
        except TlsError:
            raise
        except ProtocolError as error:
            connection.close()
            if API_VERSIONS.key in dialect_apis(settings.dialects):
                raise
            raise NotKafkaError(error.node, error.reason, api=error.api, hint=error.hint or NOT_KAFKA) from None
        except ConnectError:
            # A peer that does not know the version closes the connection without a response: try the next version.
            if time.monotonic() > deadline:
                raise
        except BaseException:
            connection.close()
            raise


def _version_to_try(connection: Connection, attempt: int) -> int | None:
    """Return the version of an attempt: the highest, the same again, then each lower one; ``None`` after the last."""
    versions = connection.api(API_VERSIONS).versions
    banned = connection.excluded.get(API_VERSIONS.name, frozenset())
    allowed = [version for version in range(versions.high or 0, versions.low - 1, -1) if version not in banned]
    order = allowed[:1] + allowed
    return order[attempt] if attempt < len(order) else None


def _open(host: str, port: int, settings: Settings, deadline: float) -> Connection:
    soon = min(deadline, time.monotonic() + settings.connect_timeout)
    return Connection(
        SocketTransport(host, port, soon, settings),
        client_id=settings.client_id,
        timeout=min(settings.request_timeout, settings.api_timeout),
        excluded=settings.excluded,
        dialect_apis=dialect_apis(settings.dialects),
    )


def dialect_apis(dialects: frozenset[str]) -> dict[int, Api]:
    """Return the APIs that the named dialects replace, by API key."""
    if not dialects:
        return {}
    from kshell.protocol.messages.drafts import DIALECTS

    return {DIALECTS[name].key: DIALECTS[name] for name in sorted(dialects)}


def _ask(connection: Connection, version: int, deadline: float) -> NodeVersions:
    """Send ApiVersions, and send it again with a lower version if the peer refuses ``version``. Raises NodeError."""
    api = connection.api(API_VERSIONS)
    remaining = min(max(deadline - time.monotonic(), 0.0), connection.timeout)
    frame = connection.exchange_raw(api, version, _SOFTWARE, timeout=remaining)
    listed = _refused(api, version, frame)
    if listed is not None:
        version = _next_version(connection, api, max(min(listed, version - 1), 0))
        frame = connection.exchange_raw(api, version, _SOFTWARE, timeout=remaining)
    body = connection.decoded(api, version, frame)
    code = body.get("errorCode", 0)
    if code:
        connection.close()
        raise ServerError(connection.node, code, error_name(code), api=api.name)
    return versions_of(body)


def _next_version(connection: Connection, api: Api, highest: int) -> int:
    """Return the highest version up to ``highest`` that is not excluded. Raises UnsupportedVersionError if all are."""
    banned = connection.excluded.get(api.name, frozenset())
    for version in range(highest, -1, -1):
        if version in api.versions and version not in banned:
            return version
    connection.close()
    reason = f"the node knows no version above {highest}, and api.versions.exclude leaves out the rest"
    raise UnsupportedVersionError(connection.node, reason, api=api.name)


def _refused(api: Api, version: int, frame: bytes) -> int | None:
    """Return the peer's highest ApiVersions version if it refused ``version``; ``None`` if it did not refuse.

    The refusal (UNSUPPORTED_VERSION) is in the layout of version 0, whatever was asked, and lists the highest version
    (KIP-511). Peers older than KIP-511 list nothing; for them the result is 0.
    """
    error = int.from_bytes(frame[_HEADER : _HEADER + 2], "big", signed=True)
    if error != _UNSUPPORTED_VERSION or version == 0:
        return None
    try:
        body, _ = decoder(API_VERSIONS.response, 0, API_VERSIONS.most_elements)(frame, _HEADER)
    except DecodeError:
        return 0
    return versions_of(body).ranges.get(API_VERSIONS.key, (0, 0))[1]


def _ranges_of(release: str) -> Mapping[int, Range]:
    """Return the API versions of brokers of a release, patch numbers ignored. Raises UsageError if it is unknown."""
    from kshell.client.releases import BROKER, RELEASES, offers

    for offer in offers():
        if offer.kind == BROKER and offer.patch is None and f"{release}.".startswith(f"{offer.release}."):
            return offer.ranges
    hint = f"releases: {', '.join(RELEASES)}"
    raise UsageError(f"broker.version.fallback: {release} is not a release that is known", hint=hint)


def _assumed(connection: Connection, settings: Settings, tried: list[int]) -> Connection:
    """Return the connection with the versions of ``broker.version.fallback``: the peer rejects every ApiVersions.

    Raises ConnectError (with TLS, TlsError) if that property is not set, UsageError if it names an unknown release.
    """
    if settings.fallback_release is not None:
        try:
            ranges = _ranges_of(settings.fallback_release)
        except UsageError:
            connection.close()
            raise
        connection.versions = NodeVersions(ranges, assumed=settings.fallback_release)
        return connection
    connection.close()
    if settings.tls is not None:
        from kshell.client.tls import explain

        raise explain(EOFError(), connection.node, presents=settings.tls.presents, handshake=False)
    versions = ", ".join(f"v{version}" for version in dict.fromkeys(tried))
    raise ConnectError(
        connection.node,
        f"the peer closes the connection when it is asked for its versions ({versions or 'all are excluded'})",
        api=API_VERSIONS.name,
        hint="does the listener want TLS or SASL (security.protocol)? Does it refuse this machine or its certificate?"
        " For a broker before 0.10, set broker.version.fallback to its release",
    )


# --- SASL -------------------------------------------------------------------------------------------------------------


_UNSUPPORTED_MECHANISM = 33
_ILLEGAL_STATE = 34
_AUTHENTICATION_FAILED = 58
_FRAMED = Versions(1, None)
"""SaslHandshake versions with which SASL messages are inside SaslAuthenticate; before Kafka 1.0 they were not."""
_MOST_STEPS = 16
_LIFETIME_USED = 0.85
"""The part of a session's lifetime after which kshell logs in again; Kafka's client takes 85 to 95 % of it."""


@hides_locals
def authenticate(connection: Connection, settings: Settings, deadline: float) -> None:
    """Authenticate the client. Raises NodeError: AuthenticationError if the server or the client refuses the other."""
    remaining = min(connection.timeout, max(deadline - time.monotonic(), 0.0))
    chosen = mechanism(settings, connection.node, settings.tls is not None, remaining)
    answer = connection.request(SASL_HANDSHAKE, {"mechanism": chosen.name}, accepted=_FRAMED, timeout=remaining).body
    if answer["errorCode"]:
        raise _mechanism_refused(connection.node, chosen.name, answer)
    _exchange(connection, chosen.name, chosen.exchange(), deadline)


def _exchange(connection: Connection, name: str, steps: Generator[bytes, bytes, None], deadline: float) -> None:
    try:
        token = next(steps)
        for _ in range(_MOST_STEPS):
            try:
                answer = _exchange_token(connection, name, token, deadline)
            except AuthenticationError as error:
                token = steps.throw(error)  # the mechanism may raise an error with a better reason
            else:
                token = steps.send(answer)
    except StopIteration:
        return
    raise AuthenticationError(connection.node, f"{name} did not end within {_MOST_STEPS} steps")


def _exchange_token(connection: Connection, name: str, token: bytes, deadline: float) -> bytes:
    remaining = min(connection.timeout, max(deadline - time.monotonic(), 0.0))
    try:
        answer = connection.request(SASL_AUTHENTICATE, {"authBytes": token}, timeout=remaining).body
    except ConnectError as error:
        # A server that refuses the client says so (KIP-152). One that only disconnects may be restarting, so this stays
        # a ConnectError: callers may try again.
        hint = error.hint or "if it stays so, the server's log says why"
        raise type(error)(error.node, f"{name}: {error.reason}", api=error.api, hint=hint) from None
    code = answer["errorCode"]
    if code == _AUTHENTICATION_FAILED:
        reason = answer["errorMessage"] or error_name(code)
        hint = "are the user name and the password in sasl.jaas.config right, and known to this listener?"
        raise AuthenticationError(connection.node, f"{name}: {reason}", api=SASL_AUTHENTICATE.name, hint=hint)
    if code:
        reason = f"{name}: {error_name(code)}: {answer['errorMessage'] or 'no reason given'}"
        raise AuthenticationError(connection.node, reason, api=SASL_AUTHENTICATE.name)
    lifetime_ms = answer.get("sessionLifetimeMs", 0)
    if lifetime_ms > 0:
        connection.retires_at = time.monotonic() + _LIFETIME_USED * lifetime_ms / 1000
    token = answer["authBytes"]
    return bytes(token)


def _mechanism_refused(node: str, name: str, answer: dict[str, object]) -> AuthenticationError | ServerError:
    code = answer["errorCode"]
    assert isinstance(code, int)
    if code == _ILLEGAL_STATE:
        hint = "does this listener use SASL at all? Set security.protocol to what it speaks, or use another port"
        return AuthenticationError(node, "the listener does not expect SASL now", api=SASL_HANDSHAKE.name, hint=hint)
    if code != _UNSUPPORTED_MECHANISM:
        return ServerError(node, code, error_name(code), api=SASL_HANDSHAKE.name)
    there = answer["mechanisms"]
    assert isinstance(there, list)
    hint = f"set sasl.mechanism to one of: {', '.join(there)}" if there else "the listener enables no mechanism"
    return AuthenticationError(node, f"the listener does not take {name}", api=SASL_HANDSHAKE.name, hint=hint)
