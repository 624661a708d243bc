"""What one connection needs, as client properties say it. Times are in seconds; nothing secret is in any repr."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from kshell.client.java_keys import is_known
from kshell.client.properties import Properties
from kshell.errors import UsageError

if TYPE_CHECKING:
    from kshell.client.sasl.configuration import Sasl
    from kshell.client.tls import Tls

PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL = "PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"
_PROTOCOLS = (PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL)
DIALECTS = ("kip-35-draft", "kip-919-draft", "kip-885", "kip-885-apiversions", "kip-569-draft")
_LARGEST_KEY = 0x7FFF
_MOST_PORTS = 0xFFFF
_LIST_HINT = "addresses are host:port,host:port; an IPv6 address is in brackets: [::1]:9093"


class Settings(NamedTuple):
    """One connection's settings; ``warnings`` are sentences for a person, with keys and never with values."""

    security_protocol: str
    tls: Tls | None
    sasl: Sasl | None
    client_id: str
    request_timeout: float
    connect_timeout: float
    api_timeout: float
    reconnect_backoff: float
    reconnect_backoff_max: float
    retry_backoff: float
    retry_backoff_max: float
    bootstrap_controllers: str | None
    bootstrap_servers: str | None
    cluster_id: str | None
    dialects: frozenset[str]
    excluded: dict[str, frozenset[int]]
    """API name -> versions that are not to be used (KIP-35 lets a client restrict itself)."""
    fallback_release: str | None
    allow_plaintext_password: bool
    warnings: list[str]

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Settings:
        """From client properties. Raises UsageError, which names the key and, if it is known, the file and line."""
        given = properties if isinstance(properties, Properties) else Properties(properties)
        warnings = [_unknown(given, key) for key in given if not is_known(key)]
        protocol = (given.filled("security.protocol") or PLAINTEXT).upper()
        if protocol not in _PROTOCOLS:
            raise given.fault("security.protocol", "is not one that Kafka has", hint=f"one of {', '.join(_PROTOCOLS)}")
        made = cls(
            security_protocol=protocol,
            tls=_tls(given, warnings) if protocol.endswith(SSL) else None,
            sasl=_sasl(given) if protocol.startswith("SASL") else None,
            client_id=given.filled("client.id") or "kshell",
            request_timeout=_positive(given, "request.timeout.ms", 30),
            connect_timeout=_positive(given, "socket.connection.setup.timeout.ms", 10),
            api_timeout=_positive(given, "default.api.timeout.ms", 60),
            reconnect_backoff=given.seconds("reconnect.backoff.ms", 0.05),
            reconnect_backoff_max=given.seconds("reconnect.backoff.max.ms", 1),
            retry_backoff=given.seconds("retry.backoff.ms", 0.1),
            retry_backoff_max=given.seconds("retry.backoff.max.ms", 1),
            bootstrap_controllers=given.filled("bootstrap.controllers"),
            bootstrap_servers=given.filled("bootstrap.servers"),
            cluster_id=given.filled("cluster.id"),
            dialects=_dialects(given),
            excluded=_excluded(given),
            fallback_release=given.filled("broker.version.fallback"),
            allow_plaintext_password=given.switch("sasl.plain.allow.plaintext"),
            warnings=warnings,
        )
        if made.sasl is not None and made.sasl.oauth is not None and made.tls is None and made.sasl.oauth.is_secret:
            warnings.append(
                "OAUTHBEARER with SASL_PLAINTEXT: whoever sees the traffic can take the token (use SASL_SSL)"
            )
        return made


def source_of(settings: Settings) -> tuple[str, str] | None:
    """(``bootstrap_controllers`` or ``bootstrap_servers``, the list) that the properties set; ``None`` for neither.

    Raises UsageError for both, as KIP-919 has it.
    """
    controllers, servers = settings.bootstrap_controllers, settings.bootstrap_servers
    if controllers and servers:
        raise UsageError(
            "the client properties set bootstrap.controllers and bootstrap.servers, and only one can be meant",
            hint="-q LIST or -b LIST on the command line decides, or take one of them out",
        )
    if controllers:
        return "bootstrap_controllers", controllers
    return ("bootstrap_servers", servers) if servers else None


