"""OAUTHBEARER (RFC 7628): a bearer token in one message; where tokens come from; the HTTPS request that fetches one.

A token comes from a token endpoint (client credentials, RFC 6749 section 4.4), a file or a command. What an endpoint
gave is presented again, by each connection of these settings, for as much of its lifetime as Java does
(``sasl.login.refresh.window.factor``); files and commands are asked each time.

The request has a deadline and a number of bytes, whatever the server sends. ``http.client`` reads a response; what it
reads from is ours: a time limit for each read of a socket, which is all that HTTP libraries offer, is none for a server
that sends a byte now and then, or ``100 Continue`` without an end.
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
    from kshell.client.tls import Tls


# --- the mechanism ----------------------------------------------------------------------------------------------------


_SEPARATOR = b"\x01"
_KEY = re.compile(r"[A-Za-z]+\Z")
_VALUE = re.compile(r"[\x21-\x7e \t\r\n]+\Z")
_LONGEST = 1000
"""Characters of a server's failure that are shown to the user."""


class OAuthBearer:
    """Fetches a token, sends it. A refusal comes as a JSON object, which the client acknowledges."""

    name = "OAUTHBEARER"

    def __init__(self, sasl: Sasl, node: str, timeout: float) -> None:
        self._sasl = sasl
        self._node = node
        self._timeout = timeout

    def exchange(self) -> Exchange:
        """One message, or two when the server refuses. Raises AuthenticationError, UsageError."""

        assert self._sasl.oauth is not None
        token = fetch_token(self._sasl.oauth, self._node, self._timeout)
        answer = yield self._first(token)
        if not answer:
            return
        self._sasl.oauth.token_cache.token = None
        # The server waits for this before it says (as an error code, too) that it refuses.
        with contextlib.suppress(AuthenticationError):  # thrown in here by whoever saw that code
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
    """The server's own reason, short: the status of the JSON object, or what else it sent."""
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
"""Bytes of a file with a token in it, or of the output of a command."""
_TOKEN = re.compile(r"[-_~+/.a-zA-Z0-9]+=*\Z")
"""RFC 6750's b64token, which is also what Kafka's server takes."""
_RESERVED = ("exp", "iat")
_WINDOW = 0.8
"""``sasl.login.refresh.window.factor``"""
_BUFFER = 300.0
"""``sasl.login.refresh.buffer.seconds``"""
_MIN_PERIOD = 60.0
"""``sasl.login.refresh.min.period.seconds``"""
_LARGEST_INT64 = 1 << 63
_DIGITS = re.compile(r"[0-9]{1,18}(\.[0-9]{1,9})?\Z")


def fetch_token(oauth: OAuth, node: str, timeout: float) -> str:
    """The token, within ``timeout`` seconds. Raises AuthenticationError (naming the node it was for), UsageError."""
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
    """The command's output. No shell is involved; its standard error is the user's."""
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
    """The access token that the endpoint gives for the client's credentials: one request, no redirections."""
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
        reason, hint = error.verify_message, "its certificate is checked against ssl.truststore.*, or the system's"
    elif isinstance(error, TimeoutError):
        reason = "no whole answer in time"
        hint = "sasl.login.connect.timeout.ms and sasl.login.read.timeout.ms set how long to wait, within"
        hint += " socket.connection.setup.timeout.ms"
    elif isinstance(error, ValueError | http.client.InvalidURL):
        reason = "the URL cannot be used"
    elif isinstance(error, OSError) and error.strerror:
        reason = error.strerror
    elif isinstance(error, http.client.HTTPException | OSError):
        reason = f"the answer is not HTTP, or is cut ({type(error).__name__})"
    else:
        reason, hint = "the answer is too large for one with a token", "is it the URL of a token endpoint?"
    raise AuthenticationError(node, f"the token endpoint {_public_url(endpoint)}: {reason}", hint=hint) from None


