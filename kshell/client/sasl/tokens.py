"""Where bearer tokens come from: a token endpoint (client credentials, RFC 6749 section 4.4), a file, a command.

What an endpoint gave is presented again, by each connection of these settings, for as much of its lifetime as Java does
(``sasl.login.refresh.window.factor``); files and commands are asked anew each time.
"""

from __future__ import annotations

import base64
import http.client
import json
import re
import time
from collections.abc import Callable, Mapping
from typing import Any, NoReturn
from urllib.parse import quote_plus, unquote, urlencode, urlsplit

from kshell.client.sasl.configuration import OAuth
from kshell.client.secret import Secret
from kshell.errors import AuthenticationError, UsageError

_LARGEST = 1 << 20
"""Bytes of a file with a token in it, or of what a command says."""
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


def fetch(oauth: OAuth, node: str, timeout: float) -> str:
    """The token, within ``timeout`` seconds. Raises AuthenticationError (naming the node it was for), UsageError."""
    if oauth.claims:
        return unsecured(oauth.claims, time.time())
    if oauth.token_command is not None:
        origin, token = "the token command", _run(oauth.token_command, node, timeout)
    elif oauth.token_file is not None:
        origin, token = oauth.token_file, _read(oauth.token_file)
    elif oauth.endpoint is not None and oauth.endpoint.lower().startswith("file:"):
        path = unquote(urlsplit(oauth.endpoint).path)
        origin, token = path, _read(path)
    else:
        origin, token = f"the token endpoint {_place(str(oauth.endpoint))}", _request(oauth, node, timeout)
    token = token.strip()
    if not _TOKEN.match(token):
        raise AuthenticationError(node, f"{origin} gave no bearer token", hint="a token has no spaces or line breaks")
    return token


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read(_LARGEST)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "is not text"
        raise UsageError(f"{path}: {reason}", hint="the token's file is set in the client properties") from None


def _run(command: str, node: str, timeout: float) -> str:
    """The command's output. No shell is involved; what it says on standard error goes to the person's."""
    import shlex
    import subprocess

    fault = "the token command (sasl.oauthbearer.token.command)"
    try:
        words = shlex.split(command)
        if not words:
            raise ValueError
    except ValueError:
        raise UsageError("sasl.oauthbearer.token.command: cannot be split into words") from None
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=timeout, check=False)
    except OSError as error:
        raise UsageError(f"sasl.oauthbearer.token.command: {words[0]}: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise AuthenticationError(node, f"{fault} did not end within {timeout:g} s") from None
    if done.returncode != 0:
        raise AuthenticationError(node, f"{fault} ended with code {done.returncode}")
    return done.stdout[:_LARGEST].decode("utf-8", "replace")


def _request(oauth: OAuth, node: str, timeout: float) -> str:
    """The access token that the endpoint gives for the client's credentials: one request, no redirections."""
    if oauth.kept.token is not None and time.monotonic() < oauth.kept.until:
        return oauth.kept.token.value
    from kshell.client.sasl import endpoint  # late: few connections need HTTP

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
        answer = endpoint.post(
            oauth.endpoint, body, headers, oauth.tls, connect=connect, read=read, total=timeout
        )  # fmt: skip
    except (OSError, http.client.HTTPException, ValueError, endpoint.TooLargeError) as error:
        _unreachable(oauth.endpoint, node, error)
    token, lifetime = _access_token(oauth.endpoint, node, answer.status, answer.body)
    oauth.kept.token, oauth.kept.until = Secret(token), began + _fresh(lifetime)
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
        what, hint = error.verify_message, "its certificate is checked against ssl.truststore.*, or the system's"
    elif isinstance(error, TimeoutError):
        what = "no whole answer in time"
        hint = "sasl.login.connect.timeout.ms and sasl.login.read.timeout.ms set how long to wait, within"
        hint += " socket.connection.setup.timeout.ms"
    elif isinstance(error, ValueError | http.client.InvalidURL):
        what = "the URL cannot be used"
    elif isinstance(error, OSError) and error.strerror:
        what = error.strerror
    elif isinstance(error, http.client.HTTPException | OSError):
        what = f"the answer is not HTTP, or is cut ({type(error).__name__})"
    else:
        what, hint = "the answer is too large for one with a token", "is it the URL of a token endpoint?"
    raise AuthenticationError(node, f"the token endpoint {_place(endpoint)}: {what}", hint=hint) from None


def _place(endpoint: str) -> str:
    """The URL without what may be secret in it: user, password, query."""
    parts = urlsplit(endpoint)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _access_token(endpoint: str, node: str, status: int, text: bytes) -> tuple[str, float]:
    """(the token, its lifetime in seconds, 0 where nothing is said of it)."""
    place = f"the token endpoint {_place(endpoint)}"
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if status not in (200, 201):
        said = ""
        if isinstance(found, dict):  # RFC 6749 section 5.2: these two are for people and hold no secret
            words = [found.get("error"), found.get("error_description")]
            said = ": " + ": ".join(str(word)[:300] for word in words if word) if any(words) else ""
        raise AuthenticationError(
            node, f"{place} answered {status}{said}", hint="check the client's id, secret and scope"
        )
    found = found if isinstance(found, dict) else {}
    token = found.get("access_token")
    if not isinstance(token, str):
        raise AuthenticationError(node, f"{place} answered without an access_token")
    return token, _lifetime(found.get("expires_in"), token)


def _lifetime(expires_in: object, token: str) -> float:
    """The seconds that a token is good for still, 0 where nobody says so.

    What the endpoint says (RFC 6749) and the token itself: Kafka's client and server go by the latter. The earlier end
    counts.
    """
    known = [seconds for seconds in (_seconds(expires_in), _until_expiry(token)) if seconds is not None]
    return max(min(known, default=0.0), 0.0)


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


def _listed(value: str) -> list[str]:
    """A list whose first character separates its elements."""
    return value[1:].split(value[0]) if len(value) > 1 else []


_CLAIMS: dict[str, Callable[[str], Any]] = {"StringClaim": str, "NumberClaim": float, "ListClaim": _listed}
