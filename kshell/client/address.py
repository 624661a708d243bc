"""Addresses of nodes (host and port): print one, and parse a bootstrap list."""

from __future__ import annotations

from kshell.errors import UsageError

Address = tuple[str, int]
_MOST_PORTS = 0xFFFF
_LIST_HINT = "addresses are host:port,host:port; an IPv6 address is in brackets: [::1]:9093"


def name_of(host: str, port: int) -> str:
    """Return ``host:port``, with an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def addresses(text: str) -> list[Address]:
    """Parse a bootstrap list into (host, port) pairs without duplicates; an IPv6 address is without its brackets.

    Empty entries are skipped. Raises UsageError, which names the 1-based character at which the list is wrong.
    """
    listed: dict[Address, None] = {}
    at = 0
    for entry in text.split(","):
        if entry.strip():
            listed[_address(entry.strip(), at + len(entry) - len(entry.lstrip()))] = None
        at += len(entry) + 1
    if not listed:
        raise UsageError("the list of addresses is empty", hint=_LIST_HINT)
    return list(listed)


def _address(entry: str, at: int) -> Address:
    def fault(reason: str, where: int) -> UsageError:
        return UsageError(f"{entry}: character {at + where + 1}: {reason}", hint=_LIST_HINT)

    # Kafka's own tools accept PROTOCOL://host:port; here the protocol comes from the client properties only.
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
