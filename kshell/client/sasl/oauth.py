"""OAUTHBEARER (RFC 7628): send a bearer token in one message; get the token from an endpoint, a file or a command.

An endpoint is asked by HTTPS with client credentials (RFC 6749 section 4.4). Its token is cached and used by all
connections of these settings, for as much of its lifetime as Java uses it (``sasl.login.refresh.window.factor``). Files
are read, and commands are run, for each connection.

The HTTPS request has one deadline and a limit of bytes for the whole response. ``http.client`` parses it, but reads
from our own stream (:class:`_Stream`): HTTP libraries only limit the time of each read of the socket, so a server that
sends a byte now and then, or ``100 Continue`` again and again, could hold the client for ever.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import io
import json
import re
import socket
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn
from urllib.parse import quote, quote_plus, unquote, urlencode, urlsplit

from kshell.client.connection import open_socket, seconds_left
from kshell.client.properties import Secret
from kshell.client.sasl.configuration import OAuth, Sasl
from kshell.client.sasl.mechanisms import Exchange
from kshell.client.tls import context_of, server_name
from kshell.errors import AuthenticationError, UsageError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

    from kshell.client.tls import Tls
    from kshell.json_text import JsonObject


# --- the mechanism ----------------------------------------------------------------------------------------------------


_SEPARATOR = b"\x01"
_KEY = re.compile(r"[A-Za-z]+\Z")
_VALUE = re.compile(r"[\x21-\x7e \t\r\n]+\Z")
_LONGEST = 1000
"""Characters of a server's reason that are shown to the user, at most."""


