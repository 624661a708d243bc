"""Decisions of Kafka's ``StandardAuthorizer``: whether a cluster's ACLs allow a request, and which ACL decides.

DENY takes precedence over ALLOW. An ACL applies to a resource by its name, by a prefix of it, or (literal ``*``) to all
of its type; to a principal by its name or as ``User:*``; to a host by its address, by a range of addresses (Kafka 4.4
and later) or as ``*``. Allowing READ, WRITE, DELETE or ALTER allows DESCRIBE as well, and ALTER_CONFIGS allows
DESCRIBE_CONFIGS; denying them denies nothing else.

Kafka and the JDK decide which hosts are ranges of addresses (KIP-1276: ``10.1.0.0/16``, ``fd00::/8``). A host that they
do not read as a range is compared as text, and matches no address. IPv4 ranges follow the patterns of commons-net, IPv6
ranges what ``java.net.InetAddress`` accepts: brackets and groups with leading zeros are accepted, and an IPv4-mapped
address is an IPv4 address, not part of an IPv6 range.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterable, Mapping
from ipaddress import IPv6Address
from typing import TYPE_CHECKING, Any, NamedTuple

from kshell.metadata.families.acls import OPERATIONS, PATTERN_TYPES, PERMISSION_TYPES, Acl
from kshell.metadata.values import Entry

if TYPE_CHECKING:
    from kshell.protocol.primitives import Uuid

_OCTETS = r"([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})"
_IPV4 = re.compile(_OCTETS)
_IPV4_RANGE = re.compile(rf"{_OCTETS}/([0-9]{{1,2}})")
_INTEGER = re.compile(r"[+-]?\d+")
_ZONE = re.compile(r"[0-9]{1,9}|[A-Za-z][A-Za-z0-9._-]{0,14}")
"""The zone of an IPv6 address: the number of a network interface, or a name that Linux allows for one."""
_IPV6_SHAPE = re.compile(r"([0-9a-fA-F:]*:)([0-9.]*|[0-9a-fA-F]*)")
_LEADING_ZEROS = re.compile(r"(?<![0-9a-fA-F])0+(?=[0-9a-fA-F])")
_LONGEST_IPV4 = len("255.255.255.255")
_MAPPED = 0xFFFF << 32
"""``::ffff:0:0``, whose last 32 bits are an IPv4 address."""
_IPV4_BITS, _IPV6_BITS = 32, 128


class HostRange(NamedTuple):
    """The addresses from ``first`` to ``last``, as numbers of ``bits`` bits: 32 for IPv4, 128 for IPv6."""

    bits: int
    first: int
    last: int

    def covers(self, address: str) -> bool:
        """Whether an address, in Java's notation, is in the range."""
        number = _address_number(address)
        # 0.0.0.0 is in no range of commons-net, not even in 0.0.0.0/0.
        if number is None or number == (_IPV4_BITS, 0):
            return False
        return number[0] == self.bits and self.first <= number[1] <= self.last


@functools.lru_cache(maxsize=4096)
def host_range(text: str) -> HostRange | None:
    """Return the address range of an ACL's host; ``None`` where Kafka 4.4 would not treat it as a range."""
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
    """Return the bits and the number of a client's address, without its zone; ``None`` if it is no address."""
    if ":" in text:
        number = _ipv6_number(text.partition("%")[0])
        return None if number is None else (_IPV6_BITS, number)
    match = _IPV4.fullmatch(text)
    number = _ipv4_number(match) if match else None
    return None if number is None else (_IPV4_BITS, number)


def _ipv4_number(match: re.Match[str]) -> int | None:
    """Return the number of an IPv4 address, whose octets may have leading zeros; ``None`` if one is above 255."""
    octets = [int(octet) for octet in match.groups()[:4]]
    return int.from_bytes(octets, "big") if max(octets) <= 255 else None


def _ipv6_literal(text: str) -> int | None:
    """Return the number of an IPv6 address that ``InetAddress.getByName`` accepts without a DNS query, else ``None``.

    Whether a zone names an existing interface is not checked: the controller that accepted the ACL has done it.
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
    """Return the number of an IPv6 address without zone, as Java reads it; ``None``: no address, or IPv4-mapped."""
    shape = _IPV6_SHAPE.fullmatch(text)
    if shape is None or ("." in shape[2] and len(shape[2]) > _LONGEST_IPV4):
        return None
    try:
        number = int(IPv6Address(_LEADING_ZEROS.sub("", text)))
    except ValueError:
        return None
    return None if number & ~0xFFFFFFFF == _MAPPED else number


def _java_integer(text: str) -> int | None:
    """Return what ``Integer.parseInt`` reads: a sign, if any, and digits of any script within one UTF-16 unit."""
    if _INTEGER.fullmatch(text) is None or any(character > "\uffff" for character in text):
        return None
    return int(text) if len(text) < 200 else None


RANGES_FROM = 32
"""The metadata.version (4.4-IV1) from which on ACLs with a range as host can be added (KIP-1276).

The authorizer ignores it: a server of 4.4 applies ranges at every level, an earlier server compares them as text.
"""
WILDCARD = "*"
EVERY_NAME = (("LITERAL", WILDCARD), ("PREFIXED", ""))
"""(pattern type, name) of the patterns that cover every resource of a type: the prefix ``*`` is not one of them."""
EVERYONE = "User:*"
IMPLIED = {
    "DESCRIBE": frozenset({"DESCRIBE", "READ", "WRITE", "DELETE", "ALTER"}),
    "DESCRIBE_CONFIGS": frozenset({"DESCRIBE_CONFIGS", "ALTER_CONFIGS"}),
}
"""Operation -> the operations which, when allowed, allow it as well."""

SUPER_USER, ACL, DEFAULT, NO_ACL = "superUser", "acl", "default", "noAcl"
"""The rule that decided: a super user; an ACL; the resource has ACLs, but none applies; the resource has no ACL."""


class AccessRequest(NamedTuple):
    """A question to the authorizer. ``host`` is an IP address in Java's notation; ``None``: one that no ACL names."""

    principal: str
    operation: str
    resource_type: str
    resource_name: str
    host: str | None = None


