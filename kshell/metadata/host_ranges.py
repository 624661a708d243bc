"""Ranges of addresses as the hosts of ACLs (KIP-1276): ``10.1.0.0/16``, ``fd00::/8``.

Which texts are ranges is Kafka's business, and the JDK's: an ACL whose host is no range there is compared as text and
matches nobody. IPv4 goes by the patterns of commons-net, IPv6 by what ``java.net.InetAddress`` reads (so brackets and
groups with leading zeros count, and an IPv4-mapped address is an IPv4 address, which is no IPv6 range).
"""

from __future__ import annotations

import functools
import re
from ipaddress import IPv6Address
from typing import NamedTuple

_OCTETS = r"([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})"
_IPV4 = re.compile(_OCTETS)
_IPV4_RANGE = re.compile(rf"{_OCTETS}/([0-9]{{1,2}})")
_INTEGER = re.compile(r"[+-]?\d+")
_ZONE = re.compile(r"[0-9]{1,9}|[A-Za-z][A-Za-z0-9._-]{0,14}")
"""The number of an interface, or a name such as Linux takes."""
_IPV6_SHAPE = re.compile(r"([0-9a-fA-F:]*:)([0-9.]*|[0-9a-fA-F]*)")
_LEADING_ZEROS = re.compile(r"(?<![0-9a-fA-F])0+(?=[0-9a-fA-F])")
_LONGEST_IPV4 = len("255.255.255.255")
_MAPPED = 0xFFFF << 32
"""``::ffff:0:0``, of which the last 32 bits are an IPv4 address."""
_IPV4_BITS, _IPV6_BITS = 32, 128


class HostRange(NamedTuple):
    """All addresses of ``bits`` bits from ``first`` to ``last``."""

    bits: int
    first: int
    last: int

    def covers(self, address: str) -> bool:
        """Whether an address, in the notation of Java, is within."""
        number = _address_number(address)
        # 0.0.0.0 is in no range of commons-net, not even in 0.0.0.0/0.
        if number is None or number == (_IPV4_BITS, 0):
            return False
        return number[0] == self.bits and self.first <= number[1] <= self.last


@functools.lru_cache(maxsize=4096)
def host_range(text: str) -> HostRange | None:
    """Return the range that the host of an ACL stands for; ``None`` where Kafka 4.4 would not take it for one."""
    if "/" not in text:
        return None
    if ":" in text:
        address, _, prefix = text.partition("/")
        number, length = _ipv6_literal(address), _java_integer(prefix)
        return None if number is None or length is None else _range(_IPV6_BITS, number, length)
    match = _IPV4_RANGE.fullmatch(text)
    number = _ipv4_number(match) if match else None
    return None if match is None or number is None else _range(_IPV4_BITS, number, int(match[5]))


def _range(bits: int, number: int, length: int) -> HostRange | None:
    if not 0 <= length <= bits:
        return None
    rest = (1 << (bits - length)) - 1
    return HostRange(bits, number & ~rest, number | rest)


def _address_number(text: str) -> tuple[int, int] | None:
    """Return the bits and the number of a client's address, whose zone is that of the broker's own interface."""
    if ":" in text:
        number = _ipv6_number(text.partition("%")[0])
        return None if number is None else (_IPV6_BITS, number)
    match = _IPV4.fullmatch(text)
    number = _ipv4_number(match) if match else None
    return None if number is None else (_IPV4_BITS, number)


def _ipv4_number(match: re.Match[str]) -> int | None:
    """Decimal, with leading zeros or without."""
    octets = [int(octet) for octet in match.groups()[:4]]
    return int.from_bytes(octets, "big") if max(octets) <= 255 else None


def _ipv6_literal(text: str) -> int | None:
    """An address as ``InetAddress.getByName`` takes it without asking anybody.

    Whether a zone names an interface, only the server knows: the controller that took the ACL did.
    """
    if text.startswith("["):
        if not text.endswith("]"):
            return None
        text = text[1:-1]
    address, percent, zone = text.partition("%")
    if percent and _ZONE.fullmatch(zone) is None:
        return None
    return _ipv6_number(address)


def _ipv6_number(text: str) -> int | None:
    """Python's reading, without the leading zeros that Java takes any number of; ``None`` for an IPv4-mapped one."""
    shape = _IPV6_SHAPE.fullmatch(text)
    if shape is None or ("." in shape[2] and len(shape[2]) > _LONGEST_IPV4):
        return None
    try:
        number = int(IPv6Address(_LEADING_ZEROS.sub("", text)))
    except ValueError:
        return None
    return None if number & ~0xFFFFFFFF == _MAPPED else number


def _java_integer(text: str) -> int | None:
    """``Integer.parseInt``: with a sign, and with the digits of any script that one UTF-16 unit holds."""
    if _INTEGER.fullmatch(text) is None or any(character > "\uffff" for character in text):
        return None
    return int(text) if len(text) < 200 else None