class OAuthBearer:
    """OAUTHBEARER: gets a token and sends it. A server refuses with a JSON object, which the client acknowledges."""

    name = "OAUTHBEARER"

    def __init__(self, sasl: Sasl, node: str, timeout: float) -> None:
        self._sasl = sasl
        self._node = node
        self._timeout = timeout

    def exchange(self) -> Exchange:
        """Yield one message, and a second one if the server refuses. Raises AuthenticationError, UsageError."""

        assert self._sasl.oauth is not None
        token = fetch_token(self._sasl.oauth, self._node, self._timeout)
        answer = yield self._first(token)
        if not answer:
            return
        self._sasl.oauth.token_cache.token = None
        # The server waits for this message before it sends the error code of the refusal.
        with contextlib.suppress(AuthenticationError):  # the caller throws it in here when it receives that code
            yield _SEPARATOR
        raise AuthenticationError(
            self._node,
            f"OAUTHBEARER: the token was refused: {_server_reason(answer)}",
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


def _server_reason(answer: bytes) -> str:
    """Return the server's reason, shortened: the fields of its JSON object, or else its text."""
    text = answer[: 4 * _LONGEST].decode("utf-8", "replace")
    try:
        status = json.loads(text)
    except (ValueError, RecursionError):
        return text[:_LONGEST]
    if not isinstance(status, dict):
        return text[:_LONGEST]
    return ", ".join(f"{name}={value}" for name, value in status.items() if value)[:_LONGEST]


# --- tokens -----------------------------------------------------------------------------------------------------------


_LARGEST = 1 << 20
"""Bytes of a token file, or of the output of a token command, that are read."""
_TOKEN = re.compile(r"[-_~+/.a-zA-Z0-9]+=*\Z")
"""The b64token of RFC 6750, which is also what Kafka's server accepts."""
_RESERVED = ("exp", "iat")
_WINDOW = 0.8
"""Kafka's default of ``sasl.login.refresh.window.factor``"""
_BUFFER = 300.0
"""Kafka's default of ``sasl.login.refresh.buffer.seconds``"""
_MIN_PERIOD = 60.0
"""Kafka's default of ``sasl.login.refresh.min.period.seconds``"""
_LARGEST_INT64 = 1 << 63
_DIGITS = re.compile(r"[0-9]{1,18}(\.[0-9]{1,9})?\Z")


def fetch_token(oauth: OAuth, node: str, timeout: float) -> str:
    """Get a token from its source within ``timeout`` seconds. Raises UsageError, AuthenticationError about ``node``."""
    if oauth.claims:
        return unsecured(oauth.claims, time.time())
    if oauth.token_command is not None:
        origin, token = "the token command", _token_of_command(oauth.token_command, node, timeout)
    elif oauth.token_file is not None:
        origin, token = oauth.token_file, _token_in(oauth.token_file)
    elif oauth.endpoint is not None and oauth.endpoint.lower().startswith("file:"):
        path = unquote(urlsplit(oauth.endpoint).path)
        origin, token = path, _token_in(path)
    else:
        origin, token = (
            f"the token endpoint {_public_url(str(oauth.endpoint))}",
            _token_of_endpoint(oauth, node, timeout),
        )
    token = token.strip()
    if not _TOKEN.match(token):
        raise AuthenticationError(node, f"{origin} gave no bearer token", hint="a token has no spaces or line breaks")
    return token


def _token_in(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read(_LARGEST)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "is not text"
        raise UsageError(f"{path}: {reason}", hint="the token's file is set in the client properties") from None


def _token_of_command(command: str, node: str, timeout: float) -> str:
    """Run the command, without a shell, and return its output. Its standard error goes to the user's terminal."""
    import shlex
    import subprocess

    fault = "the token command (sasl.oauthbearer.token.command)"
    try:
        arguments = shlex.split(command)
        if not arguments:
            raise ValueError
    except ValueError:
        raise UsageError("sasl.oauthbearer.token.command: cannot be split into words") from None
    try:
        process = subprocess.run(
            arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=timeout, check=False
        )
    except OSError as error:
        raise UsageError(f"sasl.oauthbearer.token.command: {arguments[0]}: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise AuthenticationError(node, f"{fault} did not end within {timeout:g} s") from None
    if process.returncode != 0:
        raise AuthenticationError(node, f"{fault} ended with code {process.returncode}")
    return process.stdout[:_LARGEST].decode("utf-8", "replace")


def _token_of_endpoint(oauth: OAuth, node: str, timeout: float) -> str:
    """Return the cached token, or request one with the client's credentials; redirections are not followed."""
    if oauth.token_cache.token is not None and time.monotonic() < oauth.token_cache.until:
        return oauth.token_cache.token.value

    assert oauth.endpoint is not None
    fields = {"grant_type": "client_credentials"} | ({"scope": oauth.scope} if oauth.scope else {})
    headers = {
        "Authorization": _basic(oauth),
        "Accept": "application/json",
        "Content-Type": "application/x-www-form-urlencoded",
        "Cache-Control": "no-cache",
    }
    began = time.monotonic()
    connect, read = oauth.connect_timeout or timeout, oauth.read_timeout or timeout
    body = urlencode(fields).encode()
    try:
        answer = post(oauth.endpoint, body, headers, oauth.tls, connect=connect, read=read, total=timeout)
    except (OSError, http.client.HTTPException, ValueError, TooLargeError) as error:
        _unreachable(oauth.endpoint, node, error)
    token, lifetime = _access_token(oauth.endpoint, node, answer.status, answer.body)
    oauth.token_cache.token, oauth.token_cache.until = Secret(token), began + _fresh(lifetime)
    return token


def _basic(oauth: OAuth) -> str:
    assert oauth.client_id is not None
    assert oauth.client_secret is not None
    encode = quote_plus if oauth.encode_header else str
    pair = f"{encode(oauth.client_id.strip())}:{encode(oauth.client_secret.value.strip())}"
    return "Basic " + base64.b64encode(pair.encode()).decode()


def _unreachable(endpoint: str, node: str, error: Exception) -> NoReturn:
    import ssl

    hint = "is the URL right, and can it be reached from here?"
    if isinstance(error, ssl.SSLCertVerificationError):
        reason = error.verify_message
        hint = "ssl.truststore.… in sasl.jaas.config says what to trust there; without it, the system's certificates"
        hint += " and ssl.truststore.*"
    elif isinstance(error, TimeoutError):
        reason = "no complete answer in time"
        hint = "sasl.login.connect.timeout.ms and sasl.login.read.timeout.ms set how long to wait, within"
        hint += " socket.connection.setup.timeout.ms"
    elif isinstance(error, ValueError | http.client.InvalidURL):
        reason = "the URL cannot be used"
    elif isinstance(error, OSError) and error.strerror:
        reason = error.strerror
    elif isinstance(error, http.client.HTTPException | OSError):
        reason = f"the answer is not HTTP, or is truncated ({type(error).__name__})"
    else:
        reason, hint = "the answer is too large for one with a token", "is it the URL of a token endpoint?"
    raise AuthenticationError(node, f"the token endpoint {_public_url(endpoint)}: {reason}", hint=hint) from None


def _public_url(endpoint: str) -> str:
    """Return the URL without the parts that may be secret: user, password, query."""
    parts = urlsplit(endpoint)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _access_token(endpoint: str, node: str, status: int, text: bytes) -> tuple[str, float]:
    """Read the endpoint's response: (token, lifetime in seconds, 0 if it is not known). Raises AuthenticationError."""
    place = f"the token endpoint {_public_url(endpoint)}"
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        body = None
    if status not in (200, 201):
        detail = ""
        if isinstance(body, dict):  # RFC 6749 section 5.2: these two are for human readers and hold no secret
            errors = [body.get("error"), body.get("error_description")]
            detail = ": " + ": ".join(str(error)[:300] for error in errors if error) if any(errors) else ""
        raise AuthenticationError(
            node, f"{place} answered {status}{detail}", hint="check the client's id, secret and scope"
        )
    body = body if isinstance(body, dict) else {}
    token = body.get("access_token")
    if not isinstance(token, str):
        raise AuthenticationError(node, f"{place} answered without an access_token")
    return token, _lifetime(body.get("expires_in"), token)


def _lifetime(expires_in: object, token: str) -> float:
    """Return the seconds for which a token is still valid, 0 if that is not known.

    It is the lower of what the endpoint says (``expires_in``, RFC 6749) and the token's own claim, which Kafka's client
    and server use.
    """
    lifetimes = [seconds for seconds in (_seconds(expires_in), _until_expiry(token)) if seconds is not None]
    return max(min(lifetimes, default=0.0), 0.0)


def _seconds(value: object) -> float | None:
    """Read a number of seconds, which some endpoints send as a string; ``None`` if it is not a number."""
    if isinstance(value, str) and _DIGITS.match(value):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _LARGEST_INT64:
        return None
    return float(value)


def _until_expiry(token: str) -> float | None:
    """Return the seconds until the claim ``exp`` (RFC 7519) of our own JWT, not verified; ``None`` for other tokens."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, RecursionError):
        return None
    claim = claims.get("exp") if isinstance(claims, dict) else None
    expiry = None if isinstance(claim, str) else _seconds(claim)
    return None if expiry is None else expiry - time.time()


def _fresh(lifetime: float) -> float:
    """Return for how many seconds a token is used, as ``ExpiringCredentialRefreshingLogin`` with Kafka's defaults."""
    if lifetime < _MIN_PERIOD + _BUFFER:
        return lifetime * _WINDOW
    return max(min(lifetime * _WINDOW, lifetime - _BUFFER), _MIN_PERIOD)


def unsecured(options: Mapping[str, Secret], now: float) -> str:
    """Make a token that is not signed, as ``OAuthBearerUnsecuredLoginCallbackHandler`` does; for tests only.

    ``options`` are the ``unsecuredLogin…`` options of JAAS without that prefix; ``now`` is in seconds since the epoch.
    """
    claims: JsonObject = {}
    # Rounded down to milliseconds, as Java's clock: the server refuses a token that was issued later than its own time.
    now = int(now * 1000) / 1000
    lifetime = options.get("LifetimeSeconds")
    try:
        claims["exp"] = now + (int(lifetime.value) if lifetime else 3600)
        for option, value in options.items():
            kind, _, name = option.partition("_")
            if kind not in _CLAIMS or not name:
                continue
            if name in _RESERVED:
                raise UsageError(f"sasl.jaas.config: the claim {name} cannot be set")
            claims[name] = _CLAIMS[kind](value.value)
    except ValueError:
        raise UsageError("sasl.jaas.config: a number in the unsecuredLogin… options is not one") from None
    claims["iat"] = now
    if not claims.get(options["PrincipalClaimName"].value if "PrincipalClaimName" in options else "sub"):
        raise UsageError("sasl.jaas.config: unsecuredLoginStringClaim_sub is missing")
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in ({"alg": "none"}, claims)]
    return (b".".join(parts) + b".").decode()


def _list_claim(value: str) -> list[str]:
    """Split a list whose first character is the separator of its elements."""
    return value[1:].split(value[0]) if len(value) > 1 else []


_CLAIMS: dict[str, Callable[[str], Any]] = {"StringClaim": str, "NumberClaim": float, "ListClaim": _list_claim}


# --- one HTTPS request ------------------------------------------------------------------------------------------------


MOST_BYTES = 1 << 20
"""Bytes of the body of a response, at most."""
_MOST_HEAD = 1 << 16
"""Bytes of status line and headers, at most, including those of interim responses (1xx)."""
_IN_URL = "/%:=&?~+!$,;'@()*[]"


class TooLargeError(Exception):
    """The response has more bytes than one with a token needs."""


class Response(NamedTuple):
    """The status and the body of a response. The body is as it was received: the request asks for no content coding."""

    status: int
    body: bytes


def post(
    url: str, body: bytes, headers: Mapping[str, str], tls: Tls, *, connect: float, read: float, total: float
) -> Response:
    """Send one POST; redirections are not followed, and no proxy is used.

    Args:
        url: an ``https`` URL; a user and a password in it are ignored.
        body: the body of the request.
        headers: headers of the request, in addition to ``Host`` and ``Content-Length``.
        tls: the trust store, key store and TLS versions.
        connect: seconds to connect, including the TLS handshake.
        read: seconds from then on until the whole response is received.
        total: seconds for both.

    Raises:
        OSError: among others TimeoutError, ssl.SSLError.
        http.client.HTTPException: the response is not HTTP, or ends early.
        ValueError: the URL cannot be used.
        TooLargeError: headers or body exceed the limits of this module.
    """
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or 443
    end = time.monotonic() + total
    deadline = min(end, time.monotonic() + connect)
    with open_socket(host, port, deadline) as plain:
        plain.settimeout(seconds_left(deadline))
        with context_of(tls).wrap_socket(plain, server_hostname=server_name(host)) as connection:
            stream = _Stream(connection, min(end, time.monotonic() + read))
            exchange = _Connection(host, port, stream)
            target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
            exchange.request("POST", quote(target, safe=_IN_URL), body, dict(headers))
            response = exchange.getresponse()
            stream.most = stream.taken + MOST_BYTES
            content = bytearray()
            while part := response.read1(1 << 16):
                content += part
            if response.length:
                raise http.client.IncompleteRead(b"", response.length)
            return Response(response.status, bytes(content))


class _Connection(http.client.HTTPConnection):
    """An HTTP connection over a stream that is already connected."""

    default_port = 443

    def __init__(self, host: str, port: int, stream: _Stream) -> None:
        super().__init__(host, port)
        self._stream = stream

    def connect(self) -> None:
        self.sock = self._stream


class _Stream(io.RawIOBase):
    """What ``http.client`` needs of a socket, with one deadline and at most ``most`` bytes that can be read."""

    def __init__(self, connection: socket.socket, deadline: float) -> None:
        self.most = _MOST_HEAD
        self.taken = 0
        self._connection = connection
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        if self.taken >= self.most:
            raise TooLargeError
        self._connection.settimeout(seconds_left(self._deadline))
        count = self._connection.recv_into(memoryview(buffer)[: self.most - self.taken])
        self.taken += count
        return count

    def sendall(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            self._connection.settimeout(seconds_left(self._deadline))
            rest = rest[self._connection.send(rest) :]

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(self)

    def close(self) -> None:
        """Do nothing: ``http.client`` calls this before the body is read, and :func:`post` closes the socket itself."""