class Decision(NamedTuple):
    """The authorizer's answer. ``rule`` is one of the names above; ``acl_id`` and ``acl`` are the ACL that decided."""

    allowed: bool
    rule: str
    acl_id: Uuid | Acl | None = None
    acl: Acl | None = None


def decide(
    acls: Mapping[Any, Entry[Acl]],
    request: AccessRequest,
    *,
    super_users: Collection[str] = (),
    allow_if_no_acl: bool = False,
    ranges: bool = True,
) -> Decision:
    """Return whether a broker would allow a request, and by which rule.

    If several ACLs allow it, the result names the one that Kafka's own audit log names.

    Args:
        acls: The ACLs by their ids.
        request: The question.
        super_users: Principals that may do anything: ``super.users`` of the brokers' properties, not in the log.
        allow_if_no_acl: The answer for a resource without ACLs: ``allow.everyone.if.no.acl.found``, likewise.
        ranges: Whether the broker reads hosts such as ``10.1.0.0/16`` as ranges; before Kafka 4.4 it does not.
    """
    if request.principal in super_users:
        return Decision(True, SUPER_USER)
    allowing: tuple[Uuid | Acl, Acl] | None = None
    any_rule = False
    for acl_id, acl in _of_resource(acls, request):
        any_rule = True
        if not _is_about(acl, request, ranges):
            continue
        if acl.permission_type != "ALLOW":
            return Decision(False, ACL, acl_id, acl)
        allowing = acl_id, acl
    if allowing is not None:
        return Decision(True, ACL, *allowing)
    return Decision(False, DEFAULT) if any_rule else Decision(allow_if_no_acl, NO_ACL)


def other_hosts(acls: Mapping[Any, Entry[Acl]], request: AccessRequest) -> list[str]:
    """Return the hosts and ranges of ACLs that would apply to the request if it came from there, sorted."""
    applying = (acl for _, acl in _of_resource(acls, request) if _is_about(acl, request._replace(host=acl.host), False))
    return sorted({acl.host for acl in applying if acl.host not in (WILDCARD, request.host)})


def covers(acl: Acl, resource_type: str, resource_name: str) -> bool:
    """Whether an ACL applies to a resource, by name, prefix or wildcard."""
    if acl.resource_type != resource_type:
        return False
    if acl.pattern_type == "LITERAL":
        if acl.resource_name == WILDCARD:
            # For Kafka the wildcard does not match a longer name that begins with an asterisk.
            return resource_name == WILDCARD or not resource_name.startswith(WILDCARD)
        return acl.resource_name == resource_name
    return acl.pattern_type == "PREFIXED" and resource_name.startswith(acl.resource_name)


def _of_resource(acls: Mapping[Any, Entry[Acl]], request: AccessRequest) -> Iterable[tuple[Uuid | Acl, Acl]]:
    """Return (id, ACL) of the ACLs for the resource, in Kafka's order: longer names first, the wildcard last."""
    kind, name = request.resource_type, request.resource_name
    covering = [(key, entry.value) for key, entry in acls.items() if covers(entry.value, kind, name)]
    return sorted(covering, key=lambda pair: _order(pair[1], name))


def _is_about(acl: Acl, request: AccessRequest, ranges: bool) -> bool:
    """Whether an ACL, which covers the resource, applies to the request's principal, host and operation."""
    if acl.principal not in (request.principal, EVERYONE) or not _is_from(acl.host, request.host, ranges):
        return False
    if acl.operation in ("ALL", request.operation):
        return True
    return acl.permission_type == "ALLOW" and acl.operation in IMPLIED.get(request.operation, ())


def _is_from(host: str, address: str | None, ranges: bool) -> bool:
    """Whether the host of an ACL covers an address; ``None`` is an address that no ACL names."""
    if host in (WILDCARD, address):
        return True
    addresses = host_range(host) if ranges else None
    return addresses is not None and address is not None and addresses.covers(address)


_PATTERN_CODES = {name: code for code, name in PATTERN_TYPES.items()}
_OPERATION_CODES = {name: code for code, name in OPERATIONS.items()}
_PERMISSION_CODES = {name: code for code, name in PERMISSION_TYPES.items()}


def _order(acl: Acl, name: str) -> tuple[object, ...]:
    """Return the sort key of an ACL among those that cover ``name`` (``StandardAcl.compareTo``).

    Their resource names are all prefixes of ``name``, so that sorting by length is sorting by name. The wildcard comes
    last because Kafka searches for it in a second pass.
    """
    wildcard = acl.resource_name == WILDCARD and acl.pattern_type == "LITERAL" and name != WILDCARD
    return (
        wildcard,
        -len(acl.resource_name),
        _PATTERN_CODES.get(acl.pattern_type, 0),
        _OPERATION_CODES.get(acl.operation, 0),
        acl.principal.encode("utf-16-be", "surrogatepass"),
        acl.host.encode("utf-16-be", "surrogatepass"),
        _PERMISSION_CODES.get(acl.permission_type, 0),
    )