def _unknown(properties: Properties, key: str) -> str:
    place = properties.places.get(key)
    return f"{place}: {key} is not a client property that is known" if place else f"{key}: not a known client property"


def _tls(properties: Properties, warnings: list[str]) -> Tls:
    from kshell.client.tls import Tls

    return Tls.of(properties, warnings)


def _sasl(properties: Properties) -> Sasl:
    from kshell.client.sasl.configuration import Sasl

    return Sasl.of(properties)


def _positive(properties: Properties, key: str, default: float) -> float:
    value = properties.seconds(key, default)
    if value <= 0:
        raise properties.fault(key, "must be more than 0 ms")
    return value


def _dialects(properties: Properties) -> frozenset[str]:
    found = frozenset(properties.words("dialect"))
    if unknown := sorted(found - set(DIALECTS)):
        raise properties.fault("dialect", f"there is no {', '.join(unknown)}", hint=f"dialects: {', '.join(DIALECTS)}")
    return found


def _excluded(properties: Properties) -> dict[str, frozenset[int]]:
    """``Fetch:18,DescribeQuorum:1-2`` -> which versions of which API."""
    key = "api.versions.exclude"
    found: dict[str, frozenset[int]] = {}
    for word in properties.words(key):
        name, _, versions = word.partition(":")
        low, dash, high = versions.partition("-")
        first, last = _version(low), _version(high if dash else low)
        if not (name.isascii() and name.isalnum()) or first is None or last is None or last < first:
            raise properties.fault(
                key, f"{word} is not NAME:VERSION or NAME:LOW-HIGH", hint="Fetch:18,DescribeQuorum:1-2"
            )
        found[name] = found.get(name, frozenset()) | frozenset(range(first, last + 1))
    return found


def _version(text: str) -> int | None:
    text = text.strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 and int(text) <= _LARGEST_KEY else None


def addresses(text: str) -> list[tuple[str, int]]:
    """(host, port) of each entry of a bootstrap list, duplicates left out, an IPv6 address without its brackets.

    Raises UsageError with the 1-based character where the list goes wrong; empty entries are passed over.
    """
    found: dict[tuple[str, int], None] = {}
    at = 0
    for entry in text.split(","):
        if entry.strip():
            found[_address(entry.strip(), at + len(entry) - len(entry.lstrip()))] = None
        at += len(entry) + 1
    if not found:
        raise UsageError("the list of addresses is empty", hint=_LIST_HINT)
    return list(found)


def _address(entry: str, at: int) -> tuple[str, int]:
    def fault(reason: str, where: int) -> UsageError:
        return UsageError(f"{entry}: character {at + where + 1}: {reason}", hint=_LIST_HINT)

    # Kafka's own tools take PROTOCOL://host:port; what the protocol is, is in the client properties.
    scheme, slashes, _ = entry.partition("://")
    if slashes:
        raise fault(f"{scheme}:// has no place here: security.protocol says how to connect", 0)
    if entry.startswith("["):
        host, bracket, port = entry[1:].partition("]")
        if not bracket:
            raise fault("the bracket is not closed", 0)
        if ":" not in host:
            raise fault("brackets are for IPv6 addresses", 0)
        if not port.startswith(":"):
            raise fault("the port is missing", len(host) + 2)
        port, start = port[1:], len(host) + 3
    else:
        host, colon, port = entry.rpartition(":")
        if not colon:
            raise fault("the port is missing", len(entry))
        if ":" in host:
            raise fault("an IPv6 address must be in brackets", 0)
        start = len(host) + 1
    if not host or any(char <= " " or char in "/[]@" or char == "\x7f" for char in host):
        raise fault("the host is missing" if not host else "is not a host name", 0)
    if not (port.isascii() and port.isdigit()) or not 0 < int(port[:6]) <= _MOST_PORTS:
        raise fault("the port is not a number from 1 to 65535" if port else "the port is missing", start)
    return host, int(port)