def _public_url(endpoint: str) -> str:
    """The URL without what may be secret in it: user, password, query."""
    parts = urlsplit(endpoint)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _access_token(endpoint: str, node: str, status: int, text: bytes) -> tuple[str, float]:
    """(the token, its lifetime in seconds, 0 where the answer does not say it)."""
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
    """Return the seconds for which a token is still valid, 0 where that is not known.

    What the endpoint says (RFC 6749) and the token itself: Kafka's client and server go by the latter. The earlier end
    counts.
    """
    lifetimes = [seconds for seconds in (_seconds(expires_in), _until_expiry(token)) if seconds is not None]
    return max(min(lifetimes, default=0.0), 0.0)


def _seconds(value: object) -> float | None:
    """A number of seconds, also where it came as a string (some endpoints do that); ``None`` for what is none."""
    if isinstance(value, str) and _DIGITS.match(value):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _LARGEST_INT64:
        return None
    return float(value)


def _until_expiry(token: str) -> float | None:
    """By its claim ``exp`` (RFC 7519), where the token is a JWT. It is ours, so its signature is not our business."""
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
    """For how many seconds a token is presented again (``ExpiringCredentialRefreshingLogin``, Kafka's defaults)."""
    if lifetime < _MIN_PERIOD + _BUFFER:
        return lifetime * _WINDOW
    return max(min(lifetime * _WINDOW, lifetime - _BUFFER), _MIN_PERIOD)


def unsecured(options: Mapping[str, Secret], now: float) -> str:
    """A token that is not signed, as ``OAuthBearerUnsecuredLoginCallbackHandler`` makes it; for tests only.

    ``options`` are the JAAS options without ``unsecuredLogin``; ``now`` is in seconds since the epoch.
    """
    claims: dict[str, Any] = {}
    # Whole milliseconds, as Java's clock has them: a token that was issued later within this one is not valid yet.
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
    """A list whose first character separates its elements."""
    return value[1:].split(value[0]) if len(value) > 1 else []


_CLAIMS: dict[str, Callable[[str], Any]] = {"StringClaim": str, "NumberClaim": float, "ListClaim": _list_claim}


# --- one HTTPS request ------------------------------------------------------------------------------------------------


MOST_BYTES = 1 << 20
"""Of the body of an answer."""
_MOST_HEAD = 1 << 16
"""Bytes of status line and headers, those of interim responses (1xx) with them."""
_IN_URL = "/%:=&?~+!$,;'@()*[]"


class TooLargeError(Exception):
    """The answer has more bytes than any with a token in it."""


class Response(NamedTuple):
    """The status, and the body as it came (a content coding is not asked for)."""

    status: int
    body: bytes


def post(
    url: str, body: bytes, headers: Mapping[str, str], tls: Tls, *, connect: float, read: float, total: float
) -> Response:
    """Send one POST; redirections are not followed, and no proxy is used.

    Args:
        url: an ``https`` URL; a user and a password in it are passed over.
        body: what to send.
        headers: beside ``Host`` and ``Content-Length``.
        tls: whom to trust.
        connect: seconds until TLS is agreed on.
        read: seconds from then until the last byte of the answer is here.
        total: seconds for both.

    Raises:
        OSError: among others TimeoutError, ssl.SSLError.
        http.client.HTTPException: what came is not HTTP, or ends early.
        ValueError: the URL cannot be used.
        TooLargeError: headers or body have no end.
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
    """Over a stream that is there already."""

    default_port = 443

    def __init__(self, host: str, port: int, stream: _Stream) -> None:
        super().__init__(host, port)
        self._stream = stream

    def connect(self) -> None:
        self.sock = self._stream


class _Stream(io.RawIOBase):
    """A socket's bytes up to a deadline, and ``most`` of them; what ``http.client`` wants of a socket."""

    def __init__(self, connection: socket.socket, deadline: float) -> None:
        self.most = _MOST_HEAD
        self.taken = 0
        self._connection = connection
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
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
        """Whoever opened the socket closes it: ``http.client`` does it before the body was read."""
